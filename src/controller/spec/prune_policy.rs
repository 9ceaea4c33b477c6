//! Validates the prune policy of a Sync.
//!
//! In: `spec.prune`. Out: the budget and the protected kinds, or an error.

use std::collections::BTreeSet;

use super::{SpecError, refuse};
use crate::api::PrunePolicy;
use crate::object::GroupKind;
use crate::plan::{Policy, PruneBudget};

/// Returns the number of objects that one prune may delete without approval.
pub(super) fn budget(prune: &PrunePolicy) -> Result<PruneBudget, SpecError> {
    let Some(budget) = &prune.budget else { return Ok(PruneBudget::default()) };
    let count = match budget.count.map(usize::try_from).transpose() {
        Ok(count) => count,
        Err(_) => return refuse("spec.prune.budget.count", "write a number of objects, 0 or more"),
    };
    let percent = match budget.percent.map(u8::try_from).transpose() {
        Ok(percent) if percent.is_none_or(|percent| percent <= 100) => percent,
        _ => return refuse("spec.prune.budget.percent", "write a number from 0 to 100"),
    };
    Ok(PruneBudget { count, percent })
}

/// Returns the protected kinds: those that the spec names and those that are always protected.
pub(super) fn protected(prune: &PrunePolicy) -> Result<BTreeSet<GroupKind>, SpecError> {
    let mut protected = Policy::default().protected;
    for (at, text) in prune.protect.iter().enumerate() {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        let word = |text: &str, more: &[u8]| {
            text.starts_with(|first: char| first.is_ascii_alphanumeric())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
        };
        let sound_group = group.is_empty() != text.contains('.') && (group.is_empty() || word(group, b"-."));
        if !word(kind, b"-") || kind.starts_with(|first: char| first.is_ascii_digit()) || !sound_group {
            return refuse(
                format!("spec.prune.protect[{at}]"),
                "write Kind for the core group, else Kind.group, such as Secret or Cluster.postgresql.cnpg.io",
            );
        }
        protected.insert(GroupKind::new(group, kind));
    }
    Ok(protected)
}
