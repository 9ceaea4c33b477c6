//! Charts of kustomizations: the runs of helm that a build asks for.
//!
//! In: a tree, with the outputs of helm that are known, and the charts that the build names.
//! Out: the output of each chart, and an [`Invocation`] for each chart without. Helm does not run
//! here: the caller adds its output to the tree and builds again.

use std::cell::RefCell;
use std::sync::Arc;

use super::chart;
use super::invocation::Invocation;
use super::output::{has_ciphertext, template_sources};
use moorline_core::tree::FileTree;
use moorline_kustomize::host::{ChartOutput, ChartRequest, ChartRun, Host, InputSize};
use moorline_kustomize::{ErrorClass, KustomizeError, PublishedChart};

/// Charts of one build.
#[derive(Debug)]
pub(crate) struct KustomizationCharts<'a> {
    tree: &'a FileTree,
    /// Runs whose output is not in the tree.
    wanted: RefCell<Vec<Arc<Invocation>>>,
}

impl<'a> KustomizationCharts<'a> {
    pub(crate) fn new(tree: &'a FileTree) -> Self {
        Self { tree, wanted: RefCell::default() }
    }

    /// Returns the runs whose output a failed build lacks; none if the build exceeds a bound,
    /// because no output would help then.
    pub(crate) fn wanted_runs(self, error: &KustomizeError) -> Vec<Arc<Invocation>> {
        match error.class {
            ErrorClass::Bound => Vec::new(),
            _ => self.wanted.into_inner(),
        }
    }
}

impl Host for KustomizationCharts<'_> {
    fn render_chart(&self, request: ChartRequest<'_>) -> Result<ChartRun, String> {
        let ChartRequest { tree, folder, inflation } = request;
        let chart = chart::read(tree, folder, &[]).map_err(|refusal| refusal.problem.to_string())?;
        let run = Invocation::for_kustomization(chart, inflation, self.tree);
        let mut size = InputSize::default();
        for (path, file) in run.files() {
            size.files += 1;
            size.path_bytes += path.len();
            size.bytes += file.len();
        }
        let display_folder = run.display_folder().to_owned();
        let (contains_secret, ciphertext) = (run.contains_secret(), run.ciphertext.clone());
        let output = self.tree.output(&run.digest()).map(|bytes| {
            let templates = template_sources(&run, &bytes);
            ChartOutput { bytes, templates }
        });
        if let Some(error) = ciphertext
            && output.as_ref().is_some_and(|output| has_ciphertext(&output.bytes))
        {
            return Err(error.into());
        }
        if output.is_none() {
            self.wanted.borrow_mut().push(Arc::new(run));
        }
        Ok(ChartRun { display_folder, input_size: size, contains_secret, output })
    }

    fn missing_chart(&self, chart: &PublishedChart) -> String {
        let PublishedChart { url, version, .. } = chart;
        format!("only the daemon fetches the chart {url} {version}; commit it to build it here")
    }

    fn missing_repository(&self) -> &str {
        NOT_FETCHED
    }
}

const NOT_FETCHED: &str = "neither the setting remoteBases of the daemon nor --allow-remote on the command line has a \
                           matching prefix; commit the files, or ask the administrator of the daemon to allow it";
