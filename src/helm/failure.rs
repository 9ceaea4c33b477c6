//! Why helm gave nothing, in words for the person who wrote the chart or runs the daemon.

use std::path::PathBuf;

/// Why a chart could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelmFailure {
    /// There is no such program.
    #[error(
        "there is no program {}, which renders charts; use an image with helm (image.variant of the chart), name it in the setting helm, or commit what `helm template` prints",
        .program.display()
    )]
    Missing {
        /// The program, as it was named.
        program: PathBuf,
    },
    /// Helm refused the chart.
    #[error("helm does not render the chart: {text}")]
    Failed {
        /// What it said, without values.
        text: Box<str>,
    },
    /// A bound was reached.
    #[error("helm was stopped: {what}")]
    Exceeded {
        /// Which, and what to do.
        what: Box<str>,
    },
    /// It could not be started, or its folder could not be made.
    #[error("helm could not be run: {why}")]
    Unstartable {
        /// What the operating system said.
        why: Box<str>,
    },
    /// A wall that is required does not stand here.
    #[error("{why}")]
    Unfenced {
        /// Which, and what to do.
        why: Box<str>,
    },
    /// The render was given up, because this process ends.
    #[error("the render was stopped")]
    Stopped,
}

impl HelmFailure {
    /// One word for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "HelmMissing",
            Self::Failed { .. } => "HelmFailed",
            Self::Exceeded { .. } => "HelmExceeded",
            Self::Unstartable { .. } => "HelmUnstartable",
            Self::Unfenced { .. } => "HelmUnfenced",
            Self::Stopped => "Stopped",
        }
    }

    /// True if asking again cannot help before there is new input.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::Failed { .. } | Self::Unfenced { .. } => true,
            // A machine may have been busy, or a disk full.
            Self::Exceeded { .. } | Self::Unstartable { .. } | Self::Stopped => false,
        }
    }

    /// An error of the operating system on the way to a run.
    pub(super) fn of_system(what: &str, error: &std::io::Error) -> Self {
        Self::Unstartable { why: format!("{what}: {error}").into() }
    }
}
