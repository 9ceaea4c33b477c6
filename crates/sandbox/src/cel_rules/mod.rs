//! CEL rules of custom resources (`x-kubernetes-validations`), with the error messages of the API
//! server.
//!
//! In: the schema of a version, an object, and its previous state.
//! Out: [`RuleViolations`]: the problems that refuse the object, and warnings; for a definition,
//! its invalid rules. Rules are compiled when the first object is written (`compile.rs`);
//! `cel_types.rs` has the types of values; `evaluate.rs` selects the rules to evaluate and reports
//! violations.

mod cel_types;
mod compile;
mod evaluate;
mod old_self;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use serde_json::Value;

use super::schema::Problem;
use compile::{RuleCompiler, RuleNode};
use evaluate::Evaluator;
pub(crate) use evaluate::RuleViolations;
use old_self::OldSelf;

/// CEL rules of a version.
#[derive(Debug)]
pub(crate) struct CelRules {
    schema: Value,
    read: OnceLock<Option<RuleNode>>,
}

impl CelRules {
    /// Returns the rules of a schema; they are compiled at the first use.
    pub(crate) fn new(schema: &Value) -> Self {
        Self { schema: schema.clone(), read: OnceLock::new() }
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.place().is_none()
    }

    fn place(&self) -> Option<&RuleNode> {
        self.read.get_or_init(|| RuleCompiler::default().root(&self.schema)).as_ref()
    }

    /// Evaluates the rules for an object; `old` is its previous state.
    pub(crate) fn evaluate(&self, old: Option<&Value>, new: &Value) -> RuleViolations {
        let mut judge = Evaluator::new();
        if let Some(place) = self.place() {
            judge.value(place, &self.schema, old, new, OldSelf::new(&self.schema, old, new));
        }
        judge.into_broken()
    }
}

/// Returns the invalid rules of a definition.
pub(crate) fn validate_definition(definition: &Value) -> Vec<Problem> {
    let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    // If all versions have the same schema, the server stores it once and reports that path.
    let is_shared = versions.iter().all(|version| version["schema"] == versions[0]["schema"]);
    let mut problems = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        let path = match is_shared {
            true if at > 0 => break,
            true => "spec.validation.openAPIV3Schema".to_owned(),
            false => format!("spec.versions[{at}].schema.openAPIV3Schema"),
        };
        let mut reading = RuleCompiler::at(path);
        reading.root(&version["schema"]["openAPIV3Schema"]);
        problems.extend(reading.problems);
    }
    problems
}
