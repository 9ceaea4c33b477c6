//! Errors of helm, with messages for the author of the chart and the operator of the daemon.

use std::path::PathBuf;

/// The reason why a chart could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelmError {
    /// The program does not exist.
    #[error(
        "helm was not found at {}; use an image with helm (image.variant of the chart), set its path in the setting helm, or commit the output of `helm template`",
        .program.display()
    )]
    Missing {
        /// The configured program.
        program: PathBuf,
    },
    /// Helm refused the chart.
    #[error("helm failed to render the chart: {text}")]
    Failed {
        /// Helm's message, without values.
        text: Box<str>,
    },
    /// A limit was reached.
    #[error("helm was stopped: {what}")]
    Exceeded {
        /// The limit, and the remedy.
        what: Box<str>,
    },
    /// Helm could not be started, or its folder could not be created.
    #[error("helm could not be run: {why}")]
    Unstartable {
        /// The message of the operating system.
        why: Box<str>,
    },
    /// A required protection is not available.
    #[error("{why}")]
    Unfenced {
        /// The protection, and the remedy.
        why: Box<str>,
    },
    /// The render was cancelled because this process ends.
    #[error("the render was stopped")]
    Stopped,
}

impl HelmError {
    /// The reason for conditions, Events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "HelmMissing",
            Self::Failed { .. } => "HelmFailed",
            Self::Exceeded { .. } => "HelmExceeded",
            Self::Unstartable { .. } => "HelmUnstartable",
            Self::Unfenced { .. } => "HelmIsolationUnavailable",
            Self::Stopped => "Stopped",
        }
    }

    /// True if a retry cannot help before there is new input.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::Failed { .. } | Self::Unfenced { .. } => true,
            // The machine may have been busy, or a disk full.
            Self::Exceeded { .. } | Self::Unstartable { .. } | Self::Stopped => false,
        }
    }

    /// An error of the operating system before a run.
    pub(super) fn from_io(what: &str, error: &std::io::Error) -> Self {
        Self::Unstartable { why: format!("{what}: {error}").into() }
    }
}
