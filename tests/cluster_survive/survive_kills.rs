//! A daemon that is killed or stopped at any request: the next one converges, nothing foreign is touched, nothing is
//! lost, and what stands is not written again.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::{Fate, FaultProxy, RecordedRequest};
use moorline_test_support::scene::{QUIET_TIME, Scene, many};

/// Objects of others: one bears nothing of ours, one is a copy of an object of ours, one has only our label.
async fn foreign(scene: &Scene) {
    let label = json!({"moorline.dev/sync": format!("{}.shop", scene.namespace)});
    let copied = json!({
        "moorline.dev/id": format!("{0}/shop|/ConfigMap|{0}/a-0", scene.namespace),
        "moorline.dev/spec-hash": format!("v1:{}", "a5".repeat(32)),
    });
    let metadata = [
        json!({"name": "plain"}),
        json!({"name": "labelled", "labels": label}),
        json!({"name": "copied", "labels": label, "annotations": copied}),
    ];
    for metadata in metadata {
        let map = json!({"metadata": metadata, "data": {"foreign": "yes"}});
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        scene.maps().create(&PostParams::default(), &map).await.unwrap();
    }
}

const SIGKILL: i32 = 9;

const FOREIGN: [&str; 3] = ["plain", "labelled", "copied"];

/// Starts a daemon that meets its end at a request, and another one after it, until the Sync is ready. Says whether the
/// first one was killed, which it is not if there are fewer requests.
async fn killed_and_followed(
    scene: &Scene,
    number: usize,
    fits: fn(&RecordedRequest) -> bool,
    fate: Fate,
    commit: &str,
) -> (Daemon, bool) {
    scene.proxy.nth(number, fits, fate);
    let mut daemon = scene.daemon();
    let ready = async || {
        let applied = scene.status("shop", "/revision/applied").await;
        applied.as_str().is_some_and(|applied| applied.ends_with(commit))
    };
    until("it is killed, or done before that", async || {
        (scene.proxy.has_struck() || ready().await).then_some(())
    })
    .await;
    scene.proxy.heal();
    let killed = scene.proxy.is_doomed();
    if killed {
        let end = daemon.running.child.wait().unwrap();
        assert_eq!(end.signal(), Some(SIGKILL), "it was killed and did not end by itself");
        drop(daemon);
        daemon = scene.daemon();
    }
    scene.until_ready("shop", commit).await;
    (daemon, killed)
}

fn any(asked: &RecordedRequest) -> bool {
    !asked.is_watch()
}

/// The request, by number and kind, and what happens to the daemon at it.
type Point = (usize, fn(&RecordedRequest) -> bool, Fate);

#[tokio::test]
async fn a_daemon_killed_at_any_request_is_followed_by_one_that_converges() {
    let Some(scene) = Scene::beside("kills").await else { return };
    foreign(&scene).await;
    let others = |all: BTreeMap<String, (String, String)>| -> BTreeMap<_, _> {
        all.into_iter().filter(|(name, _)| FOREIGN.contains(&name.as_str())).collect()
    };
    let before = others(scene.versions().await);
    assert_eq!(before.len(), FOREIGN.len());
    let base = many(8, "base");
    scene.push(&base);
    scene.sync("shop", json!({})).await;
    let points: [Point; 10] = [
        (0, any, Fate::KillAfter),
        (2, any, Fate::KillBefore),
        (5, any, Fate::KillAfter),
        (9, any, Fate::KillBefore),
        (0, RecordedRequest::writes_object, Fate::KillBefore),
        (0, RecordedRequest::writes_object, Fate::KillAfter),
        (3, RecordedRequest::writes_object, Fate::KillBefore),
        (5, RecordedRequest::writes_object, Fate::KillAfter),
        (7, RecordedRequest::writes_object, Fate::KillAfter),
        (0, |asked| asked.path.ends_with("/status"), Fate::KillAfter),
    ];
    for (round, (number, fits, fate)) in points.into_iter().enumerate() {
        // Every other round prunes, and the one after it creates.
        let count = if round % 2 == 1 { 5 } else { 8 };
        let wanted = many(count, &format!("round {round}"));
        for (path, _) in &base[count..] {
            scene.work.git(&["rm", "-q", "--ignore-unmatch", "--", path]);
        }
        let commit = scene.push(&wanted);
        let kept = scene.versions().await;
        let (daemon, killed) = killed_and_followed(&scene, number, fits, fate, &commit).await;
        assert!(killed, "round {round}: there are so many requests");
        scene.until_values(&wanted, &format!("round {round}")).await;
        let now = scene.versions().await;
        for (name, (uid, _)) in now.iter().filter(|(name, _)| name.starts_with("a-")) {
            let same = kept.get(name).is_none_or(|(before, _)| before == uid);
            assert!(same, "round {round}: {name} was deleted and created");
        }
        assert_eq!(others(now), before, "round {round}: what is foreign");
        drop(daemon);
    }
    let _daemon = scene.daemon();
    scene.assert_calm("after all").await;
    scene.delete_sync("shop").await;
}

