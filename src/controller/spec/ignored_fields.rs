//! Validates the fields that a Sync leaves to other managers.
//!
//! In: an entry of `spec.ignoreFields` and its index. Out: [`IgnoreRule`], or an error.

use super::{SpecError, refuse};
use crate::api::IgnoreFields;
use crate::desired::IgnoreRule;

/// Fields that cannot be ignored, because they identify the object.
const IDENTITY: [&str; 5] = ["/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace"];

pub(super) fn ignore((at, fields): (usize, &IgnoreFields)) -> Result<IgnoreRule, SpecError> {
    let refused = |message: &str| refuse(format!("spec.ignoreFields[{at}].paths"), message);
    if fields.paths.is_empty() || !fields.paths.iter().all(|path| is_pointer(path)) {
        return refused(
            "write JSON pointers such as /spec/replicas, in which ~1 is a slash in a name and ~0 is ~",
        );
    }
    if fields.paths.iter().any(|path| IDENTITY.contains(&path.as_str())) {
        return refused(
            "leave out /apiVersion, /kind, /metadata, /metadata/name and /metadata/namespace: they identify the object",
        );
    }
    let text = |text: &Option<String>| text.as_deref().map(Into::into);
    let target = &fields.target;
    Ok(IgnoreRule {
        group: text(&target.group),
        kind: text(&target.kind),
        namespace: text(&target.namespace),
        name: text(&target.name),
        paths: fields.paths.iter().map(|path| path.as_str().into()).collect(),
    })
}

/// True for `/a/b`, with `~` only in front of 0 and 1, and no empty names.
fn is_pointer(text: &str) -> bool {
    let sound =
        |part: &str| !part.is_empty() && part.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(sound))
}
