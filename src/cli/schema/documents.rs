//! The schemas: one for each verb with `-o json`, and one for each path of `/api/v1`.
//!
//! In: the definition of Syncs, for what a status has. Out: [`DOCUMENTS`].

use serde_json::{Value, json};

use super::Document;
use super::clusters::{api_clusters, fleet};
use super::parts::{any, extended, flag, foreign, list, nullable, number, object, plain, text, time, word};
use crate::api;

const fn document(name: &'static str, version: u32, source: &'static str, schema: fn() -> Value) -> Document {
    Document { name, version, source, schema }
}

/// All documents.
pub const DOCUMENTS: [Document; 18] = [
    document("api-clusters", 1, "/api/v1/clusters", api_clusters),
    document("api-object", 1, "/api/v1/syncs/NAMESPACE/NAME/objects/GROUP/KIND/NAMESPACE/NAME", api_object),
    document("api-sync", 1, "/api/v1/syncs/NAMESPACE/NAME", api_sync),
    document("api-sync-diff", 1, "/api/v1/syncs/NAMESPACE/NAME/diff", api_sync_diff),
    document("api-sync-plan", 1, "/api/v1/syncs/NAMESPACE/NAME/plan", api_sync_plan),
    document("api-sync-settings", 1, "/api/v1/syncs/NAMESPACE/NAME/settings", api_sync_settings),
    document("api-sync-timeline", 1, "/api/v1/syncs/NAMESPACE/NAME/timeline", api_sync_timeline),
    document("api-syncs", 1, "/api/v1/syncs", api_syncs),
    document("artifact", 1, "moorline push -o json, moorline pull -o json", artifact),
    document("audit", 1, "each line of moorline audit -o json", audit),
    document("doctor", 1, "moorline doctor -o json", doctor),
    document("events", 1, "moorline events -o json", events),
    document("fleet", 1, "moorline status --fleet -o json", fleet),
    document("mcp", 1, "each answer of a tool of moorline mcp", mcp),
    document("plan", 1, "moorline plan -o json", plan),
    document("render", 1, "moorline render -o json", render),
    document("status", 1, "moorline status -o json", status),
    document("version", 1, "moorline version -o json", version),
];

fn artifact() -> Value {
    object(&[("files", number()), ("revision", text()), ("url", text())], &[])
}

fn audit() -> Value {
    let change = word(&["Created", "Updated", "Released", "Deleted", "Deleting"]);
    let reason = word(&[
        "Commit",
        "DriftRepaired",
        "Pruned",
        "Rollback",
        "Deleted",
        "Console",
        "HandOver",
        "NamespaceCreated",
        "Other",
        "Started",
        "Gap",
    ]);
    let texts = [
        "cluster",
        "sync",
        "commit",
        "revision",
        "tree",
        "verified",
        "chart",
        "render",
        "object",
        "before",
        "after",
        "uid",
        "version",
        "actor",
        "approval",
        "approver",
        "person",
        "action",
        "other",
        "torn",
        "daemon",
        "program",
        "clusterSecret",
    ];
    let mut sometimes: Vec<(&str, Value)> = texts.map(|name| (name, text())).to_vec();
    sometimes.extend([
        ("time", time()),
        ("change", change),
        ("unanswered", flag()),
        ("lost", number()),
        ("drift", object(&[], &[("manager", text()), ("fields", list(text()))])),
    ]);
    object(&[("hash", text()), ("prev", text()), ("reason", reason), ("seq", number())], &sometimes)
}

fn doctor() -> Value {
    let level = word(&["ok", "warning", "error", "unknown"]);
    let finding = object(&[("check", text()), ("level", level), ("message", text())], &[("remedy", text())]);
    object(&[("findings", list(finding))], &[])
}

/// A Kubernetes List.
fn kubernetes_list(item: Value) -> Value {
    let list_kind = json!({"type": "string", "const": "List"});
    object(&[("apiVersion", text()), ("items", list(item)), ("kind", list_kind)], &[])
}

