//! Kustomizations, built as the tool builds them, without the tool.
//!
//! In: a tree and the folder of a kustomization. Out: [`Built`], the objects in their order and the paths that were read; or a [`Fault`]
//! that names the file, the line and what is wrong. What is not supported is refused: nothing is ever built differently.
//!
//! One file, one step: `kustomization` says what is written, `files` what may be read, `build` in which order all happens, `finish`
//! what is done once at the end.

mod bounds;
mod build;
mod configuration;
mod fault;
mod field_path;
mod field_spec;
mod field_walk;
mod files;
mod finish;
mod gathering;
mod generating;
mod hashing;
mod id;
mod json_patch;
mod json_text;
mod kustomization;
mod marking;
mod naming;
mod node;
mod parse;
mod patching;
mod plugin;
mod referring;
mod remote;
mod replacement;
mod resource;
mod schema;
mod select;
mod sharing;
mod sort;
mod spelling;
mod standard;
mod strategic;
mod trail;
mod transforming;
mod variables;
mod written_value;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub use fault::{Class, Fault};
pub use gathering::Missing;
pub(super) use gathering::missing;
pub use kustomization::NAMES;
pub use remote::Remote;

use build::{Accumulator, Build};
use fault::{At, Refusal};
use files::Files;
use trail::{Note, Tracer};

use crate::object::Origin;
use crate::render::problem::Place;
use crate::tree::FileTree;

/// An object that was built.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) body: Map<String, Value>,
    /// Where it was written.
    pub(super) origin: Origin,
    notes: Vec<Note>,
}

/// A step that made or changed an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The field of a kustomization, and the file that it names.
    pub name: String,
    /// Where it is written.
    pub place: Place,
    /// The fields that were changed; none if the object came with it.
    pub fields: Vec<String>,
}

/// The outcome of a kustomization.
#[derive(Debug)]
pub(super) struct Built {
    /// The objects, in the order in which the tool writes them.
    pub(super) objects: Vec<Object>,
    /// Every path that was looked at: with the same files at these, nothing else comes out.
    pub(super) read: BTreeSet<String>,
}

/// Builds the kustomization in a folder.
pub(super) fn build(tree: &FileTree, path: &str) -> Result<Built, Fault> {
    let files = Files::new(tree);
    let objects = objects(&files, path, Tracer::default()).map_err(|refusal| refusal.fault(tree))?;
    Ok(Built { objects, read: files.into_read() })
}

/// Builds it once more, and tells of each object which steps made and changed it.
pub(super) fn explain(tree: &FileTree, path: &str) -> Result<Vec<(Object, Vec<Step>)>, Fault> {
    let objects = objects(&Files::new(tree), path, Tracer::on()).map_err(|refusal| refusal.fault(tree))?;
    let step = |note: Note| Step { name: note.step, place: note.at.place(tree), fields: note.fields };
    let told = |mut object: Object| {
        let steps = std::mem::take(&mut object.notes).into_iter().map(step).collect();
        (object, steps)
    };
    Ok(objects.into_iter().map(told).collect())
}

fn objects(files: &Files<'_>, path: &str, tracer: Tracer) -> Result<Vec<Object>, Refusal> {
    let folder = files.root(path)?;
    let (file, bytes) = files.kustomization(&folder, &At::file(path))?;
    let outer = kustomization::read(&file, &files.shown(&file), &bytes)?;
    let build = Build::new(files, &folder, &outer, tracer)?;
    let accumulator = build.accumulate(&folder, &outer, Accumulator::default())?;
    finish::finish(accumulator, &outer, &build.tracer)
}
