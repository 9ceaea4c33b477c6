//! The binary in an empty root, as the image of the Dockerfile runs it.
//!
//! In: the Dockerfile and the binary of the tests, which asks for every library that the release binary asks for. Out: what it
//! answers in a root that holds what the last stage copies and nothing more, as the user that it names, who can write nothing there.
//! The libraries that the binary asks for are copied from this machine: they stand in for those of the base image, and one that
//! the base image does not hold is refused. What the first stage copies has to be enough to compile from. No
//! Docker is needed; the image itself is not built here.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use moorline_test_support::programs::report_skipped;

/// Content of `gcr.io/distroless/cc-debian12` of glibc and of GCC's runtime, by the names that binaries ask for.
const BASE: &str = "gcr.io/distroless/cc-debian12:nonroot";
const BASE_LIBRARIES: [&str; 11] = [
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libgomp.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "libresolv.so.2",
    "librt.so.1",
    "libstdc++.so.6",
];

const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: greeting\ndata:\n  text: hello\n";

#[test]
fn the_binary_runs_in_the_image_s_root() {
    let text = fs::read_to_string(repository().join("Dockerfile")).expect("the Dockerfile can be read");
    let image = Image::of(&text).unwrap_or_else(|error| panic!("Dockerfile: {error}"));
    assert_eq!(image.base, BASE, "BASE_LIBRARIES tells what is in it: change both");
    let jail = match Jail::here() {
        Ok(jail) => jail,
        Err(why) => return report_skipped(&format!("no empty root can be made: {why}")),
    };
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image");
    remove(&root);
    fill(&root, &image, Path::new(env!("CARGO_BIN_EXE_moorline"))).unwrap_or_else(|error| panic!("{error}"));
    let before = listing(&root);

    let run = |arguments: &[&str]| answer(jail.command(&root, &image), arguments);
    assert_eq!(run(&["--version"]), concat!("moorline ", env!("CARGO_PKG_VERSION"), "\n"));
    let rendered = run(&["render", "/repository"]);
    assert!(rendered.contains("kind: ConfigMap") && rendered.contains("name: greeting"), "{rendered}");

    assert_eq!(listing(&root), before, "the binary wrote into its root");
}

#[test]
fn the_variant_with_helm_has_one_file_more() {
    let text = fs::read_to_string(repository().join("Dockerfile")).expect("the Dockerfile can be read");
    let stage = |begin: &str| -> Vec<String> {
        let after = text.rsplit_once(begin).map_or("", |(_, after)| after);
        let lines = after.lines().take_while(|line| !line.starts_with("FROM ")).map(str::to_owned);
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
    };
    let mut with_helm = stage(&format!("FROM {BASE} AS helm\n"));
    let before = with_helm.len();
    with_helm.retain(|line| line != "COPY --from=helm-program /out/helm /usr/bin/helm");
    assert_eq!((before, with_helm), (5, stage(&format!("FROM {BASE}\n"))));
}

#[test]
fn the_first_stage_copies_what_cargo_needs() {
    let text = fs::read_to_string(repository().join("Dockerfile")).expect("the Dockerfile can be read");
    let ignored = fs::read_to_string(repository().join(".dockerignore")).expect("it can be read");
    let stage = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first-stage");
    remove(&stage);
    for (name, place) in sources(&text).unwrap_or_else(|error| panic!("Dockerfile: {error}")) {
        assert!(ignored.lines().any(|line| line == format!("!{name}")), ".dockerignore leaves {name} out");
        copy(&repository().join(name), &stage.join(place));
    }
    // `check` and not `build`: it sees the same files and takes seconds.
    let mut check = cargo(&["check", "--locked", "--bin", "moorline"]);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    let output = check.current_dir(&stage).arg("--target-dir").arg(target).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the paths that the first stage copies from the repository: names there, and places in its working folder.
fn sources(dockerfile: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut stages = 0;
    let mut found = Vec::new();
    for line in dockerfile.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["FROM", ..] => stages += 1,
            ["COPY", ref names @ .., "./"] if stages == 1 => {
                found.extend(names.iter().map(|name| (*name, *name)))
            }
            ["COPY", name, place] if stages == 1 => found.push((name, place.trim_start_matches("./"))),
            ["COPY", ..] if stages == 1 => return Err(format!("`{line}` is not understood")),
            _ => {}
        }
    }
    if found.is_empty() { Err("the first stage copies nothing".to_owned()) } else { Ok(found) }
}

/// Copies a file or a folder.
fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        for entry in fs::read_dir(from).expect("a folder can be listed") {
            let name = entry.expect("an entry can be read").file_name();
            copy(&from.join(&name), &to.join(&name));
        }
    } else {
        fs::create_dir_all(to.parent().expect("a file is in a folder")).expect("a folder can be made");
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}

