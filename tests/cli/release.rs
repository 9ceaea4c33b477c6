//! Workflows, notes and install script of a release.
//!
//! In: the files of the repository, and a server on loopback. Out: the workflows call what exists, the notes are those of the
//! version, and the script installs only what fits its checksum.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use moorline_test_support::programs::{command, find, run};
use sha2::{Digest as _, Sha256};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Workflows by their paths.
fn workflows() -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(root().join(".github/workflows")).expect("workflows");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.map(|path| (path.clone(), fs::read_to_string(path).expect("a workflow"))).collect()
}

/// Calls of make in a text, as words: `make dist`, `make -C one dist TARGET=x`.
fn calls(text: &str) -> Vec<Vec<&str>> {
    let commands =
        text.lines().filter_map(|line| line.split_once("make ").filter(|(before, _)| is_command(before)));
    commands.map(|(_, words)| words.split_whitespace().collect()).collect()
}

/// True if the text before `make` on a line leads to a command.
fn is_command(before: &str) -> bool {
    let before = before.trim();
    before.is_empty() || before == "- run:"
}

#[test]
fn workflows_call_targets_and_variables_that_exist() {
    let makefile = text("Makefile");
    let is_target = |name: &str| makefile.lines().any(|line| line.starts_with(&format!("{name}:")));
    let mut called = BTreeSet::new();
    for (path, workflow) in workflows() {
        for words in calls(&workflow) {
            let mut words = words.into_iter();
            while let Some(word) = words.next() {
                match word.split_once('=') {
                    Some((variable, _)) => {
                        let (shell, make) = (format!("'$({variable})'"), format!("$({variable})"));
                        let is_used = makefile.contains(&shell)
                            || makefile.contains(&make)
                            || makefile.contains(&format!(",{make}"));
                        assert!(is_used, "{}: no target reads {variable}", path.display());
                    }
                    None if word == "-C" => drop(words.next()),
                    // The rest of a variable's value, such as `}}`.
                    None if !word.starts_with(|char: char| char.is_ascii_lowercase())
                        || word.starts_with("matrix.") => {}
                    None => {
                        assert!(is_target(word), "{}: make has no target {word}", path.display());
                        called.insert(word.to_owned());
                    }
                }
            }
        }
    }
    for target in ["dist", "image", "chart", "fuzz", "simulation", "deny", "test-minors", "tools"] {
        assert!(called.contains(target), "no workflow calls make {target}");
    }
    assert!(workflows().iter().any(|(_, workflow)| workflow.contains("run: bash .ci/run")));
}

#[test]
fn the_workflows_are_valid() {
    let Some(actionlint) = find("actionlint") else { return };
    let mut lint = command(&actionlint);
    lint.current_dir(root()).args(["-no-color", "-shellcheck=", "-pyflakes="]);
    run(lint.args(workflows().iter().map(|(path, _)| path))).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_minors_of_the_workflow_are_those_that_can_be_built() {
    let workflow = text(".github/workflows/ci.yml");
    let own = text("tests/control-plane/go.mod");
    let own =
        own.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v")).expect("a version");
    let mut minors: Vec<String> = vec![own.split('.').take(2).collect::<Vec<_>>().join(".")];
    for entry in fs::read_dir(root().join("tests/control-plane/minors")).expect("minors") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        minors.extend(name.strip_suffix(".mod").map(str::to_owned));
    }
    minors.sort();
    let listed: Vec<String> = minors.iter().map(|minor| format!("\"{minor}\"")).collect();
    assert!(workflow.contains(&format!("minor: [{}]", listed.join(", "))), "{minors:?}");
    let last = minors.pop().expect("three minors");
    assert!(
        text("docs/versions.md").contains(&format!("{} and {last}", minors.join(", "))),
        "docs/versions.md: {minors:?}, {last}"
    );
}

#[test]
fn the_site_has_every_page_of_the_documentation() {
    let summary = text("docs/SUMMARY.md");
    let mut pages = BTreeSet::new();
    for folder in ["", "decisions/"] {
        for entry in fs::read_dir(root().join("docs").join(folder)).expect("pages") {
            let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") && name != "SUMMARY.md" {
                pages.insert(format!("{folder}{name}"));
            }
        }
    }
    let listed = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned);
    assert_eq!(listed.collect::<BTreeSet<_>>(), pages);
}

#[test]
fn the_site_has_the_colours_of_the_status_page() {
    let (site, page) = (text("docs/theme.css"), text("src/serve/page/page.css"));
    let colours = site.split('#').skip(1).filter_map(|rest| rest.get(..6));
    for colour in colours.filter(|colour| colour.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        assert!(page.contains(&format!("#{colour}")), "#{colour} is no colour of the status page");
    }
}

