//! Tests that the final state does not depend on the order of an object's events and the end of a
//! write on it.

use serde_json::json;

use super::*;

/// Events of an object that was applied in version 10, and is being written in version 20.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TestEvent {
    /// A manual edit before our write.
    Older,
    /// A deletion before our write, which then created the object again.
    GoneBefore,
    /// Our write.
    Own,
    /// A manual edit after our write.
    Later,
    /// A deletion after all that.
    Gone,
}

/// End of the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteEnd {
    Applied,
    Refused,
    /// The response is lost.
    Dropped,
}

impl TestEvent {
    fn version(self) -> u64 {
        match self {
            Self::Older => 15,
            Self::GoneBefore => 18,
            Self::Own => 20,
            Self::Later => 30,
            Self::Gone => 40,
        }
    }

    fn tell(self, store: &Store, uid: &str) {
        match self {
            Self::Own => drop(store.on_seen(applied(self.version(), uid))),
            Self::Older => drop(store.on_seen(edited(self.version(), "old"))),
            Self::Later => drop(store.on_seen(edited(self.version(), uid))),
            Self::GoneBefore => store.on_deleted(&applied(self.version(), "old")),
            Self::Gone => store.on_deleted(&applied(self.version(), uid)),
        }
    }
}

fn owner() -> SyncName {
    SyncName::new("ops", "web")
}

/// The object as our apply leaves it.
fn applied(version: u64, uid: &str) -> Object {
    let entry = json!({"manager": "moorline/ops/web", "operation": "Apply", "apiVersion": "v1",
        "time": format!("2026-01-01T00:00:{version}Z"), "fieldsV1": {"f:data": {"f:a": {}}}});
    let metadata = json!({"namespace": "shop", "name": "a", "uid": uid, "resourceVersion": version.to_string(),
        "labels": {"moorline.dev/sync": owner().label()},
        "annotations": {"moorline.dev/id": "ops/web|/ConfigMap|shop/a"}, "managedFields": [entry]});
    let Value::Object(body) = json!({"metadata": metadata}) else { unreachable!("a literal mapping") };
    object(&GroupKind::new("", "ConfigMap"), "v1", body).unwrap()
}

/// The object after a manual edit that has taken our field.
fn edited(version: u64, uid: &str) -> Object {
    let mut object = applied(version, uid);
    let entries = &mut object.body["metadata"]["managedFields"];
    entries[0]["fieldsV1"] = json!({});
    entries[0]["time"] = "2026-01-01T00:00:10Z".into();
    let entry = json!({"manager": "kubectl-edit", "operation": "Update", "apiVersion": "v1",
        "time": format!("2026-01-01T00:00:{version}Z"), "fieldsV1": {"f:data": {"f:a": {}}}});
    entries.as_array_mut().unwrap().push(entry);
    object
}

/// The final state: version and verification, and the notifications on the way.
#[derive(Debug, PartialEq)]
struct FinalState {
    object: Option<(u64, &'static str)>,
    wakes: usize,
    lost: usize,
}

fn word(standing: &Verification) -> &'static str {
    match standing {
        Verification::Verified => "verified",
        Verification::Believed => "believed",
        Verification::Unverified => "unverified",
        Verification::MaybeDrifted => "moved",
        Verification::Drifted(_) => "drifted",
    }
}

