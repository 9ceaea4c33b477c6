//! Validates the query parameters of a request.
//!
//! In: an [`ApiRequest`] whose resource exists.
//! Out: nothing, or a [`StatusError`] that lists the invalid options.

use http::Method;
use serde_json::{Value, json};

use crate::request::ApiRequest;
use crate::status_error::{ErrorSubject, StatusError};

/// Maximum length of a field manager's name in bytes.
const MAX_MANAGER: usize = 128;

/// Refuses invalid options.
pub(crate) fn check(ask: &ApiRequest) -> Result<(), StatusError> {
    let mut causes = Vec::new();
    let kind = match ask.method {
        Method::GET => {
            list(ask, &mut causes);
            "ListOptions"
        }
        Method::DELETE => {
            delete(ask, &mut causes)?;
            dry_run(ask, &mut causes);
            "DeleteOptions"
        }
        _ => write(ask, &mut causes),
    };
    if causes.is_empty() {
        return Ok(());
    }
    Err(StatusError::invalid(ErrorSubject { group: "meta.k8s.io", plural: "", kind, name: "" }, &causes))
}

fn list(ask: &ApiRequest, causes: &mut Vec<Value>) {
    const MATCH: &str = "resourceVersionMatch";
    let given = ask.query(MATCH);
    let initial = ask.query("sendInitialEvents").is_some();
    let mut forbid = |field: &str, words: &str| causes.push(forbidden(field, words));
    if !ask.is_watch() {
        if given.is_some() && ask.query("resourceVersion").is_none() {
            forbid(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if given.is_some() && ask.query("continue").is_some() {
            forbid(MATCH, "resourceVersionMatch is forbidden when continue is provided");
        }
        if given == Some("Exact") && ask.query("resourceVersion") == Some("0") {
            forbid(MATCH, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
        if initial {
            forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
        if let Some(other) = given.filter(|given| !matches!(*given, "Exact" | "NotOlderThan")) {
            causes.push(unsupported(MATCH, &json!(other), &["Exact", "NotOlderThan", ""]));
        }
        return;
    }
    if initial && given != Some("NotOlderThan") {
        forbid(MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if let Some(given) = given {
        if !initial {
            forbid(MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
        }
        if given != "NotOlderThan" {
            causes.push(unsupported(MATCH, &json!(given), &["NotOlderThan"]));
        }
    }
}

fn delete(ask: &ApiRequest, causes: &mut Vec<Value>) -> Result<(), StatusError> {
    const FIELD: &str = "propagationPolicy";
    let body = ask.body()?.unwrap_or_default();
    let Some(policy) = body[FIELD].as_str().or_else(|| ask.query(FIELD)) else { return Ok(()) };
    if body["orphanDependents"].is_boolean() {
        let words = "orphanDependents and deletionPropagation cannot be both set";
        causes.push(cause(
            "FieldValueInvalid",
            FIELD,
            format!("Invalid value: {}: {words}", Value::from(policy)),
        ));
    }
    if !matches!(policy, "Foreground" | "Background" | "Orphan") {
        causes.push(unsupported(FIELD, &json!(policy), &["Foreground", "Background", "Orphan", "nil"]));
    }
    Ok(())
}

fn write(ask: &ApiRequest, causes: &mut Vec<Value>) -> &'static str {
    let kind = match ask.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        _ => "PatchOptions",
    };
    let manager = ask.query("fieldManager");
    if ask.method == Method::PATCH {
        let is_apply = ask.content_type() == "application/apply-patch+yaml";
        if is_apply && manager.is_none() {
            let words = "Required value: is required for apply patch".to_owned();
            causes.push(cause("FieldValueRequired", "fieldManager", words));
        }
        if !is_apply && ask.query("force").is_some() {
            causes.push(forbidden("force", "may not be specified for non-apply patch"));
        }
    }
    if manager.is_some_and(|manager| manager.len() > MAX_MANAGER) {
        let words = format!("Too long: may not be more than {MAX_MANAGER} bytes");
        causes.push(cause("FieldValueTooLong", "fieldManager", words));
    }
    dry_run(ask, causes);
    let strictness = ask.query("fieldValidation").unwrap_or_default();
    if !matches!(strictness, "" | "Ignore" | "Warn" | "Strict") {
        causes.push(unsupported("fieldValidation", &json!(strictness), &["", "Ignore", "Strict", "Warn"]));
    }
    kind
}

fn dry_run(ask: &ApiRequest, causes: &mut Vec<Value>) {
    if let Some(other) = ask.query("dryRun").filter(|given| *given != "All") {
        causes.push(unsupported("dryRun", &json!([other]), &["All"]));
    }
}

fn cause(reason: &str, field: &str, message: String) -> Value {
    json!({"reason": reason, "message": message, "field": field})
}

fn forbidden(field: &str, words: &str) -> Value {
    cause("FieldValueForbidden", field, format!("Forbidden: {words}"))
}

fn unsupported(field: &str, value: &Value, known: &[&str]) -> Value {
    let known: Vec<String> = known.iter().map(|known| format!("{known:?}")).collect();
    let message = format!("Unsupported value: {value}: supported values: {}", known.join(", "));
    cause("FieldValueNotSupported", field, message)
}
