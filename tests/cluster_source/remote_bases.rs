//! Remote bases on a real API server: fetched where the daemon's list allows it, followed at the Sync's interval, and never a reason to
//! delete anything.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use moorline_test_support::daemon::until;
use moorline_test_support::git_server::{Reply, Request, Work};
use moorline_test_support::scene::{Scene, config_map};
use moorline_test_support::under_load::under_load;
use serde_json::json;

/// Returns the files of the repository of a base.
fn base(value: &str) -> Vec<(String, String)> {
    vec![
        ("base/kustomization.yaml".to_owned(), "resources: [map.json, ../more]\n".to_owned()),
        ("base/map.json".to_owned(), config_map("map", value)),
        ("more/kustomization.yaml".to_owned(), "resources: [more.json]\n".to_owned()),
        ("more/more.json".to_owned(), config_map("more", "one")),
    ]
}

fn push(work: &Work, files: &[(String, String)]) -> String {
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    work.push(&files)
}

/// The Sync's own files: an overlay of what a URL names.
fn overlay(url: &str) -> Vec<(String, String)> {
    let text = format!("namePrefix: my-\nresources: [own.json, \"{url}\"]\n");
    vec![("prod/kustomization.yaml".to_owned(), text), ("prod/own.json".to_owned(), config_map("own", "one"))]
}

struct Elsewhere {
    work: Work,
    url: String,
    /// The prefix under which it is found.
    prefix: String,
}

impl Elsewhere {
    fn new(scene: &Scene) -> Self {
        let root = scene.root.path().join("elsewhere");
        std::fs::create_dir_all(&root).unwrap();
        let work = Work::new(&root);
        let (url, prefix) = (scene.git.url("elsewhere/repository.git"), scene.git.url("elsewhere"));
        Self { work, url, prefix }
    }

    fn named(&self, reference: &str) -> String {
        format!("{}//base?ref={reference}", self.url)
    }
}

fn is_elsewhere(request: &Request) -> bool {
    request.path.starts_with("/elsewhere/")
}

/// Looks and fetches among the requests to one of the two repositories.
fn asked(requests: &[Request], elsewhere: bool) -> (usize, usize) {
    let is_fetch = |request: &&Request| String::from_utf8_lossy(&request.body).contains("command=fetch");
    let is_look = |request: &&Request| String::from_utf8_lossy(&request.body).contains("command=ls-refs");
    let there = || requests.iter().filter(|request| is_elsewhere(request) == elsewhere);
    (there().filter(is_look).count(), there().filter(is_fetch).count())
}

/// Waits until the Sync's own repository was looked at so often, and gives all requests until then.
async fn after_looks(scene: &Scene, looks: usize) -> Vec<Request> {
    let mut requests = scene.git.requests();
    until("the repository is looked at a few times", async || {
        requests.extend(scene.git.requests());
        (asked(&requests, false).0 >= looks).then_some(())
    })
    .await;
    requests
}

async fn value(scene: &Scene, name: &str) -> Option<String> {
    scene.values().await.remove(name)
}

