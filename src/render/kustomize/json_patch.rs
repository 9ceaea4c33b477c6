//! JSON patches (RFC 6902), as kustomize reads and applies them.
//!
//! In: a list of operations, and an object. Out: the object as patched, or the operation that does not apply and why. A
//! few rules are looser than the RFC's, because the library behind kustomize is: an index may be negative, `copy` of a
//! field that is not there gives null, and what a path says before its first `/` is passed over. Faults name places
//! and never values, because the object may be a Secret.

mod pointer;

use serde_json::Value;

use self::pointer::{Container, Missing, Pointer};
use crate::yaml::MAX_DEPTH;

/// How many values one patch may copy within an object: each copy can double what is there.
const MAX_COPIED: usize = 1_000_000;

/// One operation of a patch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operation {
    /// Its position in the patch, from 1.
    number: usize,
    path: Pointer,
    action: Action,
}

#[derive(Debug, Clone, PartialEq)]
enum Action {
    Add(Value),
    Remove,
    Replace(Value),
    Move(Pointer),
    Copy(Pointer),
    Test(Value),
}

/// A fault of a patch, or a reason why it cannot be applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The patch is something else than a list.
    #[error("a JSON patch must be a list of operations")]
    NotAList,
    /// An operation that is not one.
    #[error("operation {number} of the JSON patch {what}")]
    NotAnOperation {
        /// Its position, from 1.
        number: usize,
        /// The fault.
        what: &'static str,
    },
    /// An operation that does not apply to the object.
    #[error("operation {number} of the JSON patch ({action} {path}) does not apply: {what}")]
    DoesNotApply {
        /// Its position, from 1.
        number: usize,
        /// Its `op`.
        action: &'static str,
        /// Its `path`.
        path: String,
        /// The fault.
        what: What,
    },
}

/// Why an operation does not apply.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum What {
    /// A path leads nowhere.
    #[error("{0}")]
    Missing(Missing),
    /// The same of the path under `from`.
    #[error("from {path}: {missing}")]
    From {
        /// The path.
        path: String,
        /// The missing part.
        missing: Missing,
    },
    /// A `test` that does not hold.
    #[error("the value there is another one")]
    Test,
    /// A `replace` of the whole object by something that cannot be one.
    #[error("the whole object can only be replaced by a map or a list")]
    Whole,
    /// The result is too large.
    #[error("it copies more than {MAX_COPIED} values, or nests them deeper than {MAX_DEPTH}")]
    TooMuch,
}

impl Operation {
    /// True if it reads all annotations of an object, and not single ones.
    pub(crate) fn sees_annotations(&self) -> bool {
        let read = match &self.action {
            Action::Add(_) | Action::Remove | Action::Replace(_) => return false,
            Action::Test(_) => &self.path,
            Action::Move(from) | Action::Copy(from) => from,
        };
        ["", "/metadata", "/metadata/annotations"].contains(&read.text())
    }
}

/// Reads the operations of a patch.
pub(crate) fn parse(patch: &Value) -> Result<Vec<Operation>, Fault> {
    let operations = patch.as_array().ok_or(Fault::NotAList)?;
    operations.iter().zip(1..).map(|(operation, number)| read(operation, number)).collect()
}

/// Applies operations to an object, one after the other. With a fault, the object is half patched and of no use.
pub(crate) fn apply(object: &mut Value, operations: &[Operation]) -> Result<(), Fault> {
    let mut copied = 0;
    for operation in operations {
        operation.apply(object, &mut copied).map_err(|what| Fault::DoesNotApply {
            number: operation.number,
            action: operation.action.name(),
            path: operation.path.shown(),
            what,
        })?;
    }
    Ok(())
}

