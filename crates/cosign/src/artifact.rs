//! The artifact that a signature must be of.
//!
//! In: a digest such as `sha256:` and 64 hex digits, and the manifest's bytes if they were read.
//! Out: [`Artifact`].

use ring::digest::{SHA256, digest};

/// An OCI artifact: the digest of its manifest.
#[derive(Debug, Clone)]
pub struct Artifact {
    digest: Box<str>,
    manifest: Option<Vec<u8>>,
}

/// An artifact that cannot be identified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// Another form.
    #[error("a digest must be `sha256:` and 64 lower-case hex digits")]
    Form,
    /// A manifest with another digest.
    #[error("the manifest does not have the digest {0}")]
    Manifest(Box<str>),
}

impl Artifact {
    /// Creates an artifact from the digest of its manifest.
    pub fn new(digest: &str) -> Result<Self, DigestError> {
        let hex = digest.strip_prefix("sha256:").ok_or(DigestError::Form)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match hex.len() == 64 && hex.bytes().all(is_digit) {
            true => Ok(Self { digest: digest.into(), manifest: None }),
            false => Err(DigestError::Form),
        }
    }

    /// Adds the bytes of the manifest, for signatures that `cosign sign-blob` made over them.
    pub fn with_manifest(self, manifest: &[u8]) -> Result<Self, DigestError> {
        match sha256_digest(manifest) == *self.digest {
            true => Ok(Self { manifest: Some(manifest.to_vec()), ..self }),
            false => Err(DigestError::Manifest(self.digest)),
        }
    }

    /// The digest, with its algorithm.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The bytes of the manifest.
    pub(crate) fn manifest(&self) -> Option<&[u8]> {
        self.manifest.as_deref()
    }
}

/// Returns the digest of bytes in the form of OCI.
pub(crate) fn sha256_digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(digest(&SHA256, bytes).as_ref()))
}

/// Returns bytes as lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_form() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let artifact = Artifact::new(empty).unwrap();
        assert_eq!(artifact.digest(), empty);
        assert!(artifact.clone().with_manifest(b"").is_ok());
        assert!(matches!(artifact.with_manifest(b"x"), Err(DigestError::Manifest(_))));
        for wrong in ["", "sha256:", &empty[7..], &empty.to_uppercase(), &empty[..70], "sha512:e3"] {
            assert_eq!(Artifact::new(wrong).map(|_| ()), Err(DigestError::Form), "{wrong}");
        }
    }
}
