//! Policies that refuse or change objects on admission.
//!
//! In: nothing.
//! Out: rules.

use serde_json::Value;

use super::super::Health;
use super::super::live::Live;
use super::super::sentence::told;
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::Waits;
use super::rule::Reading::{Flag, Heeds, Odd as Reads, Word as Says};
use super::rule::{Answer, Odd, Project, WORD, Word, reads, row, still};

const BY_POD: Odd = Odd {
    words: "every Pod of `status.byPod` has the newest generation, without errors",
    answers: &[Answer::Progressing, Answer::Stale, Answer::Degraded],
    judge: by_pod,
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Gatekeeper", rows: &[
        row("templates.gatekeeper.sh", &["ConstraintTemplate"], 5, reads(Nowhere, &[Reads(BY_POD), Flag("status.created", Waits)])),
        row("constraints.gatekeeper.sh", &["*"], 5, reads(Nowhere, &[Reads(BY_POD)])),
        row("mutations.gatekeeper.sh", &["Assign", "AssignMetadata", "AssignImage", "ModifySet"], 5, reads(Nowhere, &[Reads(BY_POD)])),
        row("expansion.gatekeeper.sh", &["ExpansionTemplate"], 5, reads(Nowhere, &[Reads(BY_POD)])),
        still("config.gatekeeper.sh", &["Config"]),
        still("externaldata.gatekeeper.sh", &["Provider"]),
    ]},
    Project { name: "Kubewarden", rows: &[
        row("policies.kubewarden.io", &["AdmissionPolicy", "ClusterAdmissionPolicy"], 10, reads(Nowhere, &[Says(Word {
            at: "status.policyStatus",
            well: &["active"],
            busy: &["pending", "scheduled", "unscheduled"],
            ..WORD
        })])),
    ]},
    Project { name: "Kyverno", rows: &[
        // The reason is the same for a policy that is not ready yet and for one that never will be.
        row("kyverno.io", &["ClusterPolicy", "Policy"], 3, reads(WhereWritten, &[Heeds("Ready", Waits), Flag("status.ready", Waits)])),
        row("policies.kyverno.io", &[
            "ValidatingPolicy", "MutatingPolicy", "GeneratingPolicy", "ImageValidatingPolicy", "DeletingPolicy",
        ], 3, reads(WhereWritten, &[Flag("status.conditionStatus.ready", Waits)])),
        still("kyverno.io", &["PolicyException", "CleanupPolicy", "ClusterCleanupPolicy", "GlobalContextEntry"]),
        still("policies.kyverno.io", &["PolicyException"]),
        still("wgpolicyk8s.io", &["*"]),
    ]},
    Project { name: "Trivy Operator", rows: &[still("aquasecurity.github.io", &["*"])] },
];

/// Each Pod reports its own errors and the generation that it has loaded.
fn by_pod(live: Live<'_>) -> Option<Health> {
    let pods = live.items(&["status", "byPod"]);
    let generation = live.generation().unwrap_or_default();
    let mut waits = None;
    for pod in pods {
        let error = pod.get("errors").and_then(Value::as_array).and_then(|errors| errors.first());
        let message = error.map(|error| {
            let message = error.get("message").and_then(Value::as_str).map(told);
            message.filter(|message| !message.is_empty()).unwrap_or_else(|| "a Pod has an error".to_owned())
        });
        let observed = pod.get("observedGeneration").and_then(Value::as_u64).unwrap_or(generation);
        if observed < generation {
            waits = Some(Health::progressing("a Pod's report is of an older generation"));
        } else if let Some(message) = message {
            return Some(Health::degraded(message));
        } else if pod.get("enforced").and_then(Value::as_bool) == Some(false) {
            waits = waits.or_else(|| Some(Health::progressing("a Pod does not enforce it yet")));
        }
    }
    match pods.is_empty() {
        true => None,
        false => Some(waits.unwrap_or(Health::Healthy)),
    }
}
