//! Manifests against the schemas of their kinds, for `moorline check`.
//!
//! In: rendered objects, and the definitions that are at hand: those of the rendered sets and those of `--crds`.
//! Out: what is wrong, each with its place, its object and its field; the kinds without a schema are told and
//! counted.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Streams, manifests};
use crate::desired::Scopes;
use crate::render::{self, Complete};
use crate::sandbox::soundness::{Place, Schemas, Verdict, places};
use crate::source::directory;
use crate::yaml::Step;

/// The schemas at hand.
pub(super) struct Checker {
    schemas: Schemas,
    scopes: Scopes,
}

/// What a check of a rendered set came to.
pub(super) struct Checked {
    /// True if nothing is wrong.
    pub(super) is_sound: bool,
    /// The number of objects whose kind has no schema.
    pub(super) unchecked: usize,
}

impl Checker {
    /// The schemas of the built-in kinds.
    pub(super) fn new() -> Self {
        Self { schemas: Schemas::default(), scopes: Scopes::builtin() }
    }

    /// Learns the definitions in a folder or file; false if it cannot be read as manifests, which is told.
    pub(super) fn learn_folder(&mut self, path: &Path, streams: &mut Streams<'_>) -> anyhow::Result<bool> {
        let (tree, inside) = directory::read(path, render::is_read)?;
        match render::dump(&tree, &inside) {
            Ok(dump) => {
                for object in &dump.objects {
                    self.schemas.learn(&object.body);
                    self.scopes.learn(object);
                }
                Ok(true)
            }
            Err(problems) => {
                manifests::tell(&problems, streams);
                Ok(false)
            }
        }
    }

    /// Learns the definitions in a rendered set.
    pub(super) fn learn(&mut self, complete: &Complete) {
        for object in
            complete.objects().iter().filter(|object| object.id.kind() == "CustomResourceDefinition")
        {
            self.schemas.learn(&object.object().body);
        }
    }

    /// The scopes of the built-in kinds and of those of `--crds`.
    pub(super) fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Checks a rendered set; what is wrong and what is not checked is told.
    pub(super) fn check(&self, complete: &Complete, streams: &mut Streams<'_>) -> Checked {
        let (mut problems, mut unchecked) = (Vec::new(), BTreeMap::<String, usize>::new());
        // Syncs are checked by what the daemon says of them: see `followed.rs`.
        for packed in complete.objects().iter().filter(|packed| !packed.id.is("moorline.dev", "Sync")) {
            let object = packed.object();
            let hides = packed.secret || object.id.is("", "Secret");
            match self.schemas.judge(&object.body, hides) {
                Verdict::Sound => {}
                Verdict::Unchecked(kind) => *unchecked.entry(kind).or_default() += 1,
                Verdict::Unsound(found) => {
                    let body = serde_json::Value::Object(object.body);
                    for finding in found {
                        let places = places(&body, &finding.field);
                        let steps: Vec<Step<'_>> = places.iter().map(step).collect();
                        let place = complete.place(&object.origin, &steps);
                        let field = match finding.field.as_str() {
                            "" => String::new(),
                            field => format!("{field}: "),
                        };
                        problems.push(format!("{place}: {}: {field}{}", object.id, finding.words));
                    }
                }
            }
        }
        manifests::tell(&problems, streams);
        for (kind, count) in &unchecked {
            let objects = if *count == 1 { "object" } else { "objects" };
            streams.say(&format!("note: not checked: no schema for {kind} ({count} {objects})"));
        }
        Checked { is_sound: problems.is_empty(), unchecked: unchecked.values().sum() }
    }
}

fn step(place: &Place) -> Step<'_> {
    match place {
        Place::Key(key) => Step::Key(key),
        Place::Item(at) => Step::Item(*at),
    }
}
