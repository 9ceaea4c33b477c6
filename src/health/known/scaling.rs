//! What sets how many Pods and nodes there are.
//!
//! In: nothing. Out: rows.

use super::rule::Generation::Nowhere;
use super::rule::IfFalse::Fails;
use super::rule::Reading::{Needs, Rests};
use super::rule::Switch::Annotation;
use super::rule::{Project, reads, row, still};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "KEDA", rows: &[
        row("keda.sh", &["ScaledObject", "ScaledJob"], 10, reads(Nowhere, &[Needs("Ready", Fails), Rests(&["Paused"])])
            .asleep(&[Annotation("autoscaling.keda.sh/paused", "true")])),
        still("keda.sh", &["TriggerAuthentication", "ClusterTriggerAuthentication"]),
    ]},
];
