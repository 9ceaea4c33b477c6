//! Output of `kubectl get`: the `Table` of `meta.k8s.io/v1`.
//!
//! In: objects of one kind, the printer columns of custom resources, and the current time.
//! Out: column definitions, and a row for each object. The built-in columns are in `columns.txt`.
//! Column descriptions are empty: kubectl does not print them.

mod cells;
mod duration;
mod json_path;
mod networks;
mod pods;
mod workloads;

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};

/// Part of its object that a row includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowObject {
    /// No object.
    None,
    /// The metadata, which is the default of the server.
    Metadata,
    /// The whole object.
    Object,
}

/// Returns the table for objects of one kind. `columns` are the `additionalPrinterColumns` of a
/// custom resource version, an empty list if it has none, `None` for built-in kinds. The caller
/// adds the list metadata.
pub(crate) fn table(
    group: &str,
    kind: &str,
    columns: Option<&Value>,
    objects: &[&Value],
    include: RowObject,
    now: Timestamp,
) -> Value {
    let shown = match columns {
        Some(columns) => custom(columns),
        None => builtin(group, kind),
    };
    let rows: Vec<_> = objects.iter().map(|object| row(&shown, kind, object, include, now)).collect();
    let definitions: Vec<_> = shown.iter().map(Column::definition).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
        "columnDefinitions": definitions, "rows": rows,
    })
}

fn row(columns: &[Column], kind: &str, object: &Value, include: RowObject, now: Timestamp) -> Value {
    let cells: Vec<_> = columns.iter().map(|column| column.cell.show(object, now)).collect();
    let carried = match include {
        RowObject::None => Value::Null,
        RowObject::Object => object.clone(),
        RowObject::Metadata => json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
        }),
    };
    let mut row = json!({"cells": cells, "object": carried});
    let message = match object["status"]["phase"].as_str() {
        _ if kind != "Pod" => return row,
        Some("Succeeded") => "The pod has completed successfully.",
        Some("Failed") => "The pod failed.",
        _ => return row,
    };
    let reason = &object["status"]["phase"];
    row["conditions"] =
        json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]);
    row
}

struct Column {
    title: String,
    kind: String,
    format: String,
    priority: i64,
    cell: Cell,
}

#[derive(Clone)]
enum Cell {
    Path {
        path: &'static str,
        otherwise: Value,
        as_text: bool,
    },
    Count(&'static str),
    Shown(cells::CellFn),
    /// Column of a custom resource: path and type.
    Custom(String, String),
}

impl Column {
    fn definition(&self) -> Value {
        json!({
            "name": self.title, "type": self.kind, "format": self.format, "description": "", "priority": self.priority,
        })
    }

    fn name() -> Self {
        let cell = Cell::Path { path: "metadata.name", otherwise: json!(""), as_text: false };
        Self {
            title: "Name".to_owned(),
            kind: "string".to_owned(),
            format: "name".to_owned(),
            priority: 0,
            cell,
        }
    }
}

impl Cell {
    fn show(&self, object: &Value, now: Timestamp) -> Value {
        match self {
            Self::Path { path, otherwise, as_text } => match at(object, path) {
                Value::Null => otherwise.clone(),
                Value::String(text) if text.is_empty() => otherwise.clone(),
                Value::Number(number) if *as_text => number.to_string().into(),
                value => value.clone(),
            },
            Self::Count(path) => {
                let found = at(object, path);
                found
                    .as_array()
                    .map(Vec::len)
                    .or(found.as_object().map(serde_json::Map::len))
                    .unwrap_or(0)
                    .into()
            }
            Self::Shown(show) => show(object, now),
            Self::Custom(path, kind) => {
                json_path::find(object, path).map_or(Value::Null, |it| custom_cell(it, kind, now))
            }
        }
    }
}

/// Returns the value at a path of field names.
fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |node, name| &node[name])
}

/// Returns the columns of a custom resource.
fn custom(columns: &Value) -> Vec<Column> {
    let mut all = vec![Column::name()];
    let age = json!([{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]);
    let columns = if columns.as_array().is_none_or(Vec::is_empty) { &age } else { columns };
    for column in columns.as_array().into_iter().flatten() {
        let text = |field: &str| column[field].as_str().unwrap_or_default().to_owned();
        all.push(Column {
            title: text("name"),
            kind: text("type"),
            format: text("format"),
            priority: column["priority"].as_i64().unwrap_or(0),
            cell: Cell::Custom(text("jsonPath"), text("type")),
        });
    }
    all
}

/// Converts a value to the type of its column; null if the types do not match.
fn custom_cell(value: &Value, kind: &str, now: Timestamp) -> Value {
    match (kind, value) {
        (_, Value::Null) => Value::Null,
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().map_or(Value::Null, |it| Value::from(it.trunc() as i64)),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) | ("string", Value::String(_)) => {
            value.clone()
        }
        ("string", value) => value.to_string().into(),
        ("date", Value::String(text)) if text.parse::<Timestamp>().is_ok() => {
            duration::since(value, now).into()
        }
        ("date", Value::String(_)) => "<invalid>".into(),
        _ => Value::Null,
    }
}

