//! `moorline push` and `moorline pull` against a registry on this machine, and against the registry and
//! the client of another project.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use moorline_test_support::artifact_registry::{ArtifactRegistry, LOGIN, RegistryLogin, digest, gzip, tar};
use moorline_test_support::command::{CONFIG_MAP, Folder, Outcome};
use moorline_test_support::places;
use moorline_test_support::programs::{command, find, run};
use moorline_test_support::registry::Registry;

/// Runs `moorline` in a folder, with this folder for docker's logins.
fn moorline(folder: &Folder, arguments: &[&str]) -> Outcome {
    let mut program = Command::new(places::moorline());
    program.args(arguments).current_dir(&folder.0).env("DOCKER_CONFIG", folder.0.join("docker"));
    Outcome::of(&program.output().unwrap())
}

/// Files below a folder, by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        match entry.path().is_dir() {
            true => found.extend(
                files(&entry.path()).into_iter().map(|(path, text)| (format!("{name}/{path}"), text)),
            ),
            false => drop(found.insert(name, fs::read(entry.path()).unwrap())),
        }
    }
    found
}

#[test]
fn a_folder_comes_back_from_a_registry_and_has_one_digest() {
    let long = format!("{}deep.yaml", "a-long-name-of-a-folder/".repeat(6));
    let one: &[(&str, &[u8])] = &[
        ("app/b/c.yaml", CONFIG_MAP),
        ("app/.hidden", b"x"),
        (&format!("app/{long}"), b"y"),
        ("app/.git/HEAD", b"z"),
    ];
    let folder = Folder::new("push", one);
    let root = tempfile::tempdir().unwrap();
    let registry = ArtifactRegistry::start(root.path());
    registry.login(RegistryLogin::Bearer);
    let logins = json!({"auths": {registry.host(): {"username": LOGIN.0, "password": LOGIN.1}}});
    fs::create_dir_all(folder.0.join("docker")).unwrap();
    fs::write(folder.0.join("docker/config.json"), logins.to_string()).unwrap();
    fs::write(folder.0.join("ca.crt"), &registry.authority.pem).unwrap();
    let url = registry.url("team/shop");
    let push = |arguments: &[&str]| {
        let outcome = moorline(&folder, &[&["push"], arguments, &["--ca-file", "ca.crt"]].concat());
        assert_eq!(outcome.code, 0, "{outcome:?}");
        outcome.data.trim().to_owned()
    };
    let first = push(&[&format!("{url}:v1"), "app"]);
    let pushed = first.strip_prefix("v1@").expect("tag and digest").to_owned();
    // The same files at another time and place, with other permissions.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let other = Folder::new("push-again", &[("app/.git/index", b"q")]);
    for (path, bytes) in
        files(&folder.0.join("app")).into_iter().filter(|(path, _)| !path.starts_with(".git/"))
    {
        let place = other.0.join("app").join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, bytes).unwrap();
    }
    let again = push(&[&format!("{url}:v2"), other.0.join("app").to_str().unwrap()]);
    assert_eq!(again, format!("v2@{pushed}"));
    let noted = push(&[
        &url,
        "app",
        "--source",
        "https://git.example.com/shop.git",
        "--revision",
        "main@sha1:1",
        "-o",
        "json",
    ]);
    let noted: Value = serde_json::from_str(&noted).unwrap();
    assert_eq!((&noted["url"], &noted["files"]), (&json!(url), &json!(3)));
    assert_ne!(noted["revision"], json!(format!("latest@{pushed}")), "the notes are a part of it");

    let pull = |from: &str, to: &str| moorline(&folder, &["pull", from, to, "--ca-file", "ca.crt"]);
    for (from, to) in
        [(format!("{url}:v1"), "one"), (format!("{url}@{pushed}"), "two"), (url.clone(), "three")]
    {
        let outcome = pull(&from, to);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let found = files(&folder.0.join(to));
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, [".hidden", &long, "b/c.yaml"]);
        assert_eq!(found["b/c.yaml"], CONFIG_MAP);
    }
    pull(&format!("{url}:v1"), "one").refused(1, "error: the folder is not empty; name a new one\n");
    let missing = pull(&format!("{url}:v9"), "four");
    assert!(
        missing.code == 1 && missing.words.contains("has no tag v9 in the repository team/shop"),
        "{missing:?}"
    );
    std::os::unix::fs::symlink("c.yaml", folder.0.join("app/b/link.yaml")).unwrap();
    let linked = moorline(&folder, &["push", &url, "app", "--ca-file", "ca.crt"]);
    assert!(linked.code == 1 && linked.words.contains("b/link.yaml is a link"), "{linked:?}");
    // Without the login, and with another one.
    fs::remove_file(folder.0.join("docker/config.json")).unwrap();
    let denied = pull(&format!("{url}:v1"), "five");
    assert!(denied.code == 1 && denied.words.contains("refuses access (status 401)"), "{denied:?}");
    let outcome = moorline(&folder, &["push", "https://host/a", "app"]);
    assert!(outcome.code == 1 && outcome.words.contains("oci://"), "{outcome:?}");
}

