//! Volumes, object stores, and their backups.
//!
//! In: nothing.
//! Out: rules. A partial backup is degraded: a restore needs all of it.

use super::super::Health;
use super::super::live::Live;
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::Waits;
use super::rule::Reading::{Complaint, Flag, Odd as Reads, Trouble, Word as Says};
use super::rule::Switch::True;
use super::rule::{Answer, Odd, Project, Rule, WORD, Word, reads, row, still};

const SNAPSHOT: Rule = reads(Nowhere, &[Flag("status.readyToUse", Waits), Complaint("status.error.message")]);

const VELERO: Word = Word {
    well: &["Completed"],
    busy: &[
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
    wrong: &["Failed", "PartiallyFailed", "FailedValidation"],
    message: "status.validationErrors",
    ..WORD
};

const NOOBAA: Word = Word {
    well: &["Ready"],
    busy: &["Verifying", "Creating", "Connecting", "Configuring", "Deleting"],
    wrong: &["Rejected"],
    ..WORD
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "CSI snapshots", rows: &[
        row("snapshot.storage.k8s.io", &["VolumeSnapshot", "VolumeSnapshotContent"], 30, SNAPSHOT),
        row("groupsnapshot.storage.k8s.io", &["VolumeGroupSnapshot", "VolumeGroupSnapshotContent"], 30, SNAPSHOT),
        still("snapshot.storage.k8s.io", &["VolumeSnapshotClass"]),
        still("groupsnapshot.storage.k8s.io", &["VolumeGroupSnapshotClass"]),
    ]},
    Project { name: "Longhorn", rows: &[
        row("longhorn.io", &["Volume"], 15, reads(Nowhere, &[
            Says(Word {
                at: "status.state",
                well: &["attached", "detached"],
                busy: &["creating", "attaching", "detaching", "deleting"],
                ..WORD
            }),
            // The robustness of a volume that nothing uses is unknown, and this is normal.
            Says(Word {
                at: "status.robustness",
                well: &["healthy", "unknown"],
                busy: &["degraded"],
                wrong: &["faulted"],
                needed: false,
                ..WORD
            }),
        ])),
        row("longhorn.io", &["BackupTarget"], 10, reads(Nowhere, &[Flag("status.available", Waits), Trouble(&["Unavailable"])])),
        still("longhorn.io", &["RecurringJob", "Setting"]),
    ]},
    Project { name: "MinIO Operator", rows: &[
        row("minio.min.io", &["Tenant"], 15, reads(Nowhere, &[
            Says(Word {
                at: "status.currentState",
                well: &["Initialized"],
                wrong: &[
                    "Another MinIO Tenant already exists in the namespace", "Different versions across MinIO Pools",
                    "Pool Decommissioning Not Allowed", "Statefulset not controlled by operator", "Tenant credentials are not set properly",
                ],
                open: true,
                ..WORD
            }),
            Says(Word {
                at: "status.healthStatus",
                well: &["green"],
                busy: &["yellow"],
                wrong: &["red"],
                message: "status.healthMessage",
                needed: false,
                ..WORD
            }),
        ])),
        still("sts.min.io", &["PolicyBinding"]),
    ]},
    Project { name: "NooBaa", rows: &[
        row("noobaa.io", &["NooBaa", "BackingStore", "BucketClass", "NamespaceStore"], 30, reads(WhereWritten, &[Says(NOOBAA)])),
        row("objectbucket.io", &["ObjectBucketClaim"], 10, reads(Nowhere, &[Says(Word {
            well: &["Bound"],
            busy: &["Pending"],
            wrong: &["Failed", "Released"],
            ..WORD
        })])),
    ]},
    Project { name: "Rook", rows: &[
        row("ceph.rook.io", &["CephCluster"], 60, reads(WhereWritten, &[
            Says(Word {
                well: &["Ready", "Connected"],
                busy: &["Connecting", "Progressing", "Upgrading", "Deleting"],
                wrong: &["Failure"],
                ..WORD
            }),
            // A warning concerns the administrator of the storage, and blocks nothing.
            Says(Word {
                at: "status.ceph.health",
                well: &["HEALTH_OK", "HEALTH_WARN"],
                wrong: &["HEALTH_ERR"],
                needed: false,
                ..WORD
            }),
        ])),
        row("ceph.rook.io", &[
            "CephBlockPool", "CephFilesystem", "CephObjectStore", "CephObjectStoreUser", "CephClient", "CephNFS", "CephRBDMirror",
            "CephFilesystemMirror", "CephFilesystemSubVolumeGroup", "CephBlockPoolRadosNamespace",
        ], 30, reads(WhereWritten, &[Says(Word {
            well: &["Ready", "Connected"],
            busy: &["Progressing", "Connecting", "Deleting", "EmptyStatus"],
            wrong: &["Failure", "ReconcileFailed"],
            ..WORD
        })])),
        row("ocs.openshift.io", &["StorageCluster"], 60, reads(Nowhere, &[Says(Word {
            well: &["Ready"],
            busy: &["Progressing", "Connecting", "Onboarding", "Deleting", "Not Ready"],
            wrong: &["Error", "Ignored"],
            ..WORD
        })])),
    ]},
    Project { name: "Velero", rows: &[
        row("velero.io", &["Backup", "Restore"], 240, reads(Nowhere, &[Says(VELERO)])),
        row("velero.io", &["Schedule"], 5, reads(Nowhere, &[Says(Word {
            well: &["Enabled"],
            busy: &["New"],
            wrong: &["FailedValidation"],
            message: "status.validationErrors",
            ..WORD
        })]).asleep(&[True("spec.paused")])),
        row("velero.io", &["BackupStorageLocation"], 10, reads(Nowhere, &[Says(Word {
            well: &["Available"],
            wrong: &["Unavailable"],
            ..WORD
        })])),
        row("velero.io", &["BackupRepository"], 15, reads(Nowhere, &[Says(Word {
            well: &["Ready"],
            busy: &["New", "NotReady"],
            ..WORD
        })])),
        still("velero.io", &["VolumeSnapshotLocation", "ServerStatusRequest"]),
    ]},
    Project { name: "VolSync", rows: &[
        row("volsync.backube", &["ReplicationSource", "ReplicationDestination"], 60, reads(Nowhere, &[
            Reads(Odd {
                words: "`Synchronizing` is reported, and not False with `Error`",
                answers: &[Answer::Degraded],
                judge: synchronizing,
            }),
            Says(Word {
                at: "status.latestMoverStatus.result",
                well: &["Successful"],
                wrong: &["Failed"],
                needed: false,
                ..WORD
            }),
        ]).asleep(&[True("spec.paused")])),
    ]},
];

/// Running and waiting for the next run are both healthy.
fn synchronizing(live: Live<'_>) -> Option<Health> {
    let condition = live.condition("Synchronizing")?;
    Some(match condition.is_false() && condition.reason == "Error" {
        true => Health::degraded(condition.sentence()),
        false => Health::Healthy,
    })
}
