//! Fields that we no longer apply but that stay, because another manager owns them too.
//!
//! Dropping a field from an apply removes it only if no other manager owns it. A user who removes a
//! field from Git expects it to disappear, so the remaining fields are reported with their owners.

use super::{FieldPath, FieldSet, ManagedFieldsEntry};

/// A field that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedField {
    /// Its path.
    pub path: FieldPath,
    /// The managers that own it, or something below it.
    pub managers: Vec<Box<str>>,
}

/// Returns the fields that our entry lost by an apply and that a foreign entry still owns.
/// `foreign` are the entries after the apply, without our own.
pub fn retained_fields(
    old_own: &FieldSet,
    new_own: &FieldSet,
    foreign: &[ManagedFieldsEntry],
) -> Vec<RetainedField> {
    let standing = |path: FieldPath| {
        let mut managers: Vec<Box<str>> = Vec::new();
        for entry in foreign.iter().filter(|entry| entry.fields.contains_or_below(&path)) {
            if !managers.contains(&entry.manager) {
                managers.push(entry.manager.clone());
            }
        }
        (!managers.is_empty()).then_some(RetainedField { path, managers })
    };
    let found: Vec<RetainedField> =
        old_own.minus(new_own).owned_paths().into_iter().filter_map(standing).collect();
    // Parents come before their children: of a list item and its fields, only the fields are
    // reported.
    let holds_another = |at: usize| {
        found.get(at + 1).is_some_and(|next: &RetainedField| next.path.starts_with(&found[at].path))
    };
    let innermost = (0..found.len()).filter(|at| !holds_another(*at));
    innermost.map(|at| found[at].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn entry(manager: &str, fields: Value) -> ManagedFieldsEntry {
        let entry = json!({"manager": manager, "operation": "Update", "fieldsV1": fields});
        ManagedFieldsEntry::parse(entry.as_object().unwrap())
    }

    #[test]
    fn what_others_hold_survives() {
        let item = |fields: Value| json!({"f:c": {"k:{\"name\":\"x\"}": fields}, "f:data": {"f:b": {}}});
        let old = FieldSet::parse(&json!({
            "f:data": {"f:a": {}, "f:b": {}, "f:d": {}},
            "f:c": {"k:{\"name\":\"x\"}": {".": {}, "f:i": {}, "f:name": {}}},
        }));
        let new = FieldSet::parse(&json!({"f:data": {"f:b": {}}}));
        let check = |foreign: &[ManagedFieldsEntry], expect: &[(&str, &[&str])]| {
            let found = retained_fields(&old, &new, foreign);
            let found: Vec<_> = found
                .iter()
                .map(|it| (it.path.to_string(), it.managers.iter().map(|name| &**name).collect::<Vec<_>>()))
                .collect();
            let expect: Vec<_> =
                expect.iter().map(|(path, names)| ((*path).to_owned(), names.to_vec())).collect();
            assert_eq!(found, expect);
        };
        check(&[], &[]);
        check(&[entry("z", json!({"f:data": {"f:b": {}}}))], &[]);
        let (one, two) =
            (entry("one", json!({"f:data": {"f:a": {}}})), entry("two", json!({"f:data": {"f:a": {}}})));
        check(&[one, two.clone(), two], &[("data.a", &["one", "two"])]);
        // An item stays while another manager owns anything in it.
        check(&[entry("e", item(json!({"f:env": {}})))], &[("c[name=x]", &["e"])]);
        check(&[entry("e", item(json!({".": {}, "f:i": {}})))], &[("c[name=x].i", &["e"])]);
    }
}
