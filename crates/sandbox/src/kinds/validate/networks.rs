//! Validation of Services, Ingresses and NetworkPolicies where the rule table is not sufficient.
//!
//! In: the value that a line of `rules.txt` selects.
//! Out: the problems found there.

// From `core`: parsing an address does not use the network.
use core::net::IpAddr;

use serde_json::{Value, json};

use super::name_formats;
use super::{
    Cause, CustomCheck, RuleInput, forbidden, invalid, is_empty, items, required, text, unsupported,
};
use crate::kinds::field_paths::Path;

/// Returns the check that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CustomCheck> {
    Some(match name {
        "address" => address,
        "backend" => backend,
        "host" => host,
        "ingress-path" => ingress_path,
        "no-node-port" => no_node_port,
        "policy-peer" => policy_peer,
        "service-port" => service_port,
        "service-ports" => service_ports,
        "some-backend" => some_backend,
        _ => return None,
    })
}

fn service_port(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let number = seen.value.and_then(Value::as_i64).unwrap_or(0);
    if !(1..=65535).contains(&number) {
        causes.push(invalid(&seen.at, Some(&json!(number)), "must be between 1 and 65535, inclusive"));
    }
}

/// Several ports must have unique names.
fn service_ports(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let all: Vec<_> = items(seen.value).collect();
    let key = |port: &Value| (port["protocol"].clone(), port["port"].clone());
    for (index, port) in all.iter().enumerate() {
        let at = format!("{}[{index}].name", seen.at);
        let duplicate = |at: String, value: String| Cause {
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {value}"),
            field: at,
        };
        match port["name"].as_str().unwrap_or_default() {
            "" if all.len() > 1 => causes.push(required(&at, "")),
            "" => {}
            name if all[..index].iter().any(|it| it["name"] == name) => {
                causes.push(duplicate(at, json!(name).to_string()));
            }
            _ => {}
        }
        if all[..index].iter().any(|it| key(it) == key(port)) && port["port"] != 0 {
            // A port with only these two fields set, as Go prints it.
            let value = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                port["protocol"], port["port"]
            );
            causes.push(duplicate(format!("{}[{index}]", seen.at), value));
        }
    }
}

fn no_node_port(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let kind = seen.section["spec"]["type"].as_str().unwrap_or_default();
    if seen.value.is_some_and(|it| *it != 0) && matches!(kind, "ClusterIP" | "ExternalName") {
        let words = format!("may not be used when `type` is '{kind}'");
        causes.push(forbidden(&seen.at, &words));
    }
}

fn address(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(address) = text(seen).filter(|it| *it != "None") else { return };
    if address.parse::<IpAddr>().is_err() {
        let words = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.push(invalid(&seen.at, seen.value, words));
    }
}

fn policy_peer(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(peer) = seen.value else { return };
    if is_empty(peer) {
        return causes.push(required(&seen.at, "must specify a peer"));
    }
    if let Some(range) = peer["ipBlock"]["cidr"].as_str() {
        let parts = range.split_once('/');
        let fine = parts.is_some_and(|(ip, bits)| ip.parse::<IpAddr>().is_ok() && bits.parse::<u8>().is_ok());
        if !fine {
            let words = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            causes.push(invalid(&format!("{}.ipBlock.cidr", seen.at), Some(&json!(range)), words));
        }
    }
}

fn some_backend(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let spec = &seen.section["spec"];
    if spec.get("defaultBackend").is_none() && spec.get("rules").is_none_or(is_empty) {
        causes.push(invalid(&seen.at, None, "either `defaultBackend` or `rules` must be specified"));
    }
}

fn host(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(host) = text(seen) else { return };
    if host.parse::<IpAddr>().is_ok() {
        return causes.push(invalid(&seen.at, seen.value, "must be a DNS name, not an IP address"));
    }
    let name = host.strip_prefix("*.").unwrap_or(host);
    causes.extend(name_formats::subdomain(name).iter().map(|words| invalid(&seen.at, seen.value, words)));
}

fn ingress_path(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let at = format!("{}.path", seen.at);
    let Some(it) = seen.value else { return };
    let path = it["path"].as_str().unwrap_or_default();
    let kind = it["pathType"].as_str().unwrap_or_default();
    match kind {
        "Exact" | "Prefix" if !path.starts_with('/') => {
            causes.push(invalid(&at, it.get("path"), "must be an absolute path"));
        }
        "Exact" | "Prefix" => {
            let wrong = ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| path.contains(part));
            causes.extend(
                wrong.map(|part| invalid(&at, it.get("path"), &format!("must not contain '{part}'"))),
            );
        }
        "" | "ImplementationSpecific" => {}
        _ => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            causes.push(unsupported(&format!("{}.pathType", seen.at), kind, &known));
        }
    }
}

fn backend(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(it) = seen.value else { return };
    if seen.section["spec"]["rules"].is_array() && unfinished_path(seen) {
        return;
    }
    let service = &it["service"];
    if service.is_null() && it.get("resource").is_none() {
        causes.push(invalid(&seen.at, Some(&json!("")), "resource or service backend is required"));
    } else if service.is_object() {
        let port = &service["port"];
        let (named, numbered) = (!is_empty(&port["name"]), port["number"].as_i64().is_some_and(|it| it != 0));
        if is_empty(&service["name"]) {
            causes.push(required(&format!("{}.service.name", seen.at), ""));
        }
        if named && numbered {
            causes.push(invalid(&seen.at, Some(&json!("")), "cannot set both port name & port number"));
        } else if !named && !numbered {
            causes.push(required(&seen.at, "port name or number is required"));
        }
    }
}

/// True for a path without a type, which is not checked further.
fn unfinished_path(seen: &RuleInput) -> bool {
    let place = seen.at.strip_suffix(".backend").unwrap_or_default();
    let mut kind = None;
    let paths = Path::of("spec.rules[].http.paths[]");
    paths.look(seen.section, &mut |path, at| {
        if at == place {
            kind = Some(path["pathType"].is_null());
        }
    });
    kind.unwrap_or(false)
}
