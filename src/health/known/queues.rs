//! Queues and streams.
//!
//! In: nothing. Out: rows.

use super::rule::Generation::WhereWritten;
use super::rule::IfFalse::{Fails, Waits};
use super::rule::Reading::Needs;
use super::rule::Switch::Label;
use super::rule::{Project, Rule, reads, row};

/// Queues, users and all else that is made in a cluster.
const TOPOLOGY: Rule = reads(WhereWritten, &[Needs("Ready", Fails)]);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "RabbitMQ", rows: &[
        row("rabbitmq.com", &["RabbitmqCluster"], 15, reads(WhereWritten, &[
            Needs("ReconcileSuccess", Fails),
            Needs("AllReplicasReady", Waits),
            Needs("ClusterAvailable", Waits),
        ]).asleep(&[Label("rabbitmq.com/pauseReconciliation", "true")])),
        row("rabbitmq.com", &[
            "Binding", "Exchange", "Federation", "OperatorPolicy", "Permission", "Policy", "Queue", "SchemaReplication",
            "Shovel", "SuperStream", "TopicPermission", "User", "Vhost",
        ], 5, TOPOLOGY),
    ]},
];
