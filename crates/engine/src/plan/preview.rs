//! Plans without a cluster, from complete live objects such as `kubectl get -o yaml` prints.
//!
//! The daemon detects drift by `managedFields`; complete objects have bodies and are compared field
//! by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::difference::{Difference, differences};
use super::removed_fields::removed_fields;
use super::{Action, Plan, Step};
use crate::desired::{DesiredObject, DesiredSet};
use crate::observed::{Drift, Observed, ObservedSet, Ownership, Verification};
use moorline_api::SyncName;
use moorline_core::object::{Object, ObjectId};

/// Observed live objects, and their differences from Git.
#[derive(Debug, Default)]
pub struct Preview {
    /// The observed objects.
    pub observed: ObservedSet,
    /// Fields that differ, by object; objects without any are absent.
    pub differences: BTreeMap<ObjectId, Vec<Difference>>,
    /// True if objects with our identity have no `managedFields`, so that our entry had to be
    /// assumed.
    pub assumed_entries: bool,
}

impl Preview {
    /// Marks objects as unproven, as the daemon reported them.
    pub fn mark_unproven(&mut self, unproven: &[String]) {
        let doubted: Vec<ObjectId> = self
            .observed
            .iter()
            .map(|(id, _)| id.clone())
            .filter(|id| unproven.contains(&id.to_string()))
            .collect();
        doubted.iter().for_each(|id| self.observed.update(id, |seen| seen.proven = false));
    }
}

/// Observes live objects from the view of the Sync `owner`.
pub fn preview(desired: &DesiredSet, live: &[Object], owner: &SyncName) -> Preview {
    let mut preview = Preview::default();
    for object in live {
        let mut observed = Observed::from_object(object, owner);
        // Only the daemon can check the proof.
        observed.proven = !matches!(observed.ownership, Ownership::OtherSync(_));
        if object.metadata("managedFields").is_none() {
            observed.applied_by_us = true;
            preview.assumed_entries |= observed.ownership == Ownership::Ours;
        }
        // An object that is applied once is never changed.
        let wanted = desired.get(&object.id).filter(|wanted| !wanted.annotations.apply_once);
        let wanted_body = wanted.map(body);
        let mut found = wanted_body.as_ref().map_or_else(Vec::new, |body| differences(body, &object.body));
        let changed = found.len();
        if let (Some(wanted), Some(body)) = (wanted, &wanted_body) {
            // An ignored field stays in our entry until it is handed over, and is not removed.
            let rendered = wanted.ignored.as_ref().map(|ignored| ignored.body());
            found.extend(removed_fields(rendered.as_ref().unwrap_or(body), object, owner));
        }
        if let Some(wanted) = wanted.filter(|wanted| wanted.contains_secret) {
            for difference in &mut found {
                difference.secret = true;
                difference.path = wanted.display_path(&difference.path).into_owned();
            }
        }
        // A field that an apply removes is no drift: no one changed it live.
        observed.verification = match &found[..changed] {
            [] => Verification::Verified,
            changed => {
                let fields = changed.iter().map(|difference| difference.path.clone()).collect();
                Verification::Drifted(Box::new(Drift { fields, ..Drift::default() }))
            }
        };
        if !found.is_empty() {
            preview.differences.insert(object.id.clone(), found);
        }
        preview.observed.insert(object.id.clone(), observed);
    }
    preview
}

/// Returns the whole bodies of the objects that a plan creates, as differences without a live
/// value.
pub fn created_bodies(plan: &Plan, desired: &DesiredSet) -> BTreeMap<ObjectId, Vec<Difference>> {
    let creates = |step: &&Step| matches!(step.action, Action::Create | Action::ReplaceHookRuns { .. });
    let whole = |step: &Step| {
        let wanted = desired.get(&step.id)?;
        let body = Some(Value::Object(wanted.body()));
        let whole =
            Difference { path: String::new(), live: None, desired: body, secret: wanted.contains_secret };
        Some((step.id.clone(), vec![whole]))
    };
    plan.steps().filter(creates).filter_map(whole).collect()
}

/// Returns the body of a desired object; the canonical form is JSON that this program wrote.
fn body(object: &DesiredObject) -> Map<String, Value> {
    let mut body = object.body();
    // The requested API version may differ from the stored one.
    body.remove("apiVersion");
    body
}
