//! Fields that we no longer set and that still stand, because somebody else owns them too.
//!
//! Dropping a field from an apply removes it only where nobody else owns it. Whoever removes a field from Git
//! expects it to be gone; what stays is named, with those who hold it.

use super::{Entry, FieldPath, FieldSet};

/// A field that still stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Where it is.
    pub path: FieldPath,
    /// Who owns it, or something in it.
    pub managers: Vec<Box<str>>,
}

/// What our entry had before an apply and has not after it, where a foreign entry still has it. `foreign` are
/// the entries after the apply, without our own.
pub fn removed(old_own: &FieldSet, new_own: &FieldSet, foreign: &[Entry]) -> Vec<Survivor> {
    let standing = |path: FieldPath| {
        let mut managers: Vec<Box<str>> = Vec::new();
        for entry in foreign.iter().filter(|entry| entry.fields.reaches(&path)) {
            if !managers.contains(&entry.manager) {
                managers.push(entry.manager.clone());
            }
        }
        (!managers.is_empty()).then_some(Survivor { path, managers })
    };
    let found: Vec<Survivor> = old_own.minus(new_own).members().into_iter().filter_map(standing).collect();
    // Members come before what is in them: of a list item and its fields, the fields are what is said.
    let holds_another =
        |at: usize| found.get(at + 1).is_some_and(|next: &Survivor| next.path.starts_with(&found[at].path));
    let innermost = (0..found.len()).filter(|at| !holds_another(*at));
    innermost.map(|at| found[at].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn entry(manager: &str, fields: Value) -> Entry {
        let entry = json!({"manager": manager, "operation": "Update", "fieldsV1": fields});
        Entry::read(entry.as_object().unwrap())
    }

    #[test]
    fn what_others_hold_survives() {
        let item = |fields: Value| json!({"f:c": {"k:{\"name\":\"x\"}": fields}, "f:data": {"f:b": {}}});
        let old = FieldSet::parse(&json!({
            "f:data": {"f:a": {}, "f:b": {}, "f:d": {}},
            "f:c": {"k:{\"name\":\"x\"}": {".": {}, "f:i": {}, "f:name": {}}},
        }));
        let new = FieldSet::parse(&json!({"f:data": {"f:b": {}}}));
        let check = |foreign: &[Entry], expect: &[(&str, &[&str])]| {
            let found = removed(&old, &new, foreign);
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
        // An item stays while anything in it is another's.
        check(&[entry("e", item(json!({"f:env": {}})))], &[("c[name=x]", &["e"])]);
        check(&[entry("e", item(json!({".": {}, "f:i": {}})))], &[("c[name=x].i", &["e"])]);
    }
}
