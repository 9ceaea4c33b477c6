//! Tests: errors, missing rights, and the problems that a status lists.

use super::*;

#[test]
fn trouble_is_told_and_what_was_applied_before_stays() {
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
fn ten_problems_are_told_the_failures_first() {
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
