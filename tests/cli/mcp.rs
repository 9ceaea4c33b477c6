//! `moorline mcp` from outside: transcripts of sessions, hostile texts, and what it never does.
//!
//! In: the transcripts in tests/cli/mcp, where `>` is a line with one answer, `~` a line without
//! one, and `<` the answer. `MOORLINE_WRITE_DOCS=1 cargo test --test cli mcp::` writes the answers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use moorline::sandbox::FaultRates;
use moorline::sanitize::reveal;
use serde_json::{Value, json};

pub(crate) mod sandboxed;

use moorline_test_support::under_load::under_load;
use sandboxed::{PLANTED, Sandboxed};

const HELLO: &[u8] =
    br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/mcp").join(name)
}

/// A status with everything that `why` tells.
fn failing() -> Value {
    let condition = |type_: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": type_, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        })
    };
    json!({
        "conditions": [condition("Ready", "False", "PruneHeld", "12 objects are to be deleted")],
        "objects": {"desired": 3, "applied": 2, "held": 1, "failed": 0, "drifted": 0, "pruned": 0},
        "problems": [{"object": "/ConfigMap|shop/old", "reason": "PruneBudgetExceeded", "message": "it is held"}],
        "approval": {"hash": "6c1c8f7d2a90b3e4", "objects": 12},
        "history": [{
            "revision": "main@1f0c9a7be2d1", "short": "1f0c9a7b", "time": "2026-01-02T03:04:05Z", "result": "Applied",
            "subject": "Open", "author": "Ada",
        }],
    })
}

#[test]
fn sessions_are_as_recorded() {
    let cluster = Sandboxed::start("mcp-sessions");
    cluster.sync("shop", failing());
    let writes = std::env::var_os("MOORLINE_WRITE_DOCS").is_some_and(|value| value == "1");
    for (name, arguments) in [("handshake.txt", &[][..]), ("reading.txt", &[]), ("logs.txt", &["--logs"])] {
        let recorded = std::fs::read_to_string(file(name)).unwrap();
        let given: Vec<(&[u8], usize)> = recorded
            .lines()
            .filter_map(|line| {
                let text = |line: &'_ str| line.len() - line.trim_start_matches(['>', '~', ' ']).len();
                match line.chars().next() {
                    Some('>') => Some((&line.as_bytes()[text(line)..], 1)),
                    Some('~') => Some((&line.as_bytes()[text(line)..], 0)),
                    _ => None,
                }
            })
            .collect();
        let answers = cluster.converse(arguments, &given);
        let mut answers = answers.iter().map(|answer| stable(answer, &cluster.commit));
        let mut whole = String::new();
        for line in recorded.lines().filter(|line| !line.starts_with('<')) {
            whole += &format!("{line}\n");
            if line.starts_with('>') {
                whole += &format!("< {}\n", answers.next().unwrap());
            }
        }
        if writes {
            std::fs::write(file(name), &whole).unwrap();
            continue;
        }
        for (said, expect) in whole.lines().zip(recorded.lines()) {
            assert_eq!(said, expect, "{name}: MOORLINE_WRITE_DOCS=1 cargo test --test cli mcp::");
        }
        assert_eq!(whole, recorded, "{name}");
    }
    let asked = cluster.sandbox.take_requests();
    assert!(asked.len() > 5, "{asked:?}");
    let written: Vec<_> = asked.iter().filter(|request| request.method != "GET").collect();
    assert!(written.is_empty(), "nothing is written: {written:?}");
}

/// An answer without what differs from run to run.
fn stable(answer: &str, commit: &str) -> String {
    let answer = answer.replace(commit, "COMMIT").replace(&commit[..8], "COMMIT");
    let mut out = answer.replace(&format!("\"{}\"", env!("CARGO_PKG_VERSION")), "\"VERSION\"");
    let mark = r#"\"planHash\":\""#;
    if let Some(at) = out.find(mark).map(|at| at + mark.len()) {
        let hash = &out[at..at + 16];
        assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
        out.replace_range(at..at + 16, "HASH");
    }
    out
}

/// The envelope of an answer, which must be the only content.
fn envelope(answer: &str) -> Value {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{answer}");
    let envelope: Value = serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
    let names: Vec<&String> = envelope.as_object().unwrap().keys().collect();
    assert_eq!(names, ["leftOut", "notice", "tool", "untrusted"]);
    envelope
}

fn call(id: usize, tool: &str, arguments: &Value) -> Vec<u8> {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string().into_bytes()
}

