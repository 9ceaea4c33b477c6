//! Live views over a tree of a table: viewers, their rights, and logs that are followed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::api::SyncStatus;
use crate::object::GroupKind;
use crate::object::ObjectId;
use crate::plan::RevisionChanges;
use crate::report::board::SourceSummary;
use crate::report::board::StatusBoard;
use crate::report::live_tree::EventList;
use crate::report::live_tree::{EventSelection, RootObject, build_tree, read_listed};
use crate::report::next_plan::NextPlan;
use crate::serve::login::SessionEnd;
use crate::serve::viewer::AccessReviews;
use crate::serve::viewer::{AccessRequest, Person, Viewer};
use futures::StreamExt as _;
use jiff::Timestamp;

/// Pages over fakes of the reader and of the API server.
struct Fakes {
    pages: LivePages,
    reviews: AccessReviews,
    /// Resources that are refused, as `verb resource/subresource`.
    refused: Arc<Mutex<BTreeSet<String>>>,
    /// All questions, in their order.
    asked: Arc<Mutex<Vec<String>>>,
    /// Writers of the logs that were opened.
    logs: mpsc::Receiver<(LogOptions, mpsc::Sender<Vec<u8>>)>,
    /// The end of the session of people.
    ends: Option<Instant>,
    _end: watch::Sender<bool>,
}

fn sync() -> SyncName {
    SyncName::new("ops", "shop")
}

