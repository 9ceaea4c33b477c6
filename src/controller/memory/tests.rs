//! Tests of retries and periodic verification.

use std::cmp::Reverse;

use serde_json::json;

use super::verification_times::{hash, until_turn};
use super::*;
use crate::desired::{Phase, PhaseWave};
use crate::desired::{Scopes, build_desired_set};
use crate::observed::{Observed, Verification};
use crate::plan::{Action, Change, Failure, FailureReason, Plan, Rank, Stage, Step, find_blocker};
use crate::render::{RenderOptions, Rendered, render};
use crate::source::ObjectHash;
use crate::tree::FileTree;

const DAY: Duration = Duration::from_secs(24 * 3600);
const STAGE: Stage =
    Stage::Apply { turn: PhaseWave { phase: Phase::Sync, wave: 0 }, rank: Rank::Configuration };

fn at(seconds: u64) -> Uptime {
    Duration::from_secs(seconds)
}

/// Parses `ConfigMap/a`, an object in the namespace `shop`.
fn id(text: &str) -> ObjectId {
    let (kind, name) = text.split_once('/').unwrap();
    ObjectId::new("", kind, "shop", name).unwrap()
}

/// Returns a desired set of these objects with this content.
fn wanted(ids: &[&str], content: &str) -> DesiredSet {
    let texts: Vec<String> = ids
        .iter()
        .map(|text| {
            let (kind, name) = text.split_once('/').unwrap();
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "annotations": {"is": content}}})
                .to_string()
        })
        .collect();
    let names: Vec<String> = (0..texts.len()).map(|at| format!("{at}.json")).collect();
    let files = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str));
    let Rendered::Complete(complete) = render(&FileTree::from_texts(files), &RenderOptions::default()) else {
        panic!("the manifests are sound")
    };
    build_desired_set(complete, "shop", &Scopes::builtin()).unwrap()
}

fn revision(digit: &str) -> Revision {
    let commit = ObjectHash::parse(&digit.repeat(40)).unwrap();
    Revision { commit, name: "refs/heads/main".into(), tag: None, chart: None, mounts: Vec::new() }
}

fn failed(reason: FailureReason, manifest: bool) -> Outcome {
    Outcome::Failed(Failure { reason, message: String::new(), manifest })
}

/// A memory at spec revision 1 and the first commit, with its desired set.
struct Scene {
    memory: SyncMemory,
    desired: DesiredSet,
}

impl Scene {
    fn new(ids: &[&str]) -> Self {
        let mut memory = SyncMemory::default();
        memory.accept_revision(1, &revision("1"));
        Self { memory, desired: wanted(ids, "first") }
    }

    fn learns(&mut self, now: Uptime, of: &[(&str, Outcome)]) {
        let outcomes = of.iter().map(|(text, outcome)| (id(text), outcome.clone())).collect();
        let pauses = RetryPolicy { cluster: Backoff::new(at(1), at(60)), manifest: at(600) };
        self.memory.record_outcomes(&outcomes, &self.desired, now, 1.0, pauses);
    }

    /// Plans an update of every object; returns the objects that are tried, and the postponed
    /// steps.
    fn plans(&mut self, now: Uptime) -> (Vec<ObjectId>, DuePlan) {
        let action = Action::Update(Change::Unverified);
        let ids = self.desired.objects().iter().map(|wanted| wanted.id.clone());
        let steps = ids.map(|id| Step { id, action: action.clone() }).collect();
        let due = self.defers(vec![(STAGE, steps)], now);
        (due.plan.steps().map(|step| step.id.clone()).collect(), due)
    }

    /// Defers the steps of a plan that are not due.
    fn defers(&mut self, stages: Vec<(Stage, Vec<Step>)>, now: Uptime) -> DuePlan {
        let plan =
            Plan { stages, held: Vec::new(), kept: Vec::new(), approval: None, consented: BTreeMap::new() };
        let due = plan.defer(&self.desired, &self.memory.deferrals(now));
        self.memory.note_deferred(&due);
        due
    }

