//! The sandbox answers as a real API server does: the same requests are sent to both, and the answers are compared.
//!
//! In: the scenes in `tests/parity/*.txt`; each is a title and requests. Out: what differs, with the request after which it
//! does. Where the two differ, the sandbox is wrong. What only one server can know (uids, times, revisions, addresses that were
//! given out) is replaced by its place in the order of first appearance, so that what stays the same stays comparable.
//!
//! Besides the methods of HTTP, a request's verb may be: MERGE, JSON, STRATEGIC and APPLY, the forms of PATCH; METADATA, LISTED
//! (metadata of a list) and TABLE, the forms of GET; TEXT and LONG, bodies that are refused; WATCH (and WATCHED, in the form of
//! metadata), which stays open, and EVENTS, what all open ones have sent since; WAIT until the path is served; REFUSED until
//! what is posted is refused;
//! EVENTUALLY both answer alike, when controllers have done their part; COMPACT makes a server forget what was before. Files whose names begin with `still` are played last,
//! when the controllers of the real server have ended; those of the sandbox leave workloads alone in any case.
//!
//! `$webhook` is where a webhook converts boats, `$admission` where one admits, `$bundle` is who vouches for it, and `$strange` somebody who does not.
//!
//! A title with the word `row` names a row of the table of what happens to an applier's fields when somebody else writes, and
//! one with `generation` a row of that of the kinds whose generation tells of a change.

mod admitting;
mod known;
mod scenes;
mod sending;
mod webhook;

use std::fmt::Write as _;
use std::time::Duration;

use kube::Client;
use moorline::sandbox::{Options, Sandbox};
use serde_json::{Value, json};

use known::Known;
use moorline_test_support::control_plane::shared;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::under_load::under_load;
use scenes::{Asking, Scene, scenes};
use sending::{Watch, send, until_refused, until_served};
use webhook::Webhook;

/// For how long the answers of two servers whose controllers work may differ.
const PATIENCE: Duration = Duration::from_secs(15);

/// Changes by somebody else to an object that was applied.
const ROWS: [&str; 24] = [
    "changes our leaf",
    "removes our leaf or list item",
    "SSA with the same value",
    "non-forced SSA, other value",
    "PUT /scale",
    "/status write, even with altered spec in it",
    "adds to granular things",
    "adds to atomic things",
    "reorders",
    "duplicates a map-list key",
    "same manager name, Apply",
    "same manager name, Update",
    "managedFields reset",
    "PATCH forging our entry back after an edit",
    "create from dump",
    "mutating admission acting on their write",
    "mutating admission on our own apply",
    "other API version writes",
    "our entry's version unserved",
    "our entry's version deleted from the CRD, then any write",
    "CRD schema set->atomic",
    "CRD schema drops our field",
    "CRD gains a default",
    "> 10 Update managers",
];

#[test]
fn each_row_has_a_scene() {
    let titles: Vec<String> = scenes().into_iter().map(|scene| scene.title).collect();
    for row in ROWS {
        assert!(titles.iter().any(|title| title.contains(&format!("\"{row}\""))), "{row}");
    }
}

#[tokio::test]
async fn both_servers_answer_alike() {
    let Some(plane) = shared() else { return };
    let only = std::env::var("MOORLINE_PARITY_SCENE").unwrap_or_default();
    let is_meant = |scene: &Scene| scene.title.contains(&only) || scene.file == only;
    let scenes: Vec<Scene> = scenes().into_iter().filter(is_meant).collect();
    assert!(!scenes.is_empty(), "there are scenes");
    let sandbox = Sandbox::new(&Options::default());
    let (real, ours) = (plane.client(ADMIN).await, sandbox.client());
    let webhook = Webhook::start();
    let mut told = String::new();
    let (still, busy): (Vec<_>, Vec<_>) = scenes.iter().partition(|scene| scene.is_still());
    for (number, scene) in busy.iter().chain(&still).enumerate() {
        if number == busy.len() {
            plane.end_controllers();
        }
        let (compact, forget) = (|| assert!(plane.compact() > 0), || sandbox.forget_changes());
        let sides = [side(&real, &webhook, &compact), side(&ours, &webhook, &forget)];
        if let Some(difference) = play(scene, number, sides).await {
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
    /// Makes the server forget what was before.
    forget: &'a dyn Fn(),
}

fn side<'a>(client: &'a Client, webhook: &Webhook, forget: &'a dyn Fn()) -> Side<'a> {
    Side { client, known: Known::of(&webhook.told), watches: Vec::new(), forget }
}

/// Plays a scene on both servers; the answer is the first difference.
async fn play(scene: &Scene, number: usize, [mut real, mut ours]: [Side<'_>; 2]) -> Option<String> {
    let namespace = format!("parity-{number}");
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    for client in [real.client, ours.client] {
        let (code, answer) = send(client, "POST", "/api/v1/namespaces", Some(&body)).await;
        assert_eq!(code, 201, "{answer}");
    }
    for asking in &scene.requests {
        let asking = asking.within(&namespace);
        let asked_at = tokio::time::Instant::now();
        loop {
            let before = (real.known.clone(), ours.known.clone());
            let (told_real, told_ours) = tokio::join!(real.ask(&asking), ours.ask(&asking));
            if told_real == told_ours {
                break;
            }
            if asking.verb == "EVENTUALLY" && asked_at.elapsed() < under_load(PATIENCE) {
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
            "REFUSED" => {
                until_refused(self.client, &path, asking.body.as_ref()).await;
                return Value::Null;
            }
            "COMPACT" => {
                (self.forget)();
                Value::Null
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
