//! Tests of roll-outs over a namespace of Syncs as the API server has them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use moorline_api::SyncSet;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::existing::SetOwner;
use crate::generate::{SourceAnswers, generate};
use crate::plan::{PlannedRemoval, RemovalPolicy, plan_children};
use crate::template::CompiledSet;

mod edges;

/// A namespace with a set and its Syncs.
struct Fleet {
    raw: Value,
    children: SetChildren,
    syncs: BTreeMap<String, Value>,
    /// Seconds since 1970.
    now: i64,
}

fn time(second: i64) -> String {
    Timestamp::from_second(second).unwrap().to_string()
}

impl Fleet {
    /// Creates a set with a Sync for each name and stage.
    fn new(members: &[(&str, &str)], stages: Value) -> Self {
        let raw = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet",
            "metadata": {"namespace": "team", "name": "apps", "uid": "u1"},
            "spec": {
                "generators": [{"list": {"elements": []}}],
                "name": "params.name",
                "template": {"spec": {"source": {"git": {"url": "https://git.example.com/apps.git"}}, "path": "./1"}},
                "set": [{"field": "/metadata/labels/stage", "value": "params.stage"}],
                "rollout": {"stages": stages},
            },
        });
        let raw = with_members(raw, members);
        let children = children(&raw).unwrap();
        Self { raw, children, syncs: BTreeMap::new(), now: 1_000_000 }
    }

    fn set_members(&mut self, members: &[(&str, &str)]) {
        self.raw = with_members(self.raw.take(), members);
        self.children = children(&self.raw).unwrap();
    }

    fn change_template(&mut self, path: &str) {
        self.raw["spec"]["template"]["spec"]["path"] = json!(path);
        self.children = children(&self.raw).unwrap();
    }

    fn plan(&self) -> SetPlan {
        let (owner, children) = (SetOwner::of(&self.raw), &self.children);
        let plan = |existing: &[ExistingSync]| {
            let policy = RemovalPolicy { count: Some(100), ..RemovalPolicy::default() };
            let plan = plan_children(children, existing, &policy, |_, _| false);
            let now = Duration::from_secs(self.now.unsigned_abs());
            hold_stages(plan, (children, existing), &mut |since| now.saturating_sub(since))
        };
        let mut existing: Vec<_> = self.syncs.values().map(|sync| ExistingSync::of(sync, &owner)).collect();
        let planned = plan(&existing);
        existing.reverse();
        assert_eq!(plan(&existing), planned, "nothing but the Syncs decides");
        planned
    }

    /// Executes a plan; returns the Syncs that were written, without the name of the set.
    fn execute(&mut self, plan: &SetPlan) -> Vec<String> {
        let mut written = Vec::new();
        for step in &plan.steps {
            let (SetStep::Create(child) | SetStep::Update { child, .. }) = step else { continue };
            let before = self
                .syncs
                .get(&child.name)
                .cloned()
                .unwrap_or_else(|| json!({"metadata": {"generation": 0}}));
            let mut sync = child.manifest.clone();
            sync["status"] = before["status"].clone();
            sync["metadata"]["generation"] = json!(before["metadata"]["generation"].as_i64().unwrap() + 1);
            sync["metadata"]["uid"] = json!(child.name);
            sync["metadata"]["managedFields"] =
                json!([{"manager": "moorline-set/team/apps", "operation": "Apply", "time": time(self.now)}]);
            self.syncs.insert(child.name.clone(), sync);
            written.push(child.name.replacen("apps-", "", 1));
        }
        if let PlannedRemoval::Remove(gone) = &plan.removal {
            gone.iter().for_each(|(name, ..)| drop(self.syncs.remove(name)));
        }
        written
    }

    /// Plans and executes; returns the written Syncs.
    fn pass(&mut self) -> String {
        let plan = self.plan();
        self.execute(&plan).join(" ")
    }

    /// Sets the status of a Sync for its newest spec.
    fn report(&mut self, name: &str, ready: &str, healthy: &str) {
        let now = time(self.now);
        let sync = self.syncs.get_mut(&format!("apps-{name}")).unwrap();
        let last = |type_: &str, status: &str| {
            let conditions = sync.pointer("/status/conditions").and_then(Value::as_array);
            let known =
                conditions.into_iter().flatten().find(|it| it["type"] == type_ && it["status"] == status);
            known.map_or_else(|| json!(now), |known| known["lastTransitionTime"].clone())
        };
        let condition = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": "Why", "message": format!("{type_} is {status}"),
                "lastTransitionTime": last(type_, status)})
        };
        let conditions = [condition("Ready", ready), condition("Healthy", healthy)];
        sync["status"] = json!({"observedGeneration": sync["metadata"]["generation"], "conditions": conditions, "renderDigest": "v1:1"});
    }

    fn settle(&mut self, names: &str) {
        names.split_whitespace().for_each(|name| self.report(name, "True", "True"));
    }

    fn state(&self) -> Option<RolloutState> {
        self.plan().rollout.unwrap().state
    }

    /// Lets all Syncs become healthy, and the roll-out end.
    fn converge(&mut self) {
        for _ in 0..60 {
            let names: Vec<String> = self.syncs.keys().map(|name| name.replacen("apps-", "", 1)).collect();
            self.settle(&names.join(" "));
            self.now += 300;
            if self.pass().is_empty() && self.state().is_none() {
                break;
            }
        }
        assert_eq!(self.state(), None);
        assert!(see(self).values().all(|it| it.is_newest));
    }
}

