//! Errors for people, and the bounds on reading.
//!
//! In: findings about one signature. Out: [`VerifyError`], which names the artifact, each signature
//! and the reason of its refusal.

use std::fmt;

use jiff::Timestamp;

/// Largest document, in bytes: a bundle, payload, manifest, list of referrers, or trust root.
pub const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;

/// Most signatures of one artifact.
pub const MAX_SIGNATURES: usize = 50;

/// Most keys or identities of a policy.
pub const MAX_KEYS: usize = 64;

/// Most certificates and logs of one kind in a trust root.
pub const MAX_CERTIFICATES: usize = 64;

/// Most log entries of one signature.
pub const MAX_LOG_ENTRIES: usize = 8;

/// Most hashes in the proof of one log entry: a log of 2^63 entries has this many.
pub const MAX_PROOF_HASHES: usize = 63;

/// Most signed timestamps of one signature and of one certificate, and certificates in a timestamp.
pub const MAX_TIMESTAMPS: usize = 8;

/// Longest text from a document in a message.
const MAX_SHOWN_CHARS: usize = 200;
/// Most refusals in a message.
const MAX_SHOWN_REFUSALS: usize = 5;

/// The reason why no signature of an artifact is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyError {
    /// There is no signature.
    NotFound {
        /// Digest of the artifact.
        artifact: Box<str>,
    },
    /// There are signatures, and each is refused.
    Refused {
        /// Digest of the artifact.
        artifact: Box<str>,
        /// A refusal for each signature.
        refusals: Vec<Refusal>,
    },
}

/// The refusal of one signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{document}: {reason}")]
pub struct Refusal {
    /// The document, such as `bundle 1`.
    pub document: Box<str>,
    /// The reason.
    pub reason: Reason,
}

/// The reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The document does not have the form of a signature.
    #[error("it cannot be read: {0}")]
    Malformed(Box<str>),
    /// The document is a statement, but no signature.
    #[error("it is an attestation of type {0}, not a signature by `cosign sign`")]
    Attestation(Box<str>),
    /// The signature is of another artifact.
    #[error("it is valid, but a signature of {0}: it was copied from another artifact")]
    OtherArtifact(Box<str>),
    /// A signature over the manifest's bytes, which the caller did not pass.
    #[error("it is over the bytes of the manifest, which were not read")]
    ManifestUnread,
    /// No key of the policy fits.
    #[error("it was not made by {expected}{}", seen_key(.seen))]
    Key {
        /// The keys of the policy.
        expected: Box<str>,
        /// The key that the signature names.
        seen: Option<Box<str>>,
    },
    /// The signature names a key of the policy, but was not made by it.
    #[error(
        "it names the key {0}, which did not make it: its contents were changed, or it is of the kind Ed25519ph, which cosign 3 makes but does not verify"
    )]
    Unfit(Box<str>),
    /// The signature was made by a key, but an identity is expected.
    #[error("it has no certificate{}; expected {expected}", seen_key(.seen))]
    NoCertificate {
        /// The identities of the policy.
        expected: Box<str>,
        /// The key that the signature names.
        seen: Option<Box<str>>,
    },
    /// The certificate is of another identity.
    #[error("it was made by {subject} of {issuer}; expected {expected}")]
    Identity {
        /// The subjects of the certificate.
        subject: Box<str>,
        /// The issuer of the identity.
        issuer: Box<str>,
        /// The identities of the policy.
        expected: Box<str>,
    },
    /// The signature does not fit the certificate's key.
    #[error("the signature does not fit the payload and the key of its certificate")]
    Signature,
    /// The certificate was not issued by an authority of the trust root.
    #[error(
        "its certificate, which claims {subject}, was not issued by an authority of the trust root: {why}"
    )]
    Authority {
        /// The subjects of the certificate.
        subject: Box<str>,
        /// The reason.
        why: Box<str>,
    },
    /// The signature is later than its certificate.
    #[error("its certificate expired at {until}, and the signature was made at {signed}")]
    Expired {
        /// The end of the certificate.
        until: Timestamp,
        /// The time of the signature.
        signed: Timestamp,
    },
    /// The signature is earlier than its certificate.
    #[error("its certificate is valid from {from}, and the signature was made at {signed}")]
    NotYetValid {
        /// The beginning of the certificate.
        from: Timestamp,
        /// The time of the signature.
        signed: Timestamp,
    },
    /// The time of the signature has not come yet.
    #[error("it was made at {signed}, which is in the future; now is {now}: compare the clocks")]
    Future {
        /// The time of the signature.
        signed: Timestamp,
        /// The time of the verification.
        now: Timestamp,
    },
    /// The certificate is in no certificate log.
    #[error("its certificate is in no certificate log of the trust root: {0}")]
    CertificateLog(&'static str),
    /// The signature is in no log.
    #[error("it has no entry in a log of the trust root")]
    NoLogEntry,
    /// The entry of the log is not valid.
    #[error("its log entry is not valid: {0}")]
    LogEntry(&'static str),
    /// The entry of the log is of another signature.
    #[error("its log entry is of another {0}: the two do not belong together")]
    OtherLogEntry(&'static str),
    /// The signed timestamp is not valid.
    #[error("its signed timestamp is not valid: {0}")]
    SignedTimestamp(&'static str),
    /// Nothing says when the signature was made.
    #[error("nothing proves when it was made: neither a log entry with a time nor a signed timestamp")]
    NoTime,
}

fn seen_key(seen: &Option<Box<str>>) -> String {
    seen.as_ref().map_or_else(String::new, |seen| format!("; it names the key {seen}"))
}

impl std::error::Error for VerifyError {}

impl fmt::Display for VerifyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { artifact } => write!(out, "{artifact} is not signed: no signature was found"),
            Self::Refused { artifact, refusals } => {
                write!(out, "{artifact} has no signature that is accepted")?;
                for (index, refusal) in refusals.iter().take(MAX_SHOWN_REFUSALS).enumerate() {
                    write!(out, "{} {refusal}", if index == 0 { ":" } else { ";" })?;
                }
                match refusals.len().saturating_sub(MAX_SHOWN_REFUSALS) {
                    0 => Ok(()),
                    more => write!(out, "; and {more} more"),
                }
            }
        }
    }
}

/// Returns a refusal because of the form of a document.
pub(crate) fn malformed(what: impl Into<Box<str>>) -> Reason {
    Reason::Malformed(what.into())
}

/// Returns a text from a document for a message: on one line, and of bounded length.
pub(crate) fn shown(text: &str) -> Box<str> {
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        match character {
            _ if count == MAX_SHOWN_CHARS => {
                out.push('…');
                break;
            }
            _ if character.is_control() => out.extend(character.escape_default()),
            _ => out.push(character),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_lists_the_refusals_and_is_bounded() {
        let refusal = Refusal { document: "bundle 1".into(), reason: Reason::Signature };
        let error = VerifyError::Refused { artifact: "sha256:00".into(), refusals: vec![refusal; 7] };
        let text = error.to_string();
        assert!(
            text.starts_with("sha256:00 has no signature that is accepted: bundle 1: the signature"),
            "{text}"
        );
        assert!(text.ends_with("; and 2 more"), "{text}");
    }

    #[test]
    fn texts_of_documents_are_bounded_and_on_one_line() {
        assert_eq!(&*shown("a\nb\u{7}"), "a\\nb\\u{7}");
        assert_eq!(shown(&"é".repeat(300)).chars().count(), MAX_SHOWN_CHARS + 1);
    }
}
