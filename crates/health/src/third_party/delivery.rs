//! GitOps and progressive delivery: kinds that bring other objects into a cluster.
//!
//! In: nothing.
//! Out: rules. A rollout that waits for a person is suspended: nothing is wrong until the decision.

use serde_json::Value;

use super::super::Health;
use super::evaluate::with_message;
use super::rule::Check::{
    Custom as Reads, FailedIfTrue, IfReported, Phase as Reporting, ProgressingIfTrue, Required,
};
use super::rule::Generation::{InStatus, Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, FailsBut, Waits};
use super::rule::Switch::{Is, True};
use super::rule::{
    CustomCheck, MissingStatus, PHASE_DEFAULTS, PhaseCheck, Project, Rule, Verdict, kind_rule, no_status,
    status_rule,
};
use crate::message::quote;
use crate::object_view::ObjectView;

/// A retry runs while the failure of the previous attempt is still reported: the failure counts.
const FLUX: Rule = status_rule(
    InStatus,
    &[
        FailedIfTrue(&["Stalled"]),
        Required(
            "Ready",
            FailsBut(&[
                "Progressing",
                "ProgressingWithRetry",
                "DependencyNotReady",
                "SourceNotReady",
                "HelmChartNotReady",
            ]),
        ),
        ProgressingIfTrue(&["Reconciling"]),
    ],
)
.with_suspended_by(&[True("spec.suspend")]);

