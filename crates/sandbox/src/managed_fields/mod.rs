//! Server-side apply and `managedFields`.
//!
//! In: the live object, the object to write, and the writer.
//! Out: the object with its new `managedFields`, or the conflicts. It follows structured-merge-diff
//! and the field manager of the API server in everything that clients can observe, because the
//! daemon derives its knowledge of a cluster from these fields.

mod applied_fields;
mod changes;
mod compare;
mod conflict;
mod cross_version_prune;
mod last_applied;
mod managers;
mod merge;
mod prune;
mod scale_subresource;
mod schema_change;
mod schema_walk;
#[cfg(test)]
mod tests;
mod type_check;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::schema::Schema;
use changes::{VersionedChanges, follow_schema};
pub(crate) use conflict::{Conflict, conflict_message};
use managers::{LazyFieldSet, ManagerEntry, ManagerIdentity, Managers};
use moorline_managed_fields::{FieldPath, FieldSet, Operation};
pub(crate) use scale_subresource::transfer_replicas;
pub(crate) use type_check::go_type;

/// Manager of the fields that existed before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Fields that no manager owns: the identity of an object, and fields that the server sets.
const NEVER_OWNED: [&[&str]; 12] = [
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

/// [`NEVER_OWNED`] as a set.
static NEVER_OWNED_SET: LazyLock<FieldSet> = LazyLock::new(|| set_of(&NEVER_OWNED));

/// Writer of an object: manager, time and endpoint.
pub(crate) struct Writer<'a> {
    /// Field manager.
    pub(crate) manager: &'a str,
    /// Version in which the object is written.
    pub(crate) api_version: &'a str,
    /// Empty for the object itself; a write to `scale` writes the object with this subresource.
    pub(crate) subresource: &'a str,
    /// RFC 3339 with seconds.
    pub(crate) now: &'a str,
    /// Fields that are never owned through this endpoint, such as `["status"]`.
    pub(crate) reset: &'a [&'a [&'a str]],
    /// Converts the object to the version of another manager.
    pub(crate) in_version: &'a dyn Fn(&str, &Value) -> InVersion,
}

/// An object converted to another version.
pub(crate) enum InVersion {
    /// The fields have the same paths there.
    Same,
    /// The converted value and its type.
    Other(Schema, Value),
    /// The version no longer exists.
    Gone,
    /// The conversion failed; the text is the message of the 500 response.
    Failed(String),
}

/// Reason why nothing is applied.
#[derive(Debug)]
pub(crate) enum ApplyError {
    /// Conflicts with other managers: a 409 response with [`conflict_message`].
    Conflicts(Vec<Conflict>),
    /// The configuration does not match its type; the text is the message of the 500 response.
    Typed(String),
    /// The request is invalid; the text is the message of the 400 response.
    Refused(String),
}

/// Applies a configuration to the live object; `None` if it does not exist. Returns the merged
/// object with its new `managedFields`, before normalization and defaults.
pub(crate) fn apply(
    schema: &Schema,
    live: Option<&Value>,
    config: &Value,
    writer: &Writer<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    if config.pointer("/metadata/managedFields").is_some_and(|given| !given.is_null()) {
        return Err(ApplyError::Refused("metadata.managedFields must be nil".to_owned()));
    }
    let mut managers = Managers::read(live.and_then(managed_fields))
        .map_err(|words| ApplyError::Refused(format!("failed to decode managed fields: {words}")))?;
    crate::managed_fields::type_check::check(schema, config).map_err(|words| {
        ApplyError::Typed(format!("failed to create typed patch object ({}): {words}", title(config)))
    })?;
    let empty;
    let old = match live {
        Some(live) => live,
        None => {
            empty = schema.zero_object(config);
            &empty
        }
    };
    if managers.0.is_empty() && live.is_some() {
        let first = Writer { manager: BEFORE_FIRST_APPLY, ..*writer };
        take(schema, &mut managers, &schema.zero_object(config), old, &first).map_err(ApplyError::Typed)?;
    }
    let is_kubectl = writer.manager == last_applied::MANAGER;
    let before = is_kubectl.then(|| managers.clone());
    let (mut merged, is_new) = match (write(schema, &mut managers, old, config, writer, force), before) {
        (Err(ApplyError::Conflicts(conflicts)), Some(before)) => {
            let left = last_applied::remaining_conflicts(schema, old, conflicts, writer.api_version);
            if !left.is_empty() {
                return Err(ApplyError::Conflicts(left));
            }
            managers = before;
            write(schema, &mut managers, old, config, writer, true)?
        }
        (written, _) => written?,
    };
    if is_kubectl {
        last_applied::note(&mut merged, config);
    }
    let identity =
        ManagerIdentity::new(writer.manager, Operation::Apply, writer.api_version, writer.subresource);
    if is_new && let Some(owned) = managers.0.get_mut(&identity) {
        owned.time = Some(writer.now);
    }
    set_managed_fields(&mut merged, managers);
    Ok(merged)
}

/// Updates `managedFields` of `new` after a write that is no apply; `live` is the object before,
/// `None` for a creation. The managers are those that `new` contains, else those of the live
/// object.
pub(crate) fn update(schema: &Schema, live: Option<&Value>, new: &mut Value, writer: &Writer<'_>) {
    let given =
        new.get_mut("metadata").and_then(Value::as_object_mut).and_then(|it| it.remove("managedFields"));
    let mut managers = of_request(live, given.as_ref(), writer);
    if managers.0.is_empty() && live.is_some() {
        return;
    }
    let taken = match live {
        Some(live) => take(schema, &mut managers, live, new, writer),
        None => take(schema, &mut managers, &schema.zero_object(new), new, writer),
    };
    // If the object cannot be converted to the version of an entry, the server drops all entries.
    if taken.is_err() {
        return;
    }
    managers.cap_updates();
    set_managed_fields(new, managers);
}

/// Restores the times of managers if the write changed nothing else, so that it counts as
/// unchanged.
pub(crate) fn keep_times(live: &Value, new: &mut Value) {
    let timeless = |entry: &Value| {
        let mut entry = entry.as_object().cloned().unwrap_or_default();
        entry.remove("time");
        entry
    };
    let (Some(Value::Array(before)), Some(Value::Array(after))) = (managed_fields(live), managed_fields(new))
    else {
        return;
    };
    let is_same = before != after
        && before.len() == after.len()
        && before.iter().zip(after).all(|(one, other)| timeless(one) == timeless(other))
        && is_same_but_managers(live, new);
    if is_same {
        let before = Value::Array(before.clone());
        new["metadata"]["managedFields"] = before;
    }
}

/// Returns the managers that a request starts from.
fn of_request<'a>(live: Option<&'a Value>, given: Option<&'a Value>, writer: &Writer<'_>) -> Managers<'a> {
    let of_live = || Managers::read(live.and_then(managed_fields)).unwrap_or_default();
    let Some(given) = given.filter(|_| writer.subresource.is_empty()) else { return of_live() };
    match given.as_array().map(Vec::as_slice) {
        // An empty list, or one empty entry, resets the managers.
        Some([]) => Managers::default(),
        Some([Value::Object(entry)]) if entry.is_empty() => Managers::default(),
        Some(_) => match Managers::read_request(given) {
            Ok(managers) if !managers.0.is_empty() => managers,
            Ok(_) | Err(_) => of_live(),
        },
        None => of_live(),
    }
}

