//! Resources outside the cluster.
//!
//! In: nothing.
//! Out: rules. Clouds are slow: a database takes a quarter of an hour, a cluster longer.

use serde_json::Value;

use super::super::Health;
use super::super::condition::Condition;
use super::rule::Check::{
    BoolField, Custom as Reads, ErrorText, FailedIfTrue, IfReported, Phase as Reporting, ProgressingIfTrue,
    Required,
};
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, FailsBut, Waits};
use super::rule::Switch::{Annotation, True};
use super::rule::{
    CustomCheck, MissingStatus, PHASE_DEFAULTS, PhaseCheck, Project, Rule, Switch, Verdict, kind_rule,
    no_status, status_rule,
};
use crate::object_view::ObjectView;

const PAUSED: [Switch; 1] = [Annotation("crossplane.io/paused", "true")];

/// A managed resource may be `Unavailable` for as long as a change takes.
const MANAGED: Rule = status_rule(WhereWritten, &[Required("Synced", Fails), Required("Ready", Waits)])
    .with_suspended_by(&PAUSED);

/// Packages: an installed package is healthy if its controller runs.
const PACKAGE: Rule = status_rule(
    WhereWritten,
    &[
        Required("Installed", FailsBut(&["InactivePackageRevision", "UnpackingPackage"])),
        Required("Healthy", Waits),
    ],
)
.with_suspended_by(&PAUSED);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "AWS Controllers for Kubernetes", rows: &[
        kind_rule("services.k8s.aws", &["AdoptedResource"], 30, status_rule(Nowhere, &[Required("ACK.Adopted", Fails)])),
        no_status("services.k8s.aws", &["FieldExport", "IAMRoleSelector"]),
        kind_rule("*.services.k8s.aws", &["*"], 60, status_rule(Nowhere, &[
            FailedIfTrue(&["ACK.Terminal"]), ProgressingIfTrue(&["ACK.Recoverable"]), Required("ACK.ResourceSynced", Waits),
        ])),
    ]},
    Project { name: "Azure Service Operator", rows: &[
        kind_rule("*.azure.com", &["*"], 60, status_rule(WhereWritten, &[Reads(CustomCheck {
            description: "`Ready` is True",
            verdicts: &[Verdict::Progressing, Verdict::Degraded],
            judge: azure,
        })]).with_suspended_by(&[Annotation("serviceoperator.azure.com/reconcile-policy", "skip")]).with_missing_status(MissingStatus::ByKind)),
    ]},
    Project { name: "Config Connector", rows: &[
        kind_rule("core.cnrm.cloud.google.com", &["ConfigConnector", "ConfigConnectorContext"], 15, status_rule(WhereWritten, &[
            ErrorText("status.errors"), BoolField("status.healthy", Waits),
        ])),
        kind_rule("*.cnrm.cloud.google.com", &["*"], 60, status_rule(WhereWritten, &[
            Required("Ready", FailsBut(&["Creating", "Updating", "Deleting", "DependencyNotReady", "DependencyNotFound"])),
        ])),
    ]},
    Project { name: "Crossplane", rows: &[
        kind_rule("rds.aws.crossplane.io", &["RDSInstance"], 60, MANAGED),
        kind_rule("database.aws.crossplane.io", &["RDSInstance"], 60, MANAGED),
        kind_rule("pkg.crossplane.io", &["Provider", "Configuration", "Function"], 15, PACKAGE),
        kind_rule("pkg.crossplane.io", &["ProviderRevision", "ConfigurationRevision", "FunctionRevision"], 15, status_rule(WhereWritten, &[
            IfReported("Healthy", Waits), IfReported("RevisionHealthy", Waits), IfReported("RuntimeHealthy", Waits),
        ])),
        kind_rule("apiextensions.crossplane.io", &["CompositeResourceDefinition", "ManagedResourceDefinition"], 5, status_rule(WhereWritten, &[
            Required("Established", Waits), IfReported("Offered", Waits),
        ]).with_suspended_by(&PAUSED)),
        no_status("apiextensions.crossplane.io", &["*"]),
        no_status("pkg.crossplane.io", &["*"]),
        no_status("ops.crossplane.io", &["*"]),
        no_status("protection.crossplane.io", &["*"]),
        no_status("*.crossplane.io", &["*ProviderConfig", "*ProviderConfigUsage", "StoreConfig"]),
        no_status("*.upbound.io", &["*ProviderConfig", "*ProviderConfigUsage", "StoreConfig"]),
        // The internal configuration kinds of providers have groups with the same suffix, and
        // report nothing.
        kind_rule("*.crossplane.io", &["*"], 60, MANAGED.with_missing_status(MissingStatus::ByKind)),
        kind_rule("*.upbound.io", &["*"], 60, MANAGED.with_missing_status(MissingStatus::ByKind)),
    ]},
    Project { name: "Pulumi Operator", rows: &[
        kind_rule("pulumi.com", &["Stack"], 60, status_rule(WhereWritten, &[
            FailedIfTrue(&["Stalled"]),
            ProgressingIfTrue(&["Reconciling"]),
            IfReported("Ready", ByReason),
            Reporting(PhaseCheck {
                path: "status.lastUpdate.state",
                healthy: &["succeeded"],
                failed: &["failed"],
                message: "status.lastUpdate.message",
                needed: false,
                ..PHASE_DEFAULTS
            }),
        ]).with_suspended_by(&[True("spec.suspend")])),
    ]},
];

/// The condition has a severity: anything below an error is transient.
fn azure(live: ObjectView<'_>) -> Option<Health> {
    let conditions = live.items(&["status", "conditions"]).iter();
    let mut found = conditions.filter_map(|value| Some((value, Condition::from_value(value)?)));
    let (value, ready) = found.find(|(_, condition)| condition.kind == "Ready")?;
    let is_error = value.get("severity").and_then(Value::as_str) == Some("Error");
    Some(match ready {
        _ if ready.is_stale(live.generation()) => {
            Health::progressing("Ready was reported for an older generation")
        }
        _ if ready.is_true() => Health::Healthy,
        _ if ready.is_false() && is_error => Health::degraded(ready.describe()),
        _ => Health::progressing(ready.describe()),
    })
}
