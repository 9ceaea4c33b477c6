//! Functions, models and distributed jobs.
//!
//! In: nothing.
//! Out: rules. Training and batch work may take a day without a sign of progress; a service starts
//! within minutes.

use super::rule::Generation::{InStatus, Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, FailsBut, Waits};
use super::rule::Reading::{Busy, Count as Counts, Needs, Rests, Trouble, Word as Says};
use super::rule::Switch::{Annotation, Is, Noted, True};
use super::rule::{COUNT, Count, Project, Rule, Silence, WORD, Word, reads, row, still};

/// Knative reports Unknown while it works, and False when it is stuck; but a referenced object may
/// be created a moment later.
const KNATIVE: Rule = reads(
    InStatus,
    &[Needs(
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

const JOB: Rule = reads(
    WhereWritten,
    &[Trouble(&["Failed"]), Rests(&["Suspended"]), Busy(&["Restarting"]), Needs("Succeeded", Waits)],
)
.asleep(&[True("spec.runPolicy.suspend")]);

const FLINK: Word = Word {
    at: "status.lifecycleState",
    well: &["STABLE"],
    busy: &["CREATED", "DEPLOYED", "UPGRADING", "ROLLING_BACK", "DELETING"],
    wrong: &["FAILED", "ROLLED_BACK"],
    asleep: &["SUSPENDED"],
    message: "status.error",
    ..WORD
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Flink Operator", rows: &[
        row("flink.apache.org", &["FlinkDeployment", "FlinkSessionJob"], 30, reads(WhereWritten, &[Says(FLINK)])
            .asleep(&[Is("spec.job.state", "suspended")])),
    ]},
    Project { name: "JobSet", rows: &[
        row("jobset.x-k8s.io", &["JobSet"], WORK, reads(Nowhere, &[
            Trouble(&["Failed"]), Rests(&["Suspended"]), Needs("Completed", Waits),
        ]).asleep(&[True("spec.suspend")])),
    ]},
    Project { name: "Knative", rows: &[
        row("serving.knative.dev", &["Service", "Configuration", "Route", "DomainMapping"], 10, KNATIVE),
        row("eventing.knative.dev", &["Broker", "Trigger"], 10, KNATIVE),
        row("messaging.knative.dev", &["Channel", "InMemoryChannel", "KafkaChannel", "Subscription"], 10, KNATIVE),
        row("sources.knative.dev", &["ApiServerSource", "ContainerSource", "KafkaSource", "PingSource", "SinkBinding"], 10, KNATIVE),
        row("flows.knative.dev", &["Parallel", "Sequence"], 10, KNATIVE),
        row("operator.knative.dev", &["KnativeServing", "KnativeEventing"], 15, reads(InStatus, &[Needs("Ready", ByReason)])),
        still("eventing.knative.dev", &["EventType"]),
        still("caching.internal.knative.dev", &["Image"]),
    ]},
    Project { name: "KServe", rows: &[
        row("serving.kserve.io", &["InferenceService"], 30, reads(WhereWritten, &[
            Says(Word {
                at: "status.modelStatus.transitionStatus",
                well: &["UpToDate"],
                busy: &["InProgress"],
                wrong: &["BlockedByFailedLoad", "InvalidSpec"],
                message: "status.modelStatus.lastFailureInfo.message",
                needed: false,
                ..WORD
            }),
            Needs("Ready", Waits),
        ]).asleep(&[Annotation("serving.kserve.io/stop", "true")])),
        row("serving.kserve.io", &["InferenceGraph", "LLMInferenceService", "TrainedModel"], 30, reads(WhereWritten, &[Needs("Ready", Waits)])),
        still("serving.kserve.io", &["ServingRuntime", "ClusterServingRuntime", "ClusterStorageContainer", "LLMInferenceServiceConfig"]),
    ]},
    Project { name: "Kubeflow", rows: &[
        row("kubeflow.org", &["PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob"], WORK, JOB),
        row("kubeflow.org", &["Experiment", "Trial"], WORK, reads(Nowhere, &[
            Trouble(&["Failed"]), Busy(&["Running", "Restarting"]), Needs("Succeeded", Waits),
        ])),
        row("kubeflow.org", &["Notebook"], 15, reads(Nowhere, &[Counts(Count { of: "", noun: "Pod", ..COUNT })])
            .asleep(&[Noted("kubeflow-resource-stopped")])),
        row("kubeflow.org", &["Profile"], 5, reads(Nowhere, &[Trouble(&["Failed"])]).silent(Silence::Fine)),
        row("tensorboard.kubeflow.org", &["Tensorboard"], 15, reads(Nowhere, &[Counts(Count { of: "", noun: "Pod", ..COUNT })])),
        row("trainer.kubeflow.org", &["TrainJob"], WORK, reads(Nowhere, &[
            Trouble(&["Failed"]), Rests(&["Suspended"]), Needs("Complete", Waits),
        ]).asleep(&[True("spec.suspend")])),
        still("kubeflow.org", &["PodDefault", "PVCViewer", "Viewer"]),
        still("trainer.kubeflow.org", &["TrainingRuntime", "ClusterTrainingRuntime"]),
        still("pipelines.kubeflow.org", &["Pipeline", "PipelineVersion"]),
    ]},
    Project { name: "Kueue", rows: &[
        row("kueue.x-k8s.io", &["ClusterQueue", "LocalQueue"], 10, reads(WhereWritten, &[Needs("Active", Waits)])
            .asleep(&[Is("spec.stopPolicy", "Hold"), Is("spec.stopPolicy", "HoldAndDrain")])),
        row("kueue.x-k8s.io", &["AdmissionCheck"], 10, reads(WhereWritten, &[Needs("Active", Waits)])),
        still("kueue.x-k8s.io", &["Cohort", "MultiKueueConfig", "ProvisioningRequestConfig", "ResourceFlavor", "Topology", "WorkloadPriorityClass"]),
    ]},
    Project { name: "LeaderWorkerSet", rows: &[
        row("leaderworkerset.x-k8s.io", &["LeaderWorkerSet"], 15, reads(Nowhere, &[
            Needs("Available", Waits), Busy(&["Progressing", "UpdateInProgress"]),
        ])),
    ]},
    Project { name: "Ray", rows: &[
        row("ray.io", &["RayCluster"], 30, reads(WhereWritten, &[Says(Word {
            at: "status.state",
            well: &["ready"],
            busy: &["unhealthy"],
            wrong: &["failed"],
            asleep: &["suspended"],
            message: "status.reason",
            ..WORD
        })]).asleep(&[True("spec.suspend")])),
        row("ray.io", &["RayService"], 30, reads(WhereWritten, &[Says(Word {
            at: "status.serviceStatus",
            well: &["Running"],
            open: true,
            ..WORD
        })])),
        row("ray.io", &["RayJob"], WORK, reads(WhereWritten, &[
            Says(Word {
                at: "status.jobStatus",
                well: &["SUCCEEDED"],
                busy: &["PENDING", "RUNNING"],
                wrong: &["FAILED", "STOPPED"],
                needed: false,
                ..WORD
            }),
            Says(Word {
                at: "status.jobDeploymentStatus",
                well: &["Complete"],
                busy: &["Initializing", "Running", "Retrying", "Suspending", "Waiting"],
                wrong: &["Failed", "ValidationFailed"],
                asleep: &["Suspended"],
                ..WORD
            }),
        ]).asleep(&[True("spec.suspend")])),
    ]},
    Project { name: "Spark Operator", rows: &[
        // An application may be an endless stream, so a running one is healthy.
        row("sparkoperator.k8s.io", &["SparkApplication"], 60, reads(Nowhere, &[Says(Word {
            at: "status.applicationState.state",
            well: &["RUNNING", "COMPLETED"],
            busy: &["NEW", "SUBMITTED", "PENDING_RERUN", "INVALIDATING", "SUCCEEDING", "FAILING", "SUSPENDING", "RESUMING", "UNKNOWN"],
            wrong: &["FAILED", "SUBMISSION_FAILED"],
            asleep: &["SUSPENDED"],
            message: "status.applicationState.errorMessage",
            ..WORD
        })]).asleep(&[True("spec.suspend")])),
        row("sparkoperator.k8s.io", &["ScheduledSparkApplication"], 10, reads(Nowhere, &[Says(Word {
            at: "status.scheduleState",
            well: &["Scheduled"],
            busy: &["Validating"],
            wrong: &["FailedValidation"],
            message: "status.reason",
            ..WORD
        })]).asleep(&[True("spec.suspend")])),
    ]},
];
