//! Stops the old tool for one resource, and restores it.
//!
//! In: an Application or Kustomization. Out: one patch that stops the tool and records the previous
//! state on the resource itself, and one that restores that state. Each is a single write that
//! names the version it was made from, so a crash leaves no state in between.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Tool;
use super::sync_builder::text;
use crate::api::{BEFORE_ADOPTION_ANNOTATION, SyncName};

/// Finalizers with which Argo CD deletes the objects of an Application together with it, or runs
/// hooks.
const FINALIZERS: [&str; 3] = [
    "resources-finalizer.argocd.argoproj.io",
    "pre-delete-finalizer.argocd.argoproj.io",
    "post-delete-finalizer.argocd.argoproj.io",
];

/// State of a resource before it was adopted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdoptionRecord {
    /// The Sync that was made from the resource, as namespace/name.
    pub sync: String,
    /// The changed fields as JSON pointers with their old values; null for those that did not
    /// exist.
    fields: Vec<(String, Value)>,
    /// The finalizers that were removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    finalizers: Vec<String>,
}

/// The record on the resource cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the annotation moorline.dev/before-adoption is invalid: restore the resource by hand (automated and finalizers of an Application, suspend and prune of a Kustomization, suspend of a HelmRelease), then remove the annotation"
)]
pub struct AdoptionRecordError;

/// The fields that stop a tool, and that keep it from deleting anything with the resource.
fn stopped(tool: Tool) -> Vec<(&'static str, Value)> {
    match tool {
        Tool::ArgoCd => vec![
            ("/spec/syncPolicy/automated", Value::Null),
            ("/metadata/annotations/argocd.argoproj.io~1skip-reconcile", "true".into()),
        ],
        Tool::Flux => vec![
            ("/spec/suspend", true.into()),
            ("/spec/prune", false.into()),
            ("/spec/deletionPolicy", "Orphan".into()),
        ],
        // The deletion of a suspended HelmRelease uninstalls nothing: its finalizer is just
        // removed.
        Tool::FluxHelm => vec![("/spec/suspend", true.into())],
    }
}

/// The merge patch that stops the old tool and records the previous state.
pub fn stop_patch(tool: Tool, old: &Value, sync: &SyncName) -> Value {
    let mut patch = json!({"metadata": {"resourceVersion": text(old, "/metadata/resourceVersion")}});
    let mut former = AdoptionRecord { sync: sync.to_string(), fields: Vec::new(), finalizers: Vec::new() };
    for (place, value) in stopped(tool) {
        let was = old.pointer(place).cloned().unwrap_or_default();
        if was != value {
            put(&mut patch, place, value);
            former.fields.push((place.to_owned(), was));
        }
    }
    let (taken, kept): (Vec<String>, Vec<String>) =
        finalizers(old).into_iter().partition(|it| tool == Tool::ArgoCd && is_argo_finalizer(it));
    if !taken.is_empty() {
        patch["metadata"]["finalizers"] = json!(kept);
        former.finalizers = taken;
    }
    patch["metadata"]["annotations"][BEFORE_ADOPTION_ANNOTATION] = json!(former).to_string().into();
    patch
}

/// True if the old tool is stopped and would delete nothing with the resource. The other stopped
/// fields may be set again by a manager that applies the resource, and have no effect then.
pub fn is_stopped(tool: Tool, old: &Value) -> bool {
    match tool {
        Tool::ArgoCd => {
            let skipped = old.pointer("/metadata/annotations/argocd.argoproj.io~1skip-reconcile");
            skipped == Some(&"true".into()) && !deletes_its_objects(tool, old)
        }
        Tool::Flux | Tool::FluxHelm => old.pointer("/spec/suspend") == Some(&true.into()),
    }
}

/// True for an Application that Argo CD would delete together with its objects.
pub(super) fn deletes_its_objects(tool: Tool, old: &Value) -> bool {
    tool == Tool::ArgoCd && finalizers(old).iter().any(|it| is_argo_finalizer(it))
}

fn is_argo_finalizer(finalizer: &str) -> bool {
    FINALIZERS.iter().any(|known| finalizer.starts_with(known))
}

