//! Conflicts of an apply, in the wording of the API server.
//!
//! In: the fields that each manager would lose.
//! Out: one [`Conflict`] for each field, and the message and causes of the response. Clients parse
//! the message to find the conflicting managers, so it must match to the character.

use serde_json::{Value, json};

use super::managers::ManagerIdentity;
use moorline_managed_fields::{FieldPath, FieldSet, Operation};

/// A field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// Its manager as the message names it.
    manager: String,
    path: FieldPath,
}

/// Returns the message of the response and its `details.causes`.
pub(crate) fn conflict_message(conflicts: &[Conflict]) -> (String, Value) {
    let causes = conflicts.iter().map(|conflict| {
        json!({
            "reason": "FieldManagerConflict",
            "message": format!("conflict with {}", conflict.manager),
            "field": conflict.path.server_form(),
        })
    });
    (message(conflicts), causes.collect())
}

fn message(conflicts: &[Conflict]) -> String {
    if let [conflict] = conflicts {
        let path = conflict.path.server_form();
        return format!("Apply failed with 1 conflict: conflict with {}: {path}", conflict.manager);
    }
    let mut lines = Vec::new();
    let mut last = None;
    for conflict in conflicts {
        if last != Some(&conflict.manager) {
            lines.push(format!("conflicts with {}:", conflict.manager));
            last = Some(&conflict.manager);
        }
        lines.push(format!("- {}", conflict.path.server_form()));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// Returns one conflict for each field, ordered by manager.
pub(super) fn conflicts(mut lost: Vec<(ManagerIdentity<'_>, &str, FieldSet)>) -> Vec<Conflict> {
    lost.sort_by_cached_key(|(identity, _, _)| identity.text());
    let mut found = Vec::new();
    for (identity, api_version, fields) in lost {
        let manager = shown(identity, api_version);
        let paths = fields.in_server_order();
        found.extend(paths.into_iter().map(|path| Conflict { manager: manager.clone(), path }));
    }
    found
}

impl Conflict {
    pub(super) fn path(&self) -> &FieldPath {
        &self.path
    }
}

fn shown(identity: ManagerIdentity<'_>, api_version: &str) -> String {
    let mut text = format!("{:?}", identity.manager);
    if !identity.subresource.is_empty() {
        text += &format!(" with subresource {:?}", identity.subresource);
    }
    match identity.operation {
        Operation::Apply => text,
        Operation::Update => format!("{text} using {api_version}"),
    }
}
