//! Changes with time under a running daemon: its clock jumps, its token is replaced, what has finished is cleared
//! away, and another daemon holds what it would serve.

mod polled;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::{FaultProxy, RecordedRequest};
use moorline_test_support::scene::{QUIET_TIME, Scene, many};
use moorline_test_support::shifted_clock::shifted_clock;

const TERMS: [&str; 6] =
    ["--lease-duration", "4s", "--lease-renew-deadline", "2s", "--lease-retry-period", "300ms"];

async fn edit(scene: &Scene, name: &str) {
    let patch = Patch::Merge(json!({"data": {"key": "by hand"}}));
    scene.maps().patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Returns the writes that a proxy let through, renewals of Leases left out.
fn writes(proxy: &FaultProxy) -> Vec<String> {
    let asked = proxy.take_requests();
    let told = asked.iter().filter(|one| one.writes() && !one.path.contains("/leases") && !one.is_for_keys());
    told.map(|one: &RecordedRequest| format!("{} {}", one.method, one.path)).collect()
}

async fn lease(scene: &Scene) -> k8s_openapi::api::coordination::v1::LeaseSpec {
    let leases: Api<Lease> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    leases.get(&scene.lease_name()).await.unwrap().spec.unwrap()
}

#[tokio::test]
async fn the_clock_of_the_leader_jumps() {
    let Some(scene) = Scene::beside("clock").await else { return };
    let commit = scene.push(&many(3, "one"));
    let (library, shift) = (shifted_clock(scene.root.path()), scene.root.path().join("shift"));
    let variables = [("LD_PRELOAD", &*library), ("TEST_CLOCK_SHIFT", &*shift)];
    let arguments = [&["--namespace", &scene.namespace], &TERMS[..]].concat();
    let _leader = scene.daemon_in(&scene.proxy, "leader", &arguments, &variables);
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let waiting = FaultProxy::start(&scene.plane);
    let _standby = scene.daemon_at(&waiting, "standby", &TERMS);
    until("the other waits for its turn", async || (!waiting.take_requests().is_empty()).then_some(())).await;
    let holder = lease(&scene).await.holder_identity;
    for seconds in [-3600, 86400, 0] {
        tokio::time::sleep(QUIET_TIME).await;
        let (versions, status) = (scene.versions().await, scene.status("shop", "").await);
        writes(&scene.proxy);
        std::fs::write(&shift, seconds.to_string()).unwrap();
        until("the leader goes by another time", async || {
            let renewed = lease(&scene).await.renew_time?.0.as_second();
            let now = k8s_openapi::jiff::Timestamp::now().as_second();
            (renewed - now - seconds).abs().le(&60).then_some(())
        })
        .await;
        // Longer than a term, so that anyone who would take over has.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(writes(&scene.proxy), Vec::<String>::new(), "a jump by {seconds} s is no reason to write");
        assert_eq!(scene.versions().await, versions);
        assert_eq!(scene.status("shop", "").await, status);
        edit(&scene, "a-1").await;
        scene.until_values(&many(3, "one"), "an edit is repaired").await;
        tokio::time::sleep(QUIET_TIME).await;
        let told = writes(&scene.proxy);
        let statuses = told.iter().filter(|one| one.ends_with("/status")).count();
        let objects = told.iter().filter(|one| one.contains("/configmaps/")).count();
        assert!(objects == 1 && statuses <= 1, "one request each: {told:?}");
        let now = lease(&scene).await;
        assert_eq!((&now.holder_identity, now.lease_transitions), (&holder, Some(0)), "the leader stays");
        assert_eq!(writes(&waiting), Vec::<String>::new(), "there is one writer");
    }
    scene.delete_sync("shop").await;
}

/// A token of a ServiceAccount that lives no longer than a Secret of the same name does.
async fn token(scene: &Scene, secret: &str) -> String {
    let base = format!("/api/v1/namespaces/{}", scene.namespace);
    let post = async |uri: String, body: Value| -> Value {
        let request = http::Request::post(uri).header("Content-Type", "application/json");
        scene.admin.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
    };
    post(format!("{base}/secrets"), json!({"metadata": {"name": secret}})).await;
    let bound = json!({"spec": {"expirationSeconds": 600,
        "boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": secret}}});
    let answer = post(format!("{base}/serviceaccounts/daemon/token"), bound).await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// A daemon that has its rights by a ServiceAccount, and its token from a file.
async fn daemon_with_token(scene: &Scene, file: &Path, variables: &[(&str, &Path)]) -> Daemon {
    let rights = json!({
        "metadata": {"name": format!("{}-daemon", scene.namespace)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": scene.namespace, "name": "daemon"}],
    });
    let uri = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    for (uri, body) in [
        (uri.to_owned(), rights),
        (
            format!("/api/v1/namespaces/{}/serviceaccounts", scene.namespace),
            json!({"metadata": {"name": "daemon"}}),
        ),
    ] {
        let request = http::Request::post(uri).header("Content-Type", "application/json");
        let request = request.body(body.to_string().into_bytes()).unwrap();
        scene.admin.request_text(request).await.unwrap();
    }
    replace(file, &token(scene, "first").await);
    let mut config: Value = serde_json::from_str(&scene.proxy.kubeconfig(&scene.plane, MOORLINE)).unwrap();
    config["users"][0]["user"] = json!({"tokenFile": file});
    let folder = scene.root.path().join("daemon");
    std::fs::create_dir_all(&folder).unwrap();
    let arguments = ["--namespace", &scene.namespace, "--leader-election=false", "--retry-base", "100ms"];
    let arguments = [&arguments[..], &scene.instance_arguments()].concat();
    Daemon::with_environment(&scene.plane.reaper, &config.to_string(), &folder, &arguments, variables)
}

/// Puts a file in the place of another, as the kubelet does.
fn replace(file: &Path, text: &str) {
    let new = file.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, file).unwrap();
}

#[tokio::test]
async fn the_token_of_the_daemon_is_replaced() {
    let Some(scene) = Scene::beside("token").await else { return };
    let commit = scene.push(&many(3, "one"));
    let file = scene.root.path().join("token");
    let mark = AuditMark::set(&scene.plane).await;
    let (library, shift) = (shifted_clock(scene.root.path()), scene.root.path().join("shift"));
    let variables = [("LD_PRELOAD", &*library), ("TEST_CLOCK_SHIFT", &*shift)];
    let _daemon = daemon_with_token(&scene, &file, &variables).await;
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let user = format!("system:serviceaccount:{}:daemon", scene.namespace);
    let newest = async || {
        let requests = mark.requests().await.by_user(&user);
        requests.as_slice().last().map(|request| request.credential.clone()).unwrap_or_default()
    };
    let first = newest().await;
    assert!(first.starts_with("JTI="), "{first}");
    replace(&file, &token(&scene, "second").await);
    // The library reads the file again when 50 seconds have passed by its clock. Each nudge is answered in the status.
    std::fs::write(&shift, "60").unwrap();
    let mut at = 0;
    until("requests are made with the new token", async || {
        at += 1;
        scene.nudge("shop", &format!("number {at}")).await;
        tokio::time::sleep(QUIET_TIME).await;
        (newest().await != first).then_some(())
    })
    .await;
    let secret = format!("/api/v1/namespaces/{}/secrets/first", scene.namespace);
    let request = http::Request::delete(secret).body(Vec::new()).unwrap();
    scene.admin.request_text(request).await.unwrap();
    // A server believes in a token for some seconds after it was revoked.
    tokio::time::sleep(Duration::from_secs(11)).await;
    scene.proxy.cut_watches();
    edit(&scene, "a-2").await;
    let commit = scene.push(&many(4, "two"));
    scene.nudge("shop", "later").await;
    scene.until_ready("shop", &commit).await;
    scene.until_values(&many(4, "two"), "it goes on").await;
    let refused = mark.requests().await.filter(|request| request.code == 401);
    assert_eq!(refused.tally(), [].into(), "nothing was refused on the way");
    scene.delete_sync("shop").await;
}

fn job(command: &str) -> String {
    let containers = json!([{"name": "main", "image": "example.com/main:1", "command": [command]}]);
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"},
        // Nothing runs here; the test is the one who says how the Job ended.
        "spec": {"ttlSecondsAfterFinished": 1, "managedBy": "example.com/test",
            "template": {"spec": {"restartPolicy": "Never", "containers": containers}}},
    })
    .to_string()
}