/// Runs the script of the notes in a copy of what it reads.
fn notes(changelog: &str, version: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in [
        (".ci/release-notes.sh", text(".ci/release-notes.sh")),
        ("Cargo.toml", "version = \"1.2.3\"\n".into()),
        ("charts/moorline/Chart.yaml", "version: 1.2.3\nappVersion: 1.2.3\n".into()),
        ("CHANGELOG.md", changelog.to_owned()),
    ] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let script = folder.path().join(".ci/release-notes.sh");
    Command::new("sh").arg(script).arg(version).output().expect("sh starts")
}

#[test]
fn the_notes_of_a_release_are_its_section_of_the_changelog() {
    let changelog = "# Changelog\n\n## [1.2.3] - 2026-01-31\n\n- New.\n\n## [1.2.2] - 2026-01-01\n\n- Old.\n";
    let output = notes(changelog, "1.2.3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "- New.");
    let refused = |changelog: &str, version: &str, expect: &str| {
        let output = notes(changelog, version);
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && reason.contains(expect), "{reason}");
    };
    refused(changelog, "1.2.2", "1.2.2 is not the version of Cargo.toml");
    refused("# Changelog\n", "1.2.3", "there is no section [1.2.3]");
    refused(&changelog.replace(" - 2026-01-31", ""), "1.2.3", "has no date");
    refused(&changelog.replace("- New.\n", ""), "1.2.3", "is empty");
}

#[test]
fn the_changelog_has_a_section_for_the_version_of_the_program() {
    assert!(text("CHANGELOG.md").contains(concat!("## [", env!("CARGO_PKG_VERSION"), "]")));
}

/// Release on a server of this test: one tarball with a program that prints its version, and the checksums.
struct Release {
    url: String,
    folder: tempfile::TempDir,
}

impl Release {
    fn served(target: &str, is_tampered: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!("moorline-1.2.3-{target}");
        let place = folder.path().join(&name);
        fs::create_dir(&place).expect("a folder");
        fs::write(place.join("moorline"), "#!/bin/sh\necho moorline 1.2.3\n").expect("a program");
        let tarball = folder.path().join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar");
        run(tar.arg("-czf").arg(&tarball).arg("-C").arg(folder.path()).arg(&name)).expect("a tarball");
        let mut bytes = fs::read(&tarball).expect("a tarball");
        let checksum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(folder.path().join("SHA256SUMS"), format!("{checksum}  {name}.tar.gz\n"))
            .expect("checksums");
        if is_tampered {
            bytes.push(0);
            fs::write(&tarball, bytes).expect("a changed tarball");
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let files = folder.path().to_owned();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut request = [0; 4096];
                let size = stream.read(&mut request).unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..size]).into_owned();
                let path =
                    request.split_whitespace().nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
                let (status, body) = match fs::read(files.join(path)) {
                    Ok(body) => ("200 OK", body),
                    Err(_) => ("404 Not Found", Vec::new()),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            }
        });
        Self { url, folder }
    }

    /// Runs the script for a machine; returns whether the program is installed, and what was said.
    fn install(&self, machine: &str) -> (bool, String) {
        let programs = self.folder.path().join("programs");
        fs::create_dir_all(&programs).expect("a folder");
        let uname = format!("#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo {machine}\n");
        fs::write(programs.join("uname"), uname).expect("a program");
        run(Command::new("chmod").arg("755").arg(programs.join("uname"))).expect("a program");
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let bin = self.folder.path().join("bin");
        let mut script = command(Path::new("sh"));
        script.arg(root().join("config/install.sh")).env("PATH", path).env("MOORLINE_BIN", &bin);
        script.env("MOORLINE_URL", &self.url).env("MOORLINE_VERSION", "1.2.3").env("no_proxy", "127.0.0.1");
        let output = script.output().expect("sh starts");
        let said = [output.stdout, output.stderr].concat();
        (bin.join("moorline").exists(), String::from_utf8_lossy(&said).into_owned())
    }
}

#[test]
fn the_script_installs_only_what_fits_its_checksum() {
    assert!(text("config/install.sh").lines().count() < 60);
    let good = Release::served("x86_64-unknown-linux-musl", false);
    let (is_installed, said) = good.install("x86_64");
    assert!(is_installed && said.contains("moorline 1.2.3"), "{said}");

    let changed = Release::served("x86_64-unknown-linux-musl", true);
    let (is_installed, said) = changed.install("x86_64");
    assert!(!is_installed && said.contains("is not the file of the release: its checksum is"), "{said}");

    let (is_installed, said) = Release::served("x86_64-unknown-linux-musl", false).install("aarch64");
    assert!(!is_installed && said.contains("cannot be downloaded"), "{said}");
    let (is_installed, said) = Release::served("x86_64-unknown-linux-musl", false).install("riscv64");
    assert!(!is_installed && said.contains("there is no binary for Linux on riscv64"), "{said}");
}

#[test]
fn the_script_says_what_is_not_set() {
    let mut script = command(Path::new("sh"));
    let output =
        script.arg(root().join("config/install.sh")).env_remove("MOORLINE_URL").output().expect("sh starts");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("MOORLINE_URL is not set"));
}