    #[track_caller]
    fn tries(&mut self, now: Uptime, expect: &[&str]) {
        let expect: Vec<ObjectId> = expect.iter().map(|text| id(text)).collect();
        assert_eq!(self.plans(now).0, expect, "at {now:?}");
    }
}

#[test]
fn what_is_refused_is_tried_once_more_before_its_revision_is_given_up() {
    let mut scene = Scene::new(&["ConfigMap/a", "ConfigMap/b"]);
    scene.memory.rejection_limit = Some(at(60));
    let (invalid, denied) = (failed(FailureReason::Invalid, true), failed(FailureReason::PolicyDenied, true));
    let nobody = BTreeSet::new();
    let given_up = |scene: &Scene| scene.memory.finally_rejected(&nobody).map(|why| why.contains("/a"));
    scene.learns(at(100), &[("ConfigMap/a", invalid.clone()), ("ConfigMap/b", denied.clone())]);
    assert_eq!(given_up(&scene), None);
    assert_eq!(scene.memory.next(at(100), at(300)), Some(at(103)));
    scene.tries(at(102), &[]);
    scene.tries(at(103), &["ConfigMap/a"]);
    scene.learns(at(103), &[("ConfigMap/a", invalid.clone())]);
    assert_eq!(given_up(&scene), Some(true));
    let before = scene.memory.refused();
    assert_eq!(scene.memory.finally_rejected(&before), None, "it was so before the commit came");
    scene.learns(at(104), &[("ConfigMap/a", Outcome::Created)]);
    assert_eq!(given_up(&scene), None);
    // Admission may change its decision until the time is over.
    assert_eq!(scene.memory.next(at(104), at(300)), Some(at(160)));
    scene.learns(at(120), &[("ConfigMap/b", denied.clone())]);
    assert_eq!(given_up(&scene), None);
    scene.learns(at(160), &[("ConfigMap/b", denied.clone())]);
    assert_eq!(given_up(&scene), Some(false));
    // Failures of the cluster do not count, and neither does an object that is no longer desired.
    scene.memory.accept_revision(1, &revision("2"));
    let outage = failed(FailureReason::WebhookFailed, false);
    for seconds in [200, 900] {
        scene.learns(at(seconds), &[("ConfigMap/b", outage.clone()), ("ConfigMap/old", denied.clone())]);
        assert_eq!(given_up(&scene), None);
    }
    // The time starts with the first refusal.
    scene.learns(at(900), &[("ConfigMap/b", denied.clone())]);
    assert_eq!(given_up(&scene), None);
    // Without rollback, no time is counted.
    scene.memory.accept_revision(1, &revision("3"));
    scene.memory.rejection_limit = None;
    scene.learns(at(990), &[("ConfigMap/a", invalid), ("ConfigMap/b", denied)]);
    assert_eq!(given_up(&scene), None);
    assert_eq!(scene.memory.next(at(990), at(300)), Some(at(1590)), "as long as ever");
}

#[test]
fn what_a_manifest_does_wrong_is_not_sent_again_for_long() {
    let mut scene = Scene::new(&["ConfigMap/a", "ConfigMap/b"]);
    let why = failed(FailureReason::Invalid, true);
    scene.learns(at(100), &[("ConfigMap/a", why.clone()), ("ConfigMap/b", Outcome::Created)]);
    assert_eq!(scene.memory.next(at(100), at(300)), Some(at(700)));
    let (tried, postponed) = scene.plans(at(699));
    assert_eq!(tried, [id("ConfigMap/b")]);
    assert_eq!(postponed.blocking, [(STAGE, id("ConfigMap/a"))], "what comes later waits for it");
    assert_eq!(
        postponed.postponed,
        BTreeMap::from([(id("ConfigMap/a"), why.clone())]),
        "and the last outcome is reported"
    );
    scene.tries(at(700), &["ConfigMap/a", "ConfigMap/b"]);
    scene.learns(at(700), &[("ConfigMap/a", why)]);
    scene.tries(at(1299), &["ConfigMap/b"]);
    scene.tries(at(1300), &["ConfigMap/a", "ConfigMap/b"]);
}

