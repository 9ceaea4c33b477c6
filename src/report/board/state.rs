//! Derives the overall state of a Sync, and advice for the operator.
//!
//! In: a status. Out: [`SyncState`], which is derived from the conditions alone; nothing is
//! evaluated again.

use std::borrow::Cow;

use crate::api::{SyncName, SyncStatus};

/// Overall state of a Sync. States that need a person come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncState {
    /// Something failed.
    Failing,
    /// A person has to decide.
    PendingDecision,
    /// Everything is applied, and some of it is unhealthy.
    Degraded,
    /// Objects differ from Git, and are not repaired.
    Drifted,
    /// A change is in progress.
    Progressing,
    /// Nothing is known yet.
    Starting,
    /// Suspended by a person.
    Suspended,
    /// Everything is as committed.
    Synced,
}

impl SyncState {
    /// All states, those that need a person first.
    pub const ALL: [Self; 8] = [
        Self::Failing,
        Self::PendingDecision,
        Self::Degraded,
        Self::Drifted,
        Self::Progressing,
        Self::Starting,
        Self::Suspended,
        Self::Synced,
    ];

    /// Derives the state from a status.
    pub fn from_status(status: &SyncStatus) -> Self {
        let known = |type_: &str| status.conditions.iter().find(|known| known.type_ == type_);
        let is = |type_: &str, value: &str| known(type_).is_some_and(|known| known.status == value);
        let Some(ready) = known("Ready") else { return Self::Starting };
        match ready.reason.as_str() {
            "Suspended" => Self::Suspended,
            reason if ready.status == "True" || reason == "FieldsDiffer" => match () {
                () if status.approval.is_some() => Self::PendingDecision,
                () if is("Healthy", "False") => Self::Degraded,
                () if is("Drifted", "True") => Self::Drifted,
                () => Self::Synced,
            },
            "PruneHeld" | "Contested" | "ObjectsHeld" | "DeletionHeld" => Self::PendingDecision,
            "Degraded" | "HealthUnknown" => Self::Degraded,
            "Progressing" | "DependencyNotReady" | "Deleting" => Self::Progressing,
            _ => Self::Failing,
        }
    }

    /// The label on the page.
    pub fn label(self) -> &'static str {
        match self {
            Self::Failing => "Failing",
            Self::PendingDecision => "Waiting",
            Self::Degraded => "Unwell",
            Self::Drifted => "Drifted",
            Self::Progressing => "Working",
            Self::Starting => "Starting",
            Self::Suspended => "Suspended",
            Self::Synced => "Committed",
        }
    }

    /// Parses a label, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.label().eq_ignore_ascii_case(word))
    }

    /// The meaning, as a sentence without a subject.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Failing => "something could not be done",
            Self::PendingDecision => "waits for a person to decide",
            Self::Degraded => "applied, and some of it does not work",
            Self::Drifted => "not as committed, and left so",
            Self::Progressing => "is being done",
            Self::Starting => "nothing is known yet",
            Self::Suspended => "left alone, as somebody asked",
            Self::Synced => "everything is as committed",
        }
    }

    /// True if the state does not improve without a person.
    pub fn needs_attention(self) -> bool {
        matches!(self, Self::Failing | Self::PendingDecision | Self::Degraded | Self::Drifted)
    }
}

