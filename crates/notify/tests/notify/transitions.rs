//! Transitions that are sent: of which Syncs, and how often.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use moorline_api::{SyncStatus, Transition};
use moorline_notify::{DeliveryResult, MAX_WAITING, Subject, advance, waiting};
use serde_json::{Value, json};

use super::{compiled, notifier, revision, status, subject};

/// A status: the revision, its digest, the condition Ready and the condition Healthy.
pub(crate) fn state(applied: u64, digest: &str, ready: (&str, &str), healthy: (&str, &str)) -> Value {
    let condition = |type_: &str, (status, reason): (&str, &str)| json!({"type": type_, "status": status, "reason": reason, "message": "why", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let well = healthy.0 == "True";
    json!({
        "conditions": [condition("Ready", ready), condition("Healthy", healthy)],
        "revision": {
            "attempted": revision(applied), "applied": revision(applied), "appliedDigest": digest,
            "healthy": well.then(|| revision(applied)),
        },
    })
}

pub(crate) const READY: (&str, &str) = ("True", "Applied");
pub(crate) const WELL: (&str, &str) = ("True", "Healthy");
const PROGRESS: (&str, &str) = ("Unknown", "Progressing");

pub(crate) fn at(second: i64) -> Time {
    Time(jiff::Timestamp::from_second(1_790_000_000 + second).expect("a time"))
}

/// Leads a Sync through states; returns the transitions that are sent at each.
fn told_at_each(states: &[Value]) -> Vec<Vec<String>> {
    let own = [notifier("a", &json!({}))];
    let mut prev = SyncStatus::default();
    let mut told: Vec<DeliveryResult> = Vec::new();
    let mut all = Vec::new();
    for (second, state) in (0..).zip(states) {
        let mut next = status(state.clone());
        advance(&subject(), &own, &prev, &mut next, &told, &at(second));
        all.push(waiting(&next).map(|record| record.transition.to_string()).collect());
        let end = |record: &moorline_api::NotificationRecord| DeliveryResult {
            notifier: record.notifier.as_str().into(),
            id: record.id.as_str().into(),
            is_sent: true,
        };
        told = waiting(&next).map(end).collect();
        prev = next;
    }
    all
}

#[test]
fn a_commit_is_sent_by_the_syncs_that_it_changed() {
    let mut held = state(3, "v1:a", READY, WELL);
    held["revision"]["held"] = json!({"revision": revision(4), "source": "s", "spec": "s"});
    held["revision"].as_object_mut().expect("a map").remove("appliedDigest");
    let table: [(Value, &[&str]); 9] = [
        (state(1, "v1:a", PROGRESS, PROGRESS), &["Applied"]),
        (state(1, "v1:a", READY, WELL), &["Healthy"]),
        // A commit elsewhere in the repository.
        (state(2, "v1:a", READY, WELL), &[]),
        (state(3, "v1:a", READY, WELL), &[]),
        // One that takes long, and changes nothing here either.
        (held, &[]),
        (state(4, "v1:a", READY, WELL), &[]),
        // The spec changes what the same commit means.
        (state(4, "v1:b", READY, WELL), &[]),
        (state(5, "v1:c", READY, WELL), &["Applied", "Healthy"]),
        (state(5, "v1:c", READY, WELL), &[]),
    ];
    let found = told_at_each(&table.clone().map(|(state, _)| state));
    let expect = table.map(|(_, told)| told.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
    assert_eq!(found, expect);
}

#[test]
fn trouble_is_sent_once_and_so_is_its_end() {
    let fails = |applied| state(applied, "v1:a", ("False", "ApplyFailed"), WELL);
    let bad = ("False", "Degraded");
    let mut refused = state(1, "v1:a", ("False", "YamlInvalid"), WELL);
    refused["revision"]["attempted"] = json!(revision(9));
    let mut prune = state(1, "v1:a", ("False", "PruneHeld"), WELL);
    prune["approval"] = json!({"hash": "h1", "objects": 3});
    let mut drift = state(1, "v1:a", READY, WELL);
    drift["history"] = json!([{"revision": revision(1), "time": "2026-01-01T00:00:00Z", "result": "Applied", "changes": {"repaired": 2}}]);
    let mut back = drift.clone();
    back["revision"]["rejected"] = json!(revision(8));
    let mut chosen = back.clone();
    chosen["revision"]["chosen"] = json!({"revision": revision(1), "by": "ada", "reason": "slow"});
    let asks = |hash: &str| {
        let mut asks = state(1, "v1:a", ("False", "ApprovalRequired"), WELL);
        asks["approvals"] =
            json!([{"of": "Prune", "hash": "p"}, {"of": "Revision", "hash": hash, "revision": revision(2)}]);
        asks
    };
    let table: [(Value, &[&str]); 18] = [
        (state(1, "v1:a", READY, WELL), &["Applied", "Healthy"]),
        (asks("h"), &["ApprovalRequired"]),
        (asks("h"), &[]),
        // A newer revision replaces the question.
        (asks("i"), &["ApprovalRequired"]),
        (state(1, "v1:a", READY, WELL), &[]),
        (fails(1), &["Failed"]),
        (state(1, "v1:a", PROGRESS, WELL), &[]),
        (fails(1), &[]),
        (state(1, "v1:a", READY, WELL), &["Recovered"]),
        (state(1, "v1:a", bad, bad), &["Degraded"]),
        (state(1, "v1:a", READY, PROGRESS), &[]),
        (state(1, "v1:a", READY, WELL), &["Recovered"]),
        (refused, &["Failed"]),
        (prune.clone(), &["PruneHeld"]),
        (prune, &[]),
        (drift, &["DriftRepaired", "Recovered"]),
        (back, &["RolledBack"]),
        (chosen, &["RolledBack"]),
    ];
    let found = told_at_each(&table.clone().map(|(state, _)| state));
    let expect = table.map(|(_, told)| told.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
    assert_eq!(found, expect);
}

#[test]
fn a_sync_that_never_applied_is_degraded_once() {
    let mut bad = state(1, "v1:a", ("False", "Degraded"), ("False", "Degraded"));
    bad["revision"] = json!({"attempted": revision(1)});
    let found = told_at_each(&[bad.clone(), bad.clone(), bad.clone()]);
    assert_eq!(found, [vec!["Degraded".to_owned()], vec![], vec![]]);
    // It was so before there was a Notifier.
    let prev = status(bad);
    let mut next = prev.clone();
    advance(&subject(), &[notifier("a", &json!({}))], &prev, &mut next, &[], &at(0));
    assert_eq!(waiting(&next).count(), 0);
}

/// Adds the number of objects that were repaired to a state of revision 1.
fn repaired(objects: u64) -> Value {
    let mut drift = state(1, "v1:a", READY, WELL);
    drift["history"] = json!([{"revision": revision(1), "time": "2026-01-01T00:00:00Z", "result": "Applied", "changes": {"repaired": objects}}]);
    drift
}

#[test]
fn repairs_within_a_second_are_two_and_are_no_state_of_a_commit() {
    let github = json!({"slack": null, "github": {"url": "https://git.example.com/api/v3", "secretRef": {"name": "s"}}});
    for (more, expect) in [(json!({}), 3), (github, 0)] {
        let own = [notifier("a", &more)];
        let mut prev = status(repaired(0));
        for objects in [1, 2, 4] {
            let mut next = status(repaired(objects));
            advance(&subject(), &own, &prev, &mut next, &[], &at(0));
            prev = next;
        }
        let ids: std::collections::BTreeSet<_> = waiting(&prev).map(|record| record.id.clone()).collect();
        assert_eq!((ids.len(), waiting(&prev).count()), (expect, expect), "{more}");
    }
}

#[test]
fn what_was_not_sent_throttles_nothing() {
    // A record of the future counts for nothing: the clock was set back.
    for (is_sent, second, expect) in [(true, 1, 0), (false, 1, 1), (true, -1, 1)] {
        let own = [notifier("a", &json!({"throttle": "10m"}))];
        let mut first = status(state(1, "v1:a", READY, PROGRESS));
        advance(&subject(), &own, &SyncStatus::default(), &mut first, &[], &at(0));
        let id = waiting(&first).next().expect("it waits").id.as_str().into();
        let told = [DeliveryResult { notifier: "apps/a".into(), id, is_sent }];
        let mut next = status(state(2, "v1:b", READY, PROGRESS));
        advance(&subject(), &own, &first, &mut next, &told, &at(second));
        assert_eq!(waiting(&next).count(), expect, "{is_sent} {second}");
    }
}

#[test]
fn a_notifier_hears_of_its_own_namespace_and_of_what_it_asks_for() {
    let own = |more: &Value| notifier("a", more);
    let subject = subject();
    for (more, expect) in [
        (json!({}), true),
        (json!({"suspend": true}), false),
        (json!({"syncs": {"names": ["shop"]}}), true),
        (json!({"syncs": {"names": ["web"]}}), false),
        (json!({"syncs": {"matchLabels": {"tier": "prod"}}}), true),
        (json!({"syncs": {"matchLabels": {"tier": "dev"}}}), false),
        (json!({"syncs": {"namespaces": ["apps"]}}), true),
    ] {
        assert_eq!(own(&more).selects(&subject), expect, "{more}");
    }
    let chat = |more: Value| json!({"slack": {"url": "https://chat.example.com"}, "transitions": ["Applied"], "syncs": more});
    for (namespace, syncs, expect) in [
        ("other", json!({}), Some(false)),
        ("other", json!({"namespaces": ["apps"]}), None),
        ("other", json!({"namespaces": ["*"]}), None),
        ("moorline", json!({}), Some(false)),
        ("moorline", json!({"namespaces": ["apps"]}), Some(true)),
        ("moorline", json!({"namespaces": ["*"]}), Some(true)),
    ] {
        let found = compiled(namespace, "a", &chat(syncs.clone())).ok().map(|it| it.selects(&subject));
        assert_eq!(found, expect, "{namespace} {syncs}");
    }
    let on = json!(["Applied"]);
    for (url, expect) in [("https://git.example.com/api/v3", true), ("https://api.github.com", false)] {
        let spec = json!({"github": {"url": url, "secretRef": {"name": "s"}}, "transitions": on});
        assert_eq!(compiled("apps", "a", &spec).expect("sound").selects(&subject), expect, "{url}");
    }
    for broken in [
        json!({"slack": {"url": "https://a"}, "transitions": on, "filter": "sync.name =="}),
        json!({"slack": {"url": "https://a"}, "transitions": on, "message": "object.spec"}),
        json!({"slack": {"url": "https://a"}, "transitions": on, "throttle": "1s"}),
        json!({"slack": {"url": "https://a"}, "teams": {"url": "https://a"}, "transitions": on}),
        json!({"transitions": on}),
    ] {
        assert!(compiled("apps", "a", &broken).is_err(), "{broken}");
    }
}

/// Applies one new commit, and returns what waits.
fn one_commit(subject: &Subject, more: &Value, commits: u64) -> SyncStatus {
    let own = [notifier("a", more)];
    let mut prev = SyncStatus::default();
    for commit in 1..=commits {
        let mut next = status(state(commit % 10, &format!("v1:{commit}"), READY, PROGRESS));
        advance(subject, &own, &prev, &mut next, &[], &at(i64::try_from(commit).expect("small")));
        prev = next;
    }
    prev
}

#[test]
fn filters_texts_throttles_and_bounds() {
    let subject = subject();
    // True for no items at all; each item is looked at.
    let none_of =
        |items: &str| format!("{items}.exists(a, {items}.exists(b, {items}.exists(c, sync.name == '')))");
    let many = format!("[{}]", vec!["1"; 30].join(","));
    for (filter, expect) in [
        ("sync.labels.tier == 'prod' && transition == 'Applied' && counts.created == 0", 1),
        ("sync.labels.tier != 'prod' || transition != 'Applied' || counts.created != 0", 0),
        ("sync.namespace == 'other'", 0),
        ("revision == '' || previousRevision != '' || reason != 'Applied' || message != ''", 0),
        ("sync.cluster != 'prod-eu' || counts.objects != 0", 0),
        // Without a value it lets everything pass.
        ("sync.labels.missing == 'a'", 1),
        ("reason", 1),
        (&none_of("[1,2,3]"), 0),
        (&none_of(&many), 1),
    ] {
        let found = one_commit(&subject, &json!({"filter": filter}), 1);
        assert_eq!(waiting(&found).count(), expect, "{filter}");
    }
    let found = one_commit(&subject, &json!({}), 1);
    let record = waiting(&found).next().expect("it waits");
    let text = |more: Value| notifier("a", &more).text(&subject, record);
    assert_eq!(text(json!({})), "apps/shop in prod-eu: main@11111111 is applied (nothing changed)");
    assert_eq!(text(json!({"message": "sync.name + '!' + transition"})), "shop!Applied");
    assert_eq!(text(json!({"message": "1"})), text(json!({})));
    let throttled = one_commit(&subject, &json!({"throttle": "10s"}), 25);
    let seconds: Vec<i64> =
        waiting(&throttled).map(|record| record.time.0.as_second() - at(0).0.as_second()).collect();
    assert_eq!(seconds, [1, 11, 21]);
    let many = one_commit(&subject, &json!({}), 100);
    assert_eq!(waiting(&many).count(), MAX_WAITING);
    assert!(serde_json::to_string(&many.notifications).expect("JSON").len() < 16 * 1024);
    // 10,000 in a minute: what does not wait was sent, or is counted as dropped.
    let (own, mut prev) = ([notifier("a", &json!({}))], SyncStatus::default());
    let (mut sent, mut dropped) = (0, 0);
    for commit in 1..=10_000 {
        let mut next = status(state(commit % 10, &format!("v1:{commit}"), READY, PROGRESS));
        // The receiver takes one of three.
        let oldest = waiting(&prev).next().filter(|_| commit % 3 == 0);
        let oldest = oldest.map(|record| DeliveryResult {
            notifier: record.notifier.as_str().into(),
            id: record.id.as_str().into(),
            is_sent: true,
        });
        let told = Vec::from_iter(oldest);
        sent += told.len();
        dropped += advance(
            &subject,
            &own,
            &prev,
            &mut next,
            &told,
            &at(i64::try_from(commit / 167).expect("small")),
        );
        assert!(next.notifications.len() <= MAX_WAITING + 1, "{}", next.notifications.len());
        prev = next;
    }
    assert_eq!(sent + dropped + waiting(&prev).count(), 10_000);
    let mut gone = many.clone();
    advance(&subject, &[], &many, &mut gone, &[], &at(200));
    assert!(gone.notifications.is_empty() && gone.announced.is_none());
}

#[test]
fn a_sync_that_stands_already_says_nothing_to_a_new_notifier() {
    let own = [notifier("a", &json!({"transitions": Transition::ALL}))];
    let prev = status(state(1, "v1:a", ("False", "ApplyFailed"), ("False", "Degraded")));
    let mut next = prev.clone();
    advance(&subject(), &own, &prev, &mut next, &[], &at(0));
    assert_eq!(waiting(&next).count(), 0);
    assert!(next.announced.is_some());
}
