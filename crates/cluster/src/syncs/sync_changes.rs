//! Reads whole Syncs, and changes them for people.
//!
//! In: a Sync, and a patch.
//! Out: the Sync as the API server has it, or its new resourceVersion.

use serde_json::Value;

use super::{SyncRequests, path, version};
use crate::api_client::{ApiRequest, METADATA};
use crate::api_error::ApiError;
use moorline_api::{DAEMON_MANAGER, SyncName};
use moorline_metrics::RequestClass;

impl SyncRequests<'_> {
    /// Reads a whole Sync; none if it does not exist.
    pub async fn read_whole(&self, name: &SyncName) -> Result<Option<Value>, ApiError> {
        match self.0.wire.send(ApiRequest::new(RequestClass::Verify, "get", path(name))).await {
            Ok(reply) => reply.json().map(Some),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Changes a Sync by a merge patch, and returns its new resourceVersion.
    ///
    /// # Guarantees
    ///
    /// One patch; it is conditional only if it carries a resourceVersion.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the Sync was changed.
    ///
    /// # Errors
    ///
    /// 409 if the Sync has changed since; otherwise any [`ApiError`].
    pub async fn change(&self, name: &SyncName, patch: &Value) -> Result<u64, ApiError> {
        let uri = format!("{}?fieldManager={DAEMON_MANAGER}", path(name));
        let call = ApiRequest::new(RequestClass::Status, "patch", uri)
            .accept(METADATA)
            .content("application/merge-patch+json", patch.to_string().into_bytes());
        let reply = self.0.status_limiter.send(&self.0.wire, call, None).await?;
        Ok(version(&serde_json::from_slice(&reply.body).unwrap_or_default()))
    }
}