#[test]
fn hostile_texts_stay_data() {
    let corpus = std::fs::read_to_string(file("injections.json")).unwrap();
    let corpus: Vec<String> = serde_json::from_str(&corpus).unwrap();
    assert!(corpus.len() >= 12);
    let all = corpus.join("\n");
    let cluster = Sandboxed::with_value("mcp-hostile", &all, &all);
    let entry = |text: &String| json!({"revision": text, "short": text, "time": "2026-01-02T03:04:05Z", "result": text, "subject": text, "author": text});
    let problem = |text: &String| json!({"object": text, "reason": text, "message": text, "file": text});
    let status = json!({
        "conditions": [{"type": "Ready", "status": "False", "reason": "ApplyFailed", "message": all, "lastTransitionTime": "2026-01-02T03:04:05Z"}],
        "history": corpus.iter().map(entry).collect::<Vec<_>>(),
        "problems": corpus.iter().map(problem).collect::<Vec<_>>(),
    });
    cluster.sync("shop", status);
    let shop = json!({"name": "shop", "namespace": "team"});
    let propose = json!({"name": "shop", "namespace": "team", "action": "rollback", "reason": &corpus[0][..100.min(corpus[0].len())]});
    let calls = [
        ("list_syncs", &json!({})),
        ("why", &shop),
        ("history", &shop),
        ("plan", &shop),
        ("diff", &shop),
        ("propose", &propose),
    ];
    let lines: Vec<Vec<u8>> =
        calls.iter().enumerate().map(|(at, (tool, arguments))| call(at + 1, tool, arguments)).collect();
    let lines: Vec<(&[u8], usize)> =
        [(HELLO, 1)].into_iter().chain(lines.iter().map(|line| (&line[..], 1))).collect();
    let answers = cluster.converse(&[], &lines);
    let notice = envelope(&answers[1])["notice"].clone();
    for (answer, (tool, _)) in answers[1..].iter().zip(calls) {
        assert_eq!(*answer, reveal(answer), "{tool}: a hidden character");
        assert!(!answer.contains(PLANTED), "{tool}");
        let told = envelope(answer);
        assert_eq!((&told["tool"], &told["notice"]), (&json!(tool), &notice), "{tool}");
        if tool == "propose" {
            continue;
        }
        let data = told["untrusted"].to_string();
        for text in corpus.iter().filter(|text| text.len() < 1000) {
            let shown = Value::from(reveal(text)).to_string();
            assert!(data.contains(shown.trim_matches('"')), "{tool} does not show {shown}");
        }
    }
}

#[test]
fn hostile_lines_end_nothing() {
    let cluster = Sandboxed::start("mcp-lines");
    let long = vec![b'x'; (1 << 20) + 1];
    let deep = "[".repeat(50_000).into_bytes();
    let lines: Vec<(&[u8], usize)> = vec![
        (b"\xff\xfe\x00", 1),
        (b"   ", 0),
        (&long, 1),
        (&deep, 1),
        (br#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#, 1),
        (HELLO, 1),
        (br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#, 0),
        (br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#, 0),
        (br#"{"jsonrpc":"2.0","id":"z","method":"ping"}"#, 1),
    ];
    let answers = cluster.converse(&[], &lines);
    let codes: Vec<String> = answers
        .iter()
        .map(|answer| {
            let answer: Value = serde_json::from_str(answer).unwrap();
            format!("{} {}", answer["id"], answer["error"]["code"])
        })
        .collect();
    assert_eq!(codes, ["null -32700", "null -32600", "null -32700", "\"a\" -32600", "0 null", "\"z\" null"]);
}

#[test]
fn a_call_that_is_cancelled_is_not_answered() {
    let cluster = Sandboxed::start("mcp-cancel");
    let longest = Duration::from_secs(3600);
    cluster.sandbox.faults().set(FaultRates { latency: 1000, longest, ..FaultRates::default() });
    let cancel = |id: usize| {
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            .to_string()
            .into_bytes()
    };
    let ping = br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let (first, second) = (call(1, "list_syncs", &json!({})), call(2, "list_syncs", &json!({})));
    let began = Instant::now();
    let lines: Vec<(&[u8], usize)> = vec![(HELLO, 1), (&first, 0), (&second, 0), (&first, 1), (ping, 1)];
    let (one, two) = (cancel(1), cancel(2));
    let answers = cluster.converse(&[], &[&lines[..], &[(&two, 0), (&one, 0)]].concat());
    assert_eq!(answers.len(), 3, "the greeting, the id that is in use, and the ping: {answers:?}");
    assert!(answers[1].contains("in use") && answers[2].contains("\"p\""), "{answers:?}");
    assert!(began.elapsed() < under_load(Duration::from_secs(60)), "nobody waits for a cancelled call");
}
