//! The observed state of a cluster, as far as a Sync needs it: one compact entry for each object,
//! no bodies.
//!
//! In: metadata, from watches or from complete objects.
//! Out: [`ObservedSet`]. An entry records facts and the ownership of an object; `plan/` decides
//! what follows.

mod baseline;
mod change_stamp;
mod completion;
mod drift;
mod drift_detection;
mod dry_run_diff;
mod evidence;
#[cfg(test)]
mod evidence_tests;
mod extra_fields;
mod generation;
#[cfg(test)]
mod history_tests;
mod metadata_values;
mod observed_set;
mod ownership;
mod preexisting;
mod removal_patch;
mod resource_version;
mod verification;

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;

pub use baseline::{Baseline, ManagedEntry};
pub use change_stamp::ChangeStamp;
pub use completion::{Completion, has_completed, has_failed, runs_to_completion};
pub use drift::Drift;
pub use evidence::{Evidence, Suspicion};
pub use extra_fields::{ExtraField, find_extra_fields};
pub use generation::generation_is_trusted;
pub use observed_set::ObservedSet;
pub use ownership::{InstallationRole, holds_keys};
pub use preexisting::existed_before_apply;
pub use removal_patch::{has_field, removal_patch};
pub use verification::Verification;

use crate::proof::Proof;
use baseline::EventMetadata;
use drift_detection::EventVerdict;
use metadata_values::{finalizers, is_deleting, time, wave};
use moorline_api::{self as api, SpecHash, SyncName};
use moorline_core::object::Object;
use moorline_managed_fields::{FieldPath, FieldSet};
use ownership::{ApplyEntries, has_controller, read_ownership};
use resource_version::age;

/// One object of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Its uid.
    pub uid: Box<str>,
    /// The observed version.
    pub resource_version: Box<str>,
    /// The owner according to its annotations.
    pub ownership: Ownership,
    /// Its proof, valid or not.
    pub proof: Option<Box<Proof>>,
    /// True if the proof is valid for this object and this Sync: the daemon itself wrote the
    /// annotations.
    pub proven: bool,
    /// Field managers other than ours, if the object has no owner.
    pub managers: Vec<Box<str>>,
    /// True if our own entry is present in `managedFields`.
    pub applied_by_us: bool,
    /// Hash that was recorded by the last apply.
    pub recorded_hash: Option<SpecHash>,
    /// State of the fields that Git sets.
    pub verification: Verification,
    /// True if another object controls this one, so that the garbage collector decides about it.
    pub controlled: bool,
    /// True if the object is being deleted.
    pub deleting: bool,
    /// Finalizers that block its deletion, once it has begun.
    pub finalizers: Box<[Box<str>]>,
    /// Wave in which it was applied.
    pub wave: i32,
    /// True if a live annotation disables reconciliation of the object.
    pub reconcile_disabled: bool,
    /// True if a live annotation or label forbids pruning the object.
    pub prune_disabled: bool,
    /// Key of that annotation or label.
    pub protected_by: Option<&'static str>,
    /// Role in an installation of Moorline, by its labels.
    pub installation_role: InstallationRole,
    /// Time until which a live annotation pauses the repair of manual edits: milliseconds since
    /// 1970.
    pub pause_until: Option<i64>,
    /// Completion of a Job or Pod.
    pub completion: Completion,
    /// Baseline for drift detection; absent before an apply of ours, or a belief.
    pub baseline: Option<Box<Baseline>>,
    /// Our own entry where there is no baseline, compressed.
    pub own_entry: Option<Arc<[u8]>>,
    /// Evidence of the first list, until the object is believed or verified.
    pub evidence: Option<Arc<Evidence>>,
    /// True if the object is unverified only because its daily verification is due.
    pub overdue: bool,
    /// Number of the last check of the cluster's identity that had begun when an apply of ours
    /// first returned this uid; none if none did, or in the home cluster.
    pub written_after: Option<u32>,
    /// Fields that people added to an object of ours; the first few.
    pub extra_fields: Box<[ExtraField]>,
}

/// Owner of an object, according to the identity annotation and `managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// The identity names this Sync and this object.
    Ours,
    /// Another Sync applied the object.
    OtherSync(Box<str>),
    /// The identity names another object: this one is a copy.
    Copy,
    /// No Sync owns the object.
    Unowned,
}

impl Observed {
    /// Reads the metadata in the response to an apply of ours. They become the baseline for later
    /// events.
    pub fn from_apply(object: &Object, owner: &SyncName) -> Self {
        let now = Self::from_object(object, owner);
        let baseline = EventMetadata::from_object(object, &owner.manager()).baseline(&now.resource_version);
        Self { verification: Verification::Verified, baseline: Some(Box::new(baseline)), ..now }
    }

