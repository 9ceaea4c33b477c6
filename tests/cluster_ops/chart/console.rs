//! The console and kubectl agree: twelve people, each verb, two namespaces, on the real API server.
//!
//! In: people with rights of all kinds, who ask the console over HTTP. Out: in each cell the same as for the person with
//! kubectl: as the admission policy answers to a dry run of the same change, and as the API server answers to a `get`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use super::console_browser::ten_cells;
use super::local_console::on_the_machine_of_a_person;
use super::release::Release;
use moorline::api::SyncName;
use moorline::cluster::lease::WritePermit;
use moorline::cluster::{Cluster, Connection};
use moorline::controller::console::{ConsoleWork, serve_console_work};
use moorline::metrics::Metrics;
use moorline::report::board::{DaemonRole, SourceSummary, StatusBoard, SyncCard};
use moorline::serve::login::{SignIn, TokenReviewRequest, serve_token_reviews};
use moorline::serve::rights::ConsoleAccess;
use moorline::serve::viewer::{AccessReviews, Person};
use moorline::serve::{StatusPage, serve_page};
use moorline::settings::{ConsoleSettings, Settings};
use moorline::source::{HostPolicy, Repositories};
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::until;
use moorline_test_support::page_requests::{Answer, ask, post};
use moorline_test_support::rest::{rule, send_request, user};

const RBAC: &str = "rbac.authorization.k8s.io";
const AUDIENCE: &str = "moorline-console";
pub(crate) const HASH: &str = "5f70bf18";
const REVISION: &str = "main@1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c";

/// The actions, their forms, and the same change by kubectl.
const ACTS: [(&str, &str, &str); 5] = [
    ("sync", "", r#"{"metadata": {"annotations": {"moorline.dev/requested-at": "x"}}}"#),
    ("retry", "", r#"{"metadata": {"annotations": {"moorline.dev/requested-at": "x"}}}"#),
    ("suspend", "", r#"{"spec": {"suspend": true}}"#),
    ("approve", "hash=5f70bf18", r#"{"metadata": {"annotations": {"moorline.dev/approve": "x"}}}"#),
    (
        "rollback",
        "revision=main%401f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c1f0c&reason=slow",
        r#"{"metadata": {"annotations": {"moorline.dev/hold-revision": "x"}}}"#,
    ),
];

/// People, with their rights on Syncs in the first namespace, and in the second.
const PEOPLE: [(&str, &[&str], &[&str]); 12] = [
    ("nobody", &[], &[]),
    ("reader", &["get"], &[]),
    ("syncs", &["get", "sync"], &["get"]),
    ("suspends", &["get", "suspend"], &["suspend"]),
    ("approves", &["get", "approve"], &["get", "list", "watch", "approve"]),
    ("rolls", &["get", "rollback"], &["get"]),
    ("blind", &["sync", "suspend", "approve", "rollback"], &["get"]),
    ("other", &[], &["get", "sync", "suspend", "approve", "rollback"]),
    // By the ClusterRoles of Kubernetes in the first namespace.
    ("edit", &[], &[]),
    ("admin", &[], &[]),
    // By a group in all namespaces.
    ("member", &[], &[]),
    // For Syncs of another name.
    ("named", &[], &["get"]),
];

/// Waits until the roles of Kubernetes have the verbs. Their controller fills each one by itself.
async fn until_roles_are_aggregated(release: &Release, path: &str) {
    for (role, (act, .., patch)) in [("edit", ACTS[2]), ("admin", ACTS[4])] {
        until(&format!("the role {role} has the verb {act}"), async || {
            may_with_kubectl(release, role, "PATCH", path, patch).await.then_some(())
        })
        .await;
    }
}

/// A request as a person with kubectl; true if it is granted.
async fn may_with_kubectl(release: &Release, who: &str, method: &str, path: &str, body: &str) -> bool {
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("Content-Type", "application/merge-patch+json");
    let request = request.header("Impersonate-User", who).header("Impersonate-Group", groups(who));
    let request = request.body(body.as_bytes().to_vec()).expect("a literal request");
    match release.admin.request_text(request).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 403 => false,
        Err(error) => panic!("{who} {path}: {error}"),
    }
}

fn groups(who: &str) -> &'static str {
    if who == "member" { "team" } else { "system:authenticated" }
}

pub(crate) fn sync_path(namespace: &str) -> String {
    format!("/apis/moorline.dev/v1alpha1/namespaces/{namespace}/syncs/shop")
}

/// The status of a Sync that waits for an approval, and has a revision to go back to.
fn status() -> Value {
    let entry = json!({"revision": REVISION, "time": "2026-01-02T03:04:05Z", "result": "Applied"});
    json!({"status": {"approval": {"hash": HASH, "objects": 2}, "history": [entry]}})
}

/// Creates the Sync of a namespace, as if it waited for an approval.
async fn create_sync(release: &Release, namespace: &str) {
    let sync = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "shop"},
        "spec": {"source": {"git": {"url": release.url()}}},
    });
    let all = format!("/apis/moorline.dev/v1alpha1/namespaces/{namespace}/syncs");
    release.create(&all, sync).await.expect("a Sync");
    let path = format!("{}/status", sync_path(namespace));
    send_request(&release.admin, "PATCH", &path, status()).await.expect("a status");
}

