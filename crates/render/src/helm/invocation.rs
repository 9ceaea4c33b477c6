//! All that a run of helm depends on, and how it is told.
//!
//! In: a chart, files of values, options, and what the server can do. Out: [`Invocation`]: files, arguments, and a digest over all of it,
//! under which the answer is kept. Charts may draw random numbers, so the same digest must never be rendered twice.
//!
//! The server's API versions are a part of it only where a template asks for them: a definition that is new in the cluster must not
//! render every chart anew.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;

use super::chart::Chart;
use super::fault::ChartFault;
use super::looks::{Seen, look_through};
use super::values::ValuesFile;
use super::{Files, HelmOptions};
use moorline_core::tree::Room;

/// What templates see of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Its version, such as `v1.33.4`; none if that is not known, and then helm has one of its own.
    pub version: Option<Box<str>>,
    /// What it serves: `apps/v1` and `apps/v1/Deployment`.
    pub served: BTreeSet<String>,
}

/// One run of helm.
#[derive(Debug, Clone)]
pub struct Invocation {
    files: Files,
    arguments: Vec<String>,
    name: String,
    shown: String,
    values: Vec<String>,
    looks: bool,
    /// The paths of the repository on which it depends, where that is not the folder as a whole.
    pub(crate) read: Option<BTreeSet<String>>,
    /// How much memory it and all that is made of it may take.
    pub room: Room,
}

/// What a kustomization says of a chart beside its values; empty for what it does not say. All of it is told as the tool tells it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inflation {
    pub(crate) release: String,
    pub(crate) namespace: String,
    pub(crate) name_template: String,
    /// Files of values and what they are called, the last counting most.
    pub(crate) values: Vec<(String, Arc<[u8]>)>,
    pub(crate) api_versions: Vec<String>,
    pub(crate) kube_version: String,
    pub(crate) with_crds: bool,
    pub(crate) without_tests: bool,
    pub(crate) without_hooks: bool,
}

/// Where the chart lies for the run.
const FOLDER: &str = "chart";
/// So many of these in one argument.
const SERVED_AT_ONCE: usize = 200;

impl Invocation {
    pub(super) fn new(
        chart: Chart,
        values: Vec<ValuesFile>,
        options: &HelmOptions,
        server: &Capabilities,
    ) -> Result<Self, ChartFault> {
        let mut arguments = ["template", &*options.release, FOLDER, "--namespace", &*options.namespace]
            .map(str::to_owned)
            .to_vec();
        // Tests run when a person asks for them.
        arguments.push("--skip-tests".to_owned());
        arguments.push(if options.skip_crds { "--skip-crds" } else { "--include-crds" }.to_owned());
        if let Some(version) = version(options, server)? {
            arguments.extend(["--kube-version".to_owned(), version]);
        }
        let mut files = Files::new();
        let mut named = Vec::new();
        for (at, file) in values.into_iter().enumerate() {
            arguments.extend(["--values".to_owned(), values_file(at)]);
            files.insert(values_file(at), file.bytes);
            named.push(file.shown);
        }
        if !options.values.is_empty() {
            let file = "values/inline.json".to_owned();
            arguments.extend(["--values".to_owned(), file.clone()]);
            files.insert(file, Value::Object(options.values.clone()).to_string().into_bytes().into());
        }
        files.extend(chart.files.into_iter().map(|(path, bytes)| (format!("{FOLDER}/{path}"), bytes)));
        let Seen { asks: looks, reaches_out } = look_through(&files);
        // A schema may be made of others, on servers and on the disk; what it would refuse comes out as it is.
        if reaches_out {
            arguments.push("--skip-schema-validation".to_owned());
        }
        if looks {
            let served: Vec<&str> = server.served.iter().map(String::as_str).collect();
            let words = served.chunks(SERVED_AT_ONCE).map(|some| some.join(","));
            arguments.extend(words.flat_map(|some| ["--api-versions".to_owned(), some]));
        }
        let Chart { name, shown, .. } = chart;
        Ok(Self { files, arguments, name, shown, values: named, looks, read: None, room: Room::default() })
    }

