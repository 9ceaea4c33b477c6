//! docs/sync.md is the definition of Syncs as a page: every field, with its type, default, bounds and description.
//!
//! In: the definition that the program prints. Out: the page, compared with the one in docs/, or written to it where
//! `MOORLINE_WRITE_DOCS` is 1. So the page cannot say anything that the API server does not enforce.

mod json_schema;
mod schemas;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};

/// The page, in the repository.
const PAGE: &str = "docs/sync.md";

const OPENING: &str = "# The fields of a Sync\n\n\
    ```yaml\n\
    apiVersion: moorline.dev/v1alpha1\n\
    kind: Sync\n\
    metadata: {name: shop, namespace: moorline}\n\
    spec:\n  source: {git: {url: https://example.com/shop.git}}\n  path: ./clusters/prod\n\
    ```\n\n\
    [config/samples/sync.yaml](../config/samples/sync.yaml) is an example with all fields, and [concepts.md](concepts.md) explains the \
    concepts behind them. On a cluster, `kubectl explain sync.spec` shows this reference.\n\n\
    `kubectl apply` refuses unknown fields, and names them. Durations are written as `30s`, `5m` or `1h30m`.\n\n\
    This page is generated from the CRD that `moorline crd` prints, and a test compares the two. After a change, \
    `MOORLINE_WRITE_DOCS=1 cargo test --test cli reference::` generates it again.\n";

#[test]
fn the_page_shows_every_field_of_the_definition() {
    let definition = moorline::api::definition().expect("the definition is JSON");
    let page = page(&definition);
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("MOORLINE_WRITE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&place, &page).expect("the page can be written");
    }
    let shown = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(
        shown == page,
        "{PAGE} is not what the definition says; write it anew with\n\n    \
         MOORLINE_WRITE_DOCS=1 cargo test --test cli reference::\n"
    );
}

/// The whole page.
fn page(definition: &Value) -> String {
    let names = &definition["spec"]["names"];
    let version = &definition["spec"]["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut page = OPENING.to_owned();
    let (group, version_name) = (word(&definition["spec"]["group"]), word(&version["name"]));
    let _ = write!(
        page,
        "\n`apiVersion: {group}/{version_name}`, `kind: {}`, in a namespace; `kubectl get {}` for short. {}\n",
        word(&names["kind"]),
        word(&names["shortNames"][0]),
        rules_of(schema).iter().map(|rule| sentence(rule)).collect::<Vec<_>>().join(" "),
    );
    page += "\n| column of `kubectl get` | what it shows |\n|---|---|\n";
    for column in list(&version["additionalPrinterColumns"]) {
        let wide = if column["priority"] == 1 { ", with `-o wide`" } else { "" };
        let path = word(&column["jsonPath"]).replace('|', "\\|");
        let _ = writeln!(page, "| {} | `{path}`{wide} |", word(&column["name"]));
    }
    for part in ["spec", "status"] {
        section(&mut page, part, &schema["properties"][part]);
    }
    page
}

/// The table of one object of the schema, and then those of the objects in it.
fn section(page: &mut String, path: &str, schema: &Value) {
    let depth = if path.contains('.') { "###" } else { "##" };
    let _ = write!(page, "\n{depth} {path}\n\n{}\n", text(schema));
    for rule in rules_of(schema) {
        let _ = write!(page, "\n- {}\n", sentence(rule));
    }
    page.push_str("\n| field | type | default | limits | meaning |\n|---|---|---|---|---|\n");
    let empty = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&empty);
    let required: Vec<&str> = list(&schema["required"]).iter().map(word).collect();
    for (name, field) in fields {
        let default = match (required.contains(&name.as_str()), field.get("default")) {
            (true, _) => "required".to_owned(),
            (false, Some(default)) => format!("`{default}`"),
            (false, None) => String::new(),
        };
        let cells = [format!("`{name}`"), kind(field), default, bounds(field).join("; "), text(field)];
        let _ = writeln!(page, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    for (name, field) in fields {
        let (inner, mark) = if field["type"] == "array" { (&field["items"], "[]") } else { (field, "") };
        if inner["properties"].is_object() {
            section(page, &format!("{path}.{name}{mark}"), inner);
        }
    }
}

/// The type, or what it may be.
fn kind(schema: &Value) -> String {
    let values: Vec<String> =
        list(&schema["enum"]).iter().map(|value| format!("`{}`", word(value))).collect();
    match word(&schema["type"]) {
        _ if !values.is_empty() => values.join(", "),
        "array" => format!("list of {}", kind(&schema["items"])),
        "string" if schema["format"] == "date-time" => "time".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns the API server's bounds of a value, in the words of the rules where there are some.
fn bounds(schema: &Value) -> Vec<String> {
    let given =
        |schema: &Value, low: &str, high: &str, of: &str| match (schema[low].as_i64(), schema[high].as_i64())
        {
            (Some(low), Some(high)) => Some(format!("{low} to {high}{of}")),
            (None, Some(high)) => Some(format!("at most {high}{of}")),
            (Some(low), None) => Some(format!("at least {low}{of}")),
            (None, None) => None,
        };
    let items = &schema["items"];
    let mut bounds: Vec<String> = [
        given(schema, "minimum", "maximum", ""),
        given(schema, "minLength", "maxLength", " characters"),
        given(schema, "minItems", "maxItems", " entries"),
        given(items, "minLength", "maxLength", " characters each"),
    ]
    .into_iter()
    .flatten()
    .collect();
    // The rules of an object head its own table.
    if !schema["properties"].is_object() {
        bounds.extend(rules_of(schema).into_iter().map(str::to_owned));
    }
    bounds
}

/// Returns the messages of a schema's rules.
fn rules_of(schema: &Value) -> Vec<&str> {
    list(&schema["x-kubernetes-validations"]).iter().map(|rule| word(&rule["message"])).collect()
}

/// A rule as a sentence.
fn sentence(rule: &str) -> String {
    let mut letters = rule.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

fn text(schema: &Value) -> String {
    word(&schema["description"]).replace('\n', " ")
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[test]
fn a_field_is_shown_with_all_that_is_asked_of_it() {
    let name = serde_json::json!({
        "type": "string", "minLength": 1, "maxLength": 9, "default": "a|b", "description": "Its name.",
        "x-kubernetes-validations": [{"rule": "true", "message": "write a name"}],
    });
    let mode = serde_json::json!({"type": "string", "enum": ["A", "B"], "description": "How."});
    let inner = serde_json::json!({"type": "object", "description": "One.", "properties": {"mode": mode}});
    let whole = serde_json::json!({
        "type": "object", "description": "All of it.", "required": ["list"],
        "properties": {
            "list": {"type": "array", "maxItems": 3, "items": inner, "description": "Some."}, "name": name,
        },
        "x-kubernetes-validations": [{"rule": "true", "message": "write both"}],
    });
    let mut page = String::new();
    section(&mut page, "spec", &whole);
    let head = "| field | type | default | limits | meaning |\n|---|---|---|---|---|\n";
    let expect = format!(
        "\n## spec\n\nAll of it.\n\n- Write both.\n\n{head}\
         | `list` | list of object | required | at most 3 entries | Some. |\n\
         | `name` | string | `\"a\\|b\"` | 1 to 9 characters; write a name | Its name. |\n\
         \n### spec.list[]\n\nOne.\n\n{head}| `mode` | `A`, `B` |  |  | How. |\n"
    );
    assert_eq!(page, expect);
}
