//! The root of an image: its layers one on the other, and a program that runs in it.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use moorline_test_support::programs::report_skipped;
use serde_json::Value;

/// Folder of a root in which a daemon may write.
pub(crate) const SCRATCH: &str = "scratch";

/// An image as a container runtime sees it.
pub(crate) struct Image {
    /// Folder with its blobs.
    layout: PathBuf,
    pub(crate) config: Value,
    manifest: Value,
}

impl Image {
    /// Reads the image of an architecture from a layout.
    pub(crate) fn of(layout: &Path, architecture: &str) -> Self {
        let index: Value =
            serde_json::from_slice(&fs::read(layout.join("index.json")).expect("an index")).expect("JSON");
        let index = json(layout, &index["manifests"][0]);
        let manifests = index["manifests"].as_array().expect("manifests");
        let of_architecture = |manifest: &&Value| manifest["platform"]["architecture"] == architecture;
        let manifest = manifests.iter().find(of_architecture).expect("the architecture");
        let manifest = json(layout, manifest);
        Self { layout: layout.to_owned(), config: json(layout, &manifest["config"]), manifest }
    }

    /// Unpacks the layers in their order, and checks each against its two digests.
    pub(crate) fn unpack(&self, root: &Path) {
        let layers = self.manifest["layers"].as_array().expect("layers");
        for (layer, id) in layers.iter().zip(self.config["rootfs"]["diff_ids"].as_array().expect("ids")) {
            let mut bytes = Vec::new();
            flate2::read::GzDecoder::new(&*blob(&self.layout, layer)).read_to_end(&mut bytes).expect("gzip");
            assert_eq!(
                *id,
                format!("sha256:{}", sha256(&bytes)),
                "the layer is not the one of the configuration"
            );
            tar::Archive::new(&*bytes).unpack(root).expect("a layer");
        }
    }

    /// Digests of its layers, and the paths and modes in the last one.
    pub(crate) fn layers(&self) -> (Vec<String>, Vec<(String, u32)>) {
        let layers = self.manifest["layers"].as_array().expect("layers");
        let digest = |layer: &Value| layer["digest"].as_str().expect("a digest").to_owned();
        let bytes = blob(&self.layout, layers.last().expect("a layer"));
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&*bytes));
        let files = archive.entries().expect("entries").map(|entry| {
            let entry = entry.expect("an entry");
            let path = entry.path().expect("a path").display().to_string();
            (path, entry.header().mode().expect("a mode"))
        });
        (layers.iter().map(digest).collect(), files.collect())
    }

    /// Size of all that a node downloads.
    pub(crate) fn compressed(&self) -> u64 {
        let layers = self.manifest["layers"].as_array().expect("layers");
        layers.iter().filter_map(|layer| layer["size"].as_u64()).sum()
    }
}

fn json(layout: &Path, descriptor: &Value) -> Value {
    serde_json::from_slice(&blob(layout, descriptor)).expect("JSON")
}

/// Reads a blob, and checks it against its descriptor.
fn blob(layout: &Path, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().expect("a digest");
    let hash = digest.strip_prefix("sha256:").expect("SHA-256");
    let bytes =
        fs::read(layout.join("blobs/sha256").join(hash)).unwrap_or_else(|error| panic!("{digest}: {error}"));
    assert_eq!((sha256(&bytes).as_str(), descriptor["size"].as_u64()), (hash, Some(bytes.len() as u64)));
    bytes
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Copies the libraries of this machine that a dynamic binary asks for. The static binary of a
/// release asks for none.
pub(crate) fn add_libraries(root: &Path, binary: &Path) {
    let output = Command::new("ldd").arg(binary).output().expect("ldd starts");
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some(library) = line.split_whitespace().find(|word| word.starts_with('/')) else { continue };
        let to = root.join(library.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(library, to).expect("a library");
    }
}

/// Command that runs the entrypoint of an image in a root, as the user of the image and with its
/// environment.
pub(crate) fn entrypoint(root: &Path, image: &Image) -> Option<Command> {
    program(root, image, entrypoint_of(image))
}

/// The same for any program of the image.
pub(crate) fn program(root: &Path, image: &Image, path: &str) -> Option<Command> {
    let user = user_of(image);
    let mut command = if is_root() {
        let mut command = Command::new("chroot");
        command.arg(format!("--userspec={user}")).arg("--groups=").arg(root);
        command
    } else {
        let (user, group) = user.split_once(':').expect("user and group");
        let mut command = Command::new("unshare");
        command.args(["--user", &format!("--map-user={user}"), &format!("--map-group={group}")]);
        command.arg(format!("--root={}", root.display()));
        command
    };
    let mut attempt = Command::new("unshare");
    attempt.args(["--user", "true"]);
    if command.get_program() == "unshare" && !attempt.status().is_ok_and(|status| status.success()) {
        report_skipped("this user can make no root of its own");
        return None;
    }
    start(&mut command, image, path);
    Some(command)
}

/// The entrypoint with the processes that a container sees, which a daemon looks itself up in. Only
/// root can do this.
pub(crate) fn daemon(root: &Path, image: &Image) -> Option<Command> {
    if !is_root() {
        report_skipped("only root can mount the processes of a container");
        return None;
    }
    fs::create_dir_all(root.join("proc")).expect("a folder");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child"]);
    command.arg(format!("--mount-proc={}", root.join("proc").display()));
    command.args(["chroot", &format!("--userspec={}", user_of(image)), "--groups="]).arg(root);
    start(&mut command, image, entrypoint_of(image));
    command.env("TMPDIR", format!("/{SCRATCH}"));
    Some(command)
}

/// Daemon in a root, which ends with the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Only the launcher is a child of ours, and a program that changed its user outlives it.
        let launcher = self.0.id();
        let children = fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            _ = Command::new("kill").args(["-KILL", child]).status();
        }
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn user_of(image: &Image) -> &str {
    image.config["config"]["User"].as_str().expect("a user")
}

fn entrypoint_of(image: &Image) -> &str {
    image.config["config"]["Entrypoint"][0].as_str().expect("an entrypoint")
}

/// Adds a program and the environment of an image to a command that enters its root.
fn start(command: &mut Command, image: &Image, path: &str) {
    let config = &image.config["config"];
    command.arg(path).env_clear();
    for variable in config["Env"].as_array().expect("an environment") {
        let (name, value) = variable.as_str().and_then(|text| text.split_once('=')).expect("NAME=VALUE");
        // The launcher is looked for on this machine's path.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env(name, if name == "PATH" { path.as_str() } else { value });
    }
}
