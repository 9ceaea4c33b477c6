//! A throttle never leaves a receiver with the opposite of what is true.

use std::time::Duration;

use moorline_api::SyncStatus;
use moorline_notify::{DeliveryResult, advance, owed_in, waiting};
use serde_json::{Value, json};

use super::transitions::{READY, WELL, at, state};
use super::{notifier, status, subject};

const THROTTLE: i64 = 600;

/// A moment of a Sync: the second, the condition Ready, the transition that is sent, and the
/// seconds until something that was left out is sent.
type Moment = (i64, (&'static str, &'static str), &'static [&'static str], Option<u64>);

const FAILS: (&str, &str) = ("False", "ApplyFailed");
const BAD: (&str, &str) = ("False", "Degraded");

/// Leads a Sync through moments; each notification is sent before the next one.
fn check(name: &str, more: &Value, moments: &[Moment]) {
    check_with(name, more, &[], moments);
}

/// Leads a Sync through moments; notifications of some seconds are given up.
fn check_with(name: &str, more: &Value, given_up: &[i64], moments: &[Moment]) {
    let mut spec = json!({"throttle": format!("{THROTTLE}s")});
    spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    let own = [notifier("a", &spec)];
    let mut prev = SyncStatus::default();
    let mut told = Vec::new();
    for (second, ready, expect, owed) in moments {
        let healthy = if *ready == BAD { BAD } else { WELL };
        let mut next = status(state(1, "v1:a", *ready, healthy));
        advance(&subject(), &own, &prev, &mut next, &told, &at(*second));
        let found: Vec<String> = waiting(&next).map(|record| record.transition.to_string()).collect();
        let found: Vec<&str> =
            found.iter().map(String::as_str).filter(|it| !["Applied", "Healthy"].contains(it)).collect();
        assert_eq!(found, *expect, "{name}, second {second}");
        let left = owed_in(&subject(), &own, &next, &at(*second));
        assert_eq!(left, owed.map(Duration::from_secs), "{name}, second {second}: what is owed");
        told = waiting(&next)
            .map(|record| DeliveryResult {
                notifier: "apps/a".into(),
                id: record.id.as_str().into(),
                is_sent: !given_up.contains(second),
            })
            .collect();
        prev = next;
    }
}

#[test]
fn the_last_notification_is_true() {
    let all = json!({});
    check(
        "it fails again",
        &all,
        &[
            (0, READY, &[], None),
            (10, FAILS, &["Failed"], None),
            (20, READY, &["Recovered"], None),
            (30, FAILS, &[], Some(580)),
            (31, FAILS, &[], Some(579)),
            (609, FAILS, &[], Some(1)),
            (610, FAILS, &["Failed"], None),
            (611, FAILS, &[], None),
            (700, READY, &["Recovered"], None),
        ],
    );
    check(
        "it recovers again",
        &all,
        &[
            (0, FAILS, &["Failed"], None),
            (500, READY, &["Recovered"], None),
            (610, FAILS, &["Failed"], None),
            (620, READY, &[], Some(480)),
            (1100, READY, &["Recovered"], None),
        ],
    );
    check(
        "it is well before the throttle ends",
        &all,
        &[
            (0, FAILS, &["Failed"], None),
            (10, READY, &["Recovered"], None),
            (20, FAILS, &[], Some(580)),
            (30, READY, &[], None),
            (700, READY, &[], None),
        ],
    );
    check(
        "it is degraded again",
        &all,
        &[
            (0, READY, &[], None),
            (10, BAD, &["Degraded"], None),
            (20, READY, &["Recovered"], None),
            (30, BAD, &[], Some(580)),
            (900, BAD, &["Degraded"], None),
        ],
    );
    // Of another sort of trouble nothing is left out.
    check(
        "it fails and is degraded",
        &all,
        &[
            (0, READY, &[], None),
            (10, FAILS, &["Failed"], None),
            (20, READY, &["Recovered"], None),
            (30, BAD, &["Degraded"], None),
            (40, READY, &[], Some(580)),
        ],
    );
    check(
        "a filter leaves it out",
        &json!({"filter": "transition != 'Failed' || message != 'why'"}),
        &[
            (0, READY, &[], None),
            (10, BAD, &["Degraded"], None),
            (20, READY, &["Recovered"], None),
            (30, FAILS, &[], None),
            (900, FAILS, &[], None),
        ],
    );
    check(
        "nobody asks for Recovered",
        &json!({"transitions": ["Failed"]}),
        &[
            (0, READY, &[], None),
            (10, FAILS, &["Failed"], None),
            (20, READY, &[], None),
            (900, READY, &[], None),
        ],
    );
}

