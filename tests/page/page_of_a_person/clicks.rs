//! Tasks of a person with the mouse, from the overview: each takes as many clicks as docs/page.md says, three at most.
//!
//! In: a Sync that waits for an approval and was edited by hand, and one with a Pod that fails. Out: what is seen and done,
//! and the number of clicks, which is compared with the table of the page.

use std::sync::Arc;

use axum::Extension;
use moorline::api::{HistoryEntry, SyncName, SyncStatus};
use moorline::object::ObjectId;
use moorline::report::board::{ObjectHealth, StatusBoard, SyncCard};
use moorline::report::live_tree::{ContainerRole, ContainerSummary, LiveNode, LiveTree, PodSummary};
use moorline::serve::viewer::{Person, Viewer};
use moorline::serve::{LiveRequest, serve_console};
use moorline_test_support::browser::Browser;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Console, SYNC_OBJECT};
use crate::board::board_with_every_state;
use crate::page_browser::seen;

/// Bar of the clicks for a task.
const MOST: usize = 3;
const EARLIER: &str = "main@2e1d2e1d2e1d2e1d2e1d2e1d2e1d2e1d2e1d2e1d";
const LOG: &str = "panic: no such table: orders";

/// A person with a mouse, who starts at the overview.
struct Hand {
    browser: Browser,
    url: String,
    clicks: usize,
}

impl Hand {
    /// Goes to the overview, and counts from there.
    fn begin(&mut self) {
        self.browser.go(&self.url);
        self.clicks = 0;
    }

    /// Clicks on what has this text, within the part that a selector finds.
    fn click(&mut self, within: &str, text: &str) {
        let parts = format!("[...document.querySelectorAll({})]", json!(within));
        let all = "part.querySelectorAll('a, button, summary')";
        let found = format!(
            "{parts}.flatMap((part) => [...{all}]).find((it) => it.innerText.trim() === {})",
            json!(text)
        );
        self.browser.click(text, &found);
        self.clicks += 1;
    }

    /// Clicks, and waits for the page to which that leads.
    fn follow(&mut self, within: &str, text: &str) {
        self.click(within, text);
        self.browser.loaded();
    }

    fn shows(&mut self, words: &str) {
        let text = self.browser.value("document.body.innerText");
        assert!(text.as_str().unwrap().contains(words), "{words} is not in: {text}");
    }
}

/// The clicks of a task in the table of docs/page.md.
fn promised(task: &str) -> usize {
    let text = include_str!("../../../docs/page.md");
    let row = text.lines().find(|line| line.starts_with(&format!("| {task} |"))).expect(task);
    row.split('|').nth(2).unwrap().trim().parse().unwrap()
}

/// Answers reads of trees and logs: one Pod, which fails.
pub(super) async fn answer(request: LiveRequest) {
    match request {
        LiveRequest::Tree { answer, .. } => drop(answer.send(Ok(Arc::new(tree())))),
        LiveRequest::Log(request) => {
            assert_eq!((&*request.pod.name, &*request.options.container), ("web-7f9c", "web"));
            let (bytes, log) = tokio::sync::mpsc::channel(1);
            bytes.send(format!("{LOG}\n").into_bytes()).await.unwrap();
            drop(request.answer.send(Ok(log)));
        }
        LiveRequest::Object(_) | LiveRequest::Events { .. } | LiveRequest::NextPlan { .. } => {}
    }
}

fn tree() -> LiveTree {
    let node = |id: &str, owner, health, pod| LiveNode {
        id: ObjectId::parse(id).unwrap(),
        uid: Some("1".into()),
        owner,
        owned: if owner.is_none() { vec![1, 2] } else { Vec::new() },
        created: None,
        deleting: false,
        health,
        message: "".into(),
        hidden: false,
        pod,
    };
    let container = |name: &str, ready| ContainerSummary {
        name: name.into(),
        role: ContainerRole::Main,
        image: Box::default(),
        ready,
        restarts: 3,
        state: "waiting",
        reason: "CrashLoopBackOff".into(),
        started: None,
        last_end: None,
    };
    let pod = |containers| Some(Box::new(PodSummary { containers, ..PodSummary::default() }));
    let both = vec![container("proxy", true), container("web", false)];
    LiveTree {
        nodes: vec![
            node("apps/Deployment|shop/web", None, ObjectHealth::Degraded, None),
            node("/Pod|shop/web-0000", Some(0), ObjectHealth::Healthy, pod(vec![container("web", true)])),
            node("/Pod|shop/web-7f9c", Some(0), ObjectHealth::Degraded, pod(both)),
        ],
        roots: 1,
        ..LiveTree::default()
    }
}