/// Waits until the Job is there, has it complete, and waits until the controller has cleared it away.
async fn completes(scene: &Scene) {
    let jobs: Api<DynamicObject> = scene.dynamic("batch", "v1", "Job");
    until("the Job is there", async || jobs.get_opt("migrate").await.unwrap()).await;
    let now = k8s_openapi::jiff::Timestamp::now().to_string();
    let is =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now});
    let status = json!({"status": {"startTime": now, "completionTime": now, "succeeded": 1,
        "conditions": [is("SuccessCriteriaMet"), is("Complete")]}});
    jobs.patch_status("migrate", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    until("the Job is cleared away", async || jobs.get_opt("migrate").await.unwrap().is_none().then_some(()))
        .await;
}

/// Returns the number of Jobs that the daemon made since the mark.
async fn made(mark: &AuditMark) -> usize {
    let requests = mark.requests().await.by_user(MOORLINE);
    requests.filter(|request| request.resource == "jobs" && request.code == 201).as_slice().len()
}

#[tokio::test]
async fn a_job_that_finished_and_was_cleared_away_has_run_once() {
    let Some(scene) = Scene::new("job").await else { return };
    let mark = AuditMark::set(&scene.plane).await;
    let file = |command: &str| vec![("job.json".to_owned(), job(command))];
    let commit = scene.push(&[many(2, "one"), file("one")].concat());
    let daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    completes(&scene).await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm_but_for_looks("after the Job").await;
    assert_eq!(made(&mark).await, 1);
    assert_eq!(
        scene.status("shop", "/finished/0/object").await,
        format!("batch/Job|{}/migrate", scene.namespace)
    );

    // The next daemon knows it by the status.
    drop(daemon);
    let _daemon = scene.daemon();
    scene.maps().delete("a-1", &Default::default()).await.unwrap();
    scene.until_values(&many(2, "one"), "the next daemon is at work").await;
    let commit = scene.push(&many(3, "two"));
    scene.nudge("shop", "others change").await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm_but_for_looks("after the restart").await;
    assert_eq!(made(&mark).await, 1);

    let commit = scene.push(&file("two"));
    scene.nudge("shop", "the Job changes").await;
    completes(&scene).await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm_but_for_looks("after the second Job").await;
    assert_eq!(made(&mark).await, 2, "another Job runs");
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_job_that_is_cleared_away_while_no_daemon_runs_has_run_once() {
    let Some(scene) = Scene::new("job-alone").await else { return };
    let mark = AuditMark::set(&scene.plane).await;
    let commit = scene.push(&[many(2, "one"), vec![("job.json".to_owned(), job("one"))]].concat());
    let mut daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    until("it is written down", async || scene.status("shop", "/finished/0/begun").await.as_bool()).await;
    scene.assert_calm_but_for_looks("while the Job runs").await;

    // A person who deletes a Job that has not ended wants it to run once more.
    let jobs: Api<DynamicObject> = scene.dynamic("batch", "v1", "Job");
    jobs.delete("migrate", &DeleteParams::background()).await.unwrap();
    until("it is there once more", async || (made(&mark).await == 2).then_some(())).await;
    scene.assert_calm_but_for_looks("after that").await;

    daemon.terminate();
    completes(&scene).await;
    let _daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false"]);
    let commit = scene.push(&many(3, "two"));
    scene.nudge("shop", "after the restart").await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm_but_for_looks("after the restart").await;
    assert_eq!(made(&mark).await, 2);
    assert_eq!(scene.status("shop", "/finished/0/begun").await, Value::Null, "it has ended");
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_sync_that_another_daemon_serves_is_left_alone_until_that_is_gone() {
    let Some(scene) = Scene::new("held").await else { return };
    let elsewhere = scene.plane.namespace("elsewhere").await;
    let commit = scene.push(&many(3, "one"));
    let first = scene.daemon_with(&TERMS);
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let ours = scene.status("shop", "/heldBy").await;
    assert_eq!(ours, format!("{}/moorline", scene.namespace));
    scene.proxy.take_requests();

    // It has a Lease of its own, in its own namespace, so that it leads too.
    let proxy = FaultProxy::start(&scene.plane);
    let own = ["--namespace", &elsewhere, "--daemon-identity-namespaces", &scene.namespace];
    let second = scene.daemon_in(&proxy, "second", &[&own[..], &TERMS[..]].concat(), &[]);
    until("it says why it leaves the Sync alone", async || {
        second.log().contains("HeldByOther").then_some(())
    })
    .await;
    let commit = scene.push(&many(4, "two"));
    scene.nudge("shop", "for one of the two").await;
    scene.until_ready("shop", &commit).await;
    edit(&scene, "a-1").await;
    scene.until_values(&many(4, "two"), "the first serves it").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(writes(&proxy), Vec::<String>::new(), "the second writes nothing");
    assert_eq!(scene.status("shop", "/heldBy").await, ours);

    // Killed, it gives nothing back: its term has to end.
    drop(first);
    let versions = scene.versions().await;
    until("the second has taken over", async || {
        (scene.status("shop", "/heldBy").await == format!("{elsewhere}/moorline")).then_some(())
    })
    .await;
    // It has other keys, so that it proves the objects again. They stay the same ones.
    let same = |all: &BTreeMap<String, (String, String)>| -> BTreeMap<String, String> {
        all.iter().map(|(name, (uid, _))| (name.clone(), uid.clone())).collect()
    };
    assert_eq!(same(&scene.versions().await), same(&versions));
    edit(&scene, "a-2").await;
    scene.until_values(&many(4, "two"), "the second serves it").await;
    scene.delete_sync("shop").await;
}
