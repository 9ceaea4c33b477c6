//! Whether a revision of a shared repository is signed.
//!
//! In: a revision and the keys that count. Out: nothing, or why it is not to be trusted.

use std::sync::Arc;
use std::time::Instant;

use super::super::error::Error;
use super::super::revision::Revision;
use super::super::signature::{Keys, Signed, verify};
use super::{Need, Place, Repository};

impl Repository {
    /// Makes sure that somebody who is trusted has signed a revision. It is fetched if need be.
    pub async fn verify(
        &self,
        revision: &Revision,
        signed: Signed,
        keys: &Arc<Keys>,
        by: Instant,
    ) -> Result<(), Error> {
        let (revision, keys) = (revision.clone(), keys.clone());
        // A tag brings its commit, and a commit no tags.
        let tag = revision.tag.filter(|_| signed != Signed::Commit);
        let need = Need::Objects(tag.into_iter().chain([revision.commit]).collect());
        self.run(need, by, move |state| {
            if let (Place::Mirrored(mirror), Some(tag)) = (&mut state.place, tag) {
                mirror.fetch(tag, by)?;
            }
            let verify = |repository: &git2::Repository| verify(repository, &revision, signed, &keys);
            state.with(revision.commit, by, verify).map(drop)
        })
        .await
    }
}
