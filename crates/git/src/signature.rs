//! Checks that a commit or a tag is signed by a trusted key.
//!
//! In: the public keys of a Secret, and the bytes of a commit or tag.
//! Out: nothing, or a [`SignatureError`]. A key is trusted because it is in the Secret, and for no
//! other reason: there is no web of trust. A signed tag counts only under its own name and for its
//! own commit, so an old tag cannot be passed off as a new one.

mod openpgp;
mod ssh;

use std::collections::BTreeMap;
use std::time::SystemTime;

use moorline_cosign::{Reason, VerifyError};

use super::artifact::ArtifactSigners;
use super::error::Error;
use super::revision::{ObjectHash, Revision};

/// Maximum number of bytes of a signed commit or tag.
const MAX_SIGNED_BYTES: usize = 1024 * 1024;

/// Trusted public keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrustedKeys {
    ssh: Vec<ssh::Key>,
    openpgp: Vec<openpgp::Key>,
    /// Signers of artifacts; none trusts nobody with them.
    artifact: Option<ArtifactSigners>,
}

/// Error of reading keys from a Secret. Public keys are no secret, but the Secret may contain other
/// data: values are not quoted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustedKeysError {
    /// A value is no public key.
    #[error("the Secret's key {key} {problem}")]
    Value {
        /// The key.
        key: String,
        /// The problem with its value.
        problem: String,
    },
    /// The Secret has no keys.
    #[error(
        "the Secret has no public keys; put ssh or OpenPGP public keys into it, each under a name of its own"
    )]
    Nothing,
    /// The Secret has no keys for artifacts.
    #[error(
        "it has no entry that ends with .pub; put public keys into it, as `cosign public-key` writes them"
    )]
    NoArtifactKeys,
    /// More keys or identities than are read.
    #[error("it has more than {0} keys or identities")]
    TooMany(usize),
    /// The trust root cannot be used.
    #[error("its entry trusted_root.json: {0}")]
    TrustRoot(Box<str>),
}

/// Objects that must be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignaturePolicy {
    /// The commit.
    Commit,
    /// The tag.
    Tag,
    /// Both of them.
    Both,
    /// The artifact, or the chart of a registry.
    Artifact,
}

/// Reason for not trusting a revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {problem}")]
pub struct SignatureError {
    /// The commit or tag.
    pub what: Box<str>,
    /// The problem with its signature.
    pub problem: SignatureProblem,
}

/// Problem with a signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureProblem {
    /// There are no keys to check it with.
    #[error("cannot be checked: the Secret with the trusted keys is not available")]
    NoKeys,
    /// There is no signature.
    #[error("is not signed")]
    Missing,
    /// A lightweight tag, which has no signature.
    #[error("is not an annotated tag; only those can be signed (git tag -s)")]
    Lightweight,
    /// The tag object names another tag or commit.
    #[error("is signed as something else: {0}")]
    Other(&'static str),
    /// The signature cannot be parsed.
    #[error("has a signature that cannot be read: {0}")]
    Unreadable(&'static str),
    /// The signing key is not trusted.
    #[error("is signed by {0}, which is not among the keys of the Secret")]
    Unknown(Box<str>),
    /// The signature is wrong.
    #[error("does not fit its signature by {0}")]
    Wrong(Box<str>),
    /// The key may not be used.
    #[error("is signed by {0}, a key that {1}")]
    Unusable(Box<str>, &'static str),
    /// No signature of an artifact is accepted.
    #[error("{0}")]
    Artifact(Box<VerifyError>),
}

impl SignatureProblem {
    /// Returns the reason for conditions, Events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoKeys => "KeysMissing",
            Self::Missing | Self::Lightweight => "SignatureMissing",
            Self::Unknown(_) | Self::Unusable(..) => "SignerUnknown",
            Self::Other(_) | Self::Unreadable(_) | Self::Wrong(_) => "SignatureInvalid",
            Self::Artifact(error) => match &**error {
                VerifyError::NotFound { .. } => "SignatureMissing",
                VerifyError::Refused { refusals, .. } => {
                    let is_of_others = refusals.iter().all(|refusal| is_of_another(&refusal.reason));
                    if is_of_others { "SignerUnknown" } else { "SignatureInvalid" }
                }
            },
        }
    }

    /// True if a signature may be added to what was refused.
    pub(super) fn may_be_signed_later(&self) -> bool {
        matches!(self, Self::Artifact(_))
    }
}

/// True if a signature of an artifact is valid, as far as it was read, but of another signer.
fn is_of_another(reason: &Reason) -> bool {
    matches!(reason, Reason::Key { .. } | Reason::Identity { .. } | Reason::NoCertificate { .. })
}

/// Signed content, and its detached signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SignedContent {
    text: Vec<u8>,
    signature: Option<String>,
}

