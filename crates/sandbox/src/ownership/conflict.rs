//! What an apply would take from others, in the words of the API server.
//!
//! In: what each manager would lose. Out: one [`Conflict`] a field, and from them the message and the causes of the
//! answer. Whoever does not understand the fields of other managers reads them here, so every character counts.

use serde_json::{Value, json};

use super::managers::Identity;
use moorline_managed_fields::{FieldPath, FieldSet, Operation};

/// A field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// Its manager, as it is shown.
    manager: String,
    path: FieldPath,
}

/// The message of an answer, and its `details.causes`.
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

/// One conflict a field, by managers in their order.
pub(super) fn conflicts(mut lost: Vec<(Identity<'_>, &str, FieldSet)>) -> Vec<Conflict> {
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

fn shown(identity: Identity<'_>, api_version: &str) -> String {
    let mut text = format!("{:?}", identity.manager);
    if !identity.subresource.is_empty() {
        text += &format!(" with subresource {:?}", identity.subresource);
    }
    match identity.operation {
        Operation::Apply => text,
        Operation::Update => format!("{text} using {api_version}"),
    }
}
