//! Kustomizations, built as the tool builds them, without the tool.
//!
//! In: a tree and the folder of a kustomization. Out: [`Built`], the objects in their order and the paths that were read; or a [`Fault`]
//! that names the file, the line and what is wrong. What is not supported is refused: nothing is ever built differently.
//!
//! One file, one step: `kustomization` says what is written, `files` what may be read, `build` in which order all happens, `finish`
//! what is done once at the end.

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

use crate::object::Origin;
use crate::tree::FileTree;

/// An object that was built, and where it was written.
type Object = (Map<String, Value>, Origin);

/// What a kustomization comes to.
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
    let objects = objects(&files, path).map_err(|refusal| refusal.fault(tree))?;
    Ok(Built { objects, read: files.into_read() })
}

fn objects(files: &Files<'_>, path: &str) -> Result<Vec<Object>, Refusal> {
    let folder = files.root(path)?;
    let (file, bytes) = files.kustomization(&folder, &At::file(path))?;
    let outer = kustomization::read(&file, &files.shown(&file), &bytes)?;
    let build = Build::new(files, &folder, &outer)?;
    let accumulator = build.accumulate(&folder, &outer, Accumulator::default())?;
    finish::finish(accumulator, &outer)
}
