//! The sandbox answers as a real API server does: the same requests are sent to both, and the answers are compared.
//!
//! In: the scenes in `tests/parity/*.txt`; each is a title and requests. Out: what differs, with the request after which it
//! does. Where the two differ, the sandbox is wrong. What only one server can know (uids, times, revisions, addresses that were
//! given out) is replaced by its place in the order of first appearance, so that what stays the same stays comparable.
//!
//! Besides the methods of HTTP, a request's verb may be: MERGE, JSON, STRATEGIC and APPLY, the forms of PATCH; METADATA, LISTED
//! (metadata of a list) and TABLE, the forms of GET; TEXT and LONG, bodies that are refused; WATCH (and WATCHED, in the form of
//! metadata), which stays open, and EVENTS, what all open ones have told since; WAIT until the path is served;
//! EVENTUALLY both answer alike, when controllers have done their part. Files whose names begin with `still` are played last,
//! when the controllers of the real server have ended; those of the sandbox leave workloads alone in any case.
//!
//! A title with the word `row` names a row of the table of what happens to an applier's fields when somebody else writes, and
//! one with `generation` a row of that of the kinds whose generation tells of a change.

mod support;

#[path = "parity/known.rs"]
mod known;
#[path = "parity/scenes.rs"]
mod scenes;
#[path = "parity/sending.rs"]
mod sending;

use std::fmt::Write as _;
use std::time::Duration;

use kube::Client;
use moorline::sandbox::{Options, Sandbox};
use serde_json::{Value, json};

use known::Known;
use scenes::{Asking, Scene, scenes};
use sending::{Watch, send, until_served};
use support::control_plane::shared;
use support::credentials::ADMIN;

/// For how long the answers of two servers whose controllers work may differ.
const PATIENCE: Duration = Duration::from_secs(15);

#[tokio::test]
async fn both_servers_answer_alike() {
    let Some(plane) = shared() else { return };
    let only = std::env::var("MOORLINE_PARITY_SCENE").unwrap_or_default();
    let scenes: Vec<Scene> = scenes().into_iter().filter(|scene| scene.title.contains(&only)).collect();
    assert!(!scenes.is_empty(), "there are scenes");
    let sandbox = Sandbox::new(&Options::default());
    let (real, ours) = (plane.client(ADMIN).await, sandbox.client());
    let mut told = String::new();
    let (still, busy): (Vec<_>, Vec<_>) = scenes.iter().partition(|scene| scene.is_still());
    for (number, scene) in busy.iter().chain(&still).enumerate() {
        if number == busy.len() {
            plane.end_controllers();
        }
        if let Some(difference) = play(scene, number, &real, &ours).await {
            let _ = writeln!(told, "\n{}: {}\n{difference}", scene.file, scene.title);
        }
    }
    assert!(told.is_empty(), "the sandbox answers otherwise:\n{told}");
}

/// One of the two servers, as a scene sees it.
struct Side<'a> {
    client: &'a Client,
    known: Known,
    watches: Vec<Watch>,
}

/// Plays a scene on both servers; the answer is the first difference.
async fn play(scene: &Scene, number: usize, real: &Client, ours: &Client) -> Option<String> {
    let namespace = format!("parity-{number}");
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    for client in [real, ours] {
        let (code, answer) = send(client, "POST", "/api/v1/namespaces", Some(&body)).await;
        assert_eq!(code, 201, "{answer}");
    }
    let side = |client| Side { client, known: Known::default(), watches: Vec::new() };
    let (mut real, mut ours) = (side(real), side(ours));
    for asking in &scene.requests {
        let asking = asking.within(&namespace);
        let asked_at = tokio::time::Instant::now();
        loop {
            let before = (real.known.clone(), ours.known.clone());
            let (told_real, told_ours) = tokio::join!(real.ask(&asking), ours.ask(&asking));
            if told_real == told_ours {
                break;
            }
            if asking.verb == "EVENTUALLY" && asked_at.elapsed() < PATIENCE {
                (real.known, ours.known) = before;
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
            return Some(told(&asking, &told_real, &told_ours));
        }
    }
    None
}

impl Side<'_> {
    /// Sends a request; the answer is comparable to the other server's.
    async fn ask(&mut self, asking: &Asking) -> Value {
        let path = self.known.filled(&asking.path);
        let mut answer = match asking.verb.as_str() {
            "WAIT" => {
                until_served(self.client, &path).await;
                return Value::Null;
            }
            "WATCH" | "WATCHED" => match Watch::open(self.client, &asking.verb, &path).await {
                Ok(watch) => {
                    self.watches.push(watch);
                    Value::Null
                }
                Err(refusal) => refusal,
            },
            "EVENTS" => {
                let mut all = Vec::new();
                for watch in &mut self.watches {
                    all.push(watch.told().await);
                }
                all.into()
            }
            verb => {
                let body = asking.body.as_ref().map(|body| self.known.filled(&body.to_string()));
                let body = body.map(|text| serde_json::from_str(&text).unwrap());
                let (code, answer) = send(self.client, verb, &path, body.as_ref()).await;
                json!({"code": code, "answer": answer})
            }
        };
        self.known.replace(&mut answer);
        answer
    }
}

fn told(asking: &Asking, real: &Value, ours: &Value) -> String {
    let mut told = format!("  line {}: {} {}\n", asking.line, asking.verb, asking.path);
    if real["code"] == ours["code"] {
        differences("", real, ours, &mut told);
    } else {
        let _ = writeln!(told, "  real {real}\n  ours {ours}");
    }
    told
}

fn differences(at: &str, real: &Value, ours: &Value, told: &mut String) {
    match (real, ours) {
        (Value::Object(left), Value::Object(right)) => {
            let names: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
            for name in names {
                let (left, right) =
                    (left.get(name).unwrap_or(&Value::Null), right.get(name).unwrap_or(&Value::Null));
                differences(&format!("{at}.{name}"), left, right, told);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (place, (left, right)) in left.iter().zip(right).enumerate() {
                differences(&format!("{at}[{place}]"), left, right, told);
            }
        }
        (left, right) if left != right => {
            let _ = writeln!(told, "  {at}\n    real {left}\n    ours {right}");
        }
        _ => {}
    }
}
