//! Inputs of one run of helm: files, arguments, and a digest of both.
//!
//! In: a chart, values files, options, and the server's capabilities. Out: [`Invocation`] with a
//! digest, under which the output is cached. Charts may draw random numbers, so the same digest
//! must never be rendered twice.
//!
//! The server's API versions are an input only if a template asks for them: a new
//! CustomResourceDefinition in the cluster must not render every chart again.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::chart::Chart;
use super::chart_scan::{ChartScan, scan_chart};
use super::error::HelmChartError;
use super::values_files::ValuesFile;
use super::{ChartFiles, HelmOptions};
use moorline_core::tree::{FileTree, MemoryLimit};
use moorline_kustomize::host::ChartInflation;

/// Properties of the server that templates can read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Version of the server, such as `v1.33.4`; none if it is unknown, and then helm uses its own
    /// default.
    pub version: Option<Box<str>>,
    /// API versions that it serves: `apps/v1` and `apps/v1/Deployment`.
    pub api_versions: BTreeSet<String>,
}

/// One run of helm.
#[derive(Debug, Clone)]
pub struct Invocation {
    files: ChartFiles,
    arguments: Vec<String>,
    name: String,
    display_folder: String,
    values: Vec<String>,
    /// Values that helm reads from its standard input, so that they are on no disk.
    input: Option<RunInput>,
    uses_api_versions: bool,
    uses_lookup: bool,
    /// Tests of the chart run after each sync.
    pub(super) test_hooks: bool,
    /// Values of decrypted files go into the run.
    pub(crate) contains_secret: bool,
    /// Reason why a file of the chart is still encrypted.
    pub(crate) ciphertext: Option<Box<str>>,
    /// Paths of the repository on which the run depends, if that is not the whole folder.
    pub(crate) input_paths: Option<BTreeSet<String>>,
    /// Memory limit of the run and of everything that is made of its output.
    pub memory_limit: MemoryLimit,
}

/// Values for the standard input of a run, which cannot be formatted.
#[derive(Clone)]
struct RunInput {
    bytes: Arc<[u8]>,
    contains_secret: bool,
}

impl fmt::Debug for RunInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Folder of the chart in the run.
const FOLDER: &str = "chart";
/// Most API versions in one argument.
const SERVED_AT_ONCE: usize = 200;

impl Invocation {
    pub(super) fn new(
        chart: Chart,
        values: Vec<ValuesFile>,
        options: &HelmOptions,
        server: &Capabilities,
    ) -> Result<Self, HelmChartError> {
        let mut arguments = ["template", &*options.release, FOLDER, "--namespace", &*options.namespace]
            .map(str::to_owned)
            .to_vec();
        arguments.extend((!options.test_hooks).then(|| "--skip-tests".to_owned()));
        arguments.extend(options.is_upgrade.then(|| "--is-upgrade".to_owned()));
        arguments.push(if options.skip_crds { "--skip-crds" } else { "--include-crds" }.to_owned());
        if let Some(version) = version(options, server)? {
            arguments.extend(["--kube-version".to_owned(), version]);
        }
        let mut files = ChartFiles::new();
        let mut named = Vec::new();
        let contains_secret = chart.contains_secret || values.iter().any(|file| file.is_decrypted);
        for (at, file) in values.into_iter().enumerate() {
            arguments.extend(["--values".to_owned(), values_file(at)]);
            files.insert(values_file(at), file.bytes);
            named.push(file.shown);
        }
        let input = options.external.to_file().map(|bytes| RunInput {
            bytes: bytes.into(),
            contains_secret: options.external.contains_secret(),
        });
        if input.is_some() {
            arguments.extend(["--values", "-"].map(str::to_owned));
        }
        if !options.values.is_empty() {
            let file = "values/inline.json".to_owned();
            arguments.extend(["--values".to_owned(), file.clone()]);
            files.insert(file, Value::Object(options.values.clone()).to_string().into_bytes().into());
        }
        files.extend(chart.files.into_iter().map(|(path, bytes)| (format!("{FOLDER}/{path}"), bytes)));
        let ChartScan { uses_api_versions: looks, uses_lookup, reaches_out } = scan_chart(&files);
        // A schema may refer to others on servers and on the disk, so helm must not load it. The
        // values stay unchecked.
        if reaches_out {
            arguments.push("--skip-schema-validation".to_owned());
        }
        if looks {
            let served: Vec<&str> = server.api_versions.iter().map(String::as_str).collect();
            let words = served.chunks(SERVED_AT_ONCE).map(|some| some.join(","));
            arguments.extend(words.flat_map(|some| ["--api-versions".to_owned(), some]));
        }
        let Chart { name, shown, ciphertext, .. } = chart;
        Ok(Self {
            files,
            arguments,
            name,
            display_folder: shown,
            values: named,
            input,
            uses_api_versions: looks,
            uses_lookup,
            test_hooks: options.test_hooks,
            contains_secret,
            ciphertext,
            input_paths: None,
            memory_limit: MemoryLimit::default(),
        })
    }