#[test]
fn what_the_cluster_refuses_is_tried_at_once_and_then_less_and_less_often() {
    let mut scene = Scene::new(&["ConfigMap/a"]);
    let mut now = at(100);
    for pause in [0, 1, 2, 4, 8, 16, 32, 60, 60] {
        scene.learns(now, &[("ConfigMap/a", failed(FailureReason::Unreachable, false))]);
        let until = now + at(pause);
        if pause > 0 {
            scene.tries(until - Duration::from_millis(1), &[]);
        }
        scene.tries(until, &["ConfigMap/a"]);
        assert_eq!(scene.memory.next(now, at(300)), Some(until));
        now = until;
    }
    scene.learns(now, &[("ConfigMap/a", Outcome::Kept)]);
    assert_eq!(scene.memory.next(now, at(300)), None, "it does not fail any more");
    scene.learns(now, &[("ConfigMap/a", failed(FailureReason::Unreachable, false))]);
    scene.tries(now, &["ConfigMap/a"]);
}

#[test]
fn what_is_postponed_holds_higher_waves_and_prunes_but_not_its_peers() {
    let mut scene = Scene::new(&["ConfigMap/a", "ConfigMap/b"]);
    scene.learns(at(0), &[("ConfigMap/a", failed(FailureReason::Invalid, true))]);
    let (_, postponed) = scene.plans(at(1));
    let holds = |stage: Stage| find_blocker(&postponed.blocking, stage, &id("ConfigMap/c"));
    let rank = Rank::Workload;
    assert_eq!(
        holds(Stage::Apply { turn: PhaseWave { wave: 1, ..PhaseWave::default() }, rank }),
        Some(id("ConfigMap/a"))
    );
    assert_eq!(holds(Stage::Apply { turn: PhaseWave::default(), rank }), None);
    let prune = Stage::Prune { wave: Reverse(0), rank: Reverse(rank) };
    assert_eq!(holds(prune), Some(id("ConfigMap/a")));
}

#[test]
fn new_input_is_tried_at_once() {
    let failing = |why: Outcome| {
        let mut scene = Scene::new(&["ConfigMap/a"]);
        (0..9).for_each(|_| scene.learns(at(100), &[("ConfigMap/a", why.clone())]));
        scene.tries(at(101), &[]);
        scene
    };
    for why in [failed(FailureReason::Invalid, true), failed(FailureReason::Unreachable, false)] {
        let mut scene = failing(why.clone());
        scene.memory.accept_revision(1, &revision("1"));
        scene.tries(at(101), &[]);
        scene.memory.accept_revision(1, &revision("2"));
        scene.tries(at(101), &["ConfigMap/a"]);
        let mut scene = failing(why.clone());
        scene.memory.accept_revision(2, &revision("1"));
        scene.tries(at(101), &["ConfigMap/a"]);
        // A changed input value, such as one from a Secret, counts as new without either.
        let mut scene = failing(why);
        scene.desired = wanted(&["ConfigMap/a"], "second");
        scene.tries(at(101), &["ConfigMap/a"]);
        scene.learns(at(101), &[("ConfigMap/a", failed(FailureReason::Unreachable, false))]);
        scene.tries(at(101), &["ConfigMap/a"]);
    }
}

#[test]
fn what_is_tried_again_is_written_and_what_is_no_step_any_more_is_forgotten() {
    let mut scene = Scene::new(&["ConfigMap/a", "ConfigMap/b"]);
    scene.learns(at(0), &[("ConfigMap/a", failed(FailureReason::Unreachable, false))]);
    let step = |text: &str| Step { id: id(text), action: Action::Update(Change::Unverified) };
    let due = scene.defers(vec![(STAGE, vec![step("ConfigMap/a"), step("ConfigMap/b")])], at(0));
    let actions: Vec<&Action> = due.plan.steps().map(|step| &step.action).collect();
    assert_eq!(actions, [&Action::Update(Change::MaybeDrifted), &Action::Update(Change::Unverified)]);
    let _ = scene.defers(Vec::new(), at(0));
    assert_eq!(scene.memory.next(at(0), at(300)), None, "others brought it about");
}

