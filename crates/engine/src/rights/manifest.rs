//! Rights as manifests: roles and the bindings that give them to somebody.
//!
//! In: [`Rights`] and who gets them. Out: documents for `kubectl apply`, each with what people should know before.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Rights, Rule, power};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Who gets the rights: a ServiceAccount.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Its name.
    pub name: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// The name of the roles.
    pub role: Box<str>,
}

/// The roles and bindings, each with lines about it.
pub fn manifests(rights: &Rights, subject: &Subject) -> Vec<(Vec<String>, Value)> {
    let mut documents = Vec::new();
    if !rights.cluster.is_empty() {
        documents.extend(pair(&rights.cluster, None, subject));
    }
    for (namespace, rules) in &rights.namespaces {
        documents.extend(pair(rules, Some(namespace), subject));
    }
    documents
}

/// What the daemon itself needs where a Sync is: to act as the Sync's ServiceAccount, and to see the Secrets that the Sync
/// names. Nothing where it needs nothing.
pub fn for_daemon(
    account: Option<&str>,
    secrets: &[&str],
    at: &str,
    daemon: &Subject,
) -> Vec<(Vec<String>, Value)> {
    let mut rules = BTreeSet::new();
    // By name only: who may act as any ServiceAccount may do what the mightiest of them may.
    rules.extend(account.map(|account| Rule::of("", "serviceaccounts", &["impersonate"]).named([account])));
    if !secrets.is_empty() {
        rules.insert(Rule::of("", "secrets", &["get", "list", "watch"]).named(secrets.iter().copied()));
    }
    if rules.is_empty() { Vec::new() } else { pair(&rules, Some(at), daemon).into() }
}

/// A role and its binding.
fn pair(rules: &BTreeSet<Rule>, namespace: Option<&str>, subject: &Subject) -> [(Vec<String>, Value); 2] {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let metadata = || match namespace {
        Some(namespace) => json!({"name": subject.role, "namespace": namespace}),
        None => json!({"name": subject.role}),
    };
    let values: Vec<Value> = rules.iter().map(Rule::value).collect();
    let role = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata(), "rules": values,
    });
    let binding = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": format!("{kind}Binding"), "metadata": metadata(),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": subject.role},
        "subjects": [{"kind": "ServiceAccount", "name": subject.name, "namespace": subject.namespace}],
    });
    let marked = rules.iter().filter_map(|rule| {
        let why = power(rule, namespace)?;
        let list = |words: &BTreeSet<Box<str>>| words.iter().map(|it| &**it).collect::<Vec<_>>().join(", ");
        Some(format!("amounts to cluster-admin: {} {}: {why}", list(&rule.verbs), list(&rule.resources)))
    });
    [(marked.collect(), role), (Vec::new(), binding)]
}
