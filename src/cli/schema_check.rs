//! Checks manifests against the schemas of their kinds, for `moorline check`.
//!
//! In: rendered objects, and all available definitions: those of the rendered sets and of `--crds`.
//! Out: the problems, each with its place, object and field; kinds without a schema are printed and
//! counted.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Streams, manifests};
use crate::desired::Scopes;
use crate::render::{self, Complete};
use crate::sandbox::manifest_check::{PathStep, Schemas, Verdict, path_steps};
use crate::source::directory;
use crate::yaml::Step;

/// The available schemas.
pub(super) struct SchemaChecker {
    schemas: Schemas,
    scopes: Scopes,
}

/// Result of a check of a rendered set.
pub(super) struct CheckResult {
    /// True if no problem was found.
    pub(super) is_sound: bool,
    /// The number of objects whose kind has no schema.
    pub(super) unchecked: usize,
}

impl SchemaChecker {
    /// A checker with the schemas of the built-in kinds.
    pub(super) fn new() -> Self {
        Self { schemas: Schemas::default(), scopes: Scopes::builtin() }
    }

    /// Learns the definitions in a folder or file; false, after printing the problems, if it cannot
    /// be read as manifests.
    pub(super) fn learn_folder(&mut self, path: &Path, streams: &mut Streams<'_>) -> anyhow::Result<bool> {
        let (tree, inside) = directory::read(path, render::is_read)?;
        match render::dump(&tree, &inside) {
            Ok(dump) => {
                for object in &dump.objects {
                    self.schemas.add_definition(&object.body);
                    self.scopes.record_definition(object);
                }
                Ok(true)
            }
            Err(problems) => {
                manifests::print_problems(&problems, streams);
                Ok(false)
            }
        }
    }

    /// Learns the definitions in a rendered set.
    pub(super) fn learn_definitions(&mut self, complete: &Complete) {
        for object in
            complete.objects().iter().filter(|object| object.id.kind() == "CustomResourceDefinition")
        {
            self.schemas.add_definition(&object.object().body);
        }
    }

    /// The scopes of the built-in kinds and of those of `--crds`.
    pub(super) fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Checks a rendered set; prints the problems and the kinds that are not checked.
    pub(super) fn check(&self, complete: &Complete, streams: &mut Streams<'_>) -> CheckResult {
        let (mut problems, mut unchecked) = (Vec::new(), BTreeMap::<String, usize>::new());
        // Syncs are checked by the daemon's own validation: see `nested_syncs.rs`.
        for packed in complete.objects().iter().filter(|packed| !packed.id.is_kind("moorline.dev", "Sync")) {
            let object = packed.object();
            let hides = packed.contains_secret || object.id.is_kind("", "Secret");
            match self.schemas.check(&object.body, hides) {
                Verdict::Valid => {}
                Verdict::Unchecked(kind) => *unchecked.entry(kind).or_default() += 1,
                Verdict::Invalid(found) => {
                    let body = serde_json::Value::Object(object.body);
                    for finding in found {
                        let places = path_steps(&body, &finding.field);
                        let steps: Vec<Step<'_>> = places.iter().map(step).collect();
                        let place = complete.place(&object.origin, &steps);
                        let field = match finding.field.as_str() {
                            "" => String::new(),
                            field => format!("{field}: "),
                        };
                        problems.push(format!("{place}: {}: {field}{}", object.id, finding.message));
                    }
                }
            }
        }
        manifests::print_problems(&problems, streams);
        for (kind, count) in &unchecked {
            let objects = if *count == 1 { "object" } else { "objects" };
            streams.say(&format!("note: not checked: no schema for {kind} ({count} {objects})"));
        }
        CheckResult { is_sound: problems.is_empty(), unchecked: unchecked.values().sum() }
    }
}

fn step(place: &PathStep) -> Step<'_> {
    match place {
        PathStep::Key(key) => Step::Key(key),
        PathStep::Item(at) => Step::Item(*at),
    }
}
