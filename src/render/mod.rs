//! From the files of a revision to the objects that they describe.
//!
//! In: a [`FileTree`] and [`Options`]. Out: [`Rendered`], which is either `Complete` or `Incomplete`. Only
//! this station can make a [`Complete`], and only a [`Complete`] can become a desired set, so that half a
//! render can be shown and can never prune.

mod documents;
mod dump;
mod fields;
mod identity;
mod packed;
mod plain;
mod problem;
mod rules;
mod secret;

use std::collections::HashMap;

pub use documents::FieldPath;
pub use dump::{Dump, dump};
pub use packed::Packed;
pub use plain::{PlainOptions, is_read};
pub use problem::{Place, Problem};
pub use rules::{dns_label as namespace_rule, sync_name as sync_name_rule};

use crate::object::{ObjectId, Origin};
use crate::tree::FileTree;

/// What to render.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The folder (or one file) in the tree; empty for all of it.
    pub path: String,
    /// How plain directories are read.
    pub plain: PlainOptions,
}

/// The answer of a renderer.
#[derive(Debug)]
pub enum Rendered {
    /// Every file was read and every object is sound.
    Complete(Complete),
    /// Something is wrong; what could be read is there to be shown.
    Incomplete(Incomplete),
}

/// All objects of a revision, each once, each sound.
#[derive(Debug)]
pub struct Complete {
    objects: Vec<Packed>,
    skipped: Vec<Skipped>,
    tree: FileTree,
}

/// What a render with problems came to.
#[derive(Debug)]
pub struct Incomplete {
    /// The objects that were sound.
    pub objects: Vec<Packed>,
    /// Files that hold no manifests.
    pub skipped: Vec<Skipped>,
    /// Everything that is wrong, in the order of the files; never empty.
    pub problems: Vec<Problem>,
}

/// A file that ends in `.yaml`, `.yml` or `.json` and holds no manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file's path.
    pub file: String,
    /// Why it was passed over, as a clause.
    pub reason: &'static str,
}

/// Renders a folder of the tree.
pub fn render(tree: &FileTree, options: &Options) -> Rendered {
    let mut found =
        plain::collect(tree, options, |manifest, bytes| identity::object(manifest, bytes).map(Packed::of));
    refuse_duplicates(&mut found, |object| (&object.id, &object.origin));
    let Found { objects, skipped, mut problems } = found;
    if problems.is_empty() && objects.is_empty() {
        problems.push(Problem::NothingFound {
            path: tree.shown(&options.path),
            skipped: skipped.iter().map(|skipped| skipped.file.clone()).collect(),
        });
    }
    match problems.is_empty() {
        true => Rendered::Complete(Complete { objects, skipped, tree: tree.clone() }),
        false => Rendered::Incomplete(Incomplete { objects, skipped, problems }),
    }
}

impl Complete {
    /// The objects, in the order of files and documents.
    pub fn objects(&self) -> &[Packed] {
        &self.objects
    }

    /// The objects by value, and what is left of the render without them: the way to places.
    pub fn into_parts(mut self) -> (Self, Vec<Packed>) {
        let objects = std::mem::take(&mut self.objects);
        (self, objects)
    }

    /// Files that hold no manifests.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The place of a field of an object, for a later station's message about it.
    pub fn place(&self, origin: &Origin, path: &FieldPath<'_>) -> Place {
        documents::place(&self.tree, origin, path)
    }
}

/// What a renderer collects on its way.
#[derive(Debug)]
struct Found<T> {
    objects: Vec<T>,
    skipped: Vec<Skipped>,
    problems: Vec<Problem>,
}

/// One object may be written once: the second writing is refused, and both places are named.
fn refuse_duplicates<T>(found: &mut Found<T>, name: fn(&T) -> (&ObjectId, &Origin)) {
    let mut first: HashMap<ObjectId, Origin> = HashMap::with_capacity(found.objects.len());
    let problems = &mut found.problems;
    found.objects.retain(|object| {
        let (id, origin) = name(object);
        let Some(earlier) = first.get(id) else {
            first.insert(id.clone(), origin.clone());
            return true;
        };
        problems.push(Problem::Duplicate { id: id.clone(), first: earlier.clone(), second: origin.clone() });
        false
    });
}
