//! Builds kustomizations exactly as kustomize does, without running it.
//!
//! In: a tree and the folder of a kustomization. Out: [`Built`], the objects in their order and the
//! paths that were read; or a [`KustomizeError`] with file, line and finding. Unsupported features
//! are refused: nothing is ever built differently.
//!
//! One file for each step: `kustomization` reads the fields, `files` enforces the limits on paths,
//! `build` defines the order, `finalize` runs the final steps.

mod absorbing;
mod bounds;
mod build;
mod charts;
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
mod provenance;
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
use std::sync::Arc;

use serde_json::{Map, Value};

pub use charts::Published;
pub use fault::{Class, Fault};
pub use gathering::Missing;
pub(super) use gathering::missing;
pub use kustomization::NAMES;
pub use remote::Remote;

use build::{Accumulator, Build};
use fault::{At, Refusal};
use files::Files;
use trail::{Note, Tracer};

use crate::helm::Invocation;
use crate::problem::Place;
use moorline_core::object::Origin;
use moorline_core::tree::FileTree;

/// An object of a build.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) body: Map<String, Value>,
    /// Position of the object in its file.
    pub(super) origin: Origin,
    notes: Vec<Note>,
}

/// A step that made or changed an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Field of the kustomization, and the file that it names.
    pub name: String,
    /// Position of the field.
    pub place: Place,
    /// Changed fields; empty if the step made the object.
    pub fields: Vec<String>,
}

/// Result of a build.
#[derive(Debug)]
pub(super) struct Built {
    /// Objects in the order of kustomize.
    pub(super) objects: Vec<Object>,
    /// Every requested path: while the files at these paths stay the same, the result stays the
    /// same.
    pub(super) read: BTreeSet<String>,
    /// Helm rendered a part of it.
    pub(super) by_helm: bool,
}

/// Failure of a build, and the inputs that are missing.
#[derive(Debug)]
pub(super) struct Unbuilt {
    pub(super) fault: Fault,
    /// Runs of helm whose output is missing; with the output, the caller builds again.
    pub(super) wanted: Vec<Arc<Invocation>>,
    /// Published charts that are missing.
    pub(super) unfetched: Vec<Published>,
}

/// Builds the kustomization in a folder.
pub(super) fn build(tree: &FileTree, path: &str) -> Result<Built, Unbuilt> {
    let files = Files::new(tree);
    let built = objects(&files, path, Tracer::default()).map_err(|refusal| refusal.fault(tree));
    let (wanted, unfetched) = (files.wanted(), files.unfetched());
    let by_helm = files.is_by_helm();
    let class = Class::Unsupported;
    let fault = match (unfetched.first(), wanted.first(), built) {
        (_, _, Err(fault)) if fault.class == Class::Bound => {
            return Err(Unbuilt { fault, wanted: Vec::new(), unfetched: Vec::new() });
        }
        // Other errors may be consequences of the missing inputs, so these are reported first.
        (Some(Published { url, version, place, .. }), _, _) => {
            let text = format!(
                "the chart {version} of {url} is fetched by the daemon only; commit it to build it here"
            );
            Fault { class, place: place.clone(), text }
        }
        (None, Some((run, at)), _) => {
            let text = format!("the chart {} is rendered by helm, which is not run here", run.shown());
            at.refuse(class, text).fault(tree)
        }
        (None, None, Err(fault)) => fault,
        (None, None, Ok(objects)) => return Ok(Built { objects, read: files.into_read(), by_helm }),
    };
    Err(Unbuilt { fault, wanted: wanted.into_iter().map(|(run, _)| run).collect(), unfetched })
}

/// Builds again, and returns the steps that made and changed each object.
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
    let outer = kustomization::read(&file, &files.shown(&file), &bytes, &|| files.is_awaited())?;
    let build = Build::new(files, &folder, &outer, tracer)?;
    let accumulator = build.accumulate(&folder, &outer, Accumulator::default())?;
    finish::finish(accumulator, &outer, &build.tracer, files)
}
