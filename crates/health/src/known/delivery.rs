//! GitOps and progressive delivery: kinds that bring other objects into a cluster.
//!
//! In: nothing.
//! Out: rules. A rollout that waits for a person is suspended: nothing is wrong until the decision.

use serde_json::Value;

use super::super::Health;
use super::super::live::Live;
use super::super::sentence::told;
use super::reading::with;
use super::rule::Generation::{InStatus, Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, FailsBut, Waits};
use super::rule::Reading::{Busy, Heeds, Needs, Odd as Reads, Trouble, Word as Says};
use super::rule::Switch::{Is, True};
use super::rule::{Answer, Odd, Project, Rule, Silence, WORD, Word, reads, row, still};

/// A retry runs while the failure of the previous attempt is still reported: the failure counts.
const FLUX: Rule = reads(
    InStatus,
    &[
        Trouble(&["Stalled"]),
        Needs(
            "Ready",
            FailsBut(&[
                "Progressing",
                "ProgressingWithRetry",
                "DependencyNotReady",
                "SourceNotReady",
                "HelmChartNotReady",
            ]),
        ),
        Busy(&["Reconciling"]),
    ],
)
.asleep(&[True("spec.suspend")]);

/// Measurements and experiments, which run to completion.
const ANALYSIS: Word = Word {
    well: &["Successful"],
    busy: &["Pending", "Running"],
    wrong: &["Failed", "Error", "Inconclusive"],
    ..WORD
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Argo CD", rows: &[
        row("argoproj.io", &["Application"], 30, reads(Nowhere, &[
            Says(Word {
                at: "status.health.status",
                well: &["Healthy"],
                busy: &["Progressing", "Missing"],
                wrong: &["Degraded"],
                asleep: &["Suspended"],
                message: "status.health.message",
                ..WORD
            }),
            Reads(Odd {
                words: "the newest source was compared; the last operation has succeeded; no condition is an error; with an automated policy `status.sync.status` is `Synced`",
                answers: &[Answer::Progressing, Answer::Degraded],
                judge: synced,
            }),
        ])),
        row("argoproj.io", &["ApplicationSet"], 10, reads(Nowhere, &[
            Trouble(&["ErrorOccurred"]),
            Needs("ResourcesUpToDate", Waits),
            Heeds("ParametersGenerated", Waits),
        ])),
        row("argoproj.io", &["ArgoCD"], 15, reads(Nowhere, &[Says(Word {
            well: &["Available"],
            busy: &["Pending", "Unknown"],
            wrong: &["Failed"],
            ..WORD
        })])),
        still("argoproj.io", &["AppProject"]),
    ]},
    Project { name: "Argo Rollouts", rows: &[
        row("argoproj.io", &["Rollout"], 30, reads(WhereWritten, &[Says(Word {
            well: &["Healthy"],
            busy: &["Progressing"],
            wrong: &["Degraded"],
            asleep: &["Paused"],
            ..WORD
        })]).asleep(&[True("spec.paused")])),
        row("argoproj.io", &["AnalysisRun", "Experiment"], 60, reads(Nowhere, &[Says(ANALYSIS)])),
        still("argoproj.io", &["AnalysisTemplate", "ClusterAnalysisTemplate"]),
    ]},
    Project { name: "Argo Workflows", rows: &[
        row("argoproj.io", &["Workflow"], 60, reads(Nowhere, &[Says(Word {
            well: &["Succeeded"],
            busy: &["Pending", "Running"],
            wrong: &["Failed", "Error"],
            ..WORD
        })]).asleep(&[True("spec.suspend")])),
        row("argoproj.io", &["CronWorkflow"], 5, reads(Nowhere, &[Trouble(&["SpecError", "SubmissionError"])])
            .asleep(&[True("spec.suspend")]).silent(Silence::Fine)),
        still("argoproj.io", &["WorkflowTemplate", "ClusterWorkflowTemplate", "WorkflowEventBinding"]),
    ]},
    Project { name: "Argo Events", rows: &[
        row("argoproj.io", &["EventBus"], 10, reads(Nowhere, &[Needs("Deployed", Fails), Heeds("Configured", Fails)])),
        row("argoproj.io", &["EventSource"], 10, reads(Nowhere, &[Needs("Deployed", Fails), Heeds("SourcesProvided", Fails)])),
        row("argoproj.io", &["Sensor"], 10, reads(Nowhere, &[
            Needs("Deployed", Fails), Heeds("DependenciesProvided", Fails), Heeds("TriggersProvided", Fails),
        ])),
    ]},
    Project { name: "Flux", rows: &[
        row("kustomize.toolkit.fluxcd.io", &["Kustomization"], 30, FLUX),
        row("helm.toolkit.fluxcd.io", &["HelmRelease"], 30, FLUX),
        // A HelmRepository of an OCI registry is only an address; no controller reports its status.
        row("source.toolkit.fluxcd.io", &["HelmRepository"], 10, FLUX.mute(&[Is("spec.type", "oci")])),
        row("source.toolkit.fluxcd.io", &["GitRepository", "OCIRepository", "HelmChart", "Bucket", "ExternalArtifact"], 10, FLUX),
        row("source.extensions.fluxcd.io", &["ArtifactGenerator"], 10, FLUX),
        row("image.toolkit.fluxcd.io", &["ImageRepository", "ImagePolicy", "ImageUpdateAutomation"], 10, FLUX),
        row("notification.toolkit.fluxcd.io", &["Receiver"], 10, FLUX),
        still("notification.toolkit.fluxcd.io", &["Alert", "Provider"]),
        row("fluxcd.controlplane.io", &["FluxInstance", "ResourceSet", "ResourceSetInputProvider"], 15, reads(WhereWritten, &[
            Trouble(&["Stalled"]),
            Needs("Ready", FailsBut(&["Progressing", "DependencyNotReady"])),
            Busy(&["Reconciling"]),
        ])),
        still("fluxcd.controlplane.io", &["FluxReport"]),
    ]},
    Project { name: "Tofu Controller", rows: &[
        row("infra.contrib.fluxcd.io", &["Terraform"], 60, reads(WhereWritten, &[Trouble(&["Stalled"]), Needs("Ready", ByReason)])
            .asleep(&[True("spec.suspend")])),
    ]},
    Project { name: "Flagger", rows: &[
        row("flagger.app", &["Canary"], 60, reads(Nowhere, &[Says(Word {
            well: &["Initialized", "Succeeded"],
            busy: &["Initializing", "Waiting", "Progressing", "WaitingPromotion", "Promoting", "Finalising", "Terminating", "Terminated"],
            wrong: &["Failed"],
            ..WORD
        })]).asleep(&[True("spec.suspend")])),
        still("flagger.app", &["MetricTemplate", "AlertProvider"]),
    ]},
    Project { name: "Fleet", rows: &[
        row("fleet.cattle.io", &["GitRepo", "Bundle", "HelmOp"], 15, reads(WhereWritten, &[Trouble(&["Stalled"]), Needs("Ready", Waits)])
            .asleep(&[True("spec.paused")])),
    ]},
    Project { name: "System Upgrade Controller", rows: &[
        row("upgrade.cattle.io", &["Plan"], 60, reads(Nowhere, &[
            Needs("Validated", Fails), Needs("LatestResolved", ByReason), Heeds("Complete", Waits),
        ])),
    ]},
    Project { name: "Operator Lifecycle Manager", rows: &[
        row("operators.coreos.com", &["Subscription"], 15, reads(Nowhere, &[
            Trouble(&["ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed"]),
            Reads(Odd {
                words: "`status.state` is `AtLatestKnown`",
                answers: &[Answer::Progressing, Answer::Degraded, Answer::Suspended, Answer::Unknown],
                judge: subscription,
            }),
        ])),
        row("operators.coreos.com", &["ClusterServiceVersion"], 15, reads(Nowhere, &[Says(Word {
            well: &["Succeeded"],
            busy: &["Pending", "InstallReady", "Installing", "Replacing", "Deleting", "Unknown"],
            wrong: &["Failed"],
            ..WORD
        })])),
        row("operators.coreos.com", &["InstallPlan"], 15, reads(Nowhere, &[Says(Word {
            well: &["Complete"],
            busy: &["Planning", "Installing"],
            wrong: &["Failed"],
            asleep: &["RequiresApproval"],
            ..WORD
        })])),
        row("operators.coreos.com", &["CatalogSource"], 10, reads(Nowhere, &[Says(Word {
            at: "status.connectionState.lastObservedState",
            well: &["READY"],
            busy: &["CONNECTING", "IDLE", "TRANSIENT_FAILURE"],
            wrong: &["SHUTDOWN"],
            ..WORD
        })])),
        row("olm.operatorframework.io", &["ClusterExtension"], 15, reads(WhereWritten, &[
            Needs("Installed", ByReason), Heeds("Progressing", Fails),
        ])),
        row("olm.operatorframework.io", &["ClusterCatalog"], 10, reads(WhereWritten, &[
            Needs("Serving", Waits), Heeds("Progressing", Fails),
        ]).asleep(&[Is("spec.availabilityMode", "Unavailable")])),
        still("operators.coreos.com", &["OperatorGroup", "OperatorCondition", "Operator", "OLMConfig"]),
    ]},
    Project { name: "Tekton", rows: &[
        row("tekton.dev", &["PipelineRun", "TaskRun", "CustomRun"], 60, reads(WhereWritten, &[Needs("Succeeded", Fails)])
            .asleep(&[Is("spec.status", "PipelineRunPending")])),
        row("triggers.tekton.dev", &["EventListener"], 10, reads(WhereWritten, &[Needs("Ready", Waits)])),
        row("operator.tekton.dev", &[
            "TektonConfig", "TektonPipeline", "TektonTrigger", "TektonDashboard", "TektonChain", "TektonResult", "TektonHub",
        ], 15, reads(WhereWritten, &[Needs("Ready", ByReason)])),
        still("tekton.dev", &["Task", "Pipeline", "ClusterTask", "StepAction", "VerificationPolicy"]),
        still("triggers.tekton.dev", &[
            "Trigger", "TriggerTemplate", "TriggerBinding", "ClusterTriggerBinding", "Interceptor", "ClusterInterceptor",
        ]),
    ]},
    Project { name: "k6 Operator", rows: &[
        row("k6.io", &["TestRun", "K6"], 60, reads(Nowhere, &[Says(Word {
            at: "status.stage",
            well: &["finished"],
            busy: &["initialization", "initialized", "created", "started", "stopped"],
            wrong: &["error"],
            ..WORD
        })])),
    ]},
];

