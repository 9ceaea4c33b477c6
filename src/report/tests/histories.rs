//! Tests: the history of revisions.

use super::*;

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
