//! Clusters, machines and virtual machines.
//!
//! In: nothing.
//! Out: rules. Machines are created by a cloud or booted on bare metal: they get half an hour or
//! more.

use serde_json::Value;

use super::super::Health;
use super::super::condition::Condition;
use super::super::live::Live;
use super::rule::Generation::{InStatus, Nowhere, WhereWritten};
use super::rule::IfFalse::{Fails, Waits};
use super::rule::Reading::{
    Busy, Complaint, Count as Counts, Flag, Heeds, Needs, Odd as Reads, Refused, Trouble, Word as Says,
};
use super::rule::Switch::{Noted, True};
use super::rule::{Answer, COUNT, Count, Odd, Project, Rule, Silence, Switch, WORD, Word, reads, row, still};

const PAUSED: [Switch; 2] = [True("spec.paused"), Noted("cluster.x-k8s.io/paused")];

const MACHINES: Word = Word {
    well: &["Running"],
    busy: &[
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
    wrong: &["Failed"],
    message: "status.failureMessage",
    needed: false,
    ..WORD
};

/// Machines and networks of infrastructure providers: a condition, and in older versions a plain
/// `ready`.
const INFRASTRUCTURE: Rule = reads(
    WhereWritten,
    &[
        Heeds("Ready", Waits),
        Flag("status.ready", Waits),
        Flag("status.initialization.provisioned", Waits),
        Complaint("status.failureMessage"),
    ],
)
.asleep(&PAUSED);

/// The three conditions of OpenShift operators, and of other operators with the same convention.
const OPERATOR: Rule =
    reads(WhereWritten, &[Trouble(&["Degraded"]), Needs("Available", Waits), Busy(&["Progressing"])]);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Cluster API", rows: &[
        row("cluster.x-k8s.io", &["Cluster"], 60, reads(WhereWritten, &[
            Says(Word {
                well: &["Provisioned"],
                busy: &["Pending", "Provisioning", "Deleting", "Unknown"],
                wrong: &["Failed"],
                message: "status.failureMessage",
                ..WORD
            }),
            Heeds("Available", Waits),
            Heeds("ControlPlaneReady", Waits),
            Heeds("InfrastructureReady", Waits),
            Complaint("status.failureMessage"),
        ]).asleep(&PAUSED)),
        row("cluster.x-k8s.io", &["Machine"], 30, reads(WhereWritten, &[
            Says(MACHINES), Heeds("Ready", Waits), Complaint("status.failureMessage"),
        ]).asleep(&PAUSED)),
        row("cluster.x-k8s.io", &["MachineDeployment", "MachineSet", "MachinePool"], 60, reads(WhereWritten, &[
            Says(MACHINES),
            Counts(COUNT),
            Complaint("status.failureMessage"),
        ]).asleep(&PAUSED)),
        row("cluster.x-k8s.io", &["MachineHealthCheck"], 10, reads(WhereWritten, &[Refused(&["RemediationAllowed"])]).asleep(&PAUSED)),
        row("cluster.x-k8s.io", &["ClusterClass"], 5, reads(WhereWritten, &[
            Heeds("VariablesReady", Fails), Heeds("VariablesReconciled", Fails),
        ]).asleep(&PAUSED)),
        row("controlplane.cluster.x-k8s.io", &["KubeadmControlPlane"], 60, reads(WhereWritten, &[
            Counts(Count { noun: "control plane machine", ..COUNT }),
            Heeds("Ready", Waits),
            Heeds("Available", Waits),
            Complaint("status.failureMessage"),
        ]).asleep(&PAUSED)),
        still("*.cluster.x-k8s.io", &["*Template", "*Identity"]),
        row("bootstrap.cluster.x-k8s.io", &["KubeadmConfig"], 30, INFRASTRUCTURE),
        row("infrastructure.cluster.x-k8s.io", &["*"], 60, INFRASTRUCTURE.silent(Silence::Perhaps)),
    ]},
    Project { name: "Metal3", rows: &[
        row("metal3.io", &["BareMetalHost"], 60, reads(Nowhere, &[
            Says(Word {
                at: "status.operationalStatus",
                well: &["OK"],
                busy: &["discovered", "delayed", "servicing"],
                wrong: &["error"],
                asleep: &["detached"],
                message: "status.errorMessage",
                ..WORD
            }),
            Says(Word {
                at: "status.provisioning.state",
                well: &["available", "ready", "provisioned", "externally provisioned", "unmanaged"],
                message: "status.errorMessage",
                open: true,
                ..WORD
            }),
        ]).asleep(&[Noted("baremetalhost.metal3.io/paused")])),
    ]},
    Project { name: "KubeVirt", rows: &[
        row("kubevirt.io", &["VirtualMachine"], 30, reads(WhereWritten, &[Says(Word {
            at: "status.printableStatus",
            well: &["Running"],
            busy: &[
                "Provisioning", "Starting", "Stopping", "Migrating", "Terminating", "WaitingForVolumeBinding", "WaitingForReceiver",
                "ErrorUnschedulable",
            ],
            wrong: &[
                "CrashLoopBackOff", "DataVolumeError", "ErrImagePull", "ErrorDataVolumeNotFound", "ErrorPvcNotFound", "ImagePullBackOff",
            ],
            asleep: &["Paused", "Stopped"],
            ..WORD
        })])),
        row("kubevirt.io", &["VirtualMachineInstance"], 30, reads(Nowhere, &[Says(Word {
            well: &["Running", "Succeeded"],
            busy: &["Pending", "Scheduling", "Scheduled", "WaitingForSync"],
            wrong: &["Failed"],
            message: "status.reason",
            ..WORD
        })])),
        row("kubevirt.io", &["KubeVirt"], 15, reads(WhereWritten, &[
            Says(Word { well: &["Deployed"], busy: &["Deploying", "Deleting", "Deleted"], ..WORD }),
            Trouble(&["Degraded"]),
            Heeds("Available", Waits),
        ])),
        row("cdi.kubevirt.io", &["CDI"], 15, reads(WhereWritten, &[
            Says(Word { well: &["Deployed"], busy: &["Deploying", "Deleting", "Deleted", "Upgrading"], wrong: &["Error"], ..WORD }),
            Trouble(&["Degraded"]),
            Heeds("Available", Waits),
        ])),
        // A volume that waits for its first consumer by design is healthy.
        row("cdi.kubevirt.io", &["DataVolume"], 60, reads(Nowhere, &[Says(Word {
            well: &["Succeeded", "WaitForFirstConsumer", "PendingPopulation"],
            wrong: &["Failed"],
            asleep: &["Paused", "UploadReady"],
            open: true,
            ..WORD
        })])),
        still("instancetype.kubevirt.io", &["*"]),
        still("cdi.kubevirt.io", &["StorageProfile", "CDIConfig"]),
    ]},
    Project { name: "NVIDIA GPU Operator", rows: &[
        row("nvidia.com", &["ClusterPolicy", "NVIDIADriver"], 30, reads(Nowhere, &[Says(Word {
            at: "status.state",
            well: &["ready"],
            busy: &["notReady"],
            asleep: &["ignored", "disabled"],
            ..WORD
        })])),
    ]},
    Project { name: "Node Feature Discovery", rows: &[
        row("nfd.kubernetes.io", &["NodeFeatureDiscovery"], 10, OPERATOR),
        row("nfd.openshift.io", &["NodeFeatureDiscovery"], 10, OPERATOR),
        still("nfd.k8s-sigs.io", &["*"]),
    ]},
    Project { name: "OpenShift", rows: &[
        row("config.openshift.io", &["ClusterOperator"], 30, OPERATOR),
        row("config.openshift.io", &["ClusterVersion"], 60, reads(WhereWritten, &[
            Trouble(&["Failing"]), Needs("Available", Waits), Busy(&["Progressing"]),
        ])),
        row("machineconfiguration.openshift.io", &["MachineConfigPool"], 60, reads(WhereWritten, &[
            Trouble(&["Degraded", "NodeDegraded", "RenderDegraded"]), Needs("Updated", Waits),
        ]).asleep(&[True("spec.paused")])),
        row("apps.openshift.io", &["DeploymentConfig"], 15, reads(InStatus, &[
            Refused(&["Progressing"]),
            Counts(Count { have: "status.updatedReplicas", be: "updated", ..COUNT }),
            Counts(Count { have: "status.availableReplicas", be: "available", ..COUNT }),
        ]).asleep(&[True("spec.paused")])),
        row("route.openshift.io", &["Route"], 5, reads(Nowhere, &[Reads(Odd {
            words: "every router of `status.ingress` has `Admitted` True",
            answers: &[Answer::Progressing, Answer::Degraded],
            judge: admitted,
        })])),
        row("build.openshift.io", &["Build"], 60, reads(Nowhere, &[Says(Word {
            well: &["Complete"],
            busy: &["New", "Pending", "Running"],
            wrong: &["Failed", "Error", "Cancelled"],
            ..WORD
        })])),
        still("build.openshift.io", &["BuildConfig"]),
        still("image.openshift.io", &["ImageStream", "ImageStreamTag", "ImageTag"]),
        still("config.openshift.io", &["*"]),
        still("console.openshift.io", &["*"]),
        still("machineconfiguration.openshift.io", &["MachineConfig"]),
        still("oauth.openshift.io", &["*"]),
        still("security.openshift.io", &["*"]),
        still("template.openshift.io", &["*"]),
        still("user.openshift.io", &["*"]),
    ]},
    Project { name: "OpenKruise", rows: &[
        row("apps.kruise.io", &["CloneSet"], 15, reads(InStatus, &[
            Counts(COUNT),
            Counts(Count { have: "status.updatedReplicas", of: "status.expectedUpdatedReplicas", or: 0, be: "updated", ..COUNT }),
        ]).asleep(&[True("spec.updateStrategy.paused")])),
    ]},
    Project { name: "Tigera Operator", rows: &[
        row("operator.tigera.io", &["TigeraStatus"], 10, OPERATOR),
        row("operator.tigera.io", &["Installation", "APIServer", "Goldmane", "Whisker"], 15, reads(WhereWritten, &[
            Trouble(&["Degraded"]), Heeds("Ready", Waits), Busy(&["Progressing"]),
        ]).silent(Silence::Perhaps)),
    ]},
];

/// Each router reports separately. A router that refused the Route, for example because another
/// Route has the host, does not retry without a change.
fn admitted(live: Live<'_>) -> Option<Health> {
    let routers = live.items(&["status", "ingress"]);
    let conditions =
        |router: &Value| router.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut waits = routers.is_empty().then(|| "no router has taken it yet".to_owned());
    for router in routers {
        let name = router.get("routerName").and_then(Value::as_str).unwrap_or("a router");
        let conditions = conditions(router);
        let admitted =
            conditions.iter().filter_map(Condition::of).find(|condition| condition.kind == "Admitted");
        match admitted {
            Some(admitted) if admitted.is_true() => {}
            Some(admitted) if admitted.is_false() => {
                return Some(Health::degraded(format!(
                    "{}: {}",
                    super::super::sentence::told(name),
                    admitted.sentence()
                )));
            }
            _ => {
                waits =
                    waits.or_else(|| Some(format!("{} has not answered", super::super::sentence::told(name))))
            }
        }
    }
    Some(waits.map_or(Health::Healthy, Health::progressing))
}
