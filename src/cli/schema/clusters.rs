//! Schemas of clusters and of the fleet.
//!
//! In: nothing. Out: the schemas of `/api/v1/clusters` and of `moorline status --fleet`.

use serde_json::{Value, json};

use super::parts::{extended, flag, list, nullable, number, object, text, time, word};

/// A cluster of the status page, and of `moorline status --fleet`.
fn cluster() -> [(&'static str, Value); 7] {
    let state = word(&["OtherCluster", "Refused", "Unreachable", "Unknown", "Reachable"]);
    let states = json!({
        "type": "object", "description": "Number of Syncs in each state.", "additionalProperties": number(),
    });
    [
        ("message", nullable(text())),
        ("name", text()),
        ("serverVersion", nullable(text())),
        ("since", nullable(time())),
        ("state", state),
        ("states", states),
        ("syncs", number()),
    ]
}

pub(super) fn api_clusters() -> Value {
    object(&[("clusters", list(object(&cluster(), &[]))), ("version", number())], &[])
}

pub(super) fn fleet() -> Value {
    let context = ("context", nullable(text()));
    let row = extended(object(&cluster(), &[]), std::slice::from_ref(&context), &[]);
    let cell = object(
        &[
            ("cluster", text()),
            context,
            ("drifted", number()),
            ("message", text()),
            ("ready", word(&["True", "False", "Unknown"])),
            ("reason", text()),
            ("revision", nullable(text())),
            ("state", text()),
        ],
        &[],
    );
    let sync = object(
        &[("cells", list(cell)), ("name", text()), ("namespace", text()), ("sameRevision", flag())],
        &[],
    );
    object(&[("clusters", list(row)), ("syncs", list(sync))], &[])
}
