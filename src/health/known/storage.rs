//! Volumes, and copies of them.
//!
//! In: nothing. Out: rows.

use super::rule::Generation::Nowhere;
use super::rule::IfFalse::Waits;
use super::rule::Reading::{Complaint, Flag};
use super::rule::{Project, Rule, reads, row, still};

const SNAPSHOT: Rule = reads(Nowhere, &[Flag("status.readyToUse", Waits), Complaint("status.error.message")]);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "CSI snapshots", rows: &[
        row("snapshot.storage.k8s.io", &["VolumeSnapshot", "VolumeSnapshotContent"], 30, SNAPSHOT),
        row("groupsnapshot.storage.k8s.io", &["VolumeGroupSnapshot", "VolumeGroupSnapshotContent"], 30, SNAPSHOT),
        still("snapshot.storage.k8s.io", &["VolumeSnapshotClass"]),
        still("groupsnapshot.storage.k8s.io", &["VolumeGroupSnapshotClass"]),
    ]},
];
