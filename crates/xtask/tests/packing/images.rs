//! Images: their digest, their content, their way through a registry, and the program that runs in
//! them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use moorline_test_support::programs::{command, find, run};
use moorline_test_support::registry::Registry;
use moorline_test_support::under_load::under_load;

use crate::root::{Image, Running, SCRATCH, add_libraries, daemon, entrypoint, program, sha256};
use crate::support::{ARCHITECTURE, TARGET, binary, done, folder, refused, word};

const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: greeting\n";
/// Largest image without helm, for the static binary.
const LARGEST: u64 = 12_000_000;
/// Time from the start of the program until it answers, for the static binary.
const START: Duration = Duration::from_millis(50);

/// Assembles the image, and returns its layout and the digest of its index.
pub(crate) fn assembled(name: &str) -> Option<(PathBuf, String)> {
    let out = folder(name);
    let binary = format!("{TARGET}={}", word(binary()?));
    let printed = done(&["image", "--without-helm", "--binary", &binary, "--out", word(&out)]);
    let digest = printed.trim().strip_prefix("image ").expect("a digest").to_owned();
    Some((out.join("image"), digest))
}

/// True if the binary is the one of a release, for which the bars hold.
fn is_static() -> bool {
    std::env::var_os("MOORLINE_STATIC_BINARY").is_some()
}

#[test]
fn an_image_has_the_same_digest_each_time_and_says_where_it_comes_from() {
    let (Some((one, digest)), Some((_, again))) = (assembled("image-one"), assembled("image-two")) else {
        return;
    };
    assert_eq!(digest, again);
    let image = Image::of(&one, ARCHITECTURE);
    let config = &image.config["config"];
    assert_eq!(config["User"], "65532:65532");
    let environment = config["Env"].as_array().expect("an environment");
    assert!(environment.iter().any(|it| it == "MIMALLOC_PURGE_DELAY=10"), "{environment:?}");
    assert_eq!(config["Labels"]["org.opencontainers.image.source"], "https://example.com/moorline");
    let revision = config["Labels"]["org.opencontainers.image.revision"].as_str().expect("a revision");
    assert_eq!(revision.trim_end_matches("-dirty").len(), 40, "{revision}");
    assert_eq!(image.config["created"], "2023-11-14T22:13:20Z");
    if is_static() {
        println!("the image has {} bytes compressed", image.compressed());
        assert!(image.compressed() <= LARGEST, "{} bytes", image.compressed());
    }
}

#[test]
fn the_program_runs_in_the_root_of_the_image_and_writes_nothing() {
    let Some((layout, _)) = assembled("image-root") else { return };
    let image = Image::of(&layout, ARCHITECTURE);
    check_root(&image, "image-root-unpacked");
}

/// Assembles both images, with the binary in place of helm too; returns the layouts.
fn with_helm(name: &str) -> Option<(PathBuf, PathBuf, String)> {
    let out = folder(name);
    let binary = format!("{TARGET}={}", word(binary()?));
    let printed = done(&["image", "--binary", &binary, "--helm", &binary, "--out", word(&out)]);
    let digest = printed.lines().find_map(|line| line.strip_prefix("image-helm ")).expect("a digest");
    Some((out.join("image"), out.join("image-helm"), digest.to_owned()))
}

