//! What keeps a chart from being rendered before helm was asked, in words for the person who wrote it.

use super::chart::{MAX_CHART_BYTES, MAX_CHART_FILES};

/// One thing that is wrong with a chart or its values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChartFault {
    /// A folder without a `Chart.yaml`.
    #[error("{folder}: there is no Chart.yaml, so this is no Helm chart; name the folder of the chart")]
    NoChart {
        /// The folder.
        folder: String,
    },
    /// A `Chart.yaml` that says too little.
    #[error("{file}: {problem}")]
    BadChart {
        /// The file.
        file: String,
        /// What is wrong, and what to write instead.
        problem: &'static str,
    },
    /// A chart that another one needs is not in its folder `charts`.
    #[error(
        "{file}: the dependency {name} is not in {charts}, and nothing is fetched; run `helm dependency build {folder}` and commit what it puts there"
    )]
    NoDependency {
        /// The file that asks for it.
        file: String,
        /// The dependency's name.
        name: String,
        /// Where it belongs.
        charts: String,
        /// The chart's folder.
        folder: String,
    },
    /// A file of values that is not there.
    #[error(
        "there is no {shown}, which valuesFiles names as {written}; write it relative to the chart, or from the root of the repository with / in front"
    )]
    NoValues {
        /// The file as it was written.
        written: String,
        /// Where that is.
        shown: String,
    },
    /// A file of values that lies above the repository.
    #[error("valuesFiles names {written}, which leads out of the repository; only what is in it is read")]
    ValuesOutside {
        /// The file as it was written.
        written: String,
    },
    /// A chart that is too large.
    #[error(
        "{folder}: the chart has more than {MAX_CHART_FILES} files or {MAX_CHART_BYTES} bytes, links followed; move what is no part of it elsewhere"
    )]
    TooLarge {
        /// The folder.
        folder: String,
    },
    /// A version of Kubernetes that is none.
    #[error("kubeVersion {written:?} is no version of Kubernetes; write one such as 1.33 or v1.33.2")]
    BadVersion {
        /// What was written.
        written: String,
    },
}

impl ChartFault {
    /// One word for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoChart { .. } | Self::BadChart { .. } | Self::BadVersion { .. } => "ChartInvalid",
            Self::NoDependency { .. } => "ChartDependencyMissing",
            Self::NoValues { .. } | Self::ValuesOutside { .. } => "ValuesFileMissing",
            Self::TooLarge { .. } => "ChartTooLarge",
        }
    }
}
