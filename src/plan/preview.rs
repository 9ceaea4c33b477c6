//! The observed set of objects at hand, as from `kubectl get -o yaml`: for previews without a cluster.
//!
//! A watch tells drift by the managed fields; objects at hand have bodies, and are compared field by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::difference::{Difference, differences};
use crate::api::SyncName;
use crate::desired::{DesiredObject, DesiredSet};
use crate::object::{Object, ObjectId};
use crate::observed::{Drift, Mark, Observed, ObservedSet, Standing};

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

/// Looks at live objects as the Sync `owner` would.
pub fn preview(desired: &DesiredSet, live: &[Object], owner: &SyncName) -> Preview {
    let mut preview = Preview::default();
    for object in live {
        let mut observed = Observed::of(object, owner);
        if object.metadata("managedFields").is_none() {
            observed.applied_by_us = true;
            preview.assumed_entries |= observed.mark == Mark::Ours;
        }
        // What is only ever created is not changed once it is there.
        let wanted = desired.get(&object.id).filter(|wanted| !wanted.switches.apply_once);
        let found = wanted.map(|wanted| differences(&body(wanted), &object.body));
        let mut found = found.unwrap_or_default();
        if let Some(wanted) = wanted.filter(|wanted| wanted.secret) {
            for difference in &mut found {
                difference.secret = true;
                difference.path = wanted.shows(&difference.path).into_owned();
            }
        }
        observed.standing = match found.is_empty() {
            true => Standing::Verified,
            false => {
                let fields = found.iter().map(|difference| difference.path.clone()).collect();
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

/// The body of a desired object; the canonical form is JSON that this program wrote.
fn body(object: &DesiredObject) -> Map<String, Value> {
    let mut body = object.body();
    // The version that was asked for is not the version that is stored.
    body.remove("apiVersion");
    body
}
