//! Decides if a schema may replace another one of the same version.
//!
//! In: the schema of the last release and the one of now. Out: each change that breaks a reader: a
//! field that is gone, that has another type, or that may be missing now. Fields and words may be
//! added, and descriptions may change.

use std::collections::BTreeSet;

use serde_json::Value;

/// Returns the changes that need a new version, each with the path of the field.
pub fn breaking_changes(before: &Value, now: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", before, now, &mut found);
    found
}

fn compare(path: &str, before: &Value, now: &Value, found: &mut Vec<String>) {
    let name = if path.is_empty() { "the document" } else { path };
    let (known, given) = (types(before), types(now));
    // Without a type, a reader has to expect anything.
    if !known.is_empty() && (given.is_empty() || !given.is_subset(&known)) {
        found.push(format!("{name} was {}, and is {}", shown(&known), shown(&given)));
    }
    let always = names(now);
    for (field, schema) in before["properties"].as_object().into_iter().flatten() {
        let inner = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
        match now["properties"].get(field) {
            None => found.push(format!("{inner} is gone")),
            Some(changed) => {
                if names(before).contains(field.as_str()) && !always.contains(field.as_str()) {
                    found.push(format!("{inner} may be missing"));
                }
                compare(&inner, schema, changed, found);
            }
        }
    }
    if before["items"].is_object() {
        compare(&format!("{path}[]"), &before["items"], &now["items"], found);
    }
}

/// The types that a schema allows; none if it allows all.
fn types(schema: &Value) -> BTreeSet<&str> {
    match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

fn names(schema: &Value) -> BTreeSet<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn shown(types: &BTreeSet<&str>) -> String {
    match types.is_empty() {
        true => "anything".to_owned(),
        false => types.iter().copied().collect::<Vec<_>>().join(" or "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::parts::{any, flag, list, nullable, number, object, text, word};
    use super::*;

    #[test]
    fn only_what_a_reader_can_rely_on_is_kept() {
        let base =
            || object(&[("a", text()), ("b", list(object(&[("c", number())], &[])))], &[("d", flag())]);
        let check = |before: Value, now: Value, expect: &[&str]| {
            assert_eq!(breaking_changes(&before, &now), expect, "{before} {now}");
        };
        check(base(), base(), &[]);
        // Additions, descriptions and promises of more.
        check(
            base(),
            object(
                &[("a", text()), ("b", base()["properties"]["b"].clone()), ("d", flag())],
                &[("e", text())],
            ),
            &[],
        );
        let mut described = base();
        described["properties"]["a"]["description"] = json!("A name.");
        check(base(), described, &[]);
        check(word(&["x"]), word(&["x", "y"]), &[]);
        check(nullable(text()), text(), &[]);
        check(any("anything"), text(), &[]);
        // Removals, other types and weaker promises.
        check(base(), object(&[("a", text())], &[("d", flag())]), &["b is gone"]);
        let inner = |c: Value| object(&[("a", text()), ("b", list(c))], &[("d", flag())]);
        check(base(), inner(object(&[("c", text())], &[])), &["b[].c was integer, and is string"]);
        check(base(), inner(object(&[], &[("c", number())])), &["b[].c may be missing"]);
        check(base(), inner(object(&[], &[])), &["b[].c is gone"]);
        check(text(), nullable(text()), &["the document was string, and is null or string"]);
        check(
            list(text()),
            text(),
            &["the document was array, and is string", "[] was string, and is anything"],
        );
        check(text(), any("anything"), &["the document was string, and is anything"]);
    }
}
