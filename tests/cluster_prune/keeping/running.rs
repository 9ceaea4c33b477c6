//! One repository without a Sync: the Lease that says whose it is, and a repository on the local disk.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;

use super::writes;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{FaultProxy, RecordedRequest};
use moorline_test_support::git_server::Work;
use moorline_test_support::scene::{QUIET_TIME, Scene, many};
use moorline_test_support::under_load::under_load;

const TERMS: [&str; 6] =
    ["--lease-duration", "4s", "--lease-renew-deadline", "2s", "--lease-retry-period", "300ms"];

/// Returns the holder of the Lease; nobody if that is empty.
async fn holder(scene: &Scene) -> String {
    let leases: Api<Lease> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    let lease = leases.get("moorline-default").await.unwrap().spec.unwrap();
    lease.holder_identity.unwrap_or_default()
}

#[tokio::test]
async fn a_lease_keeps_another_repository_out_until_it_is_taken_over() {
    let Some(scene) = Scene::new("take-over").await else { return };
    scene.push(&many(2, "a"));
    scene.work.git(&["clone", "-q", "--bare", "../repository.git", "../other.git"]);
    let urls = ["repository.git", "other.git"].map(|name| scene.git.url(name));
    let run = |url: &str, more: &[&str], proxy: &FaultProxy, name: &str| {
        let arguments = [&["--url", url, "--interval", "1"], &TERMS[..], more].concat();
        scene.daemon_at(proxy, name, &arguments)
    };
    let mut first = run(&urls[0], &[], &scene.proxy, "first");
    scene.until_values(&many(2, "a"), "the first one leads").await;
    assert_ne!(holder(&scene).await, "");

    // One that waits for its turn is ready, and writes nothing.
    let proxy = FaultProxy::start(&scene.plane);
    let standby = run(&urls[0], &[], &proxy, "standby");
    let ready = async || standby.get("/readyz").filter(|answer| answer.starts_with("HTTP/1.1 200 "));
    until("the standby is ready", ready).await;
    tokio::time::sleep(QUIET_TIME).await;
    let wrote: Vec<RecordedRequest> =
        proxy.take_requests().into_iter().filter(RecordedRequest::writes).collect();
    assert!(wrote.is_empty(), "{wrote:?}");
    drop(standby);
    first.terminate();
    assert_eq!(holder(&scene).await, "", "whoever is asked to end gives the Lease back");

    scene.work.git(&["remote", "add", "other", "../other.git"]);
    scene.work.commit(&[("a-0.json", &super::config_map("a-0", "b"))]);
    scene.work.git(&["push", "-q", "other", "HEAD:main"]);
    writes(&scene);
    let mut refused = run(&urls[1], &[], &scene.proxy, "refused");
    let status = until("it ends", async || refused.running.child.try_wait().unwrap()).await;
    assert!(!status.success(), "{status}");
    let log = refused.log();
    for word in [&*urls[0], &*urls[1], "--take-over"] {
        assert!(log.contains(word), "{word}: {log}");
    }
    assert_eq!(writes(&scene), Vec::<String>::new());
    scene.until_values(&many(2, "a"), "all stays").await;

    let mut over = run(&urls[1], &["--take-over"], &scene.proxy, "over");
    let expect = [many(1, "b"), many(2, "a").split_off(1)].concat();
    scene.until_values(&expect, "the other repository rules").await;
    // The object that does not differ shows the apply of the other repository.
    let mut written = writes(&scene);
    tokio::time::sleep(QUIET_TIME).await;
    written.extend(writes(&scene));
    assert_eq!(written, ["PATCH a-0"], "only the object that differs");
    over.terminate();
    assert_eq!(holder(&scene).await, "");
}

#[tokio::test]
async fn a_commit_on_the_local_disk_is_live_at_once() {
    let Some(scene) = Scene::new("local").await else { return };
    scene.work.commit(&[("a-0.json", &super::config_map("a-0", "0"))]);
    let folder = scene.work.folder.display().to_string();
    let arguments = ["--url", &folder, "--interval", "3600", "--leader-election=false"];
    let _daemon = scene.daemon_with(&arguments);
    scene.until_values(&many(1, "0"), "the first commit").await;
    scene.assert_calm("until there is another").await;
    let mut fastest = Duration::MAX;
    for round in 1..=3 {
        let wanted = many(1, &round.to_string());
        let begun = Instant::now();
        commit(&scene.work, &wanted);
        scene.until_values(&wanted, "a commit that nobody polls for").await;
        fastest = fastest.min(begun.elapsed());
        assert_eq!(writes(&scene), ["PATCH a-0"], "round {round}");
    }
    assert!(fastest < under_load(Duration::from_secs(2)), "{fastest:?}");
}

fn commit(work: &Work, files: &[(String, String)]) {
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    work.commit(&files);
}