#[test]
fn what_nobody_received_is_not_contradicted() {
    let all = json!({});
    let tables: [(&str, &[i64], &[Moment]); 4] = [
        (
            "a failure is given up",
            &[610],
            &[
                (0, FAILS, &["Failed"], None),
                (500, READY, &["Recovered"], None),
                (610, FAILS, &["Failed"], None),
                (620, FAILS, &[], None),
                (630, READY, &[], None),
                (1200, READY, &[], None),
            ],
        ),
        (
            "a recovery is given up",
            &[500],
            &[
                (0, FAILS, &["Failed"], None),
                (500, READY, &["Recovered"], None),
                (501, READY, &[], None),
                // The receiver still reads that it fails.
                (510, FAILS, &[], None),
                (520, READY, &["Recovered"], None),
            ],
        ),
        (
            "worse trouble is given up",
            &[610],
            &[
                (0, READY, &[], None),
                (10, BAD, &["Degraded"], None),
                (20, READY, &["Recovered"], None),
                (600, FAILS, &["Failed"], None),
                (610, BAD, &["Degraded"], None),
                // Of the failure it knows.
                (615, READY, &[], Some(5)),
                (620, READY, &["Recovered"], None),
            ],
        ),
        (
            "two sorts of trouble are given up",
            &[610, 611],
            &[
                (0, FAILS, &["Failed"], None),
                (500, READY, &["Recovered"], None),
                (610, FAILS, &["Failed"], None),
                (611, BAD, &["Degraded"], None),
                (612, BAD, &[], None),
                (1300, BAD, &[], None),
            ],
        ),
    ];
    for (name, given_up, moments) in tables {
        check_with(name, &all, given_up, moments);
    }
}

#[test]
fn a_clock_that_is_set_back_holds_nothing_back() {
    let own = [notifier("a", &json!({"throttle": format!("{THROTTLE}s")}))];
    let mut prev = SyncStatus::default();
    for (second, ready) in [(10_000, READY), (10_010, FAILS), (10_020, READY), (10_030, FAILS)] {
        let mut next = status(state(1, "v1:a", ready, WELL));
        advance(&subject(), &own, &prev, &mut next, &[], &at(second));
        prev = next;
    }
    let owed = |now: i64| owed_in(&subject(), &own, &prev, &at(now));
    assert_eq!(owed(10_030), Some(Duration::from_secs(580)));
    // It does not hear of this Sync any more.
    let other = [notifier("a", &json!({"throttle": format!("{THROTTLE}s"), "syncs": {"names": ["other"]}}))];
    assert_eq!(owed_in(&subject(), &other, &prev, &at(10_030)), None);
    // The last failure is in the future now: it is sent at once, as at the end of the throttle.
    assert_eq!(owed(9_000), Some(Duration::ZERO));
    let mut next = status(state(1, "v1:a", FAILS, WELL));
    advance(&subject(), &own, &prev, &mut next, &[], &at(9_000));
    let failed = |status: &SyncStatus| {
        waiting(status).filter(|record| record.transition.to_string() == "Failed").count()
    };
    assert_eq!((failed(&prev), failed(&next)), (1, 2));
    assert_eq!(owed_in(&subject(), &own, &next, &at(9_000)), None);
}

#[test]
fn a_throttle_counts_the_records_of_its_own_notifier() {
    let spec = json!({"throttle": format!("{THROTTLE}s")});
    let own = [notifier("a", &spec), notifier("b", &spec)];
    let mut prev = SyncStatus::default();
    for (second, ready) in [(0, READY), (10, FAILS)] {
        let mut next = status(state(1, "v1:a", ready, WELL));
        advance(&subject(), &own, &prev, &mut next, &[], &at(second));
        prev = next;
    }
    let failed = waiting(&prev).filter(|record| record.transition.to_string() == "Failed");
    let failed: Vec<&str> = failed.map(|record| record.notifier.as_str()).collect();
    assert_eq!(failed, ["apps/a", "apps/b"]);
}

#[test]
fn what_one_notifier_has_sent_is_no_debt_of_another() {
    let throttle = format!("{THROTTLE}s");
    let quiet = json!({"throttle": throttle, "filter": "transition != 'Recovered'"});
    let own = [notifier("a", &quiet), notifier("b", &json!({"throttle": throttle}))];
    let mut prev = SyncStatus::default();
    for (second, ready) in [(0, READY), (10, FAILS), (20, READY), (30, FAILS), (611, FAILS)] {
        let mut next = status(state(1, "v1:a", ready, WELL));
        advance(&subject(), &own, &prev, &mut next, &[], &at(second));
        prev = next;
    }
    let failed = waiting(&prev).filter(|record| record.transition.to_string() == "Failed");
    let failed: Vec<&str> = failed.map(|record| record.notifier.as_str()).collect();
    // The last one of `a` is true already.
    assert_eq!(failed, ["apps/a", "apps/b", "apps/b"]);
}

#[test]
fn nothing_is_owed_without_a_throttle() {
    let narrow = [notifier("a", &json!({"filter": "transition != 'Recovered'"}))];
    let wide = [notifier("a", &json!({}))];
    let mut prev = SyncStatus::default();
    for (second, ready, own) in
        [(0, READY, &narrow), (10, FAILS, &narrow), (20, READY, &narrow), (30, READY, &wide)]
    {
        let mut next = status(state(1, "v1:a", ready, WELL));
        advance(&subject(), own, &prev, &mut next, &[], &at(second));
        prev = next;
    }
    assert_eq!(waiting(&prev).filter(|it| it.transition.to_string() == "Recovered").count(), 0);
    assert_eq!(owed_in(&subject(), &wide, &prev, &at(30)), None);
}
