//! Signature checks of revisions of a shared repository, and of charts in registries.
//!
//! In: a revision or the version of a chart, and those who are trusted.
//! Out: nothing, or the reason for not trusting it.

use std::sync::Arc;
use std::time::Instant;

use super::super::artifact::{LayerSelection, RegistryAddress, RegistryClient, SignatureSearch};
use super::super::chart::{ChartError, ChartRequest, ChartVersion};
use super::super::credentials::Credentials;
use super::super::error::Error;
use super::super::remote::heard;
use super::super::revision::Revision;
use super::super::signature::{SignaturePolicy, TrustedKeys, verify};
use super::{FileStore, JobNeed, MirrorFolder, Repository};
use crate::worker_pool::WorkerRequest;
use moorline_runtime::chance;

/// Folder of accepted signatures, next to those of mirrors.
pub(super) const FOLDER: &str = "signatures";

impl Repository {
    /// Checks that a revision is signed by a trusted key. It is fetched if necessary; of an
    /// artifact, only its signatures.
    pub async fn verify(
        &self,
        revision: &Revision,
        signed: SignaturePolicy,
        keys: &Arc<TrustedKeys>,
        by: Instant,
    ) -> Result<(), Error> {
        if signed == SignaturePolicy::Artifact {
            return self.verify_artifact(revision, keys, by).await;
        }
        let (revision, keys) = (revision.clone(), keys.clone());
        // Fetching a tag brings its commit, but fetching a commit brings no tags.
        let tag = revision.tag.filter(|_| signed != SignaturePolicy::Commit);
        let need = JobNeed::Objects(tag.into_iter().chain([revision.commit]).collect());
        self.run(need, by, move |state| {
            if let (FileStore::Mirrored(mirror), Some(tag)) = (&mut state.place, tag) {
                mirror.fetch(tag, by)?;
            }
            let verify = |repository: &git2::Repository, _| verify(repository, &revision, signed, &keys);
            state.with(&revision, by, verify).map(drop)
        })
        .await
    }

    async fn verify_artifact(
        &self,
        revision: &Revision,
        keys: &Arc<TrustedKeys>,
        by: Instant,
    ) -> Result<(), Error> {
        let search = SignatureSearch {
            store: self.mirrors.signatures.clone(),
            place: format!("{}\n{}", self.shared.address, self.shared.owner).into(),
            what: "artifact".into(),
            digest: revision.digest().ok_or(Error::Stopped)?,
            keys: keys.clone(),
        };
        let here = search.clone();
        if self.run(JobNeed::Disk, by, move |_| Ok(here.is_accepted_here())).await? {
            return Ok(());
        }
        self.run(JobNeed::Server, by, move |state| match &mut state.place {
            FileStore::Artifacts(mirror) => search.search(mirror.client(), by),
            FileStore::Unopened(_) | FileStore::Mirrored(_) | FileStore::Local(_) => Err(Error::Stopped),
        })
        .await
    }
}

/// Checks that the version of a chart in a registry is signed by a trusted signer.
pub(super) async fn verify_chart(
    mirrors: &Arc<MirrorFolder>,
    (wanted, version): (&ChartRequest, &ChartVersion),
    (owner, asker): (&str, &str),
    credentials: &Credentials,
    keys: &Arc<TrustedKeys>,
    by: Instant,
) -> Result<(), ChartError> {
    let search = SignatureSearch {
        store: mirrors.signatures.clone(),
        place: format!("{}\n{owner}", wanted.place()).into(),
        what: format!("chart {}:", version.short()).into(),
        digest: version.digest,
        keys: keys.clone(),
    };
    let ask = |server: Option<Arc<str>>| WorkerRequest { namespace: asker.into(), server };
    let (here, worker) = (search.clone(), mirrors.turns.take(ask(None)).await);
    let look = chance::spawn_blocking_deterministic(move || {
        let _worker = worker;
        here.is_accepted_here()
    });
    if look.await.map_err(|_| Error::Stopped)? {
        return Ok(());
    }
    let address = RegistryAddress::new(&wanted.place(), LayerSelection::default()).map_err(Error::from)?;
    let mut client = RegistryClient::new(&address, credentials, &mirrors.network)?;
    let mut worker = mirrors.turns.take(ask(Some(wanted.server().into()))).await;
    let done = chance::spawn_blocking_deterministic(move || {
        let found = search.search(&mut client, by);
        worker.heard(heard(found.as_ref().err()));
        found
    });
    Ok(done.await.map_err(|_| Error::Stopped)??)
}
