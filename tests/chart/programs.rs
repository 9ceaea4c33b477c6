//! The programs with which the chart is tested: helm, kubectl, promtool.
//!
//! In: a name. Out: where the program is, or a line that says which test is left out. In CI that is a failure, because
//! there nobody would notice.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The chart.
pub(crate) const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/moorline");

/// A file of this repository.
pub(crate) fn text(path: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(place).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The documents of a YAML file.
pub(crate) fn documents(name: &str, text: &str) -> Vec<Value> {
    let documents = moorline::yaml::read(name, text.as_bytes(), moorline::yaml::Dialect::Kubectl);
    let documents = documents.unwrap_or_else(|error| panic!("{error}\n{text}"));
    documents.into_iter().map(|document| document.value).filter(|value| !value.is_null()).collect()
}

/// A program: the one in `MOORLINE_<NAME>`, else in target/tools, else on PATH.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let variable = format!("MOORLINE_{}", name.to_uppercase());
    let given = std::env::var_os(&variable).map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools").join(name);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&path).map(|folder| folder.join(name)).collect();
    let found = given.into_iter().chain([own]).chain(on_path).find(|place| place.is_file());
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let why =
        format!("there is no {name} on PATH, in {variable} or in target/tools; `make tools` fetches it");
    match (&found, std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false")) {
        (Some(_), _) => {}
        (None, true) => panic!("CI is set, so that this test must run: {why}"),
        (None, false) => {
            // Past libtest, which hides what passing tests print.
            let _ = writeln!(std::io::stderr(), "skipped {test}: {why}");
        }
    }
    found
}

/// A program that asks nothing of its environment but where it is told to look.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(proxy).env_remove(proxy.to_lowercase());
    }
    command.env("NO_PROXY", "127.0.0.1").env_remove("KUBECONFIG");
    command
}

/// Runs it: what it wrote to standard output, or else to standard error.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// helm with folders of its own.
pub(crate) struct Helm {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Helm {
    pub(crate) fn here() -> Option<Self> {
        let program = find("helm")?;
        Some(Self { program, folder: tempfile::tempdir().expect("a folder") })
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = command(&self.program);
        for name in ["CACHE", "CONFIG", "DATA"] {
            command.env(format!("HELM_{name}_HOME"), self.folder.path().join(name));
        }
        command
    }

    /// True if it words what is wrong with a value as it does since version 3.18.
    pub(crate) fn words_as_today(&self) -> bool {
        let version = run(self.command().args(["version", "--template", "{{.Version}}"])).unwrap_or_default();
        let mut numbers = version.trim_start_matches('v').split('.').map(|part| part.parse().unwrap_or(0));
        let number: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        number >= (3, 18)
    }

    /// What the chart comes to with these values, as text.
    pub(crate) fn template(&self, values: &[&str]) -> Result<String, String> {
        let mut command = self.command();
        run(command.args(["template", "moorline", CHART, "--namespace", "moorline"]).args(values))
    }

    /// The same as objects.
    pub(crate) fn objects(&self, values: &[&str]) -> Vec<Value> {
        let text = self.template(values).unwrap_or_else(|error| panic!("{error}"));
        documents("rendered", &text)
    }
}