/// Measurements and experiments, which run to completion.
const ANALYSIS: PhaseCheck = PhaseCheck {
    healthy: &["Successful"],
    progressing: &["Pending", "Running"],
    failed: &["Failed", "Error", "Inconclusive"],
    ..PHASE_DEFAULTS
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Argo CD", rows: &[
        kind_rule("argoproj.io", &["Application"], 30, status_rule(Nowhere, &[
            Reporting(PhaseCheck {
                path: "status.health.status",
                healthy: &["Healthy"],
                progressing: &["Progressing", "Missing"],
                failed: &["Degraded"],
                suspended: &["Suspended"],
                message: "status.health.message",
                ..PHASE_DEFAULTS
            }),
            Reads(CustomCheck {
                description: "the newest source was compared; the last operation has succeeded; no condition is an error; with an automated policy `status.sync.status` is `Synced`",
                verdicts: &[Verdict::Progressing, Verdict::Degraded],
                judge: synced,
            }),
        ])),
        kind_rule("argoproj.io", &["ApplicationSet"], 10, status_rule(Nowhere, &[
            FailedIfTrue(&["ErrorOccurred"]),
            Required("ResourcesUpToDate", Waits),
            IfReported("ParametersGenerated", Waits),
        ])),
        kind_rule("argoproj.io", &["ArgoCD"], 15, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Available"],
            progressing: &["Pending", "Unknown"],
            failed: &["Failed"],
            ..PHASE_DEFAULTS
        })])),
        no_status("argoproj.io", &["AppProject"]),
    ]},
    Project { name: "Argo Rollouts", rows: &[
        kind_rule("argoproj.io", &["Rollout"], 30, status_rule(WhereWritten, &[Reporting(PhaseCheck {
            healthy: &["Healthy"],
            progressing: &["Progressing"],
            failed: &["Degraded"],
            suspended: &["Paused"],
            ..PHASE_DEFAULTS
        })]).with_suspended_by(&[True("spec.paused")])),
        kind_rule("argoproj.io", &["AnalysisRun", "Experiment"], 60, status_rule(Nowhere, &[Reporting(ANALYSIS)])),
        no_status("argoproj.io", &["AnalysisTemplate", "ClusterAnalysisTemplate"]),
    ]},
    Project { name: "Argo Workflows", rows: &[
        kind_rule("argoproj.io", &["Workflow"], 60, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Succeeded"],
            progressing: &["Pending", "Running"],
            failed: &["Failed", "Error"],
            ..PHASE_DEFAULTS
        })]).with_suspended_by(&[True("spec.suspend")])),
        kind_rule("argoproj.io", &["CronWorkflow"], 5, status_rule(Nowhere, &[FailedIfTrue(&["SpecError", "SubmissionError"])])
            .with_suspended_by(&[True("spec.suspend")]).with_missing_status(MissingStatus::Healthy)),
        no_status("argoproj.io", &["WorkflowTemplate", "ClusterWorkflowTemplate", "WorkflowEventBinding"]),
    ]},
    Project { name: "Argo Events", rows: &[
        kind_rule("argoproj.io", &["EventBus"], 10, status_rule(Nowhere, &[Required("Deployed", Fails), IfReported("Configured", Fails)])),
        kind_rule("argoproj.io", &["EventSource"], 10, status_rule(Nowhere, &[Required("Deployed", Fails), IfReported("SourcesProvided", Fails)])),
        kind_rule("argoproj.io", &["Sensor"], 10, status_rule(Nowhere, &[
            Required("Deployed", Fails), IfReported("DependenciesProvided", Fails), IfReported("TriggersProvided", Fails),
        ])),
    ]},
    Project { name: "Flux", rows: &[
        kind_rule("kustomize.toolkit.fluxcd.io", &["Kustomization"], 30, FLUX),
        kind_rule("helm.toolkit.fluxcd.io", &["HelmRelease"], 30, FLUX),
        // A HelmRepository of an OCI registry is only an address; no controller reports its status.
        kind_rule("source.toolkit.fluxcd.io", &["HelmRepository"], 10, FLUX.with_unreported(&[Is("spec.type", "oci")])),
        kind_rule("source.toolkit.fluxcd.io", &["GitRepository", "OCIRepository", "HelmChart", "Bucket", "ExternalArtifact"], 10, FLUX),
        kind_rule("source.extensions.fluxcd.io", &["ArtifactGenerator"], 10, FLUX),
        kind_rule("image.toolkit.fluxcd.io", &["ImageRepository", "ImagePolicy", "ImageUpdateAutomation"], 10, FLUX),
        kind_rule("notification.toolkit.fluxcd.io", &["Receiver"], 10, FLUX),
        no_status("notification.toolkit.fluxcd.io", &["Alert", "Provider"]),
        kind_rule("fluxcd.controlplane.io", &["FluxInstance", "ResourceSet", "ResourceSetInputProvider"], 15, status_rule(WhereWritten, &[
            FailedIfTrue(&["Stalled"]),
            Required("Ready", FailsBut(&["Progressing", "DependencyNotReady"])),
            ProgressingIfTrue(&["Reconciling"]),
        ])),
        no_status("fluxcd.controlplane.io", &["FluxReport"]),
    ]},
    Project { name: "Tofu Controller", rows: &[
        kind_rule("infra.contrib.fluxcd.io", &["Terraform"], 60, status_rule(WhereWritten, &[FailedIfTrue(&["Stalled"]), Required("Ready", ByReason)])
            .with_suspended_by(&[True("spec.suspend")])),
    ]},
    Project { name: "Flagger", rows: &[
        kind_rule("flagger.app", &["Canary"], 60, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Initialized", "Succeeded"],
            progressing: &["Initializing", "Waiting", "Progressing", "WaitingPromotion", "Promoting", "Finalising", "Terminating", "Terminated"],
            failed: &["Failed"],
            ..PHASE_DEFAULTS
        })]).with_suspended_by(&[True("spec.suspend")])),
        no_status("flagger.app", &["MetricTemplate", "AlertProvider"]),
    ]},
    Project { name: "Fleet", rows: &[
        kind_rule("fleet.cattle.io", &["GitRepo", "Bundle", "HelmOp"], 15, status_rule(WhereWritten, &[FailedIfTrue(&["Stalled"]), Required("Ready", Waits)])
            .with_suspended_by(&[True("spec.paused")])),
    ]},
    Project { name: "System Upgrade Controller", rows: &[
        kind_rule("upgrade.cattle.io", &["Plan"], 60, status_rule(Nowhere, &[
            Required("Validated", Fails), Required("LatestResolved", ByReason), IfReported("Complete", Waits),
        ])),
    ]},
    Project { name: "Operator Lifecycle Manager", rows: &[
        kind_rule("operators.coreos.com", &["Subscription"], 15, status_rule(Nowhere, &[
            FailedIfTrue(&["ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed"]),
            Reads(CustomCheck {
                description: "`status.state` is `AtLatestKnown`",
                verdicts: &[Verdict::Progressing, Verdict::Degraded, Verdict::Suspended, Verdict::Unknown],
                judge: subscription,
            }),
        ])),
        kind_rule("operators.coreos.com", &["ClusterServiceVersion"], 15, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Succeeded"],
            progressing: &["Pending", "InstallReady", "Installing", "Replacing", "Deleting", "Unknown"],
            failed: &["Failed"],
            ..PHASE_DEFAULTS
        })])),
        kind_rule("operators.coreos.com", &["InstallPlan"], 15, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Complete"],
            progressing: &["Planning", "Installing"],
            failed: &["Failed"],
            suspended: &["RequiresApproval"],
            ..PHASE_DEFAULTS
        })])),
        kind_rule("operators.coreos.com", &["CatalogSource"], 10, status_rule(Nowhere, &[Reporting(PhaseCheck {
            path: "status.connectionState.lastObservedState",
            healthy: &["READY"],
            progressing: &["CONNECTING", "IDLE", "TRANSIENT_FAILURE"],
            failed: &["SHUTDOWN"],
            ..PHASE_DEFAULTS
        })])),
        kind_rule("olm.operatorframework.io", &["ClusterExtension"], 15, status_rule(WhereWritten, &[
            Required("Installed", ByReason), IfReported("Progressing", Fails),
        ])),
        kind_rule("olm.operatorframework.io", &["ClusterCatalog"], 10, status_rule(WhereWritten, &[
            Required("Serving", Waits), IfReported("Progressing", Fails),
        ]).with_suspended_by(&[Is("spec.availabilityMode", "Unavailable")])),
        no_status("operators.coreos.com", &["OperatorGroup", "OperatorCondition", "Operator", "OLMConfig"]),
    ]},
    Project { name: "Tekton", rows: &[
        kind_rule("tekton.dev", &["PipelineRun", "TaskRun", "CustomRun"], 60, status_rule(WhereWritten, &[Required("Succeeded", Fails)])
            .with_suspended_by(&[Is("spec.status", "PipelineRunPending")])),
        kind_rule("triggers.tekton.dev", &["EventListener"], 10, status_rule(WhereWritten, &[Required("Ready", Waits)])),
        kind_rule("operator.tekton.dev", &[
            "TektonConfig", "TektonPipeline", "TektonTrigger", "TektonDashboard", "TektonChain", "TektonResult", "TektonHub",
        ], 15, status_rule(WhereWritten, &[Required("Ready", ByReason)])),
        no_status("tekton.dev", &["Task", "Pipeline", "ClusterTask", "StepAction", "VerificationPolicy"]),
        no_status("triggers.tekton.dev", &[
            "Trigger", "TriggerTemplate", "TriggerBinding", "ClusterTriggerBinding", "Interceptor", "ClusterInterceptor",
        ]),
    ]},
    Project { name: "k6 Operator", rows: &[
        kind_rule("k6.io", &["TestRun", "K6"], 60, status_rule(Nowhere, &[Reporting(PhaseCheck {
            path: "status.stage",
            healthy: &["finished"],
            progressing: &["initialization", "initialized", "created", "started", "stopped"],
            failed: &["error"],
            ..PHASE_DEFAULTS
        })])),
    ]},
];

