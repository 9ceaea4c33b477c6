//! The expressions in the definition of a custom resource (`x-kubernetes-validations`), in the words of the API server.
//!
//! In: the schema of a version, an object, and what it was before. Out: [`Broken`], what is refused and what is only warned of;
//! and for a definition, which of its rules are none. Rules are read when the first object is written (`read.rs`); what a value
//! is to them is in `kinds.rs`; which of them are asked, and what becomes of one that does not hold, is in `judge.rs`.

mod judge;
mod kinds;
mod read;
mod since;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use serde_json::Value;

use super::schema::Problem;
pub(crate) use judge::Broken;
use judge::Judge;
use read::{Place, Reading};
use since::Since;

/// The rules of a version.
#[derive(Debug)]
pub(crate) struct Rules {
    schema: Value,
    read: OnceLock<Option<Place>>,
}

impl Rules {
    /// Those of a schema.
    pub(crate) fn new(schema: &Value) -> Self {
        Self { schema: schema.clone(), read: OnceLock::new() }
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.place().is_none()
    }

    fn place(&self) -> Option<&Place> {
        self.read.get_or_init(|| Reading::default().root(&self.schema)).as_ref()
    }

    /// What an object breaks that was another before.
    pub(crate) fn broken(&self, old: Option<&Value>, new: &Value) -> Broken {
        let mut judge = Judge::new();
        if let Some(place) = self.place() {
            judge.value(place, &self.schema, old, new, Since::new(&self.schema, old, new));
        }
        judge.into_broken()
    }
}

/// The rules of a definition that are none.
pub(crate) fn of_definition(definition: &Value) -> Vec<Problem> {
    let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Where all versions have one schema, the server keeps it once, and speaks of that.
    let is_shared = versions.iter().all(|version| version["schema"] == versions[0]["schema"]);
    let mut problems = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let path = match is_shared {
            true if at > 0 => break,
            true => "spec.validation.openAPIV3Schema".to_owned(),
            false => format!("spec.versions[{at}].schema.openAPIV3Schema"),
        };
        let mut reading = Reading::at(path);
        reading.root(&version["schema"]["openAPIV3Schema"]);
        problems.extend(reading.problems);
    }
    problems
}
