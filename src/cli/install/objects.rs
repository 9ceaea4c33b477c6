//! The objects of an installation, from the chart's output that is part of the program.
//!
//! In: the values that `moorline install` has flags for. Out: the objects that `helm template`
//! renders with these values, and the namespace of the release, in an order in which they can be
//! applied. `manifests.yaml` is rendered by helm, with names in capitals where the values go. It is
//! smaller than code that builds the same objects, it is read like the chart, and a test compares
//! it with the chart.

use anyhow::Context as _;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::api;
use crate::yaml::{self, Dialect};

/// The chart's output with every object that a flag can ask for.
const MANIFESTS: &str = include_str!("manifests.yaml");

/// Names in it that the values replace.
const NAMESPACE: &str = "RELEASE_NAMESPACE";
const IMAGE: &str = "IMAGE_REPOSITORY:IMAGE_TAG";
const URL: &str = "SYNC_URL";
const PATH: &str = "SYNC_PATH";

/// Permissions of the daemon on objects, as the chart's `rbac.grant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Grant {
    /// None: each Sync reports the permissions that it lacks
    #[value(name = "none")]
    None,
    /// Those of the ClusterRole admin, in the namespace of the installation
    #[value(name = "namespaceAdmin")]
    NamespaceAdmin,
    /// All: for a trial, or a cluster that is managed from Git as a whole
    #[value(name = "clusterAdmin")]
    ClusterAdmin,
}

/// Values of an installation.
#[derive(Debug)]
pub(super) struct InstallValues<'a> {
    pub(super) namespace: &'a str,
    pub(super) image: &'a str,
    pub(super) grant: Grant,
    /// URL and path of the first Sync.
    pub(super) sync: Option<(&'a str, Option<&'a str>)>,
}

/// Builds the objects: the namespace first, then the definitions, the Sync last.
pub(super) fn build_objects(values: &InstallValues<'_>) -> anyhow::Result<Vec<Value>> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": values.namespace}});
    let mut objects = vec![namespace];
    objects.extend(api::definitions()?);
    let (syncs, others): (Vec<Value>, _) = rendered()?.into_iter().partition(is_sync);
    let mut chosen: Vec<Value> =
        others.into_iter().chain(syncs).filter(|object| is_chosen(object, values)).collect();
    chosen.iter_mut().for_each(|object| fill_in(object, values));
    objects.append(&mut chosen);
    Ok(objects)
}

/// Returns the rules of the daemon's own roles: of the ClusterRole, and of the Role in its
/// namespace.
pub(in super::super) fn daemon_rules() -> anyhow::Result<(Vec<Value>, Vec<Value>)> {
    let objects = rendered()?;
    let of = |kind: &str| -> Vec<Value> {
        let roles = objects.iter().filter(|object| object["kind"] == kind && !is_of_people(object));
        roles.filter_map(|role| role["rules"].as_array()).flatten().cloned().collect()
    };
    Ok((of("ClusterRole"), of("Role")))
}

fn rendered() -> anyhow::Result<Vec<Value>> {
    let documents = yaml::read("manifests.yaml", MANIFESTS.as_bytes(), Dialect::Kubectl);
    let documents = documents.context("the manifests of this program cannot be read")?;
    Ok(documents.into_iter().map(|document| document.value).filter(|value| !value.is_null()).collect())
}

/// True for a role that Kubernetes adds to view, edit or admin: the daemon does not have it.
fn is_of_people(role: &Value) -> bool {
    let labels = role["metadata"]["labels"].as_object();
    labels.is_some_and(|labels| {
        labels.keys().any(|label| label.starts_with("rbac.authorization.k8s.io/aggregate-to-"))
    })
}

fn is_sync(object: &Value) -> bool {
    object["kind"] == "Sync"
}

/// True if the values ask for this object.
fn is_chosen(object: &Value, values: &InstallValues<'_>) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["kind"].as_str() {
        Some("Sync") => values.sync.is_some(),
        Some("ClusterRoleBinding") if name.ends_with(".cluster-admin") => values.grant == Grant::ClusterAdmin,
        Some("RoleBinding") if name.ends_with(".admin") => values.grant == Grant::NamespaceAdmin,
        _ => true,
    }
}

fn fill_in(object: &mut Value, values: &InstallValues<'_>) {
    let (url, path) = values.sync.unwrap_or_default();
    if is_sync(object)
        && path.is_none()
        && let Some(spec) = object["spec"].as_object_mut()
    {
        spec.remove("path");
    }
    replace_names(object, &|text| match text {
        IMAGE => values.image.to_owned(),
        URL => url.to_owned(),
        PATH => path.unwrap_or_default().to_owned(),
        text => text.replace(NAMESPACE, values.namespace),
    });
}

fn replace_names(value: &mut Value, replace: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = replace(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_names(item, replace)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_names(field, replace)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(grant: Grant, sync: Option<(&str, Option<&str>)>) -> Vec<Value> {
        let values = InstallValues { namespace: "123", image: "a.example/moorline:1", grant, sync };
        build_objects(&values).unwrap()
    }

    fn names(objects: &[Value]) -> Vec<String> {
        let name =
            |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', "");
        objects.iter().map(name).collect()
    }

    #[test]
    fn only_what_is_asked_for_is_there_and_every_name_is_replaced() {
        let least = objects(Grant::None, None);
        assert_eq!(names(&least)[..2], ["Namespace 123", "CustomResourceDefinition syncs.moorline.dev"]);
        for grant in [Grant::NamespaceAdmin, Grant::ClusterAdmin] {
            let more = objects(grant, Some(("https://SYNC_PATH/RELEASE_NAMESPACE", None)));
            assert_eq!(more.len(), least.len() + 2, "{:?}", names(&more));
            let sync = more.last().unwrap();
            assert_eq!(sync["spec"]["source"]["git"]["url"], "https://SYNC_PATH/RELEASE_NAMESPACE");
            assert_eq!((sync["spec"].get("path"), &sync["metadata"]["namespace"]), (None, &json!("123")));
        }
        let whole = objects(Grant::ClusterAdmin, Some(("https://a.example/b", Some("IMAGE"))));
        assert_eq!(whole.last().unwrap()["spec"]["path"], "IMAGE");
        let text = serde_json::to_string(&least).unwrap();
        for name in [NAMESPACE, IMAGE, URL, PATH] {
            assert!(!text.contains(name), "{name} is left");
        }
    }

    #[test]
    fn the_rules_of_the_daemon_are_found() {
        let (wide, own) = daemon_rules().unwrap();
        assert!(wide.iter().any(|rule| rule["resources"] == json!(["syncs"])));
        assert!(own.iter().any(|rule| rule["resourceNames"] == json!(["moorline-key"])));
    }
}