#[test]
fn a_pulled_archive_leads_nowhere_else() {
    let folder = Folder::new("pull-evil", &[("ca", b"")]);
    let root = tempfile::tempdir().unwrap();
    let registry = ArtifactRegistry::start(root.path());
    fs::write(folder.0.join("ca.crt"), &registry.authority.pem).unwrap();
    for (name, entries) in [
        ("up", vec![("../evil", b'0', &b"x"[..])]),
        ("link", vec![("dir", b'2', b""), ("dir/evil", b'0', b"x")]),
        ("own", vec![(".moorline-layer", b'0', b"x")]),
    ] {
        let media = "application/vnd.oci.image.layer.v1.tar+gzip";
        registry.layer("evil", name, media, &gzip(&tar(&entries)));
        let url = format!("{}:{name}", registry.url("evil"));
        let outcome = moorline(&folder, &["pull", &url, &format!("to/{name}"), "--ca-file", "ca.crt"]);
        assert_eq!(outcome.code, 1, "{name}: {outcome:?}");
        assert!(!folder.0.join("evil").exists() && !folder.0.join("to/evil").exists());
        assert!(files(&folder.0.join("to").join(name)).is_empty(), "{name}");
    }
}

/// Layers as `oras push a.yaml app` makes them.
#[test]
fn files_and_folders_of_oras_are_pulled() {
    let folder = Folder::new("pull-oras", &[("ca", b"")]);
    let root = tempfile::tempdir().unwrap();
    let registry = ArtifactRegistry::start(root.path());
    fs::write(folder.0.join("ca.crt"), &registry.authority.pem).unwrap();
    let packed = gzip(&tar(&[("app", b'5', b""), ("app/c.yaml", b'0', b"c")]));
    let layer = |title: &str, bytes: &[u8]| {
        registry.blob(bytes);
        json!({"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest(bytes), "size": bytes.len(),
            "annotations": {"org.opencontainers.image.title": title}})
    };
    let mut app = layer("app", &packed);
    app["annotations"]["io.deis.oras.content.unpack"] = json!("true");
    for (name, first) in [("v1", "a.yaml"), ("evil", "../evil")] {
        let layers = json!([layer(first, CONFIG_MAP), app]);
        let media = "application/vnd.oci.image.manifest.v1+json";
        registry.manifest("shop", name, media, &json!({"schemaVersion": 2, "layers": layers}));
    }
    let pull = |name: &str| {
        let url = format!("{}:{name}", registry.url("shop"));
        moorline(&folder, &["pull", &url, &format!("to/{name}"), "--ca-file", "ca.crt"])
    };
    assert_eq!(pull("v1").code, 0);
    let found = files(&folder.0.join("to/v1"));
    let expect = [("a.yaml", CONFIG_MAP), ("app/c.yaml", b"c")];
    assert_eq!(found, expect.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    let refused = pull("evil");
    assert!(refused.code == 1 && refused.words.contains("leads elsewhere"), "{refused:?}");
    assert!(!folder.0.join("to/evil").exists() && !folder.0.join("evil").exists());
}

/// go-containerregistry is what Flux reads artifacts with.
#[test]
fn another_client_reads_what_is_pushed_and_its_packages_are_pulled() {
    let (Some(crane), Some(registry)) = (find("crane"), Registry::start()) else { return };
    let folder = Folder::new("crane", &[("app/a.yaml", CONFIG_MAP), ("app/sub/b.yaml", b"b")]);
    let (name, url) =
        (format!("{}/team/shop", registry.address), format!("oci://{}/team/shop", registry.address));
    let crane = |arguments: &[&str]| {
        run(command(&crane).args(arguments).arg("--insecure").current_dir(&folder.0)).expect("crane succeeds")
    };
    let pushed = moorline(&folder, &["push", &format!("{url}:v1"), "app", "--plain-http"]);
    assert_eq!(pushed.code, 0, "{pushed:?}");
    let found = crane(&["digest", &format!("{name}:v1")]);
    assert_eq!(pushed.data.trim(), format!("v1@{}", found.trim()));
    let manifest = crane(&["manifest", &format!("{name}:v1")]);
    assert_eq!(digest(manifest.as_bytes()), found.trim());
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.cncf.flux.config.v1+json");
    assert_eq!(manifest["layers"][0]["mediaType"], "application/vnd.cncf.flux.content.v1.tar+gzip");
    crane(&["pull", &format!("{name}:v1"), "pulled.tar"]);
    // A package that crane makes, with a layer that tar packs.
    run(command(Path::new("tar")).args(["czf", "layer.tgz", "-C", "app", "."]).current_dir(&folder.0))
        .unwrap();
    crane(&["append", "-f", "layer.tgz", "-t", &format!("{name}:crane")]);
    let outcome = moorline(&folder, &["pull", &format!("{url}:crane"), "back", "--plain-http"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(files(&folder.0.join("back")), files(&folder.0.join("app")));
}
