//! Builds the proposal of a change.
//!
//! In: the change that is wanted, and the state of the Sync. Out: the command that a person runs,
//! with its effect. A command has no text that a shell would interpret.

use serde_json::{Value, json};

use super::tools::{ProposalQuery, ProposedAction};
use crate::api::SyncName;
use crate::sanitize::sanitize;

/// The most characters of a reason.
const MAX_REASON_CHARS: usize = 200;

/// A change for a person.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Proposal {
    pub(crate) command: String,
    pub(crate) effect: &'static str,
    /// True if the change applies a revision, so that a plan shows it.
    pub(crate) has_plan: bool,
}

/// Builds the proposal, or says what is missing.
pub(crate) fn propose(query: &ProposalQuery, name: &SyncName) -> Result<Proposal, &'static str> {
    let target = format!("{} -n {}", name.name, name.namespace);
    let unasked = |wanted: Option<&String>, message| match wanted {
        Some(_) => Err(message),
        None => Ok(()),
    };
    if query.action != ProposedAction::Rollback {
        unasked(query.revision.as_ref(), "only a rollback has a revision")?;
        unasked(query.reason.as_ref(), "only a rollback has a reason")?;
    }
    Ok(match query.action {
        ProposedAction::Sync => Proposal {
            command: format!("moorline sync {target}"),
            effect: "The repository is polled now, and its newest commit is applied.",
            has_plan: true,
        },
        ProposedAction::Suspend => Proposal {
            command: format!("moorline suspend {target}"),
            effect: "Nothing is applied and no drift is repaired until the Sync is resumed.",
            has_plan: false,
        },
        ProposedAction::Resume => Proposal {
            command: format!("moorline resume {target}"),
            effect: "The Sync goes on: the newest commit is applied, and drift is repaired.",
            has_plan: true,
        },
        ProposedAction::Rollback => {
            let reason = query.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
            let reason = quoted(reason.ok_or("a rollback needs a reason")?);
            let to = query.revision.as_ref().map(|revision| format!(" --to={revision}")).unwrap_or_default();
            Proposal {
                command: format!("moorline rollback {target}{to} --reason={reason}"),
                effect: "The Sync is held at that revision until it is released.",
                has_plan: query.revision.is_some(),
            }
        }
        ProposedAction::Release => Proposal {
            command: format!("moorline release {target}"),
            effect: "The Sync is no longer held at a revision: the newest commit is applied.",
            has_plan: true,
        },
    })
}

/// A text in single quotes, in which a shell interprets nothing.
fn quoted(text: &str) -> String {
    let short: String = text.chars().take(MAX_REASON_CHARS).collect();
    format!("'{}'", sanitize(&short).replace('\'', "'\\''"))
}

impl Proposal {
    /// The proposal as the tool returns it.
    pub(crate) fn document(&self, planned: Option<Value>, approval: &Value) -> Value {
        json!({
            "command": self.command, "effect": self.effect, "plan": planned, "pendingApproval": approval,
            "next": "Nothing was changed. Show the command and the plan to a person, who decides and runs it.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted() {
        let shown = |query: Value| {
            let query: ProposalQuery = serde_json::from_value(query).unwrap();
            propose(&query, &SyncName::new("team", "shop")).map(|proposal| proposal.command)
        };
        for (query, expect) in [
            (json!({"action": "sync", "name": "shop"}), Ok("moorline sync shop -n team")),
            (json!({"action": "suspend", "name": "shop"}), Ok("moorline suspend shop -n team")),
            (json!({"action": "resume", "name": "shop"}), Ok("moorline resume shop -n team")),
            (json!({"action": "release", "name": "shop"}), Ok("moorline release shop -n team")),
            (
                json!({"action": "rollback", "name": "shop", "reason": "it's $(slow)\n`now`", "revision": "v1"}),
                Ok("moorline rollback shop -n team --to=v1 --reason='it'\\''s $(slow)\u{fffd}`now`'"),
            ),
            (json!({"action": "rollback", "name": "shop"}), Err("a rollback needs a reason")),
            (json!({"action": "rollback", "name": "shop", "reason": " "}), Err("a rollback needs a reason")),
            (
                json!({"action": "sync", "name": "shop", "revision": "v1"}),
                Err("only a rollback has a revision"),
            ),
        ] {
            assert_eq!(shown(query.clone()), expect.map(str::to_owned), "{query}");
        }
    }
}