    /// The run for a chart of a kustomization, which sees nothing of a server.
    pub(super) fn of_kustomization(chart: Chart, told: Inflation, room: Room) -> Self {
        let release = if told.release.is_empty() { "--generate-name" } else { &told.release };
        let mut arguments = ["template", release, FOLDER].map(str::to_owned).to_vec();
        // Each in one word with its flag, so that no value is taken for another one.
        let texts = [
            ("namespace", told.namespace),
            ("name-template", told.name_template),
            ("kube-version", told.kube_version),
        ];
        let given = texts.into_iter().filter(|(_, text)| !text.is_empty());
        arguments.extend(given.map(|(flag, text)| format!("--{flag}={text}")));
        arguments.extend(told.api_versions.iter().map(|one| format!("--api-versions={one}")));
        let flags = [
            ("--include-crds", told.with_crds),
            ("--skip-tests", told.without_tests),
            ("--no-hooks", told.without_hooks),
        ];
        arguments.extend(flags.iter().filter(|(_, is)| *is).map(|(flag, _)| (*flag).to_owned()));
        let (mut files, mut named) = (Files::new(), Vec::new());
        for (at, (shown, bytes)) in told.values.into_iter().enumerate() {
            arguments.push(format!("--values={}", values_file(at)));
            files.insert(values_file(at), bytes);
            named.push(shown);
        }
        files.extend(chart.files.into_iter().map(|(path, bytes)| (format!("{FOLDER}/{path}"), bytes)));
        if look_through(&files).reaches_out {
            arguments.push("--skip-schema-validation".to_owned());
        }
        let Chart { name, shown, .. } = chart;
        Self { files, arguments, name, shown, values: named, looks: false, read: None, room }
    }

    /// The files of the run by their paths, all of them relative.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), &**bytes))
    }

    /// What helm is told.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// True if a template may ask what the server serves.
    pub(crate) fn looks_at_served(&self) -> bool {
        self.looks
    }

    /// A digest of all of it: the same digest, the same run.
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
        digest.finalize().into()
    }

    /// Where a template lies, of which helm says that it is this one: `shop/templates/web.yaml`.
    pub(super) fn place(&self, source: &str) -> String {
        let inside = source.strip_prefix(&*self.name).and_then(|rest| rest.strip_prefix('/'));
        match (inside, self.shown.as_str()) {
            (None, _) => source.to_owned(),
            (Some(inside), "") => inside.to_owned(),
            (Some(inside), shown) => format!("{shown}/{inside}"),
        }
    }

    /// What helm said, with the places that a person knows instead of those of the run.
    pub(super) fn placed(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (at, shown) in self.values.iter().enumerate() {
            text = text.replace(&values_file(at), shown);
        }
        text = text.replace("values/inline.json", "spec.render.helm.values");
        for own in ["values.yaml", "values.schema.json", "Chart.yaml"] {
            let place = self.place(&format!("{}/{own}", self.name));
            text = text.replace(&format!("cannot load {own}"), &format!("cannot load {place}"));
        }
        for part in ["templates", "charts", "crds"] {
            let (theirs, ours) =
                (format!("{}/{part}/", self.name), self.place(&format!("{}/{part}/", self.name)));
            for before in ["(", " ", "\""] {
                text = text
                    .replace(&format!("{before}{theirs}"), &format!("{before}{ours}/").replace("//", "/"));
            }
        }
        text
    }

    /// The chart's folder, for people.
    pub fn shown(&self) -> &str {
        if self.shown.is_empty() { "the root of the repository" } else { &self.shown }
    }
}

fn values_file(at: usize) -> String {
    format!("values/{at}.yaml")
}

/// The version of Kubernetes that templates see. The server's is given without its last number: an update of that size must not
/// draw new random numbers.
fn version(options: &HelmOptions, server: &Capabilities) -> Result<Option<String>, ChartFault> {
    match &options.kube_version {
        Some(written) if is_version(written) => Ok(Some(written.to_string())),
        Some(written) => Err(ChartFault::BadVersion { written: written.to_string() }),
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

/// The first two numbers of a version.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix('v').unwrap_or(text).split(['.', '-', '+']);
    let mut number = || parts.next()?.parse().ok();
    Some((number()?, number()?))
}
