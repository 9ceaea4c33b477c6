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
    /// The Secret in the Sync's namespace with the keys; none if only clouds decrypt.
    pub secret: Option<Box<str>>,
    /// The ServiceAccount for clouds; none for the one that acts for the Sync.
    pub account: Option<Box<str>>,
    /// Its keys; none until it is read.
    pub keys: Option<Arc<DecryptionKeys>>,
}

/// Returns the Secret with the keys; none if nothing is to be decrypted.
pub(super) fn decryption(spec: Option<&DecryptionSpec>) -> Result<Option<Decryption>, SpecError> {
    let Some(spec) = spec else { return Ok(None) };
    let field = "spec.decryption.sops.secretRef.name";
    let secret = named(field, spec.sops.secret_ref.as_ref().map(|secret| &*secret.name))?;
    if secret.as_deref() == Some("") {
        return refuse(field, "write the name of a Secret in the Sync's own namespace");
    }
    let account =
        named("spec.decryption.sops.serviceAccountName", spec.sops.service_account_name.as_deref())?;
    Ok(Some(Decryption { secret, account, keys: None }))
}
