//! Message queues and streams.
//!
//! In: nothing.
//! Out: rules.

use super::super::Health;
use super::rule::Check::{
    Custom as Reads, FailedIfFalse, FailedIfTrue, Phase as Reporting, ProgressingIfTrue, Reached as Counts,
    Required, SuspendedIfTrue,
};
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, FailsBut, Waits};
use super::rule::Switch::{Annotation, Is, Label, True};
use super::rule::{
    COUNT_DEFAULTS, Check, CountCheck, CustomCheck, PHASE_DEFAULTS, PhaseCheck, Project, Rule, Switch,
    Verdict, kind_rule, status_rule,
};
use crate::object_view::ObjectView;

/// Queues, users and other objects in a broker cluster.
const TOPOLOGY: Rule = status_rule(WhereWritten, &[Required("Ready", Fails)]);

const STRIMZI_PAUSED: [Switch; 1] = [Annotation("strimzi.io/pause-reconciliation", "true")];

/// Strimzi has one condition for each of two states, and writes one of them.
const NOT_READY: Check = Reads(CustomCheck {
    description: "`NotReady` is not True",
    verdicts: &[Verdict::Progressing, Verdict::Degraded],
    judge: not_ready,
});

const STRIMZI: Rule = status_rule(
    WhereWritten,
    &[NOT_READY, SuspendedIfTrue(&["ReconciliationPaused"]), Required("Ready", Waits)],
)
.with_suspended_by(&STRIMZI_PAUSED);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "ActiveMQ Artemis Operator", rows: &[
        kind_rule("broker.amq.io", &["ActiveMQArtemis"], 15, status_rule(WhereWritten, &[FailedIfFalse(&["Valid"]), Required("Ready", Waits)])),
    ]},
    Project { name: "NATS JetStream Controller", rows: &[
        kind_rule("jetstream.nats.io", &["Stream", "Consumer", "KeyValue", "ObjectStore"], 5, status_rule(WhereWritten, &[
            Required("Ready", FailsBut(&["Creating", "Updating"])),
        ])),
    ]},
    Project { name: "RabbitMQ", rows: &[
        kind_rule("rabbitmq.com", &["RabbitmqCluster"], 15, status_rule(WhereWritten, &[
            Required("ReconcileSuccess", Fails),
            Required("AllReplicasReady", Waits),
            Required("ClusterAvailable", Waits),
        ]).with_suspended_by(&[Label("rabbitmq.com/pauseReconciliation", "true")])),
        kind_rule("rabbitmq.com", &[
            "Binding", "Exchange", "Federation", "OperatorPolicy", "Permission", "Policy", "Queue", "SchemaReplication",
            "Shovel", "SuperStream", "TopicPermission", "User", "Vhost",
        ], 5, TOPOLOGY),
    ]},
    Project { name: "Redpanda Operator", rows: &[
        kind_rule("cluster.redpanda.com", &["Redpanda", "Topic", "User"], 15, status_rule(WhereWritten, &[Required("Ready", ByReason)])),
    ]},
    Project { name: "Strimzi", rows: &[
        kind_rule("kafka.strimzi.io", &["Kafka", "KafkaConnect", "KafkaMirrorMaker", "KafkaMirrorMaker2", "KafkaBridge"], 30, STRIMZI),
        kind_rule("kafka.strimzi.io", &["KafkaTopic", "KafkaUser"], 5, STRIMZI),
        kind_rule("kafka.strimzi.io", &["KafkaConnector"], 10, status_rule(WhereWritten, &[
            NOT_READY,
            SuspendedIfTrue(&["ReconciliationPaused"]),
            Required("Ready", Waits),
            Reporting(PhaseCheck {
                path: "status.connectorStatus.connector.state",
                healthy: &["RUNNING"],
                progressing: &["UNASSIGNED", "RESTARTING"],
                failed: &["FAILED"],
                suspended: &["PAUSED", "STOPPED"],
                needed: false,
                ..PHASE_DEFAULTS
            }),
        ]).with_suspended_by(&[True("spec.pause"), Is("spec.state", "paused"), Is("spec.state", "stopped")])),
        kind_rule("kafka.strimzi.io", &["KafkaNodePool"], 30, status_rule(WhereWritten, &[
            Counts(CountCheck { actual: "status.nodeIds", noun: "node", be: "there", ..COUNT_DEFAULTS }),
        ])),
        // A proposal waits for the approval of a person.
        kind_rule("kafka.strimzi.io", &["KafkaRebalance"], 60, status_rule(WhereWritten, &[
            FailedIfTrue(&["NotReady"]), SuspendedIfTrue(&["ProposalReady", "Stopped", "ReconciliationPaused"]),
            ProgressingIfTrue(&["PendingProposal", "Rebalancing"]), Required("Ready", Waits),
        ]).with_suspended_by(&STRIMZI_PAUSED)),
        kind_rule("core.strimzi.io", &["StrimziPodSet"], 15, status_rule(WhereWritten, &[
            Counts(CountCheck { actual: "status.readyPods", wanted: "status.pods", default_wanted: 0, noun: "Pod", ..COUNT_DEFAULTS }),
        ])),
    ]},
    Project { name: "ZooKeeper Operator", rows: &[
        kind_rule("zookeeper.pravega.io", &["ZookeeperCluster"], 15, status_rule(Nowhere, &[
            FailedIfTrue(&["Error"]),
            ProgressingIfTrue(&["Upgrading"]),
            Counts(CountCheck { default_wanted: 3, ..COUNT_DEFAULTS }),
        ])),
    ]},
];

fn not_ready(live: ObjectView<'_>) -> Option<Health> {
    let condition = live.true_condition("NotReady")?;
    Some(match condition.reason {
        "Creating" => Health::progressing(condition.describe()),
        _ => Health::degraded(condition.describe()),
    })
}
