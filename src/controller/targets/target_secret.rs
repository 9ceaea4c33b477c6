//! The Secret of another cluster: its name in a Sync, and its mark.
//!
//! In: a Sync. Out: the Secret, and the mark that Syncs of that cluster have there.

use serde_json::Value;

use crate::api::target_mark;
use crate::controller::spec::TargetSecret;

/// Returns the Secret that `spec.cluster` of a Sync names, valid or not.
pub(super) fn secret_of(sync: &Value) -> Option<TargetSecret> {
    let cluster = sync.pointer("/spec/cluster").filter(|cluster| !cluster.is_null())?;
    let text = |field: &str| cluster.pointer(field).and_then(Value::as_str);
    let name = text("/secretRef/name").unwrap_or_default();
    Some(TargetSecret { name: name.into(), key: text("/secretRef/key").map(Box::from) })
}

/// Returns the mark of a Secret, which labels and managers in its cluster have.
pub(super) fn mark_of(home: &str, namespace: &str, secret: &TargetSecret) -> String {
    target_mark(home, namespace, &secret.name, secret.key.as_deref().unwrap_or_default())
}
