//! Database clusters, and the databases and users in them.
//!
//! In: nothing.
//! Out: rules. A database that is not complete yet is progressing; only a state that its operator
//! calls a failure is degraded. Clusters get half an hour, because their volumes and members are
//! created one after the other.

use serde_json::Value;

use super::super::Health;
use super::super::live::Live;
use super::super::sentence::{of_are, told};
use super::rule::Generation::{InStatus, Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, Waits};
use super::rule::Reading::{Busy, Count as Counts, Flag, Heeds, Needs, Odd as Reads, Trouble, Word as Says};
use super::rule::Switch::{Is, True};
use super::rule::{Answer, COUNT, Count, Odd, Project, Rule, Silence, WORD, Word, reads, row, still};

/// The status that operator tutorials teach: a phase, a condition, a plain `ready`. A controller
/// may not even run for such kinds, so a missing status means nothing.
const TAUGHT: Rule = reads(
    WhereWritten,
    &[
        Heeds("Ready", ByReason),
        Heeds("AllReplicasReady", ByReason),
        Trouble(&["Failed", "Degraded"]),
        Says(Word {
            well: &["Running", "Ready"],
            busy: &[
                "Pending",
                "Creating",
                "Initializing",
                "Provisioning",
                "Scaling",
                "Updating",
                "Upgrading",
                "Deleting",
            ],
            wrong: &["Failed", "Error"],
            asleep: &["Paused", "Stopped"],
            needed: false,
            ..WORD
        }),
        Flag("status.ready", Waits),
    ],
)
.silent(Silence::Perhaps);

const CRUNCHY: Rule = reads(
    InStatus,
    &[
        Trouble(&["PersistentVolumeResizeError"]),
        Reads(Odd {
            words: "all instances of `status.instances` are ready and updated",
            answers: &[Answer::Progressing],
            judge: instances,
        }),
        Heeds("PGBackRestRepoHostReady", Waits),
        Heeds("PGBackRestReplicaCreate", Waits),
        Heeds("ProxyAvailable", Waits),
    ],
)
.asleep(&[True("spec.paused"), True("spec.shutdown")]);

const INNODB: Word = Word {
    at: "status.cluster.status",
    well: &["ONLINE"],
    busy: &[
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
    wrong: &["OFFLINE", "NO_QUORUM", "SPLIT_BRAIN", "INVALID"],
    ..WORD
};

const REDIS_CLUSTER: Word = Word {
    at: "status.state",
    well: &["Ready"],
    busy: &["Initializing", "Bootstrap"],
    wrong: &["Failed"],
    message: "status.reason",
    ..WORD
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "The operators of tutorials", rows: &[
        row("example.com", &["Database"], 30, TAUGHT),
        row("apps.example.com", &["Database"], 30, TAUGHT),
        row("db.example.com", &["Database", "PostgresCluster"], 30, TAUGHT),
        row("postgres.example.com", &["PostgreSQLCluster"], 30, TAUGHT),
        row("cache.example.com", &["Memcached"], 10, reads(WhereWritten, &[
            Trouble(&["Degraded"]),
            Heeds("Available", ByReason),
            Counts(Count { have: "status.nodes", of: "spec.size", noun: "node", be: "there", needed: false, ..COUNT }),
        ]).silent(Silence::Perhaps)),
    ]},
    Project { name: "Crunchy Postgres Operator", rows: &[
        row("postgres-operator.crunchydata.com", &["PostgresCluster"], 30, CRUNCHY),
        row("postgres-operator.crunchydata.com", &["PGUpgrade"], 60, reads(WhereWritten, &[
            Needs("Succeeded", Fails),
            Busy(&["Progressing"]),
        ])),
    ]},
    Project { name: "Zalando Postgres Operator", rows: &[
        row("acid.zalan.do", &["postgresql"], 30, reads(WhereWritten, &[Says(Word {
            at: "status.PostgresClusterStatus",
            well: &["Running"],
            busy: &["Creating", "Updating"],
            wrong: &["CreateFailed", "UpdateFailed", "SyncFailed", "Invalid"],
            ..WORD
        })])),
        still("acid.zalan.do", &["OperatorConfiguration", "PostgresTeam"]),
    ]},
    Project { name: "MySQL Operator", rows: &[
        row("mysql.oracle.com", &["InnoDBCluster"], 30, reads(Nowhere, &[
            Says(INNODB),
            Counts(Count { have: "status.cluster.onlineInstances", of: "spec.instances", noun: "instance", be: "online", ..COUNT }),
        ])),
        row("mysql.oracle.com", &["MySQLBackup"], 60, reads(Nowhere, &[Says(Word {
            at: "status.status",
            well: &["Completed"],
            busy: &["Pending", "Running"],
            wrong: &["Error"],
            ..WORD
        })])),
    ]},
    Project { name: "ClickHouse Operator", rows: &[
        row("clickhouse.altinity.com", &["ClickHouseInstallation"], 30, reads(Nowhere, &[Says(Word {
            at: "status.status",
            well: &["Completed"],
            busy: &["InProgress", "Terminating"],
            wrong: &["Aborted"],
            message: "status.error",
            ..WORD
        })]).asleep(&[Is("spec.stop", "yes")])),
        still("clickhouse.altinity.com", &["ClickHouseInstallationTemplate", "ClickHouseOperatorConfiguration"]),
    ]},
    Project { name: "OT Redis Operator", rows: &[
        row("redis.redis.opstreelabs.in", &["RedisCluster"], 30, reads(Nowhere, &[Says(REDIS_CLUSTER)])),
        row("redis.redis.opstreelabs.in", &["RedisReplication"], 15, reads(Nowhere, &[Reads(Odd {
            words: "`status.masterNode` is there",
            answers: &[Answer::Progressing],
            judge: master,
        })])),
        still("redis.redis.opstreelabs.in", &["Redis", "RedisSentinel"]),
    ]},
    Project { name: "Spotahome Redis Operator", rows: &[
        row("databases.spotahome.com", &["RedisFailover"], 15, reads(Nowhere, &[Says(Word {
            at: "status.state",
            well: &["Healthy"],
            busy: &["NotHealthy"],
            ..WORD
        })]).silent(Silence::Perhaps)),
    ]},
];

/// Counts the instances of all sets; a set without `replicas` has one.
fn instances(live: Live<'_>) -> Option<Health> {
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
                    told(name),
                    of_are(have, replicas, "instance")
                )));
            }
        }
    }
    (!answers.is_empty()).then_some(Health::Healthy)
}

fn master(live: Live<'_>) -> Option<Health> {
    Some(match live.text(&["status", "masterNode"]) {
        Some(node) if !node.is_empty() => Health::Healthy,
        _ => Health::progressing("it has no master yet"),
    })
}