/// Sends the first `parked` events during the write, and the rest after it.
fn run(told: &[TestEvent], parked: usize, end: WriteEnd) -> FinalState {
    let store = Store::default();
    let uid = if told.contains(&TestEvent::GoneBefore) { "new" } else { "old" };
    let id = applied(10, "old").id;
    store.writing(&owner(), &id).finish_applied(&applied(10, "old"));
    store.on_seen(applied(10, "old"));
    let wake = store.changed_notify(&owner());
    let woken = || usize::from(futures::FutureExt::now_or_never(wake.notified()).is_some());
    assert_eq!(woken(), 0, "nothing happened yet");
    let mut wakes = 0;
    let writing = store.writing(&owner(), &id);
    for one in &told[..parked] {
        one.tell(&store, uid);
        assert_eq!(woken(), 0, "{one:?} is parked");
    }
    match end {
        WriteEnd::Applied => writing.finish_applied(&applied(20, uid)),
        WriteEnd::Refused => writing.finish_refused(),
        WriteEnd::Dropped => drop(writing),
    }
    wakes += woken();
    for one in &told[parked..] {
        one.tell(&store, uid);
        wakes += woken();
    }
    let object = store.read(&owner(), BTreeSet::new(), |set| {
        let seen = set.get(&id)?;
        Some((number(&seen.resource_version), word(&seen.verification)))
    });
    FinalState { object, wakes, lost: store.lost(&owner()).len() }
}

/// Returns every order of these events.
fn orders(of: &[TestEvent]) -> Vec<Vec<TestEvent>> {
    let mut all = Vec::new();
    for (at, first) in of.iter().enumerate() {
        let rest: Vec<TestEvent> = [&of[..at], &of[at + 1..]].concat();
        all.extend(orders(&rest).into_iter().map(|rest| [vec![*first], rest].concat()));
    }
    if all.is_empty() { vec![Vec::new()] } else { all }
}

/// Returns every subset of these events, in their order.
fn choices(of: &[TestEvent]) -> Vec<Vec<TestEvent>> {
    let chosen = |mask: usize| (0..of.len()).filter(move |at| mask >> at & 1 == 1).map(|at| of[at]).collect();
    (0..1 << of.len()).map(chosen).collect()
}

/// Checks every subset in every order that events can have, with the write ending at every
/// position.
fn check(of: &[TestEvent], end: WriteEnd, check: impl Fn(&[TestEvent], &FinalState)) {
    for choice in choices(of) {
        let has = |one| choice.contains(&one);
        // A watch reports our own write before its consequences.
        if end == WriteEnd::Applied && has(TestEvent::Gone) && !has(TestEvent::Own) {
            continue;
        }
        // After the last deletion there is no entry that a late event could be older than.
        let orders = if has(TestEvent::Gone) { vec![choice.clone()] } else { orders(&choice) };
        for order in orders {
            for parked in 0..=order.len() {
                let known = run(&order, parked, end);
                // A failing test shows its output: the last line is the failing run.
                println!("{end:?} {:?} | {:?}: {known:?}", &order[..parked], &order[parked..]);
                check(&order, &known);
            }
        }
    }
}

/// Number of events that matter after a write that is known to have happened.
fn mattering(told: &[TestEvent]) -> usize {
    told.iter().filter(|one| **one > TestEvent::Own).count()
}

#[test]
fn after_a_reply_only_what_came_after_our_write_counts() {
    use TestEvent::{Gone, GoneBefore, Later, Older, Own};
    check(&[Older, GoneBefore, Own, Later, Gone], WriteEnd::Applied, |told, known| {
        let (later, gone) = (told.contains(&Later), told.contains(&Gone));
        let expect = match (later, gone) {
            (_, true) => None,
            (true, false) => Some((30, "drifted")),
            (false, false) => Some((20, "verified")),
        };
        assert_eq!(known.object, expect);
        assert!(known.wakes <= mattering(told), "one request was enough");
        assert_eq!(known.wakes > 0, later || gone, "what matters wakes somebody");
        assert_eq!(known.lost, usize::from(gone), "what our write has made anew is not lost");
    });
}

#[test]
fn after_a_refusal_every_event_counts() {
    use TestEvent::{Gone, Later, Older};
    check(&[Older, Later, Gone], WriteEnd::Refused, |told, known| {
        let newest = told.iter().max();
        let expect = match newest {
            None => Some((10, "verified")),
            Some(Gone) => None,
            Some(edit) => Some((edit.version(), "drifted")),
        };
        assert_eq!(known.object, expect);
        assert!(known.wakes <= told.len());
        assert_eq!(known.wakes > 0, !told.is_empty());
        assert_eq!(known.lost, usize::from(told.contains(&Gone)));
    });
}

