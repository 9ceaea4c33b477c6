//! Relational databases.
//!
//! In: nothing.
//! Out: rules. A cluster that works with fewer members than wanted is progressing, not degraded.

use serde_json::Value;

use super::super::Health;
use super::rule::Check::{
    BoolField, Custom as Reads, FailedIfFalse, FailedIfTrue, IfReported, Phase as Reporting,
    ProgressingIfTrue, Reached as Counts, Required, SuspendedIfTrue,
};
use super::rule::Generation::{InStatus, Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, Waits};
use super::rule::Switch::{Annotation, True};
use super::rule::{
    COUNT_DEFAULTS, CountCheck, CustomCheck, PHASE_DEFAULTS, PhaseCheck, Project, Rule, Verdict, kind_rule,
    no_status, status_rule,
};
use crate::message::{count_of_are, quote};
use crate::object_view::ObjectView;

const PERCONA: Rule = status_rule(
    WhereWritten,
    &[Reporting(PhaseCheck {
        path: "status.state",
        healthy: &["ready"],
        progressing: &["init", "initializing", "pending", "stopping", "unknown"],
        failed: &["error"],
        suspended: &["paused"],
        ..PHASE_DEFAULTS
    })],
)
.with_suspended_by(&[True("spec.pause")]);

const PERCONA_BACKUP: PhaseCheck = PhaseCheck {
    path: "status.state",
    healthy: &["Succeeded", "ready"],
    progressing: &["New", "Starting", "Running", "Suspended", "requested", "running", "waiting"],
    failed: &["Failed", "Error", "error", "rejected"],
    message: "status.error",
    ..PHASE_DEFAULTS
};

const MARIADB: Rule =
    status_rule(Nowhere, &[Required("Ready", ByReason)]).with_suspended_by(&[True("spec.suspend")]);

