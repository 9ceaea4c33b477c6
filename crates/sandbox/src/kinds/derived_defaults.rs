//! Defaults that depend on other fields in ways that no table can express.
//!
//! In: the value that contains a field, and the field's name, as `defaults.txt` gives them.
//! Out: the field, if it was missing.

use serde_json::{Map, Value, json};

use super::defaults::is_unset;

/// Sets one field of a value; changes the value itself if the name is empty.
pub(crate) type Derive = fn(&mut Value, &str);

/// Returns the function that the table refers to by this name.
pub(crate) fn named(name: &str) -> Option<Derive> {
    Some(match name {
        "ip-mode" => ip_mode,
        "pull-policy" => pull_policy,
        "empty-volume" => empty_volume,
        "target-port" => target_port,
        "template-generation" => template_generation,
        "namespace-label" => namespace_label,
        "pod-ranges" => pod_ranges,
        "pod-addresses" => |status, field| addresses(status, field, "podIP"),
        "host-addresses" => |status, field| addresses(status, field, "hostIP"),
        "singular" => singular,
        "list-kind" => list_kind,
        _ => return None,
    })
}

/// `Always` for the latest image: the tag `latest`, or neither tag nor digest.
fn pull_policy(holder: &mut Value, field: &str) {
    let image =
        holder.get("image").or_else(|| holder.get("reference")).and_then(Value::as_str).unwrap_or_default();
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    // A colon before the last slash starts the port of a registry.
    let last = name.rsplit('/').next().unwrap_or_default();
    let latest = match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => digest.is_none() && !image.is_empty(),
    };
    set(holder, field, json!(if latest { "Always" } else { "IfNotPresent" }));
}

/// An IP address of a load balancer gets the mode `VIP`; a host name gets none.
fn ip_mode(ingress: &mut Value, field: &str) {
    if !is_unset(ingress.get("ip")) {
        set(ingress, field, json!("VIP"));
    }
}

/// A volume without a source is an `emptyDir`.
fn empty_volume(volume: &mut Value, _: &str) {
    if let Some(volume) = volume.as_object_mut()
        && volume.keys().all(|name| name == "name")
    {
        volume.insert("emptyDir".to_owned(), Value::Object(Map::new()));
    }
}

/// The target port of a Service defaults to its port.
fn target_port(port: &mut Value, field: &str) {
    let zero = port.get(field).is_none_or(|it| it == 0 || is_unset(Some(it)));
    let own = port.get("port").cloned();
    if let (true, Some(own), Some(port)) = (zero, own, port.as_object_mut()) {
        port.insert(field.to_owned(), own);
    }
}

/// Every Namespace has a label with its own name.
fn namespace_label(metadata: &mut Value, field: &str) {
    let Some(metadata) = metadata.as_object_mut() else { return };
    let Some(name) = metadata.get("name").filter(|name| !is_unset(Some(name))).cloned() else { return };
    let labels = metadata.entry(field).or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name);
    }
}

/// Counts template changes of a DaemonSet in an annotation. It exists before the first count, so
/// the writer of the object owns it.
fn template_generation(metadata: &mut Value, field: &str) {
    let Some(metadata) = metadata.as_object_mut() else { return };
    let annotations = metadata.entry(field).or_insert(Value::Null);
    if annotations.is_null() {
        *annotations = json!({});
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.entry("deprecated.daemonset.template.generation").or_insert_with(|| "0".into());
    }
}

/// The single Pod CIDR of a Node is also its list of CIDRs.
fn pod_ranges(spec: &mut Value, field: &str) {
    if let Some(range) = spec.get("podCIDR").filter(|range| !is_unset(Some(range))).cloned() {
        set(spec, field, json!([range]));
    }
}

/// The single IP address of a Pod is also its list of addresses.
fn addresses(status: &mut Value, field: &str, one: &str) {
    if let Some(address) = status.get(one).filter(|address| !is_unset(Some(address))).cloned() {
        set(status, field, json!([{"ip": address}]));
    }
}

fn singular(names: &mut Value, field: &str) {
    let kind = names.get("kind").and_then(Value::as_str).map(str::to_lowercase);
    if let Some(kind) = kind.filter(|kind| !kind.is_empty()) {
        set(names, field, json!(kind));
    }
}

fn list_kind(names: &mut Value, field: &str) {
    let kind = names.get("kind").and_then(Value::as_str).filter(|kind| !kind.is_empty());
    if let Some(list) = kind.map(|kind| format!("{kind}List")) {
        set(names, field, json!(list));
    }
}

fn set(holder: &mut Value, field: &str, value: Value) {
    if let Some(holder) = holder.as_object_mut()
        && is_unset(holder.get(field))
    {
        holder.insert(field.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_images_are_pulled_always() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.25", "IfNotPresent"),
            ("localhost:5000/nginx", "Always"),
            ("localhost:5000/nginx:1", "IfNotPresent"),
            ("nginx@sha256:00", "IfNotPresent"),
            ("nginx:latest@sha256:00", "Always"),
            ("", "IfNotPresent"),
        ] {
            let mut container = json!({"image": image});
            pull_policy(&mut container, "imagePullPolicy");
            assert_eq!(container["imagePullPolicy"], policy, "{image:?}");
        }
    }

    #[test]
    fn a_volume_of_no_kind_is_empty() {
        let mut volumes = [json!({"name": "a"}), json!({"name": "b", "secret": {}})];
        volumes.iter_mut().for_each(|it| empty_volume(it, ""));
        assert_eq!(volumes, [json!({"name": "a", "emptyDir": {}}), json!({"name": "b", "secret": {}})]);
    }
}