#[test]
fn the_second_image_adds_helm_to_the_first_and_is_the_same_each_time() {
    let (Some((plain, layout, digest)), Some((_, _, again))) = (with_helm("helm-one"), with_helm("helm-two"))
    else {
        return;
    };
    assert_eq!(digest, again);
    let image = Image::of(&layout, ARCHITECTURE);
    let (layers, files) = image.layers();
    assert_eq!(layers[..layers.len() - 1], Image::of(&plain, ARCHITECTURE).layers().0);
    let found: Vec<(&str, u32)> = files.iter().map(|(path, mode)| (path.as_str(), *mode)).collect();
    assert_eq!(found, [("usr/", 0o755), ("usr/bin/", 0o755), ("usr/bin/helm", 0o755)]);
    let environment = |image: &Image| image.config["config"]["Env"].clone();
    assert_eq!(environment(&image), environment(&Image::of(&plain, ARCHITECTURE)));

    let (root, Some(binary)) = (folder("helm-root"), binary()) else { return };
    image.unpack(&root);
    add_libraries(&root, binary);
    let Some(mut helm) = program(&root, &image, "/usr/bin/helm") else { return };
    let version = run(helm.arg("--version")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(version, concat!("moorline ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn helm_for_another_machine_is_refused() {
    let (out, Some(binary)) = (folder("helm-other"), binary()) else { return };
    let (binary, helm) = (format!("{TARGET}={}", word(binary)), out.join("helm"));
    let refusal = |content: &[u8]| {
        fs::write(&helm, content).expect("a file");
        let named = format!("{TARGET}={}", word(&helm));
        refused(&["image", "--binary", &binary, "--helm", &named, "--out", word(&out)])
    };
    let mut other = b"\x7fELF".to_vec();
    other.resize(64, 0);
    let (code, reason) = refusal(&other);
    assert!(code == 2 && reason.contains("helm: ") && reason.contains("another machine"), "{code}: {reason}");
    let (_, reason) = refusal(b"#!/bin/sh\n");
    assert!(reason.contains("helm: ") && reason.contains("no ELF file"), "{reason}");
    let (code, reason) = refused(&["image", "--without-helm", "--helm", &binary]);
    assert!(code == 64 && reason.contains("exclude each other"), "{code}: {reason}");
}

/// Unpacks an image and runs its program there.
fn check_root(image: &Image, name: &str) {
    let (root, Some(binary)) = (folder(name), binary()) else { return };
    image.unpack(&root);
    add_libraries(&root, binary);
    fs::create_dir(root.join("repository")).expect("a folder");
    fs::write(root.join("repository/greeting.yaml"), MANIFEST).expect("a manifest");
    let before = listing(&root);
    let answer = |arguments: &[&str]| {
        let mut command = entrypoint(&root, image)?;
        Some(run(command.args(arguments)).unwrap_or_else(|error| panic!("{arguments:?}: {error}")))
    };
    let Some(version) = answer(&["--version"]) else { return };
    assert_eq!(version, concat!("moorline ", env!("CARGO_PKG_VERSION"), "\n"));
    assert!(answer(&["render", "/repository"]).expect("it runs").contains("name: greeting"));
    assert_eq!(listing(&root), before, "the program wrote into its root");

    let authorities =
        fs::read_to_string(root.join("etc/ssl/certs/ca-certificates.crt")).expect("authorities");
    assert!(authorities.matches("BEGIN CERTIFICATE").count() > 100);
    assert!(fs::read(root.join("usr/share/zoneinfo/Asia/Seoul")).expect("a time zone").starts_with(b"TZif"));
    assert!(fs::read_to_string(root.join("etc/passwd")).expect("users").contains(":65532:65532:"));
    if is_static() {
        check_start(&root, image);
    }
}

/// Measures the time from the start of a daemon, with an API server in its process, until it says
/// that it is ready.
fn check_start(root: &Path, image: &Image) {
    let folder = root.join(SCRATCH);
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("a folder for all");
    let mut times = Vec::new();
    for _ in 0..5 {
        let Some(mut command) = daemon(root, image) else { return };
        let arguments =
            ["run", "--sandbox", "--data-dir", "/scratch/data", "--page", "", "--listen", "127.0.0.1:0"];
        let begun = Instant::now();
        let log = root.join(SCRATCH).join("log");
        let file = fs::File::create(&log).expect("a log");
        let output = command.args(arguments).stdout(Stdio::null()).stderr(file);
        let _daemon = Running(output.spawn().expect("it starts"));
        loop {
            let said = fs::read_to_string(&log).unwrap_or_default();
            if address(&said).is_some_and(is_ready) {
                break;
            }
            assert!(
                begun.elapsed() < under_load(Duration::from_secs(10)),
                "the daemon does not become ready: {said}"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        times.push(begun.elapsed());
    }
    times.sort();
    println!("start in the root of the image: {times:?}");
    assert!(times[2] < START, "{times:?}");
}

/// Asks a daemon whether it is ready.
fn is_ready(address: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let mut answer = String::new();
    let asked = stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    asked.and_then(|()| stream.read_to_string(&mut answer)).is_ok() && answer.starts_with("HTTP/1.1 200")
}

/// Address that a daemon listens to, from its log.
fn address(log: &str) -> Option<&str> {
    log.split("listening address=").nth(1)?.split('\n').next()
}

/// Everything under a root, with sizes and times of change.
fn listing(root: &Path) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let metadata = entry.metadata().expect("metadata");
            found.push((entry.path(), metadata.len(), metadata.modified().expect("a time")));
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn an_image_comes_back_from_a_registry_by_its_digest_and_a_changed_one_does_not() {
    let Some((layout, digest)) = assembled("image-pushed") else { return };
    let (Some(registry), Some(crane)) = (Registry::start(), find("crane")) else { return };
    let crane = |arguments: &[&str]| run(command(&crane).args(arguments));
    let name = format!("{}/moorline:{}", registry.address, env!("CARGO_PKG_VERSION"));
    crane(&["push", word(&layout), &name]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(crane(&["digest", &name]).expect("a digest").trim(), digest);

    let pulled = folder("image-pulled");
    let by_digest = format!("{}/moorline@{digest}", registry.address);
    crane(&["pull", "--format", "oci", &by_digest, word(&pulled)]).unwrap_or_else(|error| panic!("{error}"));
    check_root(&Image::of(&pulled, ARCHITECTURE), "image-pulled-unpacked");

    // The image with helm shares the first layer.
    let Some((_, second, digest)) = with_helm("image-helm-pushed") else { return };
    crane(&["push", word(&second), &format!("{name}-helm")]).unwrap_or_else(|error| panic!("{error}"));
    let (pulled, by_digest) =
        (folder("image-helm-pulled"), format!("{}/moorline@{digest}", registry.address));
    crane(&["pull", "--format", "oci", &by_digest, word(&pulled)]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(Image::of(&pulled, ARCHITECTURE).layers(), Image::of(&second, ARCHITECTURE).layers());

    let blobs = layout.join("blobs/sha256");
    let largest = fs::read_dir(&blobs).expect("blobs").map(|entry| entry.expect("a blob").path());
    let largest =
        largest.max_by_key(|path| fs::metadata(path).map_or(0, |metadata| metadata.len())).expect("a layer");
    let mut bytes = fs::read(&largest).expect("a layer");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&largest, &bytes).expect("a changed layer");
    // The first registry has the layer of that digest already, and would not ask for its bytes.
    let Some(registry) = Registry::start() else { return };
    let other = format!("{}/moorline:1", registry.address);
    assert!(crane(&["push", word(&layout), &other]).is_err(), "a layer with {} was pushed", sha256(&bytes));
}
