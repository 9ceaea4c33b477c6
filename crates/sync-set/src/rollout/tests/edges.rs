//! Tests of roll-outs: what people and windows do to Syncs while one is in progress.

use super::*;

impl Fleet {
    fn sync(&mut self, name: &str) -> &mut Value {
        self.syncs.get_mut(&format!("apps-{name}")).unwrap()
    }

    /// Two Syncs of a first stage and one of a second one, all with the first template.
    fn at_rest() -> Self {
        let mut fleet = Self::new(&[("c1", "canary"), ("c2", "canary"), ("e1", "eu")], stages());
        fleet.converge();
        fleet
    }

    /// The same, with the first stage written and healthy for long enough.
    fn after_the_first_stage() -> Self {
        let mut fleet = Self::at_rest();
        fleet.change_template("./2");
        for name in ["c1", "c2"] {
            assert_eq!(fleet.pass(), name);
            fleet.settle(name);
        }
        fleet.now += 601;
        fleet
    }
}

#[test]
fn a_sync_that_a_window_holds_is_not_healthy_with_its_newest_spec() {
    let mut fleet = Fleet::at_rest();
    fleet.change_template("./2");
    assert_eq!(fleet.pass(), "c1");
    // It stays ready and healthy with what was applied before.
    fleet.settle("c1");
    fleet.sync("c1")["status"]["heldByWindow"] = json!({"by": "ChangeWindow nightly", "revision": "main@1"});
    fleet.now += 3600;
    assert_eq!(fleet.pass(), "");
    let state = fleet.state().unwrap();
    assert_eq!(state.waiting_for, ["apps-c1"]);
    assert_eq!(state.why, "its newest revision or spec is held by ChangeWindow nightly");
    fleet.settle("c1");
    assert_eq!(fleet.pass(), "c2");
}

#[test]
fn the_next_stage_does_not_begin_while_an_edit_is_undone() {
    let mut fleet = Fleet::after_the_first_stage();
    fleet.sync("c2")["spec"]["path"] = json!("./hand");
    fleet.settle("c2");
    assert_eq!(fleet.pass(), "c2", "healthy with the form of others is not healthy as wanted");
    assert_eq!(fleet.state().unwrap().waiting_for, ["apps-c2"]);
    fleet.settle("c2");
    fleet.now += 601;
    assert_eq!(fleet.pass(), "e1");
}

#[test]
fn a_sync_that_the_set_resumes_counts_as_unavailable() {
    let mut fleet = Fleet::at_rest();
    let suspend = |fleet: &mut Fleet, is_own: bool| {
        for name in ["c1", "c2"] {
            let sync = fleet.sync(name);
            sync["spec"]["suspend"] = json!(true);
            let fields = if is_own { json!({"f:suspend": {}}) } else { json!({}) };
            sync["metadata"]["managedFields"][0]["fieldsV1"] = json!({"f:spec": fields});
        }
    };
    suspend(&mut fleet, true);
    fleet.change_template("./2");
    assert_eq!(fleet.pass(), "c1", "the new template resumes it");
    let mut fleet = Fleet::at_rest();
    suspend(&mut fleet, false);
    fleet.change_template("./2");
    assert_eq!(fleet.pass(), "c1 c2", "a person has suspended them");
    let mut fleet = Fleet::at_rest();
    suspend(&mut fleet, true);
    fleet.raw["spec"]["template"]["spec"]["suspend"] = json!(true);
    fleet.change_template("./2");
    assert_eq!(fleet.pass(), "c1 c2", "they stay suspended");
}

#[test]
fn after_the_last_write_only_its_own_time_counts() {
    let mut fleet = Fleet::at_rest();
    fleet.now += 100_000;
    // A commit makes a Sync unready for a moment; no stage begins again.
    fleet.report("c1", "False", "Unknown");
    fleet.settle("c1");
    assert_eq!(fleet.state(), None);
    fleet.report("c1", "False", "Unknown");
    assert_eq!(fleet.state().map(|state| state.waiting_for), Some(vec!["apps-c1".to_owned()]));
    // The last stage is not over before its time.
    let mut fleet = Fleet::after_the_first_stage();
    assert_eq!(fleet.pass(), "e1");
    fleet.settle("e1");
    fleet.now += 60;
    let state = fleet.state().unwrap();
    assert_eq!((state.stage, state.left), (2, Some(Duration::from_secs(1))));
    fleet.now += 1;
    assert_eq!(fleet.state(), None);
}

#[test]
fn an_earlier_stage_that_degrades_stops_the_later_one() {
    let mut fleet = Fleet::after_the_first_stage();
    fleet.report("c1", "True", "False");
    assert_eq!(fleet.pass(), "");
    let state = fleet.state().unwrap();
    assert_eq!((state.is_stopped, state.stage, state.held), (true, 1, 1));
    // Another template goes on with the Sync that is degraded, and with nothing else.
    fleet.change_template("./3");
    assert_eq!(fleet.pass(), "c1");
}

