//! Database clusters, and the databases and users in them.
//!
//! In: nothing.
//! Out: rules. A database that is not complete yet is progressing; only a state that its operator
//! calls a failure is degraded. Clusters get half an hour, because their volumes and members are
//! created one after the other.

use serde_json::Value;

use super::super::Health;
use super::rule::Check::{
    BoolField, Custom as Reads, FailedIfTrue, IfReported, Phase as Reporting, ProgressingIfTrue,
    Reached as Counts, Required,
};
use super::rule::Generation::{InStatus, Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, Waits};
use super::rule::Switch::{Is, True};
use super::rule::{
    COUNT_DEFAULTS, CountCheck, CustomCheck, MissingStatus, PHASE_DEFAULTS, PhaseCheck, Project, Rule,
    Verdict, kind_rule, no_status, status_rule,
};
use crate::message::{count_of_are, quote};
use crate::object_view::ObjectView;

/// The status that operator tutorials teach: a phase, a condition, a plain `ready`. A controller
/// may not even run for such kinds, so a missing status means nothing.
const TAUGHT: Rule = status_rule(
    WhereWritten,
    &[
        IfReported("Ready", ByReason),
        IfReported("AllReplicasReady", ByReason),
        FailedIfTrue(&["Failed", "Degraded"]),
        Reporting(PhaseCheck {
            healthy: &["Running", "Ready"],
            progressing: &[
                "Pending",
                "Creating",
                "Initializing",
                "Provisioning",
                "Scaling",
                "Updating",
                "Upgrading",
                "Deleting",
            ],
            failed: &["Failed", "Error"],
            suspended: &["Paused", "Stopped"],
            needed: false,
            ..PHASE_DEFAULTS
        }),
        BoolField("status.ready", Waits),
    ],
)
.with_missing_status(MissingStatus::ByKind);

const CRUNCHY: Rule = status_rule(
    InStatus,
    &[
        FailedIfTrue(&["PersistentVolumeResizeError"]),
        Reads(CustomCheck {
            description: "all instances of `status.instances` are ready and updated",
            verdicts: &[Verdict::Progressing],
            judge: instances,
        }),
        IfReported("PGBackRestRepoHostReady", Waits),
        IfReported("PGBackRestReplicaCreate", Waits),
        IfReported("ProxyAvailable", Waits),
    ],
)
.with_suspended_by(&[True("spec.paused"), True("spec.shutdown")]);

const INNODB: PhaseCheck = PhaseCheck {
    path: "status.cluster.status",
    healthy: &["ONLINE"],
    progressing: &[
        "PENDING",
        "INITIALIZING",
        "FINALIZING",
        "ONLINE_PARTIAL",
        "ONLINE_UNCERTAIN",
        "OFFLINE_UNCERTAIN",
        "NO_QUORUM_UNCERTAIN",
        "SPLIT_BRAIN_UNCERTAIN",
        "UNKNOWN",
    ],
    failed: &["OFFLINE", "NO_QUORUM", "SPLIT_BRAIN", "INVALID"],
    ..PHASE_DEFAULTS
};

