//! Missing permissions of a Sync.
//!
//! In: [`Permissions`], and the rules that an account has, as the API server reports them.
//! Out: one line for each resource in each namespace, in the terms of a Role. A rule with names is
//! satisfied by one without, and not the other way round.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{ALL, Permissions, PolicyRule};

/// The rules of an account in one namespace, or in all.
#[derive(Debug, Clone, Default)]
pub struct GrantedRules(Vec<PolicyRule>);

impl GrantedRules {
    /// Reads a SelfSubjectRulesReview; none if the server does not know all rules.
    pub fn read(review: &Value) -> Option<Self> {
        let status = review.get("status")?;
        if status.get("incomplete").and_then(Value::as_bool).unwrap_or_default() {
            return None;
        }
        let rules = status.get("resourceRules")?.as_array()?;
        Some(Self(rules.iter().filter_map(PolicyRule::parse).collect()))
    }

    /// True if one of the rules allows this.
    fn allows(&self, group: &str, resource: &str, verb: &str, names: &BTreeSet<Box<str>>) -> bool {
        self.0.iter().any(|rule| {
            let has = |words: &BTreeSet<Box<str>>, word: &str| words.contains("*") || words.contains(word);
            let named = rule.names.is_empty() || !names.is_empty() && names.is_subset(&rule.names);
            has(&rule.groups, group)
                && has(&rule.verbs, verb)
                && named
                && has_resource(&rule.resources, resource)
        })
    }
}

/// True if a resource is among these; `*/scale` matches that subresource of every resource.
fn has_resource(words: &BTreeSet<Box<str>>, resource: &str) -> bool {
    let part = resource.split_once('/').map(|(_, part)| format!("*/{part}"));
    words.contains("*") || words.contains(resource) || part.is_some_and(|part| words.contains(&*part))
}

impl Permissions {
    /// Returns the missing permissions; `granted` holds the rules in each namespace, and
    /// cluster-wide ones under none.
    pub fn missing(&self, granted: &BTreeMap<Option<Box<str>>, GrantedRules>) -> Vec<String> {
        let everywhere = [(None, &self.cluster)].into_iter();
        let places =
            everywhere.chain(self.namespaces.iter().map(|(place, rules)| (Some(place.clone()), rules)));
        let mut lines = BTreeSet::new();
        for (place, rules) in places {
            let Some(granted) = granted.get(&place) else { continue };
            let within = place.map(|place| format!(" in {place}")).unwrap_or_default();
            lines.extend(rules.iter().flat_map(|rule| lacks(rule, granted)).map(|line| line + &within));
        }
        lines.into_iter().collect()
    }
}

/// Returns the missing verbs of one rule, for each resource.
fn lacks(rule: &PolicyRule, granted: &GrantedRules) -> Vec<String> {
    let mut lines = Vec::new();
    for (group, resource) in
        rule.groups.iter().flat_map(|group| rule.resources.iter().map(move |it| (group, it)))
    {
        let mut verbs: Vec<&str> = rule.verbs.iter().map(|verb| &**verb).collect();
        verbs.retain(|verb| !granted.allows(group, resource, verb, &rule.names));
        verbs.sort_by_key(|verb| ALL.iter().position(|known| known == verb).unwrap_or(ALL.len()));
        let Some((last, first)) = verbs.split_last() else { continue };
        let verbs =
            if first.is_empty() { (*last).to_owned() } else { format!("{} and {last}", first.join(", ")) };
        let resource = if group.is_empty() { resource.to_string() } else { format!("{resource}.{group}") };
        lines.push(format!("{verbs} {resource}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn granted(rules: Value) -> GrantedRules {
        GrantedRules::read(&json!({"status": {"incomplete": false, "resourceRules": rules}})).unwrap()
    }

    fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
        PolicyRule::for_resource(group, resource, verbs)
    }

    #[test]
    fn missing_permissions_are_listed_by_resource() {
        let mut rights = Permissions::default();
        rights.cluster.insert(rule("scheduling.k8s.io", "priorityclasses", &ALL));
        let shop = rights.namespaces.entry("shop".into()).or_default();
        shop.insert(rule("", "configmaps", &ALL));
        shop.insert(rule("apps", "deployments", &ALL));
        shop.insert(rule("apps", "deployments/scale", &["patch"]));
        let all = BTreeMap::from([
            (None, granted(json!([]))),
            (
                Some("shop".into()),
                granted(json!([
                    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
                    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]},
                    {"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["patch"]},
                ])),
            ),
        ]);
        assert_eq!(
            rights.missing(&all),
            [
                "create, patch and delete configmaps in shop",
                "get, list, watch, create, patch and delete priorityclasses.scheduling.k8s.io"
            ]
        );
        let admin = granted(json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]));
        let admin = BTreeMap::from([(None, admin.clone()), (Some("shop".into()), admin)]);
        assert!(rights.missing(&admin).is_empty());
    }

    #[test]
    fn a_name_is_not_all_names() {
        let named =
            json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["a"]}]);
        let check = |rule: PolicyRule| {
            let rights = Permissions { cluster: [rule].into(), ..Permissions::default() };
            rights.missing(&[(None, granted(named.clone()))].into()).len()
        };
        assert_eq!(check(rule("", "secrets", &["get"])), 1);
        assert_eq!(check(rule("", "secrets", &["get"]).with_names(["a"])), 0);
        assert_eq!(check(rule("", "secrets", &["get"]).with_names(["a", "b"])), 1);
    }

    #[test]
    fn what_the_server_does_not_know_counts_for_nothing() {
        assert!(GrantedRules::read(&json!({"status": {"incomplete": true, "resourceRules": []}})).is_none());
        assert!(GrantedRules::read(&json!({})).is_none());
        assert!(Permissions::default().missing(&BTreeMap::new()).is_empty());
    }
}
