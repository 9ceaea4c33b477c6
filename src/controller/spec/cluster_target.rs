//! Validates `spec.cluster`.
//!
//! In: the field, parsed. Out: the Secret with the access to the cluster of the objects.

use super::{SpecError, TargetSecret, named, refuse};
use crate::api::{ClusterTarget, MAX_TARGET_NAME, SyncName};

/// Returns the Secret of the cluster in which the objects live; none at home.
pub(super) fn secret(
    sync: &SyncName,
    target: Option<&ClusterTarget>,
) -> Result<Option<TargetSecret>, SpecError> {
    let Some(ClusterTarget { secret_ref }) = target else { return Ok(None) };
    let Some(name) = named("spec.cluster.secretRef.name", Some(&secret_ref.name))? else {
        return refuse("spec.cluster.secretRef.name", "name a Secret in the Sync's own namespace");
    };
    if sync.namespace.len() + sync.name.len() > MAX_TARGET_NAME {
        return refuse(
            "spec.cluster",
            format!(
                "give the Sync a shorter name: with its namespace it may have {MAX_TARGET_NAME} characters"
            ),
        );
    }
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match &secret_ref.key {
        Some(key) if key.is_empty() || !key.bytes().all(is_key) => {
            refuse("spec.cluster.secretRef.key", "write a key of the Secret, such as kubeconfig")
        }
        key => Ok(Some(TargetSecret { name, key: key.as_deref().map(Box::from) })),
    }
}
