//! Protected kinds: they are pruned only by approval, independent of the Sync's settings.
//!
//! Out: each kind with a description of the data that a deletion loses. Kinds are matched by group
//! and kind, never by the kind alone: a `Cluster` of one group is a database, and that of another a
//! set of virtual machines.
//!
//! A kind is listed if deleting an object of it may delete data that no commit restores. A field of
//! the object may decide that (`deletionPolicy`, `reclaimPolicy`), which a plan does not see:
//! approval is needed in that case, too. Kinds whose objects usually delete nothing else are in
//! `prune_guards.rs`.

use moorline_core::object::GroupKind;

/// Description of the lost data, and the kinds to which it applies, by group.
type Section = (&'static str, &'static [(&'static str, &'static [&'static str])]);

/// Returns every kind that is protected by default.
pub(super) fn default_protected_kinds() -> impl Iterator<Item = GroupKind> {
    protected_kinds_by_loss().map(|(_, kind)| kind)
}

/// Returns the same kinds, each with a description of the data that a deletion loses.
pub fn protected_kinds_by_loss() -> impl Iterator<Item = (&'static str, GroupKind)> {
    let kinds = |(lost, groups): &'static Section| {
        groups.iter().flat_map(move |(group, kinds)| {
            kinds.iter().map(move |kind| (*lost, GroupKind::new(group, kind)))
        })
    };
    SECTIONS.iter().flat_map(kinds)
}

const SECTIONS: [Section; 10] = [
    (
        "all objects in it, or of its kind",
        &[("", &["Namespace"]), ("apiextensions.k8s.io", &["CustomResourceDefinition"])],
    ),
    ("volumes and their classes", VOLUMES),
    ("copies of volumes", SNAPSHOTS),
    ("a relational database", RELATIONAL),
    ("a database of documents, columns or keys", OTHER_DATABASES),
    ("a search index", SEARCH),
    ("undelivered messages", MESSAGES),
    ("storage of objects, blocks or files", STORAGE),
    ("a cluster or release with everything in it", OTHERS),
    ("a cloud resource, depending on its deletionPolicy", CLOUDS),
];

const VOLUMES: &[(&str, &[&str])] = &[
    ("", &["PersistentVolume", "PersistentVolumeClaim"]),
    ("storage.k8s.io", &["StorageClass"]),
    ("longhorn.io", &["Volume"]),
    ("cdi.kubevirt.io", &["DataVolume"]),
    ("kubevirt.io", &["VirtualMachine"]),
];

const SNAPSHOTS: &[(&str, &[&str])] = &[
    ("snapshot.storage.k8s.io", &["VolumeSnapshot", "VolumeSnapshotContent"]),
    ("groupsnapshot.storage.k8s.io", &["VolumeGroupSnapshot", "VolumeGroupSnapshotContent"]),
];

const RELATIONAL: &[(&str, &[&str])] = &[
    ("example.com", &["Database"]),
    ("apps.example.com", &["Database"]),
    ("db.example.com", &["Database", "PostgresCluster"]),
    ("postgres.example.com", &["PostgreSQLCluster"]),
    ("postgres-operator.crunchydata.com", &["PostgresCluster"]),
    ("acid.zalan.do", &["postgresql"]),
    ("postgresql.cnpg.io", &["Cluster", "Database"]),
    ("stackgres.io", &["SGCluster"]),
    ("kubegres.reactive-tech.io", &["Kubegres"]),
    ("mysql.oracle.com", &["InnoDBCluster"]),
    ("pgv2.percona.com", &["PerconaPGCluster"]),
    ("pxc.percona.com", &["PerconaXtraDBCluster"]),
    ("ps.percona.com", &["PerconaServerMySQL"]),
    ("k8s.mariadb.com", &["MariaDB", "Database"]),
    ("planetscale.com", &["VitessCluster"]),
    ("pingcap.com", &["TidbCluster"]),
    ("crdb.cockroachlabs.com", &["CrdbCluster"]),
    ("yugabyte.com", &["YBCluster"]),
    ("kubedb.com", &["Postgres", "MySQL", "MariaDB"]),
];

const OTHER_DATABASES: &[(&str, &[&str])] = &[
    ("mongodbcommunity.mongodb.com", &["MongoDBCommunity"]),
    ("mongodb.com", &["MongoDB", "MongoDBMultiCluster"]),
    ("atlas.mongodb.com", &["AtlasDeployment", "AtlasProject"]),
    ("psmdb.percona.com", &["PerconaServerMongoDB"]),
    ("redis.redis.opstreelabs.in", &["Redis", "RedisCluster", "RedisReplication"]),
    ("databases.spotahome.com", &["RedisFailover"]),
    ("app.redislabs.com", &["RedisEnterpriseCluster", "RedisEnterpriseDatabase"]),
    ("dragonflydb.io", &["Dragonfly"]),
    ("clickhouse.altinity.com", &["ClickHouseInstallation"]),
    ("clickhouse-keeper.altinity.com", &["ClickHouseKeeperInstallation"]),
    ("cassandra.datastax.com", &["CassandraDatacenter"]),
    ("k8ssandra.io", &["K8ssandraCluster"]),
    ("scylla.scylladb.com", &["ScyllaCluster"]),
    ("couchbase.com", &["CouchbaseCluster", "CouchbaseBucket"]),
    ("database.arangodb.com", &["ArangoDeployment"]),
    ("druid.gardener.cloud", &["Etcd"]),
    ("kubedb.com", &["MongoDB", "Redis"]),
];

const SEARCH: &[(&str, &[&str])] = &[
    ("elasticsearch.k8s.elastic.co", &["Elasticsearch"]),
    ("opensearch.opster.io", &["OpenSearchCluster"]),
    ("solr.apache.org", &["SolrCloud"]),
    ("kubedb.com", &["Elasticsearch"]),
];

const MESSAGES: &[(&str, &[&str])] = &[
    ("rabbitmq.com", &["RabbitmqCluster", "Vhost", "Queue"]),
    ("kafka.strimzi.io", &["Kafka", "KafkaNodePool", "KafkaTopic"]),
    ("jetstream.nats.io", &["Stream", "KeyValue", "ObjectStore"]),
    ("kubedb.com", &["Kafka"]),
];

const STORAGE: &[(&str, &[&str])] = &[
    ("minio.min.io", &["Tenant"]),
    (
        "ceph.rook.io",
        &[
            "CephCluster",
            "CephBlockPool",
            "CephBlockPoolRadosNamespace",
            "CephFilesystem",
            "CephFilesystemSubVolumeGroup",
            "CephObjectStore",
        ],
    ),
    ("objectbucket.io", &["ObjectBucketClaim", "ObjectBucket"]),
    ("objectstorage.k8s.io", &["BucketClaim", "Bucket"]),
];

const OTHERS: &[(&str, &[&str])] =
    &[("cluster.x-k8s.io", &["Cluster"]), ("helm.toolkit.fluxcd.io", &["HelmRelease"])];

const CLOUDS: &[(&str, &[&str])] = &[
    ("rds.aws.crossplane.io", &["RDSInstance", "DBInstance", "DBCluster"]),
    ("database.aws.crossplane.io", &["RDSInstance"]),
    ("cache.aws.crossplane.io", &["ReplicationGroup"]),
    ("dynamodb.aws.crossplane.io", &["Table"]),
    ("s3.aws.crossplane.io", &["Bucket"]),
    ("efs.aws.crossplane.io", &["FileSystem"]),
    ("database.gcp.crossplane.io", &["CloudSQLInstance"]),
    ("rds.aws.upbound.io", &["Instance", "Cluster"]),
    ("dynamodb.aws.upbound.io", &["Table"]),
    ("elasticache.aws.upbound.io", &["Cluster", "ReplicationGroup"]),
    ("s3.aws.upbound.io", &["Bucket"]),
    ("efs.aws.upbound.io", &["FileSystem"]),
    ("sql.gcp.upbound.io", &["DatabaseInstance", "Database"]),
    ("storage.gcp.upbound.io", &["Bucket"]),
    ("dbforpostgresql.azure.upbound.io", &["FlexibleServer", "FlexibleServerDatabase"]),
    ("dbformysql.azure.upbound.io", &["FlexibleServer", "FlexibleDatabase"]),
    ("sql.azure.upbound.io", &["MSSQLServer", "MSSQLDatabase"]),
    ("storage.azure.upbound.io", &["Account", "Container"]),
    ("rds.services.k8s.aws", &["DBInstance", "DBCluster"]),
    ("dynamodb.services.k8s.aws", &["Table"]),
    ("s3.services.k8s.aws", &["Bucket"]),
    ("sql.cnrm.cloud.google.com", &["SQLInstance", "SQLDatabase"]),
    ("storage.cnrm.cloud.google.com", &["StorageBucket"]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_kind_is_meant_with_its_group() {
        let all: BTreeSet<GroupKind> = default_protected_kinds().collect();
        let check = |group: &str, kind: &str, expect: bool| {
            assert_eq!(all.contains(&GroupKind::new(group, kind)), expect, "{kind}.{group}");
        };
        for group in ["example.com", "apps.example.com", "db.example.com"] {
            check(group, "Database", true);
        }
        check("other.example.com", "Database", false);
        check("postgresql.cnpg.io", "Cluster", true);
        check("cluster.x-k8s.io", "Cluster", true);
        check("cluster.x-k8s.io", "MachineDeployment", false);
        check("helm.toolkit.fluxcd.io", "HelmRelease", true);
        check("helm.cattle.io", "HelmRelease", false);
        check("acid.zalan.do", "postgresql", true);
        check("acid.zalan.do", "Postgresql", false);
        check("kafka.strimzi.io", "KafkaTopic", true);
        check("kafka.strimzi.io", "KafkaUser", false);
        check("", "Secret", false);
    }

    #[test]
    fn every_kind_is_there_once() {
        let (all, count): (BTreeSet<GroupKind>, usize) =
            (default_protected_kinds().collect(), default_protected_kinds().count());
        assert_eq!(all.len(), count);
    }
}
