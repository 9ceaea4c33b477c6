//! Permissions that the Roles and bindings of a repository require from the account that applies
//! them.
//!
//! The API server prevents privilege escalation: creating a Role requires every permission in it,
//! and binding a role that is not in the set requires the verb `bind` for it.

use serde_json::{Map, Value};

use super::{Permissions, PolicyRule};
use crate::desired::DesiredSet;
use moorline_core::object::ObjectId;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Adds the permissions that an object grants.
pub(super) fn add_granted(
    rights: &mut Permissions,
    id: &ObjectId,
    body: &Map<String, Value>,
    desired: &DesiredSet,
) {
    if id.group() != RBAC {
        return;
    }
    match id.kind() {
        "Role" | "ClusterRole" => role(rights, id, body),
        "RoleBinding" | "ClusterRoleBinding" => binding(rights, id, body, desired),
        _ => {}
    }
}

fn role(rights: &mut Permissions, id: &ObjectId, body: &Map<String, Value>) {
    let rules = place(rights, id);
    let granted = body.get("rules").and_then(Value::as_array).into_iter().flatten();
    rules.extend(granted.filter_map(PolicyRule::parse));
    if body.get("aggregationRule").is_some_and(Value::is_object) {
        // Rules of roles that are labelled later are added to it, so only cluster-admin may create
        // it.
        rules.insert(PolicyRule::for_resource("*", "*", &["*"]));
    }
}

fn binding(rights: &mut Permissions, id: &ObjectId, body: &Map<String, Value>, desired: &DesiredSet) {
    let text = |field: &str| body.get("roleRef").and_then(|role| role.get(field)).and_then(Value::as_str);
    let (Some(kind), Some(name)) = (text("kind"), text("name")) else { return };
    let namespace = if kind == "Role" { id.namespace().unwrap_or_default() } else { "" };
    let role = ObjectId::new(RBAC, kind, namespace, name).ok().and_then(|role| desired.get(&role));
    let rules = place(rights, id);
    match role.map(|role| role.body()) {
        Some(role) => {
            let granted = role.get("rules").and_then(Value::as_array).into_iter().flatten();
            rules.extend(granted.filter_map(PolicyRule::parse));
        }
        None => {
            let resource = if kind == "Role" { "roles" } else { "clusterroles" };
            rules.insert(PolicyRule::for_resource(RBAC, resource, &["bind"]).with_names([name]));
        }
    }
}

/// Returns the rules in the scope of an object.
fn place<'a>(rights: &'a mut Permissions, id: &ObjectId) -> &'a mut std::collections::BTreeSet<PolicyRule> {
    match id.namespace() {
        Some(namespace) => rights.namespaces.entry(namespace.into()).or_default(),
        None => &mut rights.cluster,
    }
}