async fn grant(release: &Release, (kind, namespace): (&str, &str), subject: Value, role: (&str, Value)) {
    let (version, place) = (format!("{RBAC}/v1"), format!("/apis/{RBAC}/v1/namespaces/{namespace}"));
    let (name, rules) = role;
    if !rules.is_null() {
        let role = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "rules": rules});
        release.create(&format!("{place}/roles"), role).await.expect("a Role");
    }
    let binding = json!({
        "apiVersion": version, "kind": "RoleBinding", "subjects": [subject],
        "metadata": {"name": format!("{name}-{}", kind.to_lowercase())},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
    });
    release.create(&format!("{place}/rolebindings"), binding).await.expect("a RoleBinding");
}

/// Gives the people their rights. All of them may patch, so that only the verbs decide.
async fn grant_all(release: &Release, namespaces: [&str; 2]) {
    let on_syncs = |verbs: &[&str]| rule("moorline.dev", &["syncs"], verbs);
    for (who, first, second) in PEOPLE {
        for (namespace, verbs) in namespaces.into_iter().zip([first, second]) {
            let mut rules = vec![on_syncs(&["patch"])];
            rules.extend((!verbs.is_empty()).then(|| on_syncs(verbs)));
            grant(release, ("Role", namespace), user(who), (who, json!(rules))).await;
        }
    }
    for role in ["edit", "admin"] {
        grant(release, ("ClusterRole", namespaces[0]), user(role), (role, Value::Null)).await;
    }
    let group = json!({"kind": "Group", "name": "team", "apiGroup": RBAC});
    let all = json!([on_syncs(&["get", "sync", "rollback"])]);
    for namespace in namespaces {
        grant(release, ("Role", namespace), group.clone(), ("team", all.clone())).await;
    }
    let mut other = on_syncs(&["get", "sync", "suspend", "approve", "rollback"]);
    other["resourceNames"] = json!(["another"]);
    grant(release, ("Role", namespaces[0]), user("named"), ("another", json!([other]))).await;
}

/// A client with the rights that the chart gives to the daemon.
async fn client_of_daemon(release: &Release) -> Client {
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = release.create(&release.path("v1", "serviceaccounts/moorline/token"), request).await;
    let mut config: Value = serde_json::from_str(&release.plane.kubeconfig(ADMIN)).expect("JSON");
    config["users"][0]["user"] = json!({"token": answer.expect("a token")["status"]["token"]});
    let config = Kubeconfig::from_yaml(&config.to_string()).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a configuration");
    config.proxy_url = None;
    Client::try_from(config).expect("a client")
}

/// Knows the people by tokens that are their names; the API server reviews all other tokens.
async fn review(mut requests: mpsc::Receiver<TokenReviewRequest>, cluster: Cluster) {
    let (forward, others) = mpsc::channel(8);
    tokio::spawn(serve_token_reviews(cluster, others));
    while let Some(request) = requests.recv().await {
        let name = request.token.as_str().to_owned();
        if !PEOPLE.iter().any(|(known, ..)| *known == name) {
            forward.send(request).await.expect("a reviewer");
            continue;
        }
        let groups = vec![groups(&name).to_owned()];
        let person = Person { user: name, uid: None, groups, extra: BTreeMap::new() };
        let _ = request.answer.send(Ok(Some(person)));
    }
}

