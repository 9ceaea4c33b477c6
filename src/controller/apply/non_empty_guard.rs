//! Holds the deletion of a Namespace or CRD that still contains objects of other owners.
//!
//! In: the current contents of the container.
//! Out: a hold that names one object that would be deleted with it, if there is any.
//!
//! The plan knows only the objects of this Sync, so the API server is queried.

use serde_json::Value;

use super::ApplyContext;
use crate::cluster::{ApiError, ContainerContent, Kinds, find_contained_object};
use crate::desired::Scope;
use crate::object::{GroupKind, Object, ObjectId};
use crate::observed::{Observed, Ownership};
use crate::plan::Hold;

/// Objects that every namespace has.
const EVERYWHERE: [(&str, &str, &str); 2] =
    [("", "ConfigMap", "kube-root-ca.crt"), ("", "ServiceAccount", "default")];

/// Kinds that only describe other objects, and are deleted with them.
const TRACES: [(&str, &str); 3] =
    [("", "Event"), ("events.k8s.io", "Event"), ("coordination.k8s.io", "Lease")];

/// Keys that the control plane sets on Endpoints that it has created for a Service.
const MADE_FOR_SERVICES: [&str; 2] =
    ["endpoints.kubernetes.io/managed-by", "endpoints.kubernetes.io/last-change-trigger-time"];

/// Annotation of a token Secret with the name of its ServiceAccount.
const TOKEN_OF: &str = "kubernetes.io/service-account.name";

/// Returns the reason to hold the deletion, if the object is a container and not empty.
pub(crate) async fn non_empty_hold(work: &ApplyContext<'_>, id: &ObjectId) -> Result<Option<Hold>, ApiError> {
    let is_namespace = id.is_kind("", "Namespace");
    if !is_namespace && !id.is_kind("apiextensions.k8s.io", "CustomResourceDefinition") {
        return Ok(None);
    }
    let counts = |object: &Object, kinds: &Kinds| {
        !(is_going(work, object) || is_namespace && goes_along(object, |kind| is_namespaced(kinds, kind)))
    };
    Ok(match find_contained_object(work.cluster, id, &counts).await? {
        ContainerContent::Nothing => None,
        ContainerContent::Object(resident) => Some(Hold::NotEmpty(resident)),
        ContainerContent::Hidden(kind) => Some(Hold::ContentUnknown(kind)),
    })
}

/// Returns true for an object that this Sync is about to delete as well, or that is being
/// deleted already.
fn is_going(work: &ApplyContext<'_>, object: &Object) -> bool {
    let seen = Observed::from_object(object, work.owner);
    let ours = seen.ownership == Ownership::Ours && !seen.prune_disabled && !seen.reconcile_disabled;
    // Anyone who may patch an object can mark it as ours, and it would be deleted without
    // approval.
    let meant = || {
        let proven = work.cluster.notary().is_valid(work.owner, &object.id, seen.proof.as_deref());
        proven || work.deletions.consented.get(&object.id) == Some(&seen.uid)
    };
    seen.deleting || ours && work.desired.get(&object.id).is_none() && meant()
}

fn is_namespaced(kinds: &Kinds, kind: &GroupKind) -> bool {
    kinds.get(kind).is_some_and(|served| served.scope == Scope::Namespaced)
}

/// Returns true for an object that exists because of the namespace itself, or because of other
/// objects in it, which are checked on their own.
fn goes_along(object: &Object, is_namespaced: impl Fn(&GroupKind) -> bool) -> bool {
    let id = &object.id;
    let everywhere =
        EVERYWHERE.iter().any(|(group, kind, name)| id.is_kind(group, kind) && id.name() == *name);
    let trace = TRACES.iter().any(|(group, kind)| id.is_kind(group, kind));
    let made_for_service = id.is_kind("", "Endpoints")
        && MADE_FOR_SERVICES.iter().any(|key| object.label(key).or(object.annotation(key)).is_some());
    let token = id.is_kind("", "Secret") && object.annotation(TOKEN_OF).is_some();
    everywhere
        || trace
        || made_for_service
        || token
        || controller(object).is_some_and(|kind| is_namespaced(&kind))
}

/// Returns the kind of the controlling owner.
fn controller(object: &Object) -> Option<GroupKind> {
    let owners = object.metadata("ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))?;
    let text = |field: &str| owner.get(field).and_then(Value::as_str);
    let group = text("apiVersion")?.split_once('/').map_or("", |(group, _)| group);
    Some(GroupKind::new(group, text("kind")?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::object::Origin;

    fn goes(id: &str, metadata: &Value) -> bool {
        let body = json!({"metadata": metadata});
        let object = Object {
            id: ObjectId::parse(id).unwrap(),
            version: "v1".into(),
            body: body.as_object().unwrap().clone(),
            origin: Origin { file: Arc::from(""), document: 0, line: 0, item: None },
        };
        goes_along(&object, |kind| &*kind.kind != "Operator")
    }

    fn owned(api_version: &str, kind: &str, controller: bool) -> Value {
        let owner = json!({"apiVersion": api_version, "kind": kind, "name": "x", "uid": "1", "controller": controller});
        json!({"ownerReferences": [owner]})
    }

    #[test]
    fn what_a_namespace_has_by_itself_goes_with_it() {
        let none = json!({});
        assert!(goes("/ConfigMap|a/kube-root-ca.crt", &none));
        assert!(goes("/ServiceAccount|a/default", &none));
        assert!(goes("events.k8s.io/Event|a/x", &none));
        assert!(goes("coordination.k8s.io/Lease|a/x", &none));
        for id in ["/ConfigMap|a/x", "/ServiceAccount|a/x", "/Secret|a/x", "/Endpoints|a/x", "/Pod|a/x"] {
            assert!(!goes(id, &none), "{id}");
        }
    }

    #[test]
    fn what_others_in_the_namespace_control_goes_with_them() {
        assert!(goes("apps/ReplicaSet|a/x", &owned("apps/v1", "Deployment", true)));
        assert!(goes("/Pod|a/x", &owned("apps/v1", "ReplicaSet", true)));
        assert!(goes("discovery.k8s.io/EndpointSlice|a/x", &owned("v1", "Service", true)));
        assert!(!goes("/Pod|a/x", &owned("apps/v1", "ReplicaSet", false)));
        // Its controller lives elsewhere, and would create it again.
        assert!(!goes("apps/Deployment|a/x", &owned("example.com/v1", "Operator", true)));
        assert!(goes("/Endpoints|a/x", &json!({"labels": {"endpoints.kubernetes.io/managed-by": "x"}})));
        assert!(goes(
            "/Secret|a/x",
            &json!({"annotations": {"kubernetes.io/service-account.name": "default"}})
        ));
    }
}
