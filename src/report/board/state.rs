//! Derives the overall state of a Sync, and advice for the operator.
//!
//! In: a status. Out: [`SyncState`], which is derived from the conditions alone; nothing is
//! evaluated again.

use std::borrow::Cow;

use crate::api::{Reason, SyncName, SyncStatus};

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
    /// Held at a revision by a person.
    Held,
    /// Suspended by a person.
    Suspended,
    /// Everything is synced.
    Synced,
}

impl SyncState {
    /// All states, those that need a person first.
    pub const ALL: [Self; 9] = [
        Self::Failing,
        Self::PendingDecision,
        Self::Degraded,
        Self::Drifted,
        Self::Progressing,
        Self::Starting,
        Self::Held,
        Self::Suspended,
        Self::Synced,
    ];

    /// Derives the state from a status.
    pub fn from_status(status: &SyncStatus) -> Self {
        let known = |type_: &str| status.conditions.iter().find(|known| known.type_ == type_);
        let is = |type_: &str, value: &str| known(type_).is_some_and(|known| known.status == value);
        let Some(ready) = known("Ready") else { return Self::Starting };
        match Reason::parse(&ready.reason) {
            Some(Reason::Suspended) => Self::Suspended,
            Some(Reason::RevisionHeld) if status.approval.is_none() => Self::Held,
            reason if ready.status == "True" || reason == Some(Reason::FieldsDiffer) => match () {
                () if status.approval.is_some() => Self::PendingDecision,
                () if is("Healthy", "False") => Self::Degraded,
                () if is("Drifted", "True") => Self::Drifted,
                () => Self::Synced,
            },
            Some(
                Reason::RevisionHeld
                | Reason::PruneHeld
                | Reason::ApprovalRequired
                | Reason::WindowClosed
                | Reason::Contested
                | Reason::ObjectsHeld
                | Reason::DeletionHeld,
            ) => Self::PendingDecision,
            Some(Reason::Degraded | Reason::HealthUnknown) => Self::Degraded,
            Some(Reason::Progressing | Reason::DependencyNotReady | Reason::Deleting) => Self::Progressing,
            _ => Self::Failing,
        }
    }

    /// The label on the page, in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::PendingDecision => "Pending approval",
            _ => self.label(),
        }
    }

    /// The label in JSON and in filters.
    pub fn label(self) -> &'static str {
        match self {
            Self::Failing => "Failing",
            Self::PendingDecision => "PendingApproval",
            Self::Degraded => "Degraded",
            Self::Drifted => "OutOfSync",
            Self::Progressing => "Progressing",
            Self::Starting => "Starting",
            Self::Held => "Held",
            Self::Suspended => "Suspended",
            Self::Synced => "Synced",
        }
    }

    /// Parses a label, in any case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.label().eq_ignore_ascii_case(word))
    }

    /// The meaning, as a sentence without a subject.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Failing => "an error keeps it from being applied",
            Self::PendingDecision => "waits for approval or another decision",
            Self::Degraded => "applied, but some objects are not healthy",
            Self::Drifted => "the cluster differs from Git, and drift is only reported",
            Self::Progressing => "is being applied",
            Self::Starting => "not reconciled yet",
            Self::Held => "held at a revision that a user chose",
            Self::Suspended => "suspended by a user",
            Self::Synced => "the cluster matches Git",
        }
    }

    /// True if the state does not improve without a person.
    pub fn needs_attention(self) -> bool {
        matches!(self, Self::Failing | Self::PendingDecision | Self::Degraded | Self::Drifted)
    }
}

/// Advice about a reason whose message contains none.
pub fn advice(reason: Reason, sync: &SyncName) -> Option<Cow<'static, str>> {
    if reason == Reason::Suspended {
        let command = format!("moorline resume {} -n {}", sync.name, sync.namespace);
        return Some(Cow::Owned(format!(
            "The repository is not polled and nothing is applied until you run: {command}"
        )));
    }
    if reason == Reason::RevisionHeld {
        let command = format!("moorline release {} -n {}", sync.name, sync.namespace);
        return Some(Cow::Owned(format!("Newer commits are not applied until you run: {command}")));
    }
    Some(Cow::Borrowed(match reason {
        Reason::ManifestInvalid => {
            "Nothing of that commit was applied; the previous revision stays. Fix the listed files and commit."
        }
        Reason::ApplyFailed => {
            "Objects that the API server rejected are retried. If the manifest is wrong, fix it and commit."
        }
        Reason::ObjectsHeld => {
            "It continues once the missing object exists, or after you have resolved the conflict."
        }
        Reason::PruneHeld => {
            "Objects were removed from Git but not deleted, because they are too many. Review and approve, or restore them in Git."
        }
        Reason::ApprovalRequired => {
            "The revision is not applied before a person approves its plan. Drift from the approved one is repaired."
        }
        Reason::WindowClosed => {
            "The revision is applied when the change window opens. To apply it now: moorline override."
        }
        Reason::Contested => {
            "Another controller keeps changing the same fields. Remove them from Git, list them in spec.ignoreFields, or stop the other controller."
        }
        Reason::RightsMissing => "An administrator has to grant the permissions that the message names.",
        Reason::SpecInvalid => "Fix the spec of the Sync.",
        Reason::ServiceAccountRequired => "Name a ServiceAccount in spec.serviceAccountName.",
        Reason::DependencyCycle => "Remove one of the Syncs from spec.dependsOn.",
        Reason::DependencyNotReady => "It continues when the Sync that it depends on is ready.",
        Reason::RolledBack => "The newest commit was rolled back to the last healthy one. Commit a fix.",
        Reason::Degraded | Reason::HealthUnknown => {
            "Everything is applied. Check the named object and its Pods for the cause."
        }
        Reason::Deleting => "Slow deletions wait for finalizers. Suspend the Sync to stop the deletion.",
        Reason::DeletionHeld => "Decide about the remaining objects with one of the commands in the message.",
        Reason::FieldsDiffer => {
            "The Sync only reports drift (spec.drift.mode). Commit the change, or undo it by hand. The next commit recreates deleted objects."
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
        let told = advice(Reason::Suspended, &SyncName::new("team", "shop"));
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
            ("ApprovalRequired", SyncState::PendingDecision),
            ("DeletionHeld", SyncState::PendingDecision),
            ("Deleting", SyncState::Progressing),
            ("Degraded", SyncState::Degraded),
            ("Progressing", SyncState::Progressing),
            ("ManifestInvalid", SyncState::Failing),
            ("RolledBack", SyncState::Failing),
            ("RevisionHeld", SyncState::Held),
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
