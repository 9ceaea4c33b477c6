//! Helm charts: inputs of a run of helm, and the objects in its output. The run itself is in
//! `src/helm/`.
//!
//! In: a tree, the folder of a chart and [`HelmOptions`]. Out: [`Invocation`], everything that a
//! run depends on, including its arguments; and from the output the objects, each with its
//! template. A chart is a tree, no matter where it was fetched from: `chart` reads the chart's
//! files, `values` those of the repository, `invocation` combines both, and `output` reads the
//! result.

mod chart;
mod chart_scan;
mod dependencies;
mod error;
mod external_values;
mod invocation;
mod kustomization_charts;
mod output;
mod test_hooks;
mod values_files;
mod values_path;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

pub use chart::ChartRefusal;
pub use dependencies::{FetchedDependency, LockedDependency};
pub use error::HelmChartError;
pub use external_values::{ExternalValues, ExternalValuesError};
pub use invocation::{Capabilities, Invocation, is_version};
pub(super) use kustomization_charts::KustomizationCharts;
pub use output::error_message;
pub(super) use output::parse_output;
use output::template_sources;
pub use values_path::ValuesPath;

use super::RenderOptions;
use moorline_core::tree::{FileTree, link_targets, normalise};

/// File that makes a folder a chart.
pub const CHART: &str = "Chart.yaml";

/// Options for rendering a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelmOptions {
    /// Name of the release.
    pub release: Box<str>,
    /// Namespace of the release.
    pub namespace: Box<str>,
    /// Values files in the repository, relative to the chart, or to the root of the repository with
    /// a leading `/`. Later ones override earlier ones.
    pub values_files: Vec<String>,
    /// Values of ConfigMaps and Secrets, which override those of files.
    pub external: ExternalValues,
    /// Values that override all others.
    pub values: Map<String, Value>,
    /// Templates see an upgrade instead of an installation.
    pub is_upgrade: bool,
    /// Leave out the CustomResourceDefinitions in the folder `crds`.
    pub skip_crds: bool,
    /// The tests of the chart are hooks that run after each sync; otherwise they are left out.
    pub test_hooks: bool,
    /// Version of Kubernetes that templates see, instead of the server's.
    pub kube_version: Option<Box<str>>,
    /// The chart, if it is not in the repository.
    pub chart: Option<FetchedChart>,
    /// Dependencies that were fetched by the lock of the chart.
    pub dependencies: Vec<FetchedDependency>,
}

/// A chart that was fetched from a registry or chart repository.
#[derive(Debug, Clone)]
pub struct FetchedChart {
    /// Digest of the chart; equal digests mean equal charts.
    pub digest: Box<str>,
    /// Files by their paths in the chart's folder.
    pub files: FileTree,
}

impl PartialEq for FetchedChart {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for FetchedChart {}

impl Default for HelmOptions {
    fn default() -> Self {
        Self {
            release: "default".into(),
            namespace: "default".into(),
            values_files: Vec::new(),
            external: ExternalValues::default(),
            values: Map::new(),
            is_upgrade: false,
            skip_crds: false,
            test_hooks: false,
            kube_version: None,
            chart: None,
            dependencies: Vec::new(),
        }
    }
}

/// Returns the path of the file that would make this folder a chart.
pub(super) fn chart_file_path(tree: &FileTree, path: &str) -> Option<String> {
    Some(below(&tree.resolve(path).ok()?, CHART))
}

/// True if this folder is a chart.
pub(super) fn is_chart(tree: &FileTree, path: &str) -> bool {
    let root = tree.resolve(path).unwrap_or_default();
    tree.is_file(&below(&root, CHART))
}

/// Returns the run of helm for this folder, or the problem that prevents it.
pub fn invocation(
    tree: &FileTree,
    options: &RenderOptions,
    server: &Capabilities,
) -> Result<Invocation, ChartRefusal> {
    let fetched = &options.helm.dependencies;
    let chart = match &options.helm.chart {
        Some(published) => chart::read(&published.files, "", fetched)?,
        None => chart::read(tree, &options.path, fetched)?,
    };
    let around = tree.resolve(&options.path)?;
    let files = crate::helm::values_files::read(tree, &around, &options.helm.values_files)?;
    let mut run = Invocation::new(chart, files, &options.helm, server)?;
    run.memory_limit = tree.memory_limit().clone();
    // A run for a published chart depends on its values files only.
    run.input_paths =
        options.helm.chart.is_some().then(|| crate::helm::values_files::values_paths(tree, &around, options));
    Ok(run)
}

/// Returns the tree with the output of a run added to it.
pub fn with_helm_output(tree: FileTree, run: &Invocation, output: &Arc<[u8]>) -> FileTree {
    tree.with_output(run.digest(), template_sources(run, output).names().map(str::to_owned), output)
}

/// Returns the values files, and the targets of links in the chart, that are not in the tree yet.
pub(super) fn missing_files(tree: &FileTree, options: &RenderOptions) -> BTreeSet<String> {
    let folder = tree.resolve(&options.path).unwrap_or_default();
    let named = options.helm.values_files.iter();
    let places =
        named.filter_map(|file| tree.resolve(&crate::helm::values_files::resolve_path(&folder, file)?).ok());
    let linked = match options.helm.chart {
        Some(_) => BTreeSet::new(),
        None => {
            let beside = folders_of_dependencies(tree, &folder);
            let linked = beside.iter().flat_map(|place| link_targets(tree, place.clone()));
            linked.chain(link_targets(tree, folder.clone())).chain(beside.iter().cloned()).collect()
        }
    };
    places.chain(linked).filter(|place| !tree.is_known(place)).collect()
}

/// Returns the folders of the same tree that a chart depends on.
fn folders_of_dependencies(tree: &FileTree, folder: &str) -> Vec<String> {
    let Ok(chart) = tree.read(&below(folder, CHART)) else { return Vec::new() };
    let folders = dependencies::folders(&chart).into_iter();
    folders.filter_map(|written| tree.resolve(&normalise(folder, &written)?).ok()).collect()
}

/// Files by their paths; bytes are shared.
type ChartFiles = BTreeMap<String, std::sync::Arc<[u8]>>;

/// Returns a path below a folder; an empty folder is the root.
fn below(folder: &str, path: &str) -> String {
    normalise(folder, path).unwrap_or_default()
}