#[test]
fn what_waits_for_somebody_is_looked_at_every_minute() {
    let mut scene = Scene::new(&["ConfigMap/a", "ConfigMap/b"]);
    let conflict = Hold::Conflict { managers: Vec::new(), fields: Vec::new() };
    let waits = Hold::WaitsFor(id("ConfigMap/a"));
    scene.learns(at(0), &[("ConfigMap/a", Outcome::Held(conflict)), ("ConfigMap/b", Outcome::Held(waits))]);
    scene.tries(at(59), &["ConfigMap/b"]);
    scene.tries(at(60), &["ConfigMap/a", "ConfigMap/b"]);
}

#[test]
fn of_what_is_forbidden_one_of_a_kind_is_tried_for_all() {
    let ids = ["ConfigMap/a", "ConfigMap/b", "ConfigMap/c", "Secret/a", "Service/a"];
    let mut scene = Scene::new(&ids);
    let forbidden = || failed(FailureReason::Forbidden, false);
    let each = ["ConfigMap/a", "ConfigMap/b", "ConfigMap/c", "Secret/a"].map(|it| (it, forbidden()));
    (0..9).for_each(|_| scene.learns(at(0), &each));
    (0..9).for_each(|_| scene.learns(at(0), &[("Service/a", failed(FailureReason::Unreachable, false))]));
    scene.tries(at(3), &[]);
    scene.tries(at(4), &["ConfigMap/a", "Secret/a"]);
    scene.learns(at(4), &[("ConfigMap/a", forbidden()), ("Secret/a", forbidden())]);
    scene.tries(at(7), &[]);
    scene.tries(at(8), &["ConfigMap/a", "Secret/a"]);
    scene.learns(at(8), &[("ConfigMap/a", Outcome::Created), ("Secret/a", forbidden())]);
    scene.tries(at(8), &["ConfigMap/a", "ConfigMap/b", "ConfigMap/c"]);
}

#[test]
fn what_the_server_did_not_tell_is_asked_for_less_and_less_often() {
    let mut memory = SyncMemory::default();
    let mut misses = |missing: bool, now: u64| {
        let pauses = RetryPolicy { cluster: Backoff::new(at(1), at(60)), manifest: at(600) };
        memory.schedule_rediscovery(missing, at(now), 1.0, pauses);
        memory.next(at(now), Duration::from_secs(300))
    };
    assert_eq!(misses(false, 9), None);
    assert_eq!(misses(true, 10), Some(at(10)));
    assert_eq!(misses(true, 10), Some(at(11)));
    assert_eq!(misses(true, 11), Some(at(13)));
    assert_eq!(misses(true, 12), Some(at(13)), "it is not due, and a pass for another reason moves nothing");
    assert_eq!(misses(true, 13), Some(at(17)));
    assert_eq!(misses(false, 14), None);
    assert_eq!(misses(true, 15), Some(at(15)), "it begins anew");
}

#[test]
fn objects_are_looked_at_about_once_in_a_period_and_each_at_its_own_time() {
    let ids: Vec<ObjectId> = (0..1000).map(|nth| id(&format!("ConfigMap/a{nth}"))).collect();
    let mut memory = SyncMemory::default();
    memory.replied(ids.iter().cloned(), Uptime::ZERO);
    assert!(memory.due_for_verification(DAY.mul_f64(0.75) - at(1), DAY).is_empty(), "too early");
    let parts =
        (1..=20).map(|part| memory.due_for_verification(DAY.mul_f64(0.75 + f64::from(part) / 40.0), DAY));
    let parts: Vec<Vec<ObjectId>> = parts.collect();
    assert!(parts.iter().all(|part| (10..150).contains(&part.len())), "they do not come together");
    let told: BTreeSet<ObjectId> = parts.into_iter().flatten().collect();
    assert_eq!(told.len(), 1000, "all by one and a quarter of the period");
    assert!(memory.due_for_verification(9 * DAY, DAY).is_empty(), "each is told once");
    memory.replied(ids.iter().cloned(), Uptime::ZERO);
    memory.replied(ids[..10].iter().cloned(), DAY.mul_f64(0.7));
    let due = memory.due_for_verification(DAY.mul_f64(1.25), DAY);
    assert!(due.len() == 990 && ids[..10].iter().all(|id| !due.contains(id)), "a reply begins a new period");
    assert_eq!(memory.due_for_verification(DAY.mul_f64(1.95), DAY).len(), 10);
}

