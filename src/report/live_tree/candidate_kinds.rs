//! Chooses the lists that a tree needs: kinds that the objects of a Sync can own, by namespace.
//!
//! In: the objects of a Sync, and the served kinds. Out: [`ReadPlan`]. A built-in kind owns known
//! kinds; a custom resource may own any built-in workload and any custom kind. Secrets, Events and
//! Leases are never listed for a tree.

use std::collections::{BTreeMap, BTreeSet};

use super::LeftOut;
use crate::object::{GroupKind, ObjectId};

/// The most namespaces that are read for a tree.
const MAX_NAMESPACES: usize = 20;
/// The most kinds that are read in a namespace.
const MAX_KINDS: usize = 48;
/// The most lists that are read for a tree.
const MAX_LISTS: usize = 96;

/// Group and kind.
type KindName = (&'static str, &'static str);

/// Kinds of which the whole objects are listed, because their status is shown.
const WHOLE: [KindName; 3] = [("", "Pod"), ("batch", "Job"), ("", "PersistentVolumeClaim")];

/// Kinds that a built-in kind owns, directly or through others.
const OWNED: [(KindName, &[KindName]); 9] = [
    (("apps", "Deployment"), &[("apps", "ReplicaSet"), ("", "Pod"), ("", "PersistentVolumeClaim")]),
    (("apps", "ReplicaSet"), &[("", "Pod"), ("", "PersistentVolumeClaim")]),
    (("apps", "StatefulSet"), &[("", "Pod"), ("apps", "ControllerRevision"), ("", "PersistentVolumeClaim")]),
    (("apps", "DaemonSet"), &[("", "Pod"), ("apps", "ControllerRevision"), ("", "PersistentVolumeClaim")]),
    (("batch", "CronJob"), &[("batch", "Job"), ("", "Pod"), ("", "PersistentVolumeClaim")]),
    (("batch", "Job"), &[("", "Pod"), ("", "PersistentVolumeClaim")]),
    (("", "Pod"), &[("", "Pod"), ("", "PersistentVolumeClaim")]),
    (("", "ReplicationController"), &[("", "Pod"), ("", "PersistentVolumeClaim")]),
    (("", "Service"), &[("discovery.k8s.io", "EndpointSlice")]),
];