    /// Reads the metadata of an object that was unknown before.
    pub fn first_seen(object: &Object, owner: &SyncName) -> Self {
        Self {
            own_entry: baseline::packed_own_entry(object, &owner.manager()),
            ..Self::from_object(object, owner)
        }
    }

    /// Reads the metadata of an object in the first list of its kind.
    pub fn first_listed(object: &Object, owner: &SyncName) -> Self {
        let evidence = Evidence::of(object, &owner.manager()).map(Arc::new);
        let own_entry = evidence.as_ref().and_then(|it| it.own_entry()).map(ManagedEntry::packed);
        Self { own_entry, evidence, ..Self::from_object(object, owner) }
    }

    /// Records the judgement of the evidence.
    pub fn judge(&mut self, suspicion: Option<Suspicion>) {
        let Some(evidence) = self.evidence.take() else { return };
        match suspicion {
            _ if self.verification != Verification::Unverified => {}
            Some(suspicion) => self.evidence = Some(Arc::new(evidence.suspected(suspicion))),
            None => {
                self.verification = Verification::Believed;
                (self.baseline, self.own_entry) = (Some(Box::new(evidence.baseline())), None);
            }
        }
    }

    /// Returns the reason for which the evidence was not believed.
    pub fn suspicion(&self) -> Option<Suspicion> {
        self.evidence.as_ref()?.judged()
    }

    /// Marks the object for verification by a request, if nothing speaks against its fields.
    pub fn unverify(&mut self) {
        (self.evidence, self.overdue) = (None, false);
        if self.verification.is_sound() {
            self.verification = Verification::Unverified;
        }
    }

    /// Marks the object for its daily verification, if nothing speaks against its fields.
    pub fn mark_overdue(&mut self) {
        let was_sound = self.verification.is_sound();
        self.unverify();
        self.overdue |= was_sound;
    }

    /// Returns the fields that we own, if known.
    pub fn owned_fields(&self) -> Option<FieldSet> {
        let known = self.baseline.as_ref().and_then(|baseline| baseline.own_entry.as_ref());
        known.map(ManagedEntry::fields).or_else(|| FieldSet::from_bytes(self.own_entry.as_ref()?))
    }

    /// True if the response to our own apply did not show our entry: then its absence proves
    /// nothing.
    pub fn has_hidden_entry(&self) -> bool {
        self.baseline.as_ref().is_some_and(|baseline| baseline.own_entry.is_none())
    }

    /// True if this field, in the form for people, is not ours: another manager took it, or it was
    /// left to others.
    pub fn has_lost_field(&self, field: &str) -> bool {
        let taken = matches!(&self.verification, Verification::Drifted(drift) if drift.fields.iter().any(|it| it == field));
        let is_it = |path: &FieldPath| path.to_string() == field;
        taken || self.owned_fields().is_some_and(|own| !own.owned_paths().iter().any(is_it))
    }

    /// Updates the entry from a new event. An event that is older than the known version changes
    /// nothing, and neither does one of the state before a write whose response arrived first.
    pub fn update_from_event(&self, object: &Object, owner: &SyncName) -> Self {
        let now = self.updated(object, owner);
        let written_after = self.written_after.filter(|_| now.uid == self.uid);
        Self { written_after, ..now }
    }

    fn updated(&self, object: &Object, owner: &SyncName) -> Self {
        let now = Self::from_object(object, owner);
        let (known, seen) = (&*self.resource_version, &*now.resource_version);
        if now.uid != self.uid {
            return self.remade(now, object, owner);
        }
        let ours = self.baseline.as_ref().map(|baseline| &*baseline.resource_version);
        match age(seen, known) {
            Some(Ordering::Less) => return self.clone(),
            // Versions that are no numbers have no order, but the one of our own write is
            // recognized.
            None if ours == Some(seen) && seen != known => return self.clone(),
            _ if seen == known => {
                let (standing, baseline, own) =
                    (self.verification.clone(), self.baseline.clone(), self.own_entry.clone());
                return Self {
                    verification: standing,
                    baseline,
                    own_entry: own,
                    extra_fields: self.extra_fields.clone(),
                    evidence: self.evidence.clone(),
                    overdue: self.overdue,
                    ..now
                };
            }
            _ => {}
        }
        let Some(baseline) = &self.baseline else { return self.unverified_again(now, object, owner) };
        let trace = EventMetadata::from_object(object, &owner.manager());
        match crate::observed::drift_detection::judge_event(baseline, &trace, object) {
            EventVerdict::Unchanged => {
                let baseline = Some(Box::new(baseline.at_version(&trace, seen)));
                Self { verification: self.verification.clone(), baseline, ..now }
            }
            EventVerdict::MaybeDrifted => {
                Self { verification: self.verification.after_write(), baseline: self.baseline.clone(), ..now }
            }
            EventVerdict::Drifted(drift) => {
                let before = baseline.own_entry.as_ref().map(ManagedEntry::fields);
                let extras = extras_of(&now.ownership, object, owner, before.as_ref());
                let standing = self.verification.after_drift(drift);
                Self { verification: standing, baseline: self.baseline.clone(), extra_fields: extras, ..now }
            }
        }
    }

