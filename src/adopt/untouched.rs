//! Objects that Flux was told to leave alone.
//!
//! In: an object as Git has it, and as it is. Out: what Flux was told, and the annotation by which Moorline is told the same.
//! Without that the first apply would overwrite what was meant to stay, such as a password that only the first commit made.

use serde_json::Value;

use super::Tool;
use super::draft::text;
use crate::api::{APPLY_ANNOTATION, RECONCILE_ANNOTATION};
use crate::object::Object;

/// A switch of Flux with a value, and the switch of ours that says as much.
const SWITCHES: [(&str, &str, &str, &str); 3] = [
    ("kustomize.toolkit.fluxcd.io/reconcile", "disabled", RECONCILE_ANNOTATION, "disabled"),
    ("kustomize.toolkit.fluxcd.io/ssa", "Ignore", RECONCILE_ANNOTATION, "disabled"),
    ("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", APPLY_ANNOTATION, "once"),
];

/// What Flux was told about an object, and what Git has to say for Moorline as well; none if both agree.
pub fn untouched(tool: Tool, wanted: &Value, live: Option<&Object>) -> Option<(String, String)> {
    if tool != Tool::Flux {
        return None;
    }
    let of = |key: &str, value: &str| {
        let key = key.replace('/', "~1");
        // Flux reads them as annotations and as labels, and in any case of letters.
        let is = |text: &str| text.eq_ignore_ascii_case(value);
        ["annotations", "labels"].iter().any(|place| is(text(wanted, &format!("/metadata/{place}/{key}"))))
    };
    let on = |key: &str, value: &str| {
        let found = live.map(|live| [live.annotation(key), live.label(key)]);
        found.into_iter().flatten().flatten().any(|text| text.eq_ignore_ascii_case(value))
    };
    // What is never touched need not be created either.
    if of(RECONCILE_ANNOTATION, "disabled") {
        return None;
    }
    let (key, value, ours, says) =
        SWITCHES.into_iter().find(|(key, value, _, _)| of(key, value) || on(key, value))?;
    (!of(ours, says)).then(|| (format!("{key}: {value}"), format!("{ours}: {says}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::object::{ObjectId, Origin};

    #[test]
    fn what_flux_leaves_alone_is_named_until_git_says_it_to_us() {
        let check = |tool: Tool, wanted: Value, live: Value, expect: Option<&str>| {
            let body = json!({"metadata": live});
            let live = Object {
                id: ObjectId::parse("/Secret|shop/a").unwrap(),
                version: "v1".into(),
                body: body.as_object().unwrap().clone(),
                origin: Origin { file: Arc::from(""), document: 0, line: 0, item: None },
            };
            let found = untouched(tool, &json!({"metadata": wanted}), Some(&live));
            assert_eq!(found.map(|(_, ours)| ours).as_deref(), expect, "{wanted} {body}");
        };
        let [reconcile, ssa] = ["reconcile", "ssa"].map(|it| format!("kustomize.toolkit.fluxcd.io/{it}"));
        let once = json!({"annotations": {&ssa: "ifnotpresent"}});
        check(Tool::Flux, once.clone(), json!({}), Some("moorline.dev/apply: once"));
        check(Tool::ArgoCd, once, json!({}), None);
        check(
            Tool::Flux,
            json!({"labels": {&ssa: "Ignore"}}),
            json!({}),
            Some("moorline.dev/reconcile: disabled"),
        );
        let live = json!({"annotations": {&reconcile: "disabled"}});
        check(Tool::Flux, json!({}), live.clone(), Some("moorline.dev/reconcile: disabled"));
        check(Tool::Flux, json!({"annotations": {"moorline.dev/reconcile": "disabled"}}), live, None);
        let both = json!({"annotations": {&ssa: "IfNotPresent", "moorline.dev/apply": "once"}});
        check(Tool::Flux, both, json!({}), None);
        check(Tool::Flux, json!({"annotations": {&ssa: "Merge"}}), json!({}), None);
    }
}
