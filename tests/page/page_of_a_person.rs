//! Pages for a person who signed in: nothing that the person may not `get`, and a form for each action that the person may
//! take. Rights are a table here; tests/cluster_ops/chart/console.rs asks a real API server.

mod clicks;
mod looks;
mod viewers;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tower::ServiceExt as _;

use crate::board::{board_with_every_state, deployment, set};
use crate::page_views::is_sound;
use moorline::cluster::lease::WritePermit;
use moorline::cluster::{Cluster, Connection};
use moorline::controller::console::{ConsoleWork, serve_console_work};
use moorline::metrics::Metrics;
use moorline::object::ObjectId;
use moorline::report::board::{LiveObject, StatusBoard};
use moorline::sandbox::{Options, Sandbox};
use moorline::serve::login::{Session, csrf_token};
use moorline::serve::rights::ConsoleAccess;
use moorline::serve::viewer::{AccessRequest, AccessReviews, Person, Viewer};
use moorline::serve::{LiveRequest, StatusPage};
use moorline::settings::Settings;

/// A console with one person.
struct Console {
    page: StatusPage,
    session: Session,
    /// Refused rights, as `verb resource`.
    refused: Arc<Mutex<BTreeSet<String>>>,
    /// All questions.
    asked: Arc<Mutex<Vec<String>>>,
    /// The objects that were read.
    read: Arc<Mutex<Vec<String>>>,
    sandbox: Sandbox,
    cluster: Cluster,
    board: watch::Sender<Arc<StatusBoard>>,
    _end: watch::Sender<bool>,
}

impl Console {
    fn start() -> Self {
        let gone =
            |_: &ObjectId, _: Value| LiveObject { live: None, differences: Vec::new(), writers: Vec::new() };
        Self::of(board_with_every_state(), gone)
    }

    /// Serves a board; `live` makes the live form of an object from its desired one.
    fn of(board: StatusBoard, live: fn(&ObjectId, Value) -> LiveObject) -> Self {
        let refused: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let (asked, read): (Arc<Mutex<Vec<String>>>, _) = Default::default();
        let (ask, mut questions) = mpsc::channel::<AccessRequest>(8);
        let (no, all) = (refused.clone(), asked.clone());
        tokio::spawn(async move {
            while let Some(AccessRequest { question, answer, .. }) = questions.recv().await {
                let word = format!("{} {}", question.verb, question.resource);
                let _ = answer.send(Ok(!no.lock().unwrap().contains(&word)));
                all.lock().unwrap().push(word);
            }
        });
        let (want, mut wanted) = mpsc::channel(8);
        let seen: Arc<Mutex<Vec<String>>> = read;
        let told = seen.clone();
        let (board, newest) = watch::channel(Arc::new(board));
        let known = newest.clone();
        tokio::spawn(async move {
            while let Some(request) = wanted.recv().await {
                match request {
                    LiveRequest::Object(request) => {
                        told.lock().unwrap().push(request.id.to_string());
                        let card = known.borrow().cards.get(&request.sync).cloned();
                        let desired =
                            card.and_then(|card| Some(json!(card.objects.wanted(&request.id)?.body())));
                        let _ = request.answer.send(Ok(live(&request.id, desired.unwrap_or_default())));
                    }
                    other => clicks::answer(other).await,
                }
            }
        });
        let sandbox = Sandbox::new(&Options { record_requests: true, ..Options::default() });
        let connection = Connection::from_client(sandbox.client(), "ops");
        let (metrics, settings) = (Metrics::new().unwrap(), Settings::default());
        let cluster = Cluster::new(connection, metrics, WritePermit::unlimited(), &settings);
        let objects = set(&[deployment("web")]);
        let own = cluster.clone();
        let identity = Arc::new(move |_: &_| Some((objects.clone(), own.clone())));
        let work = ConsoleWork { cluster: cluster.clone(), board: newest.clone(), identity };
        let (act, actions) = mpsc::channel(8);
        let (nobody, reviews) = mpsc::channel(1);
        tokio::spawn(async move {
            serve_console_work(work, reviews, actions).await;
            drop(nobody);
        });
        let access = ConsoleAccess { reviews: AccessReviews::new(ask), actions: act };
        let (end, ending) = watch::channel(false);
        let page = StatusPage::new(newest, want, ending, false).with_console(access);
        Self {
            page,
            session: Session::local("secret"),
            refused,
            asked,
            read: seen,
            sandbox,
            cluster,
            board,
            _end: end,
        }
    }