/// Deployment, ReplicaSet, and two Pods.
fn tree() -> LiveTree {
    let object = |kind: &str, name: &str, owner: (&str, &str)| {
        json!({"metadata": {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": "2026-11-22T11:00:00Z",
            "ownerReferences": [{"kind": owner.0, "name": owner.1, "uid": owner.1, "controller": true}]},
            "spec": {"containers": [{"name": "web", "image": "shop:1"}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "web", "restartCount": 4,
                "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}, "kind": kind})
    };
    let read = |group: &str, body: &Value| {
        let kind = GroupKind::new(group, body["kind"].as_str().unwrap());
        read_listed(&kind, body.as_object().unwrap(), group.is_empty()).unwrap()
    };
    let listed = vec![
        read("apps", &object("ReplicaSet", "web-1", ("Deployment", "web"))),
        read("", &object("Pod", "web-1-a", ("ReplicaSet", "web-1"))),
        read("", &object("Pod", "web-1-b", ("ReplicaSet", "web-1"))),
    ];
    let id = ObjectId::new("apps", "Deployment", "shop", "web").unwrap();
    let roots = vec![RootObject { id, uid: Some("web".into()), hidden: false }];
    build_tree(roots, listed, Vec::new(), Timestamp::UNIX_EPOCH)
}

fn events(tree: &LiveTree) -> EventList {
    let event = json!({"metadata": {"namespace": "shop"}, "reason": "BackOff", "message": "it crashes",
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-1-a", "uid": "web-1-a"}});
    let (sync, event) = (sync(), event.as_object().unwrap().clone());
    let row = EventSelection::new(&sync, tree).select(&event).unwrap();
    EventList::new(vec![row], Vec::new(), Timestamp::UNIX_EPOCH)
}

fn next_plan() -> NextPlan {
    let lines = vec!["create ConfigMap shop/<b>".to_owned()];
    NextPlan {
        revision: "main@2".to_owned(),
        changes: RevisionChanges { created: 1, changed: 2, pruned: 3, lines },
        held: [("OwnedBy", 4)].into(),
        unobserved: ["Boat".to_owned()].into(),
        made_at: Timestamp::UNIX_EPOCH,
    }
}

fn fakes() -> Fakes {
    let (requests, mut wanted) = mpsc::channel(4);
    let (log, logs) = mpsc::channel(64);
    tokio::spawn(async move {
        while let Some(request) = wanted.recv().await {
            match request {
                LiveRequest::Tree { answer, .. } => drop(answer.send(Ok(Arc::new(tree())))),
                LiveRequest::Events { answer, .. } => drop(answer.send(Ok(Arc::new(events(&tree()))))),
                LiveRequest::NextPlan { answer, .. } => drop(answer.send(Ok(Arc::new(next_plan())))),
                LiveRequest::Log(request) => {
                    let (writer, reader) = mpsc::channel(4);
                    log.send((request.options, writer)).await.unwrap();
                    drop(request.answer.send(Ok(reader)));
                }
                LiveRequest::Object(_) => panic!("no object is read here"),
            }
        }
    });
    let refused: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let (review, mut questions) = mpsc::channel::<AccessRequest>(4);
    let (no, all) = (refused.clone(), asked.clone());
    tokio::spawn(async move {
        while let Some(AccessRequest { question, answer, .. }) = questions.recv().await {
            let of = if question.subresource.is_empty() { "" } else { "/" };
            let word = format!("{} {}{of}{}", question.verb, question.resource, question.subresource);
            let namespace = question.namespace.unwrap_or_default();
            assert_eq!(namespace, if question.resource == "syncs" { "ops" } else { "shop" });
            drop(answer.send(Ok(!no.lock().unwrap().contains(&word))));
            all.lock().unwrap().push(word);
        }
    });
    let (end, ending) = watch::channel(false);
    let reviews = AccessReviews::new(review);
    Fakes { pages: LivePages::new(requests, ending), reviews, refused, asked, logs, ends: None, _end: end }
}

fn person() -> Viewer {
    let person = Person { user: "ada".to_owned(), uid: None, groups: Vec::new(), extra: BTreeMap::new() };
    Viewer::Person(Arc::new(person))
}

impl Fakes {
    async fn get(&self, viewer: &Viewer, path: &str) -> Response<Body> {
        let mut board = StatusBoard::default();
        board.update_card(SyncCard {
            name: sync(),
            version: 0,
            source: Arc::new(SourceSummary::default()),
            status: Arc::new(SyncStatus::default()),
            objects: Arc::default(),
            repairs: Arc::new([]),
            activities: Arc::new([]),
        });
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let asked = page::parse_path(path);
        let page::Route::Live(sync, view) = &asked.route else { panic!("{path}: {asked:?}") };
        let is_person = *viewer != Viewer::Loopback;
        let person = is_person.then_some((&self.reviews, viewer, SessionEnd::at(self.ends)));
        let visit = LiveVisit { board: Arc::new(board), person, query, json: asked.json, is_head: false };
        self.pages.respond(&visit, sync, view).await
    }

    async fn read(&self, viewer: &Viewer, path: &str) -> (u16, String) {
        let response = self.get(viewer, path).await;
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

const TREE: &str = "/syncs/ops/shop/tree";
const EVENTS: &str = "/syncs/ops/shop/events";
const POD: &str = "/syncs/ops/shop/pods/shop/web-1-a";
const LOGS: &str = "/syncs/ops/shop/pods/shop/web-1-a/logs";

#[tokio::test(start_paused = true)]
async fn a_viewer_sees_what_kubernetes_grants() {
    let mut fakes = fakes();
    let ada = person();
    // The refused right, the path, the status, a text that is there, and one that is not.
    for (refused, path, status, there, absent) in [
        ("", TREE, 200, "web-1-b", "you may not"),
        ("list Pod", TREE, 200, "<b>Pod</b> in shop is left out: you may not list it", "web-1-b"),
        ("list ReplicaSet", TREE, 200, "web-1-b", ">web-1<"),
        ("list Deployment", TREE, 200, "web-1-b", "you may not"),
        ("get Deployment", TREE, 200, "in shop is shown by name only: you may not get it", "is left out"),
        ("get syncs", TREE, 404, "Not found", "web"),
        ("", EVENTS, 200, "it crashes", "you may not"),
        ("list events", EVENTS, 200, "you may not list it", "it crashes"),
        ("", POD, 200, "OOMKilled, exit code 137", "you may not"),
        ("list ReplicaSet", POD, 200, "shop:1", "Deployment"),
        ("get pods", POD, 404, "Not found", "shop:1"),
        ("get pods", LOGS, 404, "Not found", "kubectl"),
        ("get pods/log", LOGS, 403, "kubectl logs -n shop web-1-a -c web", "<pre tabindex"),
        ("get pods/log", &format!("{LOGS}?follow=true"), 403, "may not get pods/log", "<pre tabindex"),
        ("", &format!("{LOGS}?container=other"), 404, "Not found", "kubectl"),
        ("", "/syncs/ops/shop/pods/shop/other", 404, "Not found", "kubectl"),
    ] {
        *fakes.refused.lock().unwrap() = BTreeSet::from([refused.to_owned()]);
        let (found, body) = fakes.read(&ada, path).await;
        assert_eq!(found, status, "without {refused}: {path}");
        assert!(body.contains(there) && !body.contains(absent), "without {refused}: {path}\n{body}");
    }
    assert!(fakes.logs.try_recv().is_err(), "no log was opened");
    // The log of the failing Pod is found; a person who may not list Pods is led to the tree.
    for (refused, path, place) in [
        ("", "/syncs/ops/shop/failing-log", "/syncs/ops/shop/pods/shop/web-1-a/logs?container=web"),
        (
            "",
            "/api/v1/syncs/ops/shop/failing-log",
            "/api/v1/syncs/ops/shop/pods/shop/web-1-a/logs?container=web",
        ),
        ("list Pod", "/syncs/ops/shop/failing-log", TREE),
    ] {
        *fakes.refused.lock().unwrap() = BTreeSet::from([refused.to_owned()]);
        let answer = fakes.get(&ada, path).await;
        let found = answer.headers()[LOCATION].to_str().unwrap().to_owned();
        assert_eq!((answer.status().as_u16(), &*found), (303, place), "without {refused}");
    }
    // One question for each kind and namespace, however many objects there are.
    fakes.refused.lock().unwrap().clear();
    fakes.asked.lock().unwrap().clear();
    fakes.read(&ada, TREE).await;
    let mut asked = fakes.asked.lock().unwrap().clone();
    asked.sort();
    assert_eq!(asked, ["get Deployment", "get syncs", "list Pod", "list ReplicaSet"]);
    // A view that is not read has its reason, as JSON at the path of JSON.
    let (own, gone) = (fakes.pages, mpsc::channel(1).0);
    fakes.pages = LivePages::new(gone, own.ending.clone());
    for path in [TREE, EVENTS, POD, LOGS] {
        assert_eq!(fakes.read(&ada, path).await.0, 503, "{path}");
        let (status, body) = fakes.read(&ada, &format!("/api/v1{path}")).await;
        assert!(status == 503 && body.starts_with("{\"notRead\":"), "{path}: {body}");
    }
    fakes.pages = own;
    // Without a decision there is nothing to see.
    fakes.reviews = AccessReviews::new(mpsc::channel(1).0);
    assert_eq!(fakes.read(&ada, TREE).await.0, 404);
    // On the loopback there are trees and Pods, and no logs.
    for (path, status, there) in [
        (TREE, 200, "web-1-b"),
        (EVENTS, 200, "it crashes"),
        (POD, 200, "shop:1"),
        (LOGS, 403, "Sign in to read logs."),
        (&format!("/api/v1{LOGS}"), 403, "kubectl logs -n shop web-1-a -c web"),
        (&format!("/api/v1{POD}"), 200, "\"exitCode\":137"),
        (&format!("/api/v1{TREE}"), 200, "\"restarts\":4"),
        ("/syncs/ops/other/tree", 404, "Not found"),
    ] {
        let (found, body) = fakes.read(&Viewer::Loopback, path).await;
        assert!(found == status && body.contains(there), "{path} {found}\n{body}");
    }
    assert!(fakes.logs.try_recv().is_err(), "no log was opened");
}

#[tokio::test(start_paused = true)]
async fn a_log_is_bounded_and_followed_as_long_as_it_may_be_read() {
    let mut fakes = fakes();
    let ada = person();
    let (path, follow) = (format!("{LOGS}?previous=true"), format!("{LOGS}?follow=true&since=10m"));
    let long = format!("{}\n", "x".repeat(1023)).repeat(1500);
    let write = async |fakes: &mut Fakes| {
        let (options, writer) = fakes.logs.recv().await.unwrap();
        for chunk in ["<b>old</b>\n".as_bytes(), long.as_bytes(), b"\x1b[31mnew\x1b[0m\n"] {
            writer.send(chunk.to_vec()).await.unwrap();
        }
        options
    };
    let pages = LivePages::new(fakes.pages.requests.clone(), fakes.pages.ending.clone());
    let reader = Fakes {
        pages,
        reviews: fakes.reviews.clone(),
        refused: fakes.refused.clone(),
        asked: fakes.asked.clone(),
        logs: mpsc::channel(1).1,
        ends: None,
        _end: watch::channel(false).0,
    };
    let ((status, body), options) = tokio::join!(reader.read(&ada, &path), write(&mut fakes));
    assert!(options.previous && !options.follow && options.tail_lines == page::MAX_LOG_LINES);
    assert!(options.limit_bytes.is_some_and(|bytes| bytes == MAX_READ));
    assert!(status == 200 && body.contains("xx\nnew\n</pre>") && body.contains("Only the last"), "{status}");
    assert!(!body.contains("old") && body.len() < page::MAX_LOG_BYTES + 10_000, "{}", body.len());

    let response = fakes.get(&ada, &follow).await;
    let (options, writer) = fakes.logs.recv().await.unwrap();
    assert!(options.follow && options.since_seconds == Some(600) && options.limit_bytes.is_none());
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/plain"));
    let mut stream = response.into_body().into_data_stream();
    writer.send(b"one\x1b[1m\xff\n".to_vec()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "one\u{fffd}\n");
    // Within the interval nobody is asked again; after it, before anything goes out.
    let questions = || fakes.asked.lock().unwrap().iter().filter(|word| *word == "get pods/log").count();
    let before = questions();
    tokio::time::advance(Duration::from_secs(6)).await;
    writer.send(b"two\n".to_vec()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "two\n");
    assert_eq!(questions(), before + 1);
    fakes.refused.lock().unwrap().insert("get pods/log".to_owned());
    writer.send(b"three\n".to_vec()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "three\n");
    tokio::time::advance(Duration::from_secs(6)).await;
    writer.send(b"four\n".to_vec()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "\n[moorline: you may not read this log any more]\n");
    assert!(stream.next().await.is_none() && writer.is_closed());

    // With the session nothing more goes out.
    fakes.refused.lock().unwrap().clear();
    fakes.ends = Some(Instant::now() + Duration::from_secs(5));
    let response = fakes.get(&ada, &follow).await;
    let (_, writer) = fakes.logs.recv().await.unwrap();
    let ended = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    assert_eq!(&ended[..], b"\n[moorline: your session has ended]\n");
    assert!(writer.is_closed());
    fakes.ends = None;
    let mut open = Vec::new();
    for _ in 0..MAX_LOG_STREAMS {
        open.push((fakes.get(&ada, &follow).await, fakes.logs.recv().await.unwrap()));
    }
    assert_eq!(fakes.get(&ada, &follow).await.status(), 503);
    drop(open);
    assert_eq!(fakes.get(&ada, &follow).await.status(), 200);
}

#[tokio::test]
async fn a_plan_of_the_next_commit_is_for_who_may_get_the_sync() {
    let fakes = fakes();
    for viewer in [person(), Viewer::Loopback] {
        let (status, page) = fakes.read(&viewer, "/syncs/ops/shop/plan/next").await;
        assert_eq!(status, 200);
        for part in [
            "1 to create, 2 to change, 3 to prune",
            "<li>create ConfigMap shop/&lt;b&gt;</li>",
            "hold 4 objects: OwnedBy",
            "cannot be listed: Boat.",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let (status, text) = fakes.read(&viewer, "/api/v1/syncs/ops/shop/plan/next").await;
        let found: Value = serde_json::from_str(&text).unwrap();
        let expect = json!({
            "revision": "main@2", "created": 1, "changed": 2, "pruned": 3, "plan": ["create ConfigMap shop/<b>"],
            "held": {"OwnedBy": 4}, "unobserved": ["Boat"], "readAt": "1970-01-01T00:00:00Z",
        });
        assert_eq!((status, found), (200, expect));
    }
    fakes.refused.lock().unwrap().insert("get syncs".to_owned());
    assert_eq!(fakes.read(&person(), "/syncs/ops/shop/plan/next").await.0, 404);
}
