//! Validation of the `conversion` of CustomResourceDefinitions.
//!
//! In: the value that a line of `rules.txt` selects.
//! Out: the problems found there, at the field paths of the API server's internal version.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::name_formats;
use super::{Cause, CustomCheck, RuleInput, forbidden, invalid, required, unsupported};

const CLIENT: &str = "spec.conversion.webhookClientConfig";
const FORMS: &str = "spec.conversion.conversionReviewVersions";

/// Returns the check that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CustomCheck> {
    (name == "conversion").then_some(conversion as CustomCheck)
}

fn conversion(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(conversion) = seen.value.filter(|value| value.is_object()) else { return };
    let strategy = conversion["strategy"].as_str().unwrap_or_default();
    let (client, forms) =
        (&conversion["webhook"]["clientConfig"], &conversion["webhook"]["conversionReviewVersions"]);
    let forms = forms.as_array().map(Vec::as_slice).unwrap_or_default();
    match strategy {
        "" => causes.push(required("spec.conversion.strategy", "")),
        "None" | "Webhook" => {}
        other => causes.push(unsupported("spec.conversion.strategy", other, &["None", "Webhook"])),
    }
    if strategy == "Webhook" {
        match client.is_object() {
            true => {
                reachable(client, causes);
                vouched_for(client, seen.old, causes);
            }
            false => causes.push(required(CLIENT, "required when strategy is set to Webhook")),
        }
        understood(forms, causes);
        return;
    }
    let words = "should not be set when strategy is not set to Webhook";
    if client.is_object() {
        causes.push(forbidden(CLIENT, words));
    }
    if !forms.is_empty() {
        causes.push(forbidden(FORMS, words));
    }
}

/// A webhook has exactly one address.
fn reachable(client: &Value, causes: &mut Vec<Cause>) {
    let service = client.get("service").filter(|service| service.is_object());
    match (client["url"].as_str(), service) {
        (Some(url), None) => address(url, causes),
        (None, Some(service)) => in_cluster(service, causes),
        (Some(_), Some(_)) | (None, None) => {
            causes.push(required(CLIENT, "exactly one of url or service is required"));
        }
    }
}

/// Refuses an invalid CA bundle in a definition that is served, unless it was invalid before.
fn vouched_for(client: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let is_broken = |client: &Value| {
        let bundle = client["caBundle"].as_str().unwrap_or_default();
        let bytes = STANDARD.decode(bundle).unwrap_or_default();
        !bundle.is_empty() && !String::from_utf8_lossy(&bytes).contains("-----BEGIN CERTIFICATE-----")
    };
    let is_served = |old: &Value| {
        let mut conditions = old["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    let is_new =
        |old: &Value| is_served(old) && !is_broken(&old["spec"]["conversion"]["webhook"]["clientConfig"]);
    if is_broken(client) && old.is_some_and(is_new) {
        let words = "unable to load root certificates: unable to parse bytes as PEM block";
        causes.push(invalid(&format!("{CLIENT}.caBundle"), client.get("caBundle"), words));
    }
}

fn address(url: &str, causes: &mut Vec<Cause>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut wrong = |value: &str, words: String| {
        causes.push(invalid(&format!("{CLIENT}.url"), Some(&json!(value)), &words));
    };
    let (front, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (front, query) = front.split_once('?').unwrap_or((front, ""));
    let (scheme, rest) = front.split_once("://").unwrap_or(("", front));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if scheme != "https" {
        wrong(scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        wrong("", format!("host must be specified{FORM}"));
    }
    if !user.is_empty() {
        wrong(user, "user information is not permitted in the URL".to_owned());
    }
    if !fragment.is_empty() {
        wrong(fragment, "fragments are not permitted in the URL".to_owned());
    }
    if !query.is_empty() {
        wrong(query, "query parameters are not permitted in the URL".to_owned());
    }
}

/// Like the server, this reports a missing name as a missing namespace and vice versa.
fn in_cluster(service: &Value, causes: &mut Vec<Cause>) {
    let at = |field: &str| format!("{CLIENT}.service.{field}");
    for (field, told) in [("namespace", "name"), ("name", "namespace")] {
        if service[field].as_str().is_none_or(str::is_empty) {
            causes.push(required(&at(told), ""));
        }
    }
    if let Some(port) = service["port"].as_i64().filter(|port| !(1..=65535).contains(port)) {
        let words = "port is not valid: must be between 1 and 65535, inclusive";
        causes.push(invalid(&at("port"), Some(&json!(port)), words));
    }
    let path = service["path"].as_str().unwrap_or_default();
    let mut wrong = |words: String| causes.push(invalid(&at("path"), Some(&json!(path)), &words));
    match path {
        "" | "/" => return,
        "//" => return wrong("segment[0] may not be empty".to_owned()),
        path if !path.starts_with('/') => wrong("must start with a '/'".to_owned()),
        _ => {}
    }
    let steps = path.get(1..).unwrap_or_default();
    for (place, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        match step {
            "" => wrong(format!("segment[{place}] may not be empty")),
            step => {
                name_formats::subdomain(step)
                    .into_iter()
                    .for_each(|words| wrong(format!("segment[{place}]: {words}")));
            }
        }
    }
}

/// At least one supported version of ConversionReview is required.
fn understood(forms: &[Value], causes: &mut Vec<Cause>) {
    if forms.is_empty() {
        return causes.push(required(FORMS, ""));
    }
    for (place, form) in forms.iter().enumerate() {
        let at = format!("{FORMS}[{place}]");
        if forms[..place].contains(form) {
            causes.push(invalid(&at, Some(form), "duplicate version"));
            continue;
        }
        let wrong = name_formats::old_label(form.as_str().unwrap_or_default());
        causes.extend(wrong.iter().map(|words| invalid(&at, Some(form), words)));
    }
    if !forms.iter().any(|form| *form == "v1" || *form == "v1beta1") {
        causes.push(invalid(FORMS, Some(&json!(forms)), "must include at least one of v1, v1beta1"));
    }
}
