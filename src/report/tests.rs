//! Tests: the status for given results.

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
fn an_approval_of_something_else_is_named() {
    let held = outcomes([("old-1", over_budget())]);
    let pass = |approved| ReconcileInputs { approval: Some("abc"), approved, ..pass("main@2", &held) };
    let message =
        |approved| status(&SyncStatus::default(), &facts(Some(pass(approved)))).conditions[0].message.clone();
    let other = "(moorline.dev/approve is \"abd\", which does not match the pending approval abc)";
    assert!(message(Some("abd")).ends_with(other), "{}", message(Some("abd")));
    assert!(message(None).ends_with("moorline.dev/approve=abc"));
}

#[test]
fn what_waits_for_approval_is_counted() {
    let message = |held| {
        status(&SyncStatus::default(), &facts(Some(pass("main@2", held)))).conditions[0].message.clone()
    };
    let one = outcomes([("old-1", Outcome::Held(Hold::Protected))]);
    let told = message(&one);
    assert!(told.contains("1 object removed from Git waits for approval to be deleted"), "{told}");
    let two =
        outcomes([("old-1", Outcome::Held(Hold::Protected)), ("old-2", Outcome::Held(Hold::Protected))]);
    let told = message(&two);
    assert!(told.contains("2 objects removed from Git wait for approval to be deleted"), "{told}");
}

#[test]
fn a_revision_that_waits_is_asked_about_and_nothing_is_wrong() {
    let wait = ReconcileError {
        cause: ErrorCause::ApprovalRequired,
        message: "main@2 waits for approval: 1 to create".to_owned(),
        problems: Vec::new(),
        permanent: true,
    };
    let request = crate::plan::RevisionRequest {
        revision: "main@2".to_owned(),
        hash: "ab".to_owned(),
        created: 1,
        changed: 0,
        pruned: 0,
        lines: vec!["create ConfigMap shop/a".to_owned()],
    };
    let prune = outcomes([("old", over_budget())]);
    let pass = ReconcileInputs { approval: Some("cd"), ..pass("main@1", &prune) };
    let facts = StatusInputs {
        error: Some(&wait),
        about_revision: true,
        refused: Some("main@2".to_owned()),
        keeps_objects: true,
        request_of_approval: Some(&request),
        ..facts(Some(pass))
    };
    let now = check(&facts, "Ready=False: ApprovalRequired", "main@1");
    assert_eq!(now.conditions[0].message, "main@2 waits for approval: 1 to create; main@1 stays applied");
    let asked: Vec<_> = now.approvals.iter().map(|it| (it.of, &*it.hash, it.revision.as_deref())).collect();
    let expect = [(ApprovalSubject::Prune, "cd", None), (ApprovalSubject::Revision, "ab", Some("main@2"))];
    assert_eq!(asked, expect);
    assert!(now.history.iter().all(|entry| entry.revision == "main@1"), "it was not refused");
    let approved = status(&now, &StatusInputs { request_of_approval: None, error: None, ..facts });
    assert_eq!(approved.approvals.len(), 1, "the prune still waits");
}

