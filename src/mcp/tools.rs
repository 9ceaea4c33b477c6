//! The tools that a client may call: names, descriptions and arguments.
//!
//! In: the name of a tool and its arguments. Out: a [`ToolCall`]. Each tool only reads; there is
//! none that approves anything.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::name_rules;

/// The most characters of an argument.
const MAX_ARGUMENT_CHARS: usize = 512;

/// The name of the tool that is off without `--logs`.
const LOGS: &str = "logs";
/// The tools that the console serves: they need the statuses of Syncs alone.
const OF_CONSOLE: [&str; 4] = ["list_syncs", "why", "history", "propose"];

/// The tools of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ToolSet {
    /// Those of `moorline mcp`.
    #[default]
    Local,
    /// Those of `moorline mcp --logs`.
    LocalWithLogs,
    /// Those of the console.
    Console,
}

impl ToolSet {
    fn has(self, tool: &str) -> bool {
        match self {
            Self::Local => tool != LOGS,
            Self::LocalWithLogs => true,
            Self::Console => OF_CONSOLE.contains(&tool),
        }
    }
}

/// A Sync.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SyncQuery {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
}

/// A Sync at a revision.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanQuery {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) revision: Option<String>,
    /// Of `diff`: the object, as Kind/name.
    pub(crate) object: Option<String>,
}

/// The Syncs of a namespace, or all.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    pub(crate) namespace: Option<String>,
    #[serde(default)]
    pub(crate) not_ready: bool,
}

/// A schema, or a part of one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchemaQuery {
    pub(crate) name: Option<String>,
    pub(crate) field: Option<String>,
}

/// The last lines of a container.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogQuery {
    pub(crate) pod: String,
    pub(crate) namespace: String,
    pub(crate) container: Option<String>,
    #[serde(default)]
    pub(crate) previous: bool,
}

/// A write that a person may make.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProposalQuery {
    pub(crate) action: ProposedAction,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) reason: Option<String>,
}

/// Kind of a proposed write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProposedAction {
    Sync,
    Suspend,
    Resume,
    Rollback,
    Release,
}

/// A call with valid arguments.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolCall {
    ListSyncs(ListQuery),
    Why(SyncQuery),
    Plan(PlanQuery),
    Diff(PlanQuery),
    History(SyncQuery),
    Schema(SchemaQuery),
    Logs(LogQuery),
    Propose(ProposalQuery),
}

/// A tool: name, description, arguments that are needed, and those that may be given.
struct Tool {
    name: &'static str,
    about: &'static str,
    needed: &'static [&'static str],
    optional: &'static [&'static str],
}

const TOOLS: [Tool; 8] = [
    Tool {
        name: "list_syncs",
        about: "Lists the Syncs, with state, revision and numbers of objects.",
        needed: &[],
        optional: &["namespace", "not_ready"],
    },
    Tool {
        name: "why",
        about: "Says why a Sync is in its state: cause, advice, conditions, problems, and what waits for a person.",
        needed: &["name"],
        optional: &["namespace"],
    },
    Tool {
        name: "plan",
        about: "Shows what the next commit of a Sync, or another revision, would change, with the hash of that plan. Values of Secrets are hidden.",
        needed: &["name"],
        optional: &["namespace", "revision"],
    },
    Tool {
        name: "history",
        about: "Lists the last revisions of a Sync with their result, subject and author.",
        needed: &["name"],
        optional: &["namespace"],
    },
    Tool {
        name: "diff",
        about: "Shows the fields in which live objects of a Sync differ from Git. Values of Secrets are hidden.",
        needed: &["name"],
        optional: &["namespace", "revision", "object"],
    },
    Tool {
        name: "schema",
        about: "Returns the JSON schema of a document, or of a field of it such as items.spec.source; without a name the list of documents.",
        needed: &[],
        optional: &["name", "field"],
    },
    Tool {
        name: "propose",
        about: "Returns the command for a change that a person may make: sync, suspend, resume, rollback or release. Nothing is changed.",
        needed: &["action", "name"],
        optional: &["namespace", "revision", "reason"],
    },
    Tool {
        name: LOGS,
        about: "Returns the last lines that a container of a Pod wrote.",
        needed: &["pod", "namespace"],
        optional: &["container", "previous"],
    },
];

/// The tools as `tools/list` returns them.
pub(crate) fn tool_list(set: ToolSet) -> Vec<Value> {
    let shown = TOOLS.iter().filter(|tool| set.has(tool.name));
    shown.map(|tool| {
        let names = tool.needed.iter().chain(tool.optional);
        let properties: Value = names.map(|name| ((*name).to_owned(), argument(name, set))).collect();
        // The console has no kubeconfig that names a namespace.
        let of_sync = (set == ToolSet::Console && tool.needed.contains(&"name")).then_some(&"namespace");
        let needed: Vec<_> = tool.needed.iter().chain(of_sync).collect();
        json!({
            "name": tool.name, "description": tool.about,
            "inputSchema": {
                "type": "object", "properties": properties, "required": needed, "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": true, "openWorldHint": true},
        })
    }).collect()
}

fn argument(name: &str, set: ToolSet) -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    match name {
        "not_ready" => json!({"type": "boolean", "description": "True for those that are not ready."}),
        "previous" => {
            json!({"type": "boolean", "description": "True for the container before its last restart."})
        }
        "action" => json!({"type": "string", "enum": ["sync", "suspend", "resume", "rollback", "release"]}),
        "namespace" if set == ToolSet::Console => text("The namespace; list_syncs lists all without it."),
        "namespace" => text("The namespace; by default that of the kubeconfig, and of list_syncs all."),
        "revision" => text("A commit, branch or tag; by default the one that the Sync follows."),
        "object" => text("One object, as Kind/name, Kind.group/name or Kind/namespace/name."),
        "reason" => text("The reason; a rollback needs one."),
        "field" => text("A path of fields in the schema, such as items.status.conditions."),
        "container" => text("The container; by default the only one."),
        "pod" => text("The name of the Pod."),
        _ => text("The name."),
    }
}