/// Result of the last stage of a Dockerfile.
#[derive(Debug, PartialEq, Eq)]
struct Image {
    base: String,
    /// Built file and place in the image.
    copies: Vec<(String, String)>,
    /// Variables with their values.
    environment: Vec<(String, String)>,
    user: u32,
    group: u32,
    entrypoint: String,
}

impl Image {
    /// Reads the few instructions that this project's Dockerfile uses; another one in the last stage is refused.
    fn of(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let lines: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
        let last = lines.iter().rposition(|line| line[0] == "FROM").ok_or("no FROM")?;
        let base = (*lines[last].get(1).ok_or("FROM names no image")?).to_owned();
        let (copies, environment, entrypoint) = (Vec::new(), Vec::new(), String::new());
        let mut image = Self { base, copies, environment, user: 0, group: 0, entrypoint };
        for line in &lines[last + 1..] {
            match line[..] {
                ["COPY", "--from=build", from, to] => image.copies.push((from.to_owned(), to.to_owned())),
                ["ENV", set] => {
                    let (name, value) = set.split_once('=').ok_or("ENV is not a name with a value")?;
                    image.environment.push((name.to_owned(), value.to_owned()));
                }
                ["USER", ids] => {
                    let ids = ids.split_once(':').and_then(|(user, group)| Some((id(user)?, id(group)?)));
                    (image.user, image.group) = ids.ok_or("USER is not two numbers with a colon")?;
                }
                ["ENTRYPOINT", list] => {
                    let program = list.strip_prefix("[\"").and_then(|list| list.strip_suffix("\"]"));
                    program.ok_or("ENTRYPOINT is not a list of one")?.clone_into(&mut image.entrypoint);
                }
                _ => return Err(format!("`{}` is not understood", line.join(" "))),
            }
        }
        match () {
            () if image.user == 0 || image.group == 0 => Err("the image runs as root".to_owned()),
            () if !image.copies.iter().any(|(_, to)| *to == image.entrypoint) => {
                Err("the ENTRYPOINT is not copied".to_owned())
            }
            () => Ok(image),
        }
    }
}

