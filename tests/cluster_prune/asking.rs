//! Requests of the daemon to the API server: for how much, from where on, how often, and in whose place.

use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, many};
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};

/// The value of a parameter of a request.
fn parameter(asked: &RecordedRequest, name: &str) -> Option<String> {
    asked.query.split('&').find_map(|pair| Some(pair.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

fn accepts(asked: &RecordedRequest) -> String {
    let line = asked.head.lines().find(|line| line.to_ascii_lowercase().starts_with("accept:"));
    line.unwrap_or_default().to_owned()
}

fn on_maps(asked: &RecordedRequest) -> bool {
    asked.path.contains("/configmaps")
}

#[tokio::test]
async fn only_metadata_are_asked_for_but_where_fields_are_compared() {
    let Some(scene) = Scene::new("metadata").await else { return };
    let (_daemon, _) = scene.applied(&many(3, "one"), json!({"deletionPolicy": "Delete"})).await;
    scene.edit("a-1", "by hand").await;
    scene.until_values(&many(3, "one"), "it is repaired").await;
    scene.remove(&["a-2.json"]);
    scene.nudge("shop", "less").await;
    scene.until_values(&many(2, "one"), "it is gone").await;
    scene.delete_sync("shop").await;
    let asked: Vec<RecordedRequest> = scene.proxy.take_requests().into_iter().filter(on_maps).collect();
    let of = |fits: fn(&RecordedRequest) -> bool| asked.iter().filter(|one| fits(one)).count();
    assert!(
        of(|it| it.method == "PATCH") >= 4
            && of(|it| it.method == "DELETE") == 3
            && of(RecordedRequest::is_watch) >= 1
    );
    let whole: Vec<String> = asked
        .iter()
        .filter(|one| !accepts(one).contains("PartialObjectMetadata"))
        .map(|one| format!("{} {} {}", one.method, one.path, accepts(one)))
        .collect();
    assert!(whole.is_empty(), "{whole:?}");
}

#[tokio::test]
async fn a_watch_goes_on_from_its_last_bookmark() {
    let Some(scene) = Scene::new("bookmarks").await else { return };
    let commit = scene.push(&many(2, "one"));
    let terms = ["--leader-election=false", "--watch-timeout-min", "10s", "--watch-timeout-max", "11s"];
    let _daemon = scene.daemon_with(&terms);
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    let ours: u64 =
        scene.versions().await.values().filter_map(|(_, version)| version.parse().ok()).max().unwrap();
    scene.proxy.take_requests();
    // The server goes on, without a word about what is ours.
    let maps = format!("/api/v1/namespaces/{}/configmaps", scene.namespace);
    let other: Value = serde_json::from_str(&config_map("other", "x")).unwrap();
    send_request(&scene.admin, "POST", &maps, &other).await.unwrap();
    let watch = until("the watch is continued", async || {
        scene.proxy.take_requests().into_iter().find(|one| one.is_watch() && on_maps(one))
    })
    .await;
    assert_eq!(parameter(&watch, "allowWatchBookmarks").as_deref(), Some("true"));
    let from = parameter(&watch, "resourceVersion").unwrap();
    assert!(from.parse::<u64>().unwrap() > ours, "from {from}, and not from {ours}");
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn of_secrets_only_those_that_are_named_are_asked_for() {
    let Some(scene) = Scene::new("secrets").await else { return };
    let commit = scene.push(&many(1, "one"));
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    for name in ["login", "other"] {
        let body = json!({"metadata": {"name": name}, "stringData": {"username": "u", "password": "p"}});
        send_request(&scene.admin, "POST", &secrets, body).await.unwrap();
    }
    let _daemon = scene.daemon();
    let url = scene.git.url("repository.git").replace("http://", "https://");
    // Nobody speaks TLS there; what is asked of the cluster is the same.
    let source = json!({"source": {"git": {"url": url, "secretRef": {"name": "login"}}}});
    scene.sync("shop", source).await;
    scene.sync("open", json!({})).await;
    scene.until_ready("open", &commit).await;
    tokio::time::sleep(QUIET_TIME).await;
    // Those that Syncs manage are known by their label, and by their metadata alone.
    let of_label = |it: &RecordedRequest| {
        it.query.contains("labelSelector=moorline.dev%2Fsync")
            && accepts(it).contains("PartialObjectMetadata")
    };
    // The daemon's own keys are asked for by name, too.
    let of_keys = |it: &RecordedRequest| {
        it.is_for_keys() || it.query.contains("fieldSelector=metadata.name%3Dmoorline-key")
    };
    let is_secret = |it: &RecordedRequest| it.path.split('/').any(|part| part == "secrets");
    let reads = |it: &RecordedRequest| is_secret(it) && !of_label(it) && !of_keys(it);
    let asked: Vec<RecordedRequest> = scene.proxy.take_requests().into_iter().filter(reads).collect();
    assert!(!asked.is_empty());
    for one in &asked {
        let named =
            one.path.ends_with("/secrets/login") || one.query.contains("fieldSelector=metadata.name%3Dlogin");
        assert!(one.path.starts_with(&secrets) && named, "{} {}?{}", one.method, one.path, one.query);
    }
    for name in ["shop", "open"] {
        scene.delete_sync(name).await;
    }
}

#[tokio::test]
async fn after_a_restart_news_go_before_what_is_only_made_sure_of() {
    let Some(scene) = Scene::new("order").await else { return };
    let (mut daemon, _) = scene.applied(&many(20, "one"), json!({"interval": "1h"})).await;
    daemon.terminate();
    // Somebody wrote to each object meanwhile, so the next daemon believes none of them.
    for at in 0..20 {
        let by = PatchParams { field_manager: Some("kubectl-annotate".to_owned()), ..PatchParams::default() };
        let note = Patch::Merge(json!({"metadata": {"annotations": {"note": "x"}}}));
        scene.maps().patch(&format!("a-{at}"), &by, &note).await.unwrap();
    }
    scene.proxy.take_requests();
    let _daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false", "--verify-rate", "2"]);
    let mut verified = Vec::new();
    let mut verifies = || {
        let others = |it: &RecordedRequest| {
            it.writes_object() && !["/a-18", "/a-19"].iter().any(|at| it.path.ends_with(at))
        };
        verified.extend(scene.proxy.take_requests().into_iter().filter(others).map(|it| it.at));
        verified.clone()
    };
    until("it makes sure of the first", async || (!verifies().is_empty()).then_some(())).await;
    scene.push(&[("a-18.json".to_owned(), config_map("a-18", "two"))]);
    let begun = Instant::now();
    scene.nudge("shop", "two").await;
    scene.edit("a-19", "by hand").await;
    let last = [
        many(18, "one"),
        vec![("18".into(), config_map("a-18", "two")), ("19".into(), config_map("a-19", "one"))],
    ];
    scene.until_values(&last.concat(), "both are done").await;
    let took = begun.elapsed();
    assert!(took < under_load(Duration::from_secs(3)), "{took:?}");
    let all =
        until("it makes sure of some more", async || Some(verifies()).filter(|all| all.len() > 4)).await;
    let took = (all[all.len() - 1] - all[0]).as_secs_f64();
    assert!(all.len() as f64 <= 3.0 + 2.0 * took, "two a second: {} in {took} s", all.len());
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_suspended_sync_leaves_an_edit_alone_and_repairs_it_later() {
    let Some(scene) = Scene::new("suspended").await else { return };
    let (_daemon, commit) = scene.applied(&many(2, "one"), json!({})).await;
    scene.patch_sync("shop", json!({"spec": {"suspend": true}})).await;
    scene.until_reason("shop", "Suspended").await;
    scene.edit("a-1", "by hand").await;
    scene.assert_calm("while it is suspended").await;
    assert_eq!(scene.values().await["a-1"], "by hand");
    scene.patch_sync("shop", json!({"spec": {"suspend": false}})).await;
    scene.until_values(&many(2, "one"), "it is repaired").await;
    scene.until_ready("shop", &commit).await;
    scene.delete_sync("shop").await;
}

/// Its namespace and name are too long for a label together.
#[tokio::test]
async fn a_sync_with_a_long_name_finds_its_objects_again() {
    let Some(scene) = Scene::new(&"long".repeat(12)).await else { return };
    let name = "n".repeat(50);
    let commit = scene.push(&many(3, "one"));
    let mut daemon = scene.daemon();
    scene.sync(&name, json!({})).await;
    scene.until_ready(&name, &commit).await;
    let labels = scene.maps().get("a-0").await.unwrap().metadata.labels.unwrap();
    assert!(labels["moorline.dev/sync"].starts_with("h-"), "{labels:?}");
    daemon.terminate();
    scene.edit("a-0", "by hand").await;
    scene.remove(&["a-2.json"]);
    let _daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false"]);
    scene.until_values(&many(2, "one"), "one is repaired and one is gone").await;
    scene.delete_sync(&name).await;
}

#[tokio::test]
async fn without_a_word_the_daemon_is_in_the_namespace_of_its_context() {
    let Some(scene) = Scene::new("context").await else { return };
    let folder = scene.root.path().join("context");
    std::fs::create_dir_all(&folder).unwrap();
    let mut kubeconfig: Value = serde_json::from_str(&scene.plane.kubeconfig(MOORLINE)).unwrap();
    kubeconfig["contexts"][0]["context"]["namespace"] = scene.namespace.as_str().into();
    let mut daemon = Daemon::with_kubeconfig(&scene.plane.reaper, &kubeconfig.to_string(), &folder, &[]);
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/moorline", scene.namespace);
    let holder = async || {
        let lease = send_request(&scene.admin, "GET", &lease, Value::Null).await.ok()?;
        lease["spec"]["holderIdentity"].as_str().map(str::to_owned).filter(|holder| !holder.is_empty())
    };
    until("its Lease is there", holder).await;
    daemon.terminate();
    assert_eq!(holder().await, None, "who ends gives the Lease back");
}

#[tokio::test]
async fn no_more_is_written_in_a_second_than_is_set_and_a_server_is_given_its_pause() {
    let Some(scene) = Scene::new("rate").await else { return };
    let commit = scene.push(&many(11, "one"));
    let daemon = scene.daemon_with(&["--leader-election=false", "--qps", "5", "--burst", "1"]);
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    let writes = |scene: &Scene| -> Vec<Instant> {
        scene.proxy.take_requests().iter().filter(|one| one.writes_object()).map(|one| one.at).collect()
    };
    let all = writes(&scene);
    assert_eq!(all.len(), 11);
    assert!(all[10] - all[0] >= Duration::from_millis(1900), "{:?}", all[10] - all[0]);
    drop(daemon);

    let _daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false", "--concurrency", "2"]);
    scene.settle().await;
    scene.proxy.first(1, RecordedRequest::writes_object, Fate::Answer(429, Some(2)));
    let commit = scene.push(&many(11, "two"));
    scene.nudge("shop", "two").await;
    scene.until_ready("shop", &commit).await;
    let all = writes(&scene);
    // Requests that were on their way beside it do not count.
    let pause = all.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(pause >= Duration::from_millis(1900), "{pause:?}");
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_small_sync_does_not_wait_for_all_of_a_large_one() {
    let Some(scene) = Scene::new("fair").await else { return };
    let map = |at: usize| (format!("large/{at}.json"), config_map(&format!("l-{at}"), "one"));
    let small = ("small/a.json".to_owned(), config_map("small", "one"));
    let commit = scene.push(&(0..400).map(map).chain([small]).collect::<Vec<_>>());
    scene.proxy.rule(|asked| match asked.writes_object() {
        true => Fate::Delay(Duration::from_millis(50)),
        false => Fate::Pass,
    });
    let _daemon = scene.daemon_with(&["--leader-election=false", "--concurrency", "2"]);
    scene.sync("large", json!({"path": "large", "interval": "1h"})).await;
    until("the large one has begun", async || (scene.values().await.len() > 10).then_some(())).await;
    scene.sync("small", json!({"path": "small", "interval": "1h"})).await;
    until("the small one is there", async || scene.values().await.contains_key("small").then_some(())).await;
    let others = scene.values().await.len() - 1;
    assert!(others < 300, "{others} of 400 went first");
    scene.proxy.heal();
    scene.until_ready("large", &commit).await;
    scene.until_ready("small", &commit).await;
    for name in ["large", "small"] {
        scene.delete_sync(name).await;
    }
}
