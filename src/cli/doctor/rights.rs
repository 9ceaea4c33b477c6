//! Checks permissions: those of the caller, and those of the daemon's ServiceAccount.
//!
//! In: access reviews. Out: the rights that are missing. The daemon needs the rules of its own
//! roles, as the installation has them; rights on the objects of Syncs are reported by each Sync.

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::super::install::daemon_rules;
use super::super::installation::Daemon;
use super::finding::Finding;
use crate::cluster::Connection;

/// The most reviews at one time.
const MAX_CONCURRENT: usize = 8;

/// Names of the Lease and of the key Secret in the rules of the default installation.
const LEASE: &str = "moorline";
const KEYS: &str = "moorline-key";

/// A right of the caller.
struct CallerRight {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    /// True if it is needed in the namespace of the daemon alone.
    is_own: bool,
    /// The commands that need it.
    commands: &'static str,
}

const fn right(
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    is_own: bool,
    commands: &'static str,
) -> CallerRight {
    CallerRight { verb, group, resource, is_own, commands }
}

/// The rights that the commands for operators need.
const CALLER: [CallerRight; 6] = [
    right("list", "moorline.dev", "syncs", false, "status -A, doctor"),
    right("patch", "moorline.dev", "syncs", false, "sync, approve, suspend, resume, move"),
    right("delete", "moorline.dev", "syncs", false, "delete"),
    right("list", "events.k8s.io", "events", false, "events"),
    right("get", "coordination.k8s.io", "leases", true, "status, doctor"),
    right("list", "apps", "deployments", true, "version, doctor"),
];

pub(super) async fn check_caller(connection: &Connection, namespace: &str) -> Finding {
    let mut missing = Vec::new();
    for right in &CALLER {
        let mut attributes = json!({"verb": right.verb, "group": right.group, "resource": right.resource});
        if right.is_own {
            attributes["namespace"] = namespace.into();
        }
        match connection.may_caller(&attributes).await {
            Some(true) => {}
            Some(false) => missing.push((describe(&attributes), right.commands)),
            None => {
                let remedy = "try again";
                return Finding::unknown(
                    "your rights",
                    "the API server does not say what you may do",
                    remedy,
                );
            }
        }
    }
    judge_caller(&missing)
}

fn judge_caller(missing: &[(String, &str)]) -> Finding {
    let check = "your rights";
    if missing.is_empty() {
        return Finding::ok(check, "you may run every command for operators in all namespaces");
    }
    let rights: Vec<String> =
        missing.iter().map(|(right, commands)| format!("{right} (for moorline {commands})")).collect();
    let message = format!("you may not {}", rights.join(", "));
    Finding::warning(
        check,
        message,
        "ask an administrator for these, or use the commands with -n in your namespaces",
    )
}

pub(super) async fn check_daemon(
    connection: &Connection,
    daemon: &Daemon,
    namespace: &str,
) -> anyhow::Result<Finding> {
    let Some(account) = daemon.account() else {
        let message = "without a Deployment, the ServiceAccount of the daemon is not known";
        return Ok(Finding::unknown("daemon's rights", message, "name the namespace of the daemon with -n"));
    };
    let (wide, own) = daemon_rules()?;
    let names = Names::of(daemon);
    let wide = wide.iter().flat_map(|rule| rights_of(rule, None, &names));
    let own = own.iter().flat_map(|rule| rights_of(rule, Some(namespace), &names));
    let asked: Vec<Value> = wide.chain(own).collect();
    let answers = asked.iter().map(|attributes| connection.may_account(namespace, account, attributes));
    let answers: Vec<Option<bool>> = futures::stream::iter(answers).buffered(MAX_CONCURRENT).collect().await;
    Ok(judge_daemon(&format!("{namespace}/{account}"), &asked, &answers))
}

/// Names that the rules of this daemon have instead of those of the default installation.
struct Names {
    lease: String,
    keys: String,
}

impl Names {
    fn of(daemon: &Daemon) -> Self {
        let lease = daemon.lease.rsplit('/').next().unwrap_or_default().to_owned();
        Self { keys: super::secrets::key_secret(daemon), lease }
    }

    fn replaced<'a>(&'a self, name: &'a str) -> &'a str {
        match name {
            LEASE => &self.lease,
            KEYS => &self.keys,
            other => other,
        }
    }
}

