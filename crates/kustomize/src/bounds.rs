//! Bounds the work of one build, no matter what its kustomizations contain: folders that include
//! folders multiply the work, and so do changes of all objects by all others.
//!
//! In: the work of the next step. Out: an error at the step that would exceed a bound. The work is
//! counted for the whole build, so that splitting it over folders gains nothing.

use std::cell::Cell;

use super::error::{BuildError, ErrorClass, FieldLocation};

/// Most kustomizations that are entered, counted at each inclusion.
const MAX_FOLDERS: u64 = 10_000;
/// Most bytes of manifests that are read, counted at each inclusion.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Most object visits of all steps together.
const MAX_LOOKS: u64 = 50_000_000;

/// Counts object visits before they happen: the number of objects times the number of steps for
/// each.
pub(super) type VisitCounter<'a> = dyn Fn(usize, usize, &FieldLocation) -> Result<(), BuildError> + 'a;

/// An object of more bytes counts as several.
const BYTES_OF_AN_OBJECT: u64 = 1024;

/// Number of visits for one lookup of an object by all of its names.
pub(super) const LOOKS_BY_NAMES: usize = 4;

/// Work of a build so far.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    folders: Cell<u64>,
    bytes: Cell<u64>,
    visits: Cell<u64>,
}

impl Bounds {
    /// Counts a kustomization that is entered.
    pub(super) fn count_folder(&self, at: &FieldLocation) -> Result<(), BuildError> {
        let text =
            || format!("the build includes more than {MAX_FOLDERS} kustomizations, each inclusion counted");
        spend(&self.folders, 1, MAX_FOLDERS, at, text)
    }

    /// Counts a file of manifests that is read.
    pub(super) fn count_bytes(&self, bytes: usize, at: &FieldLocation) -> Result<(), BuildError> {
        let text = || {
            format!(
                "the build reads more than {} MiB of manifests, each inclusion counted",
                MAX_BYTES / 1024 / 1024
            )
        };
        spend(&self.bytes, bytes as u64, MAX_BYTES, at, text)
    }

    /// Returns the visits that one walk over all objects counts in addition, because large objects
    /// take longer.
    pub(super) fn object_weight(&self) -> usize {
        usize::try_from(self.bytes.get() / BYTES_OF_AN_OBJECT).unwrap_or(usize::MAX)
    }

    /// Counts visits: `objects` times `things`.
    pub(super) fn count_visits(
        &self,
        objects: usize,
        things: usize,
        at: &FieldLocation,
    ) -> Result<(), BuildError> {
        let text = || format!("the build makes more than {MAX_LOOKS} changes, counted for each object");
        spend(&self.visits, (objects as u64).saturating_mul(things as u64), MAX_LOOKS, at, text)
    }
}

fn spend(
    spent: &Cell<u64>,
    more: u64,
    most: u64,
    at: &FieldLocation,
    text: impl Fn() -> String,
) -> Result<(), BuildError> {
    spent.set(spent.get().saturating_add(more));
    if spent.get() <= most { Ok(()) } else { Err(at.error(ErrorClass::Bound, text())) }
}
