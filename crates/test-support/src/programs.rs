//! Finds programs that tests start and the repository does not contain: helm, kubectl, promtool,
//! prometheus, sshd.
//!
//! In: a name.
//! Out: the path of the program, or a line that says which test is skipped. In CI a missing program
//! is a failure, because a skipped test would not be noticed there.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::places;

/// Folder into which `make tools` downloads.
pub fn tools() -> PathBuf {
    places::repository().join("target/tools")
}

/// Finds a program: in `MOORLINE_<NAME>`, else in target/tools, else on PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let variable = format!("MOORLINE_{}", name.to_uppercase());
    let given = std::env::var_os(&variable).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&path).map(|folder| folder.join(name)).collect();
    let found = given.into_iter().chain([tools().join(name)]).chain(on_path).find(|place| place.is_file());
    if found.is_none() {
        report_skipped(&format!(
            "there is no {name} on PATH, in {variable} or in target/tools; `make tools` fetches it"
        ));
    }
    found
}

/// Reports that the running test is skipped.
pub fn report_skipped(why: &str) {
    if std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false") {
        panic!("CI is set, so this test must run: {why}");
    }
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Written to stderr directly: libtest hides the output of passing tests.
    let _ = writeln!(std::io::stderr(), "skipped {test}: {why}");
}

/// Creates a command without proxy and kubeconfig settings of the environment.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(proxy).env_remove(proxy.to_lowercase());
    }
    command.env("NO_PROXY", "127.0.0.1").env_remove("KUBECONFIG");
    command
}

/// Runs a command and returns its standard output, or as an error its standard error.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}
