//! Builds kustomizations exactly as kustomize does, without running it.
//!
//! In: a tree and the folder of a kustomization. A [`Host`] renders charts, if there are any.
//! Out: [`BuildOutput`], the objects in their order and the paths that were read; or a
//! [`KustomizeError`] with file, line and finding. Unsupported features are refused: nothing is
//! ever built differently.
//!
//! One file for each step: `kustomization` reads the fields, `files` enforces the limits on paths,
//! `build` defines the order, `finalize` runs the final steps.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Input must never cause a panic; tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod accumulator;
mod bounds;
mod build;
mod build_trace;
mod builtin_field_specs;
mod builtin_plugins;
mod chart_inputs;
mod charts;
mod configuration;
mod decrypted_reads;
mod error;
mod field_path;
mod field_spec;
mod field_walk;
mod files;
mod finalize;
mod generated_objects;
mod generators;
pub mod host;
mod id;
mod json_patch;
mod json_text;
mod kustomization;
mod labels_images_replicas;
mod missing_inputs;
mod name_hash;
mod name_references;
mod namespaces_and_affixes;
mod node;
mod overlay;
mod patches;
mod plugin_transformers;
mod provenance;
mod remote;
mod replacement;
mod resource;
mod resource_files;
mod scalar_style;
mod schema;
mod select;
mod shared_labels;
mod sort;
mod strategic;
mod strategic_patches;
mod transformers;
mod variables;
mod write_budget;
mod written_value;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub use charts::PublishedChart;
pub use error::{ErrorClass, KustomizeError};
pub use kustomization::FILE_NAMES;
pub use missing_inputs::{MissingInputs, missing_inputs};
pub use overlay::{BuildRoot, ImageOption, KustomizeOptions, PatchOption, PatchTarget, is_component_path};
pub use remote::Remote;

use accumulator::Accumulator;
use build::Build;
use build_trace::{StepRecord, Tracer};
use error::BuildError;
use files::Files;
use host::{Host, Standalone};

use moorline_core::object::Origin;
use moorline_core::position::SourcePosition;
use moorline_core::tree::FileTree;

/// An object of a build.
#[derive(Debug)]
pub struct BuiltObject {
    /// Content of the object.
    pub body: Map<String, Value>,
    /// Position of the object in its file.
    pub origin: Origin,
    /// It has values of a decrypted file.
    pub contains_secret: bool,
    notes: Vec<StepRecord>,
}

/// A step that made or changed an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildStep {
    /// Field of the kustomization, and the file that it names.
    pub name: String,
    /// Position of the field.
    pub place: SourcePosition,
    /// Changed fields; empty if the step made the object.
    pub fields: Vec<String>,
}

/// Result of a build.
#[derive(Debug)]
pub struct BuildOutput {
    /// Objects in the order of kustomize.
    pub objects: Vec<BuiltObject>,
    /// Every requested path: while the files at these paths stay the same, the result stays the
    /// same.
    pub input_paths: BTreeSet<String>,
    /// Helm rendered a part of it.
    pub by_helm: bool,
}

/// Failure of a build, and the charts that are missing.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct BuildFailure {
    /// The error with its position.
    pub error: KustomizeError,
    /// Published charts that are not in the tree. The caller adds them with
    /// [`FileTree::with_chart`] and builds again.
    pub missing_charts: Vec<PublishedChart>,
}

/// Builds the kustomization in a folder of the tree. Charts are refused: [`build_with_host`] builds
/// them.
///
/// Pure and bounded: a build reads nothing but the tree, and stops at its
/// [memory limit](FileTree::with_memory_limit).
///
/// # Errors
///
/// The first error, with file, line and column.
pub fn build<'a>(tree: &FileTree, root: impl Into<BuildRoot<'a>>) -> Result<BuildOutput, KustomizeError> {
    build_with_host(tree, root, &Standalone).map_err(|failure| failure.error)
}

/// Like [`build`], with charts that the host renders.
///
/// # Errors
///
/// The first error, and the charts that are missing. A missing chart is reported before other
/// errors, because these may be consequences of it.
pub fn build_with_host<'a>(
    tree: &FileTree,
    root: impl Into<BuildRoot<'a>>,
    host: &dyn Host,
) -> Result<BuildOutput, BuildFailure> {
    let files = Files::new(tree, host);
    let built = objects(&files, root.into(), Tracer::default()).map_err(|refusal| refusal.locate(tree));
    let missing_charts = files.charts.missing();
    let by_helm = files.charts.is_by_helm();
    let class = ErrorClass::Unsupported;
    let error = match (missing_charts.first(), files.charts.unrendered(), built) {
        (_, _, Err(error)) if error.class == ErrorClass::Bound => {
            return Err(BuildFailure { error, missing_charts: Vec::new() });
        }
        // Other errors may be consequences of the missing inputs, so these are reported first.
        (Some(chart), _, _) => {
            KustomizeError { class, place: chart.place.clone(), text: host.missing_chart(chart) }
        }
        (None, Some((folder, at)), _) => {
            let text = format!("the chart {folder} requires helm, which does not run here");
            at.error(class, text).locate(tree)
        }
        (None, None, Err(error)) if files.decrypted.count() > 0 => error.without_values(tree),
        (None, None, Err(error)) => error,
        (None, None, Ok(mut objects)) => {
            let spread = files.decrypted.spread();
            objects.iter_mut().for_each(|object| object.contains_secret |= spread);
            return Ok(BuildOutput { objects, input_paths: files.into_requested_paths(), by_helm });
        }
    };
    Err(BuildFailure { error, missing_charts })
}

/// Builds a kustomization, and returns the steps that made and changed each object.
///
/// # Errors
///
/// The first error, with file, line and column.
pub fn explain<'a>(
    tree: &FileTree,
    root: impl Into<BuildRoot<'a>>,
    host: &dyn Host,
) -> Result<Vec<(BuiltObject, Vec<BuildStep>)>, KustomizeError> {
    let objects = objects(&Files::new(tree, host), root.into(), Tracer::enabled())
        .map_err(|refusal| refusal.locate(tree))?;
    let step =
        |note: StepRecord| BuildStep { name: note.step, place: note.at.position(tree), fields: note.fields };
    let told = |mut object: BuiltObject| {
        let steps = std::mem::take(&mut object.notes).into_iter().map(step).collect();
        (object, steps)
    };
    Ok(objects.into_iter().map(told).collect())
}

fn objects(files: &Files<'_>, root: BuildRoot<'_>, tracer: Tracer) -> Result<Vec<BuiltObject>, BuildError> {
    let folder = files.root(root)?;
    let outer = root.kustomization(files, &folder)?;
    let build = Build::new(files, &folder, &outer, tracer)?;
    let accumulator = build.accumulate(&folder, &outer, Accumulator::default())?;
    let mut objects = crate::finalize::finalize(accumulator, &outer, &build.tracer, files)?;
    if let Some(options) = root.options {
        options.finish(&mut objects, files, build.tracer.is_enabled())?;
    }
    Ok(objects)
}
