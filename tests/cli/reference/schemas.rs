//! The schemas in config/schemas are those of the code, and real outputs fit them.
//!
//! In: the code, the files, and outputs of the binary. Out: nothing, or what differs. After a
//! change, `MOORLINE_WRITE_DOCS=1 cargo test --test cli reference::` writes the files; it refuses a
//! change that breaks readers, unless the version is raised in src/cli/schema/documents.rs.

use std::path::{Path, PathBuf};

use moorline::cli::schema::{DOCUMENTS, breaking_changes};
use moorline::journal::{Chain, Change, DriftNote, Entry, Reason};
use moorline::report::board::{LiveDifference, LiveObject, ObjectWriter, RedactedBody};
use moorline::serve::page::{LiveRead, parse_path, respond};
use moorline_test_support::command::{CONFIG_MAP, Folder};
use serde_json::{Value, json};

use super::json_schema::misfits;
use crate::board::{board_with_every_state, id};
use crate::mcp::sandboxed::Sandboxed;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config/schemas")
}

/// Checks a file against the schema of now; returns what to do.
fn judge(committed: Option<&Value>, now: &Value, writes: bool) -> Result<(), String> {
    let Some(committed) = committed else {
        return if writes { Ok(()) } else { Err("is missing".to_owned()) };
    };
    let broken = breaking_changes(committed, now);
    match (broken.is_empty(), writes || committed == now) {
        (false, _) => Err(format!("breaks readers, so raise its version: {}", broken.join("; "))),
        (true, true) => Ok(()),
        (true, false) => Err("is not what the code says".to_owned()),
    }
}

#[test]
fn the_files_are_the_schemas_and_a_break_needs_a_version() {
    let writes = std::env::var_os("MOORLINE_WRITE_DOCS").is_some_and(|value| value == "1");
    let mut names = Vec::new();
    for document in DOCUMENTS {
        let (file, now) = (folder().join(document.file_name()), document.schema());
        let committed = std::fs::read(&file).ok().map(|text| serde_json::from_slice::<Value>(&text).unwrap());
        if let Err(problem) = judge(committed.as_ref(), &now, writes) {
            panic!(
                "config/schemas/{} {problem}\n\n    MOORLINE_WRITE_DOCS=1 cargo test --test cli reference::\n",
                document.file_name()
            );
        }
        if writes {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&file, format!("{now:#}\n")).unwrap();
        }
        names.push((document.name, document.version));
    }
    // A file of an older version may stay; a file of no document may not.
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (stem, version) = name.strip_suffix(".json").and_then(|name| name.rsplit_once(".v")).unwrap();
        let version: u32 = version.parse().unwrap();
        assert!(names.iter().any(|(known, newest)| *known == stem && version <= *newest), "{name}");
    }
    let schema = |kind: &str| json!({"type": "object", "properties": {"a": {"type": kind}}});
    assert!(judge(Some(&schema("string")), &schema("integer"), true).is_err_and(|it| it.contains("raise")));
    assert!(judge(Some(&schema("string")), &json!({"type": "object", "title": "x"}), true).is_err());
    let more = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}});
    assert!(
        judge(Some(&schema("string")), &more, false).is_err()
            && judge(Some(&schema("string")), &more, true).is_ok()
    );
}

