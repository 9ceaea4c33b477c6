//! Names of people from a provider or a proxy: with a prefix, and never those of Kubernetes itself.
//!
//! In: a name and groups as a provider gives them. Out: a [`Person`], or a [`NameError`]. Names
//! that begin with `system:` are refused before and after the prefix: they have rights in each
//! cluster.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::serve::viewer::Person;

/// Prefix of names that Kubernetes keeps for itself.
const RESERVED: &str = "system:";
/// The group of everyone whom the API server knows, which it adds by itself.
const EVERYONE: &str = "system:authenticated";
/// The most characters of a name.
const MAX_NAME: usize = 256;
/// The most groups of a person.
const MAX_GROUPS: usize = 500;

/// Rules for the names of a provider or a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NameRules {
    /// In front of each name.
    pub(super) prefix: Box<str>,
    /// Only groups that begin with this are kept.
    pub(super) groups: Box<str>,
}

/// The reason why a name is refused. The name is not quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NameError {
    #[error("names and groups that begin with system: are refused: they belong to Kubernetes")]
    Reserved,
    #[error("there is no user name, or it has more than 256 characters or control characters")]
    Name,
    #[error("a group is no text, or has more than 256 characters or control characters")]
    Group,
    #[error("there are more than 500 groups: keep some of them only by oidcGroups")]
    TooMany,
}

impl NameRules {
    /// Builds the person.
    pub(super) fn person<'a>(
        &self,
        user: &str,
        groups: impl IntoIterator<Item = &'a str>,
    ) -> Result<Person, NameError> {
        let user = self.name(user, NameError::Name)?;
        let mut known = Vec::new();
        for group in groups {
            let name = self.name(group, NameError::Group)?;
            if group.starts_with(&*self.groups) && !known.contains(&name) {
                known.push(name);
            }
            if known.len() > MAX_GROUPS {
                return Err(NameError::TooMany);
            }
        }
        known.push(EVERYONE.to_owned());
        Ok(Person { user, uid: None, groups: known, extra: BTreeMap::new() })
    }

    fn name(&self, name: &str, invalid: NameError) -> Result<String, NameError> {
        let whole = format!("{}{name}", self.prefix);
        if [name, whole.as_str()].iter().any(|name| is_reserved(name)) {
            return Err(NameError::Reserved);
        }
        let is_sound = !name.is_empty() && name.chars().count() <= MAX_NAME;
        if is_sound && !name.chars().any(char::is_control) { Ok(whole) } else { Err(invalid) }
    }
}

/// True for a name that Kubernetes keeps, in any case and with any space in front.
fn is_reserved(name: &str) -> bool {
    let front = name.trim_start().get(..RESERVED.len());
    front.is_some_and(|front| front.eq_ignore_ascii_case(RESERVED))
}

/// Reads groups from a claim: texts, or one text.
pub(super) fn groups_of(claim: &Value) -> Result<Vec<&str>, NameError> {
    match claim {
        Value::Null => Ok(Vec::new()),
        Value::String(one) => Ok(vec![one]),
        Value::Array(all) => all.iter().map(|group| group.as_str().ok_or(NameError::Group)).collect(),
        _ => Err(NameError::Group),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_prefix_and_are_never_those_of_kubernetes() {
        let rules = |prefix: &str, groups: &str| NameRules { prefix: prefix.into(), groups: groups.into() };
        let person = rules("oidc:", "team-").person("ada", ["team-a", "other", "team-a"]).unwrap();
        assert_eq!(
            (&*person.user, &person.groups[..]),
            ("oidc:ada", &["oidc:team-a".into(), EVERYONE.into()][..])
        );
        let many: Vec<String> = (0..=MAX_GROUPS).map(|number| format!("g{number}")).collect();
        let long = "a".repeat(MAX_NAME + 1);
        for (prefix, user, groups, expect) in [
            ("oidc:", "system:admin", &[][..], NameError::Reserved),
            ("oidc:", "System:admin", &[], NameError::Reserved),
            ("", " system:admin", &[], NameError::Reserved),
            ("oidc:", "ada", &["system:masters"], NameError::Reserved),
            ("sys", "tem:admin", &[], NameError::Reserved),
            ("sys", "ada", &["tem:masters"], NameError::Reserved),
            ("oidc:", "", &[], NameError::Name),
            ("oidc:", "a\nb", &[], NameError::Name),
            ("oidc:", &long, &[], NameError::Name),
            ("oidc:", "ada", &[""], NameError::Group),
        ] {
            let refused = rules(prefix, "").person(user, groups.iter().copied());
            assert_eq!(refused, Err(expect), "{prefix} {user} {groups:?}");
        }
        let all = || many.iter().map(String::as_str);
        assert_eq!(rules("", "").person("ada", all()), Err(NameError::TooMany));
        assert_eq!(rules("", "g1").person("ada", all()).unwrap().groups.len(), 112);
        // A group that is not kept is refused all the same.
        assert_eq!(rules("", "g").person("ada", ["system:masters"]), Err(NameError::Reserved));
    }
}