fn id(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// A way to run a program in another root as another user.
enum Jail {
    /// As root: `chroot` becomes the user.
    Chroot,
    /// As anybody, where the kernel lets them: in a user namespace one is that user.
    Namespace,
}

impl Jail {
    fn here() -> Result<Self, String> {
        let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let mut attempt = match root {
            true => Command::new("chroot"),
            false => Command::new("unshare"),
        };
        match root {
            true => attempt.args(["/", "true"]),
            false => attempt.args(["--user", "--map-user=1", "--map-group=1", "--root=/", "true"]),
        };
        match attempt.output() {
            Ok(output) if output.status.success() && root => Ok(Self::Chroot),
            Ok(output) if output.status.success() => Ok(Self::Namespace),
            Ok(output) => Err(format!("{attempt:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => Err(format!("{attempt:?}: {error}")),
        }
    }

    /// The entrypoint of an image in a root, with no environment.
    fn command(&self, root: &Path, image: &Image) -> Command {
        let (user, group) = (image.user, image.group);
        let mut command = match self {
            Self::Chroot => {
                let mut command = Command::new("chroot");
                command.arg(format!("--userspec={user}:{group}")).arg("--groups=").arg(root);
                command
            }
            Self::Namespace => {
                let mut command = Command::new("unshare");
                command.args(["--user", &format!("--map-user={user}"), &format!("--map-group={group}")]);
                command.arg(format!("--root={}", root.display()));
                command
            }
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let environment = image.environment.iter().map(|(name, value)| (name, value));
        command.arg(&image.entrypoint).env_clear().env("PATH", path).envs(environment);
        command
    }
}

/// Puts into a root what the image holds, and a repository to render; nothing there can be written then.
fn fill(root: &Path, image: &Image, binary: &Path) -> Result<(), String> {
    for (built, place) in &image.copies {
        let name = Path::new(built).file_name();
        if !built.contains("/target/dist/") || name != binary.file_name() {
            return Err(format!("the image copies {built}, which this test does not know how to build"));
        }
        copy(binary, &inside(root, place));
    }
    for library in libraries(binary)? {
        copy(Path::new(&library), &inside(root, &library));
    }
    let manifest = root.join("repository/greeting.yaml");
    fs::create_dir_all(root.join("repository")).expect("a folder can be made");
    fs::write(manifest, MANIFEST).expect("a manifest can be written");
    close(root);
    Ok(())
}

fn inside(root: &Path, place: &str) -> PathBuf {
    root.join(place.trim_start_matches('/'))
}

/// Returns the paths of the libraries that a binary asks for, all of which the base image has to hold.
fn libraries(binary: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("ldd").arg(binary).output().map_err(|error| format!("ldd: {error}"))?;
    libraries_in(&String::from_utf8_lossy(&output.stdout))
}

fn libraries_in(ldd: &str) -> Result<Vec<String>, String> {
    let mut places = Vec::new();
    for line in ldd.lines().map(str::trim) {
        let place = line.split_whitespace().find(|word| word.starts_with('/'));
        let asked = line.split_whitespace().next().unwrap_or_default();
        let name = asked.rsplit('/').next().unwrap_or_default();
        match place {
            // The kernel's own; or the binary needs none.
            None if name.starts_with("linux-vdso") || line.contains("statically linked") => {}
            Some(place) if BASE_LIBRARIES.contains(&name) => places.push(place.to_owned()),
            _ => return Err(format!("the binary needs `{line}`, which {BASE} does not hold")),
        }
    }
    Ok(places)
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Variables that cargo sets for a test of its package would make the build scripts of others run again, and everything that
    // uses them be built again.
    let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
        command.env_remove(name);
    }
    command.args(arguments);
    command
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn answer(mut command: Command, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } =
        command.args(arguments).output().expect("the command can be started");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout.into_owned()
}

/// Everything under a root with its size and its time.
fn listing(root: &Path) -> Vec<(PathBuf, u64, i64)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let entry = entry.expect("an entry can be read");
            let metadata = entry.metadata().expect("an entry has metadata");
            found.push((entry.path(), metadata.len(), metadata.mtime()));
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// Takes from everybody the right to write.
fn close(root: &Path) {
    set_mode(root, 0o555);
    listing(root).iter().for_each(|(path, _, _)| set_mode(path, 0o555));
}

/// Removes the root of an earlier run, whose owner has to take back the right to do so.
fn remove(root: &Path) {
    if root.exists() {
        let folders = listing(root).into_iter().map(|(path, _, _)| path).filter(|path| path.is_dir());
        folders.chain([root.to_owned()]).for_each(|folder| set_mode(&folder, 0o755));
        fs::remove_dir_all(root).expect("the root of an earlier run can be removed");
    }
}

fn set_mode(path: &Path, mode: u32) {
    let permissions = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, permissions).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

const DOCKERFILE: &str = "FROM a AS build\nRUN x\nFROM b:c\nCOPY --from=build /x/target/dist/moorline /moorline\nENV A=b=c\n\
                          # why\nUSER 65532:65532\nENTRYPOINT [\"/moorline\"]\n";

#[test]
fn the_last_stage_is_read() {
    let image = Image::of(DOCKERFILE).expect("it is understood");
    assert_eq!(image.base, "b:c");
    assert_eq!(image.copies, [("/x/target/dist/moorline".to_owned(), "/moorline".to_owned())]);
    assert_eq!(image.environment, [("A".to_owned(), "b=c".to_owned())]);
    assert_eq!((image.user, image.group, image.entrypoint.as_str()), (65532, 65532, "/moorline"));
}

#[test]
fn what_the_first_stage_copies_is_read() {
    let copied = "FROM a AS build\nCOPY A B ./\nCOPY c ./d\nFROM b\nCOPY --from=build x y\n";
    assert_eq!(sources(copied), Ok(vec![("A", "A"), ("B", "B"), ("c", "d")]));
    assert!(sources(&copied.replace("COPY c ./d", "COPY c d e")).is_err());
    assert!(sources(DOCKERFILE).is_err());
}

#[test]
fn an_image_that_cannot_be_tried_is_refused() {
    let check = |from: &str, to: &str, expect: &str| {
        assert_eq!(Image::of(&DOCKERFILE.replace(from, to)), Err(expect.to_owned()));
    };
    check("USER 65532:65532", "RUN y", "`RUN y` is not understood");
    check("USER 65532:65532", "", "the image runs as root");
    check("USER 65532:65532", "USER nonroot", "USER is not two numbers with a colon");
    check("--from=build ", "", "`COPY /x/target/dist/moorline /moorline` is not understood");
    check("[\"/moorline\"]", "[\"/other\"]", "the ENTRYPOINT is not copied");
}

#[test]
fn a_file_that_is_not_the_binary_is_refused() {
    let image = Image::of(&DOCKERFILE.replace("dist/moorline", "dist/other")).expect("it is understood");
    let refused = fill(Path::new("nowhere"), &image, Path::new("target/dist/moorline"));
    assert!(refused.is_err_and(|error| error.contains("/x/target/dist/other")));
}

#[test]
fn a_library_that_the_base_image_lacks_is_refused() {
    let known =
        "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
    assert_eq!(libraries_in(known), Ok(vec!["/lib/libc.so.6".into(), "/lib64/ld-linux-x86-64.so.2".into()]));
    for other in ["\tlibssl.so.3 => /lib/libssl.so.3 (0x4)", "\tlibc.so.6 => not found"] {
        assert!(libraries_in(&format!("{known}{other}")).is_err_and(|error| error.contains(other.trim())));
    }
}