/// True for a resource that is being deleted. Removed finalizers cannot be restored on it, and
/// restored fields would resume its deletion.
pub fn is_being_deleted(old: &Value) -> bool {
    old.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// The reason why the old tool cannot be stopped now, if it is in the middle of a sync.
pub fn busy_reason(tool: Tool, old: &Value) -> Option<&'static str> {
    let phase = text(old, "/status/operationState/phase");
    let is_running = ["Running", "Terminating"].contains(&phase) || !old["operation"].is_null();
    (tool == Tool::ArgoCd && is_running)
        .then_some("Argo CD is syncing it now: wait, or terminate the operation (argocd app terminate-op), and try again")
}

impl AdoptionRecord {
    /// Reads the record of a resource; `None` if it was never adopted.
    pub fn read_from(old: &Value) -> Result<Option<Self>, AdoptionRecordError> {
        let place = format!("/metadata/annotations/{}", BEFORE_ADOPTION_ANNOTATION.replace('/', "~1"));
        let Some(written) = old.pointer(&place).and_then(Value::as_str) else { return Ok(None) };
        let former: Self = serde_json::from_str(written).map_err(|_| AdoptionRecordError)?;
        // A person who may write the annotation must not make us write other fields than our own.
        let known = |place: &str| super::TOOLS.into_iter().flat_map(stopped).any(|(known, _)| known == place);
        let sound = former.fields.iter().all(|(place, _)| known(place))
            && former.finalizers.iter().all(|it| is_argo_finalizer(it))
            && former.sync_name().is_some();
        if sound { Ok(Some(former)) } else { Err(AdoptionRecordError) }
    }

    /// The Sync that was made from the resource.
    pub fn sync_name(&self) -> Option<SyncName> {
        let (namespace, name) = self.sync.split_once('/')?;
        (!namespace.is_empty() && !name.is_empty()).then(|| SyncName::new(namespace, name))
    }

    /// The merge patch that restores the previous state.
    pub fn restore_patch(&self, old: &Value) -> Value {
        let mut patch = json!({"metadata": {"resourceVersion": text(old, "/metadata/resourceVersion")}});
        for (place, was) in &self.fields {
            put(&mut patch, place, was.clone());
        }
        if !self.finalizers.is_empty() {
            let mut all = finalizers(old);
            all.extend(self.finalizers.iter().filter(|it| !finalizers(old).contains(it)).cloned());
            patch["metadata"]["finalizers"] = json!(all);
        }
        patch["metadata"]["annotations"][BEFORE_ADOPTION_ANNOTATION] = Value::Null;
        patch
    }

    /// The resource in its previous state.
    pub fn original(&self, old: &Value) -> Value {
        let mut was = old.clone();
        for (place, value) in &self.fields {
            put(&mut was, place, value.clone());
        }
        was
    }
}

