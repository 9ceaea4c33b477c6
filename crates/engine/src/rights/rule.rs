//! One rule of a Role, as RBAC has it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

type Words = BTreeSet<Box<str>>;

/// A rule: these verbs on these resources of these groups, perhaps of these names only.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// API groups; `*` stands for all.
    pub groups: Words,
    /// Resources, subresources after a slash; `*` stands for all.
    pub resources: Words,
    /// Names of objects; empty: all.
    pub names: Words,
    /// Paths that are no resources.
    pub urls: Words,
    /// Verbs; `*` stands for all.
    pub verbs: Words,
}

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Words {
    words.into_iter().map(Box::from).collect()
}

impl Rule {
    /// Verbs on one resource.
    pub(super) fn of(group: &str, resource: &str, verbs: &[&str]) -> Self {
        Self {
            groups: words([group]),
            resources: words([resource]),
            verbs: words(verbs.iter().copied()),
            ..Self::default()
        }
    }

    /// The same, for objects of these names only.
    pub(super) fn named<'a>(self, names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { names: words(names), ..self }
    }

    /// The rule of a Role; none where it is not one.
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

    /// The rule as a Role has it.
    pub(super) fn value(&self) -> Value {
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

    /// True if one of these verbs is among those of the rule.
    pub(super) fn allows(&self, verbs: &[&str]) -> bool {
        has(&self.verbs, verbs)
    }

    /// True if the rule is about one of these resources of a group.
    pub(super) fn is_about(&self, group: &str, resources: &[&str]) -> bool {
        has(&self.groups, &[group]) && has(&self.resources, resources)
    }
}

fn has(words: &Words, wanted: &[&str]) -> bool {
    words.contains("*") || wanted.iter().any(|word| words.contains(*word))
}

/// The same rights in fewer rules: resources of one group with the same verbs share a rule.
pub(super) fn merged(rules: &BTreeSet<Rule>) -> BTreeSet<Rule> {
    type Key = (Words, Words, Words, Words);
    let mut shared = BTreeMap::<Key, Words>::new();
    for rule in rules {
        let Rule { groups, resources, names, urls, verbs } = rule.clone();
        shared.entry((groups, names, urls, verbs)).or_default().extend(resources);
    }
    let whole = shared.into_iter().map(|((groups, names, urls, verbs), resources)| Rule {
        groups,
        resources,
        names,
        urls,
        verbs,
    });
    whole.collect()
}
