//! The status page of a real daemon beside the real control plane: the story of a Sync, as the page tells it.
//!
//! In: commits and hands. Out: what the page, its JSON and its events say of them; and the audit log, which tells that nobody
//! was asked for it but where one object was looked at.

mod kept;
mod next_plan;
mod tree;

use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use moorline_test_support::page_requests::{Events, ask, get};
use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::browser::Browser;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::scene::{Scene, config_map, many};
use moorline_test_support::under_load::under_load;

async fn page_of(daemon: &Daemon) -> String {
    until("the page is there", async || daemon.page()).await
}

/// The JSON of a path, once it is as it should be.
async fn told(address: &str, path: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    until(what, async || {
        let answer = get(address, path);
        let value: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        (answer.status == 200 && is(&value)).then_some(value)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_the_story_of_a_sync_as_it_happens() {
    let Some(scene) = Scene::new("page").await else { return };
    let daemon = scene.daemon_with(&["--leader-election=false", "--page", "127.0.0.1:0"]);
    let address = page_of(&daemon).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "stringData": {"password": "hunter2"}});
    let mut files = many(15, "one");
    files.push(("login.json".into(), secret.to_string()));
    let commit = scene.push(&files);
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let mut browser = Browser::start();
    let api = format!("/api/v1/syncs/{}/shop", scene.namespace);
    let html = format!("/syncs/{}/shop", scene.namespace);

    // The first sync.
    let first = told(&address, &api, "it is synced", |it| it["state"] == "Synced").await;
    assert_eq!(first["counts"]["applied"], 16);
    assert_eq!(first["objects"].as_array().unwrap().len(), 16);
    assert_eq!(first["revision"]["applied"], format!("main@{commit}"));
    assert_eq!(first["repository"]["url"], scene.git.url("repository.git"));
    assert!(get(&address, "/").body.contains("Everything is synced"));
    let objects = &first["objects"];
    assert_eq!((&objects[0]["done"], &objects[0]["file"]), (&json!("created"), &json!("a-0.json:1")));
    picture(&mut browser, &address, &html, "story-1-first-sync");

    // A commit.
    let mut events = Events::of(&address, &format!("/events?of={}/shop", scene.namespace));
    let before = events.next();
    let commit = scene.push(&many(1, "two"));
    scene.nudge("shop", "1").await;
    assert_ne!(events.next(), before, "the commit is told");
    let second = told(&address, &api, "the commit is applied", |it| {
        it["revision"]["applied"] == format!("main@{commit}")
    })
    .await;
    assert_eq!(second["history"].as_array().unwrap().len(), 2);

    // An edit by hand.
    scene.edit("a-3", "by hand").await;
    let repaired =
        told(&address, &api, "the repair is told", |it| it["repairs"][0]["object"].is_string()).await;
    let repair = &repaired["repairs"][0];
    let name = format!("ConfigMap {}/a-3", scene.namespace);
    assert_eq!((&repair["object"], &repair["manager"]), (&json!(name), &json!("kubectl-edit")));
    assert!(repair["fields"].to_string().contains("data.key"), "{repair}");
    let timeline = get(&address, &format!("{html}/timeline")).body;
    assert!(timeline.contains("kubectl-edit") && timeline.contains("data.key"), "{timeline}");
    picture(&mut browser, &address, &html, "story-2-hand-edit");

    held_by_the_budget(&scene, &address, &mut browser).await;
    // A bad commit changes nothing, and is named with its place.
    scene.work.push(&[("bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [\n")]);
    scene.nudge("shop", "3").await;
    let bad = told(&address, &api, "the commit is bad", |it| it["state"] == "Failing").await;
    assert!(bad["problems"].to_string().contains("bad.yaml:"), "{bad}");
    assert_eq!(bad["counts"]["desired"], 4);
    assert!(get(&address, "/").body.contains("1 of 1 Sync needs attention"));
    picture(&mut browser, &address, &html, "story-4-bad-commit");
    picture(&mut browser, &address, "/", "story-5-all");
    if let Some(mut browser) = browser {
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }

    scene.delete_sync("shop").await;
    until("it is forgotten", async || (get(&address, &api).status == 404).then_some(())).await;
}

/// A prune that is held by the budget: what, and the command that lets it go ahead.
async fn held_by_the_budget(scene: &Scene, address: &str, browser: &mut Option<Browser>) {
    let html = format!("/syncs/{}/shop", scene.namespace);
    let api = format!("/api/v1{html}");
    let gone: Vec<String> = (1..13).map(|at| format!("a-{at}.json")).collect();
    scene.remove(&gone.iter().map(String::as_str).collect::<Vec<_>>());
    scene.nudge("shop", "2").await;
    let held = told(address, &api, "the prune waits", |it| it["state"] == "PendingApproval").await;
    assert_eq!(held["approval"]["objects"], 12);
    let command = format!(
        "kubectl annotate sync shop -n {} --overwrite moorline.dev/approve={}",
        scene.namespace,
        held["approval"]["hash"].as_str().unwrap()
    );
    let page = get(address, &html).body;
    assert!(page.contains(&command) && page.contains("12 objects removed from Git"), "{page}");
    let waiting = told(address, &format!("{api}?state=pendingprune"), "they are named", |_| true).await;
    assert_eq!(waiting["objects"].as_array().unwrap().len(), 12);
    let plan = get(address, &format!("{html}/plan")).body;
    assert!(plan.contains(&command) && plan.contains("a-12"), "{plan}");
    picture(browser, address, &format!("{html}/plan"), "story-3-prune-held");
}

fn picture(browser: &mut Option<Browser>, address: &str, path: &str, name: &str) {
    if let Some(browser) = browser {
        browser.go(&format!("http://{address}{path}"));
        browser.picture(name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_look_at_one_object_asks_the_api_server() {
    let Some(scene) = Scene::new("page-looks").await else { return };
    let daemon = scene.daemon_with(&["--leader-election=false", "--page", "127.0.0.1:0"]);
    let address = page_of(&daemon).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "stringData": {"password": "hunter2"}});
    let commit =
        scene.push(&[("a.json".into(), config_map("a", "one")), ("login.json".into(), secret.to_string())]);
    scene.sync("shop", json!({"drift": {"mode": "Report"}})).await;
    scene.until_ready("shop", &commit).await;
    let html = format!("/syncs/{}/shop", scene.namespace);
    until("it is shown", async || get(&address, &html).body.contains("/objects/").then_some(())).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    let objects = format!("{html}/objects/-");
    let mark = AuditMark::set(&scene.plane).await;
    let mut events = Events::of(&address, "/events");
    events.next();
    for path in ["/", "/api/v1/syncs", &html, &format!("/api/v1{html}"), "/?q=a", "/page.js", "/page.css"] {
        assert_eq!(get(&address, path).status, 200, "{path}");
    }
    // An object that is not listed is not read for anybody, whatever the daemon may see.
    let other = format!("{objects}/ConfigMap/{}/kube-root-ca.crt", scene.namespace);
    assert_eq!(get(&address, &other).status, 404);
    let asked = mark.requests().await.by_user(MOORLINE).in_namespace(&scene.namespace).tally();
    assert_eq!(asked.into_iter().collect::<Vec<_>>(), Vec::<(String, usize)>::new());

    let mark = AuditMark::set(&scene.plane).await;
    scene.edit("a", "by hand").await;
    let map = format!("{objects}/ConfigMap/{}/a", scene.namespace);
    let is_drifted = |it: &Value| it["state"] == "OutOfSync";
    let rows = format!("/api/v1{html}?q=ConfigMap");
    told(&address, &rows, "the drift is told", |it| is_drifted(&it["objects"][0])).await;
    // A Sync that only reports compares what was edited: that is over then.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = mark.requests().await.by_user(MOORLINE).in_namespace(&scene.namespace).tally();
    let page = get(&address, &map).body;
    for part in ["<del>-  key: by hand</del>", "<ins>+  key: one</ins>", "kubectl-edit"] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let after = mark.requests().await.by_user(MOORLINE).in_namespace(&scene.namespace).tally();
    let gets =
        |tally: &std::collections::BTreeMap<String, usize>| tally.get("get configmaps").copied().unwrap_or(0);
    assert_eq!(gets(&after) - gets(&before), 1, "{before:?} {after:?}");

    // The diff of the Sync reads what differs, and nothing else.
    let diff = get(&address, &format!("{html}/diff")).body;
    assert!(diff.contains("<del>-  key: by hand</del>") && !diff.contains("Secret"), "{diff}");
    let last = mark.requests().await.by_user(MOORLINE).in_namespace(&scene.namespace).tally();
    assert_eq!((gets(&last) - gets(&after), last.get("get secrets")), (1, after.get("get secrets")));

    let login = format!("{objects}/Secret/{}/login", scene.namespace);
    for path in [login.clone(), format!("/api/v1{login}"), html.clone()] {
        let body = get(&address, &path).body;
        assert!(!body.contains("hunter2") && !body.contains("aHVudGVyMg"), "{path}: {body}");
    }
    assert!(get(&address, &login).body.contains("password: (not shown)"));
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_speaks_http_as_it_should() {
    let Some(scene) = Scene::new("page-http").await else { return };
    let daemon = scene.daemon_with(&["--leader-election=false", "--page", "127.0.0.1:0"]);
    let address = page_of(&daemon).await;
    until("it serves", async || get(&address, "/").body.contains("This page is read-only").then_some(()))
        .await;
    let page = get(&address, "/");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-cache"),
        ("content-type", "text/html; charset=utf-8"),
    ] {
        assert!(page.header(name).is_some_and(|found| found.starts_with(value)), "{name}: {}", page.head);
    }
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                  form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    for path in ["/", "/syncs/a/b", "/api/v1/syncs", "/nothing"] {
        assert_eq!(get(&address, path).header("content-security-policy"), Some(policy), "{path}");
    }
    // A known answer is not sent again.
    let data = get(&address, "/api/v1/syncs");
    let tag = data.header("etag").expect("a version").to_owned();
    let again = ask(&address, "GET", "/api/v1/syncs", &[("If-None-Match", &tag)]);
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    let head = ask(&address, "HEAD", "/api/v1/syncs", &[]);
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(head.header("content-length"), Some(data.body.len().to_string().as_str()));
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let refused = ask(&address, method, "/", &[]);
        assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD")), "{method}");
    }
    assert_eq!(get(&address, "/syncs/a/b").status, 404);
    assert!(get(&address, "/syncs/a/b").body.contains("Not found"));
    for host in ["evil.example", "moorline.moorline.svc:8081"] {
        assert_eq!(ask(&address, "GET", "/", &[("Host", host)]).status, 421, "{host}");
    }
    assert_eq!(ask(&address, "GET", "/", &[("Host", "localhost:1234")]).status, 200);
    // The address for probes and figures has no page, and the page has neither.
    let probes = daemon.address().expect("it listens");
    assert_eq!((get(&probes, "/").status, get(&probes, "/healthz").status), (404, 200));
    assert_eq!((get(&address, "/metrics").status, get(&address, "/healthz").status), (404, 404));
    // Those who listen are bounded, and anyone who comes after them still sees pages and probes.
    let mut listening: Vec<Events> =
        (0..moorline::serve::MAX_LISTENERS).map(|_| Events::of(&address, "/events")).collect();
    assert!(listening.iter_mut().all(|events| events.next() > 0));
    let refused = get(&address, "/events");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("30")));
    assert_eq!((get(&address, "/").status, get(&probes, "/readyz").status), (200, 200));
    // The end of the daemon is not kept waiting by who listens.
    let mut daemon = daemon;
    assert!(daemon.terminate() < under_load(Duration::from_secs(3)));
    tokens_are_reviewed_by_the_api_server(&scene).await;
}

