//! The program that asks for a build: it renders charts, and its users read the messages.
//!
//! In: a chart of a kustomization, with the options that kustomize passes to helm.
//! Out: [`ChartRun`], helm's output for it, or the size of a run that has no output yet. Helm does
//! not run inside a build: the caller runs it and builds again.

use std::fmt::Debug;
use std::sync::Arc;

use super::charts::PublishedChart;
use moorline_core::tree::FileTree;

/// Means of the program that asks for a build. Every method has a default, for a program without
/// helm that fetches nothing.
pub trait Host: Debug {
    /// Returns the run of helm for a chart, with the output if it is known.
    ///
    /// # Errors
    ///
    /// The finding about a chart that cannot be rendered, as a clause. The build fails with it.
    fn render_chart(&self, chart: ChartRequest<'_>) -> Result<ChartRun, String> {
        let display_folder = chart.tree.display_path(chart.folder);
        Ok(ChartRun { display_folder, ..ChartRun::default() })
    }

    /// Returns the finding and the remedy for a published chart that is not in the tree.
    fn missing_chart(&self, chart: &PublishedChart) -> String {
        let PublishedChart { url, version, .. } = chart;
        format!("the chart {url} {version} is not in the tree; add it, or commit it")
    }

    /// Returns the cause and the remedy for a folder in a repository that is not in the tree.
    fn missing_repository(&self) -> &str {
        "the tree has no mount for it; commit the files"
    }
}

/// A program without helm that fetches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standalone;

impl Host for Standalone {}

/// A chart that a kustomization names.
#[derive(Debug)]
pub struct ChartRequest<'a> {
    /// Tree with the chart.
    pub tree: &'a FileTree,
    /// Folder of the chart in the tree; empty for its root.
    pub folder: &'a str,
    /// Options for helm.
    pub inflation: ChartInflation,
}

/// Options of a kustomization's chart; unset ones are empty. They are passed to helm exactly as
/// kustomize passes them.
#[derive(Debug, Clone, Default)]
pub struct ChartInflation {
    /// Name of the release; empty for `--generate-name`.
    pub release: String,
    /// Value of `--namespace`.
    pub namespace: String,
    /// Value of `--name-template`.
    pub name_template: String,
    /// Values files with their names for messages; later ones override earlier ones.
    pub values: Vec<(String, Arc<[u8]>)>,
    /// Values of `--api-versions`.
    pub api_versions: Vec<String>,
    /// Value of `--kube-version`.
    pub kube_version: String,
    /// True for `--include-crds`.
    pub with_crds: bool,
    /// True for `--skip-tests`.
    pub without_tests: bool,
    /// True for `--no-hooks`.
    pub without_hooks: bool,
}

/// A run of helm for a chart.
#[derive(Debug, Clone, Default)]
pub struct ChartRun {
    /// Folder of the chart, for messages.
    pub display_folder: String,
    /// Size of the files that helm reads; the charts of one build are bounded.
    pub input_size: InputSize,
    /// Files of the chart were decrypted.
    pub contains_secret: bool,
    /// Output of helm; none if helm must run first. The build then fails with
    /// [`ErrorClass::Unsupported`](super::ErrorClass), after it has asked for every other chart.
    pub output: Option<ChartOutput>,
}

/// Size of the files of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputSize {
    /// Number of files.
    pub files: usize,
    /// Total length of their paths.
    pub path_bytes: usize,
    /// Total length of their contents.
    pub bytes: usize,
}

/// Output of helm for a chart.
#[derive(Debug, Clone)]
pub struct ChartOutput {
    /// The text that helm prints.
    pub bytes: Arc<[u8]>,
    /// Templates that it comes from.
    pub templates: TemplateSources,
}

/// Templates of the output's lines: the first line of each, from 1, and its name.
#[derive(Debug, Clone)]
pub struct TemplateSources(Vec<(u32, Arc<str>)>);

impl TemplateSources {
    /// Creates the table from the first lines of the templates, in order.
    pub fn new(first_lines: Vec<(u32, Arc<str>)>) -> Self {
        Self(first_lines)
    }

    /// Names of the templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, name)| &**name)
    }

    /// Returns the template of a line.
    pub fn template_at(&self, line: u32) -> Arc<str> {
        let after = self.0.partition_point(|(begin, _)| *begin <= line);
        self.0.get(after.saturating_sub(1)).map_or_else(|| "".into(), |(_, name)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorClass, build, build_with_host};

    const FILES: [(&str, &str); 3] = [
        ("kustomization.yaml", "namePrefix: my-\nhelmCharts: [{name: web, releaseName: shop}]\n"),
        ("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("charts/web/values.yaml", "a: 1\n"),
    ];

    /// Answers every chart with one ConfigMap, named after the release.
    #[derive(Debug)]
    struct Templates {
        input_size: InputSize,
    }

    impl Host for Templates {
        fn render_chart(&self, chart: ChartRequest<'_>) -> Result<ChartRun, String> {
            let ChartRequest { folder, inflation: ChartInflation { release, values, .. }, .. } = chart;
            assert_eq!((folder, values.len()), ("charts/web", 1));
            let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {release}}}\n");
            let templates = TemplateSources::new(vec![(1, "charts/web/templates/map.yaml".into())]);
            let output = Some(ChartOutput { bytes: text.into_bytes().into(), templates });
            Ok(ChartRun {
                display_folder: folder.to_owned(),
                input_size: self.input_size,
                output,
                ..ChartRun::default()
            })
        }
    }

    #[test]
    fn a_kustomization_changes_the_output_of_its_host() {
        let tree = FileTree::from_texts(FILES);
        let built = build_with_host(&tree, "", &Templates { input_size: InputSize::default() }).unwrap();
        assert!(built.by_helm);
        let object = &built.objects[0];
        assert_eq!(object.body["metadata"]["name"], "my-shop");
        assert_eq!(&*object.origin.file, "charts/web/templates/map.yaml");
    }

    #[test]
    fn charts_are_refused_without_a_host_and_beyond_the_bound() {
        let tree = FileTree::from_texts(FILES);
        let refused = build(&tree, "").unwrap_err();
        assert_eq!(refused.class, ErrorClass::Unsupported);
        assert!(refused.text.contains("the chart charts/web requires helm"), "{refused}");
        let large = Templates { input_size: InputSize { bytes: 1 << 30, ..InputSize::default() } };
        assert_eq!(build_with_host(&tree, "", &large).unwrap_err().error.class, ErrorClass::Bound);
    }
}