    /// Updates an entry that was never verified: a loss of our fields means drift, the rest stays
    /// unknown.
    fn unverified_again(&self, now: Self, object: &Object, owner: &SyncName) -> Self {
        let trace = EventMetadata::from_object(object, &owner.manager());
        let before = self.own_entry.as_ref().and_then(|own| FieldSet::from_bytes(own));
        let standing = match (
            before.and_then(|before| crate::observed::drift_detection::drift_since(&before, &trace, object)),
            &self.verification,
        ) {
            (Some(drift), standing) => standing.after_drift(drift),
            (None, Verification::Verified | Verification::Believed) => Verification::Unverified,
            (
                None,
                standing @ (Verification::Unverified | Verification::MaybeDrifted | Verification::Drifted(_)),
            ) => standing.clone(),
        };
        Self {
            verification: standing,
            own_entry: baseline::packed_own_entry(object, &owner.manager()),
            // A suspicion stays; metadata of an event are no evidence.
            evidence: self.evidence.clone().filter(|evidence| evidence.judged().is_some()),
            ..now
        }
    }

    /// Updates an entry whose object was deleted and created again. Facts about the old object no
    /// longer apply.
    fn remade(&self, now: Self, object: &Object, owner: &SyncName) -> Self {
        let trace = EventMetadata::from_object(object, &owner.manager());
        let drift =
            crate::observed::drift_detection::recreation_drift(self.baseline.as_deref(), object, &trace);
        Self { verification: Verification::Drifted(Box::new(drift)), ..now }
    }

    /// Marks the object as unverified and drops its baseline and version.
    pub fn mark_unverified(&mut self) {
        (self.verification, self.baseline) = (Verification::Unverified, None);
        (self.evidence, self.overdue) = (None, false);
        self.resource_version = Box::default();
    }

    /// True if `other` leads to the same decisions, although it may be a later version. A drifted
    /// object is never equal to a later version, because the drift may have been undone.
    pub fn is_equivalent_to(&self, other: &Self) -> bool {
        let flags = |of: &Self| {
            let asked = [of.reconcile_disabled, of.prune_disabled];
            ([of.applied_by_us, of.controlled, of.deleting], asked, of.protected_by, of.installation_role)
        };
        let undone = matches!(self.verification, Verification::Drifted(_))
            && self.resource_version != other.resource_version;
        !undone
            && flags(self) == flags(other)
            && (self.proven, &self.proof) == (other.proven, &other.proof)
            && (self.pause_until, self.completion) == (other.pause_until, other.completion)
            && (&self.uid, &self.ownership, &self.recorded_hash)
                == (&other.uid, &other.ownership, &other.recorded_hash)
            && (&self.verification, self.wave) == (&other.verification, other.wave)
            && (&self.managers, &self.extra_fields, &self.finalizers)
                == (&other.managers, &other.extra_fields, &other.finalizers)
    }

    /// Reads the metadata of a live object from the view of the Sync `owner`.
    pub fn from_object(object: &Object, owner: &SyncName) -> Self {
        let text = |field| object.metadata(field).and_then(Value::as_str).unwrap_or_default();
        let is = |key, value| object.annotation(key) == Some(value);
        let entries = ApplyEntries::of(object, owner);
        let mark = read_ownership(object, owner, &entries);
        let extras = extras_of(&mark, object, owner, None);
        let kept_by = api::deletion_protection_key(|key| object.annotation(key), |key| object.label(key));
        Self {
            recorded_hash: object.annotation(api::SPEC_HASH_ANNOTATION).and_then(SpecHash::parse),
            proof: object.annotation(api::PROOF_ANNOTATION).and_then(Proof::parse).map(Box::new),
            applied_by_us: entries.ours,
            // Only needed for objects that may be adopted.
            managers: match mark {
                Ownership::Copy | Ownership::Unowned => entries.others,
                Ownership::Ours | Ownership::OtherSync(_) => Vec::new(),
            },
            ownership: mark,
            controlled: has_controller(object),
            finalizers: finalizers(object),
            deleting: is_deleting(object),
            wave: wave(object),
            reconcile_disabled: is(api::RECONCILE_ANNOTATION, "disabled"),
            prune_disabled: kept_by.is_some(),
            protected_by: kept_by,
            installation_role: InstallationRole::of(object),
            pause_until: object.annotation(api::PAUSE_ANNOTATION).and_then(time),
            completion: Completion::from_metadata(object),
            extra_fields: extras,
            ..Self::new(text("uid"), text("resourceVersion"))
        }
    }

