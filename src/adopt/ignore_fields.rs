//! Converts the fields that the old tool leaves to others to `ignoreFields`.
//!
//! In: `ignoreDifferences` of an Application, `ignore` of a Kustomization. Out: `ignoreFields`, and
//! remarks about entries that a Sync cannot express.

use serde_json::{Map, Value, json};

use super::sync_builder::{SyncBuilder, is_set, text};

/// The most entries of a Sync, and the most paths of one entry.
const MAX: usize = 32;

/// Fields that identify an object, and so cannot be ignored.
const IDENTITY: [&str; 5] = ["/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace"];

/// Converts `spec.ignoreDifferences` of an Application.
pub(super) fn convert_ignore_differences(spec: &Value, draft: &mut SyncBuilder) {
    for (at, entry) in spec["ignoreDifferences"].as_array().into_iter().flatten().enumerate() {
        let place = format!("spec.ignoreDifferences[{at}]");
        if is_set(&entry["managedFieldsManagers"]) {
            let why = "fields are left by their place, not by who wrote them: name them as jsonPointers";
            draft.mark_lost(format!("{place}.managedFieldsManagers"), why);
        }
        let mut paths = pointers(&entry["jsonPointers"]);
        for expression in entry["jqPathExpressions"].as_array().into_iter().flatten() {
            match pointer_from_jq(expression.as_str().unwrap_or_default()) {
                Some(path) => paths.push(path),
                None => draft.mark_lost(
                    format!("{place}.jqPathExpressions"),
                    "only plain paths such as .spec.replicas can be said as JSON pointers",
                ),
            }
        }
        // Argo CD reads group and kind as globs, and an empty group as the core group.
        let fields = [("group", true), ("kind", true), ("namespace", false), ("name", false)];
        let to = target(draft, &place, entry, &fields).map(|mut to| {
            if text(entry, "/group").is_empty() {
                to.insert("group".to_owned(), "".into());
            }
            to
        });
        add(draft, &place, to, paths);
    }
}

/// Converts `spec.ignore` of a Kustomization, or `spec.driftDetection.ignore` of a HelmRelease.
pub(super) fn convert_ignore(spec: &Value, field: &str, draft: &mut SyncBuilder) {
    for (at, entry) in spec["ignore"].as_array().into_iter().flatten().enumerate() {
        let place = format!("{field}[{at}]");
        let chosen = &entry["target"];
        if is_set(&chosen["labelSelector"]) || is_set(&chosen["annotationSelector"]) {
            draft.mark_lost(place, "objects are chosen by group, kind, namespace and name, not by selectors");
            continue;
        }
        // Flux reads all of these as patterns.
        let fields = ["group", "kind", "namespace", "name"].map(|field| (field, true));
        let to = target(draft, &place, chosen, &fields);
        add(draft, &place, to, pointers(&entry["paths"]));
    }
}

/// The target of an entry; `None` if a Sync cannot express it.
fn target(
    draft: &mut SyncBuilder,
    place: &str,
    old: &Value,
    fields: &[(&str, bool)],
) -> Option<Map<String, Value>> {
    let mut to = Map::new();
    for (field, is_pattern) in fields {
        let value = text(old, &format!("/{field}"));
        if value.is_empty() || (*is_pattern && ["*", ".*"].contains(&value)) {
            continue;
        }
        if *is_pattern && value.contains(['*', '?', '[', '(', '|', '^', '$', '+', '{']) {
            let why = "a pattern cannot be said: name one kind or object in each entry";
            draft.mark_lost(format!("{place}.{field}"), why);
            return None;
        }
        to.insert((*field).to_owned(), value.into());
    }
    Some(to)
}

fn add(draft: &mut SyncBuilder, place: &str, target: Option<Map<String, Value>>, paths: Vec<String>) {
    let Some(target) = target else { return };
    let (sound, wrong): (Vec<String>, Vec<String>) = paths.into_iter().partition(|path| is_sound(path));
    for path in wrong {
        draft.mark_lost(place, format!("{path} is no JSON pointer to a field that may be left to others"));
    }
    if sound.is_empty() {
        return;
    }
    let all = &mut draft.spec["ignoreFields"];
    let count = all.as_array().map_or(0, Vec::len);
    if count >= MAX || sound.len() > MAX {
        draft.mark_lost(place, "a Sync has at most 32 entries of at most 32 paths");
        return;
    }
    if all.is_null() {
        *all = json!([]);
    }
    if let Some(all) = all.as_array_mut() {
        all.push(json!({"target": target, "paths": sound}));
    }
}

fn pointers(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn is_sound(path: &str) -> bool {
    let part =
        |part: &str| !part.is_empty() && part.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(part)) && !IDENTITY.contains(&path)
}

/// Converts a plain jq path to a JSON pointer: names with dots between them, and names in brackets.
fn pointer_from_jq(expression: &str) -> Option<String> {
    let mut rest = expression.trim();
    let mut pointer = String::new();
    while !rest.is_empty() {
        let name;
        if let Some(inner) = rest.strip_prefix(".[\"").or_else(|| rest.strip_prefix("[\"")) {
            (name, rest) = inner.split_once("\"]")?;
        } else {
            let inner = rest.strip_prefix('.')?;
            let end =
                inner.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(inner.len());
            (name, rest) = inner.split_at(end);
        }
        if name.is_empty() || name.contains('\\') {
            return None;
        }
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    }
    (!pointer.is_empty()).then_some(pointer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths_of_jq_are_pointers() {
        for (expression, expect) in [
            (".spec.replicas", Some("/spec/replicas")),
            (".metadata.annotations[\"example.com/a\"]", Some("/metadata/annotations/example.com~1a")),
            (".[\"a b\"].c", Some("/a b/c")),
            (".spec.containers[] | select(.name == \"a\")", None),
            (".spec[0]", None),
            ("spec", None),
            (".", None),
            ("", None),
        ] {
            assert_eq!(pointer_from_jq(expression).as_deref(), expect, "{expression}");
        }
    }
}
