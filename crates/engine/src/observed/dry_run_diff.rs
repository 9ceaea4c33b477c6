//! Result of a dry-run comparison.
//!
//! In: the live object and the fields that an apply would change.
//! Out: [`Observed`], verified or drifted, with the live metadata as the new baseline.

use std::cmp::Ordering;

use serde_json::Value;

use super::baseline::EventMetadata;
use super::{Drift, Observed, Verification, age};
use moorline_api::SyncName;
use moorline_core::object::Object;
use moorline_managed_fields::{ManagedFieldsEntry, entries};

impl Observed {
    /// True if this entry is newer than `object`, by resourceVersion.
    pub fn is_newer_than(&self, object: &Object) -> bool {
        let version = object.metadata("resourceVersion").and_then(Value::as_str).unwrap_or_default();
        age(version, &self.resource_version) == Some(Ordering::Less)
    }

    /// Returns the object after a dry-run comparison that found these fields to differ. An entry of
    /// a later version, or of another object with the same name, is returned unchanged.
    #[must_use]
    pub fn with_comparison(&self, live: &Object, owner: &SyncName, fields: Vec<String>) -> Self {
        let now = Self::from_object(live, owner);
        if now.uid != self.uid || self.is_newer_than(live) {
            return self.clone();
        }
        if fields.is_empty() {
            return Self::from_apply(live, owner);
        }
        // The manager that took a field was recorded when it did; later the entries may no longer
        // show it.
        let mut drift = match &self.verification {
            Verification::Drifted(before) if before.manager.is_some() => (**before).clone(),
            Verification::Drifted(_)
            | Verification::Verified
            | Verification::Believed
            | Verification::Unverified
            | Verification::MaybeDrifted => author(live, owner, &fields),
        };
        drift.fields = fields;
        let baseline = EventMetadata::from_object(live, &owner.manager()).baseline(&now.resource_version);
        Self {
            verification: Verification::Drifted(Box::new(drift)),
            baseline: Some(Box::new(baseline)),
            ..now
        }
    }
}

/// Finds the last other manager that wrote one of these fields.
fn author(live: &Object, owner: &SyncName, fields: &[String]) -> Drift {
    let metadata = live.body.get("metadata").and_then(Value::as_object);
    let own = owner.manager();
    let holds = |entry: &ManagedFieldsEntry| {
        entry.fields.owned_paths().iter().any(|path| fields.contains(&path.to_string()))
    };
    let entries = metadata.map(entries).unwrap_or_default();
    let foreign = entries.into_iter().filter(|entry| !entry.is_applied_by(&own) && holds(entry));
    let newest = foreign.max_by(|one, other| one.time.cmp(&other.time));
    let time = newest.as_ref().map(|entry| entry.time.to_string()).filter(|time| !time.is_empty());
    Drift { fields: Vec::new(), manager: newest.map(|entry| entry.author()), time }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use moorline_core::object::{ObjectId, Origin};

    fn live(version: &str) -> Object {
        let body = json!({"metadata": {"uid": "u", "resourceVersion": version, "managedFields": [
            {"manager": "kubectl-edit", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {"f:a": {}}}},
        ]}});
        let Value::Object(body) = body else { unreachable!("a literal mapping") };
        let origin = Origin { file: "live".into(), document: 0, line: 1, item: None };
        Object { id: ObjectId::parse("/ConfigMap|shop/a").unwrap(), version: "v1".into(), body, origin }
    }

    #[test]
    fn a_comparison_verifies_or_names_what_differs_and_who_did_it() {
        let owner = SyncName::new("ops", "web");
        let known = Observed::from_object(&live("7"), &owner);
        assert_eq!(known.with_comparison(&live("8"), &owner, vec![]).verification, Verification::Verified);
        let drifted = known.with_comparison(&live("8"), &owner, vec!["data.a".to_owned()]);
        let Verification::Drifted(drift) = &drifted.verification else { panic!("{drifted:?}") };
        assert_eq!(drift.manager.as_deref(), Some("kubectl-edit"));
        assert_eq!(drift.fields, ["data.a"]);
        assert!(drifted.baseline.is_some());
        let again = drifted.with_comparison(&live("9"), &owner, vec![]);
        assert_eq!(again.verification, Verification::Verified, "somebody undid it");
        assert_eq!(known.with_comparison(&live("6"), &owner, vec![]), known, "older than what is known");
    }
}
