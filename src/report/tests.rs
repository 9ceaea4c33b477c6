//! Tests: the status for given results.

mod approvals;
mod drift;
mod histories;
mod troubles;

use std::collections::BTreeSet;

use super::*;
use crate::api::ApprovalSubject;
use crate::health::HealthSummary;
use crate::object::GroupKind;
use crate::observed::Drift;
use crate::plan::{Failure, FailureReason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

fn at(second: i64) -> Time {
    Time(k8s_openapi::jiff::Timestamp::from_second(second).unwrap())
}

fn id(name: &str) -> ObjectId {
    ObjectId::new("", "ConfigMap", "shop", name).unwrap()
}

fn failed(manifest: bool) -> Outcome {
    Outcome::Failed(Failure { reason: FailureReason::Invalid, message: "it is wrong".to_owned(), manifest })
}

fn missing() -> Outcome {
    Outcome::Held(Hold::NamespaceMissing("shop".into()))
}

fn over_budget() -> Outcome {
    Outcome::Held(Hold::PruneBudgetExceeded { prunes: 20, owned: 30 })
}

fn reported() -> Outcome {
    let drift = Drift { fields: vec!["data.a".to_owned()], manager: Some("kubectl".to_owned()), time: None };
    Outcome::Held(Hold::DriftReported(Box::new(drift)))
}

/// Outcomes of these objects. Objects whose name begins with `old` are no longer in Git.
fn outcomes<const N: usize>(of: [(&str, Outcome); N]) -> BTreeMap<ObjectId, Outcome> {
    of.into_iter().map(|(name, outcome)| (id(name), outcome)).collect()
}

fn written(id: &ObjectId) -> Option<String> {
    (!id.name().starts_with("old")).then(|| format!("{}.yaml:1", id.name()))
}

static NO_TRIES: PendingRetries =
    PendingRetries { next_attempts: BTreeMap::new(), unserved_kinds: BTreeSet::new() };

fn pass<'a>(revision: &str, outcomes: &'a BTreeMap<ObjectId, Outcome>) -> ReconcileInputs<'a> {
    ReconcileInputs {
        revision: revision.to_owned(),
        tag: None,
        tree: Some("tree".to_owned()),
        digest: None,
        outcomes,
        files: &written,
        desired: 20,
        scope: None,
        approval: None,
        approved: None,
        pending: false,
        extra_fields: &[],
        finished: &[],
        delete_hooks: &[],
        remarks: &[],
        isolation_warning: None,
        retries: &NO_TRIES,
        missing_permissions: &[],
        grant_command: "moorline rbac",
        duration: Some(std::time::Duration::from_millis(840)),
        changed_at: outcomes.values().any(Outcome::changes_cluster).then(|| at(100)),
    }
}

