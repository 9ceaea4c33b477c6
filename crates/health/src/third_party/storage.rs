//! Volumes, object stores, and their backups.
//!
//! In: nothing.
//! Out: rules. A partial backup is degraded: a restore needs all of it.

use super::super::Health;
use super::rule::Check::{BoolField, Custom as Reads, ErrorText, FailedIfTrue, Phase as Reporting};
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::Waits;
use super::rule::Switch::True;
use super::rule::{
    CustomCheck, PHASE_DEFAULTS, PhaseCheck, Project, Rule, Verdict, kind_rule, no_status, status_rule,
};
use crate::object_view::ObjectView;

const SNAPSHOT: Rule =
    status_rule(Nowhere, &[BoolField("status.readyToUse", Waits), ErrorText("status.error.message")]);

const VELERO: PhaseCheck = PhaseCheck {
    healthy: &["Completed"],
    progressing: &[
        "New",
        "Queued",
        "ReadyToStart",
        "InProgress",
        "WaitingForPluginOperations",
        "WaitingForPluginOperationsPartiallyFailed",
        "Finalizing",
        "FinalizingPartiallyFailed",
        "Deleting",
    ],
    failed: &["Failed", "PartiallyFailed", "FailedValidation"],
    message: "status.validationErrors",
    ..PHASE_DEFAULTS
};

