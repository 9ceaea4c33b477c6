//! Discovery documents.
//!
//! In: the resource registry.
//! Out: the documents of discovery, aggregated or group by group, and the server version.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::resource_registry::{Resource, ResourceRegistry};

/// Release of Kubernetes that the sandbox imitates.
pub(crate) const RELEASE: &str = "v1.36.3";

/// Platform in `/version`; clients recognize by it that no workload runs here.
pub(crate) const PLATFORM: &str = "moorline/sandbox";

/// Content type of aggregated discovery.
pub(crate) const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Returns the document of `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": RELEASE, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": PLATFORM,
        "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
    })
}

/// Returns all groups with all their resources; the core group has a document of its own.
pub(crate) fn aggregated(served: &ResourceRegistry, core: bool) -> Value {
    let groups = groups(served).into_iter().filter(|(group, _)| group.is_empty() == core);
    let items = groups.map(|(group, versions)| {
        let versions = versions.iter().map(|version| {
            let resources = in_version(served, group, version);
            let resources: Vec<Value> =
                resources.map(|resource| resource_entry(resource, group, version)).collect();
            json!({"version": version, "freshness": "Current", "resources": resources})
        });
        let mut metadata = json!({"creationTimestamp": null});
        if !group.is_empty() {
            metadata["name"] = group.into();
        }
        json!({"metadata": metadata, "versions": versions.collect::<Vec<_>>()})
    });
    let items: Vec<Value> = items.collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

/// Returns all groups except the core group.
pub(crate) fn group_list(served: &ResourceRegistry) -> Value {
    let groups: Vec<Value> = groups(served)
        .into_iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| named_group(group, &versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Returns the versions of the core group.
pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// Returns one group.
pub(crate) fn group(served: &ResourceRegistry, name: &str) -> Option<Value> {
    let groups = groups(served);
    let (name, versions) = groups.get_key_value(name)?;
    let mut group = named_group(name, versions);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Some(group)
}

/// Returns the resources of one version of a group.
pub(crate) fn resource_list(served: &ResourceRegistry, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for resource in in_version(served, group, version) {
        let mut whole = json!({
            "name": &*resource.plural, "singularName": &*resource.singular, "namespaced": resource.namespaced,
            "kind": &*resource.kind, "verbs": resource.verbs(),
        });
        add_words(&mut whole, resource);
        resources.push(whole);
        for (name, (group, version, kind), verbs) in parts(resource, version) {
            let mut part = json!({
                "name": format!("{}/{name}", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": kind, "verbs": verbs,
            });
            if !group.is_empty() && *group != *resource.group {
                part["group"] = group.into();
                part["version"] = version.into();
            }
            resources.push(part);
        }
    }
    if resources.is_empty() {
        return None;
    }
    let whole = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": whole, "resources": resources}),
    )
}

/// Returns the groups with their versions, the preferred version first.
fn groups(served: &ResourceRegistry) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for resource in served.iter() {
        let versions = groups.entry(&resource.group).or_default();
        for version in resource.served() {
            if !versions.contains(&&*version.name) {
                versions.push(&version.name);
            }
        }
    }
    groups
}

fn in_version<'a>(
    served: &'a ResourceRegistry,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = &'a Resource> {
    let fits = move |resource: &&Resource| {
        *resource.group == *group && resource.served().any(|known| *known.name == *version)
    };
    served.iter().map(|resource| &**resource).filter(fits)
}

fn resource_entry(resource: &Resource, group: &str, version: &str) -> Value {
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut told = json!({
        "resource": &*resource.plural, "responseKind": kind(group, version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": &*resource.singular, "verbs": resource.verbs(),
    });
    add_words(&mut told, resource);
    let parts: Vec<Value> = parts(resource, version)
        .into_iter()
        .map(|(name, (group, version, word), verbs)| {
            json!({"subresource": name, "responseKind": kind(group, version, word), "verbs": verbs})
        })
        .collect();
    if !parts.is_empty() {
        told["subresources"] = parts.into();
    }
    told
}

fn add_words(to: &mut Value, resource: &Resource) {
    for (field, words) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !words.is_empty() {
            to[field] = words.iter().map(|word| Value::from(&**word)).collect();
        }
    }
}

/// A subresource: its name, the group, version and kind of its body, and its verbs.
type SubresourceEntry<'a> = (&'a str, (&'a str, &'a str, &'a str), Vec<&'static str>);

fn parts<'a>(resource: &'a Resource, version: &'a str) -> Vec<SubresourceEntry<'a>> {
    if let Some(kind) = resource.builtin() {
        let parts = kind.subresources.iter().map(|part| {
            let (group, version) = part.foreign.unwrap_or((&resource.group, version));
            (part.name, (group, version, part.kind), part.verbs.clone())
        });
        return parts.collect();
    }
    let verbs = || vec!["get", "patch", "update"];
    let known = resource.served().find(|known| *known.name == *version);
    let mut parts: Vec<SubresourceEntry<'a>> = Vec::new();
    if known.is_some_and(|known| known.has_status) {
        parts.push(("status", (&resource.group, version, &resource.kind), verbs()));
    }
    if known.is_some_and(|known| known.scale.is_some()) {
        parts.push(("scale", ("autoscaling", "v1", "Scale"), verbs()));
    }
    parts
}

fn named_group(name: &str, versions: &[&str]) -> Value {
    let version = |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let all: Vec<Value> = versions.iter().map(version).collect();
    json!({"name": name, "preferredVersion": all[0], "versions": all})
}
