//! Life cycle of CustomResourceDefinitions.
//!
//! In: a definition that was written or deleted.
//! Out: the updated resource registry, and the status of the definition. A real API server writes
//! the status shortly after the write; here it follows at once, as a write of its own.

use serde_json::{Value, json};

use super::controllers::stored_target;
use super::convert::ConversionWebhook;
use super::schema::Schema;
use super::state::ServerState;
use super::store::Key;
use crate::cel_rules::CelRules;
use crate::resource_registry::{Origin, Resource, Scale, Version, storage_key};

impl ServerState {
    /// Updates the registry and the status after a write or deletion of a definition.
    pub(crate) fn definition_changed(&mut self, resource: &Resource, key: &Key, gone: bool) {
        if &*resource.kind != "CustomResourceDefinition" {
            return;
        }
        let Some((plural, group)) =
            key.name.split_once('.').map(|(one, two)| (one.to_owned(), two.to_owned()))
        else {
            return;
        };
        if gone {
            self.registry.remove(&group, &plural);
            self.store.drop_resource(&storage_key(&group, &plural));
            return;
        }
        let Some(body) = self.store.get(&resource.storage_key, key).map(|stored| stored.body()) else {
            return;
        };
        if !body["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        let defined = of_definition(&body, self.store.revision());
        if self.registry.iter().all(|known| known.storage_key != defined.storage_key) {
            self.store.register_resource(&defined.storage_key);
        }
        self.registry.insert(defined);
        let (spec, now) = (body["spec"].clone(), self.clock.text());
        let Some(target) = stored_target(self, &resource.storage_key, key.clone()) else { return };
        self.write_status(&target, "kube-apiserver", |status| establish(&spec, status, &now));
    }
}

/// Builds the resource that a definition describes, valid from the given revision.
fn of_definition(body: &Value, revision: u64) -> Resource {
    let (spec, names) = (&body["spec"], &body["spec"]["names"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> Vec<Box<str>> {
        value.as_array().into_iter().flatten().filter_map(|one| Some(one.as_str()?.into())).collect()
    };
    let all = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut versions: Vec<Version> = all.iter().map(version).collect();
    versions.sort_by_key(|version| precedence(&version.name));
    let stored = all.iter().find(|one| one["storage"] == true).map_or(&Value::Null, |one| &one["name"]);
    let stored = versions.iter().position(|version| *stored == *version.name).unwrap_or_default();
    let (group, plural) = (text(&spec["group"]), text(&names["plural"]));
    let singular = text(&names["singular"]);
    let kind = text(&names["kind"]);
    Resource {
        storage_key: storage_key(&group, &plural),
        singular: if singular.is_empty() { kind.to_lowercase() } else { singular }.into(),
        group: group.into(),
        kind: kind.into(),
        plural: plural.into(),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        versions,
        origin: Origin::Definition { stored, since: revision, hook: ConversionWebhook::of_definition(spec) },
    }
}

fn version(version: &Value) -> Version {
    let parts = &version["subresources"];
    let path = |value: &Value| -> Option<Vec<Box<str>>> {
        let text = value.as_str()?.strip_prefix('.')?;
        Some(text.split('.').map(Box::from).collect())
    };
    let scale = &parts["scale"];
    let scale = path(&scale["specReplicasPath"]).zip(path(&scale["statusReplicasPath"]));
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    Version {
        name: version["name"].as_str().unwrap_or_default().into(),
        is_served: version["served"] == true,
        schema: Schema::of_definition(&version["schema"]["openAPIV3Schema"]),
        rules: Some(CelRules::new(&version["schema"]["openAPIV3Schema"])),
        has_status: parts["status"].is_object(),
        scale: scale.map(|(spec, status)| Scale {
            spec,
            status,
            selector: path(&parts["scale"]["labelSelectorPath"]),
        }),
        columns: Some(version["additionalPrinterColumns"].clone()).filter(Value::is_array),
        selectable: selectable
            .filter_map(|field| Some(field["jsonPath"].as_str()?.trim_start_matches('.').into()))
            .collect(),
        described: Some(version["schema"]["openAPIV3Schema"].clone()).filter(Value::is_object),
    }
}

/// Sort key of a version name: stable before beta before alpha, the highest number first; all other
/// names last, in alphabetical order.
fn precedence(name: &str) -> (u8, std::cmp::Reverse<u32>, std::cmp::Reverse<u32>, String) {
    use std::cmp::Reverse;
    let parsed = name.strip_prefix('v').and_then(|rest| {
        let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
        let major: u32 = rest[..end].parse().ok()?;
        let (stage, minor) = match &rest[end..] {
            "" => (0, "0"),
            other => match (other.strip_prefix("beta"), other.strip_prefix("alpha")) {
                (Some(minor), _) => (1, minor),
                (None, Some(minor)) => (2, minor),
                (None, None) => return None,
            },
        };
        Some((stage, major, minor.parse::<u32>().ok()?))
    });
    match parsed {
        Some((stage, major, minor)) => (stage, Reverse(major), Reverse(minor), String::new()),
        None => (3, Reverse(0), Reverse(0), name.to_owned()),
    }
}

/// Writes the status of a definition whose names do not conflict with another one.
fn establish(spec: &Value, status: &mut Value, now: &str) {
    let stored = spec["versions"].as_array().into_iter().flatten().find(|one| one["storage"] == true);
    let stored = stored.map_or(Value::Null, |one| one["name"].clone());
    status["acceptedNames"] = spec["names"].clone();
    let mut versions = status["storedVersions"].as_array().cloned().unwrap_or_default();
    if !versions.contains(&stored) {
        versions.push(stored);
    }
    status["storedVersions"] = versions.into();
    if !status["conditions"].is_array() {
        let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
        status["conditions"] = json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_preferred_in_the_order_of_kubernetes() {
        let mut names = ["v1alpha1", "v2", "foo", "v1", "v1beta2", "v10", "v1beta1", "v11alpha2"];
        names.sort_by_key(|name| precedence(name));
        assert_eq!(names, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "foo"]);
    }
}
