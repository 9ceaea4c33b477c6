//! An independent reader takes what is written here for the same value.
//!
//! In: values with texts that readers take for something else, values as kubectl reads them, and
//! random ones. Out: nothing, or the value that the crate `serde_yaml` reads differently. That
//! crate resolves scalars by YAML 1.2, and the writer quotes what YAML 1.1 or 1.2 would take for
//! another type. Left out are only integers from 2^63 on: for kubectl they are floats, for the
//! crate integers.

use moorline_yaml::{Dialect, read, write};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Reads a document by the independent reader.
fn independent(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Checks that both readers give the value back.
fn same(value: &Value) {
    let text = write(value);
    assert_eq!(independent(&text), *value, "{text}");
    let ours = read("written.yaml", text.as_bytes(), Dialect::Kubectl).unwrap();
    let ours = ours.first().map_or(&Value::Null, |document| &document.value);
    assert_eq!(ours, value, "{text}");
}

/// Texts that a reader of YAML 1.1 or 1.2 takes for another type, and such as break lines.
const TEXTS: [&str; 58] = [
    "",
    " ",
    "~",
    "null",
    "Null",
    "NULL",
    "true",
    "True",
    "yes",
    "No",
    "on",
    "OFF",
    "y",
    "N",
    "0644",
    "0o17",
    "0x1F",
    "0b11",
    "-0",
    "+1",
    "1_000",
    "1e3",
    "1E-3",
    "1.",
    ".5",
    "1.50",
    ".inf",
    "-.INF",
    ".nan",
    "12:30:45",
    "1:20",
    "2001-12-14",
    "2001-12-14T21:59:43Z",
    "<<",
    "=",
    "- a",
    "? a",
    "a: b",
    "a:",
    "a #b",
    "#a",
    "&a",
    "*a",
    "!a",
    "|",
    ">",
    "'",
    "\"",
    "%a",
    "@a",
    "`a",
    "---",
    "...",
    "{a}",
    "[a]",
    "two\nlines\n",
    "\u{85}\u{2028}\u{feff}",
    "\ta\r\n",
];

#[test]
fn texts_and_numbers_are_read_back() {
    for text in TEXTS {
        same(&json!(text));
        same(&json!({"data": {"value": text, "list": [text, {"deeper": text}]}}));
        same(&json!({ text: 1, "z": { text: [text] } }));
    }
    for number in [
        json!(0),
        json!(-1),
        json!(420),
        json!(i64::MIN),
        json!(i64::MAX),
        json!(0.1),
        json!(-1.5),
        json!(1e-7),
        json!(1e300),
        json!(5e-324),
        json!(1.7976931348623157e308),
        json!(true),
        json!(null),
    ] {
        same(&number);
        same(&json!({"number": number, "list": [number, [number]]}));
    }
}

#[test]
fn values_of_recorded_documents_are_read_back() {
    let recorded = include_str!("../../../../tests/yaml/recorded.json");
    let recorded: Value = serde_json::from_str(recorded).unwrap();
    let mut count = 0;
    for case in recorded.as_object().unwrap().values() {
        let values = case["kubectl"].as_array().into_iter().flatten();
        for value in values.filter(|value| !has_large_integer(value)) {
            same(value);
            count += 1;
        }
    }
    assert!(count > 150, "{count}");
}

/// True if a value has an integer from 2^63 on.
fn has_large_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_u64() && number.as_i64().is_none(),
        Value::Array(items) => items.iter().any(has_large_integer),
        Value::Object(fields) => fields.values().any(has_large_integer),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => prop::sample::select(&TEXTS[..]).prop_map(str::to_owned),
        1 => "[ -~\\n\\t]{0,6}",
        1 => "[0-9a-fox.:+_-]{0,8}",
        1 => "\\PC{0,3}",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

/// Values as kubectl reads them: a float that is whole and below 2^64 would be an integer.
fn value() -> impl Strategy<Value = Value> {
    let is_kept = |float: &f64| float.is_finite() && (float.fract() != 0.0 || float.abs() > 2e19);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("a number that stays a float", is_kept).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_values_are_read_back(value in value()) {
        same(&value);
    }
}
