//! The install script installs the program of a release, and refuses everything else with one
//! sentence.
//!
//! In: a release that a server on the loopback offers. Out: the program, or the sentence and no
//! program.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use moorline_test_support::programs::{find, report_skipped};
use sha2::{Digest as _, Sha256};

use super::root;

const VERSION: &str = "1.2.3";
const PROGRAM: &str = "#!/bin/sh\necho moorline 1.2.3\n";

/// A release for this machine, in a folder that is served.
struct Release {
    folder: tempfile::TempDir,
    url: String,
}

impl Release {
    fn new() -> Option<Self> {
        let has = |name: &str| Command::new(name).arg("--version").output().is_ok();
        if !has("curl") && !has("wget") {
            report_skipped("there is no curl and no wget");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let served = folder.path().join("served");
        fs::create_dir(&served).expect("a folder");
        let url = serve(served);
        let release = Self { folder, url };
        release.pack("moorline");
        release.list();
        Some(release)
    }

    /// Name of the tarball without its ending.
    fn stem() -> String {
        format!("moorline-{VERSION}-{}-unknown-linux-musl", std::env::consts::ARCH)
    }

    fn tarball(&self) -> PathBuf {
        self.folder.path().join("served").join(format!("{}.tar.gz", Self::stem()))
    }

    /// Packs a tarball with a program of this name.
    fn pack(&self, name: &str) {
        let content = self.folder.path().join(Self::stem());
        fs::create_dir_all(&content).expect("a folder");
        fs::write(content.join(name), PROGRAM).expect("a program");
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(self.tarball()).arg("-C").arg(self.folder.path()).arg(Self::stem());
        assert!(tar.status().expect("tar starts").success());
        fs::remove_dir_all(content).expect("a folder");
    }

    /// Writes the checksum of the tarball as it is now.
    fn list(&self) {
        let hash = Sha256::digest(fs::read(self.tarball()).expect("a tarball"));
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("{}  other.tar.gz\n{hash}  {}.tar.gz\n", "0".repeat(64), Self::stem());
        fs::write(self.folder.path().join("served/SHA256SUMS"), line).expect("checksums");
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().join("home/bin")
    }

    /// The command that installs this version.
    fn install(&self) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg(root().join("config/install.sh")).arg(VERSION);
        command
            .env("MOORLINE_URL", &self.url)
            .env("MOORLINE_BIN", self.bin())
            .env("TMPDIR", self.folder.path());
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env_remove(name);
        }
        command
    }

    /// Puts a program before those of PATH that prints this machine's system and architecture.
    fn on(&self, system: &str, architecture: &str) -> Command {
        let folder = self.folder.path().join("programs");
        fs::create_dir_all(&folder).expect("a folder");
        let script = format!("#!/bin/sh\n[ \"$1\" = -m ] && echo {architecture} || echo {system}\n");
        fs::write(folder.join("uname"), script).expect("a program");
        fs::set_permissions(folder.join("uname"), fs::Permissions::from_mode(0o755)).expect("a program");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = self.install();
        command.env("PATH", format!("{}:{path}", folder.display()));
        command
    }

    /// Checks that a command says this in one sentence, and leaves nothing.
    fn refuses(&self, mut command: Command, expect: &str) {
        let Output { status, stdout, stderr } = command.output().expect("sh starts");
        let said = String::from_utf8(stderr).expect("text");
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.starts_with("moorline is not installed: ") && said.contains(expect), "{said}");
        assert!(said.lines().count() == 1 && stdout.is_empty(), "{said}");
        assert!(!self.bin().join("moorline").exists(), "{said}");
        let left = |name: &str| name.starts_with("tmp.");
        let entries = fs::read_dir(self.folder.path()).expect("a folder").flatten();
        assert!(!entries.into_iter().any(|entry| left(&entry.file_name().to_string_lossy())), "{said}");
    }
}

