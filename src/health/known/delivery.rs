//! What brings other objects into a cluster.
//!
//! In: nothing. Out: rows.

use serde_json::Value;

use super::super::Health;
use super::super::live::Live;
use super::super::sentence::told;
use super::reading::with;
use super::rule::Generation::Nowhere;
use super::rule::IfFalse::Waits;
use super::rule::Reading::{Heeds, Needs, Odd as Reads, Trouble, Word as Says};
use super::rule::{Answer, Odd, Project, WORD, Word, reads, row, still};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Argo CD", rows: &[
        row("argoproj.io", &["Application"], 30, reads(Nowhere, &[
            Says(Word {
                at: "status.health.status",
                well: &["Healthy"],
                busy: &["Progressing", "Missing"],
                wrong: &["Degraded"],
                asleep: &["Suspended"],
                message: "status.health.message",
                ..WORD
            }),
            Reads(Odd {
                words: "the last operation has succeeded, no condition is an error, and with an automated policy `status.sync.status` is `Synced`",
                answers: &[Answer::Progressing, Answer::Degraded],
                judge: synced,
            }),
        ])),
        row("argoproj.io", &["ApplicationSet"], 10, reads(Nowhere, &[
            Trouble(&["ErrorOccurred"]),
            Needs("ResourcesUpToDate", Waits),
            Heeds("ParametersGenerated", Waits),
        ])),
        still("argoproj.io", &["AppProject"]),
    ]},
];

/// Whether what is in Git has come in. Where nobody automates it, a person decides when it does.
fn synced<'a>(live: Live<'a>) -> Option<Health> {
    let text = |condition: &'a Value, field: &str| condition.get(field).and_then(Value::as_str);
    let conditions = live.items(&["status", "conditions"]).iter();
    let mut conditions =
        conditions.filter_map(|condition| Some((text(condition, "type")?, text(condition, "message")?)));
    if let Some((kind, message)) = conditions.find(|(kind, _)| kind.ends_with("Error")) {
        return Some(Health::degraded(format!("{}: {}", told(kind), told(message))));
    }
    let said = |said: &str| with(live, "status.operationState.message", said.to_owned());
    match live.dotted("status.operationState.phase").and_then(Value::as_str) {
        Some("Running" | "Terminating") => return Some(Health::progressing(said("an operation is running"))),
        Some("Failed" | "Error") => return Some(Health::degraded(said("its last operation failed"))),
        _ => {}
    }
    let automated = live.dotted("spec.syncPolicy.automated").is_some_and(|policy| {
        policy.is_object() && policy.get("enabled").and_then(Value::as_bool).unwrap_or(true)
    });
    match live.dotted("status.sync.status").and_then(Value::as_str)? {
        "Synced" => Some(Health::Healthy),
        other if automated => Some(Health::progressing(format!("its sync status is {}", told(other)))),
        _ => Some(Health::Healthy),
    }
}
