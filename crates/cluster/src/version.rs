//! Which release the server is, for charts that look at it.
//!
//! In: nothing, or word that it is another one now. Out: a version such as `v1.33.4`, asked for once.

use std::sync::PoisonError;

use super::Cluster;
use super::wire::Failure;

impl Cluster {
    /// The server's version; none if it does not say.
    pub async fn version(&self) -> Result<Option<Box<str>>, Failure> {
        let known = self.0.version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_some() {
            return Ok(known);
        }
        let found = self.0.wire.release().await?;
        self.0.version.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&found);
        Ok(found)
    }

    /// It is another release now.
    pub(super) fn forget_version(&self) {
        self.0.version.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
