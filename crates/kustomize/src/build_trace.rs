//! Traces the steps of a build that made or changed an object, with position and changed fields.
//!
//! In: the resources before and after a step. Out: records on each of them. Only on request:
//! otherwise nothing is recorded and nothing compared.

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::Value;

use super::error::{BuildError, FieldLocation};
use super::node::LocatedText;
use super::resource::Resource;

/// Most fields that are recorded for one step.
const MAX_FIELDS: usize = 20;

/// Records of a resource.
#[derive(Debug, Clone, Default)]
pub(super) struct ObjectTrace {
    /// Serial number, independent of the name; 0 until it is assigned.
    serial: u64,
    pub(super) notes: Vec<StepRecord>,
}

/// A step that made or changed a resource.
#[derive(Debug, Clone)]
pub(super) struct StepRecord {
    /// Field of the kustomization, and the file that it names.
    pub(super) step: String,
    pub(super) at: FieldLocation,
    /// Changed fields; empty if the resource was made.
    pub(super) fields: Vec<String>,
}

/// Recorder of a whole build; none if tracing is off.
#[derive(Debug, Default)]
pub(super) struct Tracer(Option<Cell<u64>>);

impl Tracer {
    /// Creates an enabled tracer.
    pub(super) fn enabled() -> Self {
        Self(Some(Cell::new(0)))
    }

    /// True if steps are recorded.
    pub(super) fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Records the entry of `resources` that added these resources.
    pub(super) fn record_source(&self, resources: &mut [Resource], entry: &LocatedText) {
        let Some(last) = &self.0 else { return };
        number(resources, last);
        for resource in resources {
            let step = format!("resources ({})", entry.one_line());
            resource.trail.notes.push(StepRecord { step, at: entry.at.clone(), fields: Vec::new() });
        }
    }

    /// Runs a step, and records which resources it changed. `detail` names the step further, for
    /// example by a file.
    pub(super) fn step(
        &self,
        (name, detail): (&str, &str),
        at: &FieldLocation,
        resources: &mut Vec<Resource>,
        change: impl FnOnce(&mut Vec<Resource>) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let Some(last) = &self.0 else { return change(resources) };
        number(resources, last);
        let before: HashMap<u64, Value> =
            resources.iter().map(|it| (it.trail.serial, it.body.clone())).collect();
        change(resources)?;
        for resource in resources.iter_mut() {
            let mut fields = Vec::new();
            match before.get(&resource.trail.serial) {
                Some(before) if *before == resource.body => continue,
                Some(before) => collect_changes(&mut String::new(), before, &resource.body, &mut fields),
                None => {}
            }
            let step = if detail.is_empty() { name.to_owned() } else { format!("{name} ({detail})") };
            resource.trail.notes.push(StepRecord { step, at: at.clone(), fields: shortened(fields) });
        }
        number(resources, last);
        Ok(())
    }
}

fn number(resources: &mut [Resource], last: &Cell<u64>) {
    for resource in resources.iter_mut().filter(|it| it.trail.serial == 0) {
        last.set(last.get() + 1);
        resource.trail.serial = last.get();
    }
}

fn shortened(mut fields: Vec<String>) -> Vec<String> {
    let more = fields.len().saturating_sub(MAX_FIELDS);
    if more > 0 {
        fields.truncate(MAX_FIELDS);
        fields.push(format!("and {more} more"));
    }
    fields
}

/// Collects the paths at which two values differ.
fn collect_changes(path: &mut String, before: &Value, after: &Value, found: &mut Vec<String>) {
    let depth = path.len();
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
                push_key(path, key);
                match (before.get(key), after.get(key)) {
                    (Some(before), Some(after)) => collect_changes(path, before, after, found),
                    _ => found.push(path.clone()),
                }
                path.truncate(depth);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                path.push_str(&format!("[{at}]"));
                collect_changes(path, before, after, found);
                path.truncate(depth);
            }
        }
        (before, after) if before == after => {}
        _ => found.push(path.clone()),
    }
}

fn push_key(path: &mut String, key: &str) {
    let is_plain = key.chars().all(|it| it.is_alphanumeric() || it == '_' || it == '-');
    match (is_plain, path.is_empty()) {
        (true, true) => path.push_str(key),
        (true, false) => {
            path.push('.');
            path.push_str(key);
        }
        (false, _) => path.push_str(&format!("[{key:?}]")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_changed_is_named_by_its_path() {
        let before = json!({"a": 1, "b": {"c": [1, 2], "d": [1], "e": "x"}, "gone": {}});
        let after = json!({"a": 1, "b": {"c": [1, 3], "d": [1, 2], "e": "x", "f.g": 1}, "new": null});
        let mut found = Vec::new();
        collect_changes(&mut String::new(), &before, &after, &mut found);
        assert_eq!(found, ["b.c[1]", "b.d", "b[\"f.g\"]", "gone", "new"]);
        let many: Vec<String> = (0..25).map(|at| at.to_string()).collect();
        assert_eq!(shortened(many).last().map(String::as_str), Some("and 5 more"));
    }
}
