//! The sandbox answers as a real API server does: the same requests are sent to both, and the answers are compared.
//!
//! In: the scenes in `tests/parity/*.txt`; each is a title and requests. Out: what differs, with the request after which it
//! does. Where the two differ, the sandbox is wrong. What only one server can know (uids, times, revisions, addresses that were
//! given out) is replaced by its place in the order of first appearance, so that what stays the same stays comparable.

mod support;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use moorline::sandbox::{Options, Sandbox};
use moorline::yaml::{self, Dialect};
use serde_json::{Value, json};

use support::control_plane::shared;
use support::credentials::ADMIN;

/// A scene: what it is about, and its requests in order.
struct Scene {
    file: String,
    title: String,
    requests: Vec<Asking>,
}

/// One request.
struct Asking {
    line: usize,
    verb: String,
    path: String,
    body: Option<Value>,
}

#[tokio::test]
async fn both_servers_answer_alike() {
    let Some(plane) = shared() else { return };
    let only = std::env::var("MOORLINE_PARITY_SCENE").unwrap_or_default();
    let scenes: Vec<Scene> = scenes().into_iter().filter(|scene| scene.title.contains(&only)).collect();
    assert!(!scenes.is_empty(), "there are scenes");
    let sandbox = Sandbox::new(&Options::default());
    let (real, ours) = (plane.client(ADMIN).await, sandbox.client());
    let mut told = String::new();
    for (number, scene) in scenes.iter().enumerate() {
        if let Some(difference) = play(scene, number, &real, &ours).await {
            let _ = writeln!(told, "\n{}: {}\n{difference}", scene.file, scene.title);
        }
    }
    assert!(told.is_empty(), "the sandbox answers otherwise:\n{told}");
}

/// Plays a scene on both servers; the answer is the first difference.
async fn play(scene: &Scene, number: usize, real: &Client, ours: &Client) -> Option<String> {
    let namespace = format!("parity-{number}");
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    for client in [real, ours] {
        let (code, answer) = send(client, "POST", "/api/v1/namespaces", Some(&body)).await;
        assert_eq!(code, 201, "{answer}");
    }
    let (mut known_real, mut known_ours) = (Known::default(), Known::default());
    for asking in &scene.requests {
        let path = asking.path.replace("NS", &namespace);
        let body = asking
            .body
            .as_ref()
            .map(|body| serde_json::from_str::<Value>(&body.to_string().replace("NS", &namespace)).unwrap());
        if asking.verb == "WAIT" {
            for client in [real, ours] {
                until_served(client, &path).await;
            }
            continue;
        }
        let (real_body, our_body) = (known_real.filled(&body), known_ours.filled(&body));
        let (real_code, mut real_answer) = send(real, &asking.verb, &path, real_body.as_ref()).await;
        let (our_code, mut our_answer) = send(ours, &asking.verb, &path, our_body.as_ref()).await;
        known_real.replace(&mut real_answer);
        known_ours.replace(&mut our_answer);
        if real_code != our_code || real_answer != our_answer {
            let mut told = format!("  line {}: {} {path}\n", asking.line, asking.verb);
            if real_code != our_code {
                let _ = writeln!(told, "  real {real_code}: {real_answer}\n  ours {our_code}: {our_answer}");
            } else {
                differences("", &real_answer, &our_answer, &mut told);
            }
            return Some(told);
        }
    }
    None
}

/// A definition is served a moment after it was written.
async fn until_served(client: &Client, path: &str) {
    for _ in 0..200 {
        if send(client, "GET", path, None).await.0 == 200 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{path} is not served");
}

async fn send(client: &Client, verb: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let (method, content) = match verb {
        "MERGE" => ("PATCH", "application/merge-patch+json"),
        "JSON" => ("PATCH", "application/json-patch+json"),
        "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
        "APPLY" => ("PATCH", "application/apply-patch+yaml"),
        verb => (verb, "application/json"),
    };
    let content_body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Accept", "application/json")
        .header("Content-Type", content)
        .body(Body::from(content_body))
        .unwrap();
    let response = client.send(request).await.unwrap_or_else(|error| panic!("{verb} {path}: {error}"));
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into()))
}

/// What only one server knows, in the order in which it was told.
#[derive(Default)]
struct Known {
    seen: HashMap<String, usize>,
    counts: HashMap<&'static str, usize>,
    /// The last uid and revision that were told, for requests that name them.
    last: HashMap<&'static str, String>,
}

impl Known {
    fn replace(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let kind = match name.as_str() {
                        "uid" => "uid",
                        "resourceVersion" => "revision",
                        "clusterIP" | "clusterIPs" => "address",
                        "nodePort" | "healthCheckNodePort" => "port",
                        "time" | "creationTimestamp" | "deletionTimestamp" | "lastTransitionTime" => {
                            if value.is_string() {
                                *value = "T".into();
                            }
                            continue;
                        }
                        "continue" => "continue",
                        _ => {
                            self.replace(value);
                            continue;
                        }
                    };
                    self.name(kind, value);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::String(text) => {
                // Messages quote what was named before.
                let mut named: Vec<_> = self.seen.iter().filter(|(known, _)| known.len() > 20).collect();
                named.sort_unstable();
                for (known, number) in named {
                    *text = text.replace(known.as_str(), &format!("uid#{number}"));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn name(&mut self, kind: &'static str, value: &mut Value) {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Array(items) => return items.iter_mut().for_each(|item| self.name(kind, item)),
            Value::Null | Value::Bool(_) | Value::Object(_) => return self.replace(value),
        };
        if matches!(text.as_str(), "" | "0" | "None") {
            return;
        }
        self.last.insert(kind, text.clone());
        let counts = &mut self.counts;
        let number = *self.seen.entry(text).or_insert_with(|| {
            let count = counts.entry(kind).or_default();
            *count += 1;
            *count
        });
        *value = format!("{kind}#{number}").into();
    }

    /// The body with what was told last in the place of `$uid` and `$revision`.
    fn filled(&self, body: &Option<Value>) -> Option<Value> {
        let mut text = body.as_ref()?.to_string();
        for (kind, last) in &self.last {
            text = text.replace(&format!("${kind}"), last);
        }
        Some(serde_json::from_str(&text).unwrap())
    }
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

/// The scenes of all files: a line that begins with `#` is a title, blank lines end requests.
fn scenes() -> Vec<Scene> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut scenes = Vec::new();
    for path in files {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((at, line)) = lines.next() {
            if let Some(title) = line.strip_prefix("# ") {
                scenes.push(Scene { file: file.clone(), title: title.to_owned(), requests: Vec::new() });
                continue;
            }
            let Some((verb, path)) = line.split_once(' ') else { continue };
            // Text that begins with a brace would have to be JSON.
            let mut body = "---\n".to_owned();
            while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
                body.push_str(line);
                body.push('\n');
            }
            let body = yaml::read(&file, body.as_bytes(), Dialect::Kubectl);
            let body = body.unwrap_or_else(|error| panic!("{file}:{}: {error}", at + 1));
            let body = body.into_iter().next().map(|document| document.value);
            let asking = Asking { line: at + 1, verb: verb.to_owned(), path: path.to_owned(), body };
            scenes
                .last_mut()
                .unwrap_or_else(|| panic!("{file}: begins without a title"))
                .requests
                .push(asking);
        }
    }
    scenes
}
