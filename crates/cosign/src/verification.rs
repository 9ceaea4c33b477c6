//! Verifies the signatures of an artifact by a policy.
//!
//! In: an artifact, its documents, a policy and the time.
//! Out: the first signer that the policy accepts, or each document with the reason of its refusal.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::artifact::Artifact;
use crate::bundle::read_bundle;
use crate::certificate::{CODE_SIGNING, Certificate};
use crate::error::{MAX_KEYS, MAX_SIGNATURES, Reason, Refusal, VerifyError, malformed, shown};
use crate::identity::Identity;
use crate::key::PublicKey;
use crate::material::{Material, Witnesses};
use crate::sct::verify_promises;
use crate::simple_signing::read_simple_signing;
use crate::timestamp::verify_timestamp;
use crate::trust_root::TrustRoot;

/// Largest difference between the clock of a log or authority and ours.
const MAX_CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_mins(10);

/// The annotations of a layer.
pub type Annotations = BTreeMap<String, String>;

/// A document with a signature.
#[derive(Debug, Clone)]
pub enum Document {
    /// A bundle of Sigstore, by version 3 of cosign.
    Bundle(Vec<u8>),
    /// A payload and the annotations of its layer, by version 2 of cosign.
    SimpleSigning {
        /// The payload.
        payload: Vec<u8>,
        /// The annotations.
        annotations: Annotations,
    },
}

/// The signers that are accepted.
#[derive(Debug, Clone)]
pub enum Policy {
    /// Owners of these keys. Logs and times are not looked at.
    Keys(Vec<PublicKey>),
    /// Identities, by certificates of a trust root.
    Keyless {
        /// The identities; one of them must fit.
        identities: Vec<Identity>,
        /// The trust root.
        trust_root: TrustRoot,
    },
}

/// A signature that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The signer.
    pub signer: Signer,
    /// The time of the signature, as a log or timestamp authority vouches for it.
    pub time: Option<Timestamp>,
}

/// The signer of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signer {
    /// The owner of a key.
    Key {
        /// SHA-256 of the key.
        fingerprint: Box<str>,
    },
    /// An identity.
    Identity {
        /// The service that vouched for the subject.
        issuer: Box<str>,
        /// The subject.
        subject: Box<str>,
    },
}

impl fmt::Display for Signer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { fingerprint } => write!(out, "the key {fingerprint}"),
            Self::Identity { issuer, subject } => write!(out, "{subject} of {issuer}"),
        }
    }
}

/// Verifies that one of the documents is a signature of the artifact that the policy accepts.
pub fn verify(
    artifact: &Artifact,
    documents: &[Document],
    policy: &Policy,
    now: Timestamp,
) -> Result<Verified, VerifyError> {
    let mut refusals = Vec::new();
    for (index, document) in documents.iter().take(MAX_SIGNATURES).enumerate() {
        match verify_document(artifact, document, policy, now) {
            Ok(verified) => return Ok(verified),
            Err(reason) => refusals.push(Refusal { document: name(document, index), reason }),
        }
    }
    if documents.len() > MAX_SIGNATURES {
        refusals.push(too_many());
    }
    Err(refused(artifact, refusals))
}

/// Returns the name of a document for a message.
pub(crate) fn name(document: &Document, index: usize) -> Box<str> {
    match document {
        Document::Bundle(_) => format!("bundle {}", index + 1).into(),
        Document::SimpleSigning { .. } => format!("signature {}", index + 1).into(),
    }
}

/// Returns the refusal of signatures beyond the bound.
pub(crate) fn too_many() -> Refusal {
    Refusal {
        document: "further signatures".into(),
        reason: malformed(format!("at most {MAX_SIGNATURES} are read")),
    }
}

/// Returns the error for refusals, of which there may be none.
pub(crate) fn refused(artifact: &Artifact, refusals: Vec<Refusal>) -> VerifyError {
    let artifact = artifact.digest().into();
    match refusals.is_empty() {
        true => VerifyError::NotFound { artifact },
        false => VerifyError::Refused { artifact, refusals },
    }
}

/// Verifies one document.
pub(crate) fn verify_document(
    artifact: &Artifact,
    document: &Document,
    policy: &Policy,
    now: Timestamp,
) -> Result<Verified, Reason> {
    let material = match document {
        Document::Bundle(bundle) => read_bundle(bundle, artifact)?,
        Document::SimpleSigning { payload, annotations } => read_simple_signing(payload, annotations)?,
    };
    match policy {
        Policy::Keys(keys) => by_key(artifact, &material, keys),
        Policy::Keyless { identities, trust_root } => {
            by_identity(artifact, &material, identities, trust_root, now)
        }
    }
}

