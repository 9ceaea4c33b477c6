//! Fields go from us to others without changing their values.
//!
//! In: what our entry owns, and what is left to others from now on. Out: the same fields under a manager that only
//! holds them. To drop a field from an apply deletes it, or sets its default, unless somebody else owns it.

use serde_json::{Value, json};

use super::carry_out::Work;
use super::contact::{HANDOVER, body};
use crate::cluster::Failure;
use crate::desired::{DesiredObject, Ignored};
use crate::fields::{FieldPath, FieldSet, excerpt, is_in, pointer_of, pointer_of_fields};

/// How often the live value is read anew because it changed meanwhile.
const MAX_ATTEMPTS: usize = 5;

impl Work<'_> {
    /// Hands over what our entry owns of the places that are left to others.
    pub(super) async fn hand_fields_over(
        &self,
        wanted: &DesiredObject,
        own: &FieldSet,
        less: &[Box<str>],
    ) -> Result<(), Failure> {
        let paths = left(wanted, own, less);
        if paths.is_empty() {
            return Ok(());
        }
        let mut failed = Ok(());
        for _ in 0..MAX_ATTEMPTS {
            let live = self.cluster.whole(&wanted.id, Some(&wanted.version)).await?;
            let Some(live) = live.map(|live| Value::Object(live.body)) else { return Ok(()) };
            let mut claim = excerpt(&live, &paths);
            if claim == json!({}) {
                return Ok(());
            }
            for field in ["apiVersion", "kind"] {
                claim[field] = live.get(field).cloned().unwrap_or_default();
            }
            claim["metadata"]["name"] = wanted.id.name().into();
            match self.cluster.claim(&wanted.id, &wanted.version, &claim, HANDOVER).await {
                // The value is another one already.
                Err(failure) if failure.code() == Some(409) => failed = Err(failure),
                done => return done,
            }
        }
        failed
    }
}

/// The paths of an entry that are in places left to others.
pub(super) fn left(wanted: &DesiredObject, own: &FieldSet, less: &[Box<str>]) -> Vec<FieldPath> {
    let ignored = wanted.ignored.as_deref();
    if ignored.is_none() && less.is_empty() {
        return Vec::new();
    }
    let body = body(wanted);
    let rendered = Value::Object(ignored.map(Ignored::body).unwrap_or_default());
    let places: &[Box<str>] = ignored.map_or(&[], |it| &it.paths);
    let within = |pointer: Option<String>, places: &[Box<str>]| {
        pointer.is_some_and(|pointer| places.iter().any(|place| is_in(&pointer, place)))
    };
    let is_left = |path: &FieldPath| {
        within(pointer_of(path, &rendered), places)
            || within(pointer_of(path, &body), less)
            // What Git says no more while it is ignored is nowhere but in the entry.
            || within(pointer_of_fields(path), places)
    };
    own.members().into_iter().filter(is_left).collect()
}
