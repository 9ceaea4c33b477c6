//! Kinds that count changes of their spec in `metadata.generation`.

/// API groups that Kubernetes itself serves. All others are treated as custom resources: for these
/// the server increments the generation at every change outside metadata and status.
const BUILT_IN: [&str; 23] = [
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
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Kinds of these groups whose generation was observed to change with every change of the spec.
/// Others have none, or one that never changes, such as PriorityClass and CSIDriver.
const COUNTED: [(&str, &[&str]); 9] = [
    ("", &["Pod"]),
    (
        "admissionregistration.k8s.io",
        &["MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingWebhookConfiguration"],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apps", &["DaemonSet", "Deployment", "StatefulSet"]),
    ("batch", &["CronJob", "Job"]),
    ("discovery.k8s.io", &["EndpointSlice"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema"]),
    ("networking.k8s.io", &["Ingress", "IngressClass", "NetworkPolicy"]),
    ("policy", &["PodDisruptionBudget"]),
];

/// True if an unchanged generation proves an unchanged spec, for objects of the kind that have one;
/// the caller must check that. Aggregated API servers often leave it out.
pub fn generation_is_trusted(group: &str, kind: &str) -> bool {
    let counted = |(of, kinds): &(&str, &[&str])| *of == group && kinds.contains(&kind);
    !BUILT_IN.contains(&group) || COUNTED.iter().any(counted)
}

/// Built-in kinds with maps of objects, or with values of any form.
const WITH_OPEN_MAPS: [(&str, Option<&str>); 3] =
    [("apiextensions.k8s.io", None), ("apps", Some("ControllerRevision")), ("resource.k8s.io", None)];

/// True if the objects in an object of this kind are declared field by field: an entry of
/// `managedFields` that owns one as a whole means that it is atomic. Custom resources may declare
/// maps of objects.
pub(super) fn maps_are_declared(group: &str, kind: &str) -> bool {
    let is_open = |(of, only): &(&str, Option<&str>)| *of == group && only.is_none_or(|only| only == kind);
    BUILT_IN.contains(&group) && !WITH_OPEN_MAPS.iter().any(is_open)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// Kinds that the tests on the real API server change.
    const CHANGED: &str = include_str!("../../../../tests/drift/generation.json");

    #[test]
    fn every_kind_of_the_table_is_changed_on_the_real_server() {
        let rows: Vec<Value> = serde_json::from_str(CHANGED).unwrap();
        let text = |row: &Value, field: &str| row["body"][field].as_str().unwrap().to_owned();
        let changed = rows.iter().map(|row| {
            let version = text(row, "apiVersion");
            let group = version.split_once('/').map_or("", |(group, _)| group);
            (group.to_owned(), text(row, "kind"))
        });
        let counted = COUNTED.iter().flat_map(|(group, kinds)| kinds.iter().map(|kind| (*group, *kind)));
        let counted: BTreeSet<_> = counted.map(|(group, kind)| (group.to_owned(), kind.to_owned())).collect();
        assert_eq!(changed.collect::<BTreeSet<_>>(), counted);
    }

    #[test]
    fn only_a_counted_generation_is_trusted() {
        let check =
            |group, kind, expect| assert_eq!(generation_is_trusted(group, kind), expect, "{group} {kind}");
        check("apps", "Deployment", true);
        check("", "ConfigMap", false);
        check("", "Service", false);
        check("scheduling.k8s.io", "PriorityClass", false);
        check("storage.k8s.io", "CSIDriver", false);
        check("autoscaling", "HorizontalPodAutoscaler", false);
        check("example.com", "Widget", true);
        check("gateway.networking.k8s.io", "HTTPRoute", true);
        assert!(COUNTED.iter().all(|(group, _)| BUILT_IN.contains(group)));
    }
}