/// Judges the sync status. Without automated sync a person decides when to apply.
fn synced<'a>(live: ObjectView<'a>) -> Option<Health> {
    let text = |condition: &'a Value, field: &str| condition.get(field).and_then(Value::as_str);
    let conditions = live.items(&["status", "conditions"]).iter();
    let mut conditions =
        conditions.filter_map(|condition| Some((text(condition, "type")?, text(condition, "message")?)));
    if let Some((kind, message)) = conditions.find(|(kind, _)| kind.ends_with("Error")) {
        return Some(Health::degraded(format!("{}: {}", quote(kind), quote(message))));
    }
    let said = |said: &str| with_message(live, "status.operationState.message", said.to_owned());
    match live.field_by_path("status.operationState.phase").and_then(Value::as_str) {
        Some("Running" | "Terminating") => return Some(Health::progressing(said("an operation is running"))),
        Some("Failed" | "Error") => return Some(Health::degraded(said("its last operation failed"))),
        _ => {}
    }
    // Its controller records no generation, but the source that it compared.
    let source = |of: &str, field: &str| live.field_by_path(&format!("{of}.{field}")).and_then(Value::as_str);
    let differs = |field: &&str| {
        let (wanted, seen) = (source("spec.source", field), source("status.sync.comparedTo.source", field));
        wanted.zip(seen).is_some_and(|(wanted, seen)| wanted != seen)
    };
    if let Some(field) = ["repoURL", "path", "targetRevision", "chart"].into_iter().find(differs) {
        return Some(Health::progressing(format!("its newest {field} was not compared yet")));
    }
    let automated = live.field_by_path("spec.syncPolicy.automated").is_some_and(|policy| {
        policy.is_object() && policy.get("enabled").and_then(Value::as_bool).unwrap_or(true)
    });
    match live.field_by_path("status.sync.status").and_then(Value::as_str)? {
        "Synced" => Some(Health::Healthy),
        other if automated => Some(Health::progressing(format!("its sync status is {}", quote(other)))),
        _ => Some(Health::Healthy),
    }
}

/// An upgrade with manual approval waits for a person; so does the first installation.
fn subscription(live: ObjectView<'_>) -> Option<Health> {
    let manual = live.text(&["spec", "installPlanApproval"]) == Some("Manual");
    Some(match live.text(&["status", "state"])? {
        "AtLatestKnown" => Health::Healthy,
        "UpgradePending" if manual => Health::Suspended,
        state @ ("UpgradePending" | "UpgradeAvailable") => {
            Health::progressing(format!("its state is {state}"))
        }
        "UpgradeFailed" => Health::degraded("its state is UpgradeFailed"),
        other => Health::unknown(format!("its state is {}, a value that no health rule knows", quote(other))),
    })
}
