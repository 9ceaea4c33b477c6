//! Cost of the health rules: each rule on one body of realistic size, the root cause of a workload
//! with a hundred Pods, and a rule of a Sync. `cargo bench --bench health` prints a table of times,
//! and before it one line with the slowest rule of all third-party kinds and its fixture.
//!
//! Limit: a rule takes less than 20 µs.

use std::time::{Duration, Instant};

use divan::{Bencher, black_box};
use moorline::health::rules::{RuleSource, Rules};
use moorline::health::{Context, cause, health};
use moorline::object::GroupKind;
use serde_json::{Map, Value, json};

#[path = "../tests/render/health/health_bodies.rs"]
mod health_bodies;
#[path = "../tests/render/health_kinds/fixtures.rs"]
mod health_kinds;

const BAR: Duration = Duration::from_micros(20);

fn main() {
    slowest_of_the_known_kinds();
    divan::main();
}

/// Finds the slowest third-party rule. The median of several rounds reduces the noise of a busy
/// machine.
fn slowest_of_the_known_kinds() {
    const ROUNDS: usize = 11;
    const CALLS: u32 = 20;
    let (fixtures, context) = (health_kinds::all(), Context::default());
    let median = |fixture: &health_kinds::Fixture| {
        let mut rounds: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                (0..CALLS)
                    .for_each(|_| drop(health(black_box(&fixture.kind), black_box(&fixture.body), &context)));
                start.elapsed() / CALLS
            })
            .collect();
        rounds.sort();
        rounds[ROUNDS / 2]
    };
    let times = fixtures.iter().map(|fixture| (median(fixture), fixture));
    let (time, slowest) = times.max_by_key(|(time, _)| *time).expect("there are fixtures");
    println!("the slowest of {} objects of known kinds: {time:?} (bar: {BAR:?})", fixtures.len());
    println!("  {}, {}: {}", slowest.kind, slowest.place, slowest.expect);
    assert!(time < BAR, "over the bar");
}

fn names() -> Vec<String> {
    let name = |(kind, body): &(GroupKind, Map<String, Value>)| {
        format!("{kind}: {}", body["metadata"]["annotations"]["expect"])
    };
    health_bodies::bodies().iter().map(name).collect()
}

#[divan::bench(args = names())]
fn rule(bencher: Bencher<'_, '_>, name: &str) {
    let place = names().iter().position(|other| other == name).expect("one of the names");
    let (kind, body) = health_bodies::bodies().swap_remove(place);
    let context = Context::default();
    bencher.bench_local(|| health(black_box(&kind), black_box(&body), &context));
}

/// A hundred Pods, half of which wait for an image.
#[divan::bench]
fn root_cause(bencher: Bencher<'_, '_>) {
    let kind = GroupKind::new("apps", "StatefulSet");
    let object = |value: Value| value.as_object().cloned().expect("a literal mapping");
    let owner = object(json!({"metadata": {"uid": "web"}, "status": {"updateRevision": "b"}}));
    let pods: Vec<Map<String, Value>> = (0..100)
        .map(|at| {
            let reason = if at % 2 == 0 { "ImagePullBackOff" } else { "ContainerCreating" };
            let waits = json!({"name": "app", "ready": false, "state": {"waiting": {"reason": reason, "message": "m"}}});
            object(json!({
                "metadata": {"name": format!("web-{at}"), "ownerReferences": [{"uid": "web", "controller": true}]},
                "status": {"phase": "Pending", "containerStatuses": [waits]},
            }))
        })
        .collect();
    let pods: Vec<&Map<String, Value>> = pods.iter().collect();
    bencher.bench_local(|| cause(black_box(&kind), &owner, &[], black_box(&pods)));
}

const EXPRESSION: &str = "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True') \
    && object.status.observedGeneration == object.metadata.generation";

/// A rule of a Sync on a custom resource with 21 conditions, the last of which decides.
#[divan::bench]
fn rule_of_a_sync(bencher: Bencher<'_, '_>) {
    let bodies = health_bodies::bodies();
    let (kind, body) = bodies.iter().find(|(kind, _)| &*kind.kind == "Widget").expect("a custom resource");
    let rules = Rules::compile(&[written(kind)]).expect("a sound rule");
    bencher.bench_local(|| rules.evaluate(black_box(kind), black_box(body)));
}

/// Compiling such a rule, once for each version of the Sync.
#[divan::bench]
fn reading_a_rule_of_a_sync(bencher: Bencher<'_, '_>) {
    let kind = GroupKind::new("example.com", "Widget");
    bencher.bench_local(|| Rules::compile(black_box(&[written(&kind)])).expect("a sound rule"));
}

fn written(kind: &GroupKind) -> RuleSource<'_> {
    RuleSource {
        group: &kind.group,
        kind: &kind.kind,
        healthy: Some(EXPRESSION),
        degraded: None,
        progressing: None,
    }
}