    async fn send(&self, method: &str, path: &str, form: String) -> (u16, String) {
        let person = Person { user: "ada".into(), uid: None, groups: Vec::new(), extra: Default::default() };
        let mut request = Request::builder().method(method).uri(path).body(Body::from(form)).unwrap();
        request.extensions_mut().insert(Viewer::Person(Arc::new(person)));
        request.extensions_mut().insert(self.session.clone());
        let answer = self.page.clone().router().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Creates the Sync of the board, with this status, and a Deployment of it.
    async fn create(&self, status: &Value) {
        self.sandbox.define(&moorline::api::definition().unwrap()).unwrap();
        self.cluster.discovery().ensure().await.unwrap();
        for (path, body) in [
            ("/api/v1/namespaces", json!({"metadata": {"name": "ops"}})),
            ("/api/v1/namespaces", json!({"metadata": {"name": "shop"}})),
            (
                "/apis/moorline.dev/v1alpha1/namespaces/ops/syncs",
                json!({"apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "shop"},
                    "spec": {"source": {"git": {"url": "https://github.com/example/fleet"}}}}),
            ),
            ("/apis/apps/v1/namespaces/shop/deployments", deployment("web")),
        ] {
            self.request("POST", path, &body).await;
        }
        self.sandbox.merge(&format!("{SYNC_OBJECT}/status"), &json!({"status": status}), "moorline").unwrap();
    }

    async fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let request =
            http::Request::builder().method(method).uri(path).header("Content-Type", "application/json");
        let request = request.body(if body.is_null() { Vec::new() } else { body.to_string().into_bytes() });
        let text = self.sandbox.client().request_text(request.unwrap()).await.unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// The Sync at the API server.
const SYNC_OBJECT: &str = "/apis/moorline.dev/v1alpha1/namespaces/ops/syncs/shop";
const SYNC: &str = "/syncs/ops/shop";
const WEB: &str = "/objects/apps/Deployment/shop/web";

#[tokio::test]
async fn a_person_sees_and_is_offered_what_kubernetes_grants() {
    let console = Console::start();
    let form = |action: &str| format!("action=\"{SYNC}/actions/{action}\"");
    // The refused right, the page, its status, a text that is there, and one that is not.
    for (refused, path, status, there, absent) in [
        ("", "/diff", 200, "The object does not exist in the cluster", "you may not"),
        (
            "get Deployment",
            "/diff",
            200,
            "It was not read: you may not get a Deployment there",
            "kubectl-edit",
        ),
        ("", "/plan", 200, "changed by kubectl-edit", "you may not"),
        ("get Deployment", "/plan", 200, "Deployment.apps shop/web", "changed by kubectl-edit"),
        ("", "/timeline", 200, "data.key", "you may not"),
        ("get ConfigMap", "/timeline", 200, "ConfigMap shop/settings", "data.key"),
        ("get ConfigMap", "/settings", 200, "github.com/example/fleet", "you may not"),
        ("", WEB, 200, "registry.example/web:1", "you may not"),
        (
            "get Deployment",
            WEB,
            200,
            "It is not shown: you may not get a Deployment there.",
            "registry.example",
        ),
        ("get syncs", "", 404, "or you may not see it", "shop/web"),
        ("", "/none", 404, "or you may not see it", "read-only"),
        ("", "", 200, &form("sync"), "read-only"),
        ("sync syncs", "", 200, &form("suspend"), &form("sync")),
        ("suspend syncs", "/plan", 200, &form("sync"), &form("suspend")),
        ("", "", 200, &form("approve"), "actions/release"),
        ("", "/plan", 200, &form("approve"), "actions/release"),
        ("approve syncs", "/plan", 200, "kubectl annotate sync shop", &form("approve")),
        ("", WEB, 200, &form("restart"), "actions/sync"),
        ("patch Deployment", WEB, 200, "registry.example/web:1", &form("restart")),
    ] {
        *console.refused.lock().unwrap() = BTreeSet::from([refused.to_owned()]);
        if refused == "get syncs" {
            console.refused.lock().unwrap().insert("list syncs".to_owned());
        }
        console.read.lock().unwrap().clear();
        let (found, body) = console.send("GET", &format!("{SYNC}{path}"), String::new()).await;
        is_sound(&body);
        assert_eq!(found, status, "without {refused}: {path}");
        assert!(body.contains(there) && !body.contains(absent), "without {refused}: {path}\n{body}");
        assert!(body.contains("You are <b>ada</b>") && !body.contains("/logout"), "{path}\n{body}");
        let is_read = refused != "get Deployment" && ["/diff", WEB].contains(&path);
        assert_eq!(!console.read.lock().unwrap().is_empty(), is_read, "without {refused}: {path}");
        let (found, body) = console.send("GET", &format!("/api/v1{SYNC}{path}"), String::new()).await;
        assert_eq!(found, status, "without {refused}: {path}");
        let (_, clusters) = console.send("GET", "/api/v1/clusters", String::new()).await;
        assert_eq!(clusters.contains("\"home\""), refused != "get syncs", "without {refused}: {clusters}");
        assert!(!absent.starts_with("changed by") || !body.contains(absent), "{path}\n{body}");
    }
    // One question for each kind and namespace, however many objects there are.
    console.refused.lock().unwrap().clear();
    console.asked.lock().unwrap().clear();
    console.send("GET", SYNC, String::new()).await;
    let mut asked = console.asked.lock().unwrap().clone();
    asked.sort();
    let verbs = ["approve syncs", "get ConfigMap", "get Deployment", "get syncs"];
    assert_eq!(asked, [&verbs[..], &["rollback syncs", "suspend syncs", "sync syncs"]].concat());
}

#[tokio::test]
async fn a_restart_reaches_the_workload_with_the_token_of_the_session() {
    let console = Console::start();
    console.create(&json!({})).await;
    let object = "object=apps%2FDeployment%7Cshop%2Fweb";
    let act = async |form: String| console.send("POST", &format!("{SYNC}/actions/restart"), form).await;
    assert_eq!(act(object.to_owned()).await.0, 403, "without the token");
    assert_eq!(act(format!("{object}&csrf={}", csrf_token(&Session::local("other")))).await.0, 403);
    let good = format!("{object}&csrf={}", csrf_token(&console.session));
    console.refused.lock().unwrap().insert("patch Deployment".to_owned());
    assert_eq!(act(good.clone()).await.0, 403, "without the right");
    console.refused.lock().unwrap().clear();
    let (status, body) = act(good).await;
    assert_eq!(status, 303, "{body}");
    let path = "/apis/apps/v1/namespaces/shop/deployments/web";
    let live = console.request("GET", path, &Value::Null).await;
    let marks = &live["spec"]["template"]["metadata"]["annotations"];
    assert!(marks["kubectl.kubernetes.io/restartedAt"].is_string(), "{live}");
    let managers: Vec<_> = live["metadata"]["managedFields"].as_array().unwrap().iter().collect();
    assert!(managers.iter().any(|entry| entry["manager"] == "moorline-console"), "{live}");
}
