//! The rows of relational databases in the table of systems.

use super::table::{Resource, System, Told};

pub(crate) const DATABASE: System = System {
    folder: "database",
    operator: ("database-system", "database-operator"),
    resources: &[Resource {
        group: "example.com",
        version: "v1",
        kind: "Database",
        plural: "databases",
        namespace: Some("production"),
        name: "my-postgres",
        holds_data: true,
        finalizer: Some("database.example.com/finalizer"),
        told: Some(Told {
            on_its_way: r#"{"ready": false, "phase": "Pending", "observedGeneration": 1, "replicas": 1,
                "labelSelector": "app=my-postgres", "conditions": [{"type": "Ready", "status": "False",
                "reason": "ReplicasNotReady", "message": "1 of 3 replicas are ready", "observedGeneration": 1}]}"#,
            well: r#"{"ready": true, "phase": "Running", "observedGeneration": 1, "replicas": 3, "conditions": [
                {"type": "Ready", "status": "True", "reason": "AllReplicasReady", "message": "",
                "observedGeneration": 1}]}"#,
            broken: r#"{"ready": false, "phase": "Failed", "conditions": [{"type": "Ready", "status": "False",
                "reason": "ReconcileFailed", "message": "the StatefulSet my-postgres is refused: quota",
                "observedGeneration": 1}]}"#,
            words: "the StatefulSet my-postgres is refused: quota",
            is_subresource: true,
        }),
    }],
};

pub(crate) const CRUNCHY_POSTGRES: System = System {
    folder: "crunchy-postgres",
    operator: ("postgres-operator", "pgo"),
    resources: &[Resource {
        group: "postgres-operator.crunchydata.com",
        version: "v1beta1",
        kind: "PostgresCluster",
        plural: "postgresclusters",
        namespace: Some("postgres-operator"),
        name: "my-postgres",
        holds_data: true,
        finalizer: Some("postgres-operator.crunchydata.com/finalizer"),
        told: Some(Told {
            on_its_way: r#"{"observedGeneration": 1, "instances": [{"name": "primary", "replicas": 1,
                "readyReplicas": 0, "updatedReplicas": 1}], "conditions": [{"type": "PGBackRestReplicaRepoReady",
                "status": "Unknown", "reason": "RepoHostNotReady", "message": "the repository host is not ready"}]}"#,
            well: r#"{"observedGeneration": 1, "instances": [{"name": "primary", "replicas": 1, "readyReplicas": 1,
                "updatedReplicas": 1}], "conditions": [{"type": "PGBackRestReplicaRepoReady", "status": "True",
                "reason": "StanzaCreated", "message": "", "observedGeneration": 1}, {"type":
                "PGBackRestReplicaCreate", "status": "True", "reason": "RepoBackupComplete", "message": "",
                "observedGeneration": 1}]}"#,
            broken: r#"{"conditions": [{"type": "PersistentVolumeResizeError", "status": "True", "reason":
                "ResizeFailed", "message": "the volume of primary cannot be made larger",
                "observedGeneration": 1}]}"#,
            words: "the volume of primary cannot be made larger",
            is_subresource: true,
        }),
    }],
};

pub(crate) const DB_POSTGRES: System = System {
    folder: "db-postgres",
    operator: ("db-system", "db-postgres-operator"),
    resources: &[Resource {
        group: "db.example.com",
        version: "v1",
        kind: "PostgresCluster",
        plural: "postgresclusters",
        namespace: Some("db-system"),
        name: "orders",
        holds_data: true,
        finalizer: None,
        told: Some(Told {
            on_its_way: r#"{"phase": "Creating", "message": "1 of 3 instances are up"}"#,
            well: r#"{"phase": "Running", "message": null}"#,
            broken: r#"{"phase": "Failed", "message": "no volume of 20Gi is to be had"}"#,
            words: "no volume of 20Gi is to be had",
            is_subresource: true,
        }),
    }],
};

pub(crate) const EXAMPLE_POSTGRESQL: System = System {
    folder: "example-postgresql",
    operator: ("postgresql-system", "postgresql-operator"),
    resources: &[Resource {
        group: "postgres.example.com",
        version: "v1",
        kind: "PostgreSQLCluster",
        plural: "postgresqlclusters",
        namespace: Some("postgresql-system"),
        name: "prod-db",
        holds_data: true,
        finalizer: Some("postgres.example.com/finalizer"),
        told: Some(Told {
            on_its_way: r#"{"phase": "Provisioning", "conditions": [{"type": "Ready", "status": "False",
                "reason": "Provisioning", "message": "the standbys are being cloned"}]}"#,
            well: r#"{"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "reason": "Running",
                "message": ""}]}"#,
            broken: r#"{"phase": "Failed", "conditions": [{"type": "Ready", "status": "False", "reason":
                "BackupFailed", "message": "the backup of 02:00 came to nothing"}]}"#,
            words: "the backup of 02:00 came to nothing",
            is_subresource: true,
        }),
    }],
};

pub(crate) const ZALANDO_POSTGRES: System = System {
    folder: "zalando-postgres",
    operator: ("zalando-system", "zalando-postgres-operator"),
    resources: &[Resource {
        group: "acid.zalan.do",
        version: "v1",
        kind: "postgresql",
        plural: "postgresqls",
        namespace: Some("zalando-system"),
        name: "team1-db",
        holds_data: true,
        finalizer: None,
        told: Some(Told {
            on_its_way: r#"{"PostgresClusterStatus": "Creating"}"#,
            well: r#"{"PostgresClusterStatus": "Running"}"#,
            broken: r#"{"PostgresClusterStatus": "SyncFailed"}"#,
            words: "SyncFailed",
            is_subresource: true,
        }),
    }],
};

pub(crate) const MYSQL: System = System {
    folder: "mysql",
    operator: ("mysql-operator", "mysql-operator"),
    resources: &[Resource {
        group: "mysql.oracle.com",
        version: "v2",
        kind: "InnoDBCluster",
        plural: "innodbclusters",
        namespace: Some("mysql-operator"),
        name: "mycluster",
        holds_data: true,
        finalizer: Some("mysql.oracle.com/cluster"),
        told: Some(Told {
            on_its_way: r#"{"cluster": {"status": "INITIALIZING", "onlineInstances": 0}}"#,
            well: r#"{"cluster": {"status": "ONLINE", "onlineInstances": 3}}"#,
            broken: r#"{"cluster": {"status": "NO_QUORUM", "onlineInstances": 1}}"#,
            words: "NO_QUORUM",
            is_subresource: true,
        }),
    }],
};