const NOOBAA: PhaseCheck = PhaseCheck {
    healthy: &["Ready"],
    progressing: &["Verifying", "Creating", "Connecting", "Configuring", "Deleting"],
    failed: &["Rejected"],
    ..PHASE_DEFAULTS
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "CSI snapshots", rows: &[
        kind_rule("snapshot.storage.k8s.io", &["VolumeSnapshot", "VolumeSnapshotContent"], 30, SNAPSHOT),
        kind_rule("groupsnapshot.storage.k8s.io", &["VolumeGroupSnapshot", "VolumeGroupSnapshotContent"], 30, SNAPSHOT),
        no_status("snapshot.storage.k8s.io", &["VolumeSnapshotClass"]),
        no_status("groupsnapshot.storage.k8s.io", &["VolumeGroupSnapshotClass"]),
    ]},
    Project { name: "Longhorn", rows: &[
        kind_rule("longhorn.io", &["Volume"], 15, status_rule(Nowhere, &[
            Reporting(PhaseCheck {
                path: "status.state",
                healthy: &["attached", "detached"],
                progressing: &["creating", "attaching", "detaching", "deleting"],
                ..PHASE_DEFAULTS
            }),
            // The robustness of a volume that nothing uses is unknown, and this is normal.
            Reporting(PhaseCheck {
                path: "status.robustness",
                healthy: &["healthy", "unknown"],
                progressing: &["degraded"],
                failed: &["faulted"],
                needed: false,
                ..PHASE_DEFAULTS
            }),
        ])),
        kind_rule("longhorn.io", &["BackupTarget"], 10, status_rule(Nowhere, &[BoolField("status.available", Waits), FailedIfTrue(&["Unavailable"])])),
        no_status("longhorn.io", &["RecurringJob", "Setting"]),
    ]},
    Project { name: "MinIO Operator", rows: &[
        kind_rule("minio.min.io", &["Tenant"], 15, status_rule(Nowhere, &[
            Reporting(PhaseCheck {
                path: "status.currentState",
                healthy: &["Initialized"],
                failed: &[
                    "Another MinIO Tenant already exists in the namespace", "Different versions across MinIO Pools",
                    "Pool Decommissioning Not Allowed", "Statefulset not controlled by operator", "Tenant credentials are not set properly",
                ],
                is_free_text: true,
                ..PHASE_DEFAULTS
            }),
            Reporting(PhaseCheck {
                path: "status.healthStatus",
                healthy: &["green"],
                progressing: &["yellow"],
                failed: &["red"],
                message: "status.healthMessage",
                needed: false,
                ..PHASE_DEFAULTS
            }),
        ])),
        no_status("sts.min.io", &["PolicyBinding"]),
    ]},
    Project { name: "NooBaa", rows: &[
        kind_rule("noobaa.io", &["NooBaa", "BackingStore", "BucketClass", "NamespaceStore"], 30, status_rule(WhereWritten, &[Reporting(NOOBAA)])),
        kind_rule("objectbucket.io", &["ObjectBucketClaim"], 10, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Bound"],
            progressing: &["Pending"],
            failed: &["Failed", "Released"],
            ..PHASE_DEFAULTS
        })])),
    ]},
    Project { name: "Rook", rows: &[
        kind_rule("ceph.rook.io", &["CephCluster"], 60, status_rule(WhereWritten, &[
            Reporting(PhaseCheck {
                healthy: &["Ready", "Connected"],
                progressing: &["Connecting", "Progressing", "Upgrading", "Deleting"],
                failed: &["Failure"],
                ..PHASE_DEFAULTS
            }),
            // A warning concerns the administrator of the storage, and blocks nothing.
            Reporting(PhaseCheck {
                path: "status.ceph.health",
                healthy: &["HEALTH_OK", "HEALTH_WARN"],
                failed: &["HEALTH_ERR"],
                needed: false,
                ..PHASE_DEFAULTS
            }),
        ])),
        kind_rule("ceph.rook.io", &[
            "CephBlockPool", "CephFilesystem", "CephObjectStore", "CephObjectStoreUser", "CephClient", "CephNFS", "CephRBDMirror",
            "CephFilesystemMirror", "CephFilesystemSubVolumeGroup", "CephBlockPoolRadosNamespace",
        ], 30, status_rule(WhereWritten, &[Reporting(PhaseCheck {
            healthy: &["Ready", "Connected"],
            progressing: &["Progressing", "Connecting", "Deleting", "EmptyStatus"],
            failed: &["Failure", "ReconcileFailed"],
            ..PHASE_DEFAULTS
        })])),
        kind_rule("ocs.openshift.io", &["StorageCluster"], 60, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Ready"],
            progressing: &["Progressing", "Connecting", "Onboarding", "Deleting", "Not Ready"],
            failed: &["Error", "Ignored"],
            ..PHASE_DEFAULTS
        })])),
    ]},
    Project { name: "Velero", rows: &[
        kind_rule("velero.io", &["Backup", "Restore"], 240, status_rule(Nowhere, &[Reporting(VELERO)])),
        kind_rule("velero.io", &["Schedule"], 5, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Enabled"],
            progressing: &["New"],
            failed: &["FailedValidation"],
            message: "status.validationErrors",
            ..PHASE_DEFAULTS
        })]).with_suspended_by(&[True("spec.paused")])),
        kind_rule("velero.io", &["BackupStorageLocation"], 10, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Available"],
            failed: &["Unavailable"],
            ..PHASE_DEFAULTS
        })])),
        kind_rule("velero.io", &["BackupRepository"], 15, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["Ready"],
            progressing: &["New", "NotReady"],
            ..PHASE_DEFAULTS
        })])),
        no_status("velero.io", &["VolumeSnapshotLocation", "ServerStatusRequest"]),
    ]},
    Project { name: "VolSync", rows: &[
        kind_rule("volsync.backube", &["ReplicationSource", "ReplicationDestination"], 60, status_rule(Nowhere, &[
            Reads(CustomCheck {
                description: "`Synchronizing` is reported, and not False with `Error`",
                verdicts: &[Verdict::Degraded],
                judge: synchronizing,
            }),
            Reporting(PhaseCheck {
                path: "status.latestMoverStatus.result",
                healthy: &["Successful"],
                failed: &["Failed"],
                needed: false,
                ..PHASE_DEFAULTS
            }),
        ]).with_suspended_by(&[True("spec.paused")])),
    ]},
];

/// Running and waiting for the next run are both healthy.
fn synchronizing(live: ObjectView<'_>) -> Option<Health> {
    let condition = live.condition("Synchronizing")?;
    Some(match condition.is_false() && condition.reason == "Error" {
        true => Health::degraded(condition.describe()),
        false => Health::Healthy,
    })
}
