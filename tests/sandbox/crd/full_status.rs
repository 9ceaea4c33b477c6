//! A status in which each field has a value.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use moorline::api::{
    self, Approval, ApprovalSubject, ApprovedRevision, ChangeCounts, ConditionType, ContestedField,
    FinishedObject, HistoryEntry, ObjectCounts, PendingApproval, Reason, Revisions, Scope, StatusProblem,
    SyncStatus,
};
use serde_json::json;

fn pending_approval() -> PendingApproval {
    PendingApproval {
        of: ApprovalSubject::Revision,
        hash: "4567".to_owned(),
        revision: Some("main@2".to_owned()),
        created: 1,
        changed: 2,
        pruned: 3,
        plan: vec!["create ConfigMap shop/a".to_owned()],
    }
}

fn held_by_window() -> api::HeldByWindow {
    let until = "2026-12-01 22:00 Europe/Berlin";
    let held = json!({"revision": "main@2", "hash": "4567", "by": "ChangeWindow nightly", "until": until});
    serde_json::from_value(held).expect("a revision")
}

fn overridden() -> api::OverriddenRevision {
    let overridden =
        json!({"revision": "main@1", "hash": "0d", "by": "ada", "reason": "CVE", "digest": "v1:0"});
    serde_json::from_value(overridden).expect("a revision")
}

/// A status in which every field says something.
pub(super) fn full_status() -> SyncStatus {
    let time = || serde_json::from_value(json!("2026-01-02T03:04:05Z")).expect("a time");
    let text = |text: &str| Some(text.to_owned());
    let condition = json!({
        "type": ConditionType::Ready.to_string(),
        "status": "True",
        "reason": Reason::Applied.to_string(),
        "message": "applied main@0123",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        "observedGeneration": 1,
    });
    SyncStatus {
        target_uid: text("uid"),
        hooks_at_deletion: vec![],
        observed_generation: Some(1),
        conditions: vec![serde_json::from_value(condition).expect("a condition")],
        revision: Some(Revisions {
            chosen: None,
            chart: None,
            mounts: Vec::new(),
            rejected: None,
            short: text("main@1"),
            held: Some(api::HeldRevision {
                revision: "main@1".to_owned(),
                tag: text("89ab"),
                source: "0a".to_owned(),
                spec: "0b".to_owned(),
                digest: text("v1:0"),
                bytes: Some(1),
            }),
            seen: text("main@2"),
            tag: text("89ab"),
            source: text("0a"),
            attempted: text("main@2"),
            applied: text("main@1"),
            healthy: text("main@1"),
            applied_digest: text("v1:0"),
            healthy_tag: text("cdef"),
            approved: vec![ApprovedRevision {
                revision: "main@1".to_owned(),
                source: "0a".to_owned(),
                spec: "0b".to_owned(),
                digest: text("v1:0"),
                approval: text("0c"),
            }],
            overridden: Some(overridden()),
        }),
        tree_id: text("0123"),
        render_digest: text("4567"),
        objects: Some(ObjectCounts { desired: 6, applied: 1, held: 2, failed: 3, pruned: 4, drifted: 5 }),
        scope: Some(Scope { kinds: vec!["Deployment.apps".to_owned()], namespaces: vec!["shop".to_owned()] }),
        held_by: text("moorline/moorline"),
        last_handled_request: text("now"),
        last_applied_time: Some(time()),
        problems: vec![StatusProblem {
            object: text("Deployment.apps shop/web"),
            file: text("web.yaml:1"),
            reason: "Denied".to_owned(),
            message: "no".to_owned(),
        }],
        contested: vec![ContestedField {
            object: "Deployment.apps shop/web".to_owned(),
            path: text("/spec/replicas"),
            manager: text("scaler"),
        }],
        finished: vec![FinishedObject {
            object: "batch/Job|shop/migrate".to_owned(),
            hash: "v1:0".to_owned(),
            begun: true,
            failed: true,
        }],
        history: vec![history_entry(time())],
        approval: Some(Approval { hash: "0123".to_owned(), objects: 31 }),
        approvals: vec![pending_approval()],
        held_by_window: Some(held_by_window()),
        notifications: vec![notification(time())],
        announced: Some(announced()),
    }
}

/// The state that Notifiers know, in which every field says something.
fn announced() -> api::AnnouncedState {
    api::AnnouncedState {
        revision: "main@1".to_owned(),
        digest: "v1:0".to_owned(),
        healthy: true,
        failed: "ApplyFailed main@1".to_owned(),
        degraded: "main@1".to_owned(),
        applied: "main@1".to_owned(),
        prune: "0123".to_owned(),
        approval: "4567".to_owned(),
        chosen: "main@1".to_owned(),
        rejected: "main@2".to_owned(),
        repairs: Some(api::AnnouncedRepairs { revision: "main@1".to_owned(), objects: 4 }),
    }
}

/// A notification in which every field says something.
fn notification(time: Time) -> api::NotificationRecord {
    api::NotificationRecord {
        notifier: "moorline/chat".to_owned(),
        id: "0123".to_owned(),
        transition: api::Transition::RolledBack,
        time,
        state: api::NotificationState::Waiting,
        details: Some(api::TransitionDetails {
            revision: "main@2".to_owned(),
            previous_revision: "main@1".to_owned(),
            digest: "v1:0".to_owned(),
            reason: "Degraded".to_owned(),
            message: "a probe failed".to_owned(),
            changes: history_entry(serde_json::from_value(json!("2026-01-02T03:04:05Z")).unwrap()).changes,
            objects: 6,
        }),
    }
}

/// An entry of a history in which every field says something.
fn history_entry(time: Time) -> HistoryEntry {
    HistoryEntry {
        revision: "main@1".to_owned(),
        short: "main@1".to_owned(),
        subject: "Open the shop".to_owned(),
        author: "Ada".to_owned(),
        time,
        duration: Some("1.2s".to_owned()),
        result: Reason::Applied.to_string(),
        message: "6 objects".to_owned(),
        changes: ChangeCounts { created: 1, changed: 2, pruned: 3, repaired: 4 },
        digest: Some("v1:0".to_owned()),
    }
}
