//! Fate of a Sync when etcd forgets, goes back in time, or is seen through an API server that lags: nothing
//! is deleted or written on the strength of what a daemon remembers, and what Git says comes back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::{Daemon, until, until_within};
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map, many};
use moorline_test_support::second_server::SecondServer;

/// The names of what the daemon deleted since the mark, in order.
async fn deleted(mark: &AuditMark) -> Vec<String> {
    let requests = mark.requests().await.by_user(MOORLINE).filter(|request| request.verb == "delete");
    requests.as_slice().iter().map(|request| request.name.clone()).collect()
}

/// The names of the objects that the daemon wrote since this was asked last.
fn written(scene: &Scene) -> Vec<String> {
    let asked = scene.proxy.take_requests();
    let name = |one: &RecordedRequest| one.path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = asked.iter().filter(|one| one.writes_object()).map(name).collect();
    names.sort();
    names
}

/// A ConfigMap of somebody else.
async fn foreign(scene: &Scene, name: &str) {
    let map =
        serde_json::from_value(json!({"metadata": {"name": name}, "data": {"foreign": "yes"}})).unwrap();
    scene.maps().create(&PostParams::default(), &map).await.unwrap();
}

async fn edit(scene: &Scene, name: &str, data: Value) {
    let patch = Patch::Merge(json!({"data": data}));
    scene.maps().patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// The uid and version of these ConfigMaps.
fn of(versions: &BTreeMap<String, (String, String)>, names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| versions[*name].clone()).collect()
}

