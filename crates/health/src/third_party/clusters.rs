//! Clusters, machines and virtual machines.
//!
//! In: nothing.
//! Out: rules. Machines are created by a cloud or booted on bare metal: they get half an hour or
//! more.

use serde_json::Value;

use super::super::Health;
use super::super::condition::Condition;
use super::rule::Check::{
    BoolField, Custom as Reads, ErrorText, FailedIfFalse, FailedIfTrue, IfReported, Phase as Reporting,
    ProgressingIfTrue, Reached as Counts, Required,
};
use super::rule::Generation::{InStatus, Nowhere, WhereWritten};
use super::rule::IfFalse::{Fails, Waits};
use super::rule::Switch::{HasAnnotation, True};
use super::rule::{
    COUNT_DEFAULTS, CountCheck, CustomCheck, MissingStatus, PHASE_DEFAULTS, PhaseCheck, Project, Rule,
    Switch, Verdict, kind_rule, no_status, status_rule,
};
use crate::object_view::ObjectView;

const PAUSED: [Switch; 2] = [True("spec.paused"), HasAnnotation("cluster.x-k8s.io/paused")];

const MACHINES: PhaseCheck = PhaseCheck {
    healthy: &["Running"],
    progressing: &[
        "Pending",
        "Provisioning",
        "Provisioned",
        "ScalingUp",
        "ScalingDown",
        "Scaling",
        "Updating",
        "Deleting",
        "Deleted",
        "Unknown",
    ],
    failed: &["Failed"],
    message: "status.failureMessage",
    needed: false,
    ..PHASE_DEFAULTS
};

/// Machines and networks of infrastructure providers: a condition, and in older versions a plain
/// `ready`.
const INFRASTRUCTURE: Rule = status_rule(
    WhereWritten,
    &[
        IfReported("Ready", Waits),
        BoolField("status.ready", Waits),
        BoolField("status.initialization.provisioned", Waits),
        ErrorText("status.failureMessage"),
    ],
)
.with_suspended_by(&PAUSED);

