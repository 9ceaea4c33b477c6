//! What a kind is called in a rule: its resource, the plural in lower case.
//!
//! In: the definitions at hand. Out: the name, and whether it is known or guessed as Kubernetes' own tools would.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::desired::{DesiredSet, Scopes};
use moorline_core::object::GroupKind;

/// The resource names of kinds.
#[derive(Debug, Default)]
pub struct Plurals(BTreeMap<GroupKind, Box<str>>);

impl Plurals {
    /// Those that a server names.
    pub fn of(served: impl Iterator<Item = (GroupKind, Box<str>)>) -> Self {
        Self(served.collect())
    }

    /// With them, those that the definitions of a set give.
    pub(super) fn and_of(mut self, desired: &DesiredSet) -> Self {
        let definitions = desired.objects().iter();
        let definitions =
            definitions.filter(|it| it.id.is("apiextensions.k8s.io", "CustomResourceDefinition"));
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

    /// The name of a kind, and whether it is known.
    pub(super) fn of_kind(&self, group: &str, kind: &str) -> (Box<str>, bool) {
        match self.0.get(&GroupKind::new(group, kind)) {
            Some(plural) => (plural.clone(), true),
            None => (plural(kind).into(), Scopes::builtin().of(group, kind).is_some()),
        }
    }
}

/// The plural in lower case, by the rules of English that names of kinds keep to.
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
