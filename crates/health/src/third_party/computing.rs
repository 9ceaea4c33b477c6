//! Functions, models and distributed jobs.
//!
//! In: nothing.
//! Out: rules. Training and batch work may take a day without a sign of progress; a service starts
//! within minutes.

use super::rule::Check::{
    FailedIfTrue, Phase as Reporting, ProgressingIfTrue, Reached as Counts, Required, SuspendedIfTrue,
};
use super::rule::Generation::{InStatus, Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, FailsBut, Waits};
use super::rule::Switch::{Annotation, HasAnnotation, Is, True};
use super::rule::{
    COUNT_DEFAULTS, CountCheck, MissingStatus, PHASE_DEFAULTS, PhaseCheck, Project, Rule, kind_rule,
    no_status, status_rule,
};

/// Knative reports Unknown while it works, and False when it is stuck; but a referenced object may
/// be created a moment later.
const KNATIVE: Rule = status_rule(
    InStatus,
    &[Required(
        "Ready",
        FailsBut(&[
            "BrokerDoesNotExist",
            "BrokerNotConfigured",
            "ConfigurationMissing",
            "RevisionMissing",
            "SinkNotFound",
            "Uninitialized",
        ]),
    )],
);

/// One day.
const WORK: i64 = 24 * 60;

const JOB: Rule = status_rule(
    WhereWritten,
    &[
        FailedIfTrue(&["Failed"]),
        SuspendedIfTrue(&["Suspended"]),
        ProgressingIfTrue(&["Restarting"]),
        Required("Succeeded", Waits),
    ],
)
.with_suspended_by(&[True("spec.runPolicy.suspend")]);

