//! Validation of the kinds that extend the API server: CustomResourceDefinitions, webhook
//! configurations, APIServices.
//!
//! In: the value that a line of `rules.txt` selects.
//! Out: the problems found there.

use serde_json::{Value, json};

use super::name_formats;
use super::{Cause, CustomCheck, RuleInput, invalid, is_empty, required};

/// Maximum depth to which a schema is checked.
const MAX_DEPTH: usize = 64;

/// Returns the check that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CustomCheck> {
    Some(match name {
        "alone" => alone,
        "api-service" => api_service,
        "client" => client,
        "definition-name" => definition_name,
        "definition-names" => definition_names,
        "review-versions" => review_versions,
        "schema-required" => schema_required,
        "some-version" => some_version,
        "stored-once" => stored_once,
        "structural" => structural,
        "unique-webhooks" => unique_webhooks,
        "version-name" => version_name,
        "webhook-name" => webhook_name,
        "webhook-timeout" => webhook_timeout,
        _ => return None,
    })
}

fn definition_name(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let part = |path: &str| seen.root.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let name = part("/metadata/name");
    if name != format!("{}.{}", part("/spec/names/plural"), part("/spec/group")) {
        causes.push(invalid(
            "metadata.name",
            Some(&json!(name)),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
}

fn definition_names(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let names = &seen.root["spec"]["names"];
    for field in ["plural", "singular", "kind", "listKind"] {
        let at = format!("spec.names.{field}");
        match names[field].as_str().unwrap_or_default() {
            "" => causes.push(required(&at, "")),
            name => {
                let lower = name.to_lowercase();
                let wrong = name_formats::old_label(&lower);
                causes.extend(wrong.iter().map(|words| invalid(&at, names.get(field), words)));
            }
        }
    }
    if !is_empty(&names["kind"]) && names["kind"] == names["listKind"] {
        let words = "kind and listKind may not be the same";
        causes.push(invalid("spec.names.listKind", names.get("listKind"), words));
    }
}

fn version_name(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let name = seen.value.and_then(Value::as_str).unwrap_or_default();
    causes.extend(name_formats::old_label(name).iter().map(|words| invalid(&seen.at, seen.value, words)));
}

fn schema_required(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.value.is_some_and(|it| it["schema"]["openAPIV3Schema"].is_null()) {
        causes.push(required(&format!("{}.schema.openAPIV3Schema", seen.at), ""));
    }
}

fn stored_once(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let all = seen.value.and_then(Value::as_array);
    let stored = all.into_iter().flatten().filter(|it| it["storage"] == true).count();
    if stored != 1 {
        let empty = json!([]);
        let words = "must have exactly one version marked as storage version";
        causes.push(invalid("spec.versions", Some(seen.value.unwrap_or(&empty)), words));
    }
}

fn some_version(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.value.is_none_or(is_empty) {
        causes.push(invalid(&seen.at, None, "must have at least one stored version"));
    }
}

/// Checks for a structural schema: every field has a type, and every list has an item type.
fn structural(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(schema) = seen.value else { return };
    typed(schema, &seen.at, 0, causes);
    // If all versions have the same schema, the server stores it once and reports that path.
    let all = seen.root["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_shared = all.iter().all(|version| version["schema"] == all[0]["schema"]);
    match is_shared {
        true if seen.at.starts_with("spec.versions[0].") => {
            expressions(schema, "spec.validation.openAPIV3Schema", 0, causes);
        }
        true => {}
        false => expressions(schema, &seen.at, 0, causes),
    }
}

fn expressions(schema: &Value, at: &str, depth: usize, causes: &mut Vec<Cause>) {
    if depth > MAX_DEPTH {
        return;
    }
    for (place, rule) in schema["x-kubernetes-validations"].as_array().into_iter().flatten().enumerate() {
        expression(schema, rule, &format!("{at}.x-kubernetes-validations[{place}]"), causes);
    }
    alternatives(schema, at, depth, causes);
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        expressions(inner, &format!("{at}.properties[{name}]"), depth + 1, causes);
    }
    for part in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(part).filter(|inner| inner.is_object()) {
            expressions(inner, &format!("{at}.{part}"), depth + 1, causes);
        }
    }
}

/// CEL rules are not allowed inside `allOf`, `anyOf`, `oneOf` and `not`.
fn alternatives(schema: &Value, at: &str, depth: usize, causes: &mut Vec<Cause>) {
    for word in ["allOf", "anyOf", "oneOf"] {
        for (place, part) in schema[word].as_array().into_iter().flatten().enumerate() {
            alternative(part, &format!("{at}.{word}[{place}]"), depth + 1, causes);
        }
    }
    if let Some(part) = schema.get("not") {
        alternative(part, &format!("{at}.not"), depth + 1, causes);
    }
}

fn alternative(schema: &Value, at: &str, depth: usize, causes: &mut Vec<Cause>) {
    if depth > MAX_DEPTH {
        return;
    }
    if schema["x-kubernetes-validations"].as_array().is_some_and(|rules| !rules.is_empty()) {
        causes.push(Cause {
            reason: "FieldValueForbidden",
            message: "Forbidden: must be empty to be structural".to_owned(),
            field: format!("{at}.x-kubernetes-validations"),
        });
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        alternative(inner, &format!("{at}.properties[{name}]"), depth + 1, causes);
    }
    if let Some(inner) = schema.get("items") {
        alternative(inner, &format!("{at}.items"), depth + 1, causes);
    }
    alternatives(schema, at, depth, causes);
}

fn typed(schema: &Value, at: &str, depth: usize, causes: &mut Vec<Cause>) {
    if depth > MAX_DEPTH {
        return;
    }
    let says = |rule: &str| schema[rule] == true;
    let free = says("x-kubernetes-preserve-unknown-fields") || says("x-kubernetes-int-or-string");
    let items = schema.get("items").filter(|it| !it.is_null());
    if is_empty(&schema["type"]) && !free {
        let of = if depth == 0 { "at the root" } else { "for specified object fields" };
        causes.push(required(&format!("{at}.type"), &format!("must not be empty {of}")));
    } else if schema["type"] == "array" && items.is_none() {
        causes.push(required(&format!("{at}.items"), "must be specified"));
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        typed(inner, &format!("{at}.properties[{name}]"), depth + 1, causes);
    }
    if let Some(items) = items.filter(|it| it.is_object()) {
        typed(items, &format!("{at}.items"), depth + 1, causes);
    }
    if let Some(others) = schema.get("additionalProperties").filter(|it| it.is_object()) {
        typed(others, &format!("{at}.additionalProperties"), depth + 1, causes);
    }
}

/// Checks that rule and message exist, and that the message has one line. The expression itself is
/// checked in `cel_rules`.
fn expression(schema: &Value, rule: &Value, at: &str, causes: &mut Vec<Cause>) {
    let part = |field: &str| rule[field].as_str().unwrap_or_default();
    let (text, message) = (part("rule").trim(), part("message").trim());
    let (of_rule, of_message) = (format!("{at}.rule"), format!("{at}.message"));
    if text.is_empty() {
        causes.push(required(&of_rule, "rule is not specified"));
    } else if !part("message").is_empty() && message.is_empty() {
        causes.push(invalid(&of_message, rule.get("message"), "must be non-empty if specified"));
    } else if message.contains('\n') {
        causes.push(invalid(&of_message, rule.get("message"), "must not contain line breaks"));
    } else if text.contains('\n') && message.is_empty() {
        causes.push(required(&of_message, "message must be specified if rule contains line breaks"));
    }
    if !part("messageExpression").is_empty() && part("messageExpression").trim().is_empty() {
        let words = "messageExpression must be non-empty if specified";
        causes.push(required(&format!("{at}.messageExpression"), words));
    }
    reason_and_path(schema, rule, at, causes);
}

/// Checks the reason and the field path of a rule.
fn reason_and_path(schema: &Value, rule: &Value, at: &str, causes: &mut Vec<Cause>) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
        let known: Vec<_> = REASONS.iter().map(|reason| json!(reason).to_string()).collect();
        causes.push(Cause {
            reason: "FieldValueNotSupported",
            message: format!("Unsupported value: {}: supported values: {}", json!(reason), known.join(", ")),
            field: format!("{at}.reason"),
        });
    }
    let (at, given) = (format!("{at}.fieldPath"), rule["fieldPath"].as_str().unwrap_or_default());
    let mut refuse = |words: &str| causes.push(invalid(&at, rule.get("fieldPath"), words));
    if !given.is_empty() && given.trim().is_empty() {
        refuse("must be non-empty if specified");
    }
    if given.contains('\n') {
        refuse("must not contain line breaks");
    }
    if !given.is_empty() && !leads_somewhere(schema, given) {
        refuse("must be a valid path");
    }
}