#[test]
fn a_revision_that_a_window_holds_leaves_the_sync_ready() {
    let closed = ReconcileError {
        cause: ErrorCause::WindowClosed,
        message: "main@2 is held by ChangeWindow freeze".to_owned(),
        problems: Vec::new(),
        permanent: true,
    };
    let held = crate::api::HeldByWindow { revision: "main@2".to_owned(), ..Default::default() };
    let nothing = BTreeMap::new();
    let facts = StatusInputs {
        error: Some(&closed),
        about_revision: true,
        refused: Some("main@2".to_owned()),
        keeps_objects: true,
        held_by_window: Some(&held),
        ..facts(Some(pass("main@1", &nothing)))
    };
    let now = check(&facts, "Ready=True: Applied", "main@1");
    assert!(now.conditions[0].message.ends_with("; main@2 is held by ChangeWindow freeze"));
    assert_eq!((now.problems.len(), now.held_by_window.as_ref()), (0, Some(&held)));
    assert!(now.history.iter().all(|entry| entry.revision == "main@1"), "it was not refused");
    // The first revision of a Sync.
    let first = StatusInputs { refused: None, keeps_objects: false, reconcile: None, ..facts.clone() };
    assert_eq!(shown(&status(&SyncStatus::default(), &first)), "Ready=False: WindowClosed");
    let open = status(&now, &StatusInputs { error: None, refused: None, held_by_window: None, ..facts });
    assert_eq!(open.held_by_window, None);
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
fn a_prune_that_waits_for_a_person_is_at_rest_and_says_how_to_approve_it() {
    let held = outcomes([("old-1", over_budget()), ("old-2", over_budget())]);
    let pass = ReconcileInputs { approval: Some("abc"), ..pass("main@2", &held) };
    let now = check(&facts(Some(pass)), "Ready=False: PruneHeld", "main@2");
    assert_eq!(now.approval, Some(Approval { hash: "abc".to_owned(), objects: 2 }));
    assert!(now.conditions[0].message.ends_with("annotate the Sync with moorline.dev/approve=abc"));
    let protected = Outcome::Held(Hold::Protected);
    let now = check_pass([("old", protected)], "Ready=True: Applied", "main@2");
    assert!(now.conditions[0].message.contains("1 object removed from Git waits for approval"));
}

#[test]
fn drift_that_is_only_reported_is_a_condition_of_its_own_and_outlives_a_comparison() {
    let now = check_pass([("a", reported())], "Ready=False Drifted=True: FieldsDiffer", "main@2");
    assert_eq!(now.objects.map(|objects| (objects.drifted, objects.applied)), Some((1, 19)));
    assert_eq!(
        now.conditions[0].message,
        "1 of 20 objects is out of sync with main@2: ConfigMap shop/a: data.a was changed by kubectl, and only reported"
    );
    assert_eq!(now.history[0].result, "Applied", "drift says nothing about the commit");
    assert_eq!(
        now.conditions[1].message,
        "ConfigMap shop/a: data.a was changed by kubectl, and only reported"
    );
    let unknown = outcomes([("a", Outcome::Held(Hold::Unverified))]);
    let compared = ReconcileInputs { pending: true, ..pass("main@2", &unknown) };
    let later = status(&now, &facts(Some(compared)));
    assert_eq!(later.conditions, now.conditions, "what was known is told on");
    assert_eq!((later.objects, &later.problems), (now.objects, &now.problems));
    let over = status(&later, &facts(Some(pass("main@2", &BTreeMap::new()))));
    assert_eq!(shown(&over), "Ready=True: Applied");
}

#[test]
fn a_deleted_object_that_is_only_reported_is_drift() {
    let now =
        check_pass([("a", Outcome::Held(Hold::Deleted))], "Ready=False Drifted=True: FieldsDiffer", "main@2");
    assert_eq!(now.conditions[1].message, "ConfigMap shop/a: deleted by others, and only reported");
    assert_eq!(now.objects.map(|objects| (objects.drifted, objects.applied)), Some((1, 19)));
    let both = check_pass(
        [("a", Outcome::Held(Hold::Deleted)), ("old", Outcome::Held(Hold::Protected)), ("z", reported())],
        "Ready=False Drifted=True: FieldsDiffer",
        "main@2",
    );
    let message = &both.conditions[0].message;
    assert!(message.starts_with("2 of 20 objects are out of sync with main@2"), "{message}");
    assert!(message.contains("1 object removed from Git waits for approval"), "{message}");
}

#[test]
fn the_digest_of_what_is_applied_stands_until_something_else_is_begun() {
    let digest = |byte| crate::api::SpecHash { form: crate::api::CanonicalForm::V1, digest: [byte; 32] };
    let digests = [0, 1, 2, 3, 4].map(|byte| SetDigest::from(digest(byte)));
    let (fine, wrong) = (BTreeMap::new(), outcomes([("a", failed(false))]));
    let with =
        |revision, outcomes, byte| ReconcileInputs { digest: digests.get(byte), ..pass(revision, outcomes) };
    let after = |before: &SyncStatus, pass| status(before, &facts(Some(pass)));
    let is_applied = |status: &SyncStatus, revision: &str, byte| {
        status.revision.as_ref().is_some_and(|it| it.is_applied(revision, |known| *known == digest(byte)))
    };
    let first = after(&SyncStatus::default(), with("main@1", &fine, 1));
    assert!(is_applied(&first, "main@1", 1));
    assert!(!is_applied(&first, "main@2", 1) && !is_applied(&first, "main@1", 2));
    let fails = after(&first, with("main@1", &wrong, 1));
    assert!(is_applied(&fails, "main@1", 1), "it was applied once");
    let other = after(&first, with("main@2", &wrong, 2));
    assert_eq!(applied(&other), Some("main@1"));
    assert!(!is_applied(&other, "main@1", 1), "what is absent may have been pruned");
    let back = after(&other, with("main@1", &wrong, 1));
    assert!(!is_applied(&back, "main@1", 1));
    assert!(is_applied(&after(&back, with("main@1", &fine, 1)), "main@1", 1));
    let mut begun = first;
    let held = crate::api::HeldRevision { revision: "main@2".to_owned(), ..Default::default() };
    begun.revision.as_mut().unwrap().held = Some(held);
    assert!(!is_applied(&begun, "main@1", 1), "main@2 is being applied");
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
fn an_error_is_reported_and_the_applied_revision_stays() {
    let passing = reconcile_error(false);
    let facts = StatusInputs { error: Some(&passing), ..facts(None) };
    let now = check(&facts, "Ready=False Reconciling=True: ManifestInvalid", "main@1");
    assert_eq!(now.objects.map(|objects| objects.applied), Some(20));
    assert_eq!((now.problems.len(), &*now.problems[0].message), (1, "a.yaml:1: no YAML"));
    let many =
        ReconcileError { problems: (0..15).map(|nth| format!("{nth}")).collect(), ..reconcile_error(true) };
    let now = check(
        &StatusInputs { error: Some(&many), ..facts },
        "Ready=False Stalled=True: ManifestInvalid",
        "main@1",
    );
    let told: Vec<&str> = now.problems.iter().map(|it| &*it.message).collect();
    assert_eq!(told, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    let nothing = self::facts(None);
    check(&nothing, "Ready=False Reconciling=True: Progressing", "main@1");
}

#[test]
fn missing_rights_come_before_all_that_follows_from_them() {
    let (denied, rights) = (outcomes([("a", failed(true))]), ["create configmaps".to_owned()]);
    let pass = ReconcileInputs { missing_permissions: &rights, ..pass("main@2", &denied) };
    let now = status(&SyncStatus::default(), &facts(Some(pass)));
    assert_eq!(now.conditions[0].reason, "RightsMissing");
    let message = "permissions are missing; `moorline rbac` grants them: create configmaps";
    assert_eq!(now.conditions[0].message, message);
}

#[test]
fn a_sync_that_may_write_nothing_says_that_its_revision_is_not_kept() {
    let forbidden = || {
        Outcome::Failed(Failure { reason: FailureReason::Forbidden, message: String::new(), manifest: false })
    };
    let rights = ["create configmaps".to_owned()];
    let message = |before: &SyncStatus, outcomes: &BTreeMap<ObjectId, Outcome>| {
        let pass = ReconcileInputs { missing_permissions: &rights, desired: 2, ..pass("main@2", outcomes) };
        status(before, &facts(Some(pass))).conditions[0].message.clone()
    };
    let told = "permissions are missing; `moorline rbac` grants them: create configmaps";
    let both = outcomes([("a", forbidden()), ("b", forbidden())]);
    let revision = Revisions { applied: Some("main@1".to_owned()), ..Revisions::default() };
    let applied = SyncStatus { revision: Some(revision), ..SyncStatus::default() };
    assert_eq!(message(&applied, &both), format!("main@2 is not held: {told}"));
    assert_eq!(message(&SyncStatus::default(), &both), told, "nothing was applied before");
    assert_eq!(message(&applied, &outcomes([("a", forbidden())])), told, "the rest is kept");
}

#[test]
fn ten_problems_are_listed_failures_first() {
    let held = (0..12).map(|nth| (id(&format!("a{nth:02}")), missing()));
    let failures = (0..3).map(|nth| (id(&format!("z{nth}")), failed(nth > 0)));
    let all = held.chain(failures).collect();
    let remarks = [ObjectRemark { id: id("b"), reason: "Deprecated", message: "soon gone".to_owned() }];
    let pass = ReconcileInputs { remarks: &remarks, ..pass("main@2", &all) };
    let now = status(&SyncStatus::default(), &facts(Some(pass)));
    let told: Vec<&str> = now.problems.iter().filter_map(|it| it.file.as_deref()).collect();
    assert_eq!(told[..4], ["z0.yaml:1", "z1.yaml:1", "z2.yaml:1", "a00.yaml:1"]);
    assert_eq!((told.len(), &*now.problems[0].reason), (10, "Invalid"));
    assert_eq!(now.problems[3].reason, "NamespaceMissing");
    let few = outcomes([("a", missing())]);
    let pass = ReconcileInputs { remarks: &remarks, ..self::pass("main@2", &few) };
    let now = status(&SyncStatus::default(), &facts(Some(pass)));
    assert_eq!(
        now.problems.iter().map(|it| &*it.reason).collect::<Vec<_>>(),
        ["NamespaceMissing", "Deprecated"]
    );
}

#[test]
fn a_message_is_cut_at_a_thousand_characters() {
    let long = ReconcileError { message: "ä".repeat(1001), ..reconcile_error(true) };
    let now = status(&SyncStatus::default(), &StatusInputs { error: Some(&long), ..facts(None) });
    for message in [&now.conditions[0].message, &now.problems[0].message] {
        assert_eq!(message.chars().count(), 1001);
        assert!(message.ends_with("ä…"));
    }
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
fn history_keeps_the_last_ten_and_marks_what_was_rejected() {
    let (good, bad) = (outcomes([]), outcomes([("a", failed(true))]));
    let mut now = SyncStatus::default();
    for nth in 1..=12 {
        let became = if nth == 11 { &bad } else { &good };
        let facts = facts(Some(pass(&format!("main@{nth}"), became)));
        now = status(&now, &StatusInputs { now: at(nth), ..facts.clone() });
        // A retry is no new event.
        now = status(&now, &StatusInputs { now: at(nth + 50), ..facts });
    }
    let told: Vec<_> = now.history.iter().map(|it| format!("{} {}", it.revision, it.result)).collect();
    assert_eq!(told.len(), 10);
    assert_eq!(told[..3], ["main@12 Applied", "main@11 ApplyFailed", "main@10 Applied"]);
    assert_eq!((told[9].as_str(), &now.history[9].time), ("main@3 Applied", &at(3)));
    let messages: Vec<_> = now.history.iter().map(|it| &*it.message).take(2).collect();
    assert_eq!(messages, ["", "ConfigMap shop/a: it is wrong"]);
    // A revision in progress has no outcome yet.
    let waits = outcomes([("a", failed(false))]);
    let under_way = status(&now, &facts(Some(pass("main@13", &waits))));
    assert_eq!(under_way.history, now.history);
    assert_eq!(applied(&under_way), Some("main@12"));
    // A commit that cannot be rendered is recorded as well, if the error is about that commit.
    let broken = reconcile_error(true);
    let facts = StatusInputs { error: Some(&broken), ..facts(Some(pass("main@13", &good))) };
    assert_eq!(status(&now, &facts).history, now.history, "the repository could not be read");
    let rejected = status(&now, &StatusInputs { about_revision: true, ..facts });
    assert_eq!(
        (&*rejected.history[0].revision, &*rejected.history[0].result),
        ("main@13", "ManifestInvalid")
    );
    assert_eq!(applied(&rejected), Some("main@12"));
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

#[test]
fn a_refusal_names_the_time_of_the_next_try() {
    let refused = outcomes([("a", failed(true)), ("b", failed(true))]);
    let next = BTreeMap::from([(id("a"), Timestamp::from_second(1_800_000_200).unwrap())]);
    let message = |tries: &PendingRetries| {
        let facts = facts(Some(ReconcileInputs { retries: tries, ..pass("main@2", &refused) }));
        let told = status(&SyncStatus::default(), &facts);
        // The history is about commits: a retry time would change its entries.
        assert!(!told.history[0].message.contains("next retry"), "{told:?}");
        told.conditions[0].message.clone()
    };
    let expect = "ConfigMap shop/a: it is wrong (and 1 more)";
    assert_eq!(message(&NO_TRIES), expect);
    assert_eq!(
        message(&PendingRetries { next_attempts: next, ..PendingRetries::default() }),
        format!("{expect}; next retry at 08:03:20 UTC")
    );
}

#[test]
fn a_kind_that_is_about_to_be_served_is_progress() {
    let unknown = outcomes([("a", Outcome::Held(Hold::UnknownKind))]);
    let told = |lags: &[&str]| {
        let lags = lags.iter().map(|kind| GroupKind::new("", kind)).collect();
        let tries = PendingRetries { unserved_kinds: lags, ..PendingRetries::default() };
        let facts = facts(Some(ReconcileInputs { retries: &tries, ..pass("main@2", &unknown) }));
        status(&SyncStatus::default(), &facts).conditions[0].reason.clone()
    };
    assert_eq!((told(&["ConfigMap"]), told(&[])), ("Progressing".to_owned(), "ObjectsHeld".to_owned()));
    assert_eq!(told(&["Secret"]), "ObjectsHeld", "another kind is expected to come");
}

#[test]
fn every_applied_revision_is_in_the_history_although_its_objects_never_get_well() {
    let nothing = BTreeMap::new();
    let summary = HealthSummary { objects: 1, progressing: 1, ..HealthSummary::default() };
    let commits = [1, 2, 3].map(|nth| CommitDescription {
        revision: format!("main@{nth}"),
        subject: format!("Change {nth}"),
        author: "Ada".to_owned(),
    });
    let unwell = |revision: &str, second| {
        let facts = StatusInputs {
            health: Some(&summary),
            waits_for_health: true,
            ..facts(Some(pass(revision, &nothing)))
        };
        (revision.to_owned(), at(second), facts.clone())
    };
    let mut now = SyncStatus::default();
    for (nth, revision) in ["main@1", "main@2", "main@3"].iter().enumerate() {
        let (_, time, facts) = unwell(revision, i64::try_from(nth).unwrap());
        now = status(&now, &StatusInputs { now: time, commits: &commits, ..facts.clone() });
        assert!(now.conditions[0].status != "True" && now.conditions[0].reason == "Progressing");
        let later = status(&now, &StatusInputs { now: at(50), ..facts });
        assert_eq!(later.history, now.history);
    }
    let told: Vec<_> =
        now.history.iter().map(|it| format!("{} {} {}", it.short, it.result, it.subject)).collect();
    assert_eq!(told, ["main@3 Applied Change 3", "main@2 Applied Change 2", "main@1 Applied Change 1"]);
    assert_eq!((now.history[0].duration.as_deref(), &*now.history[0].author), (Some("840ms"), "Ada"));
    // The health replaces the outcome, and nothing else.
    let why = crate::health::Health::Degraded { why: "no disk".to_owned() };
    let degraded =
        HealthSummary { objects: 1, degraded: 1, worst: vec![(id("a"), why)], ..HealthSummary::default() };
    let told = StatusInputs {
        health: Some(&degraded),
        waits_for_health: true,
        ..facts(Some(pass("main@3", &nothing)))
    };
    let worse = status(&now, &told);
    assert_eq!((worse.history.len(), &*worse.history[0].result), (3, "Degraded"));
    assert_eq!(
        (&worse.history[0].subject, &worse.history[0].time),
        (&now.history[0].subject, &now.history[0].time)
    );
    let well = status(&worse, &facts(Some(pass("main@3", &nothing))));
    assert_eq!(well.history, now.history);
}

#[test]
fn what_a_suspended_sync_keeps_is_not_applied_while_objects_wait_for_its_resume() {
    let waits = outcomes([("new", Outcome::Held(Hold::Suspended))]);
    let broken = reconcile_error(true);
    let refused = StatusInputs {
        suspended: true,
        error: Some(&broken),
        about_revision: true,
        refused: Some("main@3".to_owned()),
        keeps_objects: true,
        ..facts(Some(pass("main@2", &waits)))
    };
    let now = status(&SyncStatus::default(), &refused);
    assert_eq!(now.revision.unwrap_or_default().applied, None);
}

#[test]
fn the_revision_that_is_kept_and_the_one_that_is_refused_are_both_in_the_history() {
    let nothing = BTreeMap::new();
    let broken = reconcile_error(true);
    let refused = StatusInputs {
        error: Some(&broken),
        about_revision: true,
        refused: Some("main@3".to_owned()),
        keeps_objects: true,
        ..facts(Some(pass("main@2", &nothing)))
    };
    let now = check(&refused, "Ready=False Stalled=True: ManifestInvalid", "main@2");
    let told = |status: &SyncStatus| {
        let each = status.history.iter().map(|it| format!("{} {}", it.revision, it.result));
        each.collect::<Vec<_>>()
    };
    assert_eq!(told(&now), ["main@3 ManifestInvalid", "main@2 Applied", "main@1 Applied"]);
    let mut counted = now;
    let repaired = crate::api::ChangeCounts { repaired: 2, ..Default::default() };
    assert!(add_changes(&mut counted, "main@2", repaired) && !add_changes(&mut counted, "main@9", repaired));
    assert_eq!(counted.history[1].changes, repaired);
    // A revision that was rolled back keeps its subject and its counts.
    let rejected =
        RolledBackRevision { revision: "main@2".into(), held: "main@1".into(), why: "it is unwell".into() };
    let back = status(
        &counted,
        &StatusInputs { rejected: Some(&rejected), ..facts(Some(pass("main@1", &nothing))) },
    );
    assert_eq!(told(&back), ["main@2 RolledBack", "main@3 ManifestInvalid", "main@1 Applied"]);
    assert_eq!(back.history[0].changes, repaired);
}

#[test]
fn one_revision_that_goes_to_and_fro_does_not_push_out_the_others() {
    let (good, bad) = (outcomes([]), outcomes([("a", failed(true))]));
    let mut now = status(&SyncStatus::default(), &facts(Some(pass("main@1", &good))));
    for _ in 0..10 {
        now = status(&now, &facts(Some(pass("main@2", &good))));
        now = status(&now, &facts(Some(pass("main@2", &bad))));
    }
    let told: Vec<_> = now.history.iter().map(|it| format!("{} {}", it.revision, it.result)).collect();
    assert_eq!(told, ["main@2 ApplyFailed", "main@2 Applied", "main@1 Applied"]);
}

#[test]
fn a_held_sync_says_at_which_revision_by_whom_and_why() {
    let none = outcomes([]);
    let hold =
        crate::api::RevisionHold { revision: "main@1".into(), by: "ada".into(), reason: "it is slow".into() };
    let seen = |revision: &str| SeenRevision { revision: revision.into(), tag: None, source: "0a".into() };
    let held = StatusInputs { hold: Some(&hold), ..facts(Some(pass("main@1", &none))) };
    let told = |facts: &StatusInputs<'_>| {
        let status = status(&SyncStatus::default(), facts);
        let ready = status.conditions[0].clone();
        assert_eq!(status.revision.unwrap().chosen.unwrap().by, "ada");
        (ready.status, ready.reason, ready.message)
    };
    let (ready, reason, message) = told(&held);
    assert_eq!((&*ready, &*reason), ("True", "Applied"));
    assert!(message.ends_with("; held at main@1 by ada: it is slow"), "{message}");
    let behind = StatusInputs { seen: Some(seen("main@2")), ..held };
    let (ready, reason, message) = told(&behind);
    assert_eq!((&*ready, &*reason), ("False", "RevisionHeld"));
    assert!(message.starts_with("held at main@1 by ada: it is slow; main@2 is not applied"), "{message}");
    let now = status(&SyncStatus::default(), &behind);
    assert_eq!(now.history[0].result, "Applied");
    assert!(!now.conditions.iter().any(|it| it.type_ == "Reconciling" || it.type_ == "Stalled"));
    // The choice of a person has precedence over an earlier rollback.
    let rejected =
        RolledBackRevision { revision: "main@2".into(), held: "main@0".into(), why: "it is unwell".into() };
    let (_, reason, _) = told(&StatusInputs { rejected: Some(&rejected), ..behind.clone() });
    assert_eq!(reason, "RevisionHeld");
    // It ends with the hold.
    let now = status(&now, &facts(Some(pass("main@2", &none))));
    assert_eq!(now.revision.unwrap().chosen, None);
    let error = reconcile_error(true);
    let refused = StatusInputs {
        error: Some(&error),
        about_revision: true,
        refused: Some("main@1".into()),
        keeps_objects: true,
        hold: Some(&hold),
        ..facts(Some(pass("main@2", &none)))
    };
    let (ready, _, message) = told(&refused);
    assert_eq!(ready, "False");
    let expect = "main@1 cannot be applied: a.yaml:1: no YAML; main@2 stays applied; moorline.dev/hold-revision is main@1 by ada: it is slow";
    assert_eq!(message, expect);
}