#[test]
fn the_program_of_a_release_is_installed() {
    let Some(release) = Release::new() else { return };
    for _ in 0..2 {
        let output = release.install().output().expect("sh starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty());
        let program = release.bin().join("moorline");
        assert_eq!(
            output.stdout,
            format!("installed {}, which is not on PATH\n", program.display()).into_bytes()
        );
        let run = Command::new(program).output().expect("the program starts");
        assert_eq!(run.stdout, b"moorline 1.2.3\n");
    }
    assert_eq!(fs::read_dir(release.bin()).expect("a folder").count(), 1);
}

#[test]
fn the_binary_of_the_machine_is_chosen() {
    let Some(release) = Release::new() else { return };
    for (system, architecture, target) in [
        ("Linux", "amd64", "x86_64-unknown-linux-musl"),
        ("Linux", "aarch64", "aarch64-unknown-linux-musl"),
        ("Darwin", "arm64", "aarch64-apple-darwin"),
        ("Darwin", "x86_64", "x86_64-apple-darwin"),
    ] {
        fs::write(release.folder.path().join("served/SHA256SUMS"), "").expect("checksums");
        let expect = format!("does not list moorline-{VERSION}-{target}.tar.gz");
        release.refuses(release.on(system, architecture), &expect);
    }
}

#[test]
fn a_tarball_that_was_changed_is_not_unpacked() {
    let Some(release) = Release::new() else { return };
    let mut bytes = fs::read(release.tarball()).expect("a tarball");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(release.tarball(), bytes).expect("a tarball");
    release.refuses(release.install(), "the checksum of moorline-");
}

#[test]
fn other_machines_are_refused() {
    let Some(release) = Release::new() else { return };
    release.refuses(release.on("Linux", "riscv64"), "no binary for the architecture riscv64");
    release.refuses(release.on("FreeBSD", "amd64"), "no binary for the system FreeBSD");
}

#[test]
fn what_is_missing_is_named() {
    let Some(release) = Release::new() else { return };
    let mut without_url = release.install();
    without_url.env_remove("MOORLINE_URL");
    release.refuses(without_url, "set MOORLINE_URL");

    let mut without_version = Command::new("/bin/sh");
    without_version.arg(root().join("config/install.sh")).env("MOORLINE_URL", &release.url);
    release.refuses(without_version, "name the version");

    let mut without_programs = release.install();
    without_programs.env("PATH", release.folder.path());
    release.refuses(without_programs, "the program awk is missing");

    let mut elsewhere = release.install();
    elsewhere.env("MOORLINE_URL", format!("{}/none", release.url));
    release.refuses(elsewhere, "/none/SHA256SUMS cannot be downloaded");

    fs::write(release.folder.path().join("home"), "").expect("a file where a folder should be");
    release.refuses(release.install(), "cannot be written");
    fs::remove_file(release.folder.path().join("home")).expect("a file");

    fs::remove_file(release.tarball()).expect("a tarball");
    release.refuses(release.install(), ".tar.gz cannot be downloaded");

    release.pack("another-program");
    release.list();
    release.refuses(release.install(), "has no program moorline");
}

#[test]
fn the_script_is_short_and_plain() {
    let script = super::text("config/install.sh");
    assert!(script.lines().count() < 60, "{} lines", script.lines().count());
    assert!(script.starts_with("#!/bin/sh\n") && script.trim_end().ends_with("main \"$@\""));
    // A shell that knows nothing beyond POSIX, where there is one.
    if let Some(dash) = find("dash") {
        assert!(
            Command::new(dash)
                .arg("-n")
                .arg(root().join("config/install.sh"))
                .status()
                .is_ok_and(|is| is.success())
        );
    }
}

/// Serves the files of a folder until the process ends, and returns the address.
fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
            let head: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
            _ = stream.write_all(&answer(&folder, path.trim_start_matches('/')));
        }
    });
    url
}

fn answer(folder: &Path, name: &str) -> Vec<u8> {
    let (status, body) = match fs::read(folder.join(name)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}