const REDIS_CLUSTER: PhaseCheck = PhaseCheck {
    path: "status.state",
    healthy: &["Ready"],
    progressing: &["Initializing", "Bootstrap"],
    failed: &["Failed"],
    message: "status.reason",
    ..PHASE_DEFAULTS
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Operator tutorials", rows: &[
        kind_rule("example.com", &["Database"], 30, TAUGHT),
        kind_rule("apps.example.com", &["Database"], 30, TAUGHT),
        kind_rule("db.example.com", &["Database", "PostgresCluster"], 30, TAUGHT),
        kind_rule("postgres.example.com", &["PostgreSQLCluster"], 30, TAUGHT),
        kind_rule("cache.example.com", &["Memcached"], 10, status_rule(WhereWritten, &[
            FailedIfTrue(&["Degraded"]),
            IfReported("Available", ByReason),
            Counts(CountCheck { actual: "status.nodes", wanted: "spec.size", noun: "node", be: "there", needed: false, ..COUNT_DEFAULTS }),
        ]).with_missing_status(MissingStatus::ByKind)),
    ]},
    Project { name: "Crunchy Postgres Operator", rows: &[
        kind_rule("postgres-operator.crunchydata.com", &["PostgresCluster"], 30, CRUNCHY),
        kind_rule("postgres-operator.crunchydata.com", &["PGUpgrade"], 60, status_rule(WhereWritten, &[
            Required("Succeeded", Fails),
            ProgressingIfTrue(&["Progressing"]),
        ])),
    ]},
    Project { name: "Zalando Postgres Operator", rows: &[
        kind_rule("acid.zalan.do", &["postgresql"], 30, status_rule(WhereWritten, &[Reporting(PhaseCheck {
            path: "status.PostgresClusterStatus",
            healthy: &["Running"],
            progressing: &["Creating", "Updating"],
            failed: &["CreateFailed", "UpdateFailed", "SyncFailed", "Invalid"],
            ..PHASE_DEFAULTS
        })])),
        no_status("acid.zalan.do", &["OperatorConfiguration", "PostgresTeam"]),
    ]},
    Project { name: "MySQL Operator", rows: &[
        kind_rule("mysql.oracle.com", &["InnoDBCluster"], 30, status_rule(Nowhere, &[
            Reporting(INNODB),
            Counts(CountCheck { actual: "status.cluster.onlineInstances", wanted: "spec.instances", noun: "instance", be: "online", ..COUNT_DEFAULTS }),
        ])),
        kind_rule("mysql.oracle.com", &["MySQLBackup"], 60, status_rule(Nowhere, &[Reporting(PhaseCheck {
            path: "status.status",
            healthy: &["Completed"],
            progressing: &["Pending", "Running"],
            failed: &["Error"],
            ..PHASE_DEFAULTS
        })])),
    ]},
    Project { name: "ClickHouse Operator", rows: &[
        kind_rule("clickhouse.altinity.com", &["ClickHouseInstallation"], 30, status_rule(Nowhere, &[Reporting(PhaseCheck {
            path: "status.status",
            healthy: &["Completed"],
            progressing: &["InProgress", "Terminating"],
            failed: &["Aborted"],
            message: "status.error",
            ..PHASE_DEFAULTS
        })]).with_suspended_by(&[Is("spec.stop", "yes")])),
        no_status("clickhouse.altinity.com", &["ClickHouseInstallationTemplate", "ClickHouseOperatorConfiguration"]),
    ]},
    Project { name: "OT Redis Operator", rows: &[
        kind_rule("redis.redis.opstreelabs.in", &["RedisCluster"], 30, status_rule(Nowhere, &[Reporting(REDIS_CLUSTER)])),
        kind_rule("redis.redis.opstreelabs.in", &["RedisReplication"], 15, status_rule(Nowhere, &[Reads(CustomCheck {
            description: "`status.masterNode` is set",
            verdicts: &[Verdict::Progressing],
            judge: master,
        })])),
        no_status("redis.redis.opstreelabs.in", &["Redis", "RedisSentinel"]),
    ]},
    Project { name: "Spotahome Redis Operator", rows: &[
        kind_rule("databases.spotahome.com", &["RedisFailover"], 15, status_rule(Nowhere, &[Reporting(PhaseCheck {
            path: "status.state",
            healthy: &["Healthy"],
            progressing: &["NotHealthy"],
            ..PHASE_DEFAULTS
        })]).with_missing_status(MissingStatus::ByKind)),
    ]},
];

/// Counts the instances of all sets; a set without `replicas` has one.
fn instances(live: ObjectView<'_>) -> Option<Health> {
    let number = |set: &Value, field: &str| set.get(field).and_then(Value::as_u64);
    let answers = live.items(&["status", "instances"]);
    for wanted in live.items(&["spec", "instances"]) {
        // The first of several sets may have no name: the operator calls it 00.
        let name = wanted.get("name").and_then(Value::as_str).unwrap_or("00");
        let replicas = number(wanted, "replicas").unwrap_or(1);
        let set = answers.iter().find(|set| set.get("name").and_then(Value::as_str) == Some(name));
        for (field, be) in [("readyReplicas", "ready"), ("updatedReplicas", "updated")] {
            let have = set.and_then(|set| number(set, field)).unwrap_or_default();
            if have < replicas {
                return Some(Health::progressing(format!(
                    "{}: {} {be}",
                    quote(name),
                    count_of_are(have, replicas, "instance")
                )));
            }
        }
    }
    (!answers.is_empty()).then_some(Health::Healthy)
}

fn master(live: ObjectView<'_>) -> Option<Health> {
    Some(match live.text(&["status", "masterNode"]) {
        Some(node) if !node.is_empty() => Health::Healthy,
        _ => Health::progressing("it has no master yet"),
    })
}
