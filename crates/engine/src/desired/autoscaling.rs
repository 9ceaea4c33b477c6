//! Replica counts that are left to autoscalers.
//!
//! In: a [`DesiredSet`], the paths of replica counts by kind, and the targets of
//! HorizontalPodAutoscalers and KEDA's ScaledObjects.
//! Out: the set without these fields. Targets of autoscalers in Git count before the autoscaler
//! exists, so that the replica count never drops while it moves from a manifest to an autoscaler.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::DesiredObject;
use moorline_core::object::{GroupKind, ObjectId};

/// Paths of replica counts, by kind and version, as JSON pointers.
pub type ReplicaPaths = BTreeMap<(GroupKind, Box<str>), Box<str>>;

/// The replica count of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaCount {
    /// Its position, as a JSON pointer.
    pub pointer: Box<str>,
    /// True if Git sets it.
    pub is_set: bool,
}

/// Kinds that scale other objects, by group and name. KEDA's operator creates a
/// HorizontalPodAutoscaler for each ScaledObject, and scales to zero itself, also while that one
/// does not exist.
pub const AUTOSCALERS: [(&str, &str); 2] =
    [("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")];

/// Returns the target of an autoscaler.
pub fn scale_target(scaler: &Value, namespace: &str) -> Option<ObjectId> {
    let target = scaler.pointer("/spec/scaleTargetRef")?;
    let text = |field: &str| target.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    // A ScaledObject may omit version and kind of its target.
    let (version, kind) = match scaler["kind"] == "ScaledObject" {
        true => ("apps/v1", "Deployment"),
        false => ("", ""),
    };
    let group = text("apiVersion").unwrap_or(version).split_once('/').map_or("", |(group, _)| group);
    ObjectId::new(group, text("kind").unwrap_or(kind), namespace, text("name").unwrap_or_default()).ok()
}

/// Returns the path of the replica count in each served version of a CustomResourceDefinition.
pub fn parse_replica_paths(definition: &Value) -> BTreeMap<Box<str>, Box<str>> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|it| it["served"].as_bool() == Some(true));
    let place = |version: &Value| {
        let path = version.pointer("/subresources/scale/specReplicasPath")?.as_str()?;
        Some((version["name"].as_str()?.into(), pointer(path)?.into()))
    };
    served.filter_map(place).collect()
}

/// Converts a path such as `.spec.size`, without lists, to a pointer.
fn pointer(path: &str) -> Option<String> {
    let names = path.strip_prefix('.')?.split('.');
    let escaped = names.map(|name| match name.is_empty() || name.contains(['[', ']']) {
        true => None,
        false => Some(format!("/{}", name.replace('~', "~0").replace('/', "~1"))),
    });
    escaped.collect()
}

/// Selects the replica counts that are left to autoscalers: all targets of autoscalers in Git, and
/// those targets of autoscalers in the cluster whose count Git sets.
pub fn select_autoscaled(
    replicas: &BTreeMap<ObjectId, ReplicaCount>,
    by_git: &BTreeSet<ObjectId>,
    live: &BTreeSet<ObjectId>,
) -> BTreeMap<ObjectId, Box<str>> {
    let is_left =
        |id: &ObjectId, replicas: &ReplicaCount| by_git.contains(id) || replicas.is_set && live.contains(id);
    let left = replicas.iter().filter(|(id, replicas)| is_left(id, replicas));
    left.map(|(id, replicas)| (id.clone(), replicas.pointer.clone())).collect()
}