fn finalizers(old: &Value) -> Vec<String> {
    let list = old.pointer("/metadata/finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Sets a field, and creates the mappings around it.
fn put(to: &mut Value, place: &str, value: Value) {
    let mut at = to;
    for part in place.split('/').skip(1) {
        let name = part.replace("~1", "/").replace("~0", "~");
        // A value that is no mapping would hide the field: replace it.
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[name];
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies a merge patch as the API server does.
    fn merged(mut to: Value, patch: &Value) -> Value {
        let Some(fields) = patch.as_object() else { return patch.clone() };
        if !to.is_object() {
            to = json!({});
        }
        for (name, value) in fields {
            if value.is_null() {
                to.as_object_mut().unwrap().remove(name);
            } else {
                to[name] = merged(to[name].take(), value);
            }
        }
        to
    }

    #[test]
    fn what_was_stopped_is_restored_exactly() {
        let version = json!("7");
        let shop = |tool: Tool, metadata: Value, spec: Value| {
            let mut old = json!({"metadata": metadata, "spec": spec});
            old["metadata"]["resourceVersion"] = version.clone();
            let sync = SyncName::new("moorline", "shop");
            let halted = merged(old.clone(), &stop_patch(tool, &old, &sync));
            let former = AdoptionRecord::read_from(&halted).unwrap().unwrap();
            assert!(is_stopped(tool, &halted) && !is_stopped(tool, &old));
            assert_eq!(former.sync_name(), Some(sync));
            let mut restored = merged(halted.clone(), &former.restore_patch(&halted));
            // An empty mapping means the same as none.
            if restored["metadata"]["annotations"] == json!({}) && old["metadata"]["annotations"].is_null() {
                restored["metadata"].as_object_mut().unwrap().remove("annotations");
            }
            assert_eq!(restored, old);
            let spec = former.original(&halted)["spec"].clone();
            assert_eq!(merged(json!({}), &spec), merged(json!({}), &old["spec"]));
            halted
        };
        let automated = json!({"automated": {"prune": true}, "syncOptions": ["PruneLast=true"]});
        let [ends, before, after] = FINALIZERS;
        let finalizers =
            json!(["other/one", ends, format!("{ends}/background"), before, format!("{after}/cleanup")]);
        let metadata = json!({"annotations": {"a": "b"}, "finalizers": ["other/one", "resources-finalizer.argocd.argoproj.io"]});
        let halted = shop(Tool::ArgoCd, metadata, json!({"syncPolicy": automated}));
        assert_eq!(halted["metadata"]["finalizers"], json!(["other/one"]));
        assert_eq!(halted["metadata"]["annotations"]["argocd.argoproj.io/skip-reconcile"], "true");
        assert_eq!(halted["spec"]["syncPolicy"], json!({"syncOptions": ["PruneLast=true"]}));
        let halted = stop_patch(
            Tool::ArgoCd,
            &json!({"metadata": {"finalizers": finalizers}}),
            &SyncName::new("a", "b"),
        );
        assert_eq!(halted["metadata"]["finalizers"], json!(["other/one"]));
        let mut again = merged(json!({"metadata": {"finalizers": finalizers}}), &halted);
        assert!(is_stopped(Tool::ArgoCd, &again));
        again["spec"]["syncPolicy"]["automated"] = json!({});
        assert!(is_stopped(Tool::ArgoCd, &again), "it is skipped all the same");
        again["metadata"]["finalizers"] = json!([ends]);
        assert!(!is_stopped(Tool::ArgoCd, &again), "who deletes it deletes its objects");

        shop(Tool::ArgoCd, json!({}), json!({"project": "default"}));
        let skipped = json!({"annotations": {"argocd.argoproj.io/skip-reconcile": "false"}});
        shop(Tool::ArgoCd, skipped, json!({}));
        let halted =
            shop(Tool::Flux, json!({"finalizers": ["finalizers.fluxcd.io"]}), json!({"prune": true}));
        assert_eq!(halted["spec"], json!({"prune": false, "suspend": true, "deletionPolicy": "Orphan"}));
        assert_eq!(halted["metadata"]["finalizers"], json!(["finalizers.fluxcd.io"]));
        shop(Tool::Flux, json!({}), json!({"prune": true, "suspend": false, "deletionPolicy": "Delete"}));
        let halted =
            shop(Tool::FluxHelm, json!({"finalizers": ["finalizers.fluxcd.io"]}), json!({"suspend": false}));
        assert_eq!(halted["spec"], json!({"suspend": true}));
        assert_eq!(halted["metadata"]["finalizers"], json!(["finalizers.fluxcd.io"]));
    }

    #[test]
    fn what_was_written_by_others_is_not_obeyed() {
        let with = |text: &str| json!({"metadata": {"annotations": {BEFORE_ADOPTION_ANNOTATION: text}}});
        assert_eq!(AdoptionRecord::read_from(&json!({})), Ok(None));
        for text in [
            "",
            "{}",
            r#"{"sync": "a", "fields": []}"#,
            r#"{"sync": "a/b", "fields": [["/spec/destination/server", "https://example.com"]]}"#,
            r#"{"sync": "a/b", "fields": [], "finalizers": ["example.com/stuck"]}"#,
        ] {
            assert_eq!(AdoptionRecord::read_from(&with(text)), Err(AdoptionRecordError), "{text}");
        }
        assert!(
            AdoptionRecord::read_from(&with(r#"{"sync": "a/b", "fields": [["/spec/suspend", null]]}"#))
                .is_ok()
        );
    }

    #[test]
    fn a_sync_under_way_is_not_interrupted() {
        let phase = |phase: &str| json!({"status": {"operationState": {"phase": phase}}});
        assert!(busy_reason(Tool::ArgoCd, &phase("Running")).is_some());
        assert!(busy_reason(Tool::ArgoCd, &phase("Terminating")).is_some());
        assert!(busy_reason(Tool::ArgoCd, &json!({"operation": {"sync": {}}})).is_some());
        assert_eq!(busy_reason(Tool::ArgoCd, &phase("Succeeded")), None);
        assert_eq!(busy_reason(Tool::Flux, &phase("Running")), None);
    }
}
