//! Validates the variables of a Sync and the objects that hold more of them.
//!
//! In: `spec.render.substitute`. Out: [`Variables`] and [`ValuesSource`], or an error.

use std::sync::Arc;

use super::{SpecError, named, refuse};
use crate::api::{SubstituteSpec, ValuesKind};
use crate::render::{Variables, Visibility, variable_rule};

/// ConfigMap or Secret with values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuesSource {
    /// Field of the spec that names it.
    pub field: &'static str,
    /// ConfigMap or Secret.
    pub kind: ValuesKind,
    /// Name of the object, in the Sync's own namespace.
    pub name: Box<str>,
    /// The object may be missing.
    pub optional: bool,
}

/// Field that names the objects with more variables.
const FIELD: &str = "spec.render.substitute.from";
/// Most inline variables, and most objects with more of them.
const MAX: (usize, usize) = (256, 16);
/// Most characters of an inline value.
const MAX_VALUE: usize = 4096;

/// Returns the inline variables; none if nothing is to be substituted.
pub(super) fn variables(substitute: Option<&SubstituteSpec>) -> Result<Option<Arc<Variables>>, SpecError> {
    let Some(substitute) = substitute else { return Ok(None) };
    let field = "spec.render.substitute.vars";
    if substitute.vars.len() > MAX.0 {
        return refuse(field, format!("write at most {} variables, and the others into a ConfigMap", MAX.0));
    }
    for (name, value) in &substitute.vars {
        if let Some(rule) = variable_rule(name) {
            return refuse(field, format!("the name of a variable {rule}"));
        }
        if value.0.chars().count() > MAX_VALUE {
            return refuse(field, format!("the value of {name} has more than {MAX_VALUE} characters"));
        }
    }
    let vars = substitute.vars.iter().map(|(name, value)| (name, &value.0));
    Ok(Some(Arc::new(Variables::default().with_values(vars, Visibility::Public))))
}

/// Returns the objects that hold more variables.
pub(super) fn values(substitute: Option<&SubstituteSpec>) -> Result<Vec<ValuesSource>, SpecError> {
    let from = substitute.map(|substitute| substitute.from.as_slice()).unwrap_or_default();
    if from.len() > MAX.1 {
        return refuse("spec.render.substitute.from", format!("name at most {} objects", MAX.1));
    }
    let one = |(at, from): (usize, &crate::api::ValuesFrom)| {
        let field = format!("spec.render.substitute.from[{at}].name");
        match named(&field, Some(&from.name))?.filter(|name| !name.is_empty()) {
            Some(name) => Ok(ValuesSource { field: FIELD, kind: from.kind, name, optional: from.optional }),
            None => refuse(field, "write the name of a ConfigMap or Secret in the Sync's own namespace"),
        }
    };
    from.iter().enumerate().map(one).collect()
}
