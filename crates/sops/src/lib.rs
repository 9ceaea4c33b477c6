//! Reads, verifies and decrypts files that SOPS encrypted.
//!
//! In: the bytes of one file, and holders of keys.
//! Out: the bytes of the plain file, or an error with file, line and field, but no contents.
//! Nothing here reads a file, a clock or a network: keys that need a service are described by
//! [`KeySource`], and the caller asks the service.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod age;
mod encrypted_file;
mod error;
mod format;
mod key_groups;
mod key_source;
mod leaves;
mod metadata;
mod node;
mod numbers;
mod openpgp;
mod rule;
mod secret;
mod stores;
mod value;

pub use self::age::{AgeIdentities, AgeKeyError};
pub use self::encrypted_file::{EncryptedFile, read};
pub use self::error::{
    MAX_ENCRYPTED_VALUES, MAX_FILE_BYTES, MAX_KEYS, MAX_METADATA_BYTES, MAX_PATH_BYTES, MAX_VALUES, Problem,
    SopsError,
};
pub use self::format::Format;
pub use self::key_groups::{KeyHolder, KeyRefusal};
pub use self::key_source::KeySource;
pub use self::metadata::Metadata;
pub use self::openpgp::{OpenPgpKeyError, OpenPgpKeys};
pub use self::secret::{DataKey, SecretBytes};