/// Splits a rule into rights, each as the attributes of an access review.
fn rights_of(rule: &Value, namespace: Option<&str>, names: &Names) -> Vec<Value> {
    let list = |name: &str| -> Vec<String> {
        let items = rule[name].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut named: Vec<Option<String>> =
        list("resourceNames").iter().map(|name| Some(names.replaced(name).to_owned())).collect();
    if named.is_empty() {
        named.push(None);
    }
    let mut rights = Vec::new();
    for (group, resource, verb) in list("apiGroups").iter().flat_map(|group| {
        let resources = list("resources");
        let verbs = list("verbs");
        resources.into_iter().flat_map(move |resource| {
            let of_verb = verbs.clone();
            of_verb.into_iter().map(move |verb| (group.clone(), resource.clone(), verb))
        })
    }) {
        let (resource, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
        for name in &named {
            let mut attributes = json!({"verb": verb, "group": group, "resource": resource});
            let optional =
                [("subresource", Some(subresource)), ("namespace", namespace), ("name", name.as_deref())];
            for (field, value) in optional {
                if let Some(value) = value.filter(|value| !value.is_empty()) {
                    attributes[field] = value.into();
                }
            }
            rights.push(attributes);
        }
    }
    rights
}

fn judge_daemon(account: &str, asked: &[Value], answers: &[Option<bool>]) -> Finding {
    let check = "daemon's rights";
    if answers.iter().all(Option::is_none) {
        let message = format!("you may not ask what the ServiceAccount {account} may do");
        return Finding::unknown(check, message, "get the permission to create subjectaccessreviews");
    }
    let denied =
        asked.iter().zip(answers).filter(|(_, answer)| **answer == Some(false)).map(|(right, _)| right);
    let (optional, missing): (Vec<&Value>, Vec<&Value>) = denied.partition(|right| is_optional(right));
    if missing.is_empty() {
        let note = match optional.is_empty() {
            true => "",
            false => ", but not update the CustomResourceDefinition of Sync (rbac.updateDefinition)",
        };
        return Finding::ok(check, format!("the ServiceAccount {account} may serve Syncs{note}"));
    }
    let missing: Vec<String> = missing.into_iter().map(describe).collect();
    let message = format!("the ServiceAccount {account} may not {}", missing.join(", "));
    let remedy = "apply the roles of the installation again: helm upgrade, or moorline install";
    Finding::error(check, message, remedy)
}

/// True for the right that the chart grants only with `rbac.updateDefinition`.
fn is_optional(right: &Value) -> bool {
    right["resource"] == "customresourcedefinitions" && right["verb"] == "patch"
}

/// A right in words: `patch syncs.moorline.dev in the namespace a`.
fn describe(attributes: &Value) -> String {
    let text = |name: &str| attributes[name].as_str().filter(|text| !text.is_empty());
    let mut words = format!("{} {}", text("verb").unwrap_or_default(), text("resource").unwrap_or_default());
    for (before, name) in
        [("/", "subresource"), (".", "group"), (" ", "name"), (" in the namespace ", "namespace")]
    {
        if let Some(value) = text(name) {
            words = format!("{words}{before}{value}");
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn names() -> Names {
        Names { lease: "moorline-blue".to_owned(), keys: "keys".to_owned() }
    }

    #[test]
    fn a_rule_is_split_into_the_rights_that_are_asked_for() {
        let check = |rule: Value, namespace: Option<&str>, expect: &[&str]| {
            let rights: Vec<String> = rights_of(&rule, namespace, &names()).iter().map(describe).collect();
            assert_eq!(rights, expect);
        };
        let status = json!({"apiGroups": ["moorline.dev"], "resources": ["syncs/status"], "verbs": ["update", "patch"]});
        check(status, None, &["update syncs/status.moorline.dev", "patch syncs/status.moorline.dev"]);
        let keys = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["moorline-key"], "verbs": ["patch"]});
        check(keys, Some("a"), &["patch secrets keys in the namespace a"]);
        let lease = json!({"apiGroups": ["b"], "resources": ["leases"], "resourceNames": ["moorline"], "verbs": ["update"]});
        check(lease, Some("a"), &["update leases.b moorline-blue in the namespace a"]);
    }

    #[test]
    fn rights_are_there_missing_or_not_known() {
        let asked = [
            json!({"verb": "get", "resource": "namespaces", "group": ""}),
            json!({"verb": "patch", "resource": "customresourcedefinitions", "group": "apiextensions.k8s.io"}),
        ];
        let check = |answers: [Option<bool>; 2], level: Level, part: &str| {
            let found = judge_daemon("a/b", &asked, &answers);
            assert!(found.level == level && found.text().contains(part), "{found:?}");
        };
        check([Some(true), Some(true)], Level::Ok, "the ServiceAccount a/b may serve Syncs");
        check([Some(true), Some(false)], Level::Ok, "rbac.updateDefinition");
        check([Some(false), Some(false)], Level::Error, "may not get namespaces; apply the roles");
        check([None, None], Level::Unknown, "create subjectaccessreviews");
        assert_eq!(judge_caller(&[]).level, Level::Ok);
        let found = judge_caller(&[("patch syncs.moorline.dev".to_owned(), "sync, approve")]);
        assert_eq!(found.level, Level::Warning);
        assert!(found.message.contains("you may not patch syncs.moorline.dev (for moorline sync, approve)"));
    }
}