#[test]
fn after_a_lost_reply_nothing_is_verified() {
    use TestEvent::{Gone, Later, Older, Own};
    check(&[Older, Own, Later, Gone], WriteEnd::Dropped, |told, known| {
        let newest = told.iter().max().map_or(10, |newest| newest.version());
        match known.object {
            None => assert!(told.contains(&Gone)),
            Some((version, standing)) => {
                assert_eq!(version, newest);
                assert_ne!(standing, "verified");
                let edited = told.contains(&Older) || told.contains(&Later);
                assert!(standing == "unverified" || edited, "nobody edited it");
                assert!(standing == "drifted" || !told.contains(&Later), "the edit is not seen");
            }
        }
        assert_eq!(known.object.is_none(), told.contains(&Gone));
        assert!((1..=1 + told.len()).contains(&known.wakes), "whoever waits looks once more");
    });
}

#[test]
fn our_own_deletion_wakes_nobody_and_what_is_made_after_it_is_seen() {
    for parked in 0..=2 {
        let store = Store::default();
        let id = applied(10, "old").id;
        store.on_seen(applied(10, "old"));
        let wake = store.changed_notify(&owner());
        let woken = || futures::FutureExt::now_or_never(wake.notified()).is_some();
        assert!(woken());
        let mut writing = Some(store.writing(&owner(), &id));
        for at in 0..=2 {
            if at == parked {
                writing.take().unwrap().finish_deleted(true);
            }
            assert_eq!(woken(), at == 2, "{at} events, of which {parked} were parked");
            match at {
                0 => store.on_deleted(&applied(20, "old")),
                1 => drop(store.on_seen(applied(30, "new"))),
                _ => {}
            }
        }
        assert!(store.lost(&owner()).is_empty(), "nobody else deleted it");
        let uid = store.read(&owner(), BTreeSet::new(), |set| set.get(&id).map(|seen| seen.uid.clone()));
        assert_eq!(uid.as_deref(), Some("new"));
    }
}

#[test]
fn a_history_that_began_anew_takes_the_place_of_what_is_parked() {
    let (store, kind) = (Store::default(), GroupKind::new("", "ConfigMap"));
    let id = applied(10, "old").id;
    let writing = store.writing(&owner(), &id);
    store.on_seen(edited(30, "old"));
    // The list of the restored server is older than earlier events.
    let older = store.on_seen(applied(12, "old"));
    assert!(older.is_some(), "by itself it may be late");
    store.mark_newer_unverified(&kind, 14, older.into_iter().collect());
    writing.finish_applied(&applied(15, "old"));
    let version =
        store.read(&owner(), BTreeSet::new(), |set| set.get(&id).map(|seen| seen.resource_version.clone()));
    assert_eq!(version.as_deref(), Some("15"), "version 30 is of a history that is gone");
}

#[test]
fn events_are_parked_until_the_last_of_several_writes_ends() {
    for edited_before in [true, false] {
        let store = Store::default();
        let id = applied(10, "old").id;
        store.writing(&owner(), &id).finish_applied(&applied(10, "old"));
        let wake = store.changed_notify(&owner());
        let woken = || futures::FutureExt::now_or_never(wake.notified()).is_some();
        let first = store.writing(&owner(), &id);
        if edited_before {
            TestEvent::Later.tell(&store, "old");
        }
        let second = store.writing(&owner(), &id);
        first.finish_applied(&applied(20, "old"));
        if !edited_before {
            TestEvent::Later.tell(&store, "old");
        }
        assert!(!woken(), "one write is still under way");
        second.finish_applied(&applied(21, "old"));
        assert!(woken(), "the edit came after both");
        let drifted =
            |set: &ObservedSet| matches!(set.get(&id).unwrap().verification, Verification::Drifted(_));
        assert!(store.read(&owner(), BTreeSet::new(), drifted));
    }
}
