//! Finds and verifies signatures that cosign made for OCI artifacts.
//!
//! In: the digest of an artifact, the documents of its registry, a policy, and the time.
//! Out: the signer, or an error that names the keys and identities that were found and expected.
//! Nothing here uses a network, a clock or a file: [`search`] says what to fetch, and the caller
//! fetches it.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod artifact;
mod bundle;
mod certificate;
mod der;
mod discovery;
mod error;
pub mod hostile;
mod identity;
mod json;
mod key;
mod log_entry;
mod material;
mod merkle;
mod pem;
mod sct;
mod simple_signing;
mod timestamp;
mod trust_root;
mod verification;

pub use self::artifact::{Artifact, DigestError};
pub use self::discovery::{Fetch, Request, SearchError, search};
pub use self::error::{
    MAX_CERTIFICATES, MAX_DOCUMENT_BYTES, MAX_KEYS, MAX_LOG_ENTRIES, MAX_PROOF_HASHES, MAX_SIGNATURES,
    MAX_TIMESTAMPS, Reason, Refusal, VerifyError,
};
pub use self::identity::{Identity, Pattern, PatternError};
pub use self::key::{KeyError, PublicKey};
pub use self::trust_root::{TrustRoot, TrustRootError};
pub use self::verification::{Annotations, Document, Policy, Signer, Verified, verify};
