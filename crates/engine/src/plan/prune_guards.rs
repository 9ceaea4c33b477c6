//! Prune guards: objects whose deletion also deletes others, depending on a field.
//!
//! In: the whole live object.
//! Out: true if it is pruned only by approval, like an object of a protected kind. Most objects of
//! these kinds delete nothing that a commit cannot restore, so the field is read before the
//! decision. Nothing is assumed to be harmless: an object that cannot be read is not judged here
//! and waits.

use serde_json::{Map, Value};

use moorline_core::object::GroupKind;

/// True if a deletion of this object loses data.
type GuardRule = fn(&Map<String, Value>) -> bool;

/// A kind, a description of its guarded objects, and the rule that recognizes them.
struct GuardedKind {
    group: &'static str,
    kind: &'static str,
    when: &'static str,
    rule: GuardRule,
}

const ROWS: [GuardedKind; 4] = [
    GuardedKind {
        group: "apps",
        kind: "StatefulSet",
        when: "`spec.persistentVolumeClaimRetentionPolicy.whenDeleted` is Delete: its volume claims",
        rule: deletes_claims,
    },
    GuardedKind {
        group: "argoproj.io",
        kind: "Application",
        when: "it has the finalizer `resources-finalizer.argocd.argoproj.io`: everything that it has applied",
        rule: has_finalizer,
    },
    GuardedKind {
        group: "argoproj.io",
        kind: "ApplicationSet",
        when: "not `spec.syncPolicy.preserveResourcesOnDeletion`: its Applications, and all that they have applied",
        rule: preserves_nothing,
    },
    GuardedKind {
        group: "kustomize.toolkit.fluxcd.io",
        kind: "Kustomization",
        when: "`spec.prune`, or a `spec.deletionPolicy` that deletes: everything that it has applied",
        rule: collects,
    },
];

/// Returns the guarded kinds, each with a description of its guarded objects.
pub fn guarded_kinds() -> impl Iterator<Item = (GroupKind, &'static str)> {
    ROWS.iter().map(|row| (GroupKind::new(row.group, row.kind), row.when))
}

/// Kinds without which the daemon does not run or lacks permissions. Namespaces and definitions are
/// protected in any case.
const INSTALLATION: [(&str, &str); 6] = [
    ("", "ServiceAccount"),
    ("apps", "Deployment"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
];

/// True for kinds whose objects are pruned only by approval if they are part of Moorline.
pub(super) fn is_needed_to_run(kind: &GroupKind) -> bool {
    INSTALLATION.iter().any(|(group, name)| *kind.group == **group && *kind.kind == **name)
}

/// True for kinds whose objects must be read before they are pruned.
pub fn needs_body_check(kind: &GroupKind) -> bool {
    row(kind).is_some()
}

/// True if the deletion of an object also deletes something that no commit restores.
pub fn deletes_others(kind: &GroupKind, body: &Map<String, Value>) -> bool {
    row(kind).is_some_and(|row| (row.rule)(body))
}

fn row(kind: &GroupKind) -> Option<&'static GuardedKind> {
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

/// True unless the Kustomization orphans its objects. A suspended one may be resumed before it is
/// deleted, and counts like any other.
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
        assert_eq!(deletes_others(&GroupKind::new(group, kind), read), expect, "{kind} {body}");
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
