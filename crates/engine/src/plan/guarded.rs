//! Objects that take others with them when they are deleted, where a field says so.
//!
//! In: the whole live object. Out: whether it is pruned only by approval, as every object of a protected kind is. Most objects
//! of these kinds take nothing with them that no commit brings back, so that the field is read before it is decided. Nothing is
//! assumed to be harmless: what cannot be read is not asked here, and waits.

use serde_json::{Map, Value};

use moorline_core::object::GroupKind;

/// What is lost with such an object.
type Rule = fn(&Map<String, Value>) -> bool;

/// A kind, when its objects are guarded, and the rule by which that is known.
struct Row {
    group: &'static str,
    kind: &'static str,
    when: &'static str,
    rule: Rule,
}

const ROWS: [Row; 4] = [
    Row {
        group: "apps",
        kind: "StatefulSet",
        when: "`spec.persistentVolumeClaimRetentionPolicy.whenDeleted` is Delete: its volume claims",
        rule: deletes_claims,
    },
    Row {
        group: "argoproj.io",
        kind: "Application",
        when: "it has the finalizer `resources-finalizer.argocd.argoproj.io`: all that it has applied",
        rule: has_finalizer,
    },
    Row {
        group: "argoproj.io",
        kind: "ApplicationSet",
        when: "not `spec.syncPolicy.preserveResourcesOnDeletion`: its Applications, and all that they have applied",
        rule: preserves_nothing,
    },
    Row {
        group: "kustomize.toolkit.fluxcd.io",
        kind: "Kustomization",
        when: "`spec.prune`, or a `spec.deletionPolicy` that deletes: all that it has applied",
        rule: collects,
    },
];

/// The kinds, and when their objects are pruned only by approval.
pub fn guarded() -> impl Iterator<Item = (GroupKind, &'static str)> {
    ROWS.iter().map(|row| (GroupKind::new(row.group, row.kind), row.when))
}

/// The kinds without which a daemon does not run, or may do nothing. Namespaces and definitions are protected anyway.
const INSTALLATION: [(&str, &str); 6] = [
    ("", "ServiceAccount"),
    ("apps", "Deployment"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
];

/// True for kinds of which an object that is a part of Moorline is pruned only by approval.
pub(super) fn is_needed_to_run(kind: &GroupKind) -> bool {
    INSTALLATION.iter().any(|(group, name)| *kind.group == **group && *kind.kind == **name)
}

/// True for kinds of which an object has to be read before it is pruned.
pub fn may_take_more(kind: &GroupKind) -> bool {
    row(kind).is_some()
}

/// True if an object takes with it what no commit brings back.
pub fn takes_more(kind: &GroupKind, body: &Map<String, Value>) -> bool {
    row(kind).is_some_and(|row| (row.rule)(body))
}

fn row(kind: &GroupKind) -> Option<&'static Row> {
    ROWS.iter().find(|row| *kind.group == *row.group && *kind.kind == *row.kind)
}

fn at<'a>(body: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(body.get(*first)?, |value, field| value.get(field))
}

fn is(body: &Map<String, Value>, path: &[&str], expect: bool) -> bool {
    at(body, path).and_then(Value::as_bool) == Some(expect)
}

fn text<'a>(body: &'a Map<String, Value>, path: &[&str]) -> Option<&'a str> {
    at(body, path)?.as_str()
}

fn deletes_claims(body: &Map<String, Value>) -> bool {
    text(body, &["spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"]) == Some("Delete")
}

fn has_finalizer(body: &Map<String, Value>) -> bool {
    const CASCADES: &str = "resources-finalizer.argocd.argoproj.io";
    let finalizers = at(body, &["metadata", "finalizers"]).and_then(Value::as_array);
    let cascades =
        |name: &str| name.strip_prefix(CASCADES).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    finalizers.into_iter().flatten().filter_map(Value::as_str).any(cascades)
}

fn preserves_nothing(body: &Map<String, Value>) -> bool {
    !is(body, &["spec", "syncPolicy", "preserveResourcesOnDeletion"], true)
}

/// One that is suspended may be resumed before it is gone, and counts like any other.
fn collects(body: &Map<String, Value>) -> bool {
    match text(body, &["spec", "deletionPolicy"]) {
        Some("Orphan") => false,
        None | Some("MirrorPrune") => is(body, &["spec", "prune"], true),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(group: &str, kind: &str, body: Value, expect: bool) {
        let Value::Object(read) = &body else { panic!("a mapping") };
        assert_eq!(takes_more(&GroupKind::new(group, kind), read), expect, "{kind} {body}");
    }

    #[test]
    fn a_stateful_set_may_take_its_claims_with_it() {
        let when = |policy: Value| json!({"spec": {"persistentVolumeClaimRetentionPolicy": policy}});
        let check = |policy: Value, expect| check("apps", "StatefulSet", when(policy), expect);
        check(json!({"whenDeleted": "Delete"}), true);
        check(json!({"whenDeleted": "Retain", "whenScaled": "Delete"}), false);
        check(Value::Null, false);
    }

    #[test]
    fn what_applies_for_others_may_take_all_of_that_with_it() {
        let argo = |kind: &str, body: Value, expect| check("argoproj.io", kind, body, expect);
        let ends = |name: &str| json!({"metadata": {"finalizers": ["example.com/x", name]}});
        argo("Application", ends("resources-finalizer.argocd.argoproj.io"), true);
        argo("Application", ends("resources-finalizer.argocd.argoproj.io/background"), true);
        argo("Application", ends("post-delete-finalizer.argocd.argoproj.io"), false);
        argo("Application", json!({"spec": {"syncPolicy": {"automated": {"prune": true}}}}), false);
        argo("ApplicationSet", json!({"spec": {}}), true);
        let preserves = |is: bool| json!({"spec": {"syncPolicy": {"preserveResourcesOnDeletion": is}}});
        argo("ApplicationSet", preserves(true), false);
        argo("ApplicationSet", preserves(false), true);
        argo("AppProject", json!({}), false);
        let flux = |spec: Value, expect| {
            check("kustomize.toolkit.fluxcd.io", "Kustomization", json!({"spec": spec}), expect);
        };
        flux(json!({"prune": true}), true);
        flux(json!({"prune": false}), false);
        flux(json!({"prune": true, "deletionPolicy": "Orphan"}), false);
        flux(json!({"prune": false, "deletionPolicy": "Delete"}), true);
        flux(json!({"prune": false, "deletionPolicy": "MirrorPrune"}), false);
        check("kustomize.config.k8s.io", "Kustomization", json!({"spec": {"prune": true}}), false);
    }
}
