//! Plural resource names of kinds, as used in RBAC rules.
//!
//! In: the definitions at hand.
//! Out: the plural, and false if it is guessed by the rules of Kubernetes' own tools.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::desired::{DesiredSet, Scopes};
use moorline_core::object::GroupKind;

/// Plural resource names by kind.
#[derive(Debug, Clone, Default)]
pub struct PluralNames(BTreeMap<GroupKind, Box<str>>);

impl PluralNames {
    /// Creates the names that a server reported.
    pub fn from_discovery(served: impl Iterator<Item = (GroupKind, Box<str>)>) -> Self {
        Self(served.collect())
    }

    /// Adds the names from the definitions of a set.
    pub(super) fn with_definitions(mut self, desired: &DesiredSet) -> Self {
        let definitions = desired.objects().iter();
        let definitions =
            definitions.filter(|it| it.id.is_kind("apiextensions.k8s.io", "CustomResourceDefinition"));
        let named = definitions.filter_map(|definition| {
            let body = definition.body();
            let spec = body.get("spec")?;
            let text = |value: Option<&Value>| value?.as_str().map(str::to_owned);
            let (group, names) = (text(spec.get("group"))?, spec.get("names")?);
            let (kind, plural) = (text(names.get("kind"))?, text(names.get("plural"))?);
            Some((GroupKind::new(&group, &kind), plural.into()))
        });
        self.0.extend(named);
        self
    }

    /// Returns the plural of a kind, and true if it is not guessed.
    pub(super) fn plural_of(&self, group: &str, kind: &str) -> (Box<str>, bool) {
        match self.0.get(&GroupKind::new(group, kind)) {
            Some(plural) => (plural.clone(), true),
            // The plurals of our own kinds follow the rule.
            None => {
                (plural(kind).into(), group == "moorline.dev" || Scopes::builtin().get(group, kind).is_some())
            }
        }
    }
}

/// Forms the plural in lower case by the English rules that kinds follow.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    let is_vowel = |char: char| "aeiou".contains(char);
    match kind.strip_suffix('y') {
        _ if kind == "endpoints" => kind,
        Some(stem) if !stem.ends_with(is_vowel) => format!("{stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| kind.ends_with(end)) => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_english() {
        for (kind, expect) in [
            ("Pod", "pods"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Endpoints", "endpoints"),
            ("IPAddress", "ipaddresses"),
            ("Mesh", "meshes"),
        ] {
            assert_eq!(plural(kind), expect);
        }
    }
}