#[tokio::test]
async fn etcd_is_compacted_while_nothing_is_watched() {
    let Some(scene) = Scene::new("compaction").await else { return };
    // Without a cache of its own, what etcd has forgotten the API server has forgotten too.
    let uncached = SecondServer::start(&scene.plane, &["--watch-cache=false"]).await;
    scene.proxy.read_from(&uncached.url);
    let commit = scene.push(&many(6, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    foreign(&scene, "plain").await;
    scene.assert_calm("before").await;

    let (before, mark) = (scene.versions().await, AuditMark::set(&scene.plane).await);
    scene.proxy.rule(|asked| if asked.is_watch() { Fate::Drop } else { Fate::Pass });
    assert!(scene.proxy.cut_watches() >= 2, "Syncs and ConfigMaps are watched");
    edit(&scene, "a-1", json!({"key": "by hand"})).await;
    scene.maps().delete("a-2", &DeleteParams::default()).await.unwrap();
    // The repository is still asked, so that what leaves Git is pruned by one who sees nothing.
    let commit = scene.remove(&["a-5.json"]);
    until("what left Git is gone", async || {
        scene.maps().get_opt("a-5").await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(scene.proxy.expired(), 0);
    edit(&scene, "plain", json!({"foreign": "still"})).await;
    scene.plane.compact();
    written(&scene);
    scene.proxy.heal();
    scene.until_values(&many(5, "one"), "what happened meanwhile is repaired").await;
    until("the server has said that it forgot", async || (scene.proxy.expired() >= 2).then_some(())).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(written(&scene), ["a-1", "a-2"], "one request for each");
    assert_eq!(deleted(&mark).await, ["a-5"]);
    let now = scene.versions().await;
    let kept = ["a-0", "a-3", "a-4"];
    assert_eq!(of(&now, &kept), of(&before, &kept));
    assert_eq!(now["a-1"].0, before["a-1"].0);
    scene.assert_calm("after").await;
    scene.delete_sync("shop").await;
}

/// Content of a backup, and the changes after it: some objects were changed, some made, and one pruned.
struct Backup {
    copy: PathBuf,
    /// The uid and version of each ConfigMap in the backup.
    then: BTreeMap<String, (String, String)>,
    commit: String,
    wanted: Vec<(String, String)>,
}

async fn backed_up(scene: &Scene) -> Backup {
    let commit = scene.push(&many(6, "one"));
    foreign(scene, "plain").await;
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("before the backup").await;
    let then = scene.versions().await;
    let copy = scene.plane.snapshot().await;
    scene.work.git(&["rm", "-q", "--", "a-5.json"]);
    let more = [("a-0", "two"), ("b-0", "new"), ("b-1", "new")];
    let commit = scene.push(&more.map(|(name, value)| (format!("{name}.json"), config_map(name, value))));
    scene.nudge("shop", "after the backup").await;
    scene.until_ready("shop", &commit).await;
    let mut wanted = many(5, "one");
    wanted[0].1 = config_map("a-0", "two");
    wanted.extend(["b-0", "b-1"].map(|name| (format!("{name}.json"), config_map(name, "new"))));
    scene.until_values(&wanted, "what came after the backup is done").await;
    Backup { copy, then, commit, wanted }
}

/// The cluster is again as Git says, by no more than what that takes.
async fn assert_restored(scene: &Scene, backup: &Backup, mark: &AuditMark) {
    scene.until_values(&backup.wanted, "it is as Git says").await;
    scene.until_ready("shop", &backup.commit).await;
    scene.settle().await;
    scene.assert_calm("after the restored backup").await;
    assert_eq!(deleted(mark).await, ["a-5"], "what was pruned is pruned again, and nothing else");
    let now = scene.versions().await;
    let same = ["plain", "a-1", "a-2", "a-3", "a-4"];
    assert_eq!(of(&now, &same), of(&backup.then, &same), "nothing else is written");
    assert_eq!(now["a-0"].0, backup.then["a-0"].0);
    // The next change finds a daemon whose memory is true.
    edit(scene, "a-3", json!({"key": "by hand"})).await;
    edit(scene, "b-1", json!({"key": "by hand"})).await;
    scene.until_values(&backup.wanted, "edits are repaired").await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn etcd_goes_back_to_a_backup_under_a_running_daemon() {
    let Some(scene) = Scene::new("backup").await else { return };
    let _daemon = scene.daemon();
    let backup = backed_up(&scene).await;
    // The writes of servers and daemon after the restore is less than this.
    let padding = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    send_request(&scene.admin, "POST", &padding, json!({"metadata": {"name": "padding"}})).await.unwrap();
    for at in 0..100 {
        let more = json!({"stringData": {"at": at.to_string()}});
        send_request(&scene.admin, "PATCH", &format!("{padding}/padding"), more).await.unwrap();
    }
    let newest = scene.plane.revision();
    let mark = AuditMark::set(&scene.plane).await;
    scene.plane.restore(&backup.copy).await;
    assert!(scene.plane.revision() < newest, "versions go backwards");
    assert_restored(&scene, &backup, &mark).await;
}

/// Waits for the ConfigMap that the controllers make in every namespace: the backup has to hold it.
async fn until_rooted(scene: &Scene) {
    until("kube-root-ca.crt is there", async || {
        scene.maps().get_opt("kube-root-ca.crt").await.unwrap().map(drop)
    })
    .await;
}

/// The server goes back to a backup, and on beyond all versions that the daemon saw.
async fn go_back_and_beyond(scene: &Scene, copy: &Path, newest: i64) {
    scene.proxy.rule(|_| Fate::Drop);
    scene.proxy.cut_watches();
    scene.plane.restore(copy).await;
    let mut at = 0;
    while scene.plane.revision() <= newest + 5 {
        at += 1;
        edit(scene, "kube-root-ca.crt", json!({"at": at.to_string()})).await;
    }
    // Else the API server still remembers the events that came after the backup.
    scene.plane.restart_api_server(async || {}).await;
    scene.proxy.heal();
}

/// Versions that the daemon remembers are then again those of a past, but of another one.
#[tokio::test]
async fn etcd_goes_back_to_a_backup_and_on_beyond_what_the_daemon_saw() {
    let Some(scene) = Scene::new("beyond").await else { return };
    until_rooted(&scene).await;
    let _daemon = scene.daemon();
    let backup = backed_up(&scene).await;
    let newest = scene.plane.revision();
    let mark = AuditMark::set(&scene.plane).await;
    go_back_and_beyond(&scene, &backup.copy, newest).await;
    assert_restored(&scene, &backup, &mark).await;
}

#[tokio::test]
async fn a_run_without_a_sync_notices_a_backup_as_well() {
    let Some(scene) = Scene::new("beyond-run").await else { return };
    until_rooted(&scene).await;
    let url = scene.git.url("repository.git");
    scene.push(&many(3, "one"));
    let _daemon = scene.daemon_with(&["--url", &url, "--leader-election=false", "--interval", "1"]);
    scene.until_values(&many(3, "one"), "everything is there").await;
    scene.settle().await;
    let copy = scene.plane.snapshot().await;
    let mut wanted = many(3, "one");
    wanted[0].1 = config_map("a-0", "two");
    scene.push(&wanted[..1]);
    scene.until_values(&wanted, "what came after the backup is done").await;
    let newest = scene.plane.revision();
    go_back_and_beyond(&scene, &copy, newest).await;
    scene.until_values(&wanted, "it is as Git says").await;
}

#[tokio::test]
async fn etcd_goes_back_to_a_backup_before_the_daemon_starts() {
    let Some(scene) = Scene::new("restarted").await else { return };
    let daemon: Daemon = scene.daemon();
    let backup = backed_up(&scene).await;
    drop(daemon);
    let mark = AuditMark::set(&scene.plane).await;
    scene.plane.restore(&backup.copy).await;
    let _daemon = scene.daemon();
    assert_restored(&scene, &backup, &mark).await;
}

/// A server whose etcd was held back asks it again after a pause, which grows to two minutes.
const CATCH_UP: Duration = Duration::from_secs(180);

/// Watches and lists are answered by a server that has stood still since a while; what is written is written at once.
#[tokio::test]
async fn an_api_server_lags_behind_another() {
    let Some(scene) = Scene::new("lag").await else { return };
    let commit = scene.push(&many(6, "one"));
    let lagging = SecondServer::start(&scene.plane, &[]).await;
    scene.proxy.read_from(&lagging.url);
    let daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    foreign(&scene, "plain").await;
    scene.assert_calm("before").await;
    let (before, mark) = (scene.versions().await, AuditMark::set(&scene.plane).await);

    // The repository is asked every few seconds: a commit is applied, and nothing that was written is seen.
    lagging.hold(true);
    written(&scene);
    scene.work.git(&["rm", "-q", "--", "a-5.json"]);
    let more = [("a-0", "two"), ("b-0", "new")];
    let commit = scene.push(&more.map(|(name, value)| (format!("{name}.json"), config_map(name, value))));
    let mut wanted = many(5, "one");
    wanted[0].1 = config_map("a-0", "two");
    wanted.push((String::new(), config_map("b-0", "new")));
    scene.until_values(&wanted, "the commit is live").await;
    scene.until_ready("shop", &commit).await;
    let after = scene.versions().await;
    let maps = format!("/api/v1/namespaces/{}/configmaps", scene.namespace);
    let stale = lagging.names(&scene.plane, &maps).await.unwrap();
    assert!(
        stale.contains("a-5") && !stale.contains("b-0"),
        "the second server knows nothing of it: {stale:?}"
    );
    // The watched objects are listed again, from a server that does not know these versions yet.
    scene.proxy.cut_watches();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(written(&scene), ["a-0", "a-5", "b-0"], "each is written once");
    lagging.hold(false);
    until_within(CATCH_UP, "it has caught up", async || {
        let newest = lagging.names(&scene.plane, &maps).await.ok()?;
        (newest.contains("b-0") && !newest.contains("a-5")).then_some(())
    })
    .await;
    scene.until_ready("shop", &commit).await;
    scene.settle().await;
    scene.assert_calm("after it caught up").await;
    assert_eq!(scene.versions().await, after, "nothing is reverted, made anew or written again");

    // A new daemon that begins with the one that lags knows nothing else, and waits.
    drop(daemon);
    lagging.hold(true);
    let _daemon = scene.daemon();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(scene.versions().await, after);
    lagging.hold(false);
    edit(&scene, "a-1", json!({"key": "by hand"})).await;
    scene.until_values(&wanted, "an edit is repaired").await;
    scene.settle().await;
    scene.assert_calm("after the restart").await;
    let mut now = scene.versions().await;
    assert_eq!(now["a-1"].0, before["a-1"].0);
    now.insert("a-1".to_owned(), after["a-1"].clone());
    assert_eq!(now, after);
    assert_eq!(deleted(&mark).await, ["a-5"]);
    scene.delete_sync("shop").await;
}