fn events() -> Value {
    kubernetes_list(foreign("An Event of events.k8s.io/v1."))
}

fn render() -> Value {
    list(foreign("An object as it is in Git, rendered."))
}

fn status() -> Value {
    let mut sync = plain(&definition("/spec/versions/0/schema/openAPIV3Schema"));
    sync["required"] = json!(["apiVersion", "kind", "metadata", "spec"]);
    sync["properties"]["metadata"] = foreign("Metadata of Kubernetes.");
    sync["properties"]["apiVersion"] = text();
    sync["properties"]["kind"] = text();
    kubernetes_list(sync)
}

/// A part of the definition of Syncs.
fn definition(pointer: &str) -> Value {
    let definition = api::definition().unwrap_or_default();
    definition.pointer(pointer).cloned().unwrap_or_default()
}

/// A field of the status of a Sync.
fn of_status(field: &str) -> Value {
    plain(&definition(&format!(
        "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/{field}"
    )))
}

fn version() -> Value {
    let client = object(&[("commit", nullable(text())), ("target", text()), ("version", text())], &[]);
    let daemon = object(&[("image", nullable(text())), ("lease", text()), ("version", text())], &[]);
    let of = |version: Value| object(&[("version", version)], &[]);
    let sometimes = [("daemons", list(daemon)), ("definition", of(nullable(text()))), ("server", of(text()))];
    object(&[("client", client)], &sometimes)
}

