//! Finds the signatures of an artifact in its repository, in the order of cosign.
//!
//! In: an artifact, a policy, and a function that fetches what a [`Request`] names.
//! Out: the first signature that is accepted, or an error. Bundles are looked for first: by the
//! registry's list of referrers or, where it has none, by the tag that replaces the list. Then come
//! the signatures of version 2, by their tag. What has a digest is compared with it.

use jiff::Timestamp;
use serde_json::Value;

use crate::artifact::{Artifact, sha256_digest};
use crate::error::{
    MAX_CERTIFICATES, MAX_DOCUMENT_BYTES, MAX_SIGNATURES, Reason, Refusal, VerifyError, malformed, shown,
};
use crate::json;
use crate::material::SIGNATURE_PREDICATE;
use crate::simple_signing::SIGNATURE;
use crate::verification::{
    Annotations, Document, Policy, Verified, name, refused, too_many, verify_document,
};

/// Most items of a list of referrers, of all types.
const MAX_REFERRERS: usize = 10_000;
/// Types of bundles begin like this.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// Registries that do not know `artifactType` show the type of the empty configuration.
const UNKNOWN_TYPES: [&str; 2] = ["", "application/vnd.oci.empty.v1+json"];
/// Media types of lists, and of manifests or lists.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json";
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const PREDICATE: &str = "dev.sigstore.bundle.predicateType";

/// Fetches a document; `None` if the registry does not have it.
pub type Fetch<'a, E> = dyn FnMut(&Request) -> Result<Option<Vec<u8>>, E> + 'a;

/// A document of the artifact's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The list of referrers of a digest.
    Referrers(Box<str>),
    /// A manifest, by tag or digest.
    Manifest(Box<str>),
    /// A blob, by digest.
    Blob(Box<str>),
}

impl Request {
    /// The path below `/v2/REPOSITORY/`.
    pub fn path(&self) -> String {
        match self {
            Self::Referrers(digest) => format!("referrers/{digest}"),
            Self::Manifest(reference) => format!("manifests/{reference}"),
            Self::Blob(digest) => format!("blobs/{digest}"),
        }
    }

    /// The media types to ask for.
    pub fn accept(&self) -> &'static str {
        match self {
            Self::Referrers(_) => INDEX,
            Self::Manifest(_) => MANIFESTS,
            Self::Blob(_) => "*/*",
        }
    }
}

/// The reason why a search found no signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError<E> {
    /// The registry could not be asked.
    #[error(transparent)]
    Fetch(#[from] E),
    /// No signature is accepted.
    #[error("{0}")]
    Verify(VerifyError),
}

/// Searches for a signature of an artifact that a policy accepts.
pub fn search<'a, E>(
    artifact: &'a Artifact,
    policy: &'a Policy,
    now: Timestamp,
    fetch: &'a mut Fetch<'a, E>,
) -> Result<Verified, SearchError<E>> {
    let mut search = Search { artifact, policy, now, fetch, looked_at: 0, refusals: Vec::new() };
    let verified = match search.bundles()? {
        Some(verified) => Some(verified),
        None => search.simple_signings()?,
    };
    verified.ok_or_else(|| SearchError::Verify(refused(artifact, search.refusals)))
}

/// A search that is under way.
struct Search<'a, E> {
    artifact: &'a Artifact,
    policy: &'a Policy,
    now: Timestamp,
    fetch: &'a mut Fetch<'a, E>,
    /// Number of documents so far, signatures or not.
    looked_at: usize,
    refusals: Vec<Refusal>,
}

/// A document or `None`, an error of the registry, or a refusal.
type Fetched<E, T> = Result<Result<T, Reason>, E>;

