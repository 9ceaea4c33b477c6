//! The figures of a real daemon: they say what the status says, and count what was done.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::git_server::Reply;
use moorline_test_support::scene::{Scene, config_map, many};

/// Figures and statuses have times in whole seconds: after this they have another one.
const SECOND: Duration = Duration::from_millis(1100);

/// Metrics of a daemon: each series as it is written, without the name that all of them begin with, and its value.
struct Figures(BTreeMap<String, f64>);

impl Figures {
    fn of(daemon: &Daemon) -> Self {
        let text = daemon.get("/metrics").expect("an answer");
        let sample = |line: &str| {
            let (series, value) = line.strip_prefix("moorline_")?.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        };
        Self(text.lines().filter_map(sample).collect())
    }

    fn get(&self, series: &str) -> Option<f64> {
        self.0.get(series).copied()
    }

    /// The values of one metric of a Sync, by its other label.
    fn by<'a>(&'a self, name: &str, label: &str, sync: &str) -> BTreeMap<&'a str, f64> {
        let one = |(series, value): (&'a String, &f64)| {
            let labels = series.strip_prefix(name)?.strip_prefix('{')?;
            let first = labels.strip_prefix(label)?.strip_prefix("=\"")?;
            let (first, rest) = first.split_once('"')?;
            let is_of_it = rest == format!(",sync=\"{sync}\"}}");
            is_of_it.then_some((first, *value))
        };
        self.0.iter().filter_map(one).collect()
    }

    fn of_sync(&self, name: &str, sync: &str) -> Option<f64> {
        self.get(&format!("{name}{{sync=\"{sync}\"}}"))
    }

    /// The sum of all series of a metric with this among their labels.
    fn sum(&self, name: &str, label: &str) -> f64 {
        let fits = |series: &str| series.strip_prefix(name).is_some_and(|labels| labels.contains(label));
        self.0.iter().filter(|(series, _)| fits(series)).map(|(_, value)| value).sum()
    }
}

/// Compares what is shown of a Sync with its status, and gives the figures.
async fn assert_as_status(scene: &Scene, daemon: &Daemon, sync: &str) -> Figures {
    let status = scene.status(sync, "").await;
    let (figures, name) = (Figures::of(daemon), format!("{}/{sync}", scene.namespace));
    let ready = status["conditions"][0]["status"] == "True";
    assert_eq!(figures.of_sync("ready", &name), Some(f64::from(u8::from(ready))), "{status}");
    let objects: BTreeMap<&str, f64> = status["objects"].as_object().map_or_else(BTreeMap::new, |counts| {
        counts.iter().map(|(state, count)| (state.as_str(), count.as_f64().unwrap_or_default())).collect()
    });
    assert_eq!(figures.by("objects", "state", &name), objects, "{status}");
    let applied: BTreeMap<&str, f64> =
        status["revision"]["applied"].as_str().map(|applied| (applied, 1.0)).into_iter().collect();
    assert_eq!(figures.by("revision_info", "revision", &name), applied, "{status}");
    figures
}

/// Changes a ConfigMap by hand.
async fn edit(scene: &Scene, name: &str) {
    let patch = Patch::Merge(json!({"data": {"key": "by hand"}}));
    let parameters = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    scene.maps().patch(name, &parameters, &patch).await.unwrap();
}

/// Lets the daemon look at the repository now.
async fn look(scene: &Scene, word: &str) {
    scene.nudge("shop", word).await;
    until("it has looked", async || {
        (scene.status("shop", "/lastHandledRequest").await == word).then_some(())
    })
    .await;
}

