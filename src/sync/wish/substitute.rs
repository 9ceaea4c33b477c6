//! Variables and where their values are, in the words of the stations.
//!
//! In: `spec.render.substitute`. Out: [`Variables`] and [`Values`], or a refusal.

use std::sync::Arc;

use super::{Refusal, named, refuse};
use crate::api::{Substitute, ValuesKind};
use crate::render::{Seen, Variables, variable_rule};

/// An object whose keys are variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    /// What it is.
    pub kind: ValuesKind,
    /// Its name, in the Sync's own namespace.
    pub name: Box<str>,
    /// It need not be there.
    pub optional: bool,
}

/// The most variables, and the most objects with more of them.
const MAX: (usize, usize) = (256, 16);
/// The most characters of a value.
const MAX_VALUE: usize = 4096;

/// The variables that the Sync itself names; none if nothing is to be replaced.
pub(super) fn variables(substitute: Option<&Substitute>) -> Result<Option<Arc<Variables>>, Refusal> {
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
    Ok(Some(Arc::new(Variables::default().with(vars, Seen::ByAll))))
}

/// Where more of them come from.
pub(super) fn values(substitute: Option<&Substitute>) -> Result<Vec<Values>, Refusal> {
    let from = substitute.map(|substitute| substitute.from.as_slice()).unwrap_or_default();
    if from.len() > MAX.1 {
        return refuse("spec.render.substitute.from", format!("name at most {} objects", MAX.1));
    }
    let one = |(at, from): (usize, &crate::api::ValuesFrom)| {
        let field = format!("spec.render.substitute.from[{at}].name");
        match named(&field, Some(&from.name))?.filter(|name| !name.is_empty()) {
            Some(name) => Ok(Values { kind: from.kind, name, optional: from.optional }),
            None => refuse(field, "write the name of a ConfigMap or Secret in the Sync's own namespace"),
        }
    };
    from.iter().enumerate().map(one).collect()
}