fn with_members(mut raw: Value, members: &[(&str, &str)]) -> Value {
    let elements = members.iter().map(|(name, stage)| json!({"name": name, "stage": stage}));
    raw["spec"]["generators"][0]["list"]["elements"] = elements.collect();
    raw
}

fn children(raw: &Value) -> Result<SetChildren, Vec<String>> {
    let set: SyncSet = serde_json::from_value(raw.clone()).unwrap();
    let compiled = CompiledSet::compile(&set, raw)?;
    let parameters = generate(&set.spec, &SourceAnswers::default()).unwrap();
    SetChildren::build(&compiled, &SetOwner::of(raw), &parameters, |_, _| Ok(()))
}

fn stages() -> Value {
    json!([
        {"matchLabels": {"stage": "canary"}, "healthyFor": "10m"},
        {"matchExpressions": [{"key": "stage", "operator": "In", "values": ["eu", "us"]}], "maxUnavailable": "50%", "healthyFor": "1m"},
    ])
}

const MEMBERS: [(&str, &str); 6] =
    [("c1", "canary"), ("c2", "canary"), ("e1", "eu"), ("e2", "eu"), ("u1", "us"), ("x", "none")];

#[test]
fn a_change_goes_from_stage_to_stage_and_stops_where_one_is_degraded() {
    let mut fleet = Fleet::new(&MEMBERS, stages());
    // New Syncs belong to their stages as well.
    assert_eq!(fleet.pass(), "c1");
    assert_eq!(fleet.pass(), "", "one at a time");
    fleet.converge();
    assert_eq!(fleet.pass(), "", "nothing is left to do");

    fleet.change_template("./2");
    assert_eq!(fleet.pass(), "c1");
    let state = fleet.state().unwrap();
    assert_eq!((state.stage, state.of, state.held, state.waiting_for), (1, 3, 5, vec!["apps-c1".to_owned()]));
    assert_eq!(state.why, "its newest spec is not applied yet");
    fleet.settle("c1");
    assert_eq!(fleet.pass(), "c2");
    fleet.report("c2", "True", "False");
    let state = fleet.state().unwrap();
    assert_eq!(
        (state.is_stopped, &*state.waiting_for[0], &*state.why),
        (true, "apps-c2", "Why: Healthy is False")
    );
    fleet.now += 3600;
    assert_eq!(fleet.pass(), "", "nothing further is written");
    // The stage is returned by the old template: the one that is not ready comes first.
    fleet.change_template("./1");
    assert_eq!(fleet.pass(), "c2");
    fleet.settle("c2");
    assert_eq!(fleet.pass(), "c1");
    fleet.settle("c1");
    fleet.converge();

    // All of a stage have to be healthy for its time, from the last write or transition.
    fleet.change_template("./3");
    for name in ["c1", "c2"] {
        assert_eq!(fleet.pass(), name);
        fleet.settle(name);
    }
    fleet.now += 590;
    fleet.report("c1", "True", "Unknown");
    assert_eq!(fleet.pass(), "");
    fleet.settle("c1");
    let since = fleet.now;
    fleet.now += 600;
    let until = Duration::from_secs((since + 601).unsigned_abs());
    assert_eq!(fleet.state().map(|state| (state.until, state.held)), Some((Some(until), 4)));
    assert_eq!(fleet.pass(), "");
    fleet.now += 1;
    assert_eq!(fleet.pass(), "e1", "50% of three are one");
    // An edit by hand of a Sync with its newest form is repaired at once, of any stage.
    fleet.syncs.get_mut("apps-c2").unwrap()["spec"]["path"] = json!("./hand");
    assert_eq!(fleet.pass(), "c2");
    fleet.settle("c2 e1");
    fleet.converge();
}