const FLINK: PhaseCheck = PhaseCheck {
    path: "status.lifecycleState",
    healthy: &["STABLE"],
    progressing: &["CREATED", "DEPLOYED", "UPGRADING", "ROLLING_BACK", "DELETING"],
    failed: &["FAILED", "ROLLED_BACK"],
    suspended: &["SUSPENDED"],
    message: "status.error",
    ..PHASE_DEFAULTS
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Flink Operator", rows: &[
        kind_rule("flink.apache.org", &["FlinkDeployment", "FlinkSessionJob"], 30, status_rule(WhereWritten, &[Reporting(FLINK)])
            .with_suspended_by(&[Is("spec.job.state", "suspended")])),
    ]},
    Project { name: "JobSet", rows: &[
        kind_rule("jobset.x-k8s.io", &["JobSet"], WORK, status_rule(Nowhere, &[
            FailedIfTrue(&["Failed"]), SuspendedIfTrue(&["Suspended"]), Required("Completed", Waits),
        ]).with_suspended_by(&[True("spec.suspend")])),
    ]},
    Project { name: "Knative", rows: &[
        kind_rule("serving.knative.dev", &["Service", "Configuration", "Route", "DomainMapping"], 10, KNATIVE),
        kind_rule("eventing.knative.dev", &["Broker", "Trigger"], 10, KNATIVE),
        kind_rule("messaging.knative.dev", &["Channel", "InMemoryChannel", "KafkaChannel", "Subscription"], 10, KNATIVE),
        kind_rule("sources.knative.dev", &["ApiServerSource", "ContainerSource", "KafkaSource", "PingSource", "SinkBinding"], 10, KNATIVE),
        kind_rule("flows.knative.dev", &["Parallel", "Sequence"], 10, KNATIVE),
        kind_rule("operator.knative.dev", &["KnativeServing", "KnativeEventing"], 15, status_rule(InStatus, &[Required("Ready", ByReason)])),
        no_status("eventing.knative.dev", &["EventType"]),
        no_status("caching.internal.knative.dev", &["Image"]),
    ]},
    Project { name: "KServe", rows: &[
        kind_rule("serving.kserve.io", &["InferenceService"], 30, status_rule(WhereWritten, &[
            Reporting(PhaseCheck {
                path: "status.modelStatus.transitionStatus",
                healthy: &["UpToDate"],
                progressing: &["InProgress"],
                failed: &["BlockedByFailedLoad", "InvalidSpec"],
                message: "status.modelStatus.lastFailureInfo.message",
                needed: false,
                ..PHASE_DEFAULTS
            }),
            Required("Ready", Waits),
        ]).with_suspended_by(&[Annotation("serving.kserve.io/stop", "true")])),
        kind_rule("serving.kserve.io", &["InferenceGraph", "LLMInferenceService", "TrainedModel"], 30, status_rule(WhereWritten, &[Required("Ready", Waits)])),
        no_status("serving.kserve.io", &["ServingRuntime", "ClusterServingRuntime", "ClusterStorageContainer", "LLMInferenceServiceConfig"]),
    ]},
    Project { name: "Kubeflow", rows: &[
        kind_rule("kubeflow.org", &["PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob"], WORK, JOB),
        kind_rule("kubeflow.org", &["Experiment", "Trial"], WORK, status_rule(Nowhere, &[
            FailedIfTrue(&["Failed"]), ProgressingIfTrue(&["Running", "Restarting"]), Required("Succeeded", Waits),
        ])),
        kind_rule("kubeflow.org", &["Notebook"], 15, status_rule(Nowhere, &[Counts(CountCheck { wanted: "", noun: "Pod", ..COUNT_DEFAULTS })])
            .with_suspended_by(&[HasAnnotation("kubeflow-resource-stopped")])),
        kind_rule("kubeflow.org", &["Profile"], 5, status_rule(Nowhere, &[FailedIfTrue(&["Failed"])]).with_missing_status(MissingStatus::Healthy)),
        kind_rule("tensorboard.kubeflow.org", &["Tensorboard"], 15, status_rule(Nowhere, &[Counts(CountCheck { wanted: "", noun: "Pod", ..COUNT_DEFAULTS })])),
        kind_rule("trainer.kubeflow.org", &["TrainJob"], WORK, status_rule(Nowhere, &[
            FailedIfTrue(&["Failed"]), SuspendedIfTrue(&["Suspended"]), Required("Complete", Waits),
        ]).with_suspended_by(&[True("spec.suspend")])),
        no_status("kubeflow.org", &["PodDefault", "PVCViewer", "Viewer"]),
        no_status("trainer.kubeflow.org", &["TrainingRuntime", "ClusterTrainingRuntime"]),
        no_status("pipelines.kubeflow.org", &["Pipeline", "PipelineVersion"]),
    ]},
    Project { name: "Kueue", rows: &[
        kind_rule("kueue.x-k8s.io", &["ClusterQueue", "LocalQueue"], 10, status_rule(WhereWritten, &[Required("Active", Waits)])
            .with_suspended_by(&[Is("spec.stopPolicy", "Hold"), Is("spec.stopPolicy", "HoldAndDrain")])),
        kind_rule("kueue.x-k8s.io", &["AdmissionCheck"], 10, status_rule(WhereWritten, &[Required("Active", Waits)])),
        no_status("kueue.x-k8s.io", &["Cohort", "MultiKueueConfig", "ProvisioningRequestConfig", "ResourceFlavor", "Topology", "WorkloadPriorityClass"]),
    ]},
    Project { name: "LeaderWorkerSet", rows: &[
        kind_rule("leaderworkerset.x-k8s.io", &["LeaderWorkerSet"], 15, status_rule(Nowhere, &[
            Required("Available", Waits), ProgressingIfTrue(&["Progressing", "UpdateInProgress"]),
        ])),
    ]},
    Project { name: "Ray", rows: &[
        kind_rule("ray.io", &["RayCluster"], 30, status_rule(WhereWritten, &[Reporting(PhaseCheck {
            path: "status.state",
            healthy: &["ready"],
            progressing: &["unhealthy"],
            failed: &["failed"],
            suspended: &["suspended"],
            message: "status.reason",
            ..PHASE_DEFAULTS
        })]).with_suspended_by(&[True("spec.suspend")])),
        kind_rule("ray.io", &["RayService"], 30, status_rule(WhereWritten, &[Reporting(PhaseCheck {
            path: "status.serviceStatus",
            healthy: &["Running"],
            is_free_text: true,
            ..PHASE_DEFAULTS
        })])),
        kind_rule("ray.io", &["RayJob"], WORK, status_rule(WhereWritten, &[
            Reporting(PhaseCheck {
                path: "status.jobStatus",
                healthy: &["SUCCEEDED"],
                progressing: &["PENDING", "RUNNING"],
                failed: &["FAILED", "STOPPED"],
                needed: false,
                ..PHASE_DEFAULTS
            }),
            Reporting(PhaseCheck {
                path: "status.jobDeploymentStatus",
                healthy: &["Complete"],
                progressing: &["Initializing", "Running", "Retrying", "Suspending", "Waiting"],
                failed: &["Failed", "ValidationFailed"],
                suspended: &["Suspended"],
                ..PHASE_DEFAULTS
            }),
        ]).with_suspended_by(&[True("spec.suspend")])),
    ]},
    Project { name: "Spark Operator", rows: &[
        // An application may be an endless stream, so a running one is healthy.
        kind_rule("sparkoperator.k8s.io", &["SparkApplication"], 60, status_rule(Nowhere, &[Reporting(PhaseCheck {
            path: "status.applicationState.state",
            healthy: &["RUNNING", "COMPLETED"],
            progressing: &["NEW", "SUBMITTED", "PENDING_RERUN", "INVALIDATING", "SUCCEEDING", "FAILING", "SUSPENDING", "RESUMING", "UNKNOWN"],
            failed: &["FAILED", "SUBMISSION_FAILED"],
            suspended: &["SUSPENDED"],
            message: "status.applicationState.errorMessage",
            ..PHASE_DEFAULTS
        })]).with_suspended_by(&[True("spec.suspend")])),
        kind_rule("sparkoperator.k8s.io", &["ScheduledSparkApplication"], 10, status_rule(Nowhere, &[Reporting(PhaseCheck {
            path: "status.scheduleState",
            healthy: &["Scheduled"],
            progressing: &["Validating"],
            failed: &["FailedValidation"],
            message: "status.reason",
            ..PHASE_DEFAULTS
        })]).with_suspended_by(&[True("spec.suspend")])),
    ]},
];
