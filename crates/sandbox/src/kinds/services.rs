//! Addresses and ports of Services.
//!
//! In: a Service with defaults, and its previous state.
//! Out: the Service with its allocated addresses and ports. An allocated address is kept until the
//! type of the Service no longer uses it.

use serde_json::{Value, json};

use super::Allocator;

/// Allocates the addresses and ports that the type of a Service needs.
pub(crate) fn allocate_for(service: &mut Value, allocate: &mut dyn Allocator) {
    let Some(kind) = service["spec"]["type"].as_str().map(str::to_owned) else { return };
    let spec = &mut service["spec"];
    if has_address(&kind) {
        if is_blank(&spec["clusterIP"]) {
            spec["clusterIP"] = allocate.address().into();
        }
        let headless = spec["clusterIP"] == "None";
        let free = headless && is_blank(&spec["selector"]);
        set(spec, "clusterIPs", |spec| json!([spec["clusterIP"]]));
        set(spec, "ipFamilyPolicy", |_| if free { "RequireDualStack" } else { "SingleStack" }.into());
        set(spec, "ipFamilies", |_| if free { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
    }
    if has_node_ports(&kind, spec) {
        for port in spec["ports"].as_array_mut().into_iter().flatten() {
            if is_blank(&port["nodePort"]) {
                port["nodePort"] = allocate.node_port().into();
            }
        }
    }
    if needs_health_port(&kind, spec) && is_blank(&spec["healthCheckNodePort"]) {
        spec["healthCheckNodePort"] = allocate.node_port().into();
    }
    drop_blanks(spec);
}

/// Restores allocated values from the previous state, and removes those that the new type does not
/// use.
pub(crate) fn keep_allocated(old: &Value, new: &mut Value) {
    let (before, now) = (&old["spec"], &mut new["spec"]);
    let (was, is) = (text(&before["type"]), text(&now["type"]));
    if has_address(&was) && has_address(&is) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if is_blank(&now[field]) && !is_blank(&before[field]) {
                now[field] = before[field].clone();
            }
        }
    } else if has_address(&was) {
        forget(
            now,
            before,
            &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"],
        );
    }
    if has_node_ports(&was, before) && has_node_ports(&is, now) {
        let key = |port: &Value| (port["protocol"].clone(), port["port"].clone());
        for port in now["ports"].as_array_mut().into_iter().flatten().filter(|it| is_blank(&it["nodePort"])) {
            let same = before["ports"].as_array().into_iter().flatten().find(|it| key(it) == key(port));
            if let Some(given) = same.map(|it| it["nodePort"].clone()).filter(|it| !is_blank(it)) {
                port["nodePort"] = given;
            }
        }
    } else if has_node_ports(&was, before) && was != is {
        forget_node_ports(now, before);
    }
    if needs_health_port(&was, before) {
        if !needs_health_port(&is, now) {
            forget(now, before, &["healthCheckNodePort"]);
        } else if is_blank(&now["healthCheckNodePort"]) {
            now["healthCheckNodePort"] = before["healthCheckNodePort"].clone();
        }
    }
    if is != "LoadBalancer" {
        new["status"]["loadBalancer"] = serde_json::json!({});
    }
    let now = &mut new["spec"];
    if was == "LoadBalancer" && is != "LoadBalancer" {
        forget(now, before, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    let is_external = |kind: &str, spec: &Value| {
        kind == "NodePort" || kind == "LoadBalancer" || !is_blank(&spec["externalIPs"])
    };
    if is_external(&was, before) && !is_external(&is, now) {
        forget(now, before, &["externalTrafficPolicy"]);
    }
    drop_blanks(now);
}

fn has_address(kind: &str) -> bool {
    matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer")
}

fn has_node_ports(kind: &str, spec: &Value) -> bool {
    kind == "NodePort" || (kind == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false)
}

fn needs_health_port(kind: &str, spec: &Value) -> bool {
    kind == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

/// Removes fields that the update left unchanged.
fn forget(now: &mut Value, before: &Value, fields: &[&str]) {
    for field in fields {
        if now[*field] == before[*field] {
            now[*field] = Value::Null;
        }
    }
}

fn forget_node_ports(now: &mut Value, before: &Value) {
    let given: Vec<_> =
        before["ports"].as_array().into_iter().flatten().map(|it| it["nodePort"].clone()).collect();
    for port in now["ports"].as_array_mut().into_iter().flatten() {
        if given.contains(&port["nodePort"])
            && let Some(port) = port.as_object_mut()
        {
            port.remove("nodePort");
        }
    }
}

fn set(spec: &mut Value, field: &str, value: impl Fn(&Value) -> Value) {
    if is_blank(&spec[field]) {
        spec[field] = value(spec);
    }
}

fn is_blank(it: &Value) -> bool {
    match it {
        Value::Null => true,
        Value::Bool(_) => false,
        Value::Number(it) => it.as_i64() == Some(0),
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
    }
}

/// Removes the nulls that indexing of a map has created.
fn drop_blanks(spec: &mut Value) {
    spec.as_object_mut().into_iter().for_each(|it| it.retain(|_, value| !value.is_null()));
}

fn text(it: &Value) -> String {
    it.as_str().unwrap_or_default().to_owned()
}
