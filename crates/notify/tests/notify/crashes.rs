//! A daemon that ends at any moment loses no notification, and repeats at most one for each end.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use moorline_api::SyncStatus;
use moorline_notify::{CompiledNotifier, DeliveryResult, advance, waiting};
use serde_json::{Value, json};

use super::{notifier, revision, status, subject};

/// Number of ends of a daemon.
const KILLS: usize = 1_000;
/// Number of states of one story.
const STATES: u64 = 40;

/// Random numbers with a fixed beginning.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A story: the states of a Sync, one after the other.
fn story(dice: &mut Dice) -> Vec<Value> {
    let (mut commit, mut digest, mut repaired) = (0, 0, 0);
    let next = |_| {
        let (mut ready, mut well) = (("True", "Applied"), ("True", "Healthy"));
        match dice.roll(7) {
            0 | 1 => (commit, digest) = (commit + 1, digest + 1),
            2 => commit += 1,
            3 => ready = ("False", "ApplyFailed"),
            4 => (ready, well) = (("False", "Degraded"), ("False", "Degraded")),
            5 => repaired += 1,
            _ => ready = ("Unknown", "Progressing"),
        }
        let condition = |type_: &str, (status, reason): (&str, &str)| json!({"type": type_, "status": status, "reason": reason, "message": "why", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let now = revision(commit % 16);
        json!({
            "conditions": [condition("Ready", ready), condition("Healthy", well)],
            "history": [{"revision": now, "time": "2026-01-01T00:00:00Z", "result": "Applied", "changes": {"repaired": repaired}}],
            "revision": {"attempted": now, "applied": now, "appliedDigest": format!("v1:{digest}"), "healthy": now},
        })
    };
    (0..STATES).map(next).collect()
}

/// A daemon: what it wrote, and what it has sent without having written it yet.
struct Daemon {
    written: SyncStatus,
    told: Vec<DeliveryResult>,
}

/// Tells a story with ends of the daemon; returns how often each id was sent, and the ends.
fn tell(
    states: &[Value],
    own: &[Arc<CompiledNotifier>],
    mut ends: impl FnMut() -> bool,
) -> (BTreeMap<String, usize>, usize) {
    let mut daemon = Daemon { written: SyncStatus::default(), told: Vec::new() };
    let (mut sent, mut kills) = (BTreeMap::<String, usize>::new(), 0);
    let mut at = 0;
    // A last state, so that everything that was sent is written.
    while at <= states.len() {
        let last = at.min(states.len() - 1);
        let now = Time(jiff::Timestamp::from_second(1_790_000_000 + last as i64).expect("a time"));
        let mut next = status(states[last].clone());
        advance(&subject(), own, &daemon.written, &mut next, &daemon.told, &now);
        let mut killed = ends();
        if !killed {
            (daemon.written, daemon.told) = (next, Vec::new());
            killed = ends();
        }
        let open: Vec<_> = waiting(&daemon.written).cloned().collect();
        for record in open.into_iter().filter(|_| !killed).collect::<Vec<_>>() {
            if killed {
                break;
            }
            *sent.entry(record.id.clone()).or_default() += 1;
            // It may end before it knows, or before it writes, that the record was sent.
            killed = ends();
            if !killed {
                let (notifier, id) = (record.notifier.as_str().into(), record.id.as_str().into());
                daemon.told.push(DeliveryResult { notifier, id, is_sent: true });
                // The next write follows at once; more is sent only after it.
                let mut marked = daemon.written.clone();
                advance(&subject(), own, &daemon.written, &mut marked, &daemon.told, &now);
                killed = ends();
                if !killed {
                    (daemon.written, daemon.told) = (marked, Vec::new());
                }
            }
        }
        if killed {
            kills += 1;
            daemon.told.clear();
            continue;
        }
        at += 1;
    }
    (sent, kills)
}

#[test]
fn a_thousand_ends_at_random_moments_lose_nothing_and_repeat_one_each() {
    let own = [
        notifier("a", &json!({})),
        notifier("b", &json!({"transitions": ["Failed", "Recovered", "Applied"]})),
    ];
    let (mut dice, mut kills) = (Dice(28), 0);
    while kills < KILLS {
        let states = story(&mut dice);
        let (expect, none) = tell(&states, &own, || false);
        assert!(none == 0 && expect.len() > 5 && expect.values().all(|times| *times == 1));
        let (sent, ends) = tell(&states, &own, || dice.roll(8) == 0);
        let missing: Vec<_> = expect.keys().filter(|id| !sent.contains_key(*id)).collect();
        assert!(missing.is_empty(), "lost: {missing:?}");
        assert_eq!(sent.len(), expect.len(), "a repeated notification has another id");
        let repeats: usize = sent.values().map(|times| times - 1).sum();
        assert!(repeats <= ends, "{repeats} repeats of {ends} ends");
        kills += ends;
    }
}
