//! The tags of a repository in a registry.
//!
//! In: a selection. Out: the selected tags, as the registry lists them now.

use std::time::Instant;

use super::jobs::JobNeed;
use super::{FileStore, Repository};
use crate::artifact::TagSelection;
use crate::error::Error;

impl Repository {
    /// Returns the selected tags of a repository in a registry, as the registry lists them now.
    pub async fn tags(&self, selection: TagSelection, by: Instant) -> Result<Vec<String>, Error> {
        self.run(JobNeed::Server, by, move |state| match &mut state.place {
            FileStore::Artifacts(mirror) => mirror.tags(&selection, by),
            FileStore::Mirrored(_) | FileStore::Local(_) | FileStore::Unopened(_) => Err(Error::Stopped),
        })
        .await
    }
}