/// Serves the console for people with bearer tokens, and returns its address.
async fn start_console(release: &Release, namespaces: [&str; 2]) -> String {
    let mut board = StatusBoard { role: DaemonRole::Serving, ..StatusBoard::default() };
    for namespace in namespaces {
        board.update_card(SyncCard::of_resource(
            SyncName::new(namespace, "shop"),
            Arc::new(SourceSummary { is_resource: true, ..SourceSummary::default() }),
            serde_json::from_value(status()["status"].take()).expect("a status"),
        ));
    }
    let connection = Connection::from_client(client_of_daemon(release).await, &release.namespace);
    let (metrics, settings) = (Metrics::new().expect("metrics"), Settings::default());
    let cluster = Cluster::new(connection, metrics, WritePermit::unlimited(), &settings);
    let (_, board) = watch::channel(Arc::new(board));
    let (ask, questions) = mpsc::channel(64);
    let (act, actions) = mpsc::channel(8);
    let (ask_name, tokens) = mpsc::channel(8);
    tokio::spawn(review(tokens, cluster.clone()));
    let work = ConsoleWork { cluster, board: board.clone(), identity: Arc::new(|_| None) };
    tokio::spawn(serve_console_work(work, questions, actions));
    let access = ConsoleAccess { reviews: AccessReviews::new(ask), actions: act };
    let (want, _) = mpsc::channel(1);
    let console = BTreeMap::from([("tokenAudience".into(), AUDIENCE.into())]);
    let console = ConsoleSettings::new(console).expect("settings");
    let folder = tempfile::tempdir().expect("a folder");
    let network = Repositories::new(folder.path(), None, HostPolicy::allow_all()).expect("a network");
    let sign_in = SignIn::new(&console, ask_name, &network, &release.namespace).expect("a sign-in");
    let page = StatusPage::new(board, want, watch::channel(false).1, true).with_console(access);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(serve_page(listener, page.with_sign_in(sign_in), std::future::pending()));
    address
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn act(address: &str, who: &str, namespace: &str, (action, form): (&str, &str)) -> Answer {
    let path = format!("/syncs/{namespace}/shop/actions/{action}");
    post(address, &path, &[("Authorization", &bearer(who)), ("Accept", "application/json")], form)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_and_kubectl_agree_about_every_person_verb_and_namespace() {
    let Some(release) = Release::new("console").await else { return };
    release.helm(&["install", "moorline", release.chart()]).expect("it is installed");
    let own = release.namespace.clone();
    let second = release.plane.namespace("console-other").await;
    let namespaces = [&*own, &*second];
    for namespace in namespaces {
        create_sync(&release, namespace).await;
    }
    grant_all(&release, namespaces).await;
    // The chart grants reviews once a sign-in is set.
    let account = json!({"kind": "ServiceAccount", "name": "moorline", "namespace": own});
    let delegates = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": own},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "system:auth-delegator"}, "subjects": [account],
    });
    let bindings = format!("/apis/{RBAC}/v1/clusterrolebindings");
    release.create(&bindings, delegates).await.expect("reviews");
    let dry = |namespace: &str| format!("{}?dryRun=All", sync_path(namespace));
    until("the policy is in force", async || {
        (!may_with_kubectl(&release, "nobody", "PATCH", &dry(&own), ACTS[0].2).await).then_some(())
    })
    .await;
    until_roles_are_aggregated(&release, &dry(&own)).await;
    let address = start_console(&release, namespaces).await;

    // Asked before anything is changed: a change that changes nothing is refused to nobody.
    let mut expected = BTreeMap::new();
    for (who, ..) in PEOPLE {
        for namespace in namespaces {
            let reads = may_with_kubectl(&release, who, "GET", &sync_path(namespace), "").await;
            let mut writes = Vec::new();
            for (.., patch) in ACTS {
                writes.push(may_with_kubectl(&release, who, "PATCH", &dry(namespace), patch).await);
            }
            expected.insert((who, namespace), (reads, writes));
        }
    }
    let (mut granted, mut refused) = (0, 0);
    for (who, ..) in PEOPLE {
        for namespace in namespaces {
            let (reads, writes) = &expected[&(who, namespace)];
            let reads = *reads;
            let html = format!("/syncs/{namespace}/shop");
            let token = bearer(who);
            let with = [("Authorization", &*token)];
            let shown = ask(&address, "GET", &html, &with);
            assert_eq!(shown.status == 200, reads, "{who} reads {namespace}: {}", shown.status);
            let all = ask(&address, "GET", "/api/v1/syncs", &with).body;
            assert_eq!(all.contains(&html), reads, "{who} lists {namespace}: {all}");
            for ((action, form, _), writes) in ACTS.into_iter().zip(writes) {
                let done = act(&address, who, namespace, (action, form));
                // A Sync that is as it should be already was not refused.
                let may = matches!(done.status, 200 | 409);
                assert_eq!(
                    may,
                    reads && *writes,
                    "{who} {action} {namespace}: {} {}",
                    done.status,
                    done.body
                );
                assert!(
                    may || done.status == 403,
                    "{who} {action} {namespace}: {} {}",
                    done.status,
                    done.body
                );
                let button = shown.body.contains(&format!("{html}/actions/{action}\""));
                // Nothing was refused that could be tried again.
                assert_eq!(button, may && action != "retry", "{who} {action} {namespace}");
                *(if may { &mut granted } else { &mut refused }) += 1;
            }
        }
    }
    assert_eq!(granted + refused, 12 * 2 * 5);
    assert!(granted > 20 && refused > 60, "{granted} {refused}");
    // Without a person nothing is shown, and nothing can be done.
    assert_eq!(ask(&address, "GET", "/", &[]).status, 401);
    assert_eq!(post(&address, &format!("/syncs/{own}/shop/actions/sync"), &[], "").status, 401);
    is_recorded(&release, &address).await;
    a_robot_acts_with_its_token(&release, &address).await;
    on_the_machine_of_a_person(&release, &second).await;
    ten_cells(&release, &address, namespaces).await;
    let _ = send_request(&release.admin, "DELETE", &format!("{bindings}/{own}"), Value::Null).await;
    release.end().await;
}

