//! JSON patches (RFC 6902) as the API server and kustomize apply them.
//!
//! In: a list of operations, an object, and bounds.
//! Out: the patched object, or the operation that does not apply, with the reason. A few rules are
//! looser than the RFC's, because the Go library of both is: an index may be negative, `replace`
//! and `copy` take missing fields, and the text before the first `/` of a path is ignored. Errors
//! name paths and never values, because the object may be a Secret.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod pointer;

use serde_json::Value;

use self::pointer::{Container, Pointer};

pub use self::pointer::PointerError;

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Bounds of a patch, and the one choice that its users make differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchOptions {
    /// Most steps on one object. A step is one part of a path, one visited value, or one list item
    /// that moves on insertion or removal.
    pub max_steps: usize,
    /// Most values that one patch may copy: each copy can double the object.
    pub max_copied: usize,
    /// Deepest nesting of the result: values are walked by recursion.
    pub max_depth: usize,
    /// Refuses a `test` of equal numbers from 2^63 on. The Go library compares their digits; here
    /// they are floats, so the test would also hold for other numbers.
    pub refuse_inexact_tests: bool,
}

impl Default for PatchOptions {
    /// A second of work at most, and the depth of the YAML reader.
    fn default() -> Self {
        Self { max_steps: 100_000_000, max_copied: 1_000_000, max_depth: 512, refuse_inexact_tests: false }
    }
}

/// One operation of a patch.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
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
pub enum PatchError {
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
pub enum OperationError {
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
    #[error("it copies more than {copied} values, or nests them deeper than {depth}")]
    TooMuch {
        /// Most values that it may copy.
        copied: usize,
        /// Deepest nesting of the result.
        depth: usize,
    },
    /// The patch takes too many steps.
    #[error("the patch takes more than {0} steps on this object")]
    TooLong(usize),
}

impl Operation {
    /// True if it compares a value.
    pub fn is_test(&self) -> bool {
        matches!(self.action, Action::Test(_))
    }

    /// Returns the path of the value that it reads: the source of a move or a copy, the target of a
    /// test.
    pub fn reads(&self) -> Option<&str> {
        match &self.action {
            Action::Add(_) | Action::Remove | Action::Replace(_) => None,
            Action::Test(_) => Some(self.path.text()),
            Action::Move(from) | Action::Copy(from) => Some(from.text()),
        }
    }
}

/// Parses the operations of a patch.
///
/// # Errors
///
/// A patch that is no list, or an operation without what it needs.
pub fn parse(patch: &Value) -> Result<Vec<Operation>, PatchError> {
    let operations = patch.as_array().ok_or(PatchError::NotAList)?;
    operations.iter().zip(1..).map(|(operation, number)| read(operation, number)).collect()
}

/// Applies the operations in order.
///
/// # Errors
///
/// An operation that does not apply, or a patch that exceeds a bound. The object is partly patched
/// then and must be dropped.
pub fn apply(object: &mut Value, operations: &[Operation], options: &PatchOptions) -> Result<(), PatchError> {
    let mut left = RemainingWork { copies: options.max_copied, steps: options.max_steps, options };
    for operation in operations {
        operation.apply(object, &mut left).map_err(|what| PatchError::DoesNotApply {
            number: operation.number,
            action: operation.action.name(),
            path: operation.path.text().to_owned(),
            what,
        })?;
    }
    Ok(())
}

fn read(operation: &Value, number: usize) -> Result<Operation, PatchError> {
    let fault = |what| PatchError::NotAnOperation { number, what };
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
struct RemainingWork<'a> {
    copies: usize,
    steps: usize,
    options: &'a PatchOptions,
}

impl RemainingWork<'_> {
    fn step(&mut self, steps: usize) -> Result<(), OperationError> {
        let too_long = OperationError::TooLong(self.options.max_steps);
        self.steps = self.steps.checked_sub(steps).ok_or(too_long)?;
        Ok(())
    }

    fn copy(&mut self, values: usize) -> Result<(), OperationError> {
        self.copies = self.copies.checked_sub(values).ok_or_else(|| self.too_much())?;
        Ok(())
    }

    /// Checks that a value at a path is nested no deeper than allowed.
    fn fits(&self, path: &Pointer, value: &Value) -> Result<(), OperationError> {
        match path.depth().saturating_add(depth(value)) > self.options.max_depth {
            true => Err(self.too_much()),
            false => Ok(()),
        }
    }

    fn too_much(&self) -> OperationError {
        OperationError::TooMuch { copied: self.options.max_copied, depth: self.options.max_depth }
    }
}

impl Operation {
    fn apply(&self, object: &mut Value, left: &mut RemainingWork<'_>) -> Result<(), OperationError> {
        let path = &self.path;
        left.step(1 + path.depth())?;
        let from = |from: &Pointer, missing| OperationError::From { path: from.text().to_owned(), missing };
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
                left.fits(path, value)?;
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
                left.copy(size(value.unwrap_or(&Value::Null)))?;
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
                    true if left.options.refuse_inexact_tests && has_large_numbers(expect) => {
                        Err(OperationError::Large)
                    }
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
        left: &mut RemainingWork<'_>,
    ) -> Result<(), OperationError> {
        left.fits(&self.path, &value)?;
        let place: Container<'_> = self.path.container(object).map_err(OperationError::Missing)?;
        left.step(if self.path.is_at_end() { 0 } else { place.items() })?;
        place.add(value).map_err(OperationError::Missing)
    }
}

/// Compares values as the Go library does: lists with nulls are never equal.
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
