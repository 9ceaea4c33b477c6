//! Finds objects that Flux is configured to leave alone.
//!
//! In: an object in Git, and the live object. Out: the setting for Flux, and the annotation with
//! the same meaning for Moorline. Without that annotation the first apply would overwrite fields
//! that have to stay, such as a generated password.

use serde_json::Value;

use super::Tool;
use super::sync_builder::text;
use crate::api::{APPLY_ANNOTATION, RECONCILE_ANNOTATION};
use crate::object::Object;

/// A switch of Flux with a value, and our switch with the same meaning.
const SWITCHES: [(&str, &str, &str, &str); 3] = [
    ("kustomize.toolkit.fluxcd.io/reconcile", "disabled", RECONCILE_ANNOTATION, "disabled"),
    ("kustomize.toolkit.fluxcd.io/ssa", "Ignore", RECONCILE_ANNOTATION, "disabled"),
    ("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", APPLY_ANNOTATION, "once"),
];

/// The setting for Flux on an object, and the setting that Git lacks for Moorline; `None` if both
/// agree.
pub fn missing_switch(tool: Tool, wanted: &Value, live: Option<&Object>) -> Option<(String, String)> {
    if tool != Tool::Flux {
        return None;
    }
    let of = |key: &str, value: &str| {
        let key = key.replace('/', "~1");
        // Flux reads switches from annotations and labels, in any case.
        let is = |text: &str| text.eq_ignore_ascii_case(value);
        ["annotations", "labels"].iter().any(|place| is(text(wanted, &format!("/metadata/{place}/{key}"))))
    };
    let on = |key: &str, value: &str| {
        let found = live.map(|live| [live.annotation(key), live.label(key)]);
        found.into_iter().flatten().flatten().any(|text| text.eq_ignore_ascii_case(value))
    };
    // An object that is never reconciled is not applied at all, so no other switch matters.
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
            let found = missing_switch(tool, &json!({"metadata": wanted}), Some(&live));
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
