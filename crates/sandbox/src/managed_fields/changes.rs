//! Changes of a write as each manager sees them, in the version in which it owns its fields.
//!
//! In: the object before and after, its managers, and the conversion to other versions.
//! Out: [`VersionedChanges`]; the field sets adapted to a changed schema; or the error if the
//! object cannot be converted.

use serde_json::Value;

use super::super::schema::Schema;
use super::compare::{FieldChange, compare};
use super::managers::{LazyFieldSet, ManagerEntry, ManagerIdentity, Managers};
use super::{InVersion, Writer, set_of};
use super::{schema_change, type_check};
use moorline_managed_fields::FieldSet;

/// Changes of a write, in every version in which a manager owns fields.
pub(super) struct VersionedChanges {
    pub(super) own: FieldChange,
    others: Vec<(String, Option<FieldChange>)>,
}

impl VersionedChanges {
    pub(super) fn of(
        schema: &Schema,
        managers: &Managers<'_>,
        old: &Value,
        new: &Value,
        writer: &Writer<'_>,
    ) -> Result<Self, String> {
        let reset = set_of(writer.reset);
        let own = compare(schema, old, new).without(&reset);
        let mut others: Vec<(String, Option<FieldChange>)> = Vec::new();
        for owned in managers.0.values() {
            let version = owned.api_version;
            if version == writer.api_version || others.iter().any(|(known, _)| known == version) {
                continue;
            }
            let failed = |what: &str, words: &str| Err(format!("failed to convert {what} object: {words}"));
            let change = match (writer.seen(version, old), writer.seen(version, new)) {
                (InVersion::Failed(words), _) => return failed("old", &words),
                (_, InVersion::Failed(words)) => return failed("new", &words),
                (InVersion::Other(schema, old), InVersion::Other(_, new)) => {
                    Some(compare(&schema, &old, &new).without(&reset))
                }
                (InVersion::Gone, _) | (_, InVersion::Gone) => None,
                (InVersion::Same | InVersion::Other(..), InVersion::Same | InVersion::Other(..)) => continue,
            };
            others.push((version.to_owned(), change));
        }
        Ok(Self { own, others })
    }

    /// Returns the change in the version of a manager; `None` if that version no longer exists.
    fn seen(&self, owned: &ManagerEntry<'_>) -> Option<&FieldChange> {
        let other = self.others.iter().find(|(version, _)| *version == owned.api_version);
        other.map_or(Some(&self.own), |(_, change)| change.as_ref())
    }

    /// Returns the fields that each other manager would lose because their values change.
    pub(super) fn lost<'a>(
        &self,
        managers: &Managers<'a>,
        but: ManagerIdentity<'a>,
    ) -> Vec<(ManagerIdentity<'a>, &'a str, FieldSet)> {
        let others = managers.0.iter().filter(|(identity, _)| **identity != but);
        let lost = others.filter_map(|(identity, owned)| {
            let change = self.seen(owned)?;
            let mut fields = owned.fields.shared_with(&change.modified);
            fields.add(owned.fields.shared_with(&change.added));
            (!fields.is_empty()).then_some((*identity, owned.api_version, fields))
        });
        lost.collect()
    }

    /// Removes changed and removed fields from the sets of all managers, except for one.
    pub(super) fn take_from(&self, managers: &mut Managers<'_>, but: Option<ManagerIdentity<'_>>) {
        for (identity, owned) in &mut managers.0 {
            if Some(*identity) == but {
                continue;
            }
            match self.seen(owned) {
                Some(change) => {
                    for gone in [&change.modified, &change.added, &change.removed] {
                        owned.fields.take_off(gone);
                    }
                }
                None => owned.fields = LazyFieldSet::default(),
            }
        }
        managers.drop_empty();
    }
}

/// Adapts the field sets of the managers to the schemas of their versions. Only the schema of a
/// definition can change while objects of it exist.
pub(super) fn follow_schema(
    schema: &Schema,
    managers: &mut Managers<'_>,
    live: &Value,
    writer: &Writer<'_>,
) -> Result<(), String> {
    if !schema.is_of_definition() {
        return Ok(());
    }
    for owned in managers.0.values_mut() {
        let seen = match owned.api_version {
            own if own == writer.api_version => InVersion::Same,
            other => writer.seen(other, live),
        };
        let schema = match &seen {
            InVersion::Same => schema,
            InVersion::Other(schema, _) => schema,
            InVersion::Gone => {
                return Err(format!(
                    "request to convert CR to an invalid group/version: {}",
                    owned.api_version
                ));
            }
            InVersion::Failed(words) => return Err(words.clone()),
        };
        if !owned.fields.unchanged().is_some_and(|fields| schema_change::matches_schema(schema, fields)) {
            schema_change::reconcile(schema, owned.fields.set_mut());
        }
    }
    Ok(())
}

impl Writer<'_> {
    /// Converts an object to another version and checks it against the schema there: a conversion
    /// may leave fields that the schema does not contain.
    pub(super) fn seen(&self, version: &str, object: &Value) -> InVersion {
        match (self.in_version)(version, object) {
            InVersion::Other(schema, object) if schema.is_of_definition() => {
                match type_check::check(&schema, &object) {
                    Ok(()) => InVersion::Other(schema, object),
                    Err(words) => InVersion::Failed(words),
                }
            }
            seen => seen,
        }
    }
}