#[test]
fn suspended_foreign_and_removed_syncs_have_their_place() {
    let mut fleet = Fleet::new(&MEMBERS, stages());
    fleet.converge();
    // A suspended Sync is written, and nobody waits for it, except where all of a stage are.
    fleet.change_template("./2");
    let suspend = |fleet: &mut Fleet, name: &str| {
        fleet.syncs.get_mut(&format!("apps-{name}")).unwrap()["spec"]["suspend"] = json!(true);
    };
    suspend(&mut fleet, "c1");
    assert_eq!(fleet.pass(), "c1 c2");
    suspend(&mut fleet, "c1");
    suspend(&mut fleet, "c2");
    fleet.now += 3600;
    assert_eq!(fleet.pass(), "");
    assert_eq!(fleet.state().unwrap().why, "it is suspended");
    fleet.syncs.get_mut("apps-c2").unwrap()["spec"]["suspend"] = json!(false);
    fleet.settle("c2");
    fleet.now += 601;
    assert_eq!(fleet.pass(), "e1");
    fleet.settle("e1");
    fleet.syncs.get_mut("apps-c1").unwrap()["spec"]["suspend"] = json!(false);
    fleet.settle("c1");
    fleet.converge();

    // Removals come after the last stage.
    fleet.set_members(&MEMBERS[1..]);
    fleet.change_template("./3");
    assert_eq!(fleet.pass(), "c2");
    fleet.settle("c2");
    assert!(fleet.syncs.contains_key("apps-c1"));
    fleet.converge();
    assert!(!fleet.syncs.contains_key("apps-c1"));
    fleet.set_members(&MEMBERS[2..]);
    fleet.report("x", "False", "Unknown");
    let removal =
        PlannedRemoval::Wait { syncs: vec!["apps-c2".to_owned()], awaited: vec!["apps-x".to_owned()] };
    assert_eq!(fleet.plan().removal, removal, "the rest is the last stage");
    fleet.settle("x");
    fleet.converge();

    // A Sync of others in a stage holds the next ones.
    fleet.syncs.get_mut("apps-e1").unwrap()["metadata"]["annotations"]["moorline.dev/sync-set"] =
        json!("other");
    fleet.change_template("./4");
    assert_eq!(fleet.pass(), "");
    assert!(fleet.state().unwrap().why.contains("not of this SyncSet"));
}

#[test]
fn a_rollout_that_cannot_be_read_changes_nothing() {
    for (rollout, expect) in [
        (
            json!({"stages": [{"matchLabels": {}, "maxUnavailable": 0}]}),
            "stages[0].maxUnavailable: write a number",
        ),
        (
            json!({"stages": [{"matchLabels": {}, "maxUnavailable": "0%"}]}),
            "stages[0].maxUnavailable: write a number",
        ),
        (
            json!({"stages": [{"matchLabels": {}, "maxUnavailable": "half"}]}),
            "stages[0].maxUnavailable: write a number",
        ),
        (
            json!({"stages": [{"matchLabels": {}, "healthyFor": "1d"}]}),
            "stages[0].healthyFor: write a duration",
        ),
        (
            json!({"stages": [{"matchLabels": {}}], "onFailure": "Revert"}),
            "onFailure: Revert is not supported",
        ),
        (
            json!({"stages": [{"matchLabels": {}, "name": "a"}]}),
            "stages[0].name: this Moorline does not know",
        ),
        (json!({"stages": [{"maxUnavailable": 1}]}), "stages[0].matchLabels: select the Syncs"),
        (
            json!({"stages": [{"matchExpressions": [{"key": "stage", "operator": "NotIn"}]}]}),
            "stages[0].matchExpressions: In and NotIn need values",
        ),
    ] {
        let mut fleet = Fleet::new(&MEMBERS, stages());
        fleet.raw["spec"]["rollout"] = rollout.clone();
        let errors = children(&fleet.raw).unwrap_err().join("; ");
        assert!(errors.contains(&format!("spec.rollout.{expect}")), "{rollout}: {errors}");
    }
}

