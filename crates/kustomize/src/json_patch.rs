//! Applies JSON patches (RFC 6902) as kustomize does.
//!
//! In: a list of operations, and an object. Out: the patched object, or the operation that does not
//! apply, with the reason. A few rules are looser than the RFC's, because kustomize's library is:
//! an index may be negative, `copy` of a missing field gives null, and the text before the first
//! `/` of a path is ignored. Errors name paths and never values, because the object may be a
//! Secret.

mod pointer;

use serde_json::Value;

use self::pointer::{Container, Pointer, PointerError};
use moorline_yaml::MAX_DEPTH;

/// Most steps of a patch on one object, about a second of work. A step is one part of a path, one
/// visited value, or one list item that moves on insertion or removal.
const MAX_STEPS: usize = 100_000_000;

/// Most values that one patch may copy: each copy can double the object.
const MAX_COPIED: usize = 1_000_000;

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// One operation of a patch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operation {
    /// Position in the patch, from 1.
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

/// An invalid patch, or one that does not apply.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonPatchError {
    /// The patch is not a list.
    #[error("a JSON patch must be a list of operations")]
    NotAList,
    /// An invalid operation.
    #[error("operation {number} of the JSON patch {what}")]
    NotAnOperation {
        /// Its position, from 1.
        number: usize,
        /// The finding.
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
        /// The reason.
        what: OperationError,
    },
}

/// Reason why an operation does not apply.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OperationError {
    /// The target of `path` does not exist.
    #[error("{0}")]
    Missing(PointerError),
    /// The target of `from` does not exist.
    #[error("from {path}: {missing}")]
    From {
        /// The path.
        path: String,
        /// The reason.
        missing: PointerError,
    },
    /// A `test` that fails.
    #[error("the value differs")]
    Test,
    /// A `test` of a number that would also hold for other numbers.
    #[error("a number from 2^63 on cannot be tested")]
    Large,
    /// A `replace` of the whole object by a value that is no object.
    #[error("the whole object can only be replaced by a map or a list")]
    Whole,
    /// The result is too large.
    #[error("it copies more than {MAX_COPIED} values, or nests them deeper than {MAX_DEPTH}")]
    TooMuch,
    /// The patch takes too many steps.
    #[error("the patch takes more than {MAX_STEPS} steps on this object")]
    TooLong,
}

impl Operation {
    /// True if it moves or copies the text of an annotation.
    pub(crate) fn copies_annotation(&self) -> bool {
        match &self.action {
            Action::Move(from) | Action::Copy(from) => from.text().starts_with("/metadata/annotations/"),
            Action::Add(_) | Action::Remove | Action::Replace(_) | Action::Test(_) => false,
        }
    }

    /// True if it compares a value.
    pub(crate) fn is_test(&self) -> bool {
        matches!(self.action, Action::Test(_))
    }

    /// True if it reads the annotations of an object as a whole.
    pub(crate) fn reads_all_annotations(&self) -> bool {
        let read = match &self.action {
            Action::Add(_) | Action::Remove | Action::Replace(_) => return false,
            Action::Test(_) => &self.path,
            Action::Move(from) | Action::Copy(from) => from,
        };
        ["", "/metadata", "/metadata/annotations"].contains(&read.text())
    }
}

/// Parses the operations of a patch.
pub(crate) fn parse(patch: &Value) -> Result<Vec<Operation>, JsonPatchError> {
    let operations = patch.as_array().ok_or(JsonPatchError::NotAList)?;
    operations.iter().zip(1..).map(|(operation, number)| read(operation, number)).collect()
}

/// Applies the operations in order. After an error the object is partly patched and must be
/// dropped.
pub(crate) fn apply(object: &mut Value, operations: &[Operation]) -> Result<(), JsonPatchError> {
    within(MAX_STEPS, object, operations)
}

fn within(steps: usize, object: &mut Value, operations: &[Operation]) -> Result<(), JsonPatchError> {
    let mut left = RemainingWork { copies: MAX_COPIED, steps };
    for operation in operations {
        operation.apply(object, &mut left).map_err(|what| JsonPatchError::DoesNotApply {
            number: operation.number,
            action: operation.action.name(),
            path: operation.path.shown(),
            what,
        })?;
    }
    Ok(())
}