static COLUMNS: LazyLock<HashMap<(&str, &str), Vec<&str>>> = LazyLock::new(|| {
    let mut sections: HashMap<_, Vec<_>> = HashMap::new();
    let mut section = ("", "");
    for line in include_str!("columns.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line.strip_prefix("KIND ").and_then(|it| it.split_once(' ')) {
            Some((group, kind)) => section = (if group == "core" { "" } else { group }, kind),
            None => sections.entry(section).or_default().push(line),
        }
    }
    sections
});

fn builtin(group: &str, kind: &str) -> Vec<Column> {
    // Events of both groups have the same columns.
    let group = if group == "events.k8s.io" { "" } else { group };
    let Some(lines) = COLUMNS.get(&(group, kind)) else {
        let made = Cell::Path { path: "metadata.creationTimestamp", otherwise: Value::Null, as_text: false };
        let column = Column {
            title: "Created At".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            priority: 0,
            cell: made,
        };
        return vec![Column::name(), column];
    };
    let mut all: Vec<_> = lines.iter().filter_map(|line| column(line)).collect();
    if !all.iter().any(|it| it.title == "Name") {
        all.insert(0, Column::name());
    }
    all
}

/// Parses a line of the table.
fn column(line: &'static str) -> Option<Column> {
    let mut parts = line.split(" | ");
    let (title, cell, kind) = (parts.next()?, parts.next()?, parts.next().unwrap_or("string"));
    let wide = title.ends_with('*');
    let title = title.trim_end_matches('*');
    let zero = match kind {
        "integer" => json!(0),
        "boolean" => json!(false),
        _ => json!(""),
    };
    let cell = if let Some(path) = cell.strip_prefix('#') {
        Cell::Count(path)
    } else if let Some(name) = cell.strip_prefix('@') {
        Cell::Shown(
            cells::named(name)
                .or_else(|| networks::named(name))
                .or_else(|| pods::named(name))
                .or_else(|| workloads::named(name))?,
        )
    } else {
        let (path, otherwise) = cell.split_once(" ?? ").map_or((cell, zero), |(path, text)| {
            (path, serde_json::from_str(text).unwrap_or_else(|_| json!(text)))
        });
        let as_text = path.starts_with('$');
        Cell::Path { path: path.trim_start_matches('$'), otherwise, as_text }
    };
    // The `Attacher` column has this format, too.
    let named = matches!(title, "Name" | "Attacher");
    Some(Column {
        title: title.to_owned(),
        kind: kind.to_owned(),
        format: if named { "name" } else { "" }.to_owned(),
        priority: i64::from(wide),
        cell,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_column() {
        let unread: Vec<_> = COLUMNS.values().flatten().filter(|line| column(line).is_none()).collect();
        assert!(unread.is_empty(), "{unread:#?}");
    }

    /// Output of a real API server, recorded by `tests/sandbox/sandbox_kinds.rs`.
    #[test]
    fn rows_are_those_of_the_server() {
        let mut wrong = Vec::new();
        for line in include_str!("../../../../tests/sandbox_kinds/shown.jsonl").lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let object = &case["object"];
            let version = object["apiVersion"].as_str().unwrap();
            let group = version.split_once('/').map_or("", |(group, _)| group);
            let now = case["now"].as_str().unwrap().parse().unwrap();
            let made = table(group, object["kind"].as_str().unwrap(), None, &[object], RowObject::None, now);
            let mut definitions = made["columnDefinitions"].clone();
            definitions.as_array_mut().unwrap().iter_mut().for_each(|it| {
                it.as_object_mut().unwrap().remove("description");
            });
            if definitions != case["columns"] {
                wrong.push(format!("{}: {definitions}\n    server {}", object["kind"], case["columns"]));
            }
            if made["rows"][0]["cells"] != case["cells"] {
                let name = &object["metadata"]["name"];
                wrong.push(format!(
                    "{} {name}: {}\n    server {}",
                    object["kind"], made["rows"][0]["cells"], case["cells"]
                ));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn custom_resources_show_what_their_definition_prints() {
        let object = json!({
            "metadata": {"name": "a", "creationTimestamp": "2024-01-01T00:00:00Z"},
            "spec": {"engine": "mysql", "replicas": 3, "labels": {"a": "b"}, "share": 0.5, "on": true, "at": "soon"},
        });
        let columns = json!([
            {"name": "Engine", "type": "string", "jsonPath": ".spec.engine"},
            {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
            {"name": "Labels", "type": "string", "jsonPath": ".spec.labels"},
            {"name": "Share", "type": "number", "jsonPath": ".spec.share"},
            {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
            {"name": "Wrong", "type": "integer", "jsonPath": ".spec.engine"},
            {"name": "None", "type": "string", "jsonPath": ".spec.none"},
            {"name": "At", "type": "date", "jsonPath": ".spec.at"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ]);
        let now = "2024-01-01T00:00:30Z".parse().unwrap();
        let made = table("example.com", "Database", Some(&columns), &[&object], RowObject::Metadata, now);
        assert_eq!(
            made["rows"][0]["cells"],
            json!(["a", "mysql", 3, "{\"a\":\"b\"}", 0.5, true, null, null, "<invalid>", "30s"])
        );
        assert_eq!(made["columnDefinitions"][2]["priority"], 1);
        assert_eq!(made["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        let made = table("example.com", "Database", Some(&json!([])), &[&object], RowObject::None, now);
        assert_eq!(made["rows"][0]["cells"], json!(["a", "30s"]));
        assert_eq!(made["columnDefinitions"][1]["type"], "date");
    }
}
