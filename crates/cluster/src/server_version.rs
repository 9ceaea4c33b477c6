//! Release of the API server, for charts that depend on it.
//!
//! In: nothing, or a notification of an upgrade.
//! Out: a version such as `v1.33.4`, read once.

use std::sync::PoisonError;

use super::Cluster;
use crate::api_error::ApiError;

impl Cluster {
    /// Returns the server's version; none if it does not report one.
    pub async fn version(&self) -> Result<Option<Box<str>>, ApiError> {
        let known = self.0.version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_some() {
            return Ok(known);
        }
        let found = self.0.wire.release().await?;
        self.0.version.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&found);
        Ok(found)
    }

    /// Drops the cached version after an upgrade.
    pub(super) fn forget_version(&self) {
        self.0.version.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
