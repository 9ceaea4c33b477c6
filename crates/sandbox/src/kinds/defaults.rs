//! Default values that the API server sets.
//!
//! In: a normalized object.
//! Out: the object with the defaults of `defaults.txt`, which [`set_defaults`] evaluates, and those
//! of `derived_defaults.rs`, which no table can express. Defaults are set on every object that is
//! read or written, so setting them twice changes nothing.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::derived_defaults;
use super::field_paths::Path;

/// Sets the defaults of an object.
pub(crate) fn set_defaults(group: &str, kind: &str, object: &mut Value) {
    if let Some(rules) = TABLE.kinds.get(&(group, kind)) {
        fill(rules, object);
    }
}

static TABLE: LazyLock<DefaultTable> = LazyLock::new(|| DefaultTable::read(include_str!("defaults.txt")));

#[derive(Default)]
struct DefaultTable {
    kinds: HashMap<(&'static str, &'static str), Vec<DefaultRule>>,
    shapes: HashMap<&'static str, Vec<DefaultRule>>,
}

struct DefaultRule {
    /// Values that contain the field; for a shape the values themselves.
    path: Path,
    field: &'static str,
    act: Act,
    conditions: Vec<Condition>,
}

enum Act {
    Set { value: Value, over_zero: bool },
    Copy { from: &'static str },
    CopyFromRoot { from: Path },
    Add { from: &'static str },
    Shape(&'static str),
    Derive(derived_defaults::Derive),
}

pub(super) struct Condition {
    path: Path,
    wanted: Wanted,
}

enum Wanted {
    Present,
    Absent,
    Equal(Value),
    Other(Value),
}

fn fill(rules: &[DefaultRule], node: &mut Value) {
    for rule in rules {
        if !rule.conditions.iter().all(|it| it.holds(node)) {
            continue;
        }
        let of_root = match &rule.act {
            Act::CopyFromRoot { from } => from.first(node).cloned(),
            _ => None,
        };
        rule.path.each(node, &mut |place| rule.act_on(place, of_root.as_ref()));
    }
}

impl DefaultRule {
    fn act_on(&self, place: &mut Value, of_root: Option<&Value>) {
        if let Act::Shape(shape) = self.act {
            fill(TABLE.shapes.get(shape).map_or(&[], Vec::as_slice), place);
            return;
        }
        if let Act::Derive(derive) = self.act
            && self.field.is_empty()
        {
            return derive(place, "");
        }
        let Some(holder) = place.as_object_mut() else { return };
        let empty = is_unset(holder.get(self.field));
        match &self.act {
            Act::Set { value, over_zero } => {
                if empty || (*over_zero && holder.get(self.field).and_then(Value::as_i64) == Some(0)) {
                    holder.insert(self.field.to_owned(), value.clone());
                }
            }
            Act::Copy { from } => {
                if let Some(value) =
                    holder.get(*from).filter(|value| empty && !is_unset(Some(value))).cloned()
                {
                    holder.insert(self.field.to_owned(), value);
                }
            }
            Act::CopyFromRoot { .. } => {
                if let Some(value) = of_root.filter(|value| empty && !is_unset(Some(value))) {
                    holder.insert(self.field.to_owned(), value.clone());
                }
            }
            Act::Add { from } => add(holder, self.field, from),
            Act::Shape(_) => {}
            Act::Derive(derive) => derive(place, self.field),
        }
    }
}

/// Adds the entries of one map to another map in the same object.
fn add(holder: &mut Map<String, Value>, field: &str, from: &str) {
    let Some(source) = holder.get(from).and_then(Value::as_object).cloned() else { return };
    let target = holder.entry(field).or_insert_with(|| Value::Object(Map::new()));
    let Some(target) = target.as_object_mut() else { return };
    for (name, value) in source {
        target.entry(name).or_insert(value);
    }
}

/// True if a default replaces the value: it is absent, null or empty text.
pub(crate) fn is_unset(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => false,
    }
}

impl Condition {
    /// True if the condition holds for the value that the rules of a section apply to.
    pub(super) fn holds(&self, node: &Value) -> bool {
        let found = self.path.first(node);
        match &self.wanted {
            Wanted::Present => !is_unset(found),
            Wanted::Absent => is_unset(found),
            Wanted::Equal(value) => found == Some(value),
            Wanted::Other(value) => found != Some(value),
        }
    }

    /// Parses all conditions after `if` in a line.
    pub(super) fn all(text: &'static str) -> Vec<Self> {
        text.split(" and ").filter(|it| !it.is_empty()).map(Self::read).collect()
    }

    fn read(text: &'static str) -> Self {
        let (path, wanted) = if let Some((path, value)) = text.split_once(" != ") {
            (path, Wanted::Other(json(value)))
        } else if let Some((path, value)) = text.split_once(" = ") {
            (path, Wanted::Equal(json(value)))
        } else if let Some(path) = text.strip_prefix('!') {
            (path, Wanted::Absent)
        } else {
            (text, Wanted::Present)
        };
        Self { path: Path::of(path), wanted }
    }
}

impl DefaultTable {
    fn read(text: &'static str) -> Self {
        let mut table = Self::default();
        let mut section: &mut Vec<DefaultRule> = &mut Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<_> = line.splitn(3, ' ').collect();
            match words[..] {
                ["KIND", group, kind] => {
                    let group = if group == "core" { "" } else { group };
                    section = table.kinds.entry((group, kind)).or_default();
                }
                ["SHAPE", shape] => section = table.shapes.entry(shape).or_default(),
                [path, sign, rest] => section.extend(DefaultRule::read(path, sign, rest)),
                _ => {}
            }
        }
        table
    }
}

impl DefaultRule {
    fn read(path: &'static str, sign: &str, rest: &'static str) -> Option<Self> {
        let (rest, conditions) = rest.split_once(" if ").unwrap_or((rest, ""));
        let conditions = Condition::all(conditions);
        let act = match sign {
            "=" | ":=" => Act::Set { value: json(rest), over_zero: sign == ":=" },
            "<" => match rest.strip_prefix('/') {
                Some(from) => Act::CopyFromRoot { from: Path::of(from) },
                None => Act::Copy { from: rest },
            },
            "+" => Act::Add { from: rest },
            ">" => Act::Shape(rest),
            "!" => Act::Derive(derived_defaults::named(rest)?),
            _ => return None,
        };
        let path = Path::of(path);
        let (path, field) = if matches!(act, Act::Shape(_)) { (path, "") } else { path.split_last() };
        Some(Self { path, field, act, conditions })
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule() {
        let text = include_str!("defaults.txt");
        let written = |line: &&str| !line.is_empty() && !line.starts_with(['#']);
        let heads = |line: &&str| line.starts_with("KIND ") || line.starts_with("SHAPE ");
        let lines = text.lines().filter(written).filter(|line| !heads(line)).count();
        let rules: usize = TABLE.kinds.values().chain(TABLE.shapes.values()).map(Vec::len).sum();
        assert_eq!(rules, lines);
        for rule in TABLE.kinds.values().chain(TABLE.shapes.values()).flatten() {
            match &rule.act {
                Act::Set { value, .. } => assert!(!value.is_null(), "{:?} {}", rule.path, rule.field),
                Act::Shape(shape) => assert!(TABLE.shapes.contains_key(shape), "{shape}"),
                Act::Copy { .. } | Act::CopyFromRoot { .. } | Act::Add { .. } | Act::Derive(_) => {}
            }
        }
    }

    #[test]
    fn what_stands_is_kept() {
        let mut object = json!({"spec": {"strategy": {"type": "Recreate"}, "replicas": 0, "template": {"spec": {
            "containers": [{"image": "a:b", "livenessProbe": {"timeoutSeconds": 0, "periodSeconds": 3}}]}}}});
        set_defaults("apps", "Deployment", &mut object);
        let once = object.clone();
        assert_eq!(once["spec"]["strategy"], json!({"type": "Recreate"}));
        assert_eq!(once["spec"]["replicas"], 0);
        let container = &once["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["imagePullPolicy"], "IfNotPresent");
        assert_eq!(container["livenessProbe"]["timeoutSeconds"], 1);
        assert_eq!(container["livenessProbe"]["periodSeconds"], 3);
        set_defaults("apps", "Deployment", &mut object);
        assert_eq!(object, once);
    }
}