/// Waits until more than this is the time of the last success.
async fn until_later(daemon: &Daemon, sync: &str, than: f64) {
    until("the last success moves", async || {
        let now = Figures::of(daemon).of_sync("last_success_timestamp_seconds", sync);
        (now > Some(than)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_figures_say_what_the_status_says() {
    let Some(scene) = Scene::new("figures").await else { return };
    let daemon = scene.daemon();
    let first = scene.push(&many(3, "one"));
    scene.sync("shop", json!({})).await;
    let shop = format!("{}/shop", scene.namespace);
    scene.until_ready("shop", &first).await;
    let figures = assert_as_status(&scene, &daemon, "shop").await;
    assert_eq!(figures.get("object_request_seconds_count{verb=\"apply\"}"), Some(3.0));
    assert_eq!(figures.sum("requests_total", "class=\"object\",code=\"201\",verb=\"patch\""), 3.0);
    assert_eq!(figures.of_sync("commit_to_applied_seconds_count", &shop), Some(1.0));
    let success = figures.of_sync("last_success_timestamp_seconds", &shop).unwrap();

    // Nothing happens, and each look at the repository finds that.
    until_later(&daemon, &shop, success).await;

    edit(&scene, "a-0").await;
    scene.until_values(&many(3, "one"), "the edit is repaired").await;
    until("the repair is counted", async || {
        let by = [("kubectl-edit", 1.0)].into();
        (Figures::of(&daemon).by("drift_repaired_total", "manager", &shop) == by).then_some(())
    })
    .await;
    let second = scene.remove(&["a-2.json"]);
    look(&scene, "without a-2").await;
    scene.until_ready("shop", &second).await;
    let figures = assert_as_status(&scene, &daemon, "shop").await;
    assert_eq!(figures.of_sync("pruned_total", &shop), Some(1.0));
    assert_eq!(figures.by("objects", "state", &shop)["pruned"], 1.0);
    assert_eq!(figures.of_sync("commit_to_applied_seconds_count", &shop), Some(2.0));

    holds(&scene, &daemon, &second).await;

    scene.delete_sync("shop").await;
    until("the figures of the Sync are gone", async || {
        (!Figures::of(&daemon).0.keys().any(|series| series.contains(&shop))).then_some(())
    })
    .await;
}

/// An object is held: the commit is not applied, until it has none such any more. `last` is the one before.
async fn holds(scene: &Scene, daemon: &Daemon, last: &str) {
    let shop = format!("{}/shop", scene.namespace);
    let unknown = json!({"apiVersion": "nobody.knows/v1", "kind": "Thing", "metadata": {"name": "it"}});
    scene.push(&[("it.json".to_owned(), unknown.to_string())]);
    look(scene, "with it").await;
    scene.until_reason("shop", "ObjectsHeld").await;
    let figures = assert_as_status(scene, daemon, "shop").await;
    assert_eq!(figures.of_sync("ready", &shop), Some(0.0));
    assert_eq!(figures.by("holds", "reason", &shop), [("UnknownKind", 1.0)].into());
    let applied = figures.by("revision_info", "revision", &shop);
    assert!(applied.keys().all(|revision| revision.ends_with(last)), "{applied:?}");
    assert_eq!(figures.of_sync("commit_to_applied_seconds_count", &shop), Some(2.0));
    let success = figures.of_sync("last_success_timestamp_seconds", &shop).unwrap();
    tokio::time::sleep(SECOND).await;
    look(scene, "once more").await;
    let still = Figures::of(daemon).of_sync("last_success_timestamp_seconds", &shop);
    assert_eq!(still, Some(success), "no look makes it a success");

    let without = scene.remove(&["it.json"]);
    look(scene, "without it").await;
    scene.until_ready("shop", &without).await;
    let figures = assert_as_status(scene, daemon, "shop").await;
    assert_eq!(figures.by("holds", "reason", &shop), BTreeMap::new());
    assert_eq!(figures.of_sync("commit_to_applied_seconds_count", &shop), Some(3.0));

    scene.patch_sync("shop", json!({"spec": {"suspend": true}})).await;
    scene.until_reason("shop", "Suspended").await;
    assert_as_status(scene, daemon, "shop").await;

    let nowhere = json!({"suspend": false, "source": {"git": {"ref": {"branch": "nowhere"}}}});
    scene.patch_sync("shop", json!({"spec": nowhere})).await;
    until("the branch is missed", async || {
        let reason = scene.status("shop", "/conditions/0/reason").await;
        (reason != "Suspended" && reason != "Progressing").then_some(())
    })
    .await;
    let figures = assert_as_status(scene, daemon, "shop").await;
    assert_eq!(figures.of_sync("ready", &shop), Some(0.0));
}

#[tokio::test]
async fn a_commit_is_timed_although_some_of_it_waits() {
    let Some(scene) = Scene::new("timed").await else { return };
    let daemon = scene.daemon();
    let first = scene.push(&many(2, "one"));
    scene.sync("shop", json!({})).await;
    let shop = format!("{}/shop", scene.namespace);
    scene.until_ready("shop", &first).await;
    // One object waits for a time that does not come, and no pass is the last one.
    let pause = json!({"metadata": {"annotations": {"moorline.dev/pause-until": "2099-01-01T00:00:00Z"}}});
    scene.maps().patch("a-0", &PatchParams::default(), &Patch::Merge(pause)).await.unwrap();
    let second = scene.push(&[("a-1.json".to_owned(), config_map("a-1", "two"))]);
    look(&scene, "of a-1").await;
    scene.until_ready("shop", &second).await;
    let figures = assert_as_status(&scene, &daemon, "shop").await;
    assert_eq!(figures.of_sync("commit_to_applied_seconds_count", &shop), Some(2.0));
    let applies = figures.get("object_request_seconds_count{verb=\"apply\"}");
    look(&scene, "once more").await;
    let figures = assert_as_status(&scene, &daemon, "shop").await;
    assert_eq!(figures.of_sync("commit_to_applied_seconds_count", &shop), Some(2.0));
    assert_eq!(figures.get("object_request_seconds_count{verb=\"apply\"}"), applies);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn what_was_edited_while_no_daemon_ran_counts_as_repaired() {
    let Some(scene) = Scene::new("blind").await else { return };
    let mut daemon = scene.daemon();
    let first = scene.push(&many(3, "one"));
    scene.sync("shop", json!({})).await;
    let shop = format!("{}/shop", scene.namespace);
    scene.until_ready("shop", &first).await;
    daemon.terminate();
    let before = scene.status("shop", "/lastAppliedTime").await;
    tokio::time::sleep(SECOND).await;
    edit(&scene, "a-1").await;
    drop(daemon);

    let daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false"]);
    scene.until_values(&many(3, "one"), "the edit is repaired").await;
    until("the repair is reported", async || {
        let now = scene.status("shop", "/lastAppliedTime").await;
        (now.is_string() && now != before).then_some(())
    })
    .await;
    let figures = assert_as_status(&scene, &daemon, "shop").await;
    assert_eq!(figures.by("drift_repaired_total", "manager", &shop), [("unknown", 1.0)].into());
    let timed = figures.of_sync("commit_to_applied_seconds_count", &shop);
    assert_eq!(timed, None, "the commit was applied before");
    let events: Api<Event> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    let note = until("an Event", async || {
        let events = events.list(&ListParams::default()).await.ok()?.items.into_iter();
        events.filter(|event| event.reason.as_deref() == Some("DriftRepaired")).find_map(|event| event.note)
    });
    assert!(note.await.contains("a-1: changed by an unknown manager"));
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_run_without_a_sync_shows_the_same() {
    let Some(scene) = Scene::new("figures-run").await else { return };
    let first = scene.push(&many(2, "one"));
    let url = scene.git.url("repository.git");
    let arguments = ["--url", &url, "--name", "alone", "--leader-election=false", "--interval", "1"];
    let daemon = scene.daemon_with(&arguments);
    let alone = format!("{}/alone", scene.namespace);
    let until_ready = async |commit: &str| {
        until(&format!("{commit} is shown as applied"), async || {
            let figures = Figures::of(&daemon);
            let applied = figures.by("revision_info", "revision", &alone);
            let is_applied = applied.len() == 1 && applied.keys().all(|applied| applied.ends_with(commit));
            let ready = figures.of_sync("ready", &alone) == Some(1.0);
            (is_applied && ready).then_some(figures)
        })
        .await
    };
    until("the daemon answers", async || daemon.address()).await;
    let figures = until_ready(&first).await;
    assert_eq!(figures.by("objects", "state", &alone)["applied"], 2.0);
    let success = figures.of_sync("last_success_timestamp_seconds", &alone).unwrap();
    until_later(&daemon, &alone, success).await;

    let mut elsewhere: Value = serde_json::from_str(&config_map("b", "one")).unwrap();
    elsewhere["metadata"]["namespace"] = "nowhere".into();
    scene.push(&[("b.json".to_owned(), elsewhere.to_string())]);
    until("it is not ready", async || {
        (Figures::of(&daemon).of_sync("ready", &alone) == Some(0.0)).then_some(())
    })
    .await;
    let figures = Figures::of(&daemon);
    let applied = figures.by("revision_info", "revision", &alone);
    assert!(applied.keys().all(|applied| applied.ends_with(&first)), "{applied:?}");
    let last = scene.remove(&["b.json"]);
    let figures = until_ready(&last).await;
    assert_eq!(figures.of_sync("commit_to_applied_seconds_count", &alone), Some(2.0));
}

#[tokio::test]
async fn what_is_asked_of_the_cluster_and_of_repositories_is_counted() {
    let Some(scene) = Scene::new("counted").await else { return };
    let commit = scene.push(&many(3, "one"));
    let daemon = scene.daemon_with(&[]);
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    edit(&scene, "a-1").await;
    scene.until_values(&many(3, "one"), "it is repaired").await;
    tokio::time::sleep(SECOND).await;
    let (asked, figures) = (scene.proxy.take_requests(), Figures::of(&daemon));
    let count = |fits: &dyn Fn(&RecordedRequest) -> bool| asked.iter().filter(|one| fits(one)).count() as f64;
    assert_eq!(figures.sum("requests_total", "class=\"object\""), count(&RecordedRequest::writes_object));
    let statuses = count(&|one| one.method == "PUT" && one.path.ends_with("/status"));
    assert_eq!(figures.sum("requests_total", "class=\"status\",code=\"200\",verb=\"update\""), statuses);
    for class in ["lease", "watch"] {
        assert!(figures.sum("requests_total", &format!("class=\"{class}\"")) > 0.0, "{class}");
    }
    assert_eq!((figures.get("leader"), figures.get("queue_depth")), (Some(1.0), Some(0.0)));
    assert!(figures.get("git_seconds_count{what=\"look\"}") > Some(0.0));
    assert_eq!(figures.sum("git_errors_total", ""), 0.0);

    // A watch whose place is forgotten, and a server of repositories that is broken.
    scene.proxy.first(1, |one| one.is_watch() && one.path.contains("/configmaps"), Fate::Answer(410, None));
    scene.proxy.cut_watches();
    scene.git.rule(|_| Reply::Raw(500, "", Vec::new()));
    scene.nudge("shop", "broken").await;
    until("both are counted", async || {
        let figures = Figures::of(&daemon);
        let restarts = figures.sum("watch_restarts_total", "ConfigMap");
        (restarts > 0.0 && figures.sum("git_errors_total", "what=\"look\"") > 0.0).then_some(())
    })
    .await;
    scene.delete_sync("shop").await;
}
