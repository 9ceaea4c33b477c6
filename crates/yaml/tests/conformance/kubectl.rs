//! Every recorded input is read as kubectl and Kustomize read it.
//!
//! In: `tests/yaml/inputs.json`, the answers of the tools in `tests/yaml/recorded.json` (written by
//! `record.py`), and `exceptions.json`: the rows where a reader's part is not the whole tool's,
//! each with the value to expect and the reason. No row is skipped, and an exception that is none
//! any more fails.

#[path = "../../../../tests/numbers/mod.rs"]
mod numbers;

use std::collections::BTreeMap;

use moorline_yaml::{Dialect, locate, read};
use numbers::normal;
use serde_json::Value;

#[derive(serde::Deserialize)]
struct Input {
    id: String,
    r#where: String,
    input: String,
}

/// Result of a tool for an input.
#[derive(Debug, PartialEq, serde::Deserialize)]
#[serde(untagged)]
enum Answer {
    Refused { refused: String },
    Objects(Vec<Value>),
}

#[derive(serde::Deserialize)]
struct Answers {
    kubectl: Answer,
    kustomize: Answer,
}

#[derive(serde::Deserialize)]
struct Exception {
    kubectl: Option<Answer>,
    kustomize: Option<Answer>,
    why: String,
}

/// Number of inputs: a lost row must not go unseen.
const INPUTS: usize = 531;

const HEAD: &str = "apiVersion: example.com/v1\nkind: Probe\nmetadata:\n  name: p\nspec:\n  v:";

fn inputs() -> Vec<(String, String)> {
    let inputs: Vec<Input> =
        serde_json::from_str(include_str!("../../../../tests/yaml/inputs.json")).expect("inputs.json");
    let text = |input: Input| match input.r#where.as_str() {
        "scalar" => (input.id, format!("{HEAD} {}\n", input.input)),
        "key" => (input.id, format!("{HEAD}\n    {}\n", input.input)),
        _ => (input.id, input.input),
    };
    inputs.into_iter().map(text).collect()
}

fn answer(text: &str, dialect: Dialect) -> Answer {
    match read("in.yaml", text.as_bytes(), dialect) {
        Ok(documents) => Answer::Objects(documents.into_iter().map(|document| document.value).collect()),
        Err(error) => Answer::Refused { refused: error.to_string() },
    }
}

fn agree(found: &Answer, expect: &Answer) -> bool {
    let normal = |objects: &[Value]| -> Vec<_> { objects.iter().cloned().map(normal).collect() };
    match (found, expect) {
        (Answer::Refused { .. }, Answer::Refused { .. }) => true,
        (Answer::Objects(found), Answer::Objects(expect)) => normal(found) == normal(expect),
        (_, _) => false,
    }
}

#[test]
fn every_input_is_read_as_the_tools_read_it() {
    let recorded: BTreeMap<String, Answers> =
        serde_json::from_str(include_str!("../../../../tests/yaml/recorded.json")).expect("recorded.json");
    let exceptions: BTreeMap<String, Exception> =
        serde_json::from_str(include_str!("../../../../tests/yaml/exceptions.json"))
            .expect("exceptions.json");
    let inputs = inputs();
    assert_eq!((inputs.len(), recorded.len()), (INPUTS, INPUTS));
    let known = |id: &String| inputs.iter().any(|(input, _)| input == id);
    assert!(exceptions.keys().all(known), "an exception for no input");

    let mut wrong = Vec::new();
    for (id, text) in &inputs {
        let (answers, exception) = (&recorded[id], exceptions.get(id));
        let rows = [
            (Dialect::Kubectl, &answers.kubectl, exception.and_then(|row| row.kubectl.as_ref())),
            (Dialect::Kustomize, &answers.kustomize, exception.and_then(|row| row.kustomize.as_ref())),
        ];
        for (dialect, recorded, excepted) in rows {
            let found = answer(text, dialect);
            let needless = excepted.is_some_and(|excepted| agree(excepted, recorded));
            assert!(!needless, "{id} {dialect:?} is no exception any more");
            if !agree(&found, excepted.unwrap_or(recorded)) {
                let why = exception.map_or("", |row| &row.why);
                wrong.push(format!(
                    "{id} {dialect:?}: {found:?}\n    expected {:?} {why}",
                    excepted.unwrap_or(recorded)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_refusal_names_a_place_inside_the_file() {
    for (id, text) in inputs() {
        for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
            let Err(error) = read("in.yaml", text.as_bytes(), dialect) else {
                continue;
            };
            let lines = text.lines().count() as u32;
            assert_eq!(error.file(), "in.yaml");
            assert!((1..=lines + 1).contains(&error.line()) && error.column() >= 1, "{id}: {error}");
            let place = format!("in.yaml:{}:{}: ", error.line(), error.column());
            assert!(error.to_string().starts_with(&place), "{id}: {error}");
        }
    }
}

#[test]
fn every_field_of_the_outermost_map_is_found() {
    for (id, text) in inputs() {
        for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
            for document in read("in.yaml", text.as_bytes(), dialect).unwrap_or_default() {
                let start =
                    locate(text.as_bytes(), dialect, document.index, &[]).expect("a document has a place");
                assert_eq!(start.line, document.line, "{id} {dialect:?}");
            }
        }
    }
}
