//! Converts the sync policy of an Application.
//!
//! In: `spec.syncPolicy` of an Application. Out: prune, drift and the namespace of a Sync, and
//! remarks about options that work differently in Moorline.

use serde_json::{Value, json};

use super::sync_builder::{SyncBuilder, is_set};

/// Options that Moorline always fulfils.
const FULFILLED_OPTIONS: [&str; 12] = [
    "ApplyOutOfSyncOnly=true",
    "ClientSideApplyMigration=false",
    "ClientSideApplyMigration=true",
    "Delete=false",
    "FailOnSharedResource=true",
    "PruneLast=true",
    "PrunePropagationPolicy=background",
    "RespectIgnoreDifferences=true",
    "ServerSideApply=true",
    "SkipDryRunOnMissingResource=true",
    "Prune=true",
    "Validate=true",
];

pub(super) fn convert_sync_policy(spec: &Value, draft: &mut SyncBuilder) {
    let policy = &spec["syncPolicy"];
    let automated = policy.get("automated").filter(|it| it.is_object() && it["enabled"] != json!(false));
    let yes = |field: &str| automated.is_some_and(|automated| automated[field] == json!(true));
    draft.spec["prune"] = json!({"enabled": yes("prune")});
    let mode = if yes("selfHeal") { "Repair" } else { "Report" };
    draft.spec["drift"] = json!({"mode": mode});
    if automated.is_none() {
        let why =
            "it has no automated sync, and a Sync applies every commit: use moorline suspend in between";
        draft.mark_lost("spec.syncPolicy.automated", why);
    }
    if yes("allowEmpty") {
        draft.mark_lost(
            "spec.syncPolicy.automated.allowEmpty",
            "a repository without any object prunes nothing",
        );
    }
    let options = policy["syncOptions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for option in options {
        let option: String = option.chars().filter(|char| !char.is_whitespace()).collect();
        self::option(&option, draft);
    }
    if is_set(&policy["managedNamespaceMetadata"]) {
        let why = "the target namespace gets no labels and annotations: write it into Git as a Namespace";
        draft.mark_lost("spec.syncPolicy.managedNamespaceMetadata", why);
    }
    if policy["retry"]["limit"].as_i64().is_some_and(|limit| limit > 0) {
        draft.mark_lost(
            "spec.syncPolicy.retry",
            "failures are retried without limit, after 1 second to a minute",
        );
    }
}

fn option(option: &str, draft: &mut SyncBuilder) {
    let field = || format!("spec.syncPolicy.syncOptions: {option}");
    match option {
        "CreateNamespace=true" if is_set(&draft.spec["targetNamespace"]) => {
            draft.spec["createNamespace"] = true.into();
        }
        "Prune=false" => draft.spec["prune"]["enabled"] = false.into(),
        // A budget of zero lets every deletion wait for approval.
        "Prune=confirm" => draft.spec["prune"]["budget"] = json!({"count": 0}),
        "Replace=true" | "Force=true" => {
            let why = "objects are applied, not replaced: annotate those that have to be recreated with moorline.dev/recreate: enabled";
            draft.mark_lost(field(), why);
        }
        "Validate=false" => draft.mark_lost(field(), "fields that the API server does not know are refused"),
        _ if FULFILLED_OPTIONS.contains(&option) || option.ends_with("=false") => {}
        _ => draft.mark_lost(field(), "Moorline has no such option"),
    }
}
