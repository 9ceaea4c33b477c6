//! The API server is away for longer than a term of the Lease: the same process waits, stands by and goes on.
//!
//! A term ends by itself when the Lease cannot be renewed. The daemon keeps its caches, and what it verified counts on
//! if nobody held the Lease in between. If somebody did, it stands by and restarts later.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::{Daemon, until, until_within};
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::scene::{QUIET_TIME, Scene, many};
use moorline_test_support::under_load::under_load;

/// Time for which the API server is away.
const AWAY: Duration = Duration::from_secs(60);
/// For the daemon to be as it should after the return.
const RETURN: Duration = Duration::from_secs(10);
/// The longest pause between two attempts to reach an API server that is away, and some requests on a busy machine.
const LONGEST_PAUSE: Duration = Duration::from_secs(7);
/// Short terms, so that a test sees several of them.
const SHORT: [&str; 6] =
    ["--lease-duration", "6s", "--lease-renew-deadline", "4s", "--lease-retry-period", "500ms"];

/// Cuts every connection of the daemon to the API server, and lets none through.
fn away(scene: &Scene) {
    scene.proxy.rule(|_| Fate::Drop);
    scene.proxy.cut_watches();
}

/// Waits until nothing but the Lease is asked about for a while.
async fn settle(scene: &Scene) {
    let of_the_lease = |one: &RecordedRequest| one.path.contains("/leases/");
    scene.proxy.take_requests();
    until("nothing but the Lease is asked about", async || {
        tokio::time::sleep(QUIET_TIME).await;
        scene.proxy.take_requests().iter().all(of_the_lease).then_some(())
    })
    .await;
}

/// The names of the objects that the daemon wrote since this was asked last.
fn written(scene: &Scene) -> Vec<String> {
    let asked = scene.proxy.take_requests();
    let name = |one: &RecordedRequest| one.path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = asked.iter().filter(|one| one.writes_object()).map(name).collect();
    names.sort();
    names
}

fn assert_runs(daemon: &mut Daemon) {
    let ended = daemon.running.child.try_wait().expect("the process can be asked");
    assert!(ended.is_none(), "the daemon has ended: {}", daemon.log());
}

async fn lease_is(scene: &Scene, patch: Value) {
    let leases = Api::<Lease>::namespaced(scene.admin.clone(), &scene.namespace);
    leases
        .patch(&scene.lease_name(), &PatchParams::default(), &Patch::Merge(patch))
        .await
        .expect("a patch of the Lease");
}

async fn edit(scene: &Scene, name: &str) {
    let patch = Patch::Merge(json!({"data": {"key": "by hand"}}));
    scene.maps().patch(name, &PatchParams::default(), &patch).await.expect("an edit");
}