/// Only a token for the audience of the console is accepted, and it is in no log.
async fn tokens_are_reviewed_by_the_api_server(scene: &Scene) {
    let console = ["--leader-election=false", "--page", "127.0.0.1:0", "--log-level", "trace"];
    let console = [&console[..], &["--console", "tokenAudience=moorline-console"]].concat();
    let daemon = scene.daemon_at(&scene.proxy, "console", &console);
    let address = page_of(&daemon).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    until("the account is there", async || accounts.get_opt("default").await.unwrap()).await;
    let token = async |audience: &str| {
        let spec = json!({"spec": {"audiences": [audience], "expirationSeconds": 600}});
        let request = serde_json::from_value(spec).unwrap();
        let answer = accounts.create_token_request("default", &PostParams::default(), &request).await;
        answer.unwrap().status.unwrap().token
    };
    let own = token("moorline-console").await;
    let status = |token: &str| {
        let value = format!("Bearer {token}");
        ask(&address, "GET", "/api/v1/syncs", &[("Authorization", &value)]).status
    };
    until("the token is accepted", async || (status(&own) == 200).then_some(())).await;
    let other = token("https://kubernetes.default.svc").await;
    assert_eq!((status(&other), status("nonsense"), get(&address, "/").status), (401, 401, 401));
    let in_url = get(&address, &format!("/?token={own}"));
    assert_eq!((in_url.status, in_url.body.contains(&own)), (400, false));
    let log = daemon.log();
    assert!(log.contains("tokenreviews") && !log.contains(&own) && !log.contains(&other), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_says_who_leads_and_knows_nothing_else() {
    let Some(scene) = Scene::new("page-standby").await else { return };
    let arguments = ["--page", "127.0.0.1:0"];
    let leader = scene.daemon_at(&scene.proxy, "leader", &arguments);
    let commit = scene.push(&many(2, "one"));
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let of_leader = page_of(&leader).await;
    told(&of_leader, "/api/v1/syncs", "it leads", |it| it["stance"] == "Serves").await;
    let proxy = FaultProxy::start(&scene.plane);
    let standby = scene.daemon_at(&proxy, "standby", &arguments);
    let address = page_of(&standby).await;
    let said = told(&address, "/api/v1/syncs", "it stands by", |it| it["stance"] == "StandsBy").await;
    let holder = said["leader"].as_str().expect("who leads").to_owned();
    assert_eq!(said["syncs"], json!([]));
    let html = get(&address, "/").body;
    assert!(html.contains("This daemon is on standby") && html.contains(&holder), "{html}");
    assert_eq!(get(&address, &format!("/syncs/{}/shop", scene.namespace)).status, 404);
    drop(leader);
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_for_the_page_while_nothing_changes() {
    let Some(scene) = Scene::new("page-idle").await else { return };
    let daemon = scene.daemon_with(&["--leader-election=false", "--page", "127.0.0.1:0"]);
    let address = page_of(&daemon).await;
    let commit = scene.push(&many(3, "one"));
    scene.sync("shop", json!({"interval": "5s"})).await;
    scene.until_ready("shop", &commit).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let version =
        || serde_json::from_str::<Value>(&get(&address, "/api/v1/syncs").body).unwrap()["version"].clone();
    let before = version();
    // The repository is asked meanwhile, and has nothing new.
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(version(), before);
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_followed_without_a_sync_is_shown_as_well() {
    let Some(scene) = Scene::new("page-single").await else { return };
    let commit = scene.push(&many(3, "one"));
    let url = scene.git.url("repository.git");
    let arguments = ["--leader-election=false", "--page", "127.0.0.1:0", "--url", &url, "--name", "solo"];
    let daemon = scene.daemon_with(&arguments);
    let address = page_of(&daemon).await;
    let api = format!("/api/v1/syncs/{}/solo", scene.namespace);
    let seen = told(&address, &api, "it is synced", |it| it["state"] == "Synced").await;
    assert_eq!((&seen["repository"]["url"], &seen["counts"]["desired"]), (&json!(url), &json!(3)));
    assert_eq!(seen["revision"]["applied"], format!("main@{commit}"));
    scene.edit("a-1", "by hand").await;
    let repaired =
        told(&address, &api, "the repair is told", |it| it["repairs"][0]["object"].is_string()).await;
    assert_eq!(repaired["repairs"][0]["manager"], "kubectl-edit");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_objects_are_is_shown_and_why() {
    let Some(scene) = Scene::new("page-health").await else { return };
    let daemon = scene.daemon_with(&["--leader-election=false", "--page", "127.0.0.1:0"]);
    let address = page_of(&daemon).await;
    let deployment = |name: &str, replicas: u32| {
        let labels = json!({"app": name});
        let containers = json!([{"name": "web", "image": "registry.invalid/web:1"}]);
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
        let manifest =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec});
        (format!("{name}.json"), manifest.to_string())
    };
    scene.push(&[deployment("busy", 1), deployment("calm", 0)]);
    scene.sync("shop", json!({"health": {"wait": true}})).await;
    let api = format!("/api/v1/syncs/{}/shop", scene.namespace);
    let is = |it: &Value, name: &str, health: &str| {
        let rows = it["objects"].as_array().into_iter().flatten();
        rows.into_iter().any(|row| row["name"] == name && row["health"] == health)
    };
    // Nobody runs Pods here: one waits, and says for what.
    let seen = told(&address, &api, "both are judged, and why is told", |it| {
        is(it, "calm", "Healthy") && is(it, "busy", "Progressing")
    })
    .await;
    let rows = seen["objects"].as_array().unwrap();
    let why = rows.iter().find(|row| row["name"] == "busy").unwrap()["healthMessage"].as_str();
    let why = why.expect("what it waits for");
    let html = get(&address, &format!("/syncs/{}/shop?state=progressing", scene.namespace)).body;
    assert!(html.contains("1 of 2 objects") && html.contains(why), "{html}");
    scene.delete_sync("shop").await;
}
