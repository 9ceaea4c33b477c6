//! Records the charts of a build: those that are missing, and the size of those that are there.
//!
//! In: each chart that a kustomization names. Out: the charts that the caller has to fetch or to
//! render, or an error if the build has too many.

use std::cell::{Cell, RefCell};

use super::charts::PublishedChart;
use super::error::{BuildError, ErrorClass, FieldLocation};
use super::host::{ChartRun, InputSize};
use moorline_core::tree::FileTree;

/// Most published charts of one build.
const MAX_FETCHED: usize = 32;
/// Most charts of one build; these and their bytes are counted each time a chart is named.
pub(super) const MAX_CHARTS: usize = 128;
const MAX_CHART_BYTES: usize = 256 * 1024 * 1024;
/// Overhead of one file of a run, in bytes.
const FILE_COST: usize = 128;

/// The charts of a build.
#[derive(Debug, Default)]
pub(super) struct ChartInputs {
    /// Folder and entry of the first chart without output.
    unrendered: RefCell<Option<(String, FieldLocation)>>,
    /// Published charts that are missing.
    missing: RefCell<Vec<PublishedChart>>,
    /// Number of published charts named so far.
    published_count: Cell<usize>,
    /// Number of charts so far, and their bytes.
    size: Cell<(usize, usize)>,
    /// Helm rendered a part of the build.
    by_helm: Cell<bool>,
}

impl ChartInputs {
    /// Returns the files of a published chart; a missing one is recorded.
    pub(super) fn find_published(
        &self,
        tree: &FileTree,
        chart: PublishedChart,
        at: &FieldLocation,
    ) -> Result<Option<FileTree>, BuildError> {
        if self.published_count.replace(self.published_count.get() + 1) >= MAX_FETCHED {
            let text = format!("a build fetches at most {MAX_FETCHED} charts; commit some of them");
            return Err(at.error(ErrorClass::Bound, text));
        }
        let found = tree.chart(&chart.digest).cloned();
        if found.is_none() {
            self.missing.borrow_mut().push(PublishedChart { place: at.position(tree), ..chart });
        }
        Ok(found)
    }

    /// Records a run of helm. Returns the memory that the run takes, in bytes.
    pub(super) fn record_run(&self, run: &ChartRun, at: &FieldLocation) -> Result<u64, BuildError> {
        let (InputSize { files, path_bytes, bytes: added }, (count, bytes)) =
            (run.input_size, self.size.get());
        let (count, bytes) = (count + 1, bytes + added);
        self.size.set((count, bytes));
        if count > MAX_CHARTS || bytes > MAX_CHART_BYTES {
            let text = format!(
                "a build has at most {MAX_CHARTS} charts and {} MiB of them; split it",
                MAX_CHART_BYTES / (1024 * 1024)
            );
            return Err(at.error(ErrorClass::Bound, text));
        }
        self.by_helm.set(true);
        if run.output.is_none() {
            let entry = || (run.display_folder.clone(), at.clone());
            self.unrendered.borrow_mut().get_or_insert_with(entry);
        }
        Ok((path_bytes + files * FILE_COST) as u64)
    }

    /// Published charts that are missing.
    pub(super) fn missing(&self) -> Vec<PublishedChart> {
        self.missing.borrow().clone()
    }

    /// Folder and entry of the first chart without output.
    pub(super) fn unrendered(&self) -> Option<(String, FieldLocation)> {
        self.unrendered.borrow().clone()
    }

    /// True if helm rendered a part of the build.
    pub(super) fn is_by_helm(&self) -> bool {
        self.by_helm.get()
    }
}
