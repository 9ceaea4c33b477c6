//! Finds the signatures of an artifact in its registry, and verifies them.
//!
//! In: the digest of a manifest, the trusted signers, and the client of the registry.
//! Out: nothing, or the reason for not trusting the artifact. The documents of an accepted
//! signature are kept on disk, and verified there first.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use http::Method;
use jiff::Timestamp;
use moorline_cosign::{Artifact, MAX_DOCUMENT_BYTES, Reason, Request, SearchError, VerifyError, search};

use super::super::chart::Digest;
use super::super::error::Error;
use super::super::signature::{SignatureError, SignatureProblem, TrustedKeys};
use super::artifact_signers::ArtifactSigners;
use super::registry_client::RegistryClient;
use super::signature_store::{SignatureDocuments, SignatureStore};

/// An artifact whose signature is searched for.
#[derive(Clone)]
pub(crate) struct SignatureSearch {
    pub(crate) store: Arc<SignatureStore>,
    /// Name of the repository, and of the Secret that it is read with.
    pub(crate) place: Box<str>,
    /// The artifact in messages.
    pub(crate) what: Box<str>,
    pub(crate) digest: Digest,
    pub(crate) keys: Arc<TrustedKeys>,
}

impl SignatureSearch {
    /// True if a signature on the local disk is accepted.
    pub(crate) fn is_accepted_here(&self) -> bool {
        let documents = self.store.read(&self.place, self.digest);
        let signers = self.keys.artifact_signers().filter(|_| !documents.is_empty());
        signers.is_some_and(|signers| self.search_in(signers, &documents).is_ok())
    }

    /// Searches the mirrors of a registry, and then the registry, for a signature that is accepted.
    pub(crate) fn search(&self, client: &mut RegistryClient, by: Instant) -> Result<(), Error> {
        match client.of_mirrors(by, |mirror, by| self.search_at(mirror, by)) {
            Some(()) => Ok(()),
            None => self.search_at(client, by),
        }
    }

    /// Searches one server.
    fn search_at(&self, client: &mut RegistryClient, by: Instant) -> Result<(), Error> {
        let refuse = |problem| Error::Unsigned(SignatureError { what: self.what.clone(), problem });
        let Some(signers) = self.keys.artifact_signers() else {
            return Err(refuse(SignatureProblem::NoKeys));
        };
        let mut documents = SignatureDocuments::default();
        let mut fetch = |request: &Request| {
            let found = fetch_document(client, request, by)?;
            found.iter().for_each(|bytes| documents.add(request.path(), bytes));
            Ok(found)
        };
        let artifact = artifact(self.digest)?;
        let mut found = match search(&artifact, signers.policy(), Timestamp::now(), &mut fetch) {
            Ok(_) => Ok(()),
            Err(SearchError::Fetch(error)) => return Err(error),
            Err(SearchError::Verify(error)) => Err(error),
        };
        if found.as_ref().is_err_and(needs_manifest) {
            documents.add(manifest_path(self.digest), &client.manifest(self.digest, by)?);
            found = self.search_in(signers, &documents);
        }
        found.map_err(|error| refuse(SignatureProblem::Artifact(Box::new(error))))?;
        self.store.write(&self.place, self.digest, &documents);
        Ok(())
    }

    /// Searches documents that were fetched before.
    fn search_in(
        &self,
        signers: &ArtifactSigners,
        documents: &SignatureDocuments,
    ) -> Result<(), VerifyError> {
        let nothing = || VerifyError::NotFound { artifact: self.digest.to_string().into() };
        let artifact = artifact(self.digest).map_err(|_| nothing())?;
        let artifact = match documents.get(&manifest_path(self.digest)) {
            Some(manifest) => artifact.with_manifest(manifest).map_err(|_| nothing())?,
            None => artifact,
        };
        let mut fetch = |request: &Request| Ok::<_, Infallible>(documents.get(&request.path()).cloned());
        match search(&artifact, signers.policy(), Timestamp::now(), &mut fetch) {
            Ok(_) => Ok(()),
            Err(SearchError::Verify(error)) => Err(error),
            Err(SearchError::Fetch(error)) => match error {},
        }
    }
}

fn artifact(digest: Digest) -> Result<Artifact, Error> {
    Artifact::new(&digest.to_string()).map_err(|_| Error::Stopped)
}

fn manifest_path(digest: Digest) -> String {
    Request::Manifest(digest.to_string().into()).path()
}

/// True if a signature is over the bytes of the manifest.
fn needs_manifest(error: &VerifyError) -> bool {
    match error {
        VerifyError::Refused { refusals, .. } => {
            refusals.iter().any(|refusal| refusal.reason == Reason::ManifestUnread)
        }
        VerifyError::NotFound { .. } => false,
    }
}

/// Fetches a document; none if the registry does not have it, or does not know such requests.
fn fetch_document(
    client: &mut RegistryClient,
    request: &Request,
    by: Instant,
) -> Result<Option<Vec<u8>>, Error> {
    const WHAT: &str = "bytes of a signature";
    let path = format!("/{}", request.path());
    let answer = client.ask(Method::GET, &path, request.accept(), by)?;
    match (answer.http.status, request) {
        // Registries before version 1.1 of the specification have no list of referrers.
        (404 | 410, _) | (400 | 405 | 406 | 501, Request::Referrers(_)) => Ok(None),
        _ => client.body(answer, "signature", MAX_DOCUMENT_BYTES as u64, WHAT).map(Some),
    }
}
