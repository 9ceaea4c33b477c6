//! Policies that refuse or change objects on admission.
//!
//! In: nothing.
//! Out: rules.

use serde_json::Value;

use super::super::Health;
use super::rule::Check::{BoolField, Custom as Reads, IfReported, Phase as Reporting};
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::Waits;
use super::rule::{
    CustomCheck, PHASE_DEFAULTS, PhaseCheck, Project, Verdict, kind_rule, no_status, status_rule,
};
use crate::message::quote;
use crate::object_view::ObjectView;

const BY_POD: CustomCheck = CustomCheck {
    description: "every Pod of `status.byPod` has the newest generation, without errors",
    verdicts: &[Verdict::Progressing, Verdict::Stale, Verdict::Degraded],
    judge: by_pod,
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Gatekeeper", rows: &[
        kind_rule("templates.gatekeeper.sh", &["ConstraintTemplate"], 5, status_rule(Nowhere, &[Reads(BY_POD), BoolField("status.created", Waits)])),
        kind_rule("constraints.gatekeeper.sh", &["*"], 5, status_rule(Nowhere, &[Reads(BY_POD)])),
        kind_rule("mutations.gatekeeper.sh", &["Assign", "AssignMetadata", "AssignImage", "ModifySet"], 5, status_rule(Nowhere, &[Reads(BY_POD)])),
        kind_rule("expansion.gatekeeper.sh", &["ExpansionTemplate"], 5, status_rule(Nowhere, &[Reads(BY_POD)])),
        no_status("config.gatekeeper.sh", &["Config"]),
        no_status("externaldata.gatekeeper.sh", &["Provider"]),
    ]},
    Project { name: "Kubewarden", rows: &[
        kind_rule("policies.kubewarden.io", &["AdmissionPolicy", "ClusterAdmissionPolicy"], 10, status_rule(Nowhere, &[Reporting(PhaseCheck {
            path: "status.policyStatus",
            healthy: &["active"],
            progressing: &["pending", "scheduled", "unscheduled"],
            ..PHASE_DEFAULTS
        })])),
    ]},
    Project { name: "Kyverno", rows: &[
        // The reason is the same for a policy that is not ready yet and for one that never will be.
        kind_rule("kyverno.io", &["ClusterPolicy", "Policy"], 3, status_rule(WhereWritten, &[IfReported("Ready", Waits), BoolField("status.ready", Waits)])),
        kind_rule("policies.kyverno.io", &[
            "ValidatingPolicy", "MutatingPolicy", "GeneratingPolicy", "ImageValidatingPolicy", "DeletingPolicy",
        ], 3, status_rule(WhereWritten, &[BoolField("status.conditionStatus.ready", Waits)])),
        no_status("kyverno.io", &["PolicyException", "CleanupPolicy", "ClusterCleanupPolicy", "GlobalContextEntry"]),
        no_status("policies.kyverno.io", &["PolicyException"]),
        no_status("wgpolicyk8s.io", &["*"]),
    ]},
    Project { name: "Trivy Operator", rows: &[no_status("aquasecurity.github.io", &["*"])] },
];

/// Each Pod reports its own errors and the generation that it has loaded.
fn by_pod(live: ObjectView<'_>) -> Option<Health> {
    let pods = live.items(&["status", "byPod"]);
    let generation = live.generation().unwrap_or_default();
    let mut waits = None;
    for pod in pods {
        let error = pod.get("errors").and_then(Value::as_array).and_then(|errors| errors.first());
        let message = error.map(|error| {
            let message = error.get("message").and_then(Value::as_str).map(quote);
            message.filter(|message| !message.is_empty()).unwrap_or_else(|| "a Pod has an error".to_owned())
        });
        let observed = pod.get("observedGeneration").and_then(Value::as_u64).unwrap_or(generation);
        if observed < generation {
            waits = Some(Health::progressing("a Pod's report is for an older generation"));
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
