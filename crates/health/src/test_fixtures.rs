//! Test helpers for the rules: a kind and a body as text, the health as text.

use serde_json::{Map, Value};

use super::{Context, Health, health};
use moorline_core::object::GroupKind;

/// Parses `Kind.group`.
pub(super) fn kind(text: &str) -> GroupKind {
    match text.split_once('.') {
        Some((kind, group)) => GroupKind::new(group, kind),
        None => GroupKind::new("", text),
    }
}

pub(super) fn body(json: &str) -> Map<String, Value> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
}

/// Formats the health as `Healthy` or `Progressing: why`.
pub(super) fn format_health(health: &Health) -> String {
    match health.message() {
        Some(why) => format!("{}: {why}", health.name()),
        None => health.name().to_owned(),
    }
}

/// Checks the health of a body with the default [`Context`].
pub(super) fn check(of: &str, json: &str, expect: &str) {
    check_in(&Context::default(), of, json, expect);
}

pub(super) fn check_in(context: &Context, of: &str, json: &str, expect: &str) {
    assert_eq!(format_health(&health(&kind(of), &body(json), context)), expect, "{of} {json}");
}
