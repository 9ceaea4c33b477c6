//! Relational databases.
//!
//! In: nothing.
//! Out: rules. A cluster that works with fewer members than wanted is progressing, not degraded.

use serde_json::Value;

use super::super::Health;
use super::super::live::Live;
use super::super::sentence::{of_are, told};
use super::rule::Generation::{InStatus, Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, Waits};
use super::rule::Reading::{
    Busy, Count as Counts, Flag, Heeds, Needs, Odd as Reads, Refused, Rests, Trouble, Word as Says,
};
use super::rule::Switch::{Annotation, True};
use super::rule::{Answer, COUNT, Count, Odd, Project, Rule, WORD, Word, reads, row, still};

const PERCONA: Rule = reads(
    WhereWritten,
    &[Says(Word {
        at: "status.state",
        well: &["ready"],
        busy: &["init", "initializing", "pending", "stopping", "unknown"],
        wrong: &["error"],
        asleep: &["paused"],
        ..WORD
    })],
)
.asleep(&[True("spec.pause")]);

const PERCONA_BACKUP: Word = Word {
    at: "status.state",
    well: &["Succeeded", "ready"],
    busy: &["New", "Starting", "Running", "Suspended", "requested", "running", "waiting"],
    wrong: &["Failed", "Error", "error", "rejected"],
    message: "status.error",
    ..WORD
};

const MARIADB: Rule = reads(Nowhere, &[Needs("Ready", ByReason)]).asleep(&[True("spec.suspend")]);