fn read(operation: &Value, number: usize) -> Result<Operation, JsonPatchError> {
    let fault = |what| JsonPatchError::NotAnOperation { number, what };
    let fields = operation.as_object().ok_or_else(|| fault("must be a map with op and path"))?;
    let pointer = |name, what| match fields.get(name) {
        Some(Value::String(text)) => Ok(Pointer::parse(text)),
        _ => Err(fault(what)),
    };
    let path = || pointer("path", "needs a path, a string such as /spec/replicas");
    let from = || pointer("from", "needs a from, a string such as /spec/replicas");
    // A missing value is null.
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

/// Remaining work of a patch.
struct RemainingWork {
    copies: usize,
    steps: usize,
}

impl RemainingWork {
    fn step(&mut self, steps: usize) -> Result<(), OperationError> {
        self.steps = self.steps.checked_sub(steps).ok_or(OperationError::TooLong)?;
        Ok(())
    }
}

impl Operation {
    fn apply(&self, object: &mut Value, left: &mut RemainingWork) -> Result<(), OperationError> {
        let path = &self.path;
        left.step(1 + path.depth())?;
        let from = |from: &Pointer, missing| OperationError::From { path: from.shown(), missing };
        match &self.action {
            Action::Add(value) => self.insert(object, value.clone(), left),
            Action::Remove => {
                let place = path.container(object).map_err(OperationError::Missing)?;
                left.step(place.items())?;
                place.remove().map(drop).map_err(OperationError::Missing)
            }
            Action::Replace(value) if path.is_whole() => match value {
                Value::Object(_) | Value::Array(_) => {
                    *object = value.clone();
                    Ok(())
                }
                _ => Err(OperationError::Whole),
            },
            Action::Replace(value) => {
                self.fits(value)?;
                path.container(object)
                    .and_then(|place| place.replace(value.clone()))
                    .map_err(OperationError::Missing)
            }
            Action::Move(source) => {
                let place = source.container(object).map_err(|missing| from(source, missing))?;
                left.step(source.depth() + place.items())?;
                let value = place.remove().map_err(|missing| from(source, missing))?;
                left.step(size(&value))?;
                self.insert(object, value, left)
            }
            Action::Copy(source) => {
                let place = source.container(object);
                let value = place.and_then(|place| place.get()).map_err(|missing| from(source, missing))?;
                let copies = size(value.unwrap_or(&Value::Null));
                left.copies = left.copies.checked_sub(copies).ok_or(OperationError::TooMuch)?;
                left.step(source.depth())?;
                let value = value.cloned().unwrap_or_default();
                self.insert(object, value, left)
            }
            Action::Test(expect) => {
                let found = match path.is_whole() {
                    true => Some(&*object),
                    false => path
                        .container(object)
                        .and_then(|place| place.get())
                        .map_err(OperationError::Missing)?,
                };
                // A missing field equals null.
                match equal(found.unwrap_or(&Value::Null), expect) {
                    true if has_large_numbers(expect) => Err(OperationError::Large),
                    true => Ok(()),
                    false => Err(OperationError::Test),
                }
            }
        }
    }

    fn insert(
        &self,
        object: &mut Value,
        value: Value,
        left: &mut RemainingWork,
    ) -> Result<(), OperationError> {
        self.fits(&value)?;
        let place: Container<'_> = self.path.container(object).map_err(OperationError::Missing)?;
        left.step(if self.path.is_at_end() { 0 } else { place.items() })?;
        place.add(value).map_err(OperationError::Missing)
    }

    /// Values are walked by recursion, so no result may be nested deeper than the reader allows.
    fn fits(&self, value: &Value) -> Result<(), OperationError> {
        match self.path.depth().saturating_add(depth(value)) > MAX_DEPTH {
            true => Err(OperationError::TooMuch),
            false => Ok(()),
        }
    }
}

/// Compares values as kustomize's library does: lists with nulls are never equal.
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
        // Integers below 2^63 are integers here, no matter how they are written.
        (one, other) => one == other,
    }
}

/// True if a value has numbers whose digits are lost here and that the library compares: from 2^63
/// on, all are floats.
fn has_large_numbers(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_large_numbers),
        Value::Object(fields) => fields.values().any(has_large_numbers),
        Value::Number(number) => {
            number.is_f64()
                && number.as_f64().is_some_and(|float| (TWO_TO_63..2.0 * TWO_TO_63).contains(&float))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => false,
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