    /// Creates the run for a chart of a kustomization, which sees nothing of the server.
    pub(super) fn for_kustomization(chart: Chart, inflation: ChartInflation, tree: &FileTree) -> Self {
        let release = if inflation.release.is_empty() { "--generate-name" } else { &inflation.release };
        let mut arguments = ["template", release, FOLDER].map(str::to_owned).to_vec();
        // Flag and value share one argument, so that a value can never be taken for a flag.
        let texts = [
            ("namespace", inflation.namespace),
            ("name-template", inflation.name_template),
            ("kube-version", inflation.kube_version),
        ];
        let given = texts.into_iter().filter(|(_, text)| !text.is_empty());
        arguments.extend(given.map(|(flag, text)| format!("--{flag}={text}")));
        arguments.extend(inflation.api_versions.iter().map(|one| format!("--api-versions={one}")));
        let flags = [
            ("--include-crds", inflation.with_crds),
            ("--skip-tests", inflation.without_tests),
            ("--no-hooks", inflation.without_hooks),
        ];
        arguments.extend(flags.iter().filter(|(_, is)| *is).map(|(flag, _)| (*flag).to_owned()));
        let (mut files, mut named) = (ChartFiles::new(), Vec::new());
        for (at, (shown, bytes)) in inflation.values.into_iter().enumerate() {
            arguments.push(format!("--values={}", values_file(at)));
            files.insert(values_file(at), bytes);
            named.push(shown);
        }
        files.extend(chart.files.into_iter().map(|(path, bytes)| (format!("{FOLDER}/{path}"), bytes)));
        // The values files may have been merged, so any decrypted file counts.
        let contains_secret = chart.contains_secret || tree.has_decrypted();
        if scan_chart(&files).reaches_out {
            arguments.push("--skip-schema-validation".to_owned());
        }
        let Chart { name, shown, ciphertext, .. } = chart;
        Self {
            files,
            arguments,
            name,
            display_folder: shown,
            values: named,
            input: None,
            uses_api_versions: false,
            uses_lookup: false,
            test_hooks: false,
            contains_secret,
            ciphertext,
            input_paths: None,
            memory_limit: tree.memory_limit().clone(),
        }
    }

