//! Tests: revisions and prunes that wait for a person, and a Sync that a person holds.

use super::*;

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
