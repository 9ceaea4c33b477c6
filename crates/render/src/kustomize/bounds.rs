//! How much one build may do, whatever its kustomizations ask for: folders that include folders multiply, and so do changes of all
//! objects by all others.
//!
//! In: what a step is about to do. Out: a refusal at the step that would pass a bound. All of it is counted for a whole build, so
//! that nothing is gained by spreading it.

use std::cell::Cell;

use super::fault::{At, Class, Refusal};
use super::files::Files;

/// The most kustomizations that are entered, each time that one is included.
const MAX_FOLDERS: u64 = 10_000;
/// The most bytes of manifests that are read, each time that a file is included.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// The most objects that are looked at by all steps together.
const MAX_LOOKS: u64 = 50_000_000;

/// Counts work before it is done: so many objects are looked at, for each of so many things.
pub(super) type Look<'a> = dyn Fn(usize, usize, &At) -> Result<(), Refusal> + 'a;

/// An object of more bytes counts as several.
const BYTES_OF_AN_OBJECT: u64 = 1024;

/// So many looks are counted where an object is looked up by all of its names.
pub(super) const LOOKS_BY_NAMES: usize = 4;

impl Files<'_> {
    /// Looks at so many objects, for each of so many things; refused where a build does too much, or once nobody waits for it.
    pub(super) fn look(&self, objects: usize, things: usize, at: &At) -> Result<(), Refusal> {
        self.take(0, at)?;
        self.bounds.look(objects, things, at)
    }
}

/// The work that a build has done so far.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    folders: Cell<u64>,
    bytes: Cell<u64>,
    looks: Cell<u64>,
}

impl Bounds {
    /// Enters a kustomization.
    pub(super) fn enter(&self, at: &At) -> Result<(), Refusal> {
        let text = || format!("the build enters more than {MAX_FOLDERS} kustomizations, counted each time");
        spend(&self.folders, 1, MAX_FOLDERS, at, text)
    }

    /// Reads a file of manifests.
    pub(super) fn read(&self, bytes: usize, at: &At) -> Result<(), Refusal> {
        let text = || {
            format!(
                "the build reads more than {} MiB of manifests, counted each time",
                MAX_BYTES / 1024 / 1024
            )
        };
        spend(&self.bytes, bytes as u64, MAX_BYTES, at, text)
    }

    /// What is added to each look at all objects: large ones take longer.
    pub(super) fn weight(&self) -> usize {
        usize::try_from(self.bytes.get() / BYTES_OF_AN_OBJECT).unwrap_or(usize::MAX)
    }

    /// Looks at so many objects, for each of so many things.
    pub(super) fn look(&self, objects: usize, things: usize, at: &At) -> Result<(), Refusal> {
        let text = || format!("the build makes more than {MAX_LOOKS} changes, counted for each object");
        spend(&self.looks, (objects as u64).saturating_mul(things as u64), MAX_LOOKS, at, text)
    }
}

fn spend(spent: &Cell<u64>, more: u64, most: u64, at: &At, text: impl Fn() -> String) -> Result<(), Refusal> {
    spent.set(spent.get().saturating_add(more));
    if spent.get() <= most { Ok(()) } else { Err(at.refuse(Class::Bound, text())) }
}
