//! Signature checks of revisions of a shared repository.
//!
//! In: a revision and the trusted keys.
//! Out: nothing, or the reason for not trusting it.

use std::sync::Arc;
use std::time::Instant;

use super::super::error::Error;
use super::super::revision::Revision;
use super::super::signature::{SignaturePolicy, TrustedKeys, verify};
use super::{JobNeed, Place, Repository};

impl Repository {
    /// Checks that a revision is signed by a trusted key. It is fetched if necessary.
    pub async fn verify(
        &self,
        revision: &Revision,
        signed: SignaturePolicy,
        keys: &Arc<TrustedKeys>,
        by: Instant,
    ) -> Result<(), Error> {
        let (revision, keys) = (revision.clone(), keys.clone());
        // Fetching a tag brings its commit, but fetching a commit brings no tags.
        let tag = revision.tag.filter(|_| signed != SignaturePolicy::Commit);
        let need = JobNeed::Objects(tag.into_iter().chain([revision.commit]).collect());
        self.run(need, by, move |state| {
            if let (Place::Mirrored(mirror), Some(tag)) = (&mut state.place, tag) {
                mirror.fetch(tag, by)?;
            }
            let verify = |repository: &git2::Repository, _| verify(repository, &revision, signed, &keys);
            state.with(&revision, by, verify).map(drop)
        })
        .await
    }
}