fn facts(pass: Option<ReconcileInputs<'_>>) -> StatusInputs<'_> {
    let seen = pass.as_ref().map(|pass| SeenRevision {
        revision: pass.revision.clone(),
        tag: None,
        source: "0a".into(),
    });
    StatusInputs {
        rejected: None,
        generation: Some(3),
        suspended: false,
        hold: None,
        error: None,
        about_revision: false,
        refused: None,
        keeps_objects: false,
        seen,
        reconcile: pass,
        outdated: false,
        health: None,
        waits_for_health: false,
        commits: &[],
        request: None,
        held_by: None,
        request_of_approval: None,
        held_by_window: None,
        now: at(100),
    }
}

fn reconcile_error(lasting: bool) -> ReconcileError {
    let message = "a.yaml:1: no YAML".to_owned();
    ReconcileError {
        cause: ErrorCause::Input("ManifestInvalid"),
        message,
        problems: Vec::new(),
        permanent: lasting,
    }
}

/// The conditions as a line: `Ready=False Stalled=True: ApplyFailed`.
fn shown(status: &SyncStatus) -> String {
    let each: Vec<_> = status.conditions.iter().map(|it| format!("{}={}", it.type_, it.status)).collect();
    format!("{}: {}", each.join(" "), status.conditions[0].reason)
}

fn applied(status: &SyncStatus) -> Option<&str> {
    status.revision.as_ref()?.applied.as_deref()
}

/// Checks the conditions and the applied revision, with `main@1` before. The same inputs at a later
/// time must give the same status.
fn check(facts: &StatusInputs<'_>, expect: &str, expect_applied: &str) -> SyncStatus {
    let nothing = BTreeMap::new();
    let before = status(&SyncStatus::default(), &self::facts(Some(pass("main@1", &nothing))));
    let now = status(&before, facts);
    assert_eq!(shown(&now), expect);
    assert_eq!(applied(&now), Some(expect_applied), "{expect}");
    assert_eq!(now.observed_generation, Some(3));
    assert!(now.conditions.iter().all(|it| it.observed_generation == Some(3)));
    let later = status(&now, &StatusInputs { now: at(500), ..facts.clone() });
    assert_eq!(later, now, "{expect}: nothing else is known");
    now
}

fn check_pass<const N: usize>(of: [(&str, Outcome); N], expect: &str, expect_applied: &str) -> SyncStatus {
    let outcomes = outcomes(of);
    check(&facts(Some(pass("main@2", &outcomes))), expect, expect_applied)
}

#[test]
fn one_line_says_which_revision_is_refused_and_which_is_kept() {
    let held = outcomes([("a", reported()), ("b", Outcome::Kept)]);
    let broken = reconcile_error(true);
    let facts = StatusInputs {
        error: Some(&broken),
        about_revision: true,
        refused: Some("main@3".to_owned()),
        keeps_objects: true,
        ..facts(Some(pass("main@2", &held)))
    };
    let now = check(&facts, "Ready=False Stalled=True Drifted=True: ManifestInvalid", "main@2");
    let expect = "main@3 cannot be applied: a.yaml:1: no YAML; main@2 stays applied";
    assert_eq!(now.conditions[0].message, expect);
    assert_eq!(now.revision.unwrap().attempted.as_deref(), Some("main@3"));
    assert_eq!(now.objects.map(|objects| (objects.applied, objects.drifted)), Some((19, 1)));
    let problems: Vec<&str> = now.problems.iter().map(|problem| problem.reason.as_str()).collect();
    assert_eq!(
        problems,
        ["ManifestInvalid", "DriftReported"],
        "the objects are as they are, whatever is refused"
    );
    assert_eq!(
        (now.history[0].revision.as_str(), now.history[0].result.as_str()),
        ("main@3", "ManifestInvalid")
    );
    assert_eq!(now.history[0].message, expect);
    // Unless the reconcile kept its objects, nothing is known of them.
    let stale = StatusInputs { keeps_objects: false, ..facts };
    assert_eq!(status(&SyncStatus::default(), &stale).objects, None);
}

#[test]
fn at_rest_there_is_neither_reconciling_nor_stalled() {
    check_pass([], "Ready=True: Applied", "main@2");
    let done = [("a", Outcome::Created), ("b", Outcome::Kept), ("old", Outcome::Pruned { gone: true })];
    let now = check_pass(done, "Ready=True: Applied", "main@2");
    assert_eq!(now.last_applied_time, Some(at(100)));
    assert_eq!(now.conditions[0].message, "20 objects are in sync with main@2");
    let counts = ObjectCounts { desired: 20, applied: 20, pruned: 1, ..ObjectCounts::default() };
    assert_eq!(now.objects, Some(counts));
    let kept = check_pass([("a", Outcome::Kept)], "Ready=True: Applied", "main@2");
    assert_eq!(kept.last_applied_time, None, "nothing was changed");
    // A reconcile without a change reports the unwritten change of the one before it, not a known
    // one.
    let nothing = BTreeMap::new();
    let quiet = |time| ReconcileInputs { changed_at: Some(at(time)), ..pass("main@2", &nothing) };
    let told = status(&kept, &facts(Some(quiet(90))));
    assert_eq!(told.last_applied_time, Some(at(90)));
    assert_eq!(status(&now, &facts(Some(quiet(90)))).last_applied_time, Some(at(100)));
    // A missing protection around helm is reported in every status while it is missing.
    let open =
        ReconcileInputs { isolation_warning: Some("helm runs without a wall"), ..pass("main@2", &nothing) };
    let told = status(&kept, &facts(Some(open)));
    assert_eq!(told.conditions[0].message, "20 objects are in sync with main@2; helm runs without a wall");
}

#[test]
fn what_only_another_manifest_helps_is_stalled_and_all_else_is_tried_again() {
    check_pass([("a", failed(true))], "Ready=False Stalled=True: ApplyFailed", "main@1");
    check_pass([("a", failed(false))], "Ready=False Reconciling=True: ApplyFailed", "main@1");
    let both = [("a", failed(true)), ("b", failed(false)), ("c", missing())];
    let now = check_pass(both, "Ready=False Reconciling=True: ApplyFailed", "main@1");
    assert_eq!(now.conditions[0].message, "ConfigMap shop/a: it is wrong (and 1 more)");
    let counts = ObjectCounts { desired: 20, applied: 17, held: 1, failed: 2, ..ObjectCounts::default() };
    assert_eq!(now.objects, Some(counts));
    check_pass([("a", missing())], "Ready=False Reconciling=True: ObjectsHeld", "main@1");
}

#[test]
fn what_is_on_its_way_out_keeps_no_commit_from_being_applied() {
    let now = check_pass([("old", failed(false))], "Ready=False Reconciling=True: ApplyFailed", "main@2");
    assert_eq!(now.objects.map(|objects| (objects.applied, objects.failed)), Some((20, 1)));
    let going = Outcome::Held(Hold::BeingDeleted(Box::default()));
    check_pass([("old", going)], "Ready=False Reconciling=True: ObjectsHeld", "main@2");
    check_pass([("a", Outcome::Held(Hold::ReconcileDisabled))], "Ready=True: Applied", "main@2");
}

#[test]
fn statuses_that_are_read_are_counted() {
    let (nothing, unread) =
        (BTreeMap::new(), |unread, objects| HealthSummary { objects, unread, ..HealthSummary::default() });
    let message = |summary: &HealthSummary| {
        let facts = StatusInputs {
            health: Some(summary),
            waits_for_health: true,
            ..facts(Some(pass("main@2", &nothing)))
        };
        status(&SyncStatus::default(), &facts).conditions[0].message.clone()
    };
    assert_eq!(message(&unread(1, 1)), "the status of 1 of 1 object is being read");
    assert_eq!(message(&unread(2, 3)), "the statuses of 2 of 3 objects are being read");
}

#[test]
fn a_hook_that_runs_is_progress_and_one_that_failed_is_not() {
    let waits = outcomes([("a", Outcome::Held(Hold::WaitsFor(id("hook"))))]);
    check(&facts(Some(pass("main@2", &waits))), "Ready=False Reconciling=True: Progressing", "main@1");
    let degraded = crate::health::Health::Degraded { why: "it failed".to_owned() };
    let summary = HealthSummary {
        objects: 1,
        degraded: 1,
        worst: vec![(id("hook"), degraded)],
        ..HealthSummary::default()
    };
    let facts = StatusInputs { health: Some(&summary), ..facts(Some(pass("main@2", &waits))) };
    check(&facts, "Ready=False Reconciling=True Healthy=False: ObjectsHeld", "main@1");
}

#[test]
fn a_suspended_sync_is_at_rest_and_applies_nothing() {
    let none = BTreeMap::new();
    let facts = StatusInputs { suspended: true, ..facts(Some(pass("main@2", &none))) };
    let now = check(&facts, "Ready=False: Suspended", "main@1");
    assert_eq!(now.history.len(), 1, "the commit has become nothing yet");
    let broken = reconcile_error(true);
    let now = check(
        &StatusInputs { error: Some(&broken), ..facts },
        "Ready=False Stalled=True: ManifestInvalid",
        "main@1",
    );
    assert_eq!(now.history.len(), 1);
}

#[test]
fn a_transition_is_a_change_of_the_status_alone() {
    let tell = |before: &SyncStatus, second, outcome| {
        let outcomes = outcomes([("a", outcome)]);
        status(before, &StatusInputs { now: at(second), ..facts(Some(pass("main@2", &outcomes))) })
    };
    let times = |status: &SyncStatus| {
        status.conditions.iter().map(|it| it.last_transition_time.0.as_second()).collect::<Vec<_>>()
    };
    let failing = tell(&SyncStatus::default(), 100, failed(true));
    assert_eq!(times(&failing), [100, 100]);
    let held = tell(&failing, 200, missing());
    assert_eq!(times(&held), [100, 200], "it was not ready before either; it reconciles since now");
    let ready = tell(&held, 300, Outcome::Updated(crate::plan::Change::MaybeDrifted));
    assert_eq!(times(&ready), [300]);
    assert_eq!(times(&tell(&ready, 400, failed(true))), [400, 400]);
}

#[test]
fn what_is_behind_is_not_ready_although_it_was() {
    let none = BTreeMap::new();
    let facts = |behind| StatusInputs { outdated: behind, ..facts(Some(pass("main@2", &none))) };
    let ready = |status: &SyncStatus| {
        let ready = &status.conditions[0];
        (ready.status.clone(), ready.reason.clone())
    };
    let before = status(&SyncStatus::default(), &facts(false));
    assert_eq!(ready(&before), ("True".to_owned(), "Applied".to_owned()));
    let now = status(&before, &facts(true));
    assert_eq!(ready(&now), ("False".to_owned(), "Progressing".to_owned()));
    assert!(now.conditions.iter().any(|it| it.type_ == "Reconciling" && it.status == "True"));
    assert_eq!((now.history.len(), &now.revision), (1, &before.revision), "nothing else is said");
}