/// Advice about a reason whose message contains none.
pub fn advice(reason: &str, sync: &SyncName) -> Option<Cow<'static, str>> {
    if reason == "Suspended" {
        let command = format!("moorline resume {} -n {}", sync.name, sync.namespace);
        return Some(Cow::Owned(format!("Nothing is looked at and nothing is written, until: {command}")));
    }
    Some(Cow::Borrowed(match reason {
        "RenderIncomplete" | "ManifestInvalid" => {
            "Nothing of that commit was applied, and what was there before stays. Mend the files that are named and commit."
        }
        "ApplyFailed" => {
            "What the API server refused is tried again. If the manifest is at fault, mend it and commit."
        }
        "ObjectsHeld" => "It goes on by itself once what is missing is there, or is yours to settle.",
        "PruneHeld" => {
            "Objects that Git has no more were kept, because they are so many. Look at them, then approve, or bring them back in Git."
        }
        "Contested" => {
            "Somebody else writes the same fields again and again. Take them out of Git, list them in spec.ignoreFields, or stop the other one."
        }
        "RightsMissing" => "Whoever may grant rights runs the command in the message.",
        "SpecInvalid" => "Mend the spec of the Sync.",
        "ServiceAccountRequired" => "Name a ServiceAccount in spec.serviceAccountName.",
        "DependencyCycle" => "Take one of the Syncs out of spec.dependsOn.",
        "DependencyNotReady" => "It goes on by itself when the Sync that it depends on is ready.",
        "RolledBack" => {
            "The newest commit was given up and the last healthy one is held. Commit something that becomes well."
        }
        "Degraded" | "HealthUnknown" => {
            "Everything is applied. The object that is named, and its Pods, say what does not work."
        }
        "Deleting" => "Objects that take long are held by their finalizers. Suspend the Sync to stop.",
        "DeletionHeld" => {
            "Decide what becomes of the objects that are left, by one of the commands in the message."
        }
        "FieldsDiffer" => {
            "The Sync only reports drift (spec.drift.mode). Commit what was changed, or undo it by hand. The next commit creates what was deleted."
        }
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_names_the_sync_and_its_namespace() {
        let told = advice("Suspended", &SyncName::new("team", "shop"));
        assert!(told.is_some_and(|told| told.ends_with(": moorline resume shop -n team")));
    }

    #[test]
    fn the_word_says_what_the_conditions_say() {
        let check = |conditions: &[(&str, &str, &str)], approval: bool, expect: SyncState| {
            let conditions: Vec<_> = conditions
                .iter()
                .map(|(type_, status, reason)| {
                    json!({"type": type_, "status": status, "reason": reason, "message": "",
                        "lastTransitionTime": "2026-01-01T00:00:00Z"})
                })
                .collect();
            let approval = approval.then(|| json!({"hash": "ab", "objects": 2}));
            let status = serde_json::from_value(json!({"conditions": conditions, "approval": approval}));
            assert_eq!(SyncState::from_status(&status.unwrap()), expect, "{conditions:?}");
        };
        let ready = ("Ready", "True", "Applied");
        check(&[], false, SyncState::Starting);
        check(&[ready], false, SyncState::Synced);
        check(&[ready], true, SyncState::PendingDecision);
        check(&[ready, ("Healthy", "False", "Degraded")], false, SyncState::Degraded);
        check(&[ready, ("Healthy", "Unknown", "Progressing")], false, SyncState::Synced);
        let differs = [("Ready", "False", "FieldsDiffer"), ("Drifted", "True", "FieldsDiffer")];
        check(&differs, false, SyncState::Drifted);
        check(&differs, true, SyncState::PendingDecision);
        for (reason, expect) in [
            ("Suspended", SyncState::Suspended),
            ("PruneHeld", SyncState::PendingDecision),
            ("DeletionHeld", SyncState::PendingDecision),
            ("Deleting", SyncState::Progressing),
            ("Degraded", SyncState::Degraded),
            ("Progressing", SyncState::Progressing),
            ("RenderIncomplete", SyncState::Failing),
            ("RolledBack", SyncState::Failing),
            ("Unreachable", SyncState::Failing),
        ] {
            check(&[("Ready", "False", reason)], false, expect);
        }
    }

    #[test]
    fn a_word_is_read_back() {
        for state in SyncState::ALL {
            assert_eq!(SyncState::parse(&state.label().to_lowercase()), Some(state));
        }
        assert_eq!(SyncState::parse("else"), None);
        assert!(SyncState::ALL.is_sorted());
    }
}