impl<E> Search<'_, E> {
    /// Looks at the bundles.
    fn bundles(&mut self) -> Result<Option<Verified>, E> {
        let digest = self.artifact.digest();
        let list = match (self.fetch)(&Request::Referrers(digest.into()))? {
            Some(list) => Some(list),
            None => (self.fetch)(&Request::Manifest(tag(digest, "")))?,
        };
        let Some(list) = list else { return Ok(None) };
        let referrers = match read_referrers(&list) {
            Ok(referrers) => referrers,
            Err(reason) => {
                self.refusals.push(Refusal { document: "the list of referrers".into(), reason });
                return Ok(None);
            }
        };
        for referrer in referrers {
            if self.is_full() {
                break;
            }
            let document = match referrer {
                Ok(digest) => self.bundle(&digest)?,
                Err(reason) => Err(reason),
            };
            if let Some(verified) = self.verify(document.map(|bundle| bundle.map(Document::Bundle)), "bundle")
            {
                return Ok(Some(verified));
            }
        }
        Ok(None)
    }

    /// Fetches the bundle of a referrer; `None` if it is something else.
    fn bundle(&mut self, digest: &str) -> Fetched<E, Option<Vec<u8>>> {
        let manifest = match self.fetch_exact(Request::Manifest(digest.into()), digest)? {
            Ok(manifest) => json::read(&manifest),
            Err(reason) => Err(reason),
        };
        let layer = manifest.and_then(|manifest| bundle_layer(&manifest));
        match layer {
            Ok(Some(layer)) => Ok(self.fetch_exact(Request::Blob((&*layer).into()), &layer)?.map(Some)),
            Ok(None) => Ok(Ok(None)),
            Err(reason) => Ok(Err(reason)),
        }
    }

    /// Looks at the signatures of version 2.
    fn simple_signings(&mut self) -> Result<Option<Verified>, E> {
        let Some(manifest) = (self.fetch)(&Request::Manifest(tag(self.artifact.digest(), ".sig")))? else {
            return Ok(None);
        };
        let layers = match json::read(&manifest).and_then(|manifest| signature_layers(&manifest)) {
            Ok(layers) => layers,
            Err(reason) => {
                self.refusals.push(Refusal { document: "the manifest of signatures".into(), reason });
                return Ok(None);
            }
        };
        // Signatures by several keys share a payload.
        let mut last: Option<(String, Vec<u8>)> = None;
        for (digest, annotations) in layers {
            if self.is_full() {
                break;
            }
            let payload = match last.take().filter(|(of, _)| *of == digest) {
                Some((_, payload)) => Ok(payload),
                None => self.fetch_exact(Request::Blob((&*digest).into()), &digest)?,
            };
            last = payload.as_ref().ok().map(|payload| (digest, payload.clone()));
            let document = payload.map(|payload| Some(Document::SimpleSigning { payload, annotations }));
            if let Some(verified) = self.verify(document, "signature") {
                return Ok(Some(verified));
            }
        }
        Ok(None)
    }

    /// Fetches something by its digest.
    fn fetch_exact(&mut self, request: Request, digest: &str) -> Fetched<E, Vec<u8>> {
        Ok(match (self.fetch)(&request)? {
            Some(bytes) if sha256_digest(&bytes) == digest => Ok(bytes),
            Some(_) => Err(malformed(format!("the registry sent other bytes for {}", shown(digest)))),
            None => Err(malformed(format!("the registry does not have {}", shown(digest)))),
        })
    }

    /// Verifies a document, and records a refusal.
    fn verify(&mut self, document: Result<Option<Document>, Reason>, kind: &str) -> Option<Verified> {
        let index = self.looked_at;
        self.looked_at += 1;
        let (name, reason) = match document {
            Ok(None) => return None,
            Err(reason) => (format!("{kind} {}", index + 1).into(), reason),
            Ok(Some(document)) => match verify_document(self.artifact, &document, self.policy, self.now) {
                Ok(verified) => return Some(verified),
                Err(reason) => (name(&document, index), reason),
            },
        };
        self.refusals.push(Refusal { document: name, reason });
        None
    }

    /// True if no more documents are looked at.
    fn is_full(&mut self) -> bool {
        let is_full = self.looked_at >= MAX_SIGNATURES;
        if is_full && self.refusals.last() != Some(&too_many()) {
            self.refusals.push(too_many());
        }
        is_full
    }
}

/// Returns the tag that belongs to a digest.
fn tag(digest: &str, end: &str) -> Box<str> {
    format!("{}{end}", digest.replace(':', "-")).into()
}

/// Reads a list of referrers: the digest of each that may have a bundle, or the reason why it is no
/// signature.
fn read_referrers(list: &[u8]) -> Result<Vec<Result<String, Reason>>, Reason> {
    let list = json::read(list)?;
    let mut referrers = Vec::new();
    for referrer in json::list(&list, "/manifests", MAX_REFERRERS)? {
        let kind = json::field(referrer, "/artifactType").and_then(Value::as_str).unwrap_or_default();
        let predicate =
            referrer.get("annotations").and_then(|all| all.get(PREDICATE)).and_then(Value::as_str);
        if kind.starts_with(BUNDLE) || UNKNOWN_TYPES.contains(&kind) {
            referrers.push(match predicate {
                Some(other) if other != SIGNATURE_PREDICATE => Err(Reason::Attestation(shown(other))),
                _ => digest_of(referrer),
            });
        }
    }
    // Refusals last, so that many attestations hide no signature.
    referrers.sort_by_key(Result::is_err);
    Ok(referrers)
}

/// Returns the digest of the bundle that a manifest has as its only layer.
fn bundle_layer(manifest: &Value) -> Result<Option<String>, Reason> {
    match json::list(manifest, "/layers", MAX_CERTIFICATES)? {
        [layer] if json::text(layer, "/mediaType")?.starts_with(BUNDLE) => Ok(Some(blob(layer)?)),
        _ => Ok(None),
    }
}

/// Returns the digest and the annotations of each signature in a manifest of version 2.
fn signature_layers(manifest: &Value) -> Result<Vec<(String, Annotations)>, Reason> {
    let mut layers = Vec::new();
    for layer in json::list(manifest, "/layers", MAX_REFERRERS)? {
        let annotations = layer.get("annotations").and_then(Value::as_object).into_iter().flatten();
        let annotations: Annotations =
            annotations.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect();
        if json::text(layer, "/mediaType")? == SIMPLE_SIGNING && annotations.contains_key(SIGNATURE) {
            layers.push((blob(layer)?, annotations));
        }
    }
    Ok(layers)
}

/// Returns the digest of a layer that is not too large.
fn blob(layer: &Value) -> Result<String, Reason> {
    let size = json::number(layer, "/size")?;
    match usize::try_from(size) {
        Ok(0..=MAX_DOCUMENT_BYTES) => digest_of(layer),
        _ => Err(malformed(format!("it has {size} bytes, and at most {MAX_DOCUMENT_BYTES} are read"))),
    }
}

/// Returns the digest in a descriptor. Other texts could lead to other places of the registry.
fn digest_of(descriptor: &Value) -> Result<String, Reason> {
    let digest = json::text(descriptor, "/digest")?;
    Artifact::new(digest).map_err(|error| malformed(error.to_string()))?;
    Ok(digest.to_owned())
}
