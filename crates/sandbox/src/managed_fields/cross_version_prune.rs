//! Pruning across versions: the applier used another version before, or other managers own fields
//! in other versions.
//!
//! In: the merged object, and the managers with their versions.
//! Out: the object without the fields that only the applier owned. Each step is done in the version
//! of the managers that it concerns.

use serde_json::Value;

use super::super::schema::Schema;
use super::managers::Managers;
use super::{InVersion, NEVER_OWNED_SET, Writer, prune};
use moorline_managed_fields::FieldSet;

/// An object in one version.
#[derive(Clone)]
pub(super) struct Versioned<'a> {
    pub(super) schema: Schema,
    pub(super) version: &'a str,
    pub(super) value: Value,
}

/// Removes the fields that only the applier owned: `last` has the fields of its last apply, and
/// their version.
pub(super) fn pruned(
    merged: Versioned<'_>,
    managers: &Managers<'_>,
    (version, last): (&str, &FieldSet),
    writer: &Writer<'_>,
) -> Result<Value, String> {
    let all = match in_version(&merged, version, writer) {
        Ok(Some(converted)) => converted,
        // Fields of a version that no longer exists cannot be compared.
        Ok(None) => return Ok(merged.value),
        Err(words) => {
            return Err(format!("failed to convert merged object to last applied version: {words}"));
        }
    };
    let value = prune::without(&all.schema, &all.value, last);
    let (mut seen, mut left) = (all.clone(), Versioned { value, ..all.clone() });
    for (version, managed) in owned_by_version(managers, version) {
        let failed = |what: &str, words| {
            format!(
                "failed add back owned items: failed to convert {what} object at version {version}: {words}"
            )
        };
        let converted = in_version(&seen, version, writer).map_err(|words| failed("merged", words))?;
        let Some(converted) = converted else { continue };
        seen = converted;
        let converted = in_version(&left, version, writer).map_err(|words| failed("pruned", words))?;
        let Some(converted) = converted else { continue };
        let value = prune::restore_owned(&seen.schema, &seen.value, &converted.value, &managed);
        left = Versioned { value, ..seen.clone() };
    }
    let failed = |words| {
        format!(
            "failed add back dangling items: failed to convert pruned object to last applied version: {words}"
        )
    };
    let value = match in_version(&left, version, writer).map_err(failed)? {
        Some(left) => prune::restore_never_owned(&all.schema, &all.value, &left.value, last),
        None => all.value.clone(),
    };
    let done = Versioned { value, ..all };
    Ok(in_version(&done, writer.api_version, writer)?.unwrap_or(done).value)
}

/// Returns the fields of all managers by version, starting with the version of the last apply.
fn owned_by_version<'a>(managers: &Managers<'a>, first: &str) -> Vec<(&'a str, FieldSet)> {
    let mut found: Vec<(&str, FieldSet)> = Vec::new();
    for owned in managers.0.values() {
        let fields = owned.fields.set().into_owned();
        match found.iter_mut().find(|(version, _)| *version == owned.api_version) {
            Some((_, all)) => all.add(fields),
            None => found.push((owned.api_version, fields)),
        }
    }
    for (_, all) in &mut found {
        all.add(NEVER_OWNED_SET.clone());
    }
    found.sort_by_key(|(version, _)| *version != first);
    found
}

/// Converts an object to another version; `None` if that version no longer exists.
fn in_version<'a>(
    object: &Versioned<'a>,
    version: &'a str,
    writer: &Writer<'_>,
) -> Result<Option<Versioned<'a>>, String> {
    if object.version == version {
        return Ok(Some(object.clone()));
    }
    match writer.seen(version, &object.value) {
        InVersion::Same => Ok(Some(Versioned { version, ..object.clone() })),
        InVersion::Other(schema, value) => Ok(Some(Versioned { schema, version, value })),
        InVersion::Gone => Ok(None),
        InVersion::Failed(words) => Err(words),
    }
}
