//! The objects of this folder, read.
//!
//! In: the files. Out: each object with its kind and what is to be said of it. A file that is not as it should be stops the
//! test, with the place.

use std::fs;
use std::path::Path;

use moorline::object::GroupKind;
use moorline::yaml::{Dialect, read};
use serde_json::{Map, Value};

/// An object of a kind, and what is to be said of it.
pub(crate) struct Fixture {
    pub(crate) place: String,
    pub(crate) kind: GroupKind,
    pub(crate) body: Map<String, Value>,
    pub(crate) expect: String,
}

/// Every fixture, by file and place in it.
pub(crate) fn all() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/health_kinds");
    let entries = fs::read_dir(folder).expect("the fixtures are there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths.iter().flat_map(|path| of_file(path)).collect()
}

fn of_file(path: &Path) -> Vec<Fixture> {
    let file = path.file_name().expect("a name").to_string_lossy().into_owned();
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let documents = read(&file, &bytes, Dialect::Kubectl).unwrap_or_else(|error| panic!("{error}"));
    let mut found = Vec::new();
    for document in documents {
        let place = format!("{file}:{}", document.line);
        let list =
            |field: &str| document.value[field].as_array().unwrap_or_else(|| panic!("{place}: {field}"));
        for kind in list("kinds") {
            for (at, case) in list("cases").iter().enumerate() {
                found.push(fixture(format!("{place} case {}", at + 1), kind, case));
            }
        }
    }
    found
}

fn fixture(place: String, kind: &Value, case: &Value) -> Fixture {
    let text = kind.as_str().unwrap_or_else(|| panic!("{place}: {kind} is no kind"));
    let (name, group) = text.split_once('.').unwrap_or_else(|| panic!("{place}: {text} has no group"));
    let body = case["body"].as_object().unwrap_or_else(|| panic!("{place}: no body")).clone();
    for condition in
        body.get("status").and_then(|status| status["conditions"].as_array()).into_iter().flatten()
    {
        let status = condition.get("status");
        assert!(status.is_none_or(Value::is_string), "{place}: write \"True\", not True");
    }
    let expect = case["expect"].as_str().unwrap_or_else(|| panic!("{place}: no expect")).to_owned();
    Fixture { place, kind: GroupKind::new(group, name), body, expect }
}
