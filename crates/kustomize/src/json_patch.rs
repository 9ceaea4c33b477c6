//! JSON patches (RFC 6902) of a kustomization.
//!
//! In: a list of operations, and an object. Out: the patched object, or the operation that does not
//! apply, with the reason; and the questions that kustomize's own annotations raise.

use serde_json::Value;

use moorline_json_patch::PatchOptions;
pub(crate) use moorline_json_patch::{Operation, PatchError as JsonPatchError, parse};
use moorline_yaml::MAX_DEPTH;

/// Bounds: about a second of work on one object, and no deeper than the reader allows. Kustomize
/// compares the digits of a number, which are lost here.
const OPTIONS: PatchOptions = PatchOptions {
    max_steps: 100_000_000,
    max_copied: 1_000_000,
    max_depth: MAX_DEPTH,
    refuse_inexact_tests: true,
};

/// Applies the operations in order. After an error the object is partly patched and must be
/// dropped.
pub(crate) fn apply(object: &mut Value, operations: &[Operation]) -> Result<(), JsonPatchError> {
    moorline_json_patch::apply(object, operations, &OPTIONS)
}

/// True if an operation moves or copies the text of an annotation.
pub(crate) fn copies_annotation(operation: &Operation) -> bool {
    !operation.is_test() && operation.reads().is_some_and(|from| from.starts_with("/metadata/annotations/"))
}

/// True if an operation reads the annotations of an object as a whole.
pub(crate) fn reads_all_annotations(operation: &Operation) -> bool {
    operation.reads().is_some_and(|path| ["", "/metadata", "/metadata/annotations"].contains(&path))
}
