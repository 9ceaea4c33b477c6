//! `moorline status` says that no daemon serves a Sync any more, by the API server's clock.

use std::path::Path;
use std::process::Command;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use moorline_test_support::credentials::{ADMIN, TENANT};
use moorline_test_support::rest::{grant, rule, user};
use moorline_test_support::scene::Scene;
use moorline_test_support::shifted_clock::shifted_clock;

/// Returns the output of `moorline status` for a user, and its exit code.
fn status(scene: &Scene, who: &str) -> (i32, String) {
    let (code, _, words) = said(scene, who, &[]);
    (code, words)
}

/// The same with the table, and with variables in its environment. It goes by the proxy, where no certificate has a date.
fn said(scene: &Scene, who: &str, variables: &[(&str, &Path)]) -> (i32, String, String) {
    let kubeconfig = scene.root.path().join(format!("kubeconfig-of-{who}"));
    std::fs::write(&kubeconfig, scene.proxy.kubeconfig(&scene.plane, who)).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_moorline"))
        .args(["status", "-n", &scene.namespace])
        .env("KUBECONFIG", kubeconfig)
        .envs(variables.iter().copied())
        .output()
        .expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    (output.status.code().expect("a code"), text(&output.stdout), text(&output.stderr))
}

async fn renewed(leases: &Api<Lease>, seconds_ago: i64) {
    let now = jiff::Timestamp::now();
    let then = now - jiff::SignedDuration::from_secs(seconds_ago);
    let time = format!("{then:.6}");
    let spec = json!({"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": time});
    let patch = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "moorline"},
        "spec": spec});
    let parameters = PatchParams::apply("tests").force();
    leases.patch("moorline", &parameters, &Patch::Apply(patch)).await.expect("a Lease");
}

/// A Sync that says to be ready, and which Lease stands for its daemon.
async fn ready(scene: &Scene, held_by: Value) {
    let condition = json!({"type": "Ready", "status": "True", "reason": "Applied", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = Patch::Merge(json!({"status": {"heldBy": held_by, "conditions": [condition]}}));
    scene.syncs().patch_status("shop", &PatchParams::default(), &status).await.expect("a status");
}

/// A Sync, and the Lease of its daemon.
async fn sync(scene: &Scene) -> String {
    let sync = json!({"apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
        "metadata": {"name": "shop", "namespace": scene.namespace},
        "spec": {"source": {"git": {"url": "https://example.com/repository"}}}});
    let sync = serde_json::from_value(sync).expect("a Sync");
    scene.syncs().create(&PostParams::default(), &sync).await.expect("it is created");
    let lease = format!("{}/moorline", scene.namespace);
    ready(scene, json!(lease)).await;
    lease
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_is_gone_is_said_and_fails() {
    let Some(scene) = Scene::new("dead").await else { return };
    let leases = Api::<Lease>::namespaced(scene.admin.clone(), &scene.namespace);
    let lease = sync(&scene).await;

    let gone = format!("no daemon serves this: there is no Lease {lease}");
    assert_eq!(status(&scene, ADMIN), (1, gone));
    renewed(&leases, 0).await;
    assert_eq!(status(&scene, ADMIN), (0, String::new()));
    renewed(&leases, 250).await;
    let silent = format!("no daemon has served this for 4 min: the Lease {lease} is not renewed");
    assert_eq!(status(&scene, ADMIN), (1, silent));

    ready(&scene, Value::Null).await;
    assert_eq!(status(&scene, ADMIN), (0, String::new()), "no Lease, no word about one");
    scene.delete_sync("shop").await;
}

/// The clock of the machine of the person who asks is hours before or behind the others.
#[tokio::test(flavor = "multi_thread")]
async fn the_clock_of_who_asks_does_not_count() {
    let Some(scene) = Scene::new("dead-skewed").await else { return };
    let leases = Api::<Lease>::namespaced(scene.admin.clone(), &scene.namespace);
    let lease = sync(&scene).await;
    let (library, shift) = (shifted_clock(scene.root.path()), scene.root.path().join("shift"));
    let variables = [("LD_PRELOAD", &*library), ("TEST_CLOCK_SHIFT", &*shift)];
    let silent = format!("no daemon has served this for 4 min: the Lease {lease} is not renewed");
    for (seconds, age) in [(7230, "2h0m"), (-7230, "0s")] {
        std::fs::write(&shift, seconds.to_string()).expect("a file");
        renewed(&leases, 0).await;
        let (code, table, words) = said(&scene, ADMIN, &variables);
        assert!(table.ends_with(age), "the clock is moved by {seconds} s: {table}");
        assert_eq!((code, words.as_str()), (0, ""), "it is moved by {seconds} s");
        renewed(&leases, 250).await;
        let (code, _, words) = said(&scene, ADMIN, &variables);
        assert_eq!((code, words), (1, silent.clone()), "it is moved by {seconds} s");
    }
    scene.delete_sync("shop").await;
}

/// A user who may not read Leases learns nothing of the daemon, and the exit code is as before.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_read_leases_sees_that_it_is_unknown() {
    let Some(scene) = Scene::new("dead-unknown").await else { return };
    let leases = Api::<Lease>::namespaced(scene.admin.clone(), &scene.namespace);
    let lease = sync(&scene).await;
    renewed(&leases, 250).await;
    let rules = json!([rule("moorline.dev", &["syncs"], &["get", "list"])]);
    grant(&scene.admin, &scene.namespace, &user(TENANT), &rules).await;
    let unknown = format!("cannot tell if a daemon serves this: the Lease {lease} cannot be read");
    assert_eq!(status(&scene, TENANT), (0, unknown));
    scene.delete_sync("shop").await;
}