    /// Creates an entry with only uid and version.
    pub fn new(uid: &str, resource_version: &str) -> Self {
        Self {
            uid: uid.into(),
            resource_version: resource_version.into(),
            ownership: Ownership::Unowned,
            proof: None,
            proven: false,
            managers: Vec::new(),
            applied_by_us: false,
            recorded_hash: None,
            verification: Verification::Unverified,
            controlled: false,
            deleting: false,
            finalizers: Box::default(),
            wave: 0,
            reconcile_disabled: false,
            prune_disabled: false,
            protected_by: None,
            installation_role: InstallationRole::None,
            pause_until: None,
            completion: Completion::default(),
            baseline: None,
            own_entry: None,
            evidence: None,
            overdue: false,
            written_after: None,
            extra_fields: Box::default(),
        }
    }
}

/// Returns the extra fields of an object that is ours; empty for others.
fn extras_of(
    mark: &Ownership,
    object: &Object,
    owner: &SyncName,
    before: Option<&FieldSet>,
) -> Box<[ExtraField]> {
    match mark {
        Ownership::Ours => {
            crate::observed::extra_fields::first_extra_fields(object, &owner.manager(), before)
        }
        Ownership::OtherSync(_) | Ownership::Copy | Ownership::Unowned => Box::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use moorline_core::object::ObjectId;
    use serde_json::json;

    fn live(metadata: Value) -> Object {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let Value::Object(body) = body else { unreachable!("a literal mapping") };
        let id = ObjectId::new("", "ConfigMap", "shop", "a").unwrap();
        let origin = moorline_core::object::Origin { file: "live".into(), document: 0, line: 1, item: None };
        Object { id, version: "v1".into(), body, origin }
    }

    fn mark_of(metadata: Value) -> Ownership {
        Observed::from_object(&live(metadata), &SyncName::new("ops", "web")).ownership
    }

    #[test]
    fn an_identity_that_names_another_object_is_a_copy() {
        let id = |text: &str| json!({"annotations": {"moorline.dev/id": text}});
        assert_eq!(mark_of(id("ops/web|/ConfigMap|shop/a")), Ownership::Ours);
        assert_eq!(mark_of(id("ops/web|/ConfigMap|shop/b")), Ownership::Copy);
        assert_eq!(mark_of(id("ops/api|/ConfigMap|shop/a")), Ownership::OtherSync("ops/api".into()));
        assert_eq!(mark_of(id("nonsense")), Ownership::Copy);
        assert_eq!(mark_of(json!({})), Ownership::Unowned);
    }

    #[test]
    fn managed_fields_tell_who_applied() {
        let entry = |manager: &str, operation: &str, subresource: &str| json!({"manager": manager, "operation": operation, "subresource": subresource});
        let fields = json!({"managedFields": [
            entry("moorline/ops/web", "Update", ""), entry("kubectl", "Apply", ""), entry("kubectl", "Update", ""),
            entry("hpa", "Update", "scale"),
        ]});
        let observed = Observed::from_object(&live(fields), &SyncName::new("ops", "web"));
        assert!(!observed.applied_by_us, "an update under our name is not an apply");
        assert_eq!(observed.managers, [Box::from("kubectl")]);
        let ours = json!({"managedFields": [entry("moorline/ops/web", "Apply", "")]});
        assert!(Observed::from_object(&live(ours), &SyncName::new("ops", "web")).applied_by_us);
        let theirs = json!({"managedFields": [entry("moorline/ops/api", "Apply", "")]});
        assert_eq!(mark_of(theirs), Ownership::OtherSync("ops/api".into()));
    }

    #[test]
    fn only_a_controller_makes_an_object_controlled() {
        let controlled = |controller| {
            let owners = json!({"ownerReferences": [{"uid": "1", "controller": controller}]});
            Observed::from_object(&live(owners), &SyncName::new("ops", "web")).controlled
        };
        assert!(controlled(true));
        assert!(!controlled(false));
    }
}
