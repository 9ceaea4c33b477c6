//! Statuses that were written before the Notifiers were known hide no transition that lasts.

use moorline_api::{AnnouncedState, SyncStatus};
use moorline_notify::{advance, known_before, waiting};
use serde_json::{Value, json};

use super::transitions::{READY, WELL, at, state};
use super::{notifier, revision, status, subject};

/// Returns what is sent about a state once the Notifiers are known; the status had it before.
fn told_late(announced: AnnouncedState, late: &Value) -> Vec<String> {
    let own = [notifier("a", &json!({}))];
    let mut written = status(late.clone());
    written.announced = Some(announced);
    let mut next = status(late.clone());
    advance(&subject(), &own, &written, &mut next, &[], &at(1));
    let told = waiting(&next).map(|record| record.transition.to_string()).collect();
    let mut again = status(late.clone());
    advance(&subject(), &own, &next, &mut again, &[], &at(2));
    assert_eq!(waiting(&again).count(), waiting(&next).count(), "it is sent once: {late}");
    told
}

#[test]
fn what_lasts_is_sent_when_the_notifiers_are_known() {
    let with = |pointer: &[&str], value: Value| {
        let mut state = state(1, "v1:a", READY, WELL);
        pointer.iter().fold(&mut state, |at, key| &mut at[*key]).clone_from(&value);
        state
    };
    let entry = json!([{"revision": revision(1), "time": "2026-01-01T00:00:00Z", "result": "Applied", "changes": {"repaired": 2}}]);
    let earlier = known_before(&status(state(1, "v1:a", READY, WELL)));
    let mut repaired_before = earlier.clone();
    repaired_before.repairs = Some(moorline_api::AnnouncedRepairs { revision: revision(1), objects: 1 });
    let none = known_before(&SyncStatus::default());
    // That of a daemon of the version before, which knew no other fields.
    let AnnouncedState { revision: known, digest, healthy, .. } = earlier.clone();
    let old = AnnouncedState { revision: known, digest, healthy, ..AnnouncedState::default() };
    let mut without_digest = state(1, "v1:a", READY, WELL);
    without_digest["revision"].as_object_mut().expect("a map").remove("appliedDigest");
    let held = json!({"revision": revision(9), "by": "ada"});
    for (announced, late, expect) in [
        (&none, state(1, "v1:a", READY, WELL), vec!["Applied", "Healthy"]),
        (&earlier, state(1, "v1:a", READY, WELL), vec![]),
        (&earlier, state(2, "v1:b", READY, WELL), vec!["Applied", "Healthy"]),
        (&earlier, state(2, "v1:a", READY, WELL), vec![]),
        (&earlier, state(1, "v1:a", ("False", "ApplyFailed"), WELL), vec!["Failed"]),
        (&earlier, state(1, "v1:a", ("False", "Degraded"), ("False", "Degraded")), vec!["Degraded"]),
        (&earlier, with(&["approval"], json!({"hash": "h", "objects": 3})), vec!["PruneHeld"]),
        (&earlier, with(&["approvals"], json!([{"of": "Revision", "hash": "h"}])), vec!["ApprovalRequired"]),
        (&earlier, with(&["revision", "rejected"], json!(revision(9))), vec!["RolledBack"]),
        (
            &earlier,
            with(&["revision", "chosen"], json!({"revision": revision(9), "by": "ada"})),
            vec!["RolledBack"],
        ),
        (&old, with(&["approval"], json!({"hash": "h", "objects": 3})), vec![]),
        (&old, with(&["approvals"], json!([{"of": "Revision", "hash": "h"}])), vec![]),
        (&old, with(&["revision", "rejected"], json!(revision(9))), vec![]),
        (&old, with(&["revision", "chosen"], held), vec![]),
        (&old, without_digest, vec![]),
        (&old, state(1, "v1:a", ("False", "ApplyFailed"), WELL), vec!["Failed"]),
        (&old, state(1, "v1:a", ("False", "Degraded"), ("False", "Degraded")), vec!["Degraded"]),
        (&repaired_before, with(&["history"], entry.clone()), vec!["DriftRepaired"]),
        // The only one that is lost: the first repairs of a revision.
        (&earlier, with(&["history"], entry), vec![]),
    ] {
        assert_eq!(told_late(announced.clone(), &late), expect, "{late}");
    }
}

#[test]
fn an_upgrade_goes_on_from_what_was_known() {
    let well = |applied, digest| state(applied, digest, READY, WELL);
    let without_digest = |rendered: &str, attempted: u64| {
        let mut state = well(1, "");
        state["revision"].as_object_mut().expect("a map").remove("appliedDigest");
        state["revision"]["attempted"] = revision(attempted).into();
        state["renderDigest"] = rendered.into();
        state
    };
    let AnnouncedState { revision: known, digest, healthy, .. } = known_before(&status(well(1, "v1:a")));
    let old = || {
        Some(AnnouncedState {
            revision: known.clone(),
            digest: digest.clone(),
            healthy,
            ..AnnouncedState::default()
        })
    };
    let both = || vec![("Applied", revision(1)), ("Healthy", String::new())];
    for (what, announced, prev, next, expect) in [
        ("the digest is not recorded", old(), without_digest("v1:b", 1), well(2, "v1:a"), vec![]),
        (
            "it was healthy",
            old(),
            state(1, "v1:a", READY, ("Unknown", "Progressing")),
            well(1, "v1:a"),
            vec![],
        ),
        ("a commit elsewhere before", old(), well(2, "v1:a"), well(3, "v1:b"), both()),
        ("the digest of the render", None, without_digest("v1:a", 1), well(2, "v1:a"), vec![]),
        ("the render of another revision", None, without_digest("v1:b", 2), well(2, "v1:b"), both()),
    ] {
        let own = [notifier("a", &json!({}))];
        let mut prev = status(prev);
        prev.announced = announced;
        let mut next = status(next);
        advance(&subject(), &own, &prev, &mut next, &[], &at(1));
        let told = waiting(&next).map(|record| {
            let details = record.details.clone().unwrap_or_default();
            (record.transition.to_string(), details.previous_revision)
        });
        let expect: Vec<_> = expect.into_iter().map(|(told, from)| (told.to_owned(), from)).collect();
        assert_eq!(told.collect::<Vec<_>>(), expect, "{what}");
    }
}
