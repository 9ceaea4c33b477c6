//! Notifiers: every service gets a commit as its documentation has it, a commit gets its status,
//! other commits get none, and neither a killed daemon nor a late list of Notifiers loses anything.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::notification_wire::{OTHERS, WireFacts, assert_wire};
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::Fate;
use moorline_test_support::git_server::{Reply, Request};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A loopback fake of each service: answers all requests that are none of Git, and keeps them.
#[derive(Clone, Default)]
struct Services {
    heard: Arc<Mutex<Vec<Request>>>,
    /// The receiver below /hook does not answer.
    is_silent: Arc<Mutex<bool>>,
}

impl Services {
    fn answer(&self, request: &Request) -> Reply {
        if request.path.contains(".git/") {
            return Reply::Git;
        }
        if request.path.starts_with("/hook") && *self.is_silent.lock().unwrap() {
            return Reply::Silence;
        }
        self.heard.lock().unwrap().push(request.clone());
        Reply::Raw(201, "Content-Type: application/json\r\n", b"{}".to_vec())
    }

    /// The statuses, as path, state and context.
    fn statuses(&self) -> Vec<(String, String, String)> {
        let heard = self.heard.lock().unwrap();
        let statuses = heard.iter().filter(|request| request.path.starts_with("/api/v1/"));
        statuses
            .map(|request| {
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                assert_eq!(request.header("authorization"), Some("token planted-token"));
                let word = |field: &str| body[field].as_str().unwrap().to_owned();
                (request.path.clone(), word("state"), word("context"))
            })
            .collect()
    }

    /// Returns the number of times that each id came to the webhook, with its transition.
    fn ids(&self) -> BTreeMap<String, (String, usize)> {
        let mut ids = BTreeMap::<String, (String, usize)>::new();
        for request in self.heard.lock().unwrap().iter().filter(|it| it.path.starts_with("/hook")) {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            assert!(request.header("x-moorline-signature").is_some_and(|it| it.starts_with("sha256=")));
            let id = request.header("x-moorline-id").unwrap().to_owned();
            let known = ids.entry(id).or_default();
            *known = (body["transition"].as_str().unwrap().to_owned(), known.1 + 1);
        }
        ids
    }
}

async fn create(scene: &Scene, path: &str, object: Value) {
    let uri = format!("{}?fieldManager=tests&force=true", path.replace("NS", &scene.namespace));
    let request = http::Request::patch(uri).header("Content-Type", "application/apply-patch+yaml");
    let request = request.body(object.to_string().into_bytes()).unwrap();
    scene.admin.request::<Value>(request).await.unwrap();
}

/// Creates the kind, a Secret, and two Notifiers.
async fn set_up(scene: &Scene, services: &Services) {
    let of_fake = services.clone();
    scene.git.rule(move |request| of_fake.answer(request));
    let definition = moorline::api::notifier_definition().unwrap();
    create(scene, &format!("{DEFINITIONS}/notifiers.moorline.dev"), definition).await;
    until("Notifiers are served", async || {
        let path = "/apis/moorline.dev/v1alpha1/notifiers";
        send_request(&scene.admin, "GET", path, json!(null)).await.ok()
    })
    .await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "services"},
        "stringData": {"token": "planted-token", "hmac": "planted-key"},
    });
    create(scene, "/api/v1/namespaces/NS/secrets/services", secret).await;
    let base = format!("http://127.0.0.1:{}", scene.git.port);
    let target = |path: &str| json!({"url": format!("{base}{path}"), "secretRef": {"name": "services"}});
    let others = OTHERS.map(|(name, path)| (name, json!({name: target(path), "transitions": ["Applied"]})));
    for (name, spec) in others.into_iter().chain([
        ("status", json!({"gitea": target("/api/v1"), "transitions": ["Applied", "Healthy"]})),
        ("hook", json!({"webhook": target("/hook"), "transitions": ["Applied", "Failed", "Recovered"]})),
        ("broken", json!({"webhook": target("/hook"), "transitions": ["Applied"], "filter": "sync.name =="})),
    ]) {
        let name = name.to_lowercase();
        let notifier = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Notifier", "metadata": {"name": name}, "spec": spec,
        });
        create(scene, &format!("/apis/moorline.dev/v1alpha1/namespaces/NS/notifiers/{name}"), notifier).await;
    }
}

/// Waits until the status of the Sync has this number of records in a state.
async fn until_records(scene: &Scene, state: &str, count: usize) {
    until("the records are in this state", async || {
        let records = scene.status("shop", "/notifications").await;
        let found = records.as_array().into_iter().flatten().filter(|record| record["state"] == state);
        (found.count() == count).then_some(())
    })
    .await;
}

/// Kills the daemon when a service has a notification, and its record cannot be written.
async fn kill_before_the_record(scene: &Scene, services: &Services, daemon: Daemon) {
    let (of_rule, before) = (services.clone(), services.ids().len());
    scene.proxy.rule(move |one| {
        let is_record = one.writes() && one.path.contains("/syncs/shop/status");
        if is_record && of_rule.ids().len() > before { Fate::Drop } else { Fate::Pass }
    });
    scene.push(&[("app/a.json".to_owned(), config_map("a", "4"))]);
    until("it is sent", async || (services.ids().len() == before + 1).then_some(())).await;
    daemon.signal("KILL");
    drop(daemon);
    scene.proxy.heal();
}

