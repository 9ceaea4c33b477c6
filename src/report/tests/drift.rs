//! Tests: drift that is only reported, and the digest of what is applied.

use super::*;

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
    assert_eq!(later.conditions, now.conditions, "known drift stays in the conditions");
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
