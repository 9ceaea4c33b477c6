//! Cells of Services, Ingresses, endpoints and APIServices.
//!
//! In: an object and the current time.
//! Out: the content of a cell.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{CellFn, count, items, joined, or, text};

/// Maximum number of items in a cell.
const SHOWN: usize = 3;
const NONE: &str = "<none>";
const UNSET: &str = "<unset>";

/// Returns the function that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CellFn> {
    Some(match name {
        "api-available" => api_available,
        "api-backend" => api_backend,
        "class-parameters" => class_parameters,
        "endpoints" => endpoints,
        "external" => external,
        "hosts" => hosts,
        "ingress-address" => |it, _| balancer(it).join(",").into(),
        "ingress-ports" => |it, _| if count(&it["spec"]["tls"]) > 0 { "80, 443" } else { "80" }.into(),
        "parent" => parent,
        "ranges" => |it, _| joined(&it["spec"]["cidrs"], ",").into(),
        "service-ports" => service_ports,
        "slice-endpoints" => slice_endpoints,
        "slice-ports" => slice_ports,
        _ => return None,
    })
}

/// Joins the first items, and adds the number of the remaining ones.
fn few(all: &[String]) -> String {
    let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(",");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn endpoints(it: &Value, _: Timestamp) -> Value {
    let mut all = Vec::new();
    for subset in items(&it["subsets"]) {
        let addresses = || items(&subset["addresses"]).map(|it| text(&it["ip"]));
        if count(&subset["ports"]) == 0 {
            all.extend(addresses().map(str::to_owned));
        }
        for port in items(&subset["ports"]) {
            let join = |ip: &str| {
                if ip.contains(':') {
                    format!("[{ip}]:{}", port["port"])
                } else {
                    format!("{ip}:{}", port["port"])
                }
            };
            all.extend(addresses().map(join));
        }
    }
    or(few(&all), NONE)
}

fn slice_ports(it: &Value, _: Timestamp) -> Value {
    let port = |it: &Value| match it["port"].as_i64() {
        Some(port) => port.to_string(),
        None if it["name"].is_null() => "*".to_owned(),
        None => text(&it["name"]).to_owned(),
    };
    or(few(&items(&it["ports"]).map(port).collect::<Vec<_>>()), UNSET)
}

fn slice_endpoints(it: &Value, _: Timestamp) -> Value {
    let addresses = items(&it["endpoints"]).flat_map(|it| items(&it["addresses"]));
    or(few(&addresses.map(|it| text(it).to_owned()).collect::<Vec<_>>()), UNSET)
}

fn balancer(it: &Value) -> Vec<String> {
    let name = |it: &Value| {
        [&it["ip"], &it["hostname"]].map(text).into_iter().find(|it| !it.is_empty()).map(str::to_owned)
    };
    let mut all: Vec<_> = items(&it["status"]["loadBalancer"]["ingress"]).filter_map(name).collect();
    all.sort();
    all.dedup();
    all
}

fn external(it: &Value, _: Timestamp) -> Value {
    let own = items(&it["spec"]["externalIPs"]).map(|it| text(it).to_owned());
    match text(&it["spec"]["type"]) {
        "ExternalName" => it["spec"]["externalName"].clone(),
        "LoadBalancer" => or(balancer(it).into_iter().chain(own).collect::<Vec<_>>().join(","), "<pending>"),
        "ClusterIP" | "NodePort" => or(own.collect::<Vec<_>>().join(","), NONE),
        _ => "<unknown>".into(),
    }
}

fn service_ports(it: &Value, _: Timestamp) -> Value {
    let port = |it: &Value| match it["nodePort"].as_i64().filter(|it| *it != 0) {
        Some(node) => format!("{}:{node}/{}", it["port"], text(&it["protocol"])),
        None => format!("{}/{}", it["port"], text(&it["protocol"])),
    };
    or(items(&it["spec"]["ports"]).map(port).collect::<Vec<_>>().join(","), NONE)
}

fn hosts(it: &Value, _: Timestamp) -> Value {
    let all: Vec<_> = items(&it["spec"]["rules"])
        .map(|it| text(&it["host"]).to_owned())
        .filter(|it| !it.is_empty())
        .collect();
    or(few(&all), "*")
}

fn class_parameters(it: &Value, _: Timestamp) -> Value {
    let it = &it["spec"]["parameters"];
    let kind = text(&it["kind"]);
    match text(&it["apiGroup"]) {
        _ if it.is_null() => NONE.into(),
        "" => format!("{kind}/{}", text(&it["name"])).into(),
        group => format!("{kind}.{group}/{}", text(&it["name"])).into(),
    }
}

fn parent(it: &Value, _: Timestamp) -> Value {
    let it = &it["spec"]["parentRef"];
    let parts = [&it["group"], &it["resource"], &it["namespace"], &it["name"]].map(text);
    let resource =
        if parts[0].is_empty() { parts[1].to_owned() } else { format!("{}.{}", parts[1], parts[0]) };
    let all = [resource.as_str(), parts[2], parts[3]];
    all.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("/").into()
}

fn api_backend(it: &Value, _: Timestamp) -> Value {
    let service = &it["spec"]["service"];
    if service.is_null() {
        return "Local".into();
    }
    format!("{}/{}", text(&service["namespace"]), text(&service["name"])).into()
}

fn api_available(it: &Value, _: Timestamp) -> Value {
    match items(&it["status"]["conditions"]).find(|it| it["type"] == "Available") {
        None => "Unknown".into(),
        Some(it) if it["status"] == "True" => "True".into(),
        Some(it) => format!("{} ({})", text(&it["status"]), text(&it["reason"])).into(),
    }
}
