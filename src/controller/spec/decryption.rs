//! Validates the keys for encrypted files that a Sync names.
//!
//! In: `spec.decryption`. Out: [`Decryption`], still without the keys, or an error.

use std::sync::Arc;

use super::{SpecError, named, refuse};
use crate::api::DecryptionSpec;
use crate::decryption::DecryptionKeys;

/// Keys for encrypted files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decryption {
    /// The Secret in the Sync's namespace with the keys.
    pub secret: Box<str>,
    /// Its keys; none until it is read.
    pub keys: Option<Arc<DecryptionKeys>>,
}

/// Returns the Secret with the keys; none if nothing is to be decrypted.
pub(super) fn decryption(spec: Option<&DecryptionSpec>) -> Result<Option<Decryption>, SpecError> {
    let Some(spec) = spec else { return Ok(None) };
    let field = "spec.decryption.sops.secretRef.name";
    match named(field, Some(&spec.sops.secret_ref.name))?.filter(|name| !name.is_empty()) {
        Some(secret) => Ok(Some(Decryption { secret, keys: None })),
        None => refuse(field, "write the name of a Secret in the Sync's own namespace"),
    }
}
