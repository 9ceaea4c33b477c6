//! RBAC manifests: roles and their bindings to a ServiceAccount.
//!
//! In: [`Permissions`] and the ServiceAccount.
//! Out: documents for `kubectl apply`, each with warnings for the reader.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::escalation;
use super::{Permissions, PolicyRule};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The ServiceAccount that receives the permissions.
#[derive(Debug, Clone)]
pub struct RoleSubject {
    /// Its name.
    pub name: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Name of the roles.
    pub role: Box<str>,
}

/// Returns the roles and bindings, each with warnings.
pub fn manifests(rights: &Permissions, subject: &RoleSubject) -> Vec<(Vec<String>, Value)> {
    let mut documents = Vec::new();
    if !rights.cluster.is_empty() {
        documents.extend(pair(&rights.cluster, None, subject));
    }
    for (namespace, rules) in &rights.namespaces {
        documents.extend(pair(rules, Some(namespace), subject));
    }
    documents
}

/// Returns the permissions of the daemon itself in the namespace of a Sync: to impersonate the
/// Sync's ServiceAccount, and to read the Secrets that the Sync names. Empty if it needs none.
pub fn daemon_manifests(
    account: Option<&str>,
    secrets: &[&str],
    identities: &BTreeSet<&str>,
    at: &str,
    daemon: &RoleSubject,
) -> Vec<(Vec<String>, Value)> {
    let mut rules = BTreeSet::new();
    // By name only: permission to impersonate any ServiceAccount includes that of the most powerful
    // one.
    rules.extend(account.map(|account| {
        PolicyRule::for_resource("", "serviceaccounts", &["impersonate"]).with_names([account])
    }));
    if !secrets.is_empty() {
        rules.insert(
            PolicyRule::for_resource("", "secrets", &["get", "list", "watch"])
                .with_names(secrets.iter().copied()),
        );
    }
    // A token of a ServiceAccount is all that it may do.
    for (resource, verb) in [("serviceaccounts", "get"), ("serviceaccounts/token", "create")] {
        if !identities.is_empty() {
            rules.insert(
                PolicyRule::for_resource("", resource, &[verb]).with_names(identities.iter().copied()),
            );
        }
    }
    if rules.is_empty() { Vec::new() } else { pair(&rules, Some(at), daemon).into() }
}

/// Returns a role and its binding.
fn pair(
    rules: &BTreeSet<PolicyRule>,
    namespace: Option<&str>,
    subject: &RoleSubject,
) -> [(Vec<String>, Value); 2] {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let metadata = || match namespace {
        Some(namespace) => json!({"name": subject.role, "namespace": namespace}),
        None => json!({"name": subject.role}),
    };
    let values: Vec<Value> = rules.iter().map(PolicyRule::to_json).collect();
    let role = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata(), "rules": values,
    });
    let binding = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": format!("{kind}Binding"), "metadata": metadata(),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": subject.role},
        "subjects": [{"kind": "ServiceAccount", "name": subject.name, "namespace": subject.namespace}],
    });
    let marked = rules.iter().filter_map(|rule| {
        let why = escalation::escalation_reason(rule, namespace)?;
        let list = |words: &BTreeSet<Box<str>>| words.iter().map(|it| &**it).collect::<Vec<_>>().join(", ");
        Some(format!("amounts to cluster-admin: {} {}: {why}", list(&rule.verbs), list(&rule.resources)))
    });
    [(marked.collect(), role), (Vec::new(), binding)]
}
