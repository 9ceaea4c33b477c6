//! What measures and shows.
//!
//! In: nothing. Out: rows.

use super::rule::Generation::WhereWritten;
use super::rule::IfFalse::{Fails, Waits};
use super::rule::Reading::Needs;
use super::rule::Switch::True;
use super::rule::{Project, Rule, reads, row, still};

const PROMETHEUS: Rule = reads(WhereWritten, &[Needs("Reconciled", Fails), Needs("Available", Waits)])
    .asleep(&[True("spec.paused")]);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Prometheus Operator", rows: &[
        row("monitoring.coreos.com", &["Prometheus", "PrometheusAgent", "Alertmanager", "ThanosRuler"], 15, PROMETHEUS),
        still("monitoring.coreos.com", &[
            "ServiceMonitor", "PodMonitor", "Probe", "PrometheusRule", "ScrapeConfig", "AlertmanagerConfig",
        ]),
    ]},
];