#[test]
fn the_time_of_an_object_is_the_same_in_every_run() {
    assert_eq!([hash(&id("ConfigMap/a")), hash(&id("ConfigMap/b"))], [48_567, 48_311]);
}

#[test]
fn only_an_object_that_others_deleted_was_deleted() {
    let (mut memory, web, job) = (SyncMemory::default(), id("ConfigMap/web"), id("ConfigMap/job"));
    assert!(!memory.was_deleted(&web, false), "it was never there");
    assert!(memory.was_deleted(&web, true), "every object was there");
    memory.deleted.extend([web.clone(), job.clone()]);
    memory.departed.insert(job.clone());
    assert!(memory.was_deleted(&web, false) && !memory.was_deleted(&job, false));
    // Deletions by this Sync do not count, even while a finalizer delays them.
    let going = [(web.clone(), Outcome::Pruned { gone: false })].into();
    memory.note_departed(&going, |_| true);
    assert!(!memory.was_deleted(&web, false));
    let made = [(job, Outcome::Created)].into();
    memory.note_departed(&made, |known| *known != web);
    assert!(memory.departed.is_empty());
}

/// Starts closer to each other than any part of a day verify each object once a day nevertheless.
#[test]
fn the_time_of_day_decides_when_an_object_is_due_after_a_start() {
    let ids: Vec<ObjectId> = (0..10_000).map(|at| id(&format!("ConfigMap/item-{at:06}"))).collect();
    let due_in = |begun: Duration, time: Duration| {
        let mut times = VerificationTimes::default();
        times.schedule(ids.iter().cloned(), at(60), begun, DAY);
        times.take_due(at(60) + time, DAY)
    };
    let begun = 20_000 * DAY + at(12_345);
    assert_eq!(due_in(begun, DAY).len(), ids.len());
    // Twelve starts, every two hours.
    let each = (0..12).flat_map(|start| due_in(begun + start * DAY / 12, DAY / 12 - at(1)));
    let told: BTreeSet<ObjectId> = each.collect();
    assert!(told.len() > 9_950, "{} of 10,000", told.len());
    // The bar: one request for each hundred objects in ten minutes.
    for start in 0..144 {
        let due = due_in(begun + start * at(600), at(600)).len();
        assert!((35..=100).contains(&due), "{due} in the ten minutes {start}");
    }
    // The time of an object that has one does not move.
    let mut times = VerificationTimes::default();
    times.replied(ids.iter().cloned(), Uptime::ZERO);
    times.schedule(ids.iter().cloned(), Uptime::ZERO, begun, DAY);
    assert!(times.take_due(DAY.mul_f64(0.74), DAY).is_empty());
}

/// A Sync that returns to its first ServiceAccount has an empty memory, and objects known before.
#[test]
fn each_sound_object_that_has_no_time_gets_one() {
    let mut scene = Scene::new(&["ConfigMap/a", "ConfigMap/b"]);
    let mut observed = ObservedSet::default();
    for (text, verification) in
        [("ConfigMap/a", Verification::Verified), ("ConfigMap/b", Verification::Unverified)]
    {
        observed.insert(id(text), Observed { verification, ..Observed::new("u1", "1") });
    }
    scene.memory.schedule_sound((&scene.desired, &observed), Uptime::ZERO, DAY);
    // Its turn is a time of the day, and not of the daemon.
    let (turn, margin) = (until_turn(&id("ConfigMap/a"), clock::wall(), DAY), at(30));
    assert!(scene.memory.due_for_verification(turn.saturating_sub(margin), DAY).is_empty());
    assert_eq!(scene.memory.due_for_verification(turn + margin, DAY), [id("ConfigMap/a")]);
}