    /// Files of the run by their relative paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), &**bytes))
    }

    /// Values for the standard input of helm.
    pub fn input(&self) -> Option<Arc<[u8]>> {
        self.input.as_ref().map(|input| input.bytes.clone())
    }

    /// True if a value comes from a Secret or a decrypted file: a template may have put it into any
    /// object, so that none is shown, and nothing of the run is on a disk.
    pub fn contains_secret(&self) -> bool {
        self.contains_secret || self.input.as_ref().is_some_and(|input| input.contains_secret)
    }

    /// Returns the place of a line in the chart as people know it; none if there is no such line.
    pub(super) fn line_place(&self, template: &str, line: usize) -> Option<String> {
        let inner = template.strip_prefix(&*self.name)?;
        let bytes = self.files.get(&format!("{FOLDER}{inner}"))?;
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
        (1..=lines).contains(&line).then(|| format!("{}:{line}", self.template_path(template)))
    }

    /// Arguments for helm.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// True if a template may read the API versions that the server serves.
    pub(crate) fn uses_api_versions(&self) -> bool {
        self.uses_api_versions
    }

    /// True if a template looks for an object in the cluster.
    pub(crate) fn uses_lookup(&self) -> bool {
        self.uses_lookup
    }

    /// Returns a digest of all inputs: runs with the same digest are the same.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        let mut add = |bytes: &[u8]| {
            digest.update((bytes.len() as u64).to_be_bytes());
            digest.update(bytes);
        };
        add(&(self.arguments.len() as u64).to_be_bytes());
        self.arguments.iter().for_each(|argument| add(argument.as_bytes()));
        for (path, bytes) in &self.files {
            add(path.as_bytes());
            add(bytes);
        }
        if let Some(input) = &self.input {
            add(&[u8::from(input.contains_secret)]);
            add(&input.bytes);
        }
        digest.finalize().into()
    }

    /// Returns the path of a template in the repository, given helm's name for it, such as
    /// `shop/templates/web.yaml`.
    pub(super) fn template_path(&self, source: &str) -> String {
        let inside = source.strip_prefix(&*self.name).and_then(|rest| rest.strip_prefix('/'));
        match (inside, self.display_folder.as_str()) {
            (None, _) => source.to_owned(),
            (Some(inside), "") => inside.to_owned(),
            (Some(inside), shown) => format!("{shown}/{inside}"),
        }
    }

    /// Replaces the paths of the run in a message of helm by those of the repository.
    pub(super) fn translate_paths(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (at, shown) in self.values.iter().enumerate() {
            text = text.replace(&values_file(at), shown);
        }
        text = text.replace("values/inline.json", "spec.render.helm.values");
        for own in ["values.yaml", "values.schema.json", "Chart.yaml"] {
            let place = self.template_path(&format!("{}/{own}", self.name));
            text = text.replace(&format!("cannot load {own}"), &format!("cannot load {place}"));
        }
        for part in ["templates", "charts", "crds"] {
            let (theirs, ours) =
                (format!("{}/{part}/", self.name), self.template_path(&format!("{}/{part}/", self.name)));
            for before in ["(", " ", "\""] {
                text = text
                    .replace(&format!("{before}{theirs}"), &format!("{before}{ours}/").replace("//", "/"));
            }
        }
        text
    }

    /// Folder of the chart, for messages.
    pub fn display_folder(&self) -> &str {
        if self.display_folder.is_empty() { "the root of the repository" } else { &self.display_folder }
    }
}

fn values_file(at: usize) -> String {
    format!("values/{at}.yaml")
}

/// Returns the version of Kubernetes that templates see. The server's patch version is left out, so
/// that a patch update does not draw new random numbers.
fn version(options: &HelmOptions, server: &Capabilities) -> Result<Option<String>, HelmChartError> {
    match &options.kube_version {
        Some(written) if is_version(written) => Ok(Some(written.to_string())),
        Some(written) => Err(HelmChartError::BadVersion { written: written.to_string() }),
        None => {
            let known = server.version.as_deref().and_then(numbers);
            Ok(known.map(|(major, minor)| format!("v{major}.{minor}.0")))
        }
    }
}

/// True for a version of Kubernetes: `1.33`, `v1.33.2`.
pub fn is_version(text: &str) -> bool {
    let sound = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte));
    sound && numbers(text).is_some()
}

/// Returns the first two numbers of a version.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix('v').unwrap_or(text).split(['.', '-', '+']);
    let mut number = || parts.next()?.parse().ok();
    Some((number()?, number()?))
}
