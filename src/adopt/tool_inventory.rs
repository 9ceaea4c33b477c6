//! Lists the objects that the old tool owns according to its own status and marks.
//!
//! In: the status of an Application or a Kustomization, and live objects. Out: the ids in the
//! status, and the owner whose mark a live object carries.

use serde_json::Value;

use super::Tool;
use super::sync_builder::text;
use crate::object::{Object, ObjectId};

/// Annotation of Argo CD on objects: `application:group/kind:namespace/name`.
const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";

/// Label of older versions of Argo CD; charts set it, too.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// Labels of Flux on objects.
const FLUX_NAME: &str = "kustomize.toolkit.fluxcd.io/name";
const FLUX_NAMESPACE: &str = "kustomize.toolkit.fluxcd.io/namespace";

/// Labels of Flux on objects of a HelmRelease.
const HELM_NAME: &str = "helm.toolkit.fluxcd.io/name";
const HELM_NAMESPACE: &str = "helm.toolkit.fluxcd.io/namespace";

/// The objects in a status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolInventory {
    /// Their ids, sorted.
    pub ids: Vec<ObjectId>,
    /// The number of entries that name no object.
    pub unparsed: usize,
}

/// The owner that an object's mark names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerMark {
    /// The given resource.
    This,
    /// Another resource of the same tool.
    Other(Box<str>),
    /// No resource.
    None,
}

/// Reads the objects in the status of an Application or Kustomization.
pub fn read_inventory(tool: Tool, body: &Value) -> ToolInventory {
    let entries = match tool {
        Tool::ArgoCd => body.pointer("/status/resources"),
        Tool::Flux | Tool::FluxHelm => body.pointer("/status/inventory/entries"),
    };
    let mut owned = ToolInventory::default();
    for entry in entries.and_then(Value::as_array).into_iter().flatten() {
        // Hooks are created and deleted with each sync.
        if entry["hook"] == Value::Bool(true) {
            continue;
        }
        let id = match tool {
            Tool::ArgoCd => {
                let field = |name: &str| text(entry, &format!("/{name}"));
                ObjectId::new(field("group"), field("kind"), field("namespace"), field("name")).ok()
            }
            Tool::Flux | Tool::FluxHelm => of_inventory(text(entry, "/id")),
        };
        match id {
            Some(id) => owned.ids.push(id),
            None => owned.unparsed += 1,
        }
    }
    owned.ids.sort();
    owned.ids.dedup();
    owned
}

/// Parses `namespace_name_group_kind`; a colon in a name is written as two underscores.
fn of_inventory(id: &str) -> Option<ObjectId> {
    let (namespace, rest) = id.split_once('_')?;
    let (rest, kind) = rest.rsplit_once('_')?;
    let (name, group) = rest.rsplit_once('_')?;
    ObjectId::new(group, kind, namespace, &name.replace("__", ":")).ok()
}

/// Reads the mark of a live object: of the resource of this namespace and name, or of another one.
pub fn mark(tool: Tool, namespace: &str, name: &str, live: &Object) -> OwnerMark {
    match tool {
        Tool::ArgoCd => argocd(namespace, name, live),
        Tool::Flux => flux((namespace, name), live, (FLUX_NAMESPACE, FLUX_NAME)),
        Tool::FluxHelm => flux((namespace, name), live, (HELM_NAMESPACE, HELM_NAME)),
    }
}

fn flux(own: (&str, &str), live: &Object, (namespace, name): (&str, &str)) -> OwnerMark {
    match (live.label(namespace), live.label(name)) {
        (Some(space), Some(found)) if (space, found) == own => OwnerMark::This,
        (Some(space), Some(found)) => OwnerMark::Other(format!("{space}/{found}").into()),
        _ => OwnerMark::None,
    }
}