/// Everything that a sync and a prune write, one after the other: a daemon that dies after the one is in the same place
/// as one that dies before the next.
#[tokio::test]
async fn a_daemon_is_killed_after_each_write_of_a_sync_and_of_a_prune() {
    let Some(scene) = Scene::beside("each").await else { return };
    foreign(&scene).await;
    let commit = scene.push(&many(3, "first"));
    scene.sync("shop", json!({})).await;
    drop(killed_and_followed(&scene, 0, RecordedRequest::writes, Fate::KillBefore, &commit).await);
    let before = scene.versions().await;
    scene.proxy.take_requests();
    let (mut synced, mut pruned) = (0, 0);
    for number in 0..MAX_WRITES {
        let wanted = many(5, &format!("write {number}"));
        let commit = scene.push(&wanted);
        let (daemon, killed) =
            killed_and_followed(&scene, number, RecordedRequest::writes, Fate::KillAfter, &commit).await;
        scene.until_values(&wanted, &format!("all are there after write {number}")).await;
        synced += usize::from(killed);
        drop(daemon);
        let commit = scene.remove(&["a-3.json", "a-4.json"]);
        let (daemon, killed) =
            killed_and_followed(&scene, number, RecordedRequest::writes, Fate::KillAfter, &commit).await;
        scene.until_values(&wanted[..3], &format!("two are gone after write {number}")).await;
        pruned += usize::from(killed);
        drop(daemon);
        if !killed && synced <= number {
            break;
        }
    }
    // Three updates, two creations and a status; two deletions and a status.
    assert!(synced >= 6 && pruned >= 3, "killed after {synced} writes of a sync, {pruned} of a prune");
    let now = scene.versions().await;
    for name in FOREIGN {
        assert_eq!(now[name], before[name], "{name} is foreign");
    }
    for name in ["a-0", "a-1", "a-2"] {
        assert_eq!(now[name].0, before[name].0, "{name} stays who it is");
    }
    let asked = scene.proxy.take_requests();
    let deleted = asked.iter().filter(|one| one.method == "DELETE");
    let wrong: Vec<&str> = deleted
        .map(|one| one.path.rsplit('/').next().unwrap_or_default())
        .filter(|name| !["a-3", "a-4"].contains(name))
        .collect();
    assert_eq!(wrong, Vec::<&str>::new(), "nothing else is deleted");
    scene.daemon();
    scene.delete_sync("shop").await;
}

/// A sync or a prune of five objects that writes more often is none of ours.
const MAX_WRITES: usize = 14;

/// Numbers that look like chance and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// A tree of many kinds: folders, files of several documents, JSON and YAML.
fn tree(chance: &mut Chance, seed: u64) -> Vec<(String, String)> {
    let pod = json!({"containers": [{"name": "main", "image": "example.com/main:1", "env": [{"name": "A", "value": "b"}]}]});
    let labels = json!({"app": "x"});
    let make = |kind: usize, name: &str| match kind {
        0 => {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b", "n": "1"}})
        }
        1 => {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"a": "b"}})
        }
        2 => json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}),
        3 => json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": labels, "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81, "protocol": "UDP"}]}}),
        4 => json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod}}}),
        5 => json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        6 => json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec":
                {"restartPolicy": "Never", "containers": pod["containers"]}}}}}}),
        _ => {
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}})
        }
    };
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for at in 0..10 + chance.below(15) {
        let folder = ["", "b/", "b/c/"][chance.below(3)];
        let file = format!("{folder}f{}.yaml", chance.below(6));
        let object = make(chance.below(8), &format!("r{seed}-{at}"));
        files.entry(file).or_default().push(object.to_string());
    }
    files
        .into_iter()
        .map(|(path, documents)| (path, format!("---\n{}\n", documents.join("\n---\n"))))
        .collect()
}

/// Everything that a Sync owns, by kind and name, with its version.
async fn owned(scene: &Scene) -> BTreeMap<String, String> {
    let kinds = [
        ("", "v1", "ConfigMap"),
        ("", "v1", "Secret"),
        ("", "v1", "ServiceAccount"),
        ("", "v1", "Service"),
        ("apps", "v1", "Deployment"),
        ("rbac.authorization.k8s.io", "v1", "Role"),
        ("batch", "v1", "CronJob"),
        ("networking.k8s.io", "v1", "NetworkPolicy"),
    ];
    let mut owned = BTreeMap::new();
    for (group, version, kind) in kinds {
        let list = ListParams::default().labels("moorline.dev/sync");
        for object in scene.dynamic(group, version, kind).list(&list).await.unwrap().items {
            let name = format!("{kind} {}", object.metadata.name.unwrap());
            owned.insert(name, object.metadata.resource_version.unwrap());
        }
    }
    owned
}

