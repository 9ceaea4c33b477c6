//! The examples are sound, and what `docs/systems.md` says of them is what they and the code say.
//!
//! In: the folders below `examples/`, the table of systems that the tests on a real API server go by, and the document. Out:
//! nothing, or the first difference.

#[path = "../cluster_systems/systems/databases.rs"]
mod databases;
#[path = "../cluster_systems/systems/table.rs"]
#[expect(dead_code, reason = "the tests on a real API server use the rest of it")]
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use moorline::health::{Context, health};
use moorline::object::GroupKind;
use moorline::plan::{Policy, guarded_kinds, protected_kinds_by_loss};
use serde_json::{Map, Value, json};
use table::{Resource, SYSTEMS, System};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn moorline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_moorline")).args(arguments).current_dir(root()).output().unwrap()
}

/// Every folder below `examples/` that has manifests of its own.
fn folders() -> Vec<String> {
    let (mut open, mut found) = (vec![root().join("examples")], Vec::new());
    while let Some(place) = open.pop() {
        let entries: Vec<PathBuf> =
            std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()).collect();
        if entries.iter().any(|path| path.extension().is_some_and(|it| it == "yaml")) {
            found.push(place.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
        }
        open.extend(entries.into_iter().filter(|path| path.is_dir()));
    }
    found.sort();
    found
}

/// The objects of an example, as the real binary renders them.
fn rendered(folder: &str) -> Vec<Value> {
    let output = moorline(&["render", folder, "--output", "json"]);
    assert!(output.status.success(), "{folder}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_example_is_sound() {
    let folders = folders();
    assert!(folders.len() > SYSTEMS.len(), "{folders:?}");
    for folder in &folders {
        let checked = moorline(&["check", folder]);
        assert!(checked.status.success(), "{folder}: {}", String::from_utf8_lossy(&checked.stderr));
        assert!(!rendered(folder).is_empty(), "{folder}");
    }
}

fn places() -> Vec<(&'static System, &'static Resource)> {
    SYSTEMS
        .iter()
        .flat_map(|system| system.resources.iter().map(move |resource| (system, resource)))
        .collect()
}

/// The manifest of a resource in its example.
fn manifest(system: &System, resource: &Resource) -> Map<String, Value> {
    let version = format!("{}/{}", resource.group, resource.version);
    let objects = rendered(&format!("examples/operators/{}", system.folder));
    let found = objects.into_iter().find(|it| it["apiVersion"] == *version && it["kind"] == resource.kind);
    let found = found.unwrap_or_else(|| panic!("{} is not in its example", resource.shown()));
    assert_eq!(found["metadata"]["name"], resource.name);
    found.as_object().unwrap().clone()
}

#[test]
fn statuses_of_the_table_mean_what_they_are_there_for() {
    for (system, resource) in places() {
        let Some(told) = &resource.told else { continue };
        let kind = GroupKind::new(resource.group, resource.kind);
        let mut body = manifest(system, resource);
        body["metadata"]["generation"] = 1.into();
        // Each is written over the one before, as operators do.
        let mut now = Map::new();
        let mut check = |status: &str, expect: &str| {
            now.extend(serde_json::from_str::<Map<String, Value>>(status).unwrap());
            body.insert("status".to_owned(), now.clone().into());
            let health = health(&kind, &body, &Context::default());
            assert_eq!(health.name(), expect, "{}: {status}", resource.shown());
            health.message().unwrap_or_default().to_owned()
        };
        check(told.on_its_way, "Progressing");
        check(told.well, "Healthy");
        if !told.words.is_empty() {
            let why = check(told.broken, "Degraded");
            assert!(why.contains(told.words), "{}: {why}", resource.shown());
        }
    }
}

/// The rows of a table of the document, by the heading that it stands under, as cells.
fn table(document: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, rest) = document.split_once(heading).unwrap_or_else(|| panic!("no {heading:?}"));
    let part = rest.split("\n## ").next().unwrap();
    let rows = part.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

fn document() -> String {
    std::fs::read_to_string(root().join("docs/systems.md")).unwrap()
}

#[test]
fn the_document_says_of_systems_what_the_code_says() {
    let protected = Policy::default().protected;
    let rows = table(&document(), "# Operators, and kinds that hold data");
    let mut shown: BTreeMap<String, &[String]> = BTreeMap::new();
    for row in &rows {
        let kind = row[1].trim_matches('`').to_owned();
        assert!(shown.insert(kind.clone(), row).is_none(), "{kind} twice");
    }
    for (system, resource) in places() {
        let kind = format!("{}/{} {}", resource.group, resource.version, resource.kind);
        let row = shown.remove(&kind).unwrap_or_else(|| panic!("no row has `{kind}`"));
        let is_protected = protected.contains(&GroupKind::new(resource.group, resource.kind));
        assert_eq!(is_protected, resource.holds_data, "{kind}");
        assert_eq!(row[3], if is_protected { "yes" } else { "no" }, "{kind}");
        let folder = format!("examples/operators/{}", system.folder);
        assert_eq!(row[4], format!("[{}](../{folder})", system.folder), "{kind}");
        assert!(root().join(folder).is_dir());
        // Every field and condition that the sentence names is in a status that the code calls healthy.
        let words: Vec<&str> = row[2].split('`').skip(1).step_by(2).collect();
        let well = resource.told.as_ref().map_or("", |told| told.well);
        assert_eq!(words.iter().find(|word| !well.contains(**word)), None, "{kind}: {}", row[2]);
        assert_eq!(words.is_empty(), resource.told.is_none(), "{kind}: {}", row[2]);
    }
    assert!(shown.is_empty(), "{shown:?} are in no example");
}

#[test]
fn the_document_lists_what_goes_only_by_approval() {
    let mut expect: Vec<(String, Vec<String>)> = Vec::new();
    for (lost, kind) in protected_kinds_by_loss() {
        let kind = format!("`{kind}`");
        match expect.last_mut().filter(|(last, _)| last == lost) {
            Some((_, kinds)) => kinds.push(kind),
            None => expect.push((lost.to_owned(), vec![kind])),
        }
    }
    let expect: Vec<Vec<String>> =
        expect.into_iter().map(|(lost, kinds)| vec![lost, kinds.join(", ")]).collect();
    let shown = table(&document(), "## Kinds that are deleted only with approval");
    let print = |rows: &[Vec<String>]| -> String {
        rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect()
    };
    assert!(shown == expect, "docs/systems.md should show\n\n{}", print(&expect));
}

#[test]
fn the_document_lists_what_goes_only_by_approval_where_a_field_says_so() {
    let expect: Vec<Vec<String>> =
        guarded_kinds().map(|(kind, when)| vec![format!("`{kind}`"), when.to_owned()]).collect();
    assert_eq!(table(&document(), "## Kinds that need approval depending on a field"), expect);
}

#[test]
fn a_table_is_read_by_its_heading() {
    let text = "# A\n| x |\n|---|\n| 1 |\n\n## B\n| y | z |\n|---|---|\n| `2` | 3 |\n\n## C\n| 4 |\n";
    assert_eq!(json!(table(text, "# A")), json!([["1"]]));
    assert_eq!(json!(table(text, "## B")), json!([["`2`", "3"]]));
}