/// An action is in the annotations and in an Event, with the name of the person.
async fn is_recorded(release: &Release, address: &str) {
    let own = &release.namespace;
    let release_from = |revision: &str| format!("revision={}", revision.replace('@', "%40"));
    for (revision, status) in [("main@2", 409), ("", 400), (REVISION, 200), (REVISION, 409)] {
        let done = act(address, "rolls", own, ("release", &release_from(revision)));
        assert_eq!(done.status, status, "{revision}: {}", done.body);
    }
    assert_eq!(act(address, "approves", own, ("approve", "hash=0")).status, 409, "another hash");
    for (who, action) in [("approves", ACTS[3]), ("rolls", ACTS[4]), ("suspends", ("resume", "", ""))] {
        let done = act(address, who, own, (action.0, action.1));
        assert_eq!(done.status, 200, "{}", done.body);
    }
    let sync = release.get(&sync_path(own)).await.expect("the Sync");
    let marks = &sync["metadata"]["annotations"];
    for (key, expect) in [
        ("approve", HASH.to_owned()),
        ("approved-by", format!("{HASH} approves")),
        ("hold-revision", REVISION.to_owned()),
        ("hold-by", "rolls".to_owned()),
        ("hold-reason", "slow".to_owned()),
        ("suspend-by", format!("{} suspends", sync["metadata"]["generation"])),
    ] {
        assert_eq!(marks[format!("moorline.dev/{key}")], expect, "{key}: {marks}");
    }
    assert_eq!(sync["spec"]["suspend"], false);
    let events = release.get(&release.path("events.k8s.io/v1", "events")).await.expect("Events");
    let note = format!("approves approves the pending deletions {HASH}, on the console");
    assert!(events.to_string().contains(&note), "{events}");
}

/// A ServiceAccount with a token for the console approves and rolls back; one for the API server is refused.
async fn a_robot_acts_with_its_token(release: &Release, address: &str) {
    let own = &release.namespace;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    release.create(&release.path("v1", "serviceaccounts"), account).await.expect("a ServiceAccount");
    let subject = json!({"kind": "ServiceAccount", "name": "robot", "namespace": own});
    let verbs = json!([rule("moorline.dev", &["syncs"], &["get", "approve", "rollback"])]);
    grant(release, ("Role", own), subject, ("robot", verbs)).await;
    let token = async |spec: Value| {
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let answer = release.create(&release.path("v1", "serviceaccounts/robot/token"), request).await;
        answer.expect("a token")["status"]["token"].as_str().expect("a token").to_owned()
    };
    let (good, foreign) = (token(json!({"audiences": [AUDIENCE]})).await, token(json!({})).await);
    assert_eq!(act(address, &foreign, own, (ACTS[3].0, ACTS[3].1)).status, 401, "of another audience");
    for (action, form, _) in [ACTS[3], ACTS[4]] {
        let done = act(address, &good, own, (action, form));
        assert_eq!(done.status, 200, "{action}: {}", done.body);
    }
    assert_eq!(act(address, &good, own, ("suspend", "")).status, 403);
    let sync = release.get(&sync_path(own)).await.expect("the Sync");
    let (marks, name) = (&sync["metadata"]["annotations"], format!("system:serviceaccount:{own}:robot"));
    assert_eq!(marks["moorline.dev/approved-by"], format!("{HASH} {name}"));
    assert_eq!(marks["moorline.dev/hold-by"], name);
}
