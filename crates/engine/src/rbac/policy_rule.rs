//! One rule of an RBAC Role.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

type Words = BTreeSet<Box<str>>;

/// A rule: verbs on resources of API groups, optionally limited to names.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyRule {
    /// API groups; `*` matches all.
    pub groups: Words,
    /// Resources, with subresources after a slash; `*` matches all.
    pub resources: Words,
    /// Names of objects; empty means all.
    pub names: Words,
    /// Non-resource URLs.
    pub urls: Words,
    /// Verbs; `*` matches all.
    pub verbs: Words,
}

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Words {
    words.into_iter().map(Box::from).collect()
}

impl PolicyRule {
    /// Creates a rule for one resource.
    pub(super) fn for_resource(group: &str, resource: &str, verbs: &[&str]) -> Self {
        Self {
            groups: words([group]),
            resources: words([resource]),
            verbs: words(verbs.iter().copied()),
            ..Self::default()
        }
    }

    /// Limits the rule to objects of these names.
    pub(super) fn with_names<'a>(self, names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { names: words(names), ..self }
    }

    /// Parses a rule of a Role; none if it is invalid.
    pub(super) fn parse(rule: &Value) -> Option<Self> {
        let list = |field: &str| -> Option<Words> {
            match rule.get(field) {
                None | Some(Value::Null) => Some(Words::new()),
                Some(list) => list.as_array()?.iter().map(|word| word.as_str().map(Box::from)).collect(),
            }
        };
        let parsed = Self {
            groups: list("apiGroups")?,
            resources: list("resources")?,
            names: list("resourceNames")?,
            urls: list("nonResourceURLs")?,
            verbs: list("verbs")?,
        };
        (!parsed.verbs.is_empty()).then_some(parsed)
    }

    /// Returns the rule as JSON.
    pub(super) fn to_json(&self) -> Value {
        let mut rule = Map::new();
        let mut put = |name: &str, words: &Words| {
            if !words.is_empty() {
                rule.insert(name.to_owned(), json!(words));
            }
        };
        put("apiGroups", &self.groups);
        put("resources", &self.resources);
        put("resourceNames", &self.names);
        put("nonResourceURLs", &self.urls);
        put("verbs", &self.verbs);
        Value::Object(rule)
    }

    /// True if the rule allows one of these verbs.
    pub(super) fn allows(&self, verbs: &[&str]) -> bool {
        has(&self.verbs, verbs)
    }

    /// True if the rule applies to one of these resources of a group.
    pub(super) fn is_about(&self, group: &str, resources: &[&str]) -> bool {
        has(&self.groups, &[group]) && has(&self.resources, resources)
    }
}

fn has(words: &Words, wanted: &[&str]) -> bool {
    words.contains("*") || wanted.iter().any(|word| words.contains(*word))
}

/// Merges rules: resources of one group with the same verbs share a rule.
pub(super) fn merged(rules: &BTreeSet<PolicyRule>) -> BTreeSet<PolicyRule> {
    type Key = (Words, Words, Words, Words);
    let mut shared = BTreeMap::<Key, Words>::new();
    for rule in rules {
        let PolicyRule { groups, resources, names, urls, verbs } = rule.clone();
        shared.entry((groups, names, urls, verbs)).or_default().extend(resources);
    }
    let whole = shared.into_iter().map(|((groups, names, urls, verbs), resources)| PolicyRule {
        groups,
        resources,
        names,
        urls,
        verbs,
    });
    whole.collect()
}