impl TrustedKeys {
    /// Reads the values of a Secret: ssh public keys or lines of an `allowed_signers` file, and
    /// armoured OpenPGP keys.
    pub fn from_secret<K: AsRef<str>, V: AsRef<[u8]>>(
        data: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, TrustedKeysError> {
        let data: BTreeMap<String, Vec<u8>> =
            data.into_iter().map(|(key, value)| (key.as_ref().to_owned(), value.as_ref().to_vec())).collect();
        let mut keys = Self::default();
        for (key, value) in data {
            let refuse = |problem: String| TrustedKeysError::Value { key: key.clone(), problem };
            let text = String::from_utf8(value).map_err(|_| refuse("is no text".to_owned()))?;
            match text.contains(openpgp::BEGIN) {
                true => keys.openpgp.extend(openpgp::read(&text).map_err(|it| refuse(it.to_owned()))?),
                false => keys.ssh.extend(ssh::read(&text).map_err(refuse)?),
            }
        }
        let is_empty = keys.ssh.is_empty() && keys.openpgp.is_empty();
        if is_empty { Err(TrustedKeysError::Nothing) } else { Ok(keys) }
    }

    /// Trusts these signers with artifacts, and nobody with commits.
    pub(super) fn with_artifact_signers(signers: ArtifactSigners) -> Self {
        Self { artifact: Some(signers), ..Self::default() }
    }

    /// Returns the signers that are trusted with artifacts.
    pub(super) fn artifact_signers(&self) -> Option<&ArtifactSigners> {
        self.artifact.as_ref()
    }

    /// Checks that the content is signed by a trusted key.
    fn check(&self, seal: &SignedContent) -> Result<(), SignatureProblem> {
        if self.ssh.is_empty() && self.openpgp.is_empty() {
            return Err(SignatureProblem::NoKeys);
        }
        let signature = seal.signature.as_ref().ok_or(SignatureProblem::Missing)?;
        match signature.trim_start() {
            text if text.starts_with(ssh::SIGNATURE) => ssh::check(&self.ssh, &seal.text, text),
            text if text.starts_with(openpgp::SIGNATURE) => {
                openpgp::check(&self.openpgp, &seal.text, text, SystemTime::now())
            }
            _ => Err(SignatureProblem::Unreadable("it is neither of ssh nor of OpenPGP")),
        }
    }
}

/// Checks the required signatures of a revision.
pub(super) fn verify(
    repository: &git2::Repository,
    revision: &Revision,
    signed: SignaturePolicy,
    keys: &TrustedKeys,
) -> Result<(), Error> {
    if signed != SignaturePolicy::Tag {
        let what = format!("commit {}", revision.commit);
        let seal = of_commit(repository, revision.commit)?;
        keys.check(&seal).map_err(|problem| refused(what, problem))?;
    }
    if signed == SignaturePolicy::Commit {
        return Ok(());
    }
    let name = revision.name.strip_prefix("refs/tags/").unwrap_or(&revision.name);
    let refuse = |problem| refused(format!("tag {name}"), problem);
    let tag = revision.tag.ok_or_else(|| refuse(SignatureProblem::Lightweight))?;
    let seal = of_tag(repository, tag)?;
    says(&seal.text, revision.commit, name).map_err(refuse)?;
    keys.check(&seal).map_err(refuse)
}

fn refused(what: String, problem: SignatureProblem) -> Error {
    Error::Unsigned(SignatureError { what: what.into(), problem })
}

fn of_commit(repository: &git2::Repository, commit: ObjectHash) -> Result<SignedContent, Error> {
    let whole = read(repository, commit)?;
    match repository.extract_signature(&commit.oid(), None) {
        Ok((signature, text)) => Ok(SignedContent {
            text: text.to_vec(),
            signature: std::str::from_utf8(&signature).ok().map(str::to_owned),
        }),
        Err(error) if error.code() == git2::ErrorCode::NotFound => {
            Ok(SignedContent { text: whole, signature: None })
        }
        Err(_) => Err(Error::Corrupt { what: "a commit cannot be read" }),
    }
}

fn of_tag(repository: &git2::Repository, tag: ObjectHash) -> Result<SignedContent, Error> {
    Ok(split(read(repository, tag)?))
}

fn read(repository: &git2::Repository, id: ObjectHash) -> Result<Vec<u8>, Error> {
    let corrupt = |_| Error::Corrupt { what: "a commit or tag is missing" };
    let database = repository.odb().map_err(corrupt)?;
    let object = database.read(id.oid()).map_err(corrupt)?;
    match object.data().len() > MAX_SIGNED_BYTES {
        true => Err(Error::Corrupt { what: "a commit or tag is larger than one MiB" }),
        false => Ok(object.data().to_vec()),
    }
}

/// Splits a tag into the signed content and the signature after it.
fn split(tag: Vec<u8>) -> SignedContent {
    let begins = |mark: &str| {
        let mark = mark.as_bytes();
        let at = tag.windows(mark.len()).rposition(|part| part == mark)?;
        (at == 0 || tag.get(at - 1) == Some(&b'\n')).then_some(at)
    };
    let at = [ssh::SIGNATURE, openpgp::SIGNATURE].into_iter().filter_map(begins).max();
    let signature = at.and_then(|at| std::str::from_utf8(&tag[at..]).ok().map(str::to_owned));
    let text = at.map_or(tag.clone(), |at| tag[..at].to_vec());
    SignedContent { text, signature }
}

/// Checks that a tag object has this commit and this name.
fn says(tag: &[u8], commit: ObjectHash, name: &str) -> Result<(), SignatureProblem> {
    let head = tag.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    let mut fields = head.filter_map(|line| std::str::from_utf8(line).ok()?.split_once(' '));
    let mut expect = |field: &str, value: &str, problem: &'static str| match fields.next() {
        Some((known, said)) if known == field && said == value => Ok(()),
        _ => Err(SignatureProblem::Other(problem)),
    };
    expect("object", &commit.to_string(), "it names another commit")?;
    expect("type", "commit", "it names no commit")?;
    expect("tag", name, "it has another name")
}