/// Verifies a signature by one of some keys. The log is ignored, as Flux does.
fn by_key(artifact: &Artifact, material: &Material, keys: &[PublicKey]) -> Result<Verified, Reason> {
    let keys = keys.get(..MAX_KEYS).unwrap_or(keys);
    let Some(key) = keys.iter().find(|key| key.verifies(&material.message, &material.signature)) else {
        let names: Vec<_> = keys.iter().map(PublicKey::fingerprint).collect();
        return Err(match &material.hint {
            Some(hint) if names.iter().any(|name| **name == **hint) => Reason::Unfit(hint.clone()),
            hint => {
                let names: Vec<_> = names.iter().map(|name| format!("the key {name}")).collect();
                Reason::Key { expected: one_of(&names), seen: hint.clone() }
            }
        });
    };
    material.verify_claim(artifact)?;
    Ok(Verified { signer: Signer::Key { fingerprint: key.fingerprint().into() }, time: None })
}

/// Verifies a signature by one of some identities.
fn by_identity(
    artifact: &Artifact,
    material: &Material,
    identities: &[Identity],
    trust_root: &TrustRoot,
    now: Timestamp,
) -> Result<Verified, Reason> {
    let identities = identities.get(..MAX_KEYS).unwrap_or(identities);
    let expected = || one_of(&identities.iter().map(Identity::to_string).collect::<Vec<_>>());
    let witnesses = material.witnesses.as_ref().map_err(Clone::clone)?;
    let Some(certificate) = &witnesses.certificate else {
        return Err(Reason::NoCertificate { expected: expected(), seen: material.hint.clone() });
    };
    let certificate = Certificate::read(certificate)?;
    let key = PublicKey::from_der(certificate.key);
    if !key.is_some_and(|key| key.verifies(&material.message, &material.signature)) {
        return Err(Reason::Signature);
    }
    let times = proven_times(material, witnesses, &certificate, trust_root)?;
    for time in &times {
        if *time > now.saturating_add(MAX_CLOCK_DIFFERENCE).unwrap_or(now) {
            return Err(Reason::Future { signed: *time, now });
        }
        let issuer = certificate.verify(&trust_root.authorities, CODE_SIGNING, *time)?;
        if !trust_root.certificate_logs.is_empty() {
            verify_promises(&certificate, &issuer, &trust_root.certificate_logs)?;
        }
    }
    let (issuer, subjects) = (certificate.issuer(), certificate.subjects());
    if !identities.iter().any(|identity| identity.fits(&issuer, &subjects)) {
        let issuer = if issuer.is_empty() { "no issuer" } else { &issuer };
        let (subject, issuer) = (certificate.shown_subject(), shown(issuer));
        return Err(Reason::Identity { subject, issuer, expected: expected() });
    }
    material.verify_claim(artifact)?;
    let signer = Signer::Identity { issuer: shown(&issuer), subject: certificate.shown_subject() };
    Ok(Verified { signer, time: times.into_iter().min() })
}

/// Returns the times at which logs and timestamp authorities saw the signature; at least one.
fn proven_times(
    material: &Material,
    witnesses: &Witnesses,
    certificate: &Certificate<'_>,
    trust_root: &TrustRoot,
) -> Result<Vec<Timestamp>, Reason> {
    let mut logged = Vec::new();
    for entry in &witnesses.entries {
        logged.extend(entry.verify(&trust_root.logs, material, certificate)?);
    }
    if logged.is_empty() && !trust_root.logs.is_empty() {
        return Err(Reason::NoLogEntry);
    }
    let mut times: Vec<_> = logged.iter().filter_map(|logged| logged.time).collect();
    let mut refusal = Reason::NoTime;
    for timestamp in &witnesses.timestamps {
        match verify_timestamp(timestamp, &material.signature, &trust_root.timestamp_authorities) {
            Ok(time) => times.push(time),
            // One of an authority that is not in the trust root says nothing.
            Err(reason) => refusal = reason,
        }
    }
    // An entry without a time is as good as the log was at the other times.
    let in_period = |time: &Timestamp| logged.iter().all(|logged| logged.period.holds(*time));
    match times.iter().all(in_period) {
        _ if times.is_empty() => Err(refusal),
        true => Ok(times),
        false => Err(Reason::LogEntry("the trust root does not trust the log at the time of the signature")),
    }
}

/// Returns alternatives for a message.
fn one_of(names: &[String]) -> Box<str> {
    match names {
        [] => "nobody: the policy is empty".into(),
        names => names.join(" or ").into(),
    }
}