fn argocd(namespace: &str, name: &str, live: &Object) -> OwnerMark {
    // Argo CD prefixes an Application outside of its own namespace with that namespace.
    let is_this = |found: &str| found == name || found == format!("{namespace}_{name}");
    if let Some((found, id)) = live.annotation(TRACKING_ID).and_then(|id| id.split_once(':')) {
        let id_of = |id: &ObjectId| {
            format!("{}/{}:{}/{}", id.group(), id.kind(), id.namespace().unwrap_or_default(), id.name())
        };
        // A copy carries the mark of the original, and has no owner.
        return match id == id_of(&live.id) {
            true if is_this(found) => OwnerMark::This,
            true => OwnerMark::Other(found.into()),
            false => OwnerMark::None,
        };
    }
    match live.label(INSTANCE) {
        Some(found) if is_this(found) => OwnerMark::This,
        // Charts set this label, too, so another value proves nothing.
        _ => OwnerMark::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn ids(owned: &ToolInventory) -> Vec<&str> {
        owned.ids.iter().map(ObjectId::as_str).collect()
    }

    #[test]
    fn a_status_names_objects() {
        let application = json!({"status": {"resources": [
            {"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "a", "status": "Synced"},
            {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
            {"kind": "Namespace", "name": "shop"},
            {"group": "batch", "kind": "Job", "namespace": "shop", "name": "migrate", "hook": true},
            {"kind": "ConfigMap"}, 7,
        ]}});
        let found = read_inventory(Tool::ArgoCd, &application);
        assert_eq!(ids(&found), ["/ConfigMap|shop/a", "/Namespace|/shop", "apps/Deployment|shop/web"]);
        assert_eq!(found.unparsed, 2);

        let entry = |id: &str| json!({"id": id, "v": "v1"});
        let kustomization = json!({"status": {"inventory": {"entries": [
            entry("shop_web_apps_Deployment"), entry("shop_a__ConfigMap"), entry("_system__view_rbac.authorization.k8s.io_ClusterRole"),
            entry("nonsense"), entry("shop_b__ConfigMap"), entry("shop_b__ConfigMap"),
        ]}}});
        let found = read_inventory(Tool::Flux, &kustomization);
        assert_eq!(found.unparsed, 1);
        assert_eq!(
            ids(&found),
            [
                "/ConfigMap|shop/a",
                "/ConfigMap|shop/b",
                "apps/Deployment|shop/web",
                "rbac.authorization.k8s.io/ClusterRole|/system:view",
            ]
        );
        assert_eq!(read_inventory(Tool::Flux, &json!({})), ToolInventory::default());
    }

    #[test]
    fn a_mark_is_of_one_resource() {
        let check = |tool, metadata: Value, expect: OwnerMark| {
            let body = json!({"metadata": metadata});
            let live = Object {
                id: ObjectId::parse("/ConfigMap|shop/a").unwrap(),
                version: "v1".into(),
                body: body.as_object().unwrap().clone(),
                origin: crate::object::Origin { file: Arc::from(""), document: 0, line: 0, item: None },
            };
            assert_eq!(mark(tool, "ops", "web", &live), expect, "{metadata}");
        };
        let tracked = |id: &str| json!({"annotations": {TRACKING_ID: id}, "labels": {INSTANCE: "web"}});
        check(Tool::ArgoCd, tracked("web:/ConfigMap:shop/a"), OwnerMark::This);
        check(Tool::ArgoCd, tracked("ops_web:/ConfigMap:shop/a"), OwnerMark::This);
        check(Tool::ArgoCd, tracked("other:/ConfigMap:shop/a"), OwnerMark::Other("other".into()));
        check(Tool::ArgoCd, tracked("web:/ConfigMap:shop/original"), OwnerMark::None);
        check(Tool::ArgoCd, json!({"labels": {INSTANCE: "web"}}), OwnerMark::This);
        check(Tool::ArgoCd, json!({"labels": {INSTANCE: "chart"}}), OwnerMark::None);
        let flux = |space: &str, name: &str| json!({"labels": {FLUX_NAMESPACE: space, FLUX_NAME: name}});
        check(Tool::Flux, flux("ops", "web"), OwnerMark::This);
        check(Tool::Flux, flux("else", "web"), OwnerMark::Other("else/web".into()));
        check(Tool::Flux, json!({}), OwnerMark::None);
        let helm = json!({"labels": {HELM_NAMESPACE: "ops", HELM_NAME: "web"}});
        check(Tool::FluxHelm, helm.clone(), OwnerMark::This);
        check(Tool::Flux, helm, OwnerMark::None);
    }
}
