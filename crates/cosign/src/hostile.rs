//! Entry points for fuzzing the readers of untrusted input.
//!
//! In: any bytes.
//! Out: nothing. A reader may refuse its input, but must neither panic nor run without end. The
//! fuzz target and its test call these functions; the daemon does not.

use jiff::Timestamp;

use crate::artifact::Artifact;
use crate::bundle::read_bundle;
use crate::certificate::{CODE_SIGNING, Certificate};
use crate::discovery::{Request, search};
use crate::error::Reason;
use crate::identity::{Identity, Pattern};
use crate::key::PublicKey;
use crate::log_entry::LogEntry;
use crate::sct::verify_promises;
use crate::timestamp::verify_timestamp;
use crate::trust_root::TrustRoot;
use crate::verification::Policy;

/// Digest of no bytes.
const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Reads bytes as each kind of document, and as all answers of a registry. Returns true if they are
/// one of the kinds.
pub fn document(bytes: &[u8]) -> bool {
    let entry = LogEntry::of_annotation(&String::from_utf8_lossy(bytes));
    let stamp = verify_timestamp(bytes, bytes, &[]);
    let is_stamp = stamp.is_err_and(|reason| reason == Reason::SignedTimestamp("it is of another signature"));
    let certificate = Certificate::read(bytes).map(|certificate| read_certificate(&certificate));
    let key = PublicKey::from_pem(bytes).ok().or_else(|| PublicKey::from_der(bytes));
    let bundle = Artifact::new(EMPTY).ok().and_then(|artifact| read_bundle(bytes, &artifact).ok());
    let trust_root = TrustRoot::read(bytes);
    let is_text = entry.is_ok() || bundle.is_some() || trust_root.is_ok();
    let is_document = is_text || is_stamp || certificate.is_ok() || key.is_some();
    let identity = Identity { issuer: Pattern::text("a"), subject: Pattern::text("b") };
    let keyless = trust_root.map(|trust_root| Policy::Keyless { identities: vec![identity], trust_root });
    for policy in [Ok(Policy::Keys(Vec::new())), keyless].into_iter().flatten() {
        if let Ok(artifact) = Artifact::new(EMPTY) {
            let mut fetch = |_: &Request| Ok::<_, ()>(Some(bytes.to_vec()));
            drop(search(&artifact, &policy, Timestamp::UNIX_EPOCH, &mut fetch));
        }
    }
    is_document
}

/// Reads all fields of a certificate.
fn read_certificate(certificate: &Certificate<'_>) {
    drop((certificate.issuer(), certificate.subjects(), certificate.body_for_logs()));
    drop(verify_promises(certificate, certificate.key, &[]));
    drop(certificate.verify(&[], CODE_SIGNING, Timestamp::UNIX_EPOCH));
}
