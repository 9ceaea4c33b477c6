//! Helm charts: what a run of helm gets, and what its answer comes to. The run itself is in `src/helm/`.
//!
//! In: a tree, the folder of a chart and [`HelmOptions`]. Out: [`Invocation`], all that a run depends on, and with it the words for
//! starting it; and from its output the objects, each with the template that it comes from. A chart is a tree, wherever it was
//! brought from: `chart` reads the chart's, `values` that of the repository, `invocation` puts both together, and `output` reads
//! what comes back.

mod chart;
mod fault;
mod invocation;
mod looks;
mod output;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

pub use fault::ChartFault;
pub(super) use invocation::Inflation;
pub use invocation::{Capabilities, Invocation, is_version};
pub(super) use output::Sources;
pub(super) use output::templated;
pub use output::told;

use super::Options;
use super::problem::Problem;
use moorline_core::tree::{Entry, FileTree, Room, normalise};

/// The file that makes a folder a chart.
pub const CHART: &str = "Chart.yaml";

/// How a chart is rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelmOptions {
    /// The name of the release.
    pub release: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Files of values in the repository, relative to the chart, or to the root of the repository with `/` in front. The last counts
    /// most.
    pub values_files: Vec<String>,
    /// Values that count more than those of files.
    pub values: Map<String, Value>,
    /// The definitions in the folder `crds` are left out.
    pub skip_crds: bool,
    /// The version of Kubernetes that templates see, instead of the server's.
    pub kube_version: Option<Box<str>>,
    /// The chart, if it does not lie in the repository.
    pub chart: Option<Published>,
}

/// A chart that was fetched from where it is published.
#[derive(Debug, Clone)]
pub struct Published {
    /// Its digest: what has the same is the same.
    pub digest: Box<str>,
    /// Its files, by their paths in its folder.
    pub files: FileTree,
}

impl PartialEq for Published {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Published {}

impl Default for HelmOptions {
    fn default() -> Self {
        Self {
            release: "default".into(),
            namespace: "default".into(),
            values_files: Vec::new(),
            values: Map::new(),
            skip_crds: false,
            kube_version: None,
            chart: None,
        }
    }
}

/// The most bytes of a release's name, which helm has because it becomes a part of other names.
const MAX_RELEASE: usize = 53;

/// True for what helm takes as the name of a release.
pub fn is_release(name: &str) -> bool {
    let end = |part: &str| part.starts_with(is_alphanumeric) && part.ends_with(is_alphanumeric);
    let inner = |char: char| is_alphanumeric(char) || char == '-' || char == '.';
    name.len() <= MAX_RELEASE && name.chars().all(inner) && name.split('.').all(end)
}

fn is_alphanumeric(char: char) -> bool {
    char.is_ascii_lowercase() || char.is_ascii_digit()
}

/// Where the file lies, or would lie, that makes this folder a chart.
pub(super) fn place_of_chart(tree: &FileTree, path: &str) -> Option<String> {
    Some(below(&tree.resolve(path).ok()?, CHART))
}

/// True if this folder is a chart.
pub(super) fn is_chart(tree: &FileTree, path: &str) -> bool {
    let root = tree.resolve(path).unwrap_or_default();
    tree.is_file(&below(&root, CHART))
}

/// What a run of helm for this folder gets, or what keeps it from being started.
pub fn invocation(tree: &FileTree, options: &Options, server: &Capabilities) -> Result<Invocation, Problem> {
    let chart = match &options.helm.chart {
        Some(published) => chart::read(&published.files, "")?,
        None => chart::read(tree, &options.path)?,
    };
    let around = tree.resolve(&options.path)?;
    let files = values::read(tree, &around, &options.helm.values_files)?;
    let mut run = Invocation::new(chart, files, &options.helm, server)?;
    run.room = tree.room().clone();
    // Of the repository such a run has seen its values only.
    run.read = options.helm.chart.is_some().then(|| values::places(tree, &around, options));
    Ok(run)
}

/// The run for the chart in this folder, which a kustomization names.
pub(super) fn inflation(
    (tree, folder): (&FileTree, &str),
    told: Inflation,
    room: &Room,
) -> Result<Invocation, Problem> {
    Ok(Invocation::of_kustomization(chart::read(tree, folder)?, told, room.clone()))
}

/// The same tree, with what helm has printed for a run.
pub fn printing(tree: FileTree, run: &Invocation, output: &Arc<[u8]>) -> FileTree {
    tree.printing(run.digest(), Sources::read(run, output).names(), output)
}

/// The files of values, and what links in the chart lead to, of which nothing is known yet.
pub(super) fn missing(tree: &FileTree, options: &Options) -> BTreeSet<String> {
    let folder = tree.resolve(&options.path).unwrap_or_default();
    let named = options.helm.values_files.iter();
    let places = named.filter_map(|file| tree.resolve(&values::place(&folder, file)?).ok());
    let linked = match options.helm.chart {
        Some(_) => BTreeSet::new(),
        None => linked(tree, folder.clone()),
    };
    places.chain(linked).filter(|place| !tree.holds(place)).collect()
}

/// The most links that are looked behind.
const MAX_LINKS: usize = 1000;

/// What links below a folder lead to, and those below that.
pub(super) fn linked(tree: &FileTree, folder: String) -> BTreeSet<String> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![folder]);
    while let Some(folder) = folders.pop() {
        let links = tree.below(&folder).filter(|(_, entry)| matches!(entry, Entry::Link(_)));
        for target in links.filter_map(|(path, _)| tree.resolve(path).ok()) {
            if found.len() < MAX_LINKS && found.insert(target.clone()) {
                folders.push(target);
            }
        }
    }
    found
}

/// Files by their paths, their bytes shared.
type Files = BTreeMap<String, std::sync::Arc<[u8]>>;

/// A path below a folder; an empty folder is the root.
fn below(folder: &str, path: &str) -> String {
    normalise(folder, path).unwrap_or_default()
}