impl ToolCall {
    /// Finds a tool by its name.
    pub(crate) fn find(name: &str, set: ToolSet) -> Result<&'static str, String> {
        match TOOLS.iter().find(|tool| tool.name == name) {
            Some(tool) if set.has(tool.name) => Ok(tool.name),
            Some(tool) if tool.name == LOGS && set == ToolSet::Local => {
                Err("logs are off: start `moorline mcp --logs` to allow them".to_owned())
            }
            Some(_) | None => Err("there is no such tool".to_owned()),
        }
    }

    /// Reads the arguments of a tool.
    pub(crate) fn parse(tool: &str, arguments: Option<&Value>) -> Result<Self, String> {
        let arguments = arguments.cloned().unwrap_or_else(|| json!({}));
        let Value::Object(fields) = &arguments else {
            return Err("`arguments` has to be an object".to_owned());
        };
        for (name, value) in fields {
            let text = value.as_str().unwrap_or_default();
            if text.chars().count() > MAX_ARGUMENT_CHARS {
                return Err(format!("`{name}` has more than {MAX_ARGUMENT_CHARS} characters"));
            }
            let problem = match name.as_str() {
                "namespace" => name_rules::namespace(text),
                // A schema has a name of its own kind, which is looked up.
                "name" if tool != "schema" => name_rules::sync_name(text),
                "pod" | "container" if !is_path_segment(text) => Some("is no name"),
                "revision" if !is_revision(text) => Some("is no commit, branch or tag"),
                "object" if !names_object(text) => Some("names no object: write Kind/name"),
                _ => None,
            };
            if let Some(problem) = problem {
                return Err(format!("`{name}`: {problem}"));
            }
        }
        serde_json::from_value(json!({tool: arguments})).map_err(|error| error.to_string())
    }
}

/// True if a text names an object: Kind/name or Kind/namespace/name.
fn names_object(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    (2..=3).contains(&parts.len()) && !parts.iter().any(|part| part.is_empty())
}

/// True if a text is one segment of a path, and needs no escaping there.
fn is_path_segment(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    !text.is_empty() && text.bytes().all(fits) && !text.starts_with(['.', '-'])
}

/// True if a text can be a commit, a branch or a tag, and needs no quotes in a shell.
fn is_revision(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/@:+".contains(&byte);
    !text.is_empty() && text.bytes().all(fits) && !text.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_refused() {
        let shop = || SyncQuery { name: "shop".to_owned(), namespace: None };
        assert_eq!(ToolCall::parse("why", Some(&json!({"name": "shop"}))), Ok(ToolCall::Why(shop())));
        for (tool, arguments, part) in [
            ("why", json!({}), "name"),
            ("why", json!([]), "object"),
            ("why", json!({"name": 5}), "`name`"),
            ("why", json!({"name": "a b"}), "`name`"),
            ("why", json!({"name": "shop", "namespace": "../x"}), "`namespace`"),
            ("why", json!({"name": "shop", "force": true}), "force"),
            ("plan", json!({"name": "shop", "revision": "$(reboot)"}), "`revision`"),
            ("plan", json!({"name": "shop", "revision": "--take-over"}), "`revision`"),
            ("diff", json!({"name": "shop", "object": "web"}), "Kind/name"),
            ("logs", json!({"pod": "../secrets", "namespace": "a"}), "`pod`"),
            ("logs", json!({"pod": "a", "namespace": "a", "container": "b?x=1"}), "`container`"),
            ("propose", json!({"name": "shop", "action": "approve"}), "approve"),
            ("propose", json!({"name": "shop", "action": "sync", "reason": "x".repeat(600)}), "`reason`"),
        ] {
            let told = ToolCall::parse(tool, Some(&arguments));
            assert!(told.clone().is_err_and(|told| told.contains(part)), "{tool} {arguments}: {told:?}");
        }
    }

    #[test]
    fn no_tool_approves_and_logs_are_off() {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        assert!(!names.iter().any(|name| name.contains("approve") || name.contains("apply")));
        let count = |set| tool_list(set).len();
        assert_eq!(count(ToolSet::Local) + 1, count(ToolSet::LocalWithLogs));
        assert_eq!(count(ToolSet::Console), OF_CONSOLE.len());
        for (tool, set, expect) in [
            ("logs", ToolSet::Local, false),
            ("logs", ToolSet::LocalWithLogs, true),
            ("logs", ToolSet::Console, false),
            ("plan", ToolSet::Console, false),
            ("why", ToolSet::Console, true),
            ("approve", ToolSet::LocalWithLogs, false),
        ] {
            assert_eq!(ToolCall::find(tool, set).is_ok(), expect, "{tool} {set:?}");
        }
        for tool in TOOLS {
            for name in tool.needed.iter().chain(tool.optional) {
                let (text, flag) = (json!({*name: "Kind/a"}), json!({*name: true}));
                let known = [text, flag].iter().any(|given| {
                    ToolCall::parse(tool.name, Some(given))
                        .err()
                        .is_none_or(|told| !told.contains("unknown field"))
                });
                assert!(known, "{} {name}", tool.name);
            }
        }
    }
}
