//! The objects that are committed, and unmanaged ones.
//!
//! In: the number of an object and a stamp. Out: its manifest, its path, and the comparison of a
//! live object with it. Every manifest carries the number of the commit that wrote it, in an
//! annotation and in a field of its kind.

use base64::Engine as _;
use moorline::object::ObjectId;
use serde_json::{Value, json};

/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "apps";
/// The annotation with the number of a commit.
pub(crate) const STAMP: &str = "example.com/stamp";
/// Objects of a Sync at its beginning.
pub(crate) const OBJECTS: usize = 21;

/// Names of the kinds, and the paths where they are served.
const KINDS: [(&str, &str, &str); 8] = [
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Secret", "secrets"),
    ("v1", "Service", "services"),
    ("apps/v1", "Deployment", "deployments"),
    ("rbac.authorization.k8s.io/v1", "Role", "roles"),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("example.com/v1", "Widget", "widgets"),
];

/// The collection of the kind of an object.
pub(crate) fn collection(number: usize) -> String {
    let (version, _, plural) = KINDS[number % KINDS.len()];
    let root = if version.contains('/') { "apis" } else { "api" };
    format!("/{root}/{version}/namespaces/{NAMESPACE}/{plural}")
}

/// The object at a path.
pub(crate) fn id_of(path: &str) -> Option<ObjectId> {
    let (place, name) = path.rsplit_once('/')?;
    let (version, kind, _) = KINDS[(0..KINDS.len()).find(|number| collection(*number) == place)?];
    let group = version.split_once('/').map_or("", |(group, _)| group);
    ObjectId::new(group, kind, NAMESPACE, name).ok()
}

/// The collection of hooks. Nobody but a story runs these Pods.
pub(crate) fn hooks() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods")
}

/// All collections.
pub(crate) fn collections() -> impl Iterator<Item = String> {
    (0..KINDS.len()).map(collection).chain([hooks()])
}

/// A hook that runs before everything else of a commit.
pub(crate) fn hook(name: &str, stamp: u64) -> Value {
    let container = json!({"name": "main", "image": format!("example.com/migrate:{stamp}")});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {"moorline.dev/hook": "before"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    })
}

/// An object: the Sync in whose folder it began, and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(pub(crate) usize, pub(crate) usize);

impl Id {
    /// Returns its name.
    pub(crate) fn name(self) -> String {
        format!("s{}-{}", self.0, self.1)
    }

    /// Returns its path.
    pub(crate) fn path(self) -> String {
        format!("{}/{}", collection(self.1), self.name())
    }

    /// As the commit with this number has it.
    pub(crate) fn manifest(self, stamp: u64) -> Value {
        manifest(&self.name(), self.1, stamp)
    }
}

/// An object, as the commit with this number has it.
pub(crate) fn manifest(name: &str, number: usize, stamp: u64) -> Value {
    let (version, kind, _) = KINDS[number % KINDS.len()];
    let mut object = json!({
        "apiVersion": version, "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {STAMP: stamp.to_string()}},
    });
    let encoded = base64::engine::general_purpose::STANDARD.encode(stamp.to_string());
    let labels = json!({"app": name});
    let (field, value) = match kind {
        "ConfigMap" => ("data", json!({"value": stamp.to_string(), "fixed": "yes"})),
        "Secret" => ("data", json!({"value": encoded})),
        "Service" => {
            let ports = json!([{"name": "web", "port": 1000 + stamp % 1000}]);
            ("spec", json!({"selector": labels, "ports": ports}))
        }
        "Deployment" => {
            let container = json!({"name": "main", "image": format!("example.com/app:{stamp}")});
            let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
            ("spec", json!({"replicas": 2, "selector": {"matchLabels": labels}, "template": template}))
        }
        "Role" => {
            let names = json!([stamp.to_string()]);
            (
                "rules",
                json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": names}]),
            )
        }
        "NetworkPolicy" => {
            let chosen = json!({"matchLabels": {"stamp": format!("s{stamp}")}});
            ("spec", json!({"podSelector": chosen, "policyTypes": ["Ingress"]}))
        }
        "ServiceAccount" => ("automountServiceAccountToken", json!(stamp.is_multiple_of(2))),
        _ => ("spec", json!({"size": stamp})),
    };
    object[field] = value;
    object
}

/// A merge patch that changes what is committed, in a field of the kind.
pub(crate) fn spoiled(number: usize) -> Value {
    match KINDS[number % KINDS.len()].1 {
        "ConfigMap" => json!({"data": {"value": "by hand"}}),
        "Secret" => json!({"data": {"value": "YnkgaGFuZA=="}}),
        "Service" => json!({"spec": {"ports": [{"name": "web", "port": 7, "protocol": "TCP"}]}}),
        "Deployment" => json!({"spec": {"replicas": 7}}),
        "Role" => json!({"rules": []}),
        "NetworkPolicy" => json!({"spec": {"podSelector": {"matchLabels": {"stamp": "hand"}}}}),
        "ServiceAccount" => json!({"metadata": {"annotations": {STAMP: "by hand"}}}),
        _ => json!({"spec": {"size": 0}}),
    }
}

/// The definition of widgets, in one version or in two.
pub(crate) fn widgets(two: bool) -> Value {
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema});
    let versions =
        if two { vec![version("v1", true), version("v2", false)] } else { vec![version("v1", true)] };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": versions,
        },
    })
}

/// Returns the place where a live object differs from the desired one; none if it is.
pub(crate) fn difference(live: &Value, wanted: &Value, place: &str) -> Option<String> {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().find_map(|(name, value)| {
            difference(live.get(name).unwrap_or(&Value::Null), value, &format!("{place}.{name}"))
        }),
        (Value::Array(live), Value::Array(wanted)) if live.len() == wanted.len() => {
            live.iter().zip(wanted).find_map(|(live, wanted)| difference(live, wanted, &format!("{place}[]")))
        }
        (live, wanted) if live == wanted => None,
        (live, wanted) => Some(format!("{place} is {live}, not {wanted}")),
    }
}

/// Returns the part that a person wrote of an object; the rest is the server's.
pub(crate) fn essence(mut object: Value) -> Value {
    for (place, field) in [("", "status"), ("/metadata", "resourceVersion"), ("/metadata", "managedFields")] {
        if let Some(Value::Object(map)) = object.pointer_mut(place) {
            map.remove(field);
        }
    }
    if let Some(Value::Object(marks)) = object.pointer_mut("/metadata/annotations") {
        marks.remove("deployment.kubernetes.io/revision");
    }
    object
}