#[test]
fn a_stage_without_syncs_is_over_and_labels_decide_now() {
    let all = json!([{"matchLabels": {"stage": "none"}}, {"matchLabels": {"stage": "canary"}, "healthyFor": "10m"}]);
    let mut fleet = Fleet::new(&[("c1", "canary"), ("x", "later")], all);
    assert_eq!(fleet.pass(), "c1");
    assert_eq!(fleet.state().map(|state| (state.stage, state.of)), Some((2, 3)));
    fleet.settle("c1");
    fleet.converge();
    // A Sync whose new label is of an earlier stage is written with that stage.
    fleet.set_members(&[("c1", "canary"), ("x", "none")]);
    fleet.change_template("./2");
    assert_eq!(fleet.pass(), "x");
    fleet.settle("x");
    assert_eq!(fleet.pass(), "c1");
}

#[test]
fn a_sync_that_is_deleted_by_hand_is_created_in_its_stage() {
    let mut fleet = Fleet::after_the_first_stage();
    fleet.syncs.remove("apps-e1");
    fleet.syncs.remove("apps-c2");
    assert_eq!(fleet.pass(), "c2", "the first stage is not over any more");
    fleet.settle("c2");
    fleet.now += 600;
    assert_eq!(fleet.pass(), "");
    fleet.now += 1;
    assert_eq!(fleet.pass(), "e1");
}

#[test]
fn a_new_member_and_a_new_template_in_one_edit_keep_the_limit() {
    let mut fleet = Fleet::at_rest();
    fleet.set_members(&[("c0", "canary"), ("c1", "canary"), ("c2", "canary"), ("e1", "eu"), ("e2", "eu")]);
    fleet.change_template("./2");
    assert_eq!(fleet.pass(), "c0");
    fleet.report("c0", "False", "False");
    assert_eq!(fleet.pass(), "", "a new Sync that is degraded stops the stage");
    assert_eq!(fleet.state().map(|state| (state.is_stopped, state.held)), Some((true, 4)));
}

#[test]
fn a_stage_that_stops_lets_only_repairs_through() {
    let both = json!([{"matchLabels": {"stage": "canary"}, "maxUnavailable": 2}]);
    let mut fleet = Fleet::new(&[("c1", "canary"), ("c2", "canary"), ("c3", "canary")], both);
    fleet.converge();
    fleet.change_template("./2");
    assert_eq!(fleet.pass(), "c1 c2");
    fleet.settle("c2");
    fleet.report("c1", "True", "False");
    assert_eq!(fleet.pass(), "", "there is room for one more, but one is degraded");
    fleet.sync("c2")["spec"]["path"] = json!("./hand");
    assert_eq!(fleet.pass(), "c2");
    // One that needs a person stops it as well, and one that is being deleted is waited for.
    fleet.settle("c1 c2");
    let stalled = json!({"type": "Stalled", "status": "True", "reason": "Why", "message": "no path"});
    let conditions = fleet.sync("c1").pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    conditions.unwrap().push(stalled);
    assert_eq!(
        fleet.state().map(|state| (state.is_stopped, state.why)),
        Some((true, "Why: no path".to_owned()))
    );
    fleet.settle("c1");
    fleet.sync("c1")["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    fleet.sync("c1")["spec"]["path"] = json!("./2");
    assert_eq!(fleet.pass(), "c3");
    fleet.settle("c3");
    assert_eq!(fleet.state().map(|state| state.why), Some("it is being deleted".to_owned()));
}

#[test]
fn the_time_of_a_stage_begins_with_the_last_write_of_the_set_or_change_of_a_condition() {
    let owner = "moorline-set/team/apps";
    let since = |[ready, healthy, written]: [i64; 3], (manager, operation): (&str, &str)| {
        let condition =
            |type_: &str, at: i64| json!({"type": type_, "status": "True", "lastTransitionTime": time(at)});
        let sync = json!({
            "metadata": {"generation": 1, "managedFields": [{"manager": manager, "operation": operation, "time": time(written)}]},
            "status": {"observedGeneration": 1, "conditions": [condition("Ready", ready), condition("Healthy", healthy)]},
        });
        match ChildCondition::of(&sync, owner) {
            ChildCondition::Settled(times) => (times.since, times.written),
            other => panic!("{other:?}"),
        }
    };
    for (times, by, expect) in [
        ([30, 10, 20], (owner, "Apply"), (31, 21)),
        ([10, 30, 20], (owner, "Apply"), (31, 21)),
        ([10, 20, 30], (owner, "Apply"), (31, 31)),
        ([10, 20, 30], ("kubectl", "Apply"), (21, 21)),
        ([10, 20, 30], (owner, "Update"), (21, 21)),
    ] {
        assert_eq!(since(times, by), expect, "{times:?} {by:?}");
    }
}
