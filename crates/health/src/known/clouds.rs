//! Resources outside the cluster.
//!
//! In: nothing.
//! Out: rules. Clouds are slow: a database takes a quarter of an hour, a cluster longer.

use serde_json::Value;

use super::super::Health;
use super::super::condition::Condition;
use super::super::live::Live;
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, FailsBut, Waits};
use super::rule::Reading::{Busy, Complaint, Flag, Heeds, Needs, Odd as Reads, Trouble, Word as Says};
use super::rule::Switch::{Annotation, True};
use super::rule::{Answer, Odd, Project, Rule, Silence, Switch, WORD, Word, reads, row, still};

const PAUSED: [Switch; 1] = [Annotation("crossplane.io/paused", "true")];

/// A managed resource may be `Unavailable` for as long as a change takes.
const MANAGED: Rule = reads(WhereWritten, &[Needs("Synced", Fails), Needs("Ready", Waits)]).asleep(&PAUSED);

/// Packages: an installed package is healthy if its controller runs.
const PACKAGE: Rule = reads(
    WhereWritten,
    &[
        Needs("Installed", FailsBut(&["InactivePackageRevision", "UnpackingPackage"])),
        Needs("Healthy", Waits),
    ],
)
.asleep(&PAUSED);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "AWS Controllers for Kubernetes", rows: &[
        row("services.k8s.aws", &["AdoptedResource"], 30, reads(Nowhere, &[Needs("ACK.Adopted", Fails)])),
        still("services.k8s.aws", &["FieldExport", "IAMRoleSelector"]),
        row("*.services.k8s.aws", &["*"], 60, reads(Nowhere, &[
            Trouble(&["ACK.Terminal"]), Busy(&["ACK.Recoverable"]), Needs("ACK.ResourceSynced", Waits),
        ])),
    ]},
    Project { name: "Azure Service Operator", rows: &[
        row("*.azure.com", &["*"], 60, reads(WhereWritten, &[Reads(Odd {
            words: "`Ready` is True",
            answers: &[Answer::Progressing, Answer::Degraded],
            judge: azure,
        })]).asleep(&[Annotation("serviceoperator.azure.com/reconcile-policy", "skip")]).silent(Silence::Perhaps)),
    ]},
    Project { name: "Config Connector", rows: &[
        row("core.cnrm.cloud.google.com", &["ConfigConnector", "ConfigConnectorContext"], 15, reads(WhereWritten, &[
            Complaint("status.errors"), Flag("status.healthy", Waits),
        ])),
        row("*.cnrm.cloud.google.com", &["*"], 60, reads(WhereWritten, &[
            Needs("Ready", FailsBut(&["Creating", "Updating", "Deleting", "DependencyNotReady", "DependencyNotFound"])),
        ])),
    ]},
    Project { name: "Crossplane", rows: &[
        row("rds.aws.crossplane.io", &["RDSInstance"], 60, MANAGED),
        row("database.aws.crossplane.io", &["RDSInstance"], 60, MANAGED),
        row("pkg.crossplane.io", &["Provider", "Configuration", "Function"], 15, PACKAGE),
        row("pkg.crossplane.io", &["ProviderRevision", "ConfigurationRevision", "FunctionRevision"], 15, reads(WhereWritten, &[
            Heeds("Healthy", Waits), Heeds("RevisionHealthy", Waits), Heeds("RuntimeHealthy", Waits),
        ])),
        row("apiextensions.crossplane.io", &["CompositeResourceDefinition", "ManagedResourceDefinition"], 5, reads(WhereWritten, &[
            Needs("Established", Waits), Heeds("Offered", Waits),
        ]).asleep(&PAUSED)),
        still("apiextensions.crossplane.io", &["*"]),
        still("pkg.crossplane.io", &["*"]),
        still("ops.crossplane.io", &["*"]),
        still("protection.crossplane.io", &["*"]),
        still("*.crossplane.io", &["*ProviderConfig", "*ProviderConfigUsage", "StoreConfig"]),
        still("*.upbound.io", &["*ProviderConfig", "*ProviderConfigUsage", "StoreConfig"]),
        // The internal configuration kinds of providers have groups with the same suffix, and
        // report nothing.
        row("*.crossplane.io", &["*"], 60, MANAGED.silent(Silence::Perhaps)),
        row("*.upbound.io", &["*"], 60, MANAGED.silent(Silence::Perhaps)),
    ]},
    Project { name: "Pulumi Operator", rows: &[
        row("pulumi.com", &["Stack"], 60, reads(WhereWritten, &[
            Trouble(&["Stalled"]),
            Busy(&["Reconciling"]),
            Heeds("Ready", ByReason),
            Says(Word {
                at: "status.lastUpdate.state",
                well: &["succeeded"],
                wrong: &["failed"],
                message: "status.lastUpdate.message",
                needed: false,
                ..WORD
            }),
        ]).asleep(&[True("spec.suspend")])),
    ]},
];

/// The condition has a severity: anything below an error is transient.
fn azure(live: Live<'_>) -> Option<Health> {
    let conditions = live.items(&["status", "conditions"]).iter();
    let mut found = conditions.filter_map(|value| Some((value, Condition::of(value)?)));
    let (value, ready) = found.find(|(_, condition)| condition.kind == "Ready")?;
    let is_error = value.get("severity").and_then(Value::as_str) == Some("Error");
    Some(match ready {
        _ if ready.is_stale(live.generation()) => Health::progressing("Ready speaks of an older generation"),
        _ if ready.is_true() => Health::Healthy,
        _ if ready.is_false() && is_error => Health::degraded(ready.sentence()),
        _ => Health::progressing(ready.sentence()),
    })
}
