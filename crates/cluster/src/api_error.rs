//! Errors of requests to the API server.
//!
//! In: nothing.
//! Out: [`ApiError`], with the error status of the server if there was a response.

use std::time::Duration;

use serde::Deserialize;

/// Error of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// There is no connection, or it broke.
    #[error("the API server cannot be reached: {0}")]
    Unreachable(Box<str>),
    /// The response took too long.
    #[error("no response from the API server within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The server answered with an error status.
    #[error("{0}")]
    Refused(Box<ApiStatus>),
    /// The response is not one of an API server.
    #[error("the API server's response cannot be parsed: {0}")]
    InvalidResponse(Box<str>),
    /// Discovery has not found this kind; it may be served in a moment.
    #[error("the API server does not serve the kind {0}")]
    UnknownKind(Box<str>),
    /// This daemon lost the Lease, so it does not write.
    #[error("this daemon is not the leader, so nothing is written")]
    NotLeader,
    /// Newer input has superseded the write before it was sent.
    #[error("superseded by newer input before it was written")]
    Superseded,
}

impl ApiError {
    /// True if the API server is down, also where a load balancer reports it.
    pub(super) fn is_away(&self) -> bool {
        matches!(self, Self::Unreachable(_)) || matches!(self.code(), Some(502..=504))
    }

    /// True if the API server has not reached the requested resourceVersion.
    pub(super) fn is_behind(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.is_behind())
    }

    /// Returns the HTTP status, if there was a response.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.code),
            Self::Unreachable(_)
            | Self::Timeout(_)
            | Self::InvalidResponse(_)
            | Self::UnknownKind(_)
            | Self::NotLeader
            | Self::Superseded => None,
        }
    }
}

/// An error status of the API server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code} {reason})")]
pub struct ApiStatus {
    /// The HTTP status.
    pub code: u16,
    /// The server's reason, such as `Invalid`.
    pub reason: Box<str>,
    /// The server's message.
    pub message: Box<str>,
    /// Problems of single fields.
    pub causes: Vec<StatusCause>,
    /// Delay that the server asks for before a retry.
    pub retry_after: Option<Duration>,
}

impl ApiStatus {
    /// True if the server has not reached the requested resourceVersion yet, as after a restored
    /// backup. A load balancer also answers 504, but never with this cause.
    pub fn is_behind(&self) -> bool {
        self.code == 504 && self.causes.iter().any(|cause| &*cause.reason == "ResourceVersionTooLarge")
    }

    /// Returns the conflicting fields, each with its manager. The server names the manager between
    /// quotation marks.
    pub fn field_conflicts(&self) -> impl Iterator<Item = (&StatusCause, Option<&str>)> {
        let conflicts = self.causes.iter().filter(|cause| &*cause.reason == "FieldManagerConflict");
        conflicts.map(|cause| (cause, cause.message.split('"').nth(1)))
    }

    /// Field managers that own conflicting fields, each once.
    pub fn managers(&self) -> Vec<Box<str>> {
        let mut managers: Vec<Box<str>> =
            self.field_conflicts().filter_map(|(_, manager)| manager.map(Box::from)).collect();
        managers.sort();
        managers.dedup();
        managers
    }
}

/// A problem of one field.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// The server's reason, such as `FieldManagerConflict`.
    pub reason: Box<str>,
    /// The server's message.
    pub message: Box<str>,
    /// The field, as the server prints it.
    pub field: Box<str>,
}

impl StatusCause {
    /// True if the list has another item with the value of this field.
    pub fn is_duplicate_value(&self) -> bool {
        &*self.reason == "FieldValueDuplicate"
    }
}