/// Waits until the notification without a record was sent once more, with the same id.
async fn until_repeated_once(scene: &Scene, services: &Services) {
    let times = || services.ids().into_values().map(|(_, times)| times).collect::<Vec<_>>();
    until("it is sent again", async || times().contains(&2).then_some(())).await;
    until_records(scene, "Waiting", 0).await;
    scene.settle().await;
    let mut times = times();
    times.sort_unstable();
    assert_eq!(times, [1, 1, 1, 2]);
}

/// A Secret is refused, and repaired. No service hears its value.
async fn fail_with_a_secret(scene: &Scene, services: &Services) {
    let secret = |field: &str| {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
            field: {"password": "planted-in-git"}});
        ("app/login.json".to_owned(), secret.to_string())
    };
    let heard = |wanted: &str| services.ids().values().any(|(transition, _)| transition == wanted);
    scene.push(&[secret("data")]);
    until("the failure is sent", async || heard("Failed").then_some(())).await;
    scene.push(&[secret("stringData")]);
    until("the recovery is sent", async || heard("Recovered").then_some(())).await;
    for request in &*services.heard.lock().unwrap() {
        let body = String::from_utf8_lossy(&request.body);
        assert!(!body.contains("planted") && !request.path.contains("planted"), "{}: {body}", request.path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_gets_its_status_and_a_killed_daemon_loses_nothing() {
    let Some(scene) = Scene::new("notifications").await else { return };
    let services = Services::default();
    set_up(&scene, &services).await;
    // The same repository, in a group.
    std::os::unix::fs::symlink(".", scene.root.path().join("team")).unwrap();
    let map = |value: &str| ("app/a.json".to_owned(), config_map("a", value));
    scene.push(&[map("1")]);
    // The author is a stranger.
    scene.work.git(&["commit", "-q", "--amend", "-m", "Sell \"more\" <@all> [now](https://evil.example)"]);
    scene.work.git(&["push", "-q", "-f", "origin", "HEAD"]);
    let first = scene.work.git(&["rev-parse", "HEAD"]);
    let arguments = ["--leader-election=false", "--cluster-name", "lab"];
    let daemon = scene.daemon_with(&arguments);
    let url = scene.git.url("team/repository.git");
    scene.sync("shop", json!({"path": "app", "source": {"git": {"url": url}}})).await;
    let sync = scene.until_ready("shop", &first).await;
    until("the commit has its status", async || (services.statuses().len() >= 2).then_some(())).await;
    let path = |commit: &str| format!("/api/v1/repos/team/repository/statuses/{commit}");
    let context = format!("moorline/lab/{}/shop", scene.namespace);
    let expect = |commit: &str, state: &str| (path(commit), state.to_owned(), context.clone());
    assert_eq!(services.statuses(), [expect(&first, "pending"), expect(&first, "success")]);
    until_records(&scene, "Sent", 2 + OTHERS.len()).await;
    let facts = WireFacts {
        namespace: &scene.namespace,
        uid: sync.metadata.uid.as_deref().unwrap(),
        commit: &first,
        records: &scene.status("shop", "/notifications").await,
    };
    assert_wire(&services.heard.lock().unwrap(), &facts);

    // A commit elsewhere is not sent.
    let elsewhere = scene.push(&[("other/b.json".to_owned(), config_map("b", "1"))]);
    scene.until_ready("shop", &elsewhere).await;
    scene.settle().await;
    assert_eq!((services.statuses().len(), services.ids().len()), (2, 1));

    // A receiver that hangs delays no sync, and its notification outlives the daemon.
    *services.is_silent.lock().unwrap() = true;
    let second = scene.push(&[map("2")]);
    scene.until_ready("shop", &second).await;
    until("the other receiver hears it", async || (services.statuses().len() == 4).then_some(())).await;
    until_records(&scene, "Waiting", 1).await;
    daemon.signal("KILL");
    drop(daemon);
    *services.is_silent.lock().unwrap() = false;
    let daemon = scene.daemon_with(&arguments);
    until("it is sent", async || (services.ids().len() == 2).then_some(())).await;
    until_records(&scene, "Waiting", 0).await;
    let ids = services.ids();
    assert!(ids.values().all(|(transition, times)| transition == "Applied" && *times == 1), "{ids:?}");
    assert_eq!(services.statuses().len(), 4, "a notification is not repeated");

    // The list of Notifiers does not come: no status waits for it, and nothing is lost.
    drop(daemon);
    scene.proxy.rule(|one| match one.path.ends_with("/notifiers") {
        true => Fate::Answer(500, None),
        false => Fate::Pass,
    });
    let third = scene.push(&[map("3")]);
    let daemon = scene.daemon_with(&arguments);
    scene.until_ready("shop", &third).await;
    assert_eq!((services.statuses().len(), services.ids().len()), (4, 2), "nobody is known yet");
    scene.proxy.heal();
    until("it is sent", async || (services.statuses().len() == 6 && services.ids().len() == 3).then_some(()))
        .await;
    until("the broken Notifier says why", async || {
        let path = format!("/apis/moorline.dev/v1alpha1/namespaces/{}/notifiers/broken", scene.namespace);
        let found = send_request(&scene.admin, "GET", &path, json!(null)).await.ok()?;
        (found["status"]["conditions"][0]["reason"] == "SpecInvalid").then_some(())
    })
    .await;
    until_records(&scene, "Waiting", 0).await;
    kill_before_the_record(&scene, &services, daemon).await;
    let _daemon = scene.daemon_with(&arguments);
    until_repeated_once(&scene, &services).await;
    fail_with_a_secret(&scene, &services).await;
    scene.delete_sync("shop").await;
    send_request(&scene.admin, "DELETE", &format!("{DEFINITIONS}/notifiers.moorline.dev"), json!(null))
        .await
        .unwrap();
}