/// Records the fields that a writer changed, and removes them from all other managers.
fn take<'a>(
    schema: &Schema,
    managers: &mut Managers<'a>,
    old: &Value,
    new: &Value,
    writer: &Writer<'a>,
) -> Result<(), String> {
    follow_schema(schema, managers, old, writer)?;
    let changes = VersionedChanges::of(schema, managers, old, new, writer)?;
    changes.take_from(managers, None);
    let mut own = changes.own.set();
    own.subtract(&NEVER_OWNED_SET);
    if own.is_empty() {
        return Ok(());
    }
    let identity =
        ManagerIdentity::new(writer.manager, Operation::Update, writer.api_version, writer.subresource);
    let owned = managers.0.entry(identity).or_insert_with(|| ManagerEntry {
        fields: LazyFieldSet::default(),
        api_version: writer.api_version,
        time: None,
    });
    owned.fields.set_mut().add(own);
    owned.time = Some(writer.now);
    Ok(())
}

/// Returns the applied object; true if it differs from the old one.
fn write<'a>(
    schema: &Schema,
    managers: &mut Managers<'a>,
    old: &Value,
    config: &Value,
    writer: &Writer<'a>,
    force: bool,
) -> Result<(Value, bool), ApplyError> {
    follow_schema(schema, managers, old, writer).map_err(ApplyError::Typed)?;
    let mut merged = without_managed_fields(old);
    merge::merge(schema, &mut merged, config);
    let mut fields = crate::managed_fields::applied_fields::applied_fields(schema, config);
    fields.subtract_with_children(&set_of(writer.reset));
    fields.subtract(&NEVER_OWNED_SET);
    let identity =
        ManagerIdentity::new(writer.manager, Operation::Apply, writer.api_version, writer.subresource);
    let last = managers.0.remove(&identity);
    let time = last.as_ref().and_then(|last| last.time);
    let last_version = last.as_ref().map_or(writer.api_version, |last| last.api_version);
    let (fields, dropped) = match last.map(|last| last.fields) {
        // The same fields as at the last apply: none was dropped.
        Some(last)
            if last_version == writer.api_version
                && last.unchanged().is_some_and(|written| fields.equals_fields_v1(written)) =>
        {
            (last, None)
        }
        Some(last) => {
            let is_less =
                |last: &FieldSet| last_version != writer.api_version || !last.minus(&fields).is_empty();
            let last = Some(last.set().into_owned()).filter(is_less);
            (LazyFieldSet::known(fields), last)
        }
        None => (LazyFieldSet::known(fields), None),
    };
    managers.0.insert(identity, ManagerEntry { fields, api_version: writer.api_version, time });
    if let Some(last) = dropped {
        let live = crate::managed_fields::cross_version_prune::Versioned {
            schema: schema.clone(),
            version: writer.api_version,
            value: merged,
        };
        merged =
            crate::managed_fields::cross_version_prune::pruned(live, managers, (last_version, &last), writer)
                .map_err(|words| ApplyError::Typed(format!("failed to prune fields: {words}")))?;
    }
    let changes = VersionedChanges::of(schema, managers, old, &merged, writer).map_err(ApplyError::Typed)?;
    let lost = changes.lost(managers, identity);
    if !force && !lost.is_empty() {
        return Err(ApplyError::Conflicts(conflict::conflicts(lost)));
    }
    changes.take_from(managers, Some(identity));
    let is_new = !is_same_but_managers(old, &merged);
    Ok((merged, is_new))
}

