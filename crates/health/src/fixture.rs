//! How the tests of the rules are written: a kind, a body as text, and the health as text.

use serde_json::{Map, Value};

use super::{Context, Health, health};
use moorline_core::object::GroupKind;

/// `Kind.group`, as people write it.
pub(super) fn kind(text: &str) -> GroupKind {
    match text.split_once('.') {
        Some((kind, group)) => GroupKind::new(group, kind),
        None => GroupKind::new("", text),
    }
}

pub(super) fn body(json: &str) -> Map<String, Value> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
}

/// `Healthy`, or `Progressing: why`.
pub(super) fn told(health: &Health) -> String {
    match health.why() {
        Some(why) => format!("{}: {why}", health.word()),
        None => health.word().to_owned(),
    }
}

/// The health of a body, without anything known beside it.
pub(super) fn check(of: &str, json: &str, expect: &str) {
    check_in(&Context::default(), of, json, expect);
}

pub(super) fn check_in(context: &Context, of: &str, json: &str, expect: &str) {
    assert_eq!(told(&health(&kind(of), &body(json), context)), expect, "{of} {json}");
}
