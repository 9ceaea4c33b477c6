//! The observed set of objects at hand, as from `kubectl get -o yaml`: for previews without a cluster.
//!
//! A watch tells drift by the managed fields; objects at hand have bodies, and are compared field by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::difference::{Difference, differences};
use super::removals::removals;
use super::{Action, Plan, Step};
use crate::desired::{DesiredObject, DesiredSet};
use crate::observed::{Drift, Mark, Observed, ObservedSet, Standing};
use moorline_api::SyncName;
use moorline_core::object::{Object, ObjectId};

/// The live objects, and where those that should exist are not as Git says.
#[derive(Debug, Default)]
pub struct Preview {
    /// What was seen.
    pub observed: ObservedSet,
    /// Fields that differ, by object; objects without any are absent.
    pub differences: BTreeMap<ObjectId, Vec<Difference>>,
    /// True if objects with our identity come without managed fields, so that an entry of ours had to be assumed.
    pub assumed_entries: bool,
}

impl Preview {
    /// The daemon has told of these that they are not proven.
    pub fn doubt(&mut self, told: &[String]) {
        let doubted: Vec<ObjectId> = self
            .observed
            .iter()
            .map(|(id, _)| id.clone())
            .filter(|id| told.contains(&id.to_string()))
            .collect();
        doubted.iter().for_each(|id| self.observed.change(id, |seen| seen.proven = false));
    }
}

/// Looks at live objects as the Sync `owner` would.
pub fn preview(desired: &DesiredSet, live: &[Object], owner: &SyncName) -> Preview {
    let mut preview = Preview::default();
    for object in live {
        let mut observed = Observed::of(object, owner);
        // The daemon checks the proof, which nobody else can.
        observed.proven = !matches!(observed.mark, Mark::Sync(_));
        if object.metadata("managedFields").is_none() {
            observed.applied_by_us = true;
            preview.assumed_entries |= observed.mark == Mark::Ours;
        }
        // What is only ever created is not changed once it is there.
        let wanted = desired.get(&object.id).filter(|wanted| !wanted.switches.apply_once);
        let wanted_body = wanted.map(body);
        let mut found = wanted_body.as_ref().map_or_else(Vec::new, |body| differences(body, &object.body));
        let changed = found.len();
        if let (Some(wanted), Some(body)) = (wanted, &wanted_body) {
            // A field that is left to others is in our entry until it is handed over, and is not removed.
            let rendered = wanted.ignored.as_ref().map(|ignored| ignored.body());
            found.extend(removals(rendered.as_ref().unwrap_or(body), object, owner));
        }
        if let Some(wanted) = wanted.filter(|wanted| wanted.secret) {
            for difference in &mut found {
                difference.secret = true;
                difference.path = wanted.shows(&difference.path).into_owned();
            }
        }
        // What an apply removes is no drift: nobody changed it.
        observed.standing = match &found[..changed] {
            [] => Standing::Verified,
            changed => {
                let fields = changed.iter().map(|difference| difference.path.clone()).collect();
                Standing::Drifted(Box::new(Drift { fields, ..Drift::default() }))
            }
        };
        if !found.is_empty() {
            preview.differences.insert(object.id.clone(), found);
        }
        preview.observed.insert(object.id.clone(), observed);
    }
    preview
}

/// The whole bodies of the objects that a plan creates, as differences without a live value.
pub fn creations(plan: &Plan, desired: &DesiredSet) -> BTreeMap<ObjectId, Vec<Difference>> {
    let creates = |step: &&Step| matches!(step.action, Action::Create | Action::Follow { .. });
    let whole = |step: &Step| {
        let wanted = desired.get(&step.id)?;
        let body = Some(Value::Object(wanted.body()));
        let whole = Difference { path: String::new(), live: None, wanted: body, secret: wanted.secret };
        Some((step.id.clone(), vec![whole]))
    };
    plan.steps().filter(creates).filter_map(whole).collect()
}

/// The body of a desired object; the canonical form is JSON that this program wrote.
fn body(object: &DesiredObject) -> Map<String, Value> {
    let mut body = object.body();
    // The version that was asked for is not the version that is stored.
    body.remove("apiVersion");
    body
}