/// True for a path such as `.a.b` or `.a['b']` whose fields exist.
fn leads_somewhere(schema: &Value, path: &str) -> bool {
    let (mut schema, mut rest) = (schema, path);
    while !rest.is_empty() {
        let quoted = rest.strip_prefix("['").and_then(|rest| rest.split_once("']"));
        let plain = || {
            let rest = rest.strip_prefix('.')?;
            Some(rest.split_at(rest.find(['.', '[', ']']).unwrap_or(rest.len())))
        };
        let Some((name, after)) = quoted.or_else(plain) else { return false };
        let values = schema.get("additionalProperties").filter(|values| values.is_object());
        let Some(inner) = schema["properties"].get(name).or(values) else { return false };
        (schema, rest) = (inner, after);
    }
    true
}

fn api_service(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let (spec, name) = (&seen.root["spec"], &seen.root["metadata"]["name"]);
    let part = |field: &str| spec[field].as_str().unwrap_or_default();
    let wanted = format!("{}.{}", part("version"), part("group"));
    if *name != wanted {
        let words = format!("must be `spec.version+\".\"+spec.group`: {}", json!(wanted));
        causes.push(invalid("metadata.name", Some(name), &words));
    }
    for (field, most) in [("groupPriorityMinimum", 20000), ("versionPriority", 1000)] {
        if !spec[field].as_i64().is_some_and(|it| (1..=most).contains(&it)) {
            let words = format!("must be positive and less than {most}");
            causes.push(invalid(&format!("spec.{field}"), spec.get(field), &words));
        }
    }
}