/// Judges the sync status. Without automated sync a person decides when to apply.
fn synced<'a>(live: Live<'a>) -> Option<Health> {
    let text = |condition: &'a Value, field: &str| condition.get(field).and_then(Value::as_str);
    let conditions = live.items(&["status", "conditions"]).iter();
    let mut conditions =
        conditions.filter_map(|condition| Some((text(condition, "type")?, text(condition, "message")?)));
    if let Some((kind, message)) = conditions.find(|(kind, _)| kind.ends_with("Error")) {
        return Some(Health::degraded(format!("{}: {}", told(kind), told(message))));
    }
    let said = |said: &str| with(live, "status.operationState.message", said.to_owned());
    match live.dotted("status.operationState.phase").and_then(Value::as_str) {
        Some("Running" | "Terminating") => return Some(Health::progressing(said("an operation is running"))),
        Some("Failed" | "Error") => return Some(Health::degraded(said("its last operation failed"))),
        _ => {}
    }
    // Its controller records no generation, but the source that it compared.
    let source = |of: &str, field: &str| live.dotted(&format!("{of}.{field}")).and_then(Value::as_str);
    let differs = |field: &&str| {
        let (wanted, seen) = (source("spec.source", field), source("status.sync.comparedTo.source", field));
        wanted.zip(seen).is_some_and(|(wanted, seen)| wanted != seen)
    };
    if let Some(field) = ["repoURL", "path", "targetRevision", "chart"].into_iter().find(differs) {
        return Some(Health::progressing(format!("its newest {field} was not compared yet")));
    }
    let automated = live.dotted("spec.syncPolicy.automated").is_some_and(|policy| {
        policy.is_object() && policy.get("enabled").and_then(Value::as_bool).unwrap_or(true)
    });
    match live.dotted("status.sync.status").and_then(Value::as_str)? {
        "Synced" => Some(Health::Healthy),
        other if automated => Some(Health::progressing(format!("its sync status is {}", told(other)))),
        _ => Some(Health::Healthy),
    }
}

/// An upgrade with manual approval waits for a person; so does the first installation.
fn subscription(live: Live<'_>) -> Option<Health> {
    let manual = live.text(&["spec", "installPlanApproval"]) == Some("Manual");
    Some(match live.text(&["status", "state"])? {
        "AtLatestKnown" => Health::Healthy,
        "UpgradePending" if manual => Health::Suspended,
        state @ ("UpgradePending" | "UpgradeAvailable") => {
            Health::progressing(format!("its state is {state}"))
        }
        "UpgradeFailed" => Health::degraded("its state is UpgradeFailed"),
        other => Health::unknown(format!("its state is {}, and no rule says what that means", told(other))),
    })
}