#[tokio::test]
async fn the_same_process_goes_on_after_a_minute_without_an_api_server() {
    let Some(scene) = Scene::beside("away").await else { return };
    let commit = scene.push(&many(20, "one"));
    let mut daemon = scene.daemon_with(&[]);
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    settle(&scene).await;
    let before = scene.versions().await;

    away(&scene);
    edit(&scene, "a-1").await;
    scene.maps().delete("a-2", &DeleteParams::default()).await.expect("a deletion");
    tokio::time::sleep(AWAY).await;
    assert_runs(&mut daemon);
    scene.proxy.take_requests();
    let returned = Instant::now();
    scene.proxy.heal();
    scene.until_values(&many(20, "one"), "drift is repaired").await;
    scene.until_ready("shop", &commit).await;
    assert!(returned.elapsed() < under_load(RETURN), "it took {:?}: {}", returned.elapsed(), daemon.log());
    assert_eq!(written(&scene), ["a-1", "a-2"], "only real drift is written");
    settle(&scene).await;
    let now = scene.versions().await;
    let same = before.iter().filter(|(name, _)| !["a-1", "a-2"].contains(&name.as_str()));
    same.for_each(|(name, version)| assert_eq!(&now[name], version, "{name} was not touched"));
    assert_runs(&mut daemon);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_daemon_that_lost_its_lease_to_another_stands_by_and_goes_on_later() {
    let Some(scene) = Scene::beside("taken").await else { return };
    let commit = scene.push(&many(6, "one"));
    let mut daemon = scene.daemon_with(&SHORT);
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    settle(&scene).await;
    let before = scene.versions().await;

    // Another holder for as long as it is not cleared: its term lasts an hour.
    lease_is(
        &scene,
        json!({"spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600, "leaseTransitions": 9}}),
    )
    .await;
    until("it stands by", async || daemon.log().contains("waiting for its holder another").then_some(()))
        .await;
    scene.proxy.take_requests();
    edit(&scene, "a-1").await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(written(&scene), [""; 0], "it writes nothing while another holds the Lease");
    assert_eq!(scene.values().await["a-1"], "by hand");
    assert_runs(&mut daemon);

    lease_is(&scene, json!({"spec": {"holderIdentity": ""}})).await;
    scene.until_values(&many(6, "one"), "the edit is repaired in the next term").await;
    scene.until_ready("shop", &commit).await;
    settle(&scene).await;
    let now = scene.versions().await;
    let same = before.iter().filter(|(name, _)| *name != "a-1");
    same.for_each(|(name, version)| assert_eq!(&now[name], version, "{name} was not touched"));
    assert_runs(&mut daemon);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_run_of_one_repository_goes_on_as_well() {
    let Some(scene) = Scene::beside("away-alone").await else { return };
    scene.push(&many(6, "one"));
    let url = scene.git.url("repository.git");
    let arguments = ["--url", &url, "--name", "alone", "--interval", "1"];
    let mut daemon = scene.daemon_with(&[&arguments[..], &SHORT[..]].concat());
    scene.until_values(&many(6, "one"), "the commit is applied").await;
    settle(&scene).await;
    away(&scene);
    edit(&scene, "a-1").await;
    until_within(Duration::from_secs(30), "the term ends", async || {
        daemon.log().contains("lost the Lease").then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_runs(&mut daemon);
    // A commit while the API server is away is applied after its return.
    scene.push(&many(7, "two"));
    let returned = Instant::now();
    scene.proxy.heal();
    scene.until_values(&many(7, "two"), "the new commit is applied").await;
    assert!(returned.elapsed() < under_load(RETURN), "it took {:?}: {}", returned.elapsed(), daemon.log());
    assert_runs(&mut daemon);
}

/// A load balancer answers for an API server that is away. Pauses that grow with every such answer would be longer than 10 s by the
/// end.
#[tokio::test]
async fn watches_come_back_soon_where_a_load_balancer_answers_for_the_api_server() {
    let Some(scene) = Scene::beside("away-behind").await else { return };
    let commit = scene.push(&many(6, "one"));
    let mut daemon = scene.daemon_with(&SHORT);
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    settle(&scene).await;
    let before = scene.versions().await;

    let mut answers = [502, 503, 504].into_iter().cycle();
    scene.proxy.rule(move |_| Fate::Answer(answers.next().unwrap_or(502), None));
    let watches = scene.proxy.cut_watches();
    edit(&scene, "a-1").await;
    tokio::time::sleep(Duration::from_secs(27)).await;
    assert_runs(&mut daemon);
    scene.proxy.take_requests();
    let returned = Instant::now();
    scene.proxy.heal();
    let mut came = Vec::new();
    until("every watch is open again", async || {
        came.extend(scene.proxy.take_requests().into_iter().filter(RecordedRequest::is_watch));
        (came.len() >= watches).then_some(())
    })
    .await;
    let late = |one: &&RecordedRequest| one.at.duration_since(returned) > LONGEST_PAUSE;
    let late: Vec<&str> = came.iter().filter(late).map(|one| one.path.as_str()).collect();
    assert!(late.is_empty(), "not within {LONGEST_PAUSE:?}: {late:?}");
    // A 504 of a load balancer is no word of the API server about its versions.
    assert!(!daemon.log().contains("was restored to an earlier state"), "{}", daemon.log());
    scene.until_values(&many(6, "one"), "drift is repaired").await;
    scene.until_ready("shop", &commit).await;
    assert!(returned.elapsed() < under_load(RETURN), "it took {:?}: {}", returned.elapsed(), daemon.log());
    settle(&scene).await;
    let now = scene.versions().await;
    let same = before.iter().filter(|(name, _)| *name != "a-1");
    same.for_each(|(name, version)| assert_eq!(&now[name], version, "{name} was not touched"));
    assert_runs(&mut daemon);
    scene.delete_sync("shop").await;
}
