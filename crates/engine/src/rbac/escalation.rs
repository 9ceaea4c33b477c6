//! Detection of RBAC rules that allow privilege escalation to cluster-admin.
//!
//! In: a rule and its namespace.
//! Out: the reason why its holder can obtain all permissions, if so. Of rules in a namespace only
//! those count that affect other namespaces.

use super::PolicyRule;

const WORKLOADS: [&str; 4] = ["deployments", "daemonsets", "statefulsets", "replicasets"];
const WRITES: [&str; 3] = ["create", "update", "patch"];

/// Returns the reason why a rule amounts to cluster-admin, if it does; `namespace` is none for
/// cluster-wide rules.
pub fn escalation_reason(rule: &PolicyRule, namespace: Option<&str>) -> Option<&'static str> {
    let rbac = "rbac.authorization.k8s.io";
    let everything = [&rule.groups, &rule.resources, &rule.verbs].iter().all(|words| words.contains("*"));
    if namespace.is_none() && everything && rule.names.is_empty() {
        return Some("it allows everything");
    }
    if namespace.is_none_or(|namespace| namespace == "kube-system") {
        let runs = rule.is_about("", &["pods", "replicationcontrollers"])
            || rule.is_about("apps", &WORKLOADS)
            || rule.is_about("batch", &["jobs", "cronjobs"]);
        if runs && rule.allows(&WRITES) && rule.names.is_empty() {
            return Some("pods in kube-system can use any ServiceAccount there");
        }
        if rule.is_about("", &["secrets"]) && rule.allows(&["get", "list", "watch", "create"]) {
            return Some("Secrets in kube-system may contain tokens of ServiceAccounts with all permissions");
        }
        if rule.is_about("", &["serviceaccounts/token"]) && rule.allows(&["create"]) {
            return Some("it creates tokens for any ServiceAccount");
        }
    }
    if rule.is_about(rbac, &["clusterroles", "roles"])
        && rule.allows(&["escalate", "bind"])
        && (rule.names.is_empty() || rule.names.contains("cluster-admin"))
        && namespace.is_none()
    {
        return Some("it grants permissions that its holder does not have");
    }
    if namespace.is_some() {
        return None;
    }
    let impersonates = rule.is_about("", &["users", "groups", "serviceaccounts"]);
    if impersonates && rule.verbs.contains("impersonate") && rule.names.is_empty() {
        return Some("it impersonates any user");
    }
    let hooks = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    if rule.is_about("admissionregistration.k8s.io", &hooks) && rule.allows(&WRITES) {
        return Some("a webhook can read and change every request");
    }
    if rule.is_about("apiregistration.k8s.io", &["apiservices"]) && rule.allows(&WRITES) {
        return Some(
            "an APIService answers in place of the API server and receives the clients' credentials",
        );
    }
    if rule.is_about("", &["nodes/proxy"]) {
        return Some("it runs commands in any container");
    }
    if rule.is_about("certificates.k8s.io", &["certificatesigningrequests/approval"]) && rule.allows(&WRITES)
    {
        return Some("it issues certificates for any user");
    }
    None
}
