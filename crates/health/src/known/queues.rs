//! Message queues and streams.
//!
//! In: nothing.
//! Out: rules.

use super::super::Health;
use super::super::live::Live;
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, FailsBut, Waits};
use super::rule::Reading::{
    Busy, Count as Counts, Needs, Odd as Reads, Refused, Rests, Trouble, Word as Says,
};
use super::rule::Switch::{Annotation, Is, Label, True};
use super::rule::{Answer, COUNT, Count, Odd, Project, Reading, Rule, Switch, WORD, Word, reads, row};

/// Queues, users and other objects in a broker cluster.
const TOPOLOGY: Rule = reads(WhereWritten, &[Needs("Ready", Fails)]);

const STRIMZI_PAUSED: [Switch; 1] = [Annotation("strimzi.io/pause-reconciliation", "true")];

/// Strimzi has one condition for each of two states, and writes one of them.
const NOT_READY: Reading = Reads(Odd {
    words: "`NotReady` is not True",
    answers: &[Answer::Progressing, Answer::Degraded],
    judge: not_ready,
});

const STRIMZI: Rule =
    reads(WhereWritten, &[NOT_READY, Rests(&["ReconciliationPaused"]), Needs("Ready", Waits)])
        .asleep(&STRIMZI_PAUSED);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "ActiveMQ Artemis Operator", rows: &[
        row("broker.amq.io", &["ActiveMQArtemis"], 15, reads(WhereWritten, &[Refused(&["Valid"]), Needs("Ready", Waits)])),
    ]},
    Project { name: "NATS JetStream Controller", rows: &[
        row("jetstream.nats.io", &["Stream", "Consumer", "KeyValue", "ObjectStore"], 5, reads(WhereWritten, &[
            Needs("Ready", FailsBut(&["Creating", "Updating"])),
        ])),
    ]},
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
    Project { name: "Redpanda Operator", rows: &[
        row("cluster.redpanda.com", &["Redpanda", "Topic", "User"], 15, reads(WhereWritten, &[Needs("Ready", ByReason)])),
    ]},
    Project { name: "Strimzi", rows: &[
        row("kafka.strimzi.io", &["Kafka", "KafkaConnect", "KafkaMirrorMaker", "KafkaMirrorMaker2", "KafkaBridge"], 30, STRIMZI),
        row("kafka.strimzi.io", &["KafkaTopic", "KafkaUser"], 5, STRIMZI),
        row("kafka.strimzi.io", &["KafkaConnector"], 10, reads(WhereWritten, &[
            NOT_READY,
            Rests(&["ReconciliationPaused"]),
            Needs("Ready", Waits),
            Says(Word {
                at: "status.connectorStatus.connector.state",
                well: &["RUNNING"],
                busy: &["UNASSIGNED", "RESTARTING"],
                wrong: &["FAILED"],
                asleep: &["PAUSED", "STOPPED"],
                needed: false,
                ..WORD
            }),
        ]).asleep(&[True("spec.pause"), Is("spec.state", "paused"), Is("spec.state", "stopped")])),
        row("kafka.strimzi.io", &["KafkaNodePool"], 30, reads(WhereWritten, &[
            Counts(Count { have: "status.nodeIds", noun: "node", be: "there", ..COUNT }),
        ])),
        // A proposal waits for the approval of a person.
        row("kafka.strimzi.io", &["KafkaRebalance"], 60, reads(WhereWritten, &[
            Trouble(&["NotReady"]), Rests(&["ProposalReady", "Stopped", "ReconciliationPaused"]),
            Busy(&["PendingProposal", "Rebalancing"]), Needs("Ready", Waits),
        ]).asleep(&STRIMZI_PAUSED)),
        row("core.strimzi.io", &["StrimziPodSet"], 15, reads(WhereWritten, &[
            Counts(Count { have: "status.readyPods", of: "status.pods", or: 0, noun: "Pod", ..COUNT }),
        ])),
    ]},
    Project { name: "ZooKeeper Operator", rows: &[
        row("zookeeper.pravega.io", &["ZookeeperCluster"], 15, reads(Nowhere, &[
            Trouble(&["Error"]),
            Busy(&["Upgrading"]),
            Counts(Count { or: 3, ..COUNT }),
        ])),
    ]},
];

fn not_ready(live: Live<'_>) -> Option<Health> {
    let condition = live.holds("NotReady")?;
    Some(match condition.reason {
        "Creating" => Health::progressing(condition.sentence()),
        _ => Health::degraded(condition.sentence()),
    })
}
