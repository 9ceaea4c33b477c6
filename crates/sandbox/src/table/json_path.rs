//! JSON paths of printer columns: `.spec.replicas`, `.a["b.c"]`, `.list[0]`,
//! `.status.conditions[?(@.type=="Ready")].status`.
//!
//! In: an object and a path.
//! Out: the first matching value; `None` if there is none, or if the path uses unions, slices or
//! recursion, which printer columns do not need.

use serde_json::Value;

/// Returns the first matching value.
pub(super) fn find<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    step(root, path.trim().trim_start_matches('$'))
}

fn step<'a>(node: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(node);
    }
    if let Some(rest) = path.strip_prefix('.') {
        let (name, rest) = field(rest);
        return if name.is_empty() { step(node, rest) } else { step(member(node, &name)?, rest) };
    }
    let inner = path.strip_prefix('[')?;
    if let Some(filter) = inner.strip_prefix("?(") {
        let (filter, rest) = filter.split_once(")]")?;
        return node.as_array()?.iter().filter(|item| holds(item, filter)).find_map(|item| step(item, rest));
    }
    if let Some(quote) = inner.chars().next().filter(|it| matches!(it, '"' | '\'')) {
        let (name, rest) = inner[1..].split_once(&format!("{quote}]"))?;
        return step(node.get(name)?, rest);
    }
    let (inside, rest) = inner.split_once(']')?;
    let items = node.as_array()?;
    if inside == "*" {
        return items.iter().find_map(|item| step(item, rest));
    }
    let at: isize = inside.parse().ok()?;
    let at = if at < 0 { isize::try_from(items.len()).ok()? + at } else { at };
    step(items.get(usize::try_from(at).ok()?)?, rest)
}

/// Splits the first field name off a path; a backslash escapes the next character.
fn field(path: &str) -> (String, &str) {
    let (mut name, mut chars) = (String::new(), path.char_indices());
    while let Some((at, char)) = chars.next() {
        match char {
            '.' | '[' => return (name, &path[at..]),
            '\\' => name.extend(chars.next().map(|(_, char)| char)),
            char => name.push(char),
        }
    }
    (name, "")
}

fn member<'a>(node: &'a Value, name: &str) -> Option<&'a Value> {
    match node {
        Value::Array(items) if name == "*" => items.first(),
        Value::Object(map) if name == "*" => map.values().next(),
        node => node.get(name),
    }
}

/// True if an item matches a filter such as `@.type=="Ready"`.
fn holds(item: &Value, filter: &str) -> bool {
    for (sign, wanted) in [("==", true), ("!=", false)] {
        if let Some((left, right)) = filter.split_once(sign) {
            let found = left.trim().strip_prefix('@').and_then(|path| step(item, path));
            let right = right.trim();
            let text = right.trim_matches(|char| char == '"' || char == '\'');
            let equal = match found {
                Some(Value::String(found)) => found == text,
                Some(found) => right == found.to_string().as_str(),
                None => return false,
            };
            return equal == wanted;
        }
    }
    filter.trim().strip_prefix('@').is_some_and(|path| step(item, path).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_values() {
        let object = json!({
            "spec": {"replicas": 3, "a.b": "dotted", "list": [{"n": 1}, {"n": 2}]},
            "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready", "status": "True", "n": 5}]},
        });
        for (path, value) in [
            (".spec.replicas", json!(3)),
            ("$.spec.replicas", json!(3)),
            (".spec['a.b']", json!("dotted")),
            (".spec[\"a.b\"]", json!("dotted")),
            (".spec.a\\.b", json!("dotted")),
            (".spec.list[1].n", json!(2)),
            (".spec.list[-1].n", json!(2)),
            (".spec.list[*].n", json!(1)),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
            (".status.conditions[?(@.type=='Ready')].status", json!("True")),
            (".status.conditions[?(@.type != \"A\")].n", json!(5)),
            (".status.conditions[?(@.n==5)].type", json!("Ready")),
            (".status.conditions[?(@.n)].type", json!("Ready")),
        ] {
            assert_eq!(find(&object, path), Some(&value), "{path}");
        }
        for path in [
            ".spec.none",
            ".spec.list[9]",
            ".status.conditions[?(@.type==\"B\")].status",
            "[",
            ".spec[",
            ".spec.list[x]",
        ] {
            assert_eq!(find(&object, path), None, "{path}");
        }
    }
}
