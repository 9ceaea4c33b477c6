//! helm, and the files of the chart that it renders.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub(crate) use moorline_test_support::programs::{command, find, run};

/// The chart.
pub(crate) const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/moorline");

/// Value of the chart that has no default.
pub(crate) const IMAGE: [&str; 2] = ["--set", "image.repository=moorline"];

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

    /// Returns the rendered chart for these values and an image, as text.
    pub(crate) fn template(&self, values: &[&str]) -> Result<String, String> {
        self.template_without_image(&[&IMAGE, values].concat())
    }

    pub(crate) fn template_without_image(&self, values: &[&str]) -> Result<String, String> {
        let mut command = self.command();
        run(command.args(["template", "moorline", CHART, "--namespace", "moorline"]).args(values))
    }

    /// The same as objects.
    pub(crate) fn objects(&self, values: &[&str]) -> Vec<Value> {
        let text = self.template(values).unwrap_or_else(|error| panic!("{error}"));
        documents("rendered", &text)
    }
}
