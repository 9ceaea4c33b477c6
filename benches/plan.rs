//! Cost of a plan without changes: the canonical form and hash of 10,000 objects, and the plan for
//! 10,000 desired and observed ones. `cargo bench --bench plan` prints times and allocations.
//!
//! Limits: a plan with nothing to do takes less than 20 ms, and its number of allocations does not
//! grow with the number of unchanged objects; the hashes take well under a second.

use divan::{AllocProfiler, Bencher, black_box};
use moorline::desired::{DesiredSet, Scopes, build_desired_set};
use moorline::observed::{Observed, ObservedSet, Ownership, Verification};
use moorline::plan::{Policy, plan};
use moorline::render::{Complete, RenderOptions, Rendered, render};
use moorline::tree::FileTree;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const OBJECTS: usize = 10_000;

fn main() {
    divan::main();
}

/// A realistic workload: Deployments and Services, half each.
fn manifests(objects: usize, changed: usize) -> FileTree {
    let texts: Vec<(String, String)> = (0..objects)
        .map(|at| {
            let image = if at < changed { "web:2" } else { "web:1" };
            let text = match at % 2 {
                0 => deployment(at, image),
                _ => service(at, image),
            };
            (format!("{at:05}.json"), text)
        })
        .collect();
    FileTree::from_texts(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())))
}

fn deployment(at: usize, image: &str) -> String {
    let container = |name: &str| {
        format!(
            r#"{{"name": "{name}", "image": "registry.example.com/shop/{image}", "imagePullPolicy": "IfNotPresent",
                "args": ["--listen=:8080", "--log=info"], "ports": [{{"name": "http", "containerPort": 8080}}],
                "env": [{{"name": "REGION", "value": "eu-west-1"}}, {{"name": "SHARD", "value": "{at}"}}],
                "resources": {{"requests": {{"cpu": "100m", "memory": "128Mi"}}, "limits": {{"memory": "256Mi"}}}},
                "readinessProbe": {{"httpGet": {{"path": "/healthz", "port": "http"}}, "periodSeconds": 5}}}}"#
        )
    };
    format!(
        r#"{{"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {{"name": "web-{at}", "namespace": "shop-{}", "labels": {{"app.kubernetes.io/name": "web-{at}"}}}},
            "spec": {{"replicas": 2, "selector": {{"matchLabels": {{"app.kubernetes.io/name": "web-{at}"}}}},
                "template": {{"metadata": {{"labels": {{"app.kubernetes.io/name": "web-{at}"}}}},
                    "spec": {{"serviceAccountName": "web", "containers": [{}, {}]}}}}}}}}"#,
        at % 50,
        container("web"),
        container("proxy"),
    )
}

fn service(at: usize, image: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "Service",
            "metadata": {{"name": "web-{at}", "namespace": "shop-{}", "annotations": {{"shop/image": "{image}"}}}},
            "spec": {{"selector": {{"app.kubernetes.io/name": "web-{at}"}},
                "ports": [{{"name": "http", "port": 80, "targetPort": "http"}}]}}}}"#,
        at % 50,
    )
}

fn complete(tree: &FileTree) -> Complete {
    match render(tree, &RenderOptions::default()) {
        Rendered::Complete(complete) => complete,
        Rendered::Incomplete(incomplete) => panic!("{:?}", incomplete.problems),
    }
}

fn desired_set(objects: usize, changed: usize) -> DesiredSet {
    build_desired_set(complete(&manifests(objects, changed)), "default", &Scopes::builtin())
        .expect("sound manifests")
}

/// Observed set of a cluster that is as desired.
fn observed_set(desired: &DesiredSet) -> ObservedSet {
    let mut observed = ObservedSet::default();
    for (at, object) in desired.objects().iter().enumerate() {
        let seen = Observed {
            recorded_hash: Some(object.hash),
            applied_by_us: true,
            ownership: Ownership::Ours,
            verification: Verification::Verified,
            ..Observed::new(&format!("b1b2c3d4-0000-4000-8000-{at:012}"), &at.to_string())
        };
        observed.insert(object.id.clone(), seen);
    }
    observed
}

/// Nothing to do; 10,000 objects must need as many allocations as 1,000.
#[divan::bench(args = [1_000, OBJECTS])]
fn nothing_to_do(bencher: Bencher<'_, '_>, objects: usize) {
    let desired = desired_set(objects, 0);
    let (observed, policy) = (observed_set(&desired), Policy::default());
    bencher.bench_local(|| plan(black_box(&desired), black_box(&observed), &policy));
}

/// A commit changes one object in a hundred.
#[divan::bench]
fn one_percent_changed(bencher: Bencher<'_, '_>) {
    let observed = observed_set(&desired_set(OBJECTS, 0));
    let (desired, policy) = (desired_set(OBJECTS, OBJECTS / 100), Policy::default());
    bencher.bench_local(|| plan(black_box(&desired), black_box(&observed), &policy));
}

/// From 10,000 rendered objects to the desired set: canonical forms, hashes, order.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn canonical_form_and_hash(bencher: Bencher<'_, '_>) {
    let (tree, scopes) = (manifests(OBJECTS, 0), Scopes::builtin());
    bencher.with_inputs(|| complete(&tree)).bench_local_values(|complete| {
        build_desired_set(complete, "default", &scopes).expect("sound manifests")
    });
}
