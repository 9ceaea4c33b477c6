//! Finding of one check of `moorline doctor`.

use serde::Serialize;

/// Importance of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    Warning,
    Error,
    /// The caller may not see what the check needs.
    Unknown,
}

impl Level {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Unknown => "unknown",
        }
    }
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) message: String,
    /// The next action of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, message: message.into(), remedy: None }
    }

    pub(super) fn warning(
        check: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { check, level: Level::Warning, message: message.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn error(check: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Error, message: message.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn unknown(
        check: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { check, level: Level::Unknown, message: message.into(), remedy: Some(remedy.into()) }
    }

    /// One line: the message, and the next action.
    pub(super) fn text(&self) -> String {
        match &self.remedy {
            Some(remedy) => format!("{}; {remedy}", self.message),
            None => self.message.clone(),
        }
    }
}