fn webhook_name(seen: &RuleInput, causes: &mut Vec<Cause>) {
    match seen.value.and_then(Value::as_str).unwrap_or_default() {
        "" => causes.push(required(&seen.at, "")),
        name if name.split('.').count() < 3 => {
            let words = "should be a domain with at least three segments separated by dots";
            causes.push(invalid(&seen.at, seen.value, words));
        }
        name => {
            causes.extend(
                name_formats::subdomain(name).iter().map(|words| invalid(&seen.at, seen.value, words)),
            );
        }
    }
}

fn unique_webhooks(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let all: Vec<_> =
        seen.value.and_then(Value::as_array).into_iter().flatten().map(|it| &it["name"]).collect();
    for (index, name) in all.iter().enumerate().filter(|(index, name)| all[..*index].contains(name)) {
        causes.push(Cause {
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {name}"),
            field: format!("{}[{index}].name", seen.at),
        });
    }
}

fn client(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(it) = seen.value else { return };
    let url = it["url"].as_str();
    if url.is_some() == it.get("service").is_some() {
        return causes.push(required(&seen.at, "exactly one of url or service is required"));
    }
    if let Some((scheme, _)) =
        url.and_then(|it| it.split_once("://")).filter(|(scheme, _)| *scheme != "https")
    {
        let words = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
        causes.push(invalid(&format!("{}.url", seen.at), Some(&json!(scheme)), words));
    }
}

fn review_versions(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let all = seen.value.and_then(Value::as_array);
    if all.is_none_or(Vec::is_empty) {
        causes.push(required(&seen.at, "must specify one of v1, v1beta1"));
    } else if !all.is_some_and(|it| it.iter().any(|it| *it == "v1" || *it == "v1beta1")) {
        causes.push(invalid(&seen.at, seen.value, "must include at least one of v1, v1beta1"));
    }
}

fn webhook_timeout(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.value.and_then(Value::as_i64).is_some_and(|it| !(1..=30).contains(&it)) {
        causes.push(invalid(&seen.at, seen.value, "the timeout value must be between 1 and 30 seconds"));
    }
}

/// A `*` must be the only entry of its list.
fn alone(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let lists = [("apiGroups", "API groups"), ("apiVersions", "API versions"), ("operations", "operations")];
    for (field, what) in lists {
        let list = seen.value.and_then(|it| it.get(field)).and_then(Value::as_array);
        if list.is_some_and(|it| it.len() > 1 && it.contains(&json!("*"))) {
            let words = format!("if '*' is present, must not specify other {what}");
            causes.push(invalid(
                &format!("{}.{field}", seen.at),
                seen.value.and_then(|it| it.get(field)),
                &words,
            ));
        }
    }
}
