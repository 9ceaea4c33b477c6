//! One signature with all that came with it, whichever format it had.
//!
//! In: a document that was read. Out: [`Material`], and the artifact that it claims to be of.

use serde_json::Value;

use crate::artifact::{Artifact, sha256_digest};
use crate::error::{MAX_CERTIFICATES, Reason, malformed, shown};
use crate::json;
use crate::log_entry::LogEntry;

/// Type of the statement that version 3 of cosign signs for an artifact.
pub(crate) const SIGNATURE_PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";
/// Type of the payload that version 2 of cosign signs for an artifact.
const SIMPLE_SIGNING_TYPE: &str = "cosign container image signature";

/// One signature.
#[derive(Debug)]
pub(crate) struct Material {
    pub(crate) signature: Vec<u8>,
    /// The bytes that were signed.
    pub(crate) message: Vec<u8>,
    /// The statement in them.
    pub(crate) payload: Vec<u8>,
    pub(crate) claim: Claim,
    /// The key that the signature names.
    pub(crate) hint: Option<Box<str>>,
    /// Read with the signature, and not looked at for one by a key.
    pub(crate) witnesses: Result<Witnesses, Reason>,
}

/// The documents that prove who signed, and when.
#[derive(Debug, Default)]
pub(crate) struct Witnesses {
    pub(crate) certificate: Option<Vec<u8>>,
    pub(crate) entries: Vec<LogEntry>,
    pub(crate) timestamps: Vec<Vec<u8>>,
}

/// The form in which a signature names its artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The payload of version 2 of cosign.
    SimpleSigning,
    /// A statement of in-toto.
    Statement,
    /// The manifest itself was signed.
    Manifest,
}

impl Material {
    /// Verifies that the payload, whose signature was verified, is of this artifact.
    pub(crate) fn verify_claim(&self, artifact: &Artifact) -> Result<(), Reason> {
        let signed = match self.claim {
            Claim::SimpleSigning => simple_signing(&self.payload)?,
            Claim::Statement => statement(&self.payload)?,
            Claim::Manifest => vec![sha256_digest(&self.payload)],
        };
        match signed.iter().any(|digest| *digest == artifact.digest()) {
            true => Ok(()),
            false => Err(Reason::OtherArtifact(shown(&signed.join(", ")))),
        }
    }
}

/// Returns the artifact of a payload of version 2 of cosign.
fn simple_signing(payload: &[u8]) -> Result<Vec<String>, Reason> {
    let payload = json::read(payload)?;
    let kind = json::text(&payload, "/critical/type")?;
    match kind == SIMPLE_SIGNING_TYPE {
        true => Ok(vec![json::text(&payload, "/critical/image/docker-manifest-digest")?.to_owned()]),
        false => Err(Reason::Attestation(shown(kind))),
    }
}

/// Returns the artifacts of a statement.
fn statement(payload: &[u8]) -> Result<Vec<String>, Reason> {
    let statement = json::read(payload)?;
    if !json::text(&statement, "/_type")?.starts_with("https://in-toto.io/Statement/") {
        return Err(malformed("/_type must be a statement of in-toto"));
    }
    let kind = json::text(&statement, "/predicateType")?;
    if kind != SIGNATURE_PREDICATE {
        return Err(Reason::Attestation(shown(kind)));
    }
    let digest = |subject: &Value| json::text(subject, "/digest/sha256").map(|hex| format!("sha256:{hex}"));
    let subjects = json::list(&statement, "/subject", MAX_CERTIFICATES)?;
    subjects.iter().map(digest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn claim(claim: Claim, payload: &str) -> Result<(), Reason> {
        let material = Material {
            signature: Vec::new(),
            message: Vec::new(),
            payload: payload.into(),
            claim,
            hint: None,
            witnesses: Ok(Witnesses::default()),
        };
        material.verify_claim(&Artifact::new(DIGEST).unwrap())
    }

    #[test]
    fn a_payload_names_its_artifact() {
        let simple = |kind: &str, digest: &str| {
            let payload = format!(
                r#"{{"critical":{{"type":"{kind}","image":{{"docker-manifest-digest":"{digest}"}}}}}}"#
            );
            claim(Claim::SimpleSigning, &payload)
        };
        assert_eq!(simple(SIMPLE_SIGNING_TYPE, DIGEST), Ok(()));
        assert_eq!(simple(SIMPLE_SIGNING_TYPE, "sha256:1"), Err(Reason::OtherArtifact("sha256:1".into())));
        assert_eq!(simple("x", DIGEST), Err(Reason::Attestation("x".into())));
        let stated = |kind: &str, predicate: &str, digest: &str| {
            let payload = format!(
                r#"{{"_type":"{kind}","predicateType":"{predicate}","subject":[{{"digest":{{"sha256":"{digest}"}}}}]}}"#
            );
            claim(Claim::Statement, &payload)
        };
        let kind = "https://in-toto.io/Statement/v1";
        assert_eq!(stated(kind, SIGNATURE_PREDICATE, &DIGEST[7..]), Ok(()));
        assert_eq!(stated(kind, SIGNATURE_PREDICATE, "1"), Err(Reason::OtherArtifact("sha256:1".into())));
        assert_eq!(
            stated(kind, "https://slsa.dev/provenance/v1", &DIGEST[7..]),
            Err(Reason::Attestation("https://slsa.dev/provenance/v1".into()))
        );
        assert!(matches!(stated("x", SIGNATURE_PREDICATE, &DIGEST[7..]), Err(Reason::Malformed(_))));
        assert_eq!(claim(Claim::Manifest, ""), Ok(()));
        assert!(matches!(claim(Claim::Manifest, "x"), Err(Reason::OtherArtifact(_))));
    }
}