/// Checks a value against the schema of a document.
fn fits(name: &str, value: &Value) {
    let schema = DOCUMENTS.iter().find(|document| document.name == name).unwrap().schema();
    assert_eq!(misfits(&schema, value), Vec::<String>::new(), "{name}: {value:#}");
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn outputs_of_commands_fit_their_schemas() {
    let changes = |time: &str| Entry { time: Some(time.to_owned()), ..Entry::default() };
    let whole = Entry {
        change: Some(Change::Updated),
        reason: Reason::DriftRepaired,
        sync: Some("a/b".to_owned()),
        cluster_secret: Some("a/east".to_owned()),
        drift: Some(DriftNote { manager: Some("kubectl".to_owned()), fields: vec!["data.a".to_owned()] }),
        unanswered: Some(true),
        ..changes("2026-01-02T03:04:05.000Z")
    };
    let gap = Entry { reason: Reason::Gap, lost: Some(3), ..changes("2026-01-02T03:04:06.000Z") };
    let mut chain = Chain::default();
    let journal = [whole, gap].map(|entry| chain.append(&entry) + "\n").concat();
    let folder = Folder::new("schemas", &[("app/a.yaml", CONFIG_MAP), ("journal.jsonl", journal.as_bytes())]);
    fits("render", &parse(&folder.moorline(&["render", "app", "-o", "json"]).data));
    let lines = folder.moorline(&["audit", "-o", "json", "journal.jsonl"]).data;
    assert_eq!(lines.lines().count(), 2, "{lines}");
    lines.lines().for_each(|line| fits("audit", &parse(line)));
    fits("artifact", &json!({"url": "oci://a/b", "revision": "v1@sha256:0", "files": 1}));

    let cluster = Sandboxed::start("schemas-cluster");
    cluster.sync("shop", json!({}));
    for (name, arguments) in [
        ("status", &["status", "-n", "team", "-o", "json"][..]),
        ("fleet", &["status", "--fleet", "-o", "json"]),
        ("events", &["events", "shop", "-n", "team", "-o", "json"]),
        ("version", &["version", "-o", "json"]),
        ("doctor", &["doctor", "-o", "json"]),
        ("plan", &["plan", "--sync", "shop", "-n", "team", "-o", "json"]),
        ("plan", &["plan", "--sync", "shop", "-n", "team", "-o", "json", "--show-all"]),
    ] {
        let outcome = cluster.moorline(arguments);
        assert!(outcome.data.starts_with('{'), "{name}: {outcome:?}");
        fits(name, &parse(&outcome.data));
    }
    let listed = folder.moorline(&["schema"]);
    assert_eq!(listed.data.lines().count(), DOCUMENTS.len(), "{listed:?}");
    assert_eq!(parse(&folder.moorline(&["schema", "plan"]).data)["$id"], "urn:moorline:schema:plan:v1");
    assert_eq!(folder.moorline(&["schema", "nothing"]).code, 1);
}

#[test]
fn the_json_of_the_page_fits_its_schemas() {
    let board = board_with_every_state();
    let get = |path: &str, look: Option<LiveRead<'_>>| {
        let answer = respond(&board, &parse_path(path), "", look, jiff_time());
        assert_eq!(answer.status, 200, "{path}");
        parse(&answer.body)
    };
    let all = get("/api/v1/syncs", None);
    fits("api-syncs", &all);
    fits("api-clusters", &get("/api/v1/clusters", None));
    let mut objects = 0;
    let body = RedactedBody { body: json!({"a": 1}), omission: "x" };
    let difference = |values| LiveDifference { path: "data.a".to_owned(), values };
    let writer = ObjectWriter { manager: "m".into(), time: "t".into(), subresource: String::new() };
    let live = LiveObject {
        live: Some(body),
        differences: vec![difference(None), difference(Some((None, Some(json!(1)))))],
        writers: vec![writer],
    };
    let gone = LiveObject { live: None, differences: Vec::new(), writers: Vec::new() };
    for sync in all["syncs"].as_array().unwrap() {
        let one = get(&format!("/api/v1{}", sync["page"].as_str().unwrap()), None);
        fits("api-sync", &one);
        for tab in ["timeline", "diff", "plan", "settings"] {
            let path = format!("/api/v1{}/{tab}", sync["page"].as_str().unwrap());
            fits(&format!("api-sync-{tab}"), &get(&path, None));
        }
        for row in one["objects"].as_array().unwrap().iter().take(2) {
            let path = format!("/api/v1{}", row["page"].as_str().unwrap());
            for look in
                [None, Some(LiveRead::Read(&live)), Some(LiveRead::Read(&gone)), Some(LiveRead::NotRead("y"))]
            {
                fits("api-object", &get(&path, look));
                objects += 1;
            }
        }
    }
    assert!(objects > 8, "{objects} {}", id("/Namespace|/a"));
}

fn jiff_time() -> jiff::Timestamp {
    "2026-11-22T12:00:00Z".parse().unwrap()
}
