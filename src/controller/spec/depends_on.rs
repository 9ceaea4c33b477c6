//! Validates the Syncs that a Sync depends on.
//!
//! In: the entries of `spec.dependsOn`. Out: the names of other Syncs, each with the time for which
//! it has to be healthy, or an error.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{SpecError, refuse, span};
use crate::api::{Dependency, SyncName};
use crate::name_rules;

/// Returns the other Syncs. One that is named twice has to be healthy for the longer time.
pub(super) fn dependencies(
    own: &SyncName,
    entries: &[Dependency],
) -> Result<BTreeMap<SyncName, Duration>, SpecError> {
    let mut all = BTreeMap::new();
    for (at, on) in entries.iter().enumerate() {
        let healthy_for = match &on.healthy_for {
            Some(text) => span(&format!("spec.dependsOn[{at}].healthyFor"), text)?,
            None => Duration::ZERO,
        };
        let known: &mut Duration = all.entry(depends_on(own, (at, on))?).or_default();
        *known = healthy_for.max(*known);
    }
    Ok(all)
}

/// Returns the other Sync.
fn depends_on(own: &SyncName, (at, on): (usize, &Dependency)) -> Result<SyncName, SpecError> {
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