const MONGODB: Word = Word {
    well: &["Running", "Updated"],
    busy: &["Pending", "Reconciling"],
    wrong: &["Failed", "Unsupported"],
    asleep: &["Disabled"],
    ..WORD
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Cass Operator", rows: &[
        row("cassandra.datastax.com", &["CassandraDatacenter"], 60, reads(WhereWritten, &[
            Refused(&["Valid"]),
            Says(Word { at: "status.cassandraOperatorProgress", well: &["Ready"], busy: &["Updating"], ..WORD }),
            Heeds("Ready", Waits),
        ]).asleep(&[True("spec.stopped")])),
    ]},
    Project { name: "CloudNativePG", rows: &[
        row("postgresql.cnpg.io", &["Cluster"], 30, reads(Nowhere, &[
            Says(Word {
                well: &["Cluster in healthy state"],
                wrong: &[
                    "Cluster is unrecoverable and needs manual intervention",
                    "Cluster is in an unrecoverable state, needs manual intervention",
                    "Cluster cannot proceed to reconciliation due to an unknown plugin being required",
                    "Unable to create required cluster objects", "Not enough disk space",
                ],
                asleep: &["Waiting for user action"],
                message: "status.phaseReason",
                open: true,
                ..WORD
            }),
            Counts(Count { have: "status.readyInstances", of: "spec.instances", noun: "instance", ..COUNT }),
            Heeds("Ready", Waits),
            Heeds("ContinuousArchiving", Fails),
            Rests(&["cnpg.io/hibernation"]),
        ]).asleep(&[Annotation("cnpg.io/hibernation", "on"), Annotation("cnpg.io/reconciliationLoop", "disabled")])),
        row("postgresql.cnpg.io", &["Backup"], 240, reads(Nowhere, &[Says(Word {
            well: &["completed"],
            busy: &["pending", "started", "running", "finalizing"],
            wrong: &["failed", "walArchivingFailing"],
            message: "status.error",
            ..WORD
        })])),
        row("postgresql.cnpg.io", &["Pooler"], 15, reads(Nowhere, &[
            Counts(Count { have: "status.instances", of: "spec.instances", noun: "instance", ..COUNT }),
        ]).asleep(&[True("spec.pgbouncer.paused")])),
        row("postgresql.cnpg.io", &["Database", "Publication", "Subscription"], 10, reads(WhereWritten, &[Flag("status.applied", Fails)])),
        still("postgresql.cnpg.io", &["ScheduledBackup", "ImageCatalog", "ClusterImageCatalog"]),
        still("barmancloud.cnpg.io", &["ObjectStore"]),
    ]},
    Project { name: "Dragonfly Operator", rows: &[
        row("dragonflydb.io", &["Dragonfly"], 15, reads(Nowhere, &[Says(Word { well: &["ready", "Ready"], open: true, ..WORD })])),
    ]},
    Project { name: "KubeDB", rows: &[
        row("kubedb.com", &[
            "Elasticsearch", "Kafka", "MariaDB", "Memcached", "MongoDB", "MySQL", "PerconaXtraDB", "PgBouncer", "Postgres", "ProxySQL",
            "RabbitMQ", "Redis", "RedisSentinel",
        ], 30, reads(WhereWritten, &[Says(Word {
            well: &["Ready"],
            busy: &["Provisioning", "DataRestoring", "Critical"],
            wrong: &["NotReady"],
            asleep: &["Halted"],
            ..WORD
        })]).asleep(&[True("spec.halted")])),
    ]},
    Project { name: "MariaDB Operator", rows: &[
        row("k8s.mariadb.com", &["MariaDB", "MaxScale", "Connection", "Database", "Grant", "User"], 30, MARIADB),
        row("mariadb.mmontes.io", &["MariaDB", "Connection", "Database", "Grant", "User"], 30, MARIADB),
        row("k8s.mariadb.com", &["Restore", "SqlJob"], 60, reads(Nowhere, &[Needs("Complete", ByReason)])),
    ]},
    Project { name: "MongoDB Operators", rows: &[
        row("mongodbcommunity.mongodb.com", &["MongoDBCommunity"], 30, reads(Nowhere, &[Says(MONGODB)])),
        row("mongodb.com", &["MongoDB", "MongoDBMultiCluster", "MongoDBUser"], 30, reads(WhereWritten, &[Says(MONGODB)])),
        row("atlas.mongodb.com", &["AtlasProject", "AtlasDeployment", "AtlasDatabaseUser"], 60, reads(InStatus, &[Needs("Ready", ByReason)])),
    ]},
    Project { name: "Percona Operators", rows: &[
        row("pxc.percona.com", &["PerconaXtraDBCluster"], 30, PERCONA),
        row("ps.percona.com", &["PerconaServerMySQL"], 30, PERCONA),
        row("psmdb.percona.com", &["PerconaServerMongoDB"], 30, PERCONA),
        row("pgv2.percona.com", &["PerconaPGCluster"], 30, PERCONA),
        row("pxc.percona.com", &["PerconaXtraDBClusterBackup", "PerconaXtraDBClusterRestore"], 240, reads(Nowhere, &[Says(PERCONA_BACKUP)])),
        row("ps.percona.com", &["PerconaServerMySQLBackup", "PerconaServerMySQLRestore"], 240, reads(Nowhere, &[Says(PERCONA_BACKUP)])),
        row("psmdb.percona.com", &["PerconaServerMongoDBBackup", "PerconaServerMongoDBRestore"], 240, reads(Nowhere, &[Says(PERCONA_BACKUP)])),
        row("pgv2.percona.com", &["PerconaPGBackup", "PerconaPGRestore"], 240, reads(Nowhere, &[Says(PERCONA_BACKUP)])),
    ]},
    Project { name: "Scylla Operator", rows: &[
        row("scylla.scylladb.com", &["ScyllaCluster"], 60, reads(WhereWritten, &[
            Trouble(&["Degraded"]), Needs("Available", Waits), Busy(&["Progressing"]),
        ])),
    ]},
    Project { name: "TiDB Operator", rows: &[
        row("pingcap.com", &["TidbCluster"], 60, reads(Nowhere, &[Needs("Ready", Waits)]).asleep(&[True("spec.paused")])),
    ]},
    Project { name: "Vitess Operator", rows: &[
        row("planetscale.com", &["VitessCluster"], 60, reads(InStatus, &[Reads(Odd {
            words: "`gatewayAvailable` of every cell is True; of every keyspace all shards and tablets are ready, and the tablets updated",
            answers: &[Answer::Progressing],
            judge: vitess,
        })])),
    ]},
];

fn vitess(live: Live<'_>) -> Option<Health> {
    let parts = |field: &str| live.at(&["status", field]).and_then(Value::as_object);
    let (cells, keyspaces) = (parts("cells")?, parts("keyspaces"));
    for (name, cell) in cells {
        if cell.get("gatewayAvailable").and_then(Value::as_str) != Some("True") {
            return Some(Health::progressing(format!(
                "the gateway of the cell {} is not available",
                told(name)
            )));
        }
    }
    for (name, keyspace) in keyspaces.into_iter().flatten() {
        let count = |field: &str| keyspace.get(field).and_then(Value::as_u64).unwrap_or_default();
        for (have, of, noun, be) in [
            ("readyShards", "desiredShards", "shard", "ready"),
            ("readyTablets", "desiredTablets", "tablet", "ready"),
            ("updatedTablets", "desiredTablets", "tablet", "updated"),
        ] {
            if count(have) < count(of) {
                let so_many = of_are(count(have), count(of), noun);
                return Some(Health::progressing(format!("{}: {so_many} {be}", told(name))));
            }
        }
    }
    Some(Health::Healthy)
}
