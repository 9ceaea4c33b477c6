//! Errors in a chart, found before helm runs, with messages for its author.

use super::chart::{MAX_CHART_BYTES, MAX_CHART_FILES};

/// An error in a chart or its values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelmChartError {
    /// A folder without a `Chart.yaml`.
    #[error(
        "{folder}: there is no Chart.yaml, so this is not a Helm chart; set the path to the folder of the chart"
    )]
    NoChart {
        /// The folder.
        folder: String,
    },
    /// A `Chart.yaml` that lacks something.
    #[error("{file}: {problem}")]
    BadChart {
        /// The file.
        file: String,
        /// The finding and the remedy.
        problem: &'static str,
    },
    /// A dependency that is not in the folder `charts`, and is not fetched here.
    #[error(
        "{file}: the dependency {name} is not in {charts}, and only the daemon fetches dependencies; run `helm dependency build {folder}`"
    )]
    NoDependency {
        /// The file that names the dependency.
        file: String,
        /// The dependency's name.
        name: String,
        /// The expected folder.
        charts: String,
        /// The chart's folder.
        folder: String,
    },
    /// A dependency of an old chart, whose lock is not read.
    #[error(
        "{file}: the dependency {name} is not in {charts}, and those of requirements.yaml are not fetched; run `helm dependency build {folder}` and commit the result"
    )]
    OldDependency {
        /// The file that names the dependency.
        file: String,
        /// The dependency's name.
        name: String,
        /// The expected folder.
        charts: String,
        /// The chart's folder.
        folder: String,
    },
    /// A dependency without a lock.
    #[error(
        "{file}: the dependency {name} is not in the folder charts, and no Chart.lock has its exact version; run `helm dependency update {folder}` and commit Chart.lock"
    )]
    NoLock {
        /// The file that names the dependency.
        file: String,
        /// The dependency's name.
        name: String,
        /// The chart's folder.
        folder: String,
    },
    /// A lock of other dependencies.
    #[error("{file}: it does not fit Chart.yaml; run `helm dependency update {folder}` and commit it")]
    StaleLock {
        /// The lock.
        file: String,
        /// The chart's folder.
        folder: String,
    },
    /// A repository that only somebody's own helm knows.
    #[error(
        "{file}: the dependency {name} has the repository {repository:?}; write a URL (https, oci or file)"
    )]
    UnknownRepository {
        /// The file that names the dependency.
        file: String,
        /// The dependency's name.
        name: String,
        /// The repository, as written.
        repository: String,
    },
    /// A folder that is not the chart that the lock names.
    #[error(
        "{file}: the dependency {name} is in {folder}, which {problem}; run `helm dependency update` and commit Chart.lock"
    )]
    WrongFolder {
        /// The file that names the dependency.
        file: String,
        /// The dependency's name.
        name: String,
        /// The folder.
        folder: String,
        /// The problem.
        problem: &'static str,
    },
    /// A values file that does not exist.
    #[error(
        "the file {shown} does not exist (valuesFiles: {written}); write it relative to the chart, or from the root of the repository with / in front"
    )]
    NoValues {
        /// The path as written.
        written: String,
        /// The resolved path.
        shown: String,
    },
    /// A values file outside of the repository.
    #[error("the path {written} in valuesFiles is outside of the repository; use a file in the repository")]
    ValuesOutside {
        /// The path as written.
        written: String,
    },
    /// A chart that is too large.
    #[error(
        "{folder}: the chart has more than {MAX_CHART_FILES} files or {MAX_CHART_BYTES} bytes, including link targets; move unrelated files elsewhere"
    )]
    TooLarge {
        /// The folder.
        folder: String,
    },
    /// An invalid version of Kubernetes.
    #[error("kubeVersion {written:?} is not a version of Kubernetes; write one such as 1.33 or v1.33.2")]
    BadVersion {
        /// The version as written.
        written: String,
    },
}

impl HelmChartError {
    /// Machine-readable reason for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoChart { .. } | Self::BadChart { .. } | Self::BadVersion { .. } => "ChartInvalid",
            Self::NoDependency { .. }
            | Self::OldDependency { .. }
            | Self::NoLock { .. }
            | Self::UnknownRepository { .. }
            | Self::WrongFolder { .. } => "ChartDependencyMissing",
            Self::StaleLock { .. } => "ChartLockStale",
            Self::NoValues { .. } | Self::ValuesOutside { .. } => "ValuesFileMissing",
            Self::TooLarge { .. } => "ChartTooLarge",
        }
    }
}
