//! Validates the Syncs that a Sync depends on.
//!
//! In: an entry of `spec.dependsOn`. Out: the name of another Sync, or an error.

use super::{SpecError, refuse};
use crate::api::{Dependency, SyncName};
use crate::name_rules;

/// Returns the other Sync.
pub(super) fn depends_on(own: &SyncName, (at, on): (usize, &Dependency)) -> Result<SyncName, SpecError> {
    let field = |name: &str| format!("spec.dependsOn[{at}].{name}");
    if let Some(rule) = name_rules::sync_name(&on.name) {
        return refuse(field("name"), format!("the name of a Sync {rule}"));
    }
    if let Some(rule) = on.namespace.as_deref().and_then(name_rules::namespace) {
        return refuse(field("namespace"), format!("the name of a namespace {rule}"));
    }
    let other = SyncName::new(on.namespace.as_deref().unwrap_or(&own.namespace), &on.name);
    if other == *own {
        return refuse(field("name"), "name another Sync: a Sync cannot depend on itself");
    }
    Ok(other)
}