fn read(operation: &Value, number: usize) -> Result<Operation, Fault> {
    let fault = |what| Fault::NotAnOperation { number, what };
    let fields = operation.as_object().ok_or_else(|| fault("must be a map with op and path"))?;
    let pointer = |name, what| match fields.get(name) {
        Some(Value::String(text)) => Ok(Pointer::of(text)),
        _ => Err(fault(what)),
    };
    let path = || pointer("path", "needs a path, a string such as /spec/replicas");
    let from = || pointer("from", "needs a from, a string such as /spec/replicas");
    // A value that is not given is null.
    let value = || fields.get("value").cloned().unwrap_or_default();
    let action = match fields.get("op").and_then(Value::as_str) {
        Some("add") => Action::Add(value()),
        Some("remove") => Action::Remove,
        Some("replace") => Action::Replace(value()),
        Some("move") => Action::Move(from()?),
        Some("copy") => Action::Copy(from()?),
        Some("test") => Action::Test(value()),
        _ => return Err(fault("needs an op: add, remove, replace, move, copy or test")),
    };
    Ok(Operation { number, path: path()?, action })
}

impl Action {
    fn name(&self) -> &'static str {
        match self {
            Self::Add(_) => "add",
            Self::Remove => "remove",
            Self::Replace(_) => "replace",
            Self::Move(_) => "move",
            Self::Copy(_) => "copy",
            Self::Test(_) => "test",
        }
    }
}

impl Operation {
    fn apply(&self, object: &mut Value, copied: &mut usize) -> Result<(), What> {
        let path = &self.path;
        let from = |from: &Pointer, missing| What::From { path: from.shown(), missing };
        match &self.action {
            Action::Add(value) => self.put(object, value.clone()),
            Action::Remove => {
                path.container(object).and_then(|place| place.remove()).map(drop).map_err(What::Missing)
            }
            Action::Replace(value) if path.is_whole() => match value {
                Value::Object(_) | Value::Array(_) => {
                    *object = value.clone();
                    Ok(())
                }
                _ => Err(What::Whole),
            },
            Action::Replace(value) => {
                self.fits(value)?;
                path.container(object).and_then(|place| place.replace(value.clone())).map_err(What::Missing)
            }
            Action::Move(source) => {
                let place = source.container(object);
                let value =
                    place.and_then(|place| place.remove()).map_err(|missing| from(source, missing))?;
                self.put(object, value)
            }
            Action::Copy(source) => {
                let place = source.container(object);
                let value = place.and_then(|place| place.get()).map_err(|missing| from(source, missing))?;
                *copied = copied.saturating_add(size(value.unwrap_or(&Value::Null)));
                if *copied > MAX_COPIED {
                    return Err(What::TooMuch);
                }
                let value = value.cloned().unwrap_or_default();
                self.put(object, value)
            }
            Action::Test(expect) => {
                let found = match path.is_whole() {
                    true => Some(&*object),
                    false => path.container(object).and_then(|place| place.get()).map_err(What::Missing)?,
                };
                // A field that is not there is as good as null.
                match equal(found.unwrap_or(&Value::Null), expect) {
                    true => Ok(()),
                    false => Err(What::Test),
                }
            }
        }
    }

    fn put(&self, object: &mut Value, value: Value) -> Result<(), What> {
        self.fits(&value)?;
        self.path.container(object).and_then(|place: Container<'_>| place.add(value)).map_err(What::Missing)
    }

    /// Values are gone through by calls within calls, so nothing may lie deeper than what can be read.
    fn fits(&self, value: &Value) -> Result<(), What> {
        match self.path.depth().saturating_add(depth(value)) > MAX_DEPTH {
            true => Err(What::TooMuch),
            false => Ok(()),
        }
    }
}

/// True if two values are equal to the library behind kustomize: lists with nulls never are.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            let pairs = || one.iter().zip(other);
            one.len() == other.len()
                && pairs().all(|(one, other)| !one.is_null() && !other.is_null() && equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| equal(value, other)))
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => {
            one.as_f64() == other.as_f64()
        }
        (one, other) => one == other,
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(size).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests;