fn set_of(paths: &[&[&str]]) -> FieldSet {
    let paths: Vec<FieldPath> = paths.iter().map(|path| FieldPath::of_fields(path)).collect();
    FieldSet::from_paths(&paths)
}

fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

fn set_managed_fields(object: &mut Value, managers: Managers<'_>) {
    if let (Some(entries), Some(object)) = (managers.written(), object.as_object_mut()) {
        let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".to_owned(), entries);
        }
    }
}

/// Copies an object without `managedFields`, which are the largest part of many objects.
fn without_managed_fields(object: &Value) -> Value {
    let Value::Object(fields) = object else { return object.clone() };
    let copied = fields.iter().map(|(name, value)| {
        let value = match value {
            Value::Object(metadata) if name == "metadata" => {
                let kept = metadata.iter().filter(|(name, _)| *name != "managedFields");
                Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
            }
            value => value.clone(),
        };
        (name.clone(), value)
    });
    Value::Object(copied.collect())
}

fn is_same_but_managers(one: &Value, other: &Value) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one == other };
    one.len() == other.len()
        && one.iter().all(|(name, value)| match (value, other.get(name)) {
            (Value::Object(value), Some(Value::Object(found))) if name == "metadata" => {
                let kept = |fields: &Map<String, Value>| {
                    fields.len() - usize::from(fields.contains_key("managedFields"))
                };
                kept(value) == kept(found)
                    && value.iter().all(|(name, value)| {
                        name == "managedFields"
                            || found
                                .get(name)
                                .is_some_and(|found| crate::managed_fields::schema_walk::same(value, found))
                    })
            }
            (value, found) => {
                found.is_some_and(|found| crate::managed_fields::schema_walk::same(value, found))
            }
        })
}

/// Name of an object in error messages: `ns/name; apps/v1, Kind=Deployment`.
fn title(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("/apiVersion");
    let slash = if api_version.contains('/') { "" } else { "/" };
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    format!("{namespace}/{name}; {slash}{api_version}, Kind={}", text("/kind"))
}
