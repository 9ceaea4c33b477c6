//! Admission: webhooks that refuse or change an object before it is written.
//!
//! In: an object that is about to be written, with its `managedFields`: a field that a webhook adds
//! has no manager.
//! Out: the object as the webhooks leave it, and their warnings; or the error in the wording of
//! Kubernetes.
//!
//! Admission webhooks are called like conversion webhooks (`convert/mod.rs`): never under the lock
//! of the state. An attempt that needs a response records the call and is discarded; the request is
//! tried again with the response. A response is valid as long as the object has the revision that
//! the webhook saw.

mod responses;
mod review;
mod webhooks;

use std::sync::Arc;

use serde_json::Value;

use super::convert;
use super::state::ServerState;
use super::store::Key;
use super::write::RequestTarget;
use crate::resource_registry::{Resource, storage_key};
use crate::status_error::StatusError;
pub(crate) use responses::AdmissionResponses;
pub(crate) use webhooks::{AdmissionWebhook, admitters};

/// Storage name of the webhook configurations.
pub(crate) const CONFIGURATIONS: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";

/// Operation to be admitted, besides the object.
pub(crate) struct Admission<'a> {
    pub(crate) target: &'a RequestTarget,
    /// Name in the request; empty for a whole collection.
    pub(crate) name: &'a str,
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub(crate) operation: &'static str,
    /// Object before the write.
    pub(crate) old: Option<&'a Value>,
    /// Options of the request.
    pub(crate) options: Value,
    pub(crate) is_dry_run: bool,
}

impl Admission<'_> {
    /// Returns the namespace of the operation; for a Namespace this is the Namespace itself.
    fn namespace(&self) -> &str {
        match is_namespace(&self.target.resource) {
            true => &self.target.key.name,
            false => &self.target.key.namespace,
        }
    }
}

impl ServerState {
    /// Lets the webhooks admit an object; null for a deletion.
    pub(crate) fn call_admission_webhooks(
        &mut self,
        about: &Admission<'_>,
        object: &mut Value,
    ) -> Result<Vec<String>, StatusError> {
        let mut warnings = Vec::new();
        if self.admitters.is_empty() || is_exempt(&about.target.resource) {
            return Ok(warnings);
        }
        let all = self.admitters.clone();
        // A webhook with `reinvocationPolicy: IfNeeded` is called once more if later ones changed
        // the object.
        let (mut seen, mut again) = (Vec::new(), Vec::new());
        for round in 1..=2 {
            for admitter in all.iter() {
                if round > 1 && !again.contains(&admitter.id) {
                    continue;
                }
                let before = object.clone();
                let was_asked = self.ask_one(admitter, round, about, object, &mut warnings)?;
                if *object != before {
                    again.append(&mut seen);
                }
                if was_asked && admitter.is_asked_again() {
                    seen.push(admitter.id.clone());
                }
            }
        }
        Ok(warnings)
    }

    /// Calls one webhook, if it matches; returns false if not. It gets the object in the version of
    /// its rule.
    fn ask_one(
        &mut self,
        admitter: &Arc<AdmissionWebhook>,
        round: u8,
        about: &Admission<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<bool, StatusError> {
        let target = about.target;
        let is_meant = self.selects(admitter, about, object);
        let Some(version) = admitter.version(about).filter(|_| is_meant) else { return Ok(false) };
        let shown = self.in_version(about, version, object)?;
        let old = about.old.map(|old| self.in_version(about, version, old)).transpose()?;
        // Without all conversions, this is not yet the object that will be written.
        if self.conversions.has_pending() {
            return Err(StatusError::busy());
        }
        let revision =
            self.store.get(&target.resource.storage_key, &target.key).map(|stored| stored.revision);
        let key = format!("{} {round} {:?} {revision:?}", admitter.id, target.key);
        let request = || review::request(about, version, &shown, old.as_ref());
        let response = match self.conversions.admissions.find(key, admitter, request) {
            None => return Err(StatusError::busy()),
            Some(Err(_)) if admitter.fails_open() => return Ok(true),
            Some(Err(words)) => {
                let words = format!("failed calling webhook {:?}: {words}", admitter.name);
                return Err(StatusError::internal(&words));
            }
            Some(Ok(response)) => response,
        };
        let told = response["warnings"].as_array().into_iter().flatten();
        warnings.extend(told.filter_map(|one| one.as_str().map(str::to_owned)));
        if response["allowed"] != true {
            let refusal = review::denied(&admitter.name, &response["status"]);
            return Err(StatusError { warnings: std::mem::take(warnings), ..refusal });
        }
        if response["patch"].as_array().is_none_or(Vec::is_empty) {
            return Ok(true);
        }
        if shown.is_null() {
            return Err(StatusError::internal(&format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                admitter.name
            )));
        }
        let patched = review::patched(shown, &response["patch"])?;
        // Unknown fields stay until the object is stored.
        *object = match target.subresource.as_str() {
            "scale" => patched,
            _ => {
                convert::convert_for_comparison(&self.conversions, &target.resource, target.version, patched)
                    .map_err(StatusError::failed)?
            }
        };
        Ok(true)
    }

    /// Converts an object to a version of its resource. A `Scale` has only one version.
    fn in_version(
        &self,
        about: &Admission<'_>,
        version: usize,
        object: &Value,
    ) -> Result<Value, StatusError> {
        match object.is_null() || about.target.subresource == "scale" {
            true => Ok(object.clone()),
            false => convert::convert_to_version(
                &self.conversions,
                &about.target.resource,
                version,
                object.clone(),
            ),
        }
    }

    /// True if the labels of the object and of its namespace match the selectors of the webhook.
    fn selects(&self, admitter: &AdmissionWebhook, about: &Admission<'_>, object: &Value) -> bool {
        let namespace = about.namespace();
        let is_written = is_namespace(&about.target.resource)
            && about.target.subresource.is_empty()
            && about.operation != "DELETE";
        let fits_namespace = if namespace.is_empty() {
            true
        } else if is_written {
            admitter.selects_namespace(&|name| object["metadata"]["labels"][name].as_str())
        } else {
            let found = self.store.get(&storage_key("", "namespaces"), &Key::new("", namespace));
            admitter.selects_namespace(&|name| found.and_then(|found| found.label(name)))
        };
        fits_namespace && (admitter.selects(object) || about.old.is_some_and(|old| admitter.selects(old)))
    }
}

fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && &*resource.kind == "Namespace"
}

/// Webhook configurations are not admitted: a webhook that refuses everything could never be
/// removed.
fn is_exempt(resource: &Resource) -> bool {
    const CONFIGURE: [&str; 6] = [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ];
    &*resource.group == "admissionregistration.k8s.io" && CONFIGURE.contains(&&*resource.kind)
}