/// The three conditions of OpenShift operators, and of other operators with the same convention.
const OPERATOR: Rule = status_rule(
    WhereWritten,
    &[FailedIfTrue(&["Degraded"]), Required("Available", Waits), ProgressingIfTrue(&["Progressing"])],
);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Cluster API", rows: &[
        kind_rule("cluster.x-k8s.io", &["Cluster"], 60, status_rule(WhereWritten, &[
            Reporting(PhaseCheck {
                healthy: &["Provisioned"],
                progressing: &["Pending", "Provisioning", "Deleting", "Unknown"],
                failed: &["Failed"],
                message: "status.failureMessage",
                ..PHASE_DEFAULTS
            }),
            IfReported("Available", Waits),
            IfReported("ControlPlaneReady", Waits),
            IfReported("InfrastructureReady", Waits),
            ErrorText("status.failureMessage"),
        ]).with_suspended_by(&PAUSED)),
        kind_rule("cluster.x-k8s.io", &["Machine"], 30, status_rule(WhereWritten, &[
            Reporting(MACHINES), IfReported("Ready", Waits), ErrorText("status.failureMessage"),
        ]).with_suspended_by(&PAUSED)),
        kind_rule("cluster.x-k8s.io", &["MachineDeployment", "MachineSet", "MachinePool"], 60, status_rule(WhereWritten, &[
            Reporting(MACHINES),
            Counts(COUNT_DEFAULTS),
            ErrorText("status.failureMessage"),
        ]).with_suspended_by(&PAUSED)),
        kind_rule("cluster.x-k8s.io", &["MachineHealthCheck"], 10, status_rule(WhereWritten, &[FailedIfFalse(&["RemediationAllowed"])]).with_suspended_by(&PAUSED)),
        kind_rule("cluster.x-k8s.io", &["ClusterClass"], 5, status_rule(WhereWritten, &[
            IfReported("VariablesReady", Fails), IfReported("VariablesReconciled", Fails),
        ]).with_suspended_by(&PAUSED)),
        kind_rule("controlplane.cluster.x-k8s.io", &["KubeadmControlPlane"], 60, status_rule(WhereWritten, &[
            Counts(CountCheck { noun: "control plane machine", ..COUNT_DEFAULTS }),
            IfReported("Ready", Waits),
            IfReported("Available", Waits),
            ErrorText("status.failureMessage"),
        ]).with_suspended_by(&PAUSED)),
        no_status("*.cluster.x-k8s.io", &["*Template", "*Identity"]),
        kind_rule("bootstrap.cluster.x-k8s.io", &["KubeadmConfig"], 30, INFRASTRUCTURE),
        kind_rule("infrastructure.cluster.x-k8s.io", &["*"], 60, INFRASTRUCTURE.with_missing_status(MissingStatus::ByKind)),
    ]},
    Project { name: "Metal3", rows: &[
        kind_rule("metal3.io", &["BareMetalHost"], 60, status_rule(Nowhere, &[
            Reporting(PhaseCheck {
                path: "status.operationalStatus",
                healthy: &["OK"],
                progressing: &["discovered", "delayed", "servicing"],
                failed: &["error"],
                suspended: &["detached"],
                message: "status.errorMessage",
                ..PHASE_DEFAULTS
            }),
            Reporting(PhaseCheck {
                path: "status.provisioning.state",
                healthy: &["available", "ready", "provisioned", "externally provisioned", "unmanaged"],
                message: "status.errorMessage",
                is_free_text: true,
                ..PHASE_DEFAULTS
            }),
        ]).with_suspended_by(&[HasAnnotation("baremetalhost.metal3.io/paused")])),
    ]},
    Project { name: "KubeVirt", rows: &[
        kind_rule("kubevirt.io", &["VirtualMachine"], 30, status_rule(WhereWritten, &[Reporting(PhaseCheck {
            path: "status.printableStatus",
            healthy: &["Running"],
            progressing: &[
                "Provisioning", "Starting", "Stopping", "Migrating", "Terminating", "WaitingForVolumeBinding", "WaitingForReceiver",
                "ErrorUnschedulable",
            ],
            failed: &[
                "CrashLoopBackOff", "DataVolumeError", "ErrImagePull", "ErrorDataVolumeNotFound", "ErrorPvcNotFound", "ImagePullBackOff",
            ],
            suspended: &["Paused", "Stopped"],
            ..PHASE_DEFAULTS
        })])),
        kind_rule("kubevirt.io", &["VirtualMachineInstance"], 30, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Running", "Succeeded"],
            progressing: &["Pending", "Scheduling", "Scheduled", "WaitingForSync"],
            failed: &["Failed"],
            message: "status.reason",
            ..PHASE_DEFAULTS
        })])),
        kind_rule("kubevirt.io", &["KubeVirt"], 15, status_rule(WhereWritten, &[
            Reporting(PhaseCheck { healthy: &["Deployed"], progressing: &["Deploying", "Deleting", "Deleted"], ..PHASE_DEFAULTS }),
            FailedIfTrue(&["Degraded"]),
            IfReported("Available", Waits),
        ])),
        kind_rule("cdi.kubevirt.io", &["CDI"], 15, status_rule(WhereWritten, &[
            Reporting(PhaseCheck { healthy: &["Deployed"], progressing: &["Deploying", "Deleting", "Deleted", "Upgrading"], failed: &["Error"], ..PHASE_DEFAULTS }),
            FailedIfTrue(&["Degraded"]),
            IfReported("Available", Waits),
        ])),
        // A volume that waits for its first consumer by design is healthy.
        kind_rule("cdi.kubevirt.io", &["DataVolume"], 60, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Succeeded", "WaitForFirstConsumer", "PendingPopulation"],
            failed: &["Failed"],
            suspended: &["Paused", "UploadReady"],
            is_free_text: true,
            ..PHASE_DEFAULTS
        })])),
        no_status("instancetype.kubevirt.io", &["*"]),
        no_status("cdi.kubevirt.io", &["StorageProfile", "CDIConfig"]),
    ]},
    Project { name: "NVIDIA GPU Operator", rows: &[
        kind_rule("nvidia.com", &["ClusterPolicy", "NVIDIADriver"], 30, status_rule(Nowhere, &[Reporting(PhaseCheck {
            path: "status.state",
            healthy: &["ready"],
            progressing: &["notReady"],
            suspended: &["ignored", "disabled"],
            ..PHASE_DEFAULTS
        })])),
    ]},
    Project { name: "Node Feature Discovery", rows: &[
        kind_rule("nfd.kubernetes.io", &["NodeFeatureDiscovery"], 10, OPERATOR),
        kind_rule("nfd.openshift.io", &["NodeFeatureDiscovery"], 10, OPERATOR),
        no_status("nfd.k8s-sigs.io", &["*"]),
    ]},
    Project { name: "OpenShift", rows: &[
        kind_rule("config.openshift.io", &["ClusterOperator"], 30, OPERATOR),
        kind_rule("config.openshift.io", &["ClusterVersion"], 60, status_rule(WhereWritten, &[
            FailedIfTrue(&["Failing"]), Required("Available", Waits), ProgressingIfTrue(&["Progressing"]),
        ])),
        kind_rule("machineconfiguration.openshift.io", &["MachineConfigPool"], 60, status_rule(WhereWritten, &[
            FailedIfTrue(&["Degraded", "NodeDegraded", "RenderDegraded"]), Required("Updated", Waits),
        ]).with_suspended_by(&[True("spec.paused")])),
        kind_rule("apps.openshift.io", &["DeploymentConfig"], 15, status_rule(InStatus, &[
            FailedIfFalse(&["Progressing"]),
            Counts(CountCheck { actual: "status.updatedReplicas", be: "updated", ..COUNT_DEFAULTS }),
            Counts(CountCheck { actual: "status.availableReplicas", be: "available", ..COUNT_DEFAULTS }),
        ]).with_suspended_by(&[True("spec.paused")])),
        kind_rule("route.openshift.io", &["Route"], 5, status_rule(Nowhere, &[Reads(CustomCheck {
            description: "every router of `status.ingress` has `Admitted` True",
            verdicts: &[Verdict::Progressing, Verdict::Degraded],
            judge: admitted,
        })])),
        kind_rule("build.openshift.io", &["Build"], 60, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Complete"],
            progressing: &["New", "Pending", "Running"],
            failed: &["Failed", "Error", "Cancelled"],
            ..PHASE_DEFAULTS
        })])),
        no_status("build.openshift.io", &["BuildConfig"]),
        no_status("image.openshift.io", &["ImageStream", "ImageStreamTag", "ImageTag"]),
        no_status("config.openshift.io", &["*"]),
        no_status("console.openshift.io", &["*"]),
        no_status("machineconfiguration.openshift.io", &["MachineConfig"]),
        no_status("oauth.openshift.io", &["*"]),
        no_status("security.openshift.io", &["*"]),
        no_status("template.openshift.io", &["*"]),
        no_status("user.openshift.io", &["*"]),
    ]},
    Project { name: "OpenKruise", rows: &[
        kind_rule("apps.kruise.io", &["CloneSet"], 15, status_rule(InStatus, &[
            Counts(COUNT_DEFAULTS),
            Counts(CountCheck { actual: "status.updatedReplicas", wanted: "status.expectedUpdatedReplicas", default_wanted: 0, be: "updated", ..COUNT_DEFAULTS }),
        ]).with_suspended_by(&[True("spec.updateStrategy.paused")])),
    ]},
    Project { name: "Tigera Operator", rows: &[
        kind_rule("operator.tigera.io", &["TigeraStatus"], 10, OPERATOR),
        kind_rule("operator.tigera.io", &["Installation", "APIServer", "Goldmane", "Whisker"], 15, status_rule(WhereWritten, &[
            FailedIfTrue(&["Degraded"]), IfReported("Ready", Waits), ProgressingIfTrue(&["Progressing"]),
        ]).with_missing_status(MissingStatus::ByKind)),
    ]},
];

/// Each router reports separately. A router that refused the Route, for example because another
/// Route has the host, does not retry without a change.
fn admitted(live: ObjectView<'_>) -> Option<Health> {
    let routers = live.items(&["status", "ingress"]);
    let conditions =
        |router: &Value| router.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut waits = routers.is_empty().then(|| "no router has taken it yet".to_owned());
    for router in routers {
        let name = router.get("routerName").and_then(Value::as_str).unwrap_or("a router");
        let conditions = conditions(router);
        let admitted = conditions
            .iter()
            .filter_map(Condition::from_value)
            .find(|condition| condition.kind == "Admitted");
        match admitted {
            Some(admitted) if admitted.is_true() => {}
            Some(admitted) if admitted.is_false() => {
                return Some(Health::degraded(format!(
                    "{}: {}",
                    crate::message::quote(name),
                    admitted.describe()
                )));
            }
            _ => {
                waits = waits
                    .or_else(|| Some(format!("{} has not reported a status", crate::message::quote(name))))
            }
        }
    }
    Some(waits.map_or(Health::Healthy, Health::progressing))
}
