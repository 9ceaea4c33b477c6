//! `moorline console` of a person, and a restart beside a daemon that removes what others add.
//!
//! In: a kubeconfig of the person. Out: a page for one browser, writes in the name of the person; a restart that stays.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::console::{HASH, sync_path};
use super::release::Release;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::until;
use moorline_test_support::page_requests::{ask, post};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;

/// `moorline console` of one person.
struct LocalConsole(Child, String);

impl Drop for LocalConsole {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl LocalConsole {
    /// Starts it as a person; the address is the one that it prints.
    fn start(release: &Release, who: &str, namespace: &str) -> Self {
        let mut config: Value = serde_json::from_str(&release.plane.kubeconfig(ADMIN)).expect("JSON");
        config["users"][0]["user"]["as"] = who.into();
        let file = release.values_file(&config.to_string());
        let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
        let command = command.args(["console", "-n", namespace]).env("KUBECONFIG", file);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("messages")).read_line(&mut line).expect("a line");
        let (said, address) = line.trim().split_once(" is at http://").expect("an address");
        assert_eq!(said, format!("the console of {who}"));
        Self(child, address.to_owned())
    }
}

/// `moorline console` writes as the person, and lets nobody else in.
pub(crate) async fn on_the_machine_of_a_person(release: &Release, namespace: &str) {
    let console = LocalConsole::start(release, "approves", namespace);
    let (address, entrance) = console.1.split_once('/').expect("a path");
    let html = format!("/syncs/{namespace}/shop");
    assert_eq!(ask(address, "GET", &html, &[]).status, 401, "a stranger");
    let entered = ask(address, "GET", &format!("/{entrance}"), &[]);
    let cookie = entered.header("set-cookie").and_then(|cookie| cookie.split(';').next());
    let cookie = cookie.expect("a cookie").to_owned();
    assert_eq!(ask(address, "GET", &format!("/{entrance}"), &[]).status, 401, "it opens once");
    let with = [("Cookie", &*cookie)];
    assert_eq!(ask(address, "GET", "/", &[("Host", "evil.example"), with[0]]).status, 421, "a rebound name");
    let page = until("the Sync is shown", async || {
        let page = ask(address, "GET", &html, &with);
        page.body.contains("/actions/approve\"").then_some(page.body)
    })
    .await;
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").expect("a token");
    let token = rest.split('"').next().expect("a token");
    let approve = format!("{html}/actions/approve");
    let form = |token: &str| format!("csrf={token}&hash={HASH}");
    let origin = format!("http://{address}");
    let own = [with[0], ("Origin", &*origin)];
    assert_eq!(post(address, &approve, &own, &form("0")).status, 403, "no token");
    let foreign = [with[0], ("Origin", "http://evil.example")];
    assert_eq!(post(address, &approve, &foreign, &form(token)).status, 403, "another website");
    assert_eq!(post(address, &approve, &with, &form(token)).status, 403, "no page of the console");
    let done = post(address, &approve, &own, &form(token));
    assert_eq!((done.status, done.header("location")), (303, Some(&*html)), "{}", done.body);
    let refused = post(address, &format!("{html}/actions/suspend"), &own, &form(token));
    assert!(refused.status == 403 && refused.body.contains("approves may not suspend"), "{}", refused.body);
    let sync = release.get(&sync_path(namespace)).await.expect("the Sync");
    assert_eq!(sync["metadata"]["annotations"]["moorline.dev/approved-by"], format!("{HASH} approves"));
    let managers = sync["metadata"]["managedFields"].to_string();
    assert!(managers.contains("moorline-cli"), "{managers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_console_is_no_drift() {
    let Some(scene) = Scene::new("restart").await else { return };
    let deployment = |image: &str| {
        let pod = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": image}]}});
        let spec = json!({"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": pod});
        let whole =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec});
        vec![("web.json".to_owned(), whole.to_string())]
    };
    // Even where fields that people add are removed.
    let (_daemon, _) = scene.applied(&deployment("one"), json!({"drift": {"extraFields": "Remove"}})).await;
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", scene.namespace);
    let mark = json!({"kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z"});
    let step = json!([{"op": "add", "path": "/spec/template/metadata/annotations", "value": mark}]);
    let request = http::Request::patch(format!("{path}?fieldManager=moorline-console"))
        .header("Content-Type", "application/json-patch+json")
        .body(step.to_string().into_bytes())
        .expect("a request");
    scene.admin.request_text(request).await.expect("it is restarted");
    scene.settle().await;
    let commit = scene.push(&deployment("two"));
    scene.nudge("shop", "1").await;
    scene.until_ready("shop", &commit).await;
    let live = send_request(&scene.admin, "GET", &path, Value::Null).await.expect("the Deployment");
    let template = &live["spec"]["template"];
    assert_eq!(template["metadata"]["annotations"], mark, "it stays, also with the next commit");
    assert_eq!(template["spec"]["containers"][0]["image"], "two");
    let drifted = scene.status("shop", "/objects/drifted").await;
    assert!(drifted.is_null() || drifted == 0, "{drifted}");
}