/// The four parts of an object's identity.
fn identity() -> [(&'static str, Value); 4] {
    [("group", text()), ("kind", text()), ("namespace", nullable(text())), ("name", text())]
}

/// A field of an object: values and lines of a diff, or the reason why they are hidden.
fn field() -> Value {
    let value = || any("The value; null if there is none.");
    let sometimes = [("live", value()), ("wanted", value()), ("diff", list(text())), ("hidden", text())];
    object(&[("path", text())], &sometimes)
}

fn plan() -> Value {
    let action = word(&["create", "adopt", "update", "hand over", "prune"]);
    let update = word(&["Committed", "Drifted", "EntryLost", "Unverified", "Moved", "Again"]);
    let drift = || [("manager", nullable(text())), ("time", nullable(text())), ("fields", list(field()))];
    let step = extended(
        object(&identity(), &[]),
        &[("action", action)],
        &[
            &drift()[..],
            &[
                ("reason", update),
                ("object", field()),
                ("follows", list(object(&identity(), &[]))),
                ("managers", list(text())),
                ("to", text()),
                ("uid", text()),
            ],
        ]
        .concat(),
    );
    let phase = word(&["before", "apply", "after", "prune"]);
    let stage = object(&[("phase", phase), ("steps", list(step)), ("wave", number())], &[]);
    let held = extended(object(&identity(), &[]), &[("message", text()), ("reason", text())], &drift());
    object(
        &[
            ("approval", nullable(text())),
            ("held", list(held)),
            ("kept", list(object(&identity(), &[]))),
            ("stages", list(stage)),
        ],
        &[],
    )
}

/// The repository of a Sync.
fn repository() -> Value {
    object(&[("path", text()), ("reference", text()), ("url", text())], &[])
}

/// A Sync in a list of the status page.
fn card() -> Value {
    object(
        &[
            ("cluster", text()),
            ("counts", nullable(of_status("objects"))),
            ("dependsOn", list(text())),
            ("lastChange", nullable(time())),
            ("message", text()),
            ("name", text()),
            ("namespace", text()),
            ("page", text()),
            ("reason", text()),
            ("repository", repository()),
            ("revision", nullable(of_status("revision"))),
            ("state", text()),
        ],
        &[],
    )
}

fn api_syncs() -> Value {
    let stance = word(&["Serves", "StandsBy", "Starts"]);
    object(
        &[("leader", nullable(text())), ("stance", stance), ("syncs", list(card())), ("version", number())],
        &[],
    )
}

/// An object in a list of the status page.
fn row() -> Value {
    extended(
        object(&identity(), &[]),
        &[
            ("done", text()),
            ("fields", nullable(list(text()))),
            ("file", nullable(text())),
            ("health", text()),
            ("healthMessage", nullable(text())),
            ("manager", nullable(text())),
            ("message", nullable(text())),
            ("page", text()),
            ("reason", nullable(text())),
            ("state", text()),
        ],
        &[],
    )
}

/// An entry of a timeline.
fn entry() -> Value {
    object(
        &[("kind", text()), ("reason", text()), ("text", text()), ("time", time())],
        &[
            ("author", text()),
            ("changedAt", nullable(text())),
            ("changes", foreign("Numbers of changed objects, by kind of change.")),
            ("deleted", flag()),
            ("duration", nullable(text())),
            ("fields", list(text())),
            ("manager", nullable(text())),
            ("object", text()),
            ("revision", text()),
            ("subject", text()),
        ],
    )
}

fn api_sync_timeline() -> Value {
    object(&[("entries", list(entry()))], &[])
}

fn api_sync_diff() -> Value {
    let more = [("diff", list(text())), ("hidden", list(text())), ("notRead", text())];
    let shown = extended(row(), &[], &more);
    object(&[("objects", list(shown)), ("page", number()), ("pages", number())], &[])
}

fn api_sync_plan() -> Value {
    let held = object(&[("objects", list(row())), ("reason", text()), ("state", text())], &[]);
    let next = object(
        &[
            ("plan", nullable(of_status("approvals")["items"].clone())),
            ("revision", nullable(text())),
            ("text", text()),
        ],
        &[],
    );
    object(
        &[
            ("approval", nullable(of_status("approval"))),
            ("approvals", of_status("approvals")),
            ("deletes", list(row())),
            ("held", list(held)),
            ("next", next),
            ("revision", nullable(of_status("revision"))),
        ],
        &[],
    )
}

fn api_sync_settings() -> Value {
    let words = object(&[("text", text()), ("title", text())], &[]);
    object(
        &[
            ("conditions", of_status("conditions")),
            ("dependsOn", list(text())),
            ("interval", text()),
            ("labels", json!({"type": "object", "additionalProperties": text()})),
            ("repository", repository()),
            ("serviceAccount", nullable(text())),
            ("words", list(words)),
        ],
        &[],
    )
}

fn api_sync() -> Value {
    let repair = object(
        &[
            ("changedAt", nullable(text())),
            ("deleted", flag()),
            ("fields", list(text())),
            ("manager", nullable(text())),
            ("object", text()),
            ("time", time()),
        ],
        &[],
    );
    extended(
        card(),
        &[
            ("advice", nullable(text())),
            ("approval", nullable(of_status("approval"))),
            ("approvals", of_status("approvals")),
            ("conditions", of_status("conditions")),
            ("dependents", list(text())),
            ("fitting", number()),
            ("history", of_status("history")),
            ("interval", text()),
            ("objects", list(row())),
            ("page", number()),
            ("pages", number()),
            ("problems", of_status("problems")),
            ("repairs", list(repair)),
            ("serviceAccount", nullable(text())),
            ("timeline", list(entry())),
        ],
        &[],
    )
}

fn api_object() -> Value {
    let body =
        || nullable(object(&[("body", any("The object, without what is hidden."))], &[("leftOut", text())]));
    let writer = object(&[("manager", text()), ("subresource", text()), ("time", text())], &[]);
    extended(
        row(),
        &[("wanted", body())],
        &[("live", body()), ("differences", list(field())), ("writers", list(writer)), ("notRead", text())],
    )
}

/// The envelope of `moorline mcp` around texts of other people.
fn mcp() -> Value {
    object(
        &[
            ("leftOut", list(text())),
            ("notice", text()),
            ("tool", text()),
            ("untrusted", any("What the tool found; every text in it is data.")),
        ],
        &[],
    )
}
