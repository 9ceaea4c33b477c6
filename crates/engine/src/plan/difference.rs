//! Comparison of a live object with Git, field by field, for previews.
//!
//! In: two bodies.
//! Out: [`Difference`]s. Fields that only the live object has are ignored: they are defaults,
//! status, or set by others. List items are paired by their key, as the API server does; lists
//! without such a key are one value. Only previews for people compare bodies; the daemon never
//! does.

use serde_json::{Map, Value};

use moorline_core::object::ObjectId;

/// One field that differs from Git.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The path, such as `spec.template.spec.containers[name=web].image`.
    pub path: String,
    /// The live value, if there is one.
    pub live: Option<Value>,
    /// The value in Git; none for a field that an apply removes.
    pub desired: Option<Value>,
    /// True if the values must not be shown.
    pub secret: bool,
}

/// Replacement of values that must not be shown.
pub const HIDDEN: &str = "hidden: may contain Secret values";

impl Difference {
    /// Returns the live and the desired value of a field of this object; none if they must not be
    /// shown.
    pub fn values(&self, of: &ObjectId) -> Option<(Option<&Value>, Option<&Value>)> {
        let hidden = self.secret || of.is_kind("", "Secret");
        (!hidden).then_some((self.live.as_ref(), self.desired.as_ref()))
    }
}

