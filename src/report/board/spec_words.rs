//! Describes the spec of a Sync in plain words, for people who do not know its fields.
//!
//! In: a [`SyncSpec`]. Out: titles with a sentence each, also for defaults that the spec leaves
//! out. No text of the spec is repeated that could contain a login.

use crate::api::{
    ConflictPolicy, DeletionPolicy, DriftMode, ExtraFieldPolicy, PruneBudget, PrunePolicy, SyncSpec,
};
use crate::grammar::counted;
use crate::plan::PruneBudget as Limits;

/// The most names in a sentence.
const MAX_NAMES: usize = 8;

/// One setting of a Sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecSentence {
    /// The subject, such as `Prune`.
    pub title: &'static str,
    /// The sentence.
    pub text: Box<str>,
}

/// Describes a spec.
pub fn describe_spec(spec: &SyncSpec) -> Box<[SpecSentence]> {
    let mut all = vec![
        sentence("Prune", prune(&spec.prune)),
        sentence("When the Sync is deleted", deletion(spec.deletion_policy).to_owned()),
        sentence("Edits by others", drift(spec.drift.mode).to_owned()),
        sentence("Fields that others add", extra(spec.drift.extra_fields).to_owned()),
        sentence("Fields that others own", conflicts(spec.conflicts).to_owned()),
        sentence("Health", health(spec)),
        sentence("Time limit", time_limit(spec.timeout.as_str())),
    ];
    if spec.rollback.on_failure {
        let text = "If the objects of a commit fail, the last healthy revision is applied again.";
        all.push(sentence("Rollback", text.to_owned()));
    }
    if let Some(namespace) = &spec.target_namespace {
        let created = if spec.create_namespace { ", which is created if it is missing" } else { "" };
        let text = format!("Objects that name no namespace are applied to {namespace}{created}.");
        all.push(sentence("Namespace", text));
    }
    if !spec.ignore_fields.is_empty() {
        let paths = spec.ignore_fields.iter().flat_map(|ignored| ignored.paths.iter().map(String::as_str));
        all.push(sentence("Ignored fields", format!("These are left to others: {}.", named(paths))));
    }
    if spec.decryption.is_some() {
        all.push(sentence("Encrypted files", "Files that SOPS encrypted are decrypted.".to_owned()));
    }
    if spec.suspend {
        let text = "The repository is not polled, and nothing is applied.";
        all.push(sentence("Suspended", text.to_owned()));
    }
    all.into()
}

fn sentence(title: &'static str, text: String) -> SpecSentence {
    SpecSentence { title, text: text.into() }
}

fn time_limit(limit: &str) -> String {
    format!("One reconcile may wait {limit} for fetches, for objects that others need, and for deletions.")
}

fn prune(policy: &PrunePolicy) -> String {
    if !policy.enabled {
        return "Objects that Git no longer contains stay in the cluster.".to_owned();
    }
    let mut text =
        format!("Objects that Git no longer contains are deleted. {}", budget(policy.budget.as_ref()));
    if !policy.protect.is_empty() {
        let kinds = named(policy.protect.iter().map(String::as_str));
        text += &format!(" Deletions of these kinds always wait: {kinds}.");
    }
    text
}

fn budget(budget: Option<&PruneBudget>) -> String {
    let (count, percent) = match budget.map(|budget| (budget.count, budget.percent)) {
        None | Some((None, None)) => {
            (Some(i32::from(Limits::DEFAULT_COUNT)), Some(i32::from(Limits::DEFAULT_PERCENT)))
        }
        Some(limits) => limits,
    };
    // Each deletion is more than 0.
    let count = count.filter(|count| *count > 0).map(|count| counted(count, "object"));
    let percent = percent.filter(|percent| *percent > 0);
    let percent = percent.map(|percent| format!("{percent} % of the objects of the Sync"));
    let limits: Vec<String> =
        count.into_iter().chain(percent).map(|limit| format!("more than {limit}")).collect();
    match limits.is_empty() {
        true => "Every deletion waits for approval.".to_owned(),
        false => format!("If a commit deletes {}, the deletion waits for approval.", limits.join(" and ")),
    }
}

fn deletion(policy: DeletionPolicy) -> &'static str {
    match policy {
        DeletionPolicy::Orphan => "Its objects stay in the cluster.",
        DeletionPolicy::Delete => "Its objects are deleted.",
    }
}