#[tokio::test]
async fn a_remote_base_is_applied_and_followed() {
    let Some(scene) = Scene::new("bases").await else { return };
    let elsewhere = Elsewhere::new(&scene);
    push(&elsewhere.work, &base("one"));
    let commit = scene.push(&overlay(&elsewhere.named("main")));
    let _daemon = scene.daemon_with(&["--leader-election=false", "--remote-bases", &elsewhere.prefix]);
    scene.sync("shop", json!({"path": "./prod"})).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value(&scene, "my-map").await.as_deref(), Some("one"));
    assert_eq!(value(&scene, "my-more").await.as_deref(), Some("one"));

    // While nothing changes, each repository is asked once in an interval, and the API server never.
    scene.settle().await;
    scene.git.requests();
    scene.assert_calm("with a remote base").await;
    let requests = after_looks(&scene, 2).await;
    let (own, other) = (asked(&requests, false), asked(&requests, true));
    assert!(other.0 > 0 && other.0 <= own.0 + 1, "{own:?} {other:?}");
    assert_eq!((own.1, other.1), (0, 0), "nothing is fetched");

    // A commit of the base that changes nothing that was read is fetched and not rendered.
    let before = scene.versions().await;
    scene.proxy.take_requests();
    push(&elsewhere.work, &[("notes.txt".to_owned(), "words".to_owned())]);
    until("it is fetched", async || (asked(&scene.git.requests(), true).1 > 0).then_some(())).await;
    scene.assert_calm("beside what is read").await;
    assert_eq!(scene.versions().await, before);

    // One that changes something is applied without a commit of our own.
    push(&elsewhere.work, &base("two"));
    until("the base's new commit is applied", async || {
        (value(&scene, "my-map").await.as_deref() == Some("two")).then_some(())
    })
    .await;
    assert_eq!(value(&scene, "my-own").await.as_deref(), Some("one"));

    // One that cannot be built is reported with its place, and mended there.
    let broken =
        push(&elsewhere.work, &[("more/kustomization.yaml".to_owned(), "resorces: []\n".to_owned())]);
    scene.until_reason("shop", "KustomizeInvalid").await;
    let problems = scene.status("shop", "/problems").await.to_string();
    let place = format!("{} at {broken}/more/kustomization.yaml:1:1", elsewhere.url);
    assert!(problems.contains(&place), "{problems}");
    assert_eq!(scene.values().await.len(), 3, "nothing is pruned");
    push(&elsewhere.work, &base("three"));
    scene.until_ready("shop", &commit).await;
    assert_eq!(value(&scene, "my-map").await.as_deref(), Some("three"));

    // When it goes away, what is applied stays and is repaired, and the reason is reported.
    scene
        .git
        .rule(|request| if is_elsewhere(request) { Reply::Raw(404, "", Vec::new()) } else { Reply::Git });
    until("the reason is reported", async || {
        let message = scene.status("shop", "/conditions/0/message").await.to_string();
        message.contains(&format!("the remote base {}", elsewhere.url)).then_some(())
    })
    .await;
    assert_eq!(scene.status("shop", "/conditions/0/status").await, "False");
    scene.edit("my-map", "by hand").await;
    until("it is repaired", async || {
        (value(&scene, "my-map").await.as_deref() == Some("three")).then_some(())
    })
    .await;
    // A commit that does without it is taken up all the same.
    let commit = scene.push(&[("prod/kustomization.yaml".to_owned(), "resources: [own.json]\n".to_owned())]);
    scene.until_ready("shop", &commit).await;
}

/// Returns the time that an edit of the object stays.
async fn stays(scene: &Scene) -> Duration {
    scene.edit("own", "by hand").await;
    let begun = Instant::now();
    until("the edit is repaired", async || {
        (value(scene, "own").await.as_deref() == Some("one")).then_some(())
    })
    .await;
    begun.elapsed()
}

