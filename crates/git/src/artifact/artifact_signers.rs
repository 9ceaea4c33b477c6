//! Signers that are trusted with artifacts: the owners of public keys, or identities that a trust
//! root proves.
//!
//! In: the entries of a Secret; or issuers and subjects, and the file of a trust root.
//! Out: [`ArtifactSigners`], as a part of [`TrustedKeys`].

use std::fmt;
use std::sync::Arc;

use moorline_cosign::{Identity, MAX_KEYS, Pattern, Policy, PublicKey, TrustRoot};

use super::super::chart::Digest;
use super::super::signature::{TrustedKeys, TrustedKeysError};

/// Ending of the entries with public keys. Others, such as the private key that cosign puts beside
/// its public key, are not read.
const KEY: &str = ".pub";

/// Signers of artifacts.
#[derive(Clone)]
pub(crate) struct ArtifactSigners {
    policy: Arc<Policy>,
    /// Hash of everything that the policy was read from.
    origin: Digest,
}

impl ArtifactSigners {
    fn new(policy: Policy, origin: &[u8]) -> Self {
        Self { policy: Arc::new(policy), origin: Digest::hash(origin) }
    }

    /// Returns the policy for the verifier.
    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }
}

impl TrustedKeys {
    /// Reads the public keys of artifacts in a Secret: each entry whose name ends with `.pub`.
    pub fn of_artifacts<'a>(
        data: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Self, TrustedKeysError> {
        let mut entries: Vec<_> = data.into_iter().filter(|(entry, _)| entry.ends_with(KEY)).collect();
        entries.sort();
        if entries.is_empty() {
            return Err(TrustedKeysError::NoArtifactKeys);
        }
        if entries.len() > MAX_KEYS {
            return Err(TrustedKeysError::TooMany(MAX_KEYS));
        }
        let (mut keys, mut origin) = (Vec::new(), Vec::new());
        for (entry, pem) in entries {
            let refuse = |error: moorline_cosign::KeyError| TrustedKeysError::Value {
                key: entry.to_owned(),
                problem: format!("is no key that can be used: {error}"),
            };
            keys.push(PublicKey::from_pem(pem).map_err(refuse)?);
            origin.extend_from_slice(Digest::hash(pem).to_string().as_bytes());
        }
        Ok(Self::with_artifact_signers(ArtifactSigners::new(Policy::Keys(keys), &origin)))
    }

    /// Trusts identities, of which an issuer and a subject are given, by the trust root in a file
    /// `trusted_root.json`.
    pub fn of_identities<'a>(
        identities: impl IntoIterator<Item = (&'a str, &'a str)>,
        trust_root: &[u8],
    ) -> Result<Self, TrustedKeysError> {
        let mut origin = Digest::hash(trust_root).to_string();
        let identities: Vec<_> = identities
            .into_iter()
            .map(|(issuer, subject)| {
                origin.push_str(&format!("\n{issuer}\n{subject}"));
                Identity { issuer: Pattern::text(issuer), subject: Pattern::text(subject) }
            })
            .collect();
        if identities.len() > MAX_KEYS {
            return Err(TrustedKeysError::TooMany(MAX_KEYS));
        }
        let trust_root = TrustRoot::read(trust_root)
            .map_err(|error| TrustedKeysError::TrustRoot(error.to_string().into()))?;
        let policy = Policy::Keyless { identities, trust_root };
        Ok(Self::with_artifact_signers(ArtifactSigners::new(policy, origin.as_bytes())))
    }
}

impl PartialEq for ArtifactSigners {
    fn eq(&self, other: &Self) -> bool {
        self.origin == other.origin
    }
}

impl fmt::Debug for ArtifactSigners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArtifactSigners").field("origin", &self.origin).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAES5AHMeKXHVxt2gJrGuVK0WIltXYJ
1tzIHrFXldVb89AZBNXPNjcygPg+f857/hTwxNnDdLHJaq7amo1GjIYaZQ==
-----END PUBLIC KEY-----
";

    fn keys(entries: &[(&str, &str)]) -> Result<TrustedKeys, String> {
        let entries = entries.iter().map(|(entry, text)| (*entry, text.as_bytes()));
        TrustedKeys::of_artifacts(entries).map_err(|error| error.to_string())
    }

    #[test]
    fn entries_that_end_with_pub_are_public_keys_and_others_are_not_read() {
        let ann = keys(&[("ann.pub", ANN)]).unwrap();
        assert_eq!(keys(&[("cosign.key", "planted"), ("cosign.pub", ANN)]).unwrap(), ann);
        assert_ne!(ann, TrustedKeys::default());
        for (entries, part) in [
            (&[("cosign.key", "planted")][..], "no entry that ends with .pub"),
            (&[("ann.pub", "planted")], "ann.pub is no key that can be used: a public key must be in PEM"),
            (&[("ann.pub", ANN), ("bob.pub", "")], "bob.pub is no key"),
        ] {
            let problem = keys(entries).unwrap_err();
            assert!(problem.contains(part) && !problem.contains("planted"), "{problem}");
        }
        let many: Vec<_> = (0..=MAX_KEYS).map(|at| (format!("{at}.pub"), ANN)).collect();
        let many: Vec<_> = many.iter().map(|(entry, text)| (entry.as_str(), *text)).collect();
        assert!(keys(&many).unwrap_err().contains("more than 64"));
    }

    #[test]
    fn a_trust_root_that_cannot_be_read_is_refused() {
        let read = |file: &[u8]| TrustedKeys::of_identities([("i", "s")], file).map(drop);
        for file in [&b"planted"[..], b"{}", b""] {
            let problem = read(file).unwrap_err().to_string();
            assert!(problem.contains("trusted_root.json") && !problem.contains("planted"), "{problem}");
        }
    }
}