/// Built-in kinds that controllers of custom resources create.
const OF_CONTROLLERS: [KindName; 19] = [
    ("", "Pod"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("apps", "ControllerRevision"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("", "Service"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("", "PersistentVolumeClaim"),
    ("", "ConfigMap"),
    ("", "ServiceAccount"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("policy", "PodDisruptionBudget"),
    ("autoscaling", "HorizontalPodAutoscaler"),
];

/// API groups of Kubernetes itself, and our own: their objects own nothing but what [`OWNED`] has.
const BUILT_IN: [&str; 22] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "metrics.k8s.io",
    "moorline.dev",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// The built-in kinds that a tree may list.
pub fn listed_kinds() -> BTreeSet<GroupKind> {
    let owned = OWNED.iter().flat_map(|(_, kinds)| kinds.iter());
    owned.chain(&OF_CONTROLLERS).map(|(group, kind)| GroupKind::new(group, kind)).collect()
}

/// The lists of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadPlan {
    /// The lists, by namespace.
    pub lists: Vec<WantedList>,
    /// Parts that are beyond a bound.
    pub left_out: Vec<LeftOut>,
}

/// A list of one kind in one namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WantedList {
    /// The namespace.
    pub namespace: Box<str>,
    /// The kind.
    pub kind: GroupKind,
    /// True for whole objects, false for their metadata.
    pub whole: bool,
    /// True if only objects of the Sync are of interest, and not those of other owners.
    pub only_own: bool,
}

/// Plans the lists for the objects of a Sync. `served` are the namespaced kinds of the server.
pub fn plan_reads(roots: &[ObjectId], served: &BTreeSet<GroupKind>) -> ReadPlan {
    let mut plan = ReadPlan::default();
    let mut places: BTreeMap<&str, BTreeSet<GroupKind>> = BTreeMap::new();
    for root in roots {
        if let Some(namespace) = root.namespace() {
            places.entry(namespace).or_default().insert(root.group_kind());
        }
    }
    let cut = |kind: String, namespace: &str, reason: String| LeftOut {
        kind,
        namespace: namespace.to_owned(),
        reason,
    };
    if places.len() > MAX_NAMESPACES {
        let count = places.len() - MAX_NAMESPACES;
        let reason = format!("are not read: a tree has at most {MAX_NAMESPACES} namespaces");
        plan.left_out.push(cut(format!("{count} namespaces"), "", reason));
    }
    for (namespace, own) in places.into_iter().take(MAX_NAMESPACES) {
        let owned = owned_kinds(&own, served);
        let of_own = own.iter().filter(|kind| served.contains(*kind) && !is_never_listed(kind));
        let rest: Vec<GroupKind> = of_own.filter(|kind| !owned.contains(kind)).cloned().collect();
        let all =
            owned.into_iter().map(|kind| (kind, false)).chain(rest.into_iter().map(|kind| (kind, true)));
        for (at, (kind, only_own)) in all.enumerate() {
            if at >= MAX_KINDS || plan.lists.len() >= MAX_LISTS {
                let reason = format!(
                    "is not read: a tree has at most {MAX_KINDS} kinds in a namespace and {MAX_LISTS} lists"
                );
                plan.left_out.push(cut(kind.to_string(), namespace, reason));
                continue;
            }
            let whole = WHOLE.contains(&(&*kind.group, &*kind.kind));
            plan.lists.push(WantedList { namespace: namespace.into(), kind, whole, only_own });
        }
    }
    plan
}

/// Kinds that the kinds of a namespace can own, the likely ones first.
fn owned_kinds(own: &BTreeSet<GroupKind>, served: &BTreeSet<GroupKind>) -> Vec<GroupKind> {
    let mut found: Vec<GroupKind> = Vec::new();
    let mut add = |kind: GroupKind| {
        if served.contains(&kind) && !is_never_listed(&kind) && !found.contains(&kind) {
            found.push(kind);
        }
    };
    for (owner, kinds) in OWNED {
        if own.contains(&GroupKind::new(owner.0, owner.1)) {
            kinds.iter().for_each(|(group, kind)| add(GroupKind::new(group, kind)));
        }
    }
    let custom: BTreeSet<&str> =
        own.iter().map(|kind| &*kind.group).filter(|group| !BUILT_IN.contains(group)).collect();
    if custom.is_empty() {
        return found;
    }
    OF_CONTROLLERS.iter().for_each(|(group, kind)| add(GroupKind::new(group, kind)));
    // Controllers mostly create custom resources of their own domain.
    let related = |kind: &GroupKind| custom.iter().any(|group| domain(group) == domain(&kind.group));
    let others = || served.iter().filter(|kind| !BUILT_IN.contains(&&*kind.group));
    others().filter(|kind| related(kind)).for_each(|kind| add(kind.clone()));
    others().filter(|kind| !related(kind)).for_each(|kind| add(kind.clone()));
    found
}

/// The last two labels of a group.
fn domain(group: &str) -> &str {
    let from = group.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
    group.get(from..).unwrap_or(group)
}

fn is_never_listed(kind: &GroupKind) -> bool {
    matches!(&*kind.kind, "Secret" | "Event" | "Lease") && BUILT_IN.contains(&&*kind.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> BTreeSet<GroupKind> {
        text.split_whitespace()
            .map(|word| {
                let (group, kind) = word.split_once('/').unwrap();
                GroupKind::new(group, kind)
            })
            .collect()
    }

    #[test]
    fn the_kinds_of_a_namespace_decide_what_is_listed_in_it() {
        let served = "/Pod /Secret /ConfigMap /Event /Service /PersistentVolumeClaim apps/Deployment apps/ReplicaSet \
            apps/StatefulSet apps/ControllerRevision batch/Job discovery.k8s.io/EndpointSlice \
            cert-manager.io/Certificate acme.cert-manager.io/Order example.org/Widget moorline.dev/Sync";
        let check = |roots: &str, expect: &str| {
            let roots: Vec<ObjectId> =
                roots.split_whitespace().map(|it| ObjectId::parse(it).unwrap()).collect();
            let plan = plan_reads(&roots, &kinds(served));
            let word = |list: &WantedList| {
                let form = if list.whole { "*" } else { "" };
                let own = if list.only_own { "!" } else { "" };
                format!("{}:{}/{}{form}{own}", list.namespace, list.kind.group, list.kind.kind)
            };
            let found: Vec<String> = plan.lists.iter().map(word).collect();
            assert_eq!(found.join(" "), expect.split_whitespace().collect::<Vec<_>>().join(" "), "{roots:?}");
            assert_eq!(plan.left_out, []);
        };
        check("", "");
        check("/Namespace|/shop", "");
        check("/Secret|shop/login /ConfigMap|shop/a", "shop:/ConfigMap!");
        check(
            "apps/Deployment|shop/web /Service|api/web",
            "api:discovery.k8s.io/EndpointSlice api:/Service! \
             shop:apps/ReplicaSet shop:/Pod* shop:/PersistentVolumeClaim* shop:apps/Deployment!",
        );
        check("moorline.dev/Sync|shop/a", "shop:moorline.dev/Sync!");
        check(
            "cert-manager.io/Certificate|shop/web",
            "shop:/Pod* shop:apps/Deployment shop:apps/ReplicaSet shop:apps/StatefulSet \
             shop:apps/ControllerRevision shop:batch/Job* shop:/Service shop:discovery.k8s.io/EndpointSlice \
             shop:/PersistentVolumeClaim* shop:/ConfigMap shop:acme.cert-manager.io/Order \
             shop:cert-manager.io/Certificate shop:example.org/Widget",
        );
    }

    #[test]
    fn a_bound_is_named() {
        let roots: Vec<ObjectId> = (0..MAX_NAMESPACES + 2)
            .map(|at| ObjectId::new("apps", "Deployment", &format!("n{at:02}"), "web").unwrap())
            .collect();
        let plan = plan_reads(&roots, &kinds("/Pod apps/ReplicaSet apps/Deployment"));
        assert_eq!(plan.lists.len(), 3 * MAX_NAMESPACES);
        assert_eq!((plan.left_out.len(), plan.left_out[0].kind.as_str()), (1, "2 namespaces"));
        let many: String = (0..60).map(|at| format!("example.org/K{at:02} ")).collect();
        let root = ObjectId::new("example.org", "K00", "shop", "a").unwrap();
        let plan = plan_reads(&[root], &kinds(&many));
        assert_eq!((plan.lists.len(), plan.left_out.len()), (MAX_KINDS, 60 - MAX_KINDS));
        assert!(plan.left_out[0].reason.contains("at most 48 kinds"), "{:?}", plan.left_out);
    }
}