#[tokio::test]
async fn a_base_on_a_silent_host_keeps_no_repair_waiting() {
    let Some(scene) = Scene::new("silent").await else { return };
    let first = scene.push(&[
        ("prod/kustomization.yaml".to_owned(), "resources: [own.json]\n".to_owned()),
        ("prod/own.json".to_owned(), config_map("own", "one")),
    ]);
    // It takes connections, and never says a word.
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let host = format!("http://127.0.0.1:{}", silent.local_addr().unwrap().port());
    let _daemon = scene.daemon_with(&["--leader-election=false", "--remote-bases", &host]);
    scene.sync("shop", json!({"path": "./prod", "interval": "1h", "timeout": "6s"})).await;
    scene.until_ready("shop", &first).await;

    let resources = format!("resources: [own.json, \"{host}/base.git//base?ref=main\"]\n");
    let newest = scene.push(&[("prod/kustomization.yaml".to_owned(), resources)]);
    scene.nudge("shop", "now").await;
    let _connection = silent.accept().unwrap();
    let during_the_first_try = stays(&scene).await;
    scene.until_reason("shop", "RepositoryTimeout").await;
    // Some of these fall into a try, and some between two.
    let mut later = Vec::new();
    for _ in 0..3 {
        later.push(stays(&scene).await);
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    println!("an edit stayed for {during_the_first_try:?}, and later for {later:?}");
    let longest = later.iter().max().unwrap().max(&during_the_first_try);
    assert!(*longest < under_load(Duration::from_secs(3)), "{longest:?}");
    let message = scene.status("shop", "/conditions/0/message").await.to_string();
    assert!(message.contains(&newest[..12]) || message.contains(&newest), "the newest is named: {message}");
    assert_eq!(scene.status("shop", "/conditions/0/status").await, "False");

    // A commit that does without the base is taken up.
    let mended = scene.push(&[("prod/kustomization.yaml".to_owned(), "resources: [own.json]\n".to_owned())]);
    scene.nudge("shop", "mended").await;
    scene.until_ready("shop", &mended).await;
}

#[tokio::test]
async fn syncs_that_name_one_base_ask_for_it_together() {
    let Some(scene) = Scene::new("shared-base").await else { return };
    let elsewhere = Elsewhere::new(&scene);
    push(&elsewhere.work, &base("one"));
    let of = |prefix: &str| format!("namePrefix: {prefix}-\nresources: [\"{}\"]\n", elsewhere.named("main"));
    let files = ["one", "two"].map(|name| (format!("{name}/kustomization.yaml"), of(name)));
    let commit = scene.push(&files);
    let _daemon = scene.daemon_with(&["--leader-election=false", "--remote-bases", &elsewhere.prefix]);
    for name in ["one", "two"] {
        scene.sync(name, json!({"path": format!("./{name}")})).await;
        scene.until_ready(name, &commit).await;
    }
    scene.git.requests();
    let requests = after_looks(&scene, 3).await;
    let (own, other) = (asked(&requests, false), asked(&requests, true));
    assert!(other.0 > 0 && other.0 <= own.0 + 1, "{own:?} {other:?}");
    push(&elsewhere.work, &base("two"));
    until("both have the base's new commit", async || {
        let values = scene.values().await;
        let has = |name: &str| values.get(name).map(String::as_str) == Some("two");
        (has("one-map") && has("two-map")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_the_list_does_not_have_is_refused_and_nothing_is_pruned() {
    let Some(scene) = Scene::new("unlisted").await else { return };
    let elsewhere = Elsewhere::new(&scene);
    push(&elsewhere.work, &base("one"));
    let mut files = overlay("");
    files[0].1 = "namePrefix: my-\nresources: [own.json]\n".to_owned();
    let commit = scene.push(&files);
    // The prefix ends in the middle of a part.
    let near = scene.git.url("else");
    let _daemon = scene.daemon_with(&["--leader-election=false", "--remote-bases", &near]);
    scene.sync("shop", json!({"path": "./prod"})).await;
    scene.until_ready("shop", &commit).await;
    let before = scene.versions().await;
    scene.git.requests();
    files[0].1 = format!("namePrefix: your-\nresources:\n- own.json\n- {}\n", elsewhere.named("main"));
    scene.push(&files);
    scene.until_reason("shop", "RemoteBaseRefused").await;
    let problems = scene.status("shop", "/problems").await.to_string();
    for part in ["prod/kustomization.yaml:4:3", &elsewhere.url, "remoteBases", "commit the files"] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    assert_eq!(scene.versions().await, before);
    let requests = scene.git.requests();
    assert!(!requests.iter().any(is_elsewhere), "nobody is asked who is not on the list");
}

#[tokio::test]
async fn a_commit_is_fetched_and_never_asked_for() {
    let Some(scene) = Scene::new("pinned").await else { return };
    let elsewhere = Elsewhere::new(&scene);
    let pinned = push(&elsewhere.work, &base("one"));
    push(&elsewhere.work, &base("two"));
    let commit = scene.push(&overlay(&elsewhere.named(&pinned)));
    let _daemon = scene.daemon_with(&["--leader-election=false", "--remote-bases", &elsewhere.prefix]);
    scene.sync("shop", json!({"path": "./prod"})).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value(&scene, "my-map").await.as_deref(), Some("one"));
    assert_eq!(asked(&scene.git.requests(), true), (0, 1), "it is fetched, and not looked for");
    let requests = after_looks(&scene, 3).await;
    assert!(!requests.iter().any(is_elsewhere), "a commit stays what it is");
    scene.settle().await;
    scene.assert_calm("at a commit").await;
}