fn drift(mode: DriftMode) -> &'static str {
    match mode {
        DriftMode::Repair => {
            "Fields that Git sets are set again at once, and deleted objects are created again."
        }
        DriftMode::Report => "Changes and deletions are reported, and nothing is undone.",
        DriftMode::Ignore => "Changes are not checked; deletions are reported.",
    }
}

fn extra(policy: ExtraFieldPolicy) -> &'static str {
    match policy {
        ExtraFieldPolicy::Keep => "They stay.",
        ExtraFieldPolicy::Report => "They stay and are reported.",
        ExtraFieldPolicy::Remove => "They are removed.",
    }
}

fn conflicts(policy: ConflictPolicy) -> &'static str {
    match policy {
        ConflictPolicy::Force => "They are taken over.",
        ConflictPolicy::Yield => "They are left to their owner; the rest of the object is applied.",
        ConflictPolicy::Fail => "The object is held until a person resolves the conflict.",
    }
}

fn health(spec: &SyncSpec) -> String {
    let mut text = match spec.health.wait {
        true => "The Sync is ready when its objects are applied and healthy.",
        false => "The Sync is ready when its objects are applied, healthy or not.",
    }
    .to_owned();
    match &spec.health.timeout {
        Some(limit) => text += &format!(" An object without progress for {} is degraded.", limit.as_str()),
        None => text += " An object without progress is degraded after a time that depends on its kind.",
    }
    if !spec.health.rules.is_empty() {
        let kinds = named(spec.health.rules.iter().map(|rule| rule.kind.as_str()));
        text += &format!(" These kinds have rules of this Sync: {kinds}.");
    }
    text
}

/// Lists the first names.
fn named<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.collect();
    let shown = all[..all.len().min(MAX_NAMES)].join(", ");
    match all.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(more: Value) -> Vec<String> {
        let mut spec = json!({"source": {"git": {"url": "https://git.example/a"}}});
        let Value::Object(more) = more else { panic!("a literal mapping") };
        more.into_iter().for_each(|(key, value)| spec[key] = value);
        let spec: SyncSpec = serde_json::from_value(spec).unwrap();
        describe_spec(&spec).iter().map(|it| format!("{}: {}", it.title, it.text)).collect()
    }

    #[test]
    fn a_spec_is_shown_in_words_with_its_defaults() {
        let all = told(json!({}));
        for expect in [
            "Prune: Objects that Git no longer contains are deleted. If a commit deletes more than 10 objects \
             and more than 30 % of the objects of the Sync, the deletion waits for approval.",
            "When the Sync is deleted: Its objects stay in the cluster.",
            "Fields that others own: They are taken over.",
            "Time limit: One reconcile may wait 5m for fetches, for objects that others need, and for deletions.",
        ] {
            assert!(all.iter().any(|it| it == expect), "{expect}: {all:#?}");
        }
        assert_eq!(all.len(), 7, "{all:#?}");
        for (more, expect) in [
            (json!({"prune": {"enabled": false}}), "stay in the cluster."),
            (json!({"prune": {"budget": {"count": 0}}}), "Every deletion waits for approval."),
            (json!({"prune": {"budget": {"count": 1}}}), "deletes more than 1 object, the deletion waits"),
            (
                json!({"prune": {"budget": {"count": 0, "percent": 20}}}),
                "deletes more than 20 % of the objects",
            ),
            (json!({"prune": {"budget": {}}}), "more than 10 objects and more than 30 %"),
            (json!({"prune": {"protect": ["Secret"]}}), "always wait: Secret."),
            (json!({"drift": {"mode": "Report"}}), "nothing is undone."),
            (
                json!({"health": {"wait": false, "timeout": "3m"}}),
                "healthy or not. An object without progress for 3m",
            ),
            (json!({"targetNamespace": "shop"}), "applied to shop."),
            (json!({"rollback": {"onFailure": true}}), "last healthy revision"),
            (json!({"suspend": true}), "not polled"),
            (json!({"ignoreFields": [{"paths": ["/spec/replicas"]}]}), "left to others: /spec/replicas."),
        ] {
            let all = told(more);
            assert!(all.iter().any(|it| it.contains(expect)), "{expect}: {all:#?}");
        }
    }
}
