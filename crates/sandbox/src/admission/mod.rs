//! Admission: webhooks that refuse what is written, or change it.
//!
//! In: what a request is about to write, when it is noted who owns what in it: what admission changes is nobody's. Out: the
//! same as the webhooks leave it, and their warnings; or the refusal, in the words of Kubernetes.
//!
//! A webhook is asked as those that convert are (`convert/mod.rs`): never under the lock of the state. An attempt that needs
//! an answer notes the question and does not count; the request is tried again with what the webhook said. What was said
//! counts for as long as the object is in the revision that the webhook saw.

mod asked;
mod configured;
mod review;

use std::sync::Arc;

use serde_json::Value;

use super::convert;
use super::refusal::Refusal;
use super::served::{Resource, stored_as};
use super::state::State;
use super::store::Key;
use super::write::Target;
pub(crate) use asked::Admissions;
pub(crate) use configured::{Admitter, admitters};

/// Where the webhooks that admit are stored.
pub(crate) const CONFIGURATIONS: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";

/// What is to be admitted, besides the object.
pub(crate) struct Admission<'a> {
    pub(crate) target: &'a Target,
    /// What the request names; empty where it is about all of a collection.
    pub(crate) name: &'a str,
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub(crate) operation: &'static str,
    /// The object as it is.
    pub(crate) old: Option<&'a Value>,
    /// What the request says of how it is to be carried out.
    pub(crate) options: Value,
    pub(crate) is_dry_run: bool,
}

impl Admission<'_> {
    /// The namespace that it is about; a Namespace is about itself.
    fn namespace(&self) -> &str {
        match is_namespace(&self.target.resource) {
            true => &self.target.key.name,
            false => &self.target.key.namespace,
        }
    }
}

impl State {
    /// Has webhooks admit an object; null where it is to be deleted.
    pub(crate) fn ask_admission(
        &mut self,
        about: &Admission<'_>,
        object: &mut Value,
    ) -> Result<Vec<String>, Refusal> {
        let mut warnings = Vec::new();
        if self.admitters.is_empty() || is_exempt(&about.target.resource) {
            return Ok(warnings);
        }
        let all = self.admitters.clone();
        // Who wants to see what others have changed since is asked once more, if it is its turn again.
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

    /// Asks one webhook, if the object is its business; false if not. It sees the object in the version of its rule.
    fn ask_one(
        &mut self,
        admitter: &Arc<Admitter>,
        round: u8,
        about: &Admission<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<bool, Refusal> {
        let target = about.target;
        let is_meant = self.selects(admitter, about, object);
        let Some(version) = admitter.version(about).filter(|_| is_meant) else { return Ok(false) };
        let shown = self.in_version(about, version, object)?;
        let old = about.old.map(|old| self.in_version(about, version, old)).transpose()?;
        // What something is missing for is not what is written.
        if self.conversions.awaits() {
            return Err(Refusal::busy());
        }
        let revision = self.store.get(&target.resource.home, &target.key).map(|stored| stored.revision);
        let key = format!("{} {round} {:?} {revision:?}", admitter.id, target.key);
        let request = || review::request(about, version, &shown, old.as_ref());
        let response = match self.conversions.admissions.find(key, admitter, request) {
            None => return Err(Refusal::busy()),
            Some(Err(_)) if admitter.fails_open() => return Ok(true),
            Some(Err(words)) => {
                let words = format!("failed calling webhook {:?}: {words}", admitter.name);
                return Err(Refusal::internal(&words));
            }
            Some(Ok(response)) => response,
        };
        let told = response["warnings"].as_array().into_iter().flatten();
        warnings.extend(told.filter_map(|one| one.as_str().map(str::to_owned)));
        if response["allowed"] != true {
            let refusal = review::denied(&admitter.name, &response["status"]);
            return Err(Refusal { warnings: std::mem::take(warnings), ..refusal });
        }
        if response["patch"].as_array().is_none_or(Vec::is_empty) {
            return Ok(true);
        }
        if shown.is_null() {
            return Err(Refusal::internal(&format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                admitter.name
            )));
        }
        let patched = review::patched(shown, &response["patch"])?;
        // What is unknown stays until the object is kept.
        *object = match target.subresource.as_str() {
            "scale" => patched,
            _ => convert::between(&self.conversions, &target.resource, target.version, patched)
                .map_err(Refusal::failed)?,
        };
        Ok(true)
    }

    /// An object in a version of its resource. A scale has but one.
    fn in_version(&self, about: &Admission<'_>, version: usize, object: &Value) -> Result<Value, Refusal> {
        match object.is_null() || about.target.subresource == "scale" {
            true => Ok(object.clone()),
            false => convert::in_version(&self.conversions, &about.target.resource, version, object.clone()),
        }
    }

    /// True if the labels of the object and of its namespace are such that the webhook is asked.
    fn selects(&self, admitter: &Admitter, about: &Admission<'_>, object: &Value) -> bool {
        let namespace = about.namespace();
        let is_written = is_namespace(&about.target.resource)
            && about.target.subresource.is_empty()
            && about.operation != "DELETE";
        let fits_namespace = if namespace.is_empty() {
            true
        } else if is_written {
            admitter.selects_namespace(&|name| object["metadata"]["labels"][name].as_str())
        } else {
            let found = self.store.get(&stored_as("", "namespaces"), &Key::new("", namespace));
            admitter.selects_namespace(&|name| found.and_then(|found| found.label(name)))
        };
        fits_namespace && (admitter.selects(object) || about.old.is_some_and(|old| admitter.selects(old)))
    }
}

fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && &*resource.kind == "Namespace"
}

/// What says who admits is admitted by nobody: a webhook that refuses all could never be taken away.
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