const MONGODB: PhaseCheck = PhaseCheck {
    healthy: &["Running", "Updated"],
    progressing: &["Pending", "Reconciling"],
    failed: &["Failed", "Unsupported"],
    suspended: &["Disabled"],
    ..PHASE_DEFAULTS
};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Cass Operator", rows: &[
        kind_rule("cassandra.datastax.com", &["CassandraDatacenter"], 60, status_rule(WhereWritten, &[
            FailedIfFalse(&["Valid"]),
            Reporting(PhaseCheck { path: "status.cassandraOperatorProgress", healthy: &["Ready"], progressing: &["Updating"], ..PHASE_DEFAULTS }),
            IfReported("Ready", Waits),
        ]).with_suspended_by(&[True("spec.stopped")])),
    ]},
    Project { name: "CloudNativePG", rows: &[
        kind_rule("postgresql.cnpg.io", &["Cluster"], 30, status_rule(Nowhere, &[
            Reporting(PhaseCheck {
                healthy: &["Cluster in healthy state"],
                failed: &[
                    "Cluster is unrecoverable and needs manual intervention",
                    "Cluster is in an unrecoverable state, needs manual intervention",
                    "Cluster cannot proceed to reconciliation due to an unknown plugin being required",
                    "Unable to create required cluster objects", "Not enough disk space",
                ],
                suspended: &["Waiting for user action"],
                message: "status.phaseReason",
                is_free_text: true,
                ..PHASE_DEFAULTS
            }),
            Counts(CountCheck { actual: "status.readyInstances", wanted: "spec.instances", noun: "instance", ..COUNT_DEFAULTS }),
            IfReported("Ready", Waits),
            IfReported("ContinuousArchiving", Fails),
            SuspendedIfTrue(&["cnpg.io/hibernation"]),
        ]).with_suspended_by(&[Annotation("cnpg.io/hibernation", "on"), Annotation("cnpg.io/reconciliationLoop", "disabled")])),
        kind_rule("postgresql.cnpg.io", &["Backup"], 240, status_rule(Nowhere, &[Reporting(PhaseCheck {
            healthy: &["completed"],
            progressing: &["pending", "started", "running", "finalizing"],
            failed: &["failed", "walArchivingFailing"],
            message: "status.error",
            ..PHASE_DEFAULTS
        })])),
        kind_rule("postgresql.cnpg.io", &["Pooler"], 15, status_rule(Nowhere, &[
            Counts(CountCheck { actual: "status.instances", wanted: "spec.instances", noun: "instance", ..COUNT_DEFAULTS }),
        ]).with_suspended_by(&[True("spec.pgbouncer.paused")])),
        kind_rule("postgresql.cnpg.io", &["Database", "Publication", "Subscription"], 10, status_rule(WhereWritten, &[BoolField("status.applied", Fails)])),
        no_status("postgresql.cnpg.io", &["ScheduledBackup", "ImageCatalog", "ClusterImageCatalog"]),
        no_status("barmancloud.cnpg.io", &["ObjectStore"]),
    ]},
    Project { name: "Dragonfly Operator", rows: &[
        kind_rule("dragonflydb.io", &["Dragonfly"], 15, status_rule(Nowhere, &[Reporting(PhaseCheck { healthy: &["ready", "Ready"], is_free_text: true, ..PHASE_DEFAULTS })])),
    ]},
    Project { name: "KubeDB", rows: &[
        kind_rule("kubedb.com", &[
            "Elasticsearch", "Kafka", "MariaDB", "Memcached", "MongoDB", "MySQL", "PerconaXtraDB", "PgBouncer", "Postgres", "ProxySQL",
            "RabbitMQ", "Redis", "RedisSentinel",
        ], 30, status_rule(WhereWritten, &[Reporting(PhaseCheck {
            healthy: &["Ready"],
            progressing: &["Provisioning", "DataRestoring", "Critical"],
            failed: &["NotReady"],
            suspended: &["Halted"],
            ..PHASE_DEFAULTS
        })]).with_suspended_by(&[True("spec.halted")])),
    ]},
    Project { name: "MariaDB Operator", rows: &[
        kind_rule("k8s.mariadb.com", &["MariaDB", "MaxScale", "Connection", "Database", "Grant", "User"], 30, MARIADB),
        kind_rule("mariadb.mmontes.io", &["MariaDB", "Connection", "Database", "Grant", "User"], 30, MARIADB),
        kind_rule("k8s.mariadb.com", &["Restore", "SqlJob"], 60, status_rule(Nowhere, &[Required("Complete", ByReason)])),
    ]},
    Project { name: "MongoDB Operators", rows: &[
        kind_rule("mongodbcommunity.mongodb.com", &["MongoDBCommunity"], 30, status_rule(Nowhere, &[Reporting(MONGODB)])),
        kind_rule("mongodb.com", &["MongoDB", "MongoDBMultiCluster", "MongoDBUser"], 30, status_rule(WhereWritten, &[Reporting(MONGODB)])),
        kind_rule("atlas.mongodb.com", &["AtlasProject", "AtlasDeployment", "AtlasDatabaseUser"], 60, status_rule(InStatus, &[Required("Ready", ByReason)])),
    ]},
    Project { name: "Percona Operators", rows: &[
        kind_rule("pxc.percona.com", &["PerconaXtraDBCluster"], 30, PERCONA),
        kind_rule("ps.percona.com", &["PerconaServerMySQL"], 30, PERCONA),
        kind_rule("psmdb.percona.com", &["PerconaServerMongoDB"], 30, PERCONA),
        kind_rule("pgv2.percona.com", &["PerconaPGCluster"], 30, PERCONA),
        kind_rule("pxc.percona.com", &["PerconaXtraDBClusterBackup", "PerconaXtraDBClusterRestore"], 240, status_rule(Nowhere, &[Reporting(PERCONA_BACKUP)])),
        kind_rule("ps.percona.com", &["PerconaServerMySQLBackup", "PerconaServerMySQLRestore"], 240, status_rule(Nowhere, &[Reporting(PERCONA_BACKUP)])),
        kind_rule("psmdb.percona.com", &["PerconaServerMongoDBBackup", "PerconaServerMongoDBRestore"], 240, status_rule(Nowhere, &[Reporting(PERCONA_BACKUP)])),
        kind_rule("pgv2.percona.com", &["PerconaPGBackup", "PerconaPGRestore"], 240, status_rule(Nowhere, &[Reporting(PERCONA_BACKUP)])),
    ]},
    Project { name: "Scylla Operator", rows: &[
        kind_rule("scylla.scylladb.com", &["ScyllaCluster"], 60, status_rule(WhereWritten, &[
            FailedIfTrue(&["Degraded"]), Required("Available", Waits), ProgressingIfTrue(&["Progressing"]),
        ])),
    ]},
    Project { name: "TiDB Operator", rows: &[
        kind_rule("pingcap.com", &["TidbCluster"], 60, status_rule(Nowhere, &[Required("Ready", Waits)]).with_suspended_by(&[True("spec.paused")])),
    ]},
    Project { name: "Vitess Operator", rows: &[
        kind_rule("planetscale.com", &["VitessCluster"], 60, status_rule(InStatus, &[Reads(CustomCheck {
            description: "`gatewayAvailable` of every cell is True; of every keyspace all shards and tablets are ready, and the tablets updated",
            verdicts: &[Verdict::Progressing],
            judge: vitess,
        })])),
    ]},
];

fn vitess(live: ObjectView<'_>) -> Option<Health> {
    let parts = |field: &str| live.field(&["status", field]).and_then(Value::as_object);
    let (cells, keyspaces) = (parts("cells")?, parts("keyspaces"));
    for (name, cell) in cells {
        if cell.get("gatewayAvailable").and_then(Value::as_str) != Some("True") {
            return Some(Health::progressing(format!(
                "the gateway of the cell {} is not available",
                quote(name)
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
                let so_many = count_of_are(count(have), count(of), noun);
                return Some(Health::progressing(format!("{}: {so_many} {be}", quote(name))));
            }
        }
    }
    Some(Health::Healthy)
}