/// The board with every state, and an earlier revision of the shop to go back to.
pub(super) fn board() -> StatusBoard {
    let mut board = board_with_every_state();
    let card = SyncCard::clone(board.card("ops", "shop").unwrap());
    let mut status = SyncStatus::clone(&card.status);
    let last: HistoryEntry = status.history[0].clone();
    status.history.push(HistoryEntry { revision: EARLIER.into(), subject: "Before".into(), ..last });
    board.update_card(SyncCard { status: Arc::new(status), ..card });
    board
}

/// Serves the console for one person on the loopback.
pub(super) async fn serve(console: &Console) -> String {
    let person = Person { user: "ada".into(), uid: None, groups: Vec::new(), extra: Default::default() };
    let router = console.page.clone().router();
    let router = router.layer(Extension(Viewer::Person(Arc::new(person))));
    let router = router.layer(Extension(console.session.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(serve_console(listener, router, std::future::pending()));
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_task_takes_as_many_clicks_as_the_table_says() {
    let Some(browser) = Browser::start() else { return };
    let board = board();
    let status = json!(*board.cards[&SyncName::new("ops", "shop")].status);
    let console = Console::of(board, seen);
    console.create(&status).await;
    let mut hand = Hand { url: serve(&console).await, browser, clicks: 0 };
    let mut counted = Vec::new();

    hand.begin();
    hand.shows("Pod web-7f9c: the container web waits: ImagePullBackOff");
    hand.browser.picture("attention-screen-light");
    hand.follow("#attention article", "Open Deployment.apps shop/web");
    hand.shows("ImagePullBackOff");
    counted.push(("find what is broken, and why", hand.clicks));

    hand.begin();
    hand.follow("#attention article", "What was changed");
    hand.shows("replicas: 5");
    counted.push(("see what a hand edit changed", hand.clicks));

    hand.begin();
    hand.follow("#attention article", "Review the deletions");
    hand.shows("ConfigMap shop/old-00");
    hand.follow("#waiting", "Approve the deletion of 12 objects");
    counted.push(("approve a prune", hand.clicks));

    hand.begin();
    hand.follow("#attention article", "ops/shop");
    hand.click("#roll-back", "Roll back");
    let focus = "document.activeElement.name === 'reason'";
    hand.browser.until("the reason is written next", focus);
    hand.browser.types("it is slow");
    hand.follow("#roll-back form", "Roll back");
    counted.push(("roll back", hand.clicks));

    hand.begin();
    hand.follow("#attention article", "Log of the failing Pod");
    hand.shows(LOG);
    counted.push(("read the log of the failing Pod", hand.clicks));

    for (task, clicks) in counted {
        assert!(clicks <= MOST, "{task}: {clicks}");
        assert_eq!(clicks, promised(task), "{task}");
    }
    assert_eq!(hand.browser.complaints(), Vec::<String>::new());
    let sync = console.request("GET", SYNC_OBJECT, &Value::Null).await;
    let marks = &sync["metadata"]["annotations"];
    for (key, expect) in [
        ("approve", status["approval"]["hash"].as_str().unwrap()),
        ("approved-by", &format!("{} ada", status["approval"]["hash"].as_str().unwrap())),
        ("hold-revision", EARLIER),
        ("hold-reason", "it is slow"),
    ] {
        assert_eq!(marks[format!("moorline.dev/{key}")], expect, "{marks}");
    }
}