/// Something that happens between two passes: a Sync of these, and its new state.
fn happening() -> impl Strategy<Value = (usize, u8, i64)> {
    (0..8_usize, 0..6_u8, prop_oneof![Just(1), Just(30), Just(120), Just(700)])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn no_stage_takes_too_many_or_begins_too_early(
        counts in (1..4_usize, 1..4_usize, 0..3_usize),
        most in 1..3_usize,
        happenings in prop::collection::vec(happening(), 0..40),
    ) {
        let names: Vec<(String, &str)> = [("a", counts.0), ("b", counts.1), ("z", counts.2)].into_iter()
            .flat_map(|(stage, count)| (0..count).map(move |at| (format!("{stage}{at}"), stage))).collect();
        let members: Vec<(&str, &str)> = names.iter().map(|(name, stage)| (&**name, *stage)).collect();
        let mut fleet = Fleet::new(&members, json!([
            {"matchLabels": {"stage": "a"}, "maxUnavailable": most, "healthyFor": "2m"},
            {"matchLabels": {"stage": "b"}, "healthyFor": "10m"},
        ]));
        fleet.converge();
        for (at, (who, what, pause)) in happenings.into_iter().enumerate() {
            let (name, _) = members[who % members.len()];
            match what {
                0 => fleet.change_template(&format!("./{}", at % 3)),
                1 => fleet.report(name, "True", "False"),
                2 => fleet.report(name, "False", "Unknown"),
                _ => fleet.settle(name),
            }
            fleet.now += pause;
            check_pass(&mut fleet, most);
        }
        fleet.converge();
    }
}

/// A Sync as a pass finds it: its stage, if it has its newest form, and since when it is settled.
struct Seen {
    stage: char,
    is_newest: bool,
    settled: Option<i64>,
    is_degraded: bool,
}

fn see(fleet: &Fleet) -> BTreeMap<String, Seen> {
    let seen = fleet.syncs.iter().map(|(name, sync)| {
        let live = ExistingSync::of(sync, &SetOwner::of(&fleet.raw));
        let settled = match live.condition {
            ChildCondition::Settled(times) => Some(times.since),
            _ => None,
        };
        let is_degraded = matches!(live.condition, ChildCondition::Degraded(_));
        let is_newest = live.hash.as_ref() == fleet.children.get(name).map(|child| &child.hash);
        (name.clone(), Seen { stage: name.chars().nth(5).unwrap(), is_newest, settled, is_degraded })
    });
    seen.collect()
}

fn check_pass(fleet: &mut Fleet, most: usize) {
    let before = see(fleet);
    let written = fleet.pass();
    let after = see(fleet);
    for (stage, limit, healthy_for) in [('a', most, 120), ('b', 1, 600)] {
        let is_down = |seen: &&Seen| seen.stage == stage && seen.settled.is_none();
        let takes_down = written
            .split_whitespace()
            .any(|name| name.starts_with(stage) && before[&format!("apps-{name}")].settled.is_some());
        let down = after.values().filter(is_down).count();
        assert!(!takes_down || down <= limit, "{down} of stage {stage} are down after {written}");
        let in_flight = after.values().filter(|it| is_down(it) && it.is_newest).count();
        let were = before.values().filter(|it| is_down(it) && it.is_newest).count();
        assert!(in_flight <= limit.max(were), "{in_flight} of stage {stage} are written at one time");
        let is_over = before
            .values()
            .filter(|it| it.stage == stage)
            .all(|it| it.is_newest && it.settled.is_some_and(|since| since + healthy_for <= fleet.now));
        let has_failed = before.values().any(|it| it.stage == stage && it.is_newest && it.is_degraded);
        assert!(!has_failed || !written.contains(stage), "{written} although stage {stage} has failed");
        let is_later = |name: &str| name.chars().next().is_some_and(|of| of > stage);
        assert!(
            is_over || !written.split_whitespace().any(is_later),
            "{written} before stage {stage} is over"
        );
    }
}
