//! Faults of networks and API servers, and the result of a Sync all the same: the content of Git, sent once
//! more where nobody knows, and never again after that.

use std::time::{Duration, Instant};

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::git_server::Reply;
use moorline_test_support::scene::{QUIET_TIME, Scene, many};
use moorline_test_support::under_load::under_load;

/// Syncs some objects, then changes, creates and prunes some, while the first writes meet each fate in turn.
async fn writes_meet(fates: &[Fate]) {
    let Some(scene) = Scene::beside("faults").await else { return };
    let all = many(6, "first");
    let commit = scene.push(&all);
    scene.proxy.first(4, RecordedRequest::writes_object, fates[0]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    scene.until_values(&all, "all are created").await;
    for (at, fate) in fates.iter().enumerate() {
        for count in [4, 6] {
            scene.proxy.first(3, RecordedRequest::writes_object, *fate);
            let wanted = many(count, &format!("{at}-{count}"));
            let gone: Vec<_> = all[count..].iter().map(|(path, _)| path.as_str()).collect();
            if !gone.is_empty() {
                scene.work.git(&[&["rm", "-q", "--"], gone.as_slice()].concat());
            }
            let commit = scene.push(&wanted);
            scene.nudge("shop", &format!("{at}-{count}")).await;
            scene.until_ready("shop", &commit).await;
            scene.until_values(&wanted, &format!("{count} are there after {fate:?}")).await;
        }
    }
    scene.assert_calm("after all").await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn writes_are_refused_for_now() {
    let answers = [409, 429, 500, 503].map(|status| Fate::Answer(status, None));
    writes_meet(&[&answers[..], &[Fate::Answer(429, Some(1))]].concat()).await;
}

#[tokio::test]
async fn writes_and_their_replies_are_lost() {
    writes_meet(&[Fate::LoseReply, Fate::Drop, Fate::Delay(Duration::from_millis(300))]).await;
}

/// Every fault on everything but what is about objects: lists, watches, discovery, statuses.
#[tokio::test]
async fn whatever_is_asked_beside_the_objects_fails_at_first() {
    for fate in [Fate::Answer(500, None), Fate::Answer(429, Some(1)), Fate::LoseReply, Fate::Drop] {
        let Some(scene) = Scene::beside("beside").await else { return };
        let commit = scene.push(&many(3, "one"));
        // One in two, so that what needs several requests gets on in the end.
        let mut at = 0;
        scene.proxy.rule(move |asked| {
            at += 1;
            if at < 24 && at % 2 == 1 && !asked.is_on_object() && !asked.is_watch() {
                fate
            } else {
                Fate::Pass
            }
        });
        let _daemon = scene.daemon();
        scene.sync("shop", json!({})).await;
        scene.until_ready("shop", &commit).await;
        scene.until_values(&many(3, "one"), "all are created").await;
        scene.proxy.heal();
        scene.assert_calm(&format!("after {fate:?}")).await;
        scene.delete_sync("shop").await;
    }
}

#[tokio::test]
async fn watches_that_are_cut_go_on_where_they_were() {
    let Some(scene) = Scene::beside("watches").await else { return };
    let commit = scene.push(&many(3, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("before").await;

    // An edit while nothing is watched is seen when the watches go on.
    scene.proxy.rule(|asked| if asked.is_watch() { Fate::Drop } else { Fate::Pass });
    assert!(scene.proxy.cut_watches() >= 2, "Syncs and ConfigMaps are watched");
    let edit = json!({"data": {"key": "by hand"}});
    scene.maps().patch("a-1", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    scene.maps().delete("a-2", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    scene.proxy.take_requests();
    scene.proxy.heal();
    scene.until_values(&many(3, "one"), "the edit is repaired").await;
    tokio::time::sleep(QUIET_TIME).await;
    let asked = scene.proxy.take_requests();
    let repairs = asked.iter().filter(|one| one.is_on_object()).count();
    assert_eq!(repairs, 2, "one request for each");
    assert!(asked.iter().all(|one| !one.query.contains("sendInitialEvents")), "nothing is told anew");
    assert_eq!(scene.proxy.expired(), 0);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_server_that_cannot_stream_what_is_there_is_asked_for_it_in_pages() {
    for status in [422, 400] {
        let Some(scene) = Scene::beside("unstreamed").await else { return };
        let streams = |asked: &RecordedRequest| asked.query.contains("sendInitialEvents");
        scene.proxy.rule(move |asked| if streams(asked) { Fate::Answer(status, None) } else { Fate::Pass });
        let commit = scene.push(&many(3, "one"));
        let mut daemon = scene.daemon();
        scene.sync("shop", json!({})).await;
        scene.until_ready("shop", &commit).await;
        daemon.terminate();
        let change = async || {
            let edit = json!({"data": {"key": "by hand"}});
            scene.maps().patch("a-1", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
            scene.maps().delete("a-2", &DeleteParams::default()).await.unwrap();
        };
        change().await;
        scene.proxy.take_requests();
        let _daemon = scene.daemon();
        scene.until_values(&many(3, "one"), "what was changed meanwhile is repaired").await;
        change().await;
        scene.until_values(&many(3, "one"), "and what is changed under it").await;
        let asked = scene.proxy.take_requests();
        let of = |fits: &dyn Fn(&RecordedRequest) -> bool| -> Vec<&str> {
            let mut paths: Vec<_> = asked.iter().filter(|one| fits(one)).map(|one| &*one.path).collect();
            paths.retain(|path| !path.ends_with("/secrets"));
            paths.sort_unstable();
            paths
        };
        let kinds = [
            "/api/v1/configmaps",
            "/apis/moorline.dev/v1alpha1/changewindows",
            "/apis/moorline.dev/v1alpha1/namespacechangewindows",
            "/apis/moorline.dev/v1alpha1/notifiers",
            "/apis/moorline.dev/v1alpha1/syncs",
            "/apis/moorline.dev/v1alpha1/syncsets",
        ];
        assert_eq!(of(&streams), kinds, "each is asked to stream once");
        assert_eq!(
            of(&|one| one.begins_list() && !one.checks_server_identity()),
            kinds,
            "each is listed once"
        );
        // The other kinds are not defined here, so there is nothing to watch.
        let defined = [kinds[0], kinds[4]];
        assert_eq!(of(&|one| one.is_watch() && !streams(one)), defined, "and then watched");
        scene.assert_calm(&format!("after {status}")).await;
        scene.delete_sync("shop").await;
    }
}

#[tokio::test]
async fn a_git_server_that_is_down_is_waited_for() {
    let Some(scene) = Scene::beside("git").await else { return };
    let first = scene.push(&many(2, "one"));
    let down = |scene: &Scene| scene.git.rule(|_| Reply::Raw(503, "", b"gone fishing".to_vec()));
    down(&scene);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    until("the Sync says that it has nothing to go by", async || {
        (scene.status("shop", "/conditions/0/status").await == "False").then_some(())
    })
    .await;
    assert!(scene.values().await.is_empty());
    scene.git.rule(|_| Reply::Git);
    scene.until_ready("shop", &first).await;

    // Without it the cluster is held to what is known.
    down(&scene);
    scene.nudge("shop", "down").await;
    until("the Sync says so", async || {
        (scene.status("shop", "/conditions/0/status").await == "False").then_some(())
    })
    .await;
    let edit = json!({"data": {"key": "by hand"}});
    scene.maps().patch("a-1", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    scene.until_values(&many(2, "one"), "the edit is repaired").await;
    assert!(scene.status("shop", "/revision/applied").await.as_str().unwrap().ends_with(&first));
    let second = scene.push(&many(3, "two"));
    scene.git.rule(|_| Reply::Git);
    scene.until_ready("shop", &second).await;
    scene.until_values(&many(3, "two"), "and goes on").await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_sync_that_is_edited_while_it_runs_ends_as_it_says_last() {
    let Some(scene) = Scene::beside("edited").await else { return };
    let old: Vec<_> = many(8, "old").into_iter().map(|(path, text)| (format!("old/{path}"), text)).collect();
    let new: Vec<_> = many(5, "new").into_iter().map(|(path, text)| (format!("new/{path}"), text)).collect();
    let commit = scene.push(&[old, new.clone()].concat());
    scene.proxy.rule(|asked| match asked.writes_object() {
        true => Fate::Delay(Duration::from_millis(400)),
        false => Fate::Pass,
    });
    let _daemon = scene.daemon_with(&["--leader-election=false", "--concurrency", "2"]);
    scene.sync("shop", json!({"path": "old"})).await;
    until("it has begun", async || (scene.values().await.len() >= 2).then_some(())).await;
    scene.patch_sync("shop", json!({"spec": {"path": "new"}})).await;
    scene.until_ready("shop", &commit).await;
    scene.until_values(&new, "it is as it was edited").await;
    assert_eq!(scene.status("shop", "/objects/desired").await, 5);
    scene.proxy.heal();
    scene.assert_calm("after").await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn what_cannot_be_verified_after_a_start_is_tried_with_pauses() {
    let Some(scene) = Scene::beside("verify").await else { return };
    let commit = scene.push(&many(3, "one"));
    let daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    drop(daemon);
    // An object that another manager has edited is not believed.
    let edit = json!({"data": {"key": "by hand"}});
    scene.maps().patch("a-1", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    scene.proxy.rule(|asked| match asked.path.ends_with("/a-1") {
        true => Fate::Answer(500, None),
        false => Fate::Pass,
    });
    let _daemon = scene.daemon();
    scene.until_reason("shop", "ApplyFailed").await;
    scene.proxy.take_requests();
    let begun = Instant::now();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = scene.proxy.take_requests();
    let (tried, seconds) =
        (asked.iter().filter(|one| one.path.ends_with("/a-1")).count(), begun.elapsed().as_secs());
    assert!(tried >= 1, "it is tried again");
    assert!(tried as u64 <= 5 * seconds, "{tried} requests in {seconds} s, with pauses up to 1 s");
    scene.proxy.heal();
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("after").await;
    scene.delete_sync("shop").await;
}

/// The paths of the objects that were applied.
fn applied(asked: Vec<RecordedRequest>) -> Vec<String> {
    let mut paths: Vec<String> =
        asked.into_iter().filter(RecordedRequest::writes_object).map(|one| one.path).collect();
    paths.sort();
    paths
}

async fn assert_each_is_asked_about_once(scene: &Scene) {
    // A watch that was only cut finds the same server.
    scene.proxy.cut_watches();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(applied(scene.proxy.take_requests()), Vec::<String>::new());
    scene.proxy.rule(|asked| match &*asked.path {
        "/version" => Fate::Say(r#"{"major": "9", "minor": "9", "gitVersion": "v9.9.9"}"#),
        _ => Fate::Pass,
    });
    scene.proxy.cut_watches();
    let mut asked = Vec::new();
    until("each is applied", async || {
        asked.extend(applied(scene.proxy.take_requests()));
        (asked.len() >= 3).then_some(())
    })
    .await;
    scene.assert_calm("after").await;
    let path = |name: &str| format!("/api/v1/namespaces/{}/configmaps/{name}", scene.namespace);
    asked.sort();
    assert_eq!(asked, [path("a-0"), path("a-1"), path("a-2")]);
}

/// Another release may make something else of what is applied: each object is applied once more, and that is all.
#[tokio::test]
async fn a_server_that_is_upgraded_is_asked_about_each_object_once() {
    let Some(scene) = Scene::beside("upgraded").await else { return };
    let commit = scene.push(&many(3, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("before").await;
    let before = scene.versions().await;
    assert_each_is_asked_about_once(&scene).await;
    assert_eq!(scene.versions().await, before);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_run_without_a_sync_notices_an_upgrade_as_well() {
    let Some(scene) = Scene::beside("upgraded-run").await else { return };
    scene.push(&many(3, "one"));
    let url = scene.git.url("repository.git");
    let _daemon = scene.daemon_with(&["--url", &url, "--leader-election=false"]);
    scene.until_values(&many(3, "one"), "everything is there").await;
    scene.settle().await;
    let before = scene.versions().await;
    assert_each_is_asked_about_once(&scene).await;
    assert_eq!(scene.versions().await, before);
}

/// The object that a reconcile waits for before it writes is given up for a newer commit.
#[tokio::test]
async fn a_newer_commit_does_not_wait_for_what_an_older_one_waits_for() {
    let Some(scene) = Scene::beside("newer").await else { return };
    let secret = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "slow"}}"#;
    let commit = scene.push(&many(2, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let digest = scene.status("shop", "/renderDigest").await;
    assert!(digest.as_str().is_some_and(|text| text.starts_with("v1:")), "{digest}");
    let late = Duration::from_secs(40);
    let is_late = |asked: &RecordedRequest| asked.path.ends_with("/secrets");
    scene.proxy.rule(move |asked| if is_late(asked) { Fate::Delay(late) } else { Fate::Pass });
    scene.proxy.take_requests();
    scene.push(&[("slow.json".to_owned(), secret.to_owned())]);
    scene.nudge("shop", "slow").await;
    until("it waits to see Secrets", async || scene.proxy.take_requests().iter().any(is_late).then_some(()))
        .await;
    let begun = std::time::Instant::now();
    std::fs::remove_file(scene.work.folder.join("slow.json")).unwrap();
    let commit = scene.push(&many(2, "two"));
    scene.nudge("shop", "newer").await;
    scene.until_values(&many(2, "two"), "the newer commit is there").await;
    assert!(begun.elapsed() < late / 2, "{:?}", begun.elapsed());
    scene.proxy.heal();
    scene.until_ready("shop", &commit).await;
    assert_ne!(scene.status("shop", "/renderDigest").await, digest);
    scene.delete_sync("shop").await;
}

/// A daemon that is asked to end waits for nobody who does not answer.
#[tokio::test]
async fn a_daemon_ends_in_time_while_its_writes_are_not_answered() {
    let Some(scene) = Scene::beside("ends").await else { return };
    scene.proxy.rule(|asked| if asked.writes() { Fate::Delay(Duration::from_secs(60)) } else { Fate::Pass });
    scene.push(&many(40, "one"));
    let url = scene.git.url("repository.git");
    let mut daemon = scene.daemon_with(&["--url", &url, "--leader-election=false"]);
    let is_write = |asked: &RecordedRequest| asked.writes_object();
    until("it writes", async || scene.proxy.take_requests().iter().any(is_write).then_some(())).await;
    let took = daemon.terminate();
    assert!(took < under_load(Duration::from_secs(10)), "{took:?}");
}