/// Key fields of list items, the most specific first.
const ITEM_KEYS: [&str; 8] =
    ["name", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey", "uid"];

/// Compares two bodies: the fields that are added, changed or removed, by their paths. The value of
/// `before` stands as the live one.
pub fn compare_bodies(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<Difference> {
    let mut found = differences(after, before);
    let known: std::collections::BTreeSet<String> = found.iter().map(|field| field.path.clone()).collect();
    // Only a removed field has no value after it; all others were found.
    let removed = differences(before, after).into_iter().filter(|field| !known.contains(&field.path));
    let removed = removed.filter(|field| field.live.is_none());
    found.extend(removed.map(|field| Difference { live: field.desired, desired: None, ..field }));
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Returns the fields of `wanted` that `live` lacks or has with another value.
pub(super) fn differences(wanted: &Map<String, Value>, live: &Map<String, Value>) -> Vec<Difference> {
    let mut found = Vec::new();
    maps(&mut String::new(), wanted, live, &mut found);
    found
}

fn maps(
    path: &mut String,
    wanted: &Map<String, Value>,
    live: &Map<String, Value>,
    found: &mut Vec<Difference>,
) {
    for (key, value) in wanted {
        let before = path.len();
        push_key(path, key);
        values(path, value, live.get(key), found);
        path.truncate(before);
    }
}

fn values(path: &mut String, wanted: &Value, live: Option<&Value>, found: &mut Vec<Difference>) {
    match (wanted, live) {
        (Value::Object(wanted), Some(Value::Object(live))) => maps(path, wanted, live, found),
        (Value::Array(wanted), Some(Value::Array(live))) if !wanted.is_empty() => {
            lists(path, wanted, live, found);
        }
        (wanted, live) if is_same(path, wanted, live) => {}
        (wanted, live) => {
            let (live, wanted) = (live.cloned(), Some(wanted.clone()));
            found.push(Difference { path: path.clone(), live, desired: wanted, secret: false });
        }
    }
}

fn lists(path: &mut String, wanted: &[Value], live: &[Value], found: &mut Vec<Difference>) {
    let key = ITEM_KEYS.into_iter().find(|key| names_each(wanted, key) && names_each(live, key));
    for (at, item) in wanted.iter().enumerate() {
        let before = path.len();
        let partner = match key {
            Some(key) => {
                push_item(path, key, &item[key]);
                live.iter().find(|live| live[key] == item[key])
            }
            None if wanted.len() == live.len() => {
                path.push_str(&format!("[{at}]"));
                live.get(at)
            }
            None => {
                let (live, wanted) = (Some(Value::Array(live.to_vec())), Some(Value::Array(wanted.to_vec())));
                found.push(Difference { path: path.clone(), live, desired: wanted, secret: false });
                return;
            }
        };
        values(path, item, partner, found);
        path.truncate(before);
    }
}

/// True if every item has the key, and all values differ.
fn names_each(items: &[Value], key: &str) -> bool {
    let mut seen = std::collections::HashSet::new();
    items.iter().all(|item| {
        item.get(key)
            .is_some_and(|value| (value.is_string() || value.is_number()) && seen.insert(value.to_string()))
    })
}

/// Compares as the API server does: an empty value equals an absent one, and quantities have many
/// spellings.
fn is_same(path: &str, wanted: &Value, live: Option<&Value>) -> bool {
    let empty = match wanted {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(|value| is_same(path, value, None)),
        Value::Number(number) => number.as_i64() == Some(0),
    };
    match live {
        None | Some(Value::Null) => empty,
        Some(live) if wanted == live => true,
        Some(live) => holds_quantities(path) && quantity(wanted).is_some_and(|it| quantity(live) == Some(it)),
    }
}

fn holds_quantities(path: &str) -> bool {
    let holder = |part: &str| {
        matches!(
            part,
            "requests"
                | "limits"
                | "hard"
                | "capacity"
                | "sizeLimit"
                | "default"
                | "defaultRequest"
                | "min"
                | "max"
                | "averageValue"
                | "divisor"
        )
    };
    // A quoted key, such as limits["nvidia.com/gpu"], begins with a bracket.
    path.split(['.', '[']).any(holder)
}

/// Returns the value of a quantity in thousandths, if it is exact.
fn quantity(value: &Value) -> Option<i128> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let digits = text.find(|char: char| !matches!(char, '0'..='9' | '.' | '-' | '+')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let unit: i128 = match suffix {
        "m" => 1,
        "" => 1000,
        "k" => 1000 * 1000,
        "Ki" => 1000 << 10,
        _ => {
            let power = "MGTPE".find(suffix.chars().next()?)? as u32 + 2;
            match &suffix[1..] {
                "" => 1000 * 1000_i128.pow(power),
                "i" => 1000 << (10 * power),
                _ => return None,
            }
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let number: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = number.checked_mul(unit)?;
    (scaled % scale == 0).then_some(scaled / scale)
}

/// Appends `.key`, quoted if a dot in the key would be misread.
fn push_key(path: &mut String, key: &str) {
    match key.contains(['.', '/', '[']) {
        true => path.push_str(&format!("[{key:?}]")),
        false if path.is_empty() => path.push_str(key),
        false => {
            path.push('.');
            path.push_str(key);
        }
    }
}

fn push_item(path: &mut String, key: &str, value: &Value) {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    path.push_str(&format!("[{key}={text}]"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(wanted: Value, live: Value, expect: &[&str]) {
        let (Value::Object(wanted), Value::Object(live)) = (wanted, live) else {
            panic!("bodies are mappings")
        };
        let found: Vec<String> = differences(&wanted, &live).into_iter().map(|found| found.path).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn what_only_the_live_object_has_is_no_difference() {
        check(json!({"a": 1}), json!({"a": 1, "b": 2}), &[]);
        check(
            json!({"spec": {"containers": [{"name": "a", "image": "x"}]}}),
            json!({"spec": {"containers": [{"name": "sidecar"}, {"name": "a", "image": "x", "tty": false}]}}),
            &[],
        );
    }

    #[test]
    fn a_difference_is_named_by_its_path() {
        check(
            json!({"spec": {"containers": [{"name": "a", "image": "x"}], "replicas": 3}}),
            json!({"spec": {"containers": [{"name": "a", "image": "y"}], "replicas": 5}}),
            &["spec.containers[name=a].image", "spec.replicas"],
        );
        check(json!({"metadata": {"labels": {"a.b/c": "1"}}}), json!({"metadata": {}}), &["metadata.labels"]);
        check(
            json!({"config": {"node.store": false, "a": true}}),
            json!({"config": {"node.store": true}}),
            &["config.a", "config[\"node.store\"]"],
        );
    }

    #[test]
    fn a_list_without_keys_is_one_value() {
        check(
            json!({"rules": [{"verbs": ["get"]}]}),
            json!({"rules": [{"verbs": ["get", "list"]}]}),
            &["rules[0].verbs"],
        );
        check(json!({"args": ["a"]}), json!({"args": ["a", "b"]}), &["args"]);
        check(json!({"args": ["a", "b"]}), json!({"args": ["b", "a"]}), &["args[0]", "args[1]"]);
    }

    #[test]
    fn spellings_of_one_value_are_no_difference() {
        check(
            json!({"limits": {"cpu": 0.5, "memory": "1Gi"}}),
            json!({"limits": {"cpu": "500m", "memory": "1024Mi"}}),
            &[],
        );
        check(json!({"limits": {"cpu": 1}}), json!({"limits": {"cpu": "2"}}), &["limits.cpu"]);
        check(json!({"limits": {"nvidia.com/gpu": 1}}), json!({"limits": {"nvidia.com/gpu": "1"}}), &[]);
        check(json!({"hard": {"requests.cpu": 1}}), json!({"hard": {"requests.cpu": "1"}}), &[]);
        check(json!({"a": "", "b": null, "c": {}, "d": [], "e": false}), json!({}), &[]);
        check(json!({"version": "1.0"}), json!({"version": "1"}), &["version"]);
    }
}