/// A commit without any manifest: that it is said to be applied proves a pass over all objects, which costs one write of
/// the status and asks nothing about them.
async fn passes_once_more(scene: &Scene, seed: u64, before: &Value) {
    scene.proxy.take_requests();
    let commit = scene.push(&[("README.md".to_owned(), format!("seed {seed}"))]);
    let word = format!("seed {seed}");
    scene.nudge("shop", &word).await;
    let after = scene.until_ready("shop", &commit).await.data["status"].take();
    until("it is said that this was asked for", async || {
        (scene.status("shop", "/lastHandledRequest").await == *word).then_some(())
    })
    .await;
    tokio::time::sleep(QUIET_TIME).await;
    let asked = scene.proxy.take_requests();
    let about = asked.iter().filter(|one| one.is_on_object() || one.path.contains("/shop"));
    let about: Vec<&str> = about.filter_map(|one| one.path.rsplit("/syncs/").next()).collect();
    assert_eq!(about, ["shop/status"], "{word}");
    for field in ["objects", "problems", "renderDigest", "scope", "lastAppliedTime"] {
        assert_eq!(after[field], before[field], "{word}: {field}");
    }
}

#[tokio::test]
async fn a_second_pass_changes_nothing_and_asks_nothing() {
    let Some(scene) = Scene::beside("random").await else { return };
    scene.push(&[("README.md".to_owned(), "nothing yet".to_owned())]);
    // No look at the repository but at the start and when it is asked for: one more would be one more write of the status.
    scene.sync("shop", json!({"interval": "1h", "prune": {"budget": {"count": 1000}}})).await;
    for seed in 1..=4 {
        let mut chance = Chance(seed);
        let files = tree(&mut chance, seed);
        scene.work.git(&["rm", "-q", "-r", "--ignore-unmatch", "--", "."]);
        let commit = scene.push(&files);
        let number = chance.below(20);
        // The first tree is applied undisturbed.
        let fate = [Fate::KillBefore, Fate::KillAfter][chance.below(2)];
        let fate = if seed == 1 { Fate::Pass } else { fate };
        let (_daemon, killed) = killed_and_followed(&scene, number, any, fate, &commit).await;
        assert_eq!(killed, fate != Fate::Pass, "seed {seed}: there are more than {number} requests");
        let wanted: usize = files.iter().map(|(_, text)| text.matches("\"apiVersion\"").count()).sum();
        until("what left Git is gone", async || (owned(&scene).await.len() == wanted).then_some(())).await;
        scene.assert_calm(&format!("seed {seed}, killed at {number} by {fate:?}")).await;

        let (objects, status) = (owned(&scene).await, scene.status("shop", "").await);
        // Another Sync comes and goes, which makes every Sync look at everything once more.
        scene.sync("other", json!({"suspend": true})).await;
        scene.delete_sync("other").await;
        tokio::time::sleep(QUIET_TIME).await;
        let asked = scene.proxy.take_requests();
        let about = asked.iter().filter(|one| one.is_on_object() || one.path.contains("/shop"));
        assert_eq!(about.map(|one| &*one.path).collect::<Vec<_>>(), Vec::<&str>::new(), "seed {seed}");
        assert_eq!(owned(&scene).await, objects, "seed {seed}");
        assert_eq!(scene.status("shop", "").await, status, "seed {seed}");
        passes_once_more(&scene, seed, &status).await;
        assert_eq!(owned(&scene).await, objects, "seed {seed}");
    }
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_leader_that_was_stopped_writes_nothing_after_another_took_over() {
    let Some(scene) = Scene::beside("leader").await else { return };
    let terms = ["--lease-duration", "4s", "--lease-renew-deadline", "2s", "--lease-retry-period", "300ms"];
    let commit = scene.push(&many(6, "one"));
    // It stops in the middle of its first sync, with writes that wait for their turn.
    scene.proxy.nth(2, RecordedRequest::writes_object, Fate::StopBefore);
    let first = scene.daemon_with(&[&terms[..], &["--concurrency", "2"]].concat());
    scene.sync("shop", json!({})).await;
    until("the leader is stopped", async || scene.proxy.has_struck().then_some(())).await;
    let second_proxy = FaultProxy::start(&scene.plane);
    let _second = scene.daemon_at(&second_proxy, "second", &terms);
    scene.until_ready("shop", &commit).await;
    scene.until_values(&many(6, "one"), "the other goes on").await;

    let (versions, held_by) = (scene.versions().await, scene.status("shop", "/heldBy").await);
    let edit = json!({"data": {"key": "by hand"}});
    let awake = Instant::now();
    first.signal("CONT");
    // Something to repair, for anyone who believes that it leads.
    let patch = kube::api::Patch::Merge(&edit);
    scene.maps().patch("a-1", &Default::default(), &patch).await.unwrap();
    scene.until_values(&many(6, "one"), "the edit is repaired").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let late: Vec<String> = scene
        .proxy
        .take_requests()
        .into_iter()
        .filter(|one| one.at > awake && one.writes() && !one.path.contains("/leases"))
        .map(|one| one.path)
        .collect();
    assert_eq!(late, Vec::<String>::new(), "writes of the first after it woke");
    let now = scene.versions().await;
    let moved: Vec<&String> =
        now.iter().filter(|(name, it)| versions[*name] != **it).map(|(name, _)| name).collect();
    assert_eq!(moved, ["a-1"]);
    assert_eq!(scene.status("shop", "/heldBy").await, held_by);
    assert_ne!(held_by, Value::Null);
    scene.delete_sync("shop").await;
}