/// Returns the body of an object as JSON.
pub(super) fn body(object: &DesiredObject) -> Value {
    Value::Object(object.body())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::{DesiredSet, IgnoreRule, Scopes, build_desired_set};
    use moorline_core::tree::FileTree;
    use moorline_render::{RenderOptions, Rendered, render};
    use serde_json::json;

    fn set(manifests: &[Value]) -> DesiredSet {
        let files: Vec<_> =
            manifests.iter().enumerate().map(|(at, it)| (format!("{at}.json"), it.to_string())).collect();
        let tree = FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        let Rendered::Complete(complete) = render(&tree, &RenderOptions::default()) else {
            panic!("it is sound")
        };
        build_desired_set(complete, "shop", &Scopes::builtin()).unwrap()
    }

    fn deployment(name: &str, spec: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
    }

    fn scaler(target: &str) -> Value {
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": target},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}},
        })
    }

    fn paths() -> ReplicaPaths {
        [((GroupKind::new("apps", "Deployment"), "v1".into()), "/spec/replicas".into())].into()
    }

    fn id(name: &str) -> ObjectId {
        ObjectId::new("apps", "Deployment", "shop", name).unwrap()
    }

    #[test]
    fn what_git_scales_is_left_and_of_the_others_what_the_cluster_scales() {
        let set = set(&[
            deployment("a", json!({"replicas": 3})),
            deployment("b", json!({"replicas": 3})),
            deployment("c", json!({"paused": true})),
            deployment("d", json!({"paused": true})),
            deployment("e", json!({"replicas": 3})),
            scaler("a"),
            scaler("c"),
        ]);
        let live = BTreeSet::from([id("b"), id("d")]);
        let left = select_autoscaled(&set.replica_counts(&paths()), &set.autoscaler_targets(), &live);
        let names: Vec<&str> = left.keys().map(ObjectId::name).collect();
        assert_eq!(names, ["a", "b", "c"], "who says no number, and is scaled by others only, is as before");
        assert!(left.values().all(|place| &**place == "/spec/replicas"));
    }

    #[test]
    fn a_number_that_is_left_is_only_said_at_the_beginning() {
        let before = set(&[deployment("a", json!({"replicas": 3, "paused": true}))]);
        let after = before.without_replica_counts(&[(id("a"), "/spec/replicas".into())].into());
        let (before, after) = (&before.objects()[0], &after.objects()[0]);
        assert_eq!(body(after)["spec"], json!({"paused": true}));
        assert_ne!(before.hash, after.hash);
        let created = after.created_as.as_deref().unwrap();
        assert_eq!((created.hash, &created.canonical), (before.hash, &before.canonical));
    }

    #[test]
    fn a_number_that_is_not_said_is_left_without_another_beginning() {
        let before = set(&[deployment("a", json!({"paused": true}))]);
        let after = before.without_replica_counts(&[(id("a"), "/spec/replicas".into())].into());
        assert!(after.objects()[0].created_as.is_none());
        assert_eq!(&*after.objects()[0].ignored.as_ref().unwrap().paths, [Box::from("/spec/replicas")]);
    }

    #[test]
    fn what_is_left_already_is_left_once() {
        let ignore = |path: &str| IgnoreRule {
            group: None,
            kind: None,
            namespace: None,
            name: None,
            paths: vec![path.into()],
        };
        let web = || set(&[deployment("a", json!({"replicas": 3, "paused": true}))]);
        assert!(
            web().without_ignored_fields(&[ignore("/spec/replicas")]).replica_counts(&paths()).is_empty()
        );
        let both = web().without_ignored_fields(&[ignore("/spec/paused")]);
        let both = both.without_replica_counts(&[(id("a"), "/spec/replicas".into())].into());
        let at_once = web().without_ignored_fields(&[ignore("/spec/replicas"), ignore("/spec/paused")]);
        assert_eq!(both.objects()[0].hash, at_once.objects()[0].hash);
        assert_eq!(both.objects()[0].canonical, at_once.objects()[0].canonical);
        assert_eq!(both.objects()[0].ignored, at_once.objects()[0].ignored);
    }

    #[test]
    fn a_target_is_named_by_group_kind_and_name() {
        let check = |target: Value, expect: Option<&str>| {
            let scaler = json!({"spec": {"scaleTargetRef": target}});
            let found = scale_target(&scaler, "shop");
            assert_eq!(found.as_ref().map(ObjectId::as_str), expect);
        };
        check(
            json!({"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "a"}),
            Some("apps/Deployment|shop/a"),
        );
        let core = json!({"apiVersion": "v1", "kind": "ReplicationController", "name": "a"});
        check(core, Some("/ReplicationController|shop/a"));
        check(json!({"kind": "Deployment"}), None);
        let keda = |target: Value| {
            let scaled = json!({"kind": "ScaledObject", "spec": {"scaleTargetRef": target}});
            scale_target(&scaled, "shop").map(|id| id.to_string())
        };
        assert_eq!(keda(json!({"name": "a"})).as_deref(), Some("Deployment.apps shop/a"));
        let other = json!({"apiVersion": "example.com/v1", "kind": "Pool", "name": "a"});
        assert_eq!(keda(other).as_deref(), Some("Pool.example.com shop/a"));
        assert_eq!(keda(json!({})), None);
        assert_eq!(scale_target(&json!({"spec": {}}), "shop"), None);
    }

    #[test]
    fn a_definition_says_where_each_version_keeps_its_number() {
        let version = |name: &str, served: bool, path: &str| json!({"name": name, "served": served, "subresources": {"scale": {"specReplicasPath": path}}});
        let definition = json!({"spec": {"versions": [
            version("v1", true, ".spec.size"),
            version("v2", true, ".spec.pool.a/b"),
            version("v3", false, ".spec.size"),
            version("v4", true, ".spec.pools[0].size"),
            {"name": "v5", "served": true},
        ]}});
        let expect = [("v1".into(), "/spec/size".into()), ("v2".into(), "/spec/pool/a~1b".into())];
        assert_eq!(parse_replica_paths(&definition), BTreeMap::from(expect));
    }
}
