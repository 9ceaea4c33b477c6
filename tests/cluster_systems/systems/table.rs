//! The systems that people run, one row each: what their folder below `examples/operators` defines, and what their
//! operators write.
//!
//! In: nothing. Out: [`SYSTEMS`]. Statuses are written as the operators write them; the words are those that a person has
//! to read when something is wrong.

use super::databases::{
    CRUNCHY_POSTGRES, DATABASE, DB_POSTGRES, EXAMPLE_POSTGRESQL, MYSQL, ZALANDO_POSTGRES,
};

/// A folder of examples.
pub(crate) struct System {
    pub(crate) folder: &'static str,
    /// Namespace and name of the operator's Deployment.
    pub(crate) operator: (&'static str, &'static str),
    /// The custom resources; the first is the one that fails in the tests.
    pub(crate) resources: &'static [Resource],
}

/// A custom resource and what its operator says of it.
#[derive(Clone, Copy)]
pub(crate) struct Resource {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    /// None for one of the whole cluster.
    pub(crate) namespace: Option<&'static str>,
    pub(crate) name: &'static str,
    /// With it goes what nobody can bring back, so that a person is asked first.
    pub(crate) holds_data: bool,
    /// By which its operator sees to what has to be done before it goes.
    pub(crate) finalizer: Option<&'static str>,
    /// Its statuses; none where nobody writes one.
    pub(crate) told: Option<Told>,
}

/// Statuses as JSON.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    pub(crate) on_its_way: &'static str,
    pub(crate) well: &'static str,
    pub(crate) broken: &'static str,
    /// Part of the last that a person reads.
    pub(crate) words: &'static str,
    /// False where the status is a field as any other.
    pub(crate) is_subresource: bool,
}

impl Resource {
    /// The address of its collection.
    pub(crate) fn collection(&self) -> String {
        let namespace = self.namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
        format!("/apis/{}/{}/{namespace}{}", self.group, self.version, self.plural)
    }

    pub(crate) fn uri(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    /// The name of its definition.
    pub(crate) fn definition(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Returns its name for a person.
    pub(crate) fn shown(&self) -> String {
        let namespace = self.namespace.map(|name| format!("{name}/")).unwrap_or_default();
        format!("{}.{} {namespace}{}", self.kind, self.group, self.name)
    }
}

pub(crate) const SYSTEMS: [System; 14] = [
    DATABASE,
    CRUNCHY_POSTGRES,
    DB_POSTGRES,
    EXAMPLE_POSTGRESQL,
    ZALANDO_POSTGRES,
    MYSQL,
    RABBITMQ,
    REDIS,
    MEMCACHED,
    ELASTICSEARCH,
    PROMETHEUS,
    CERT_MANAGER,
    ARGOCD,
    CROSSPLANE,
];

const RABBITMQ: System = System {
    folder: "rabbitmq",
    operator: ("rabbitmq-system", "rabbitmq-cluster-operator"),
    resources: &[Resource {
        group: "rabbitmq.com",
        version: "v1beta1",
        kind: "RabbitmqCluster",
        plural: "rabbitmqclusters",
        namespace: Some("rabbitmq"),
        name: "rabbitmq",
        holds_data: true,
        finalizer: Some("deletion.finalizers.rabbitmqclusters.rabbitmq.com"),
        told: Some(Told {
            on_its_way: r#"{"observedGeneration": 1, "conditions": [
                {"type": "AllReplicasReady", "status": "False", "reason": "NotAllPodsReady", "message": "0/1 Pods ready"},
                {"type": "ClusterAvailable", "status": "False", "reason": "NoEndpointsAvailable", "message": "no endpoint"},
                {"type": "NoWarnings", "status": "True", "reason": "NoWarnings"},
                {"type": "ReconcileSuccess", "status": "True", "reason": "Success"}]}"#,
            well: r#"{"observedGeneration": 1, "conditions": [
                {"type": "AllReplicasReady", "status": "True", "reason": "AllPodsAreReady"},
                {"type": "ClusterAvailable", "status": "True", "reason": "AtLeastOneEndpointAvailable"},
                {"type": "NoWarnings", "status": "True", "reason": "NoWarnings"},
                {"type": "ReconcileSuccess", "status": "True", "reason": "Success"}]}"#,
            broken: r#"{"observedGeneration": 1, "conditions": [
                {"type": "AllReplicasReady", "status": "True", "reason": "AllPodsAreReady"},
                {"type": "ClusterAvailable", "status": "True", "reason": "AtLeastOneEndpointAvailable"},
                {"type": "NoWarnings", "status": "True", "reason": "NoWarnings"},
                {"type": "ReconcileSuccess", "status": "False", "reason": "Error",
                    "message": "the Secret of the default user is not there"}]}"#,
            words: "the Secret of the default user is not there",
            is_subresource: true,
        }),
    }],
};

const REDIS: System = System {
    folder: "redis",
    operator: ("redis-operator", "redis-operator"),
    resources: &[Resource {
        group: "redis.redis.opstreelabs.in",
        version: "v1beta2",
        kind: "RedisCluster",
        plural: "redisclusters",
        namespace: Some("redis-operator"),
        name: "redis-cluster",
        holds_data: true,
        finalizer: Some("redisClusterFinalizer"),
        told: Some(Told {
            on_its_way: r#"{"state": "Initializing", "reason": "RedisCluster is initializing leaders",
                "readyLeaderReplicas": 0, "readyFollowerReplicas": 0}"#,
            well: r#"{"state": "Ready", "reason": "RedisCluster is ready", "readyLeaderReplicas": 3,
                "readyFollowerReplicas": 3}"#,
            broken: r#"{"state": "Failed", "reason": "RedisCluster has too many unhealthy nodes"}"#,
            words: "too many unhealthy nodes",
            is_subresource: true,
        }),
    }],
};

const MEMCACHED: System = System {
    folder: "memcached",
    operator: ("memcached-system", "memcached-operator"),
    resources: &[Resource {
        group: "cache.example.com",
        version: "v1",
        kind: "Memcached",
        plural: "memcacheds",
        namespace: Some("memcached-system"),
        name: "memcached-sample",
        holds_data: false,
        finalizer: Some("cache.example.com/finalizer"),
        told: Some(Told {
            on_its_way: r#"{"conditions": [{"type": "Available", "status": "Unknown", "reason": "Reconciling",
                "message": "Starting reconciliation"}]}"#,
            well: r#"{"conditions": [{"type": "Available", "status": "True", "reason": "Reconciling",
                "message": "the Deployment has 3 replicas"}]}"#,
            broken: r#"{"conditions": [{"type": "Available", "status": "False", "reason": "Reconciling", "message": ""},
                {"type": "Degraded", "status": "True", "reason": "Resizing",
                "message": "the Deployment cannot be resized"}]}"#,
            words: "the Deployment cannot be resized",
            is_subresource: true,
        }),
    }],
};

const ELASTICSEARCH: System = System {
    folder: "elasticsearch",
    operator: ("elastic-system", "elastic-operator"),
    resources: &[Resource {
        group: "elasticsearch.k8s.elastic.co",
        version: "v1",
        kind: "Elasticsearch",
        plural: "elasticsearches",
        namespace: Some("elastic-system"),
        name: "quickstart",
        holds_data: true,
        finalizer: None,
        told: Some(Told {
            on_its_way: r#"{"phase": "ApplyingChanges", "health": "unknown", "observedGeneration": 1,
                "conditions": [{"type": "ReconciliationComplete", "status": "False", "message": "0 of 3 nodes"}]}"#,
            well: r#"{"phase": "Ready", "health": "green", "availableNodes": 3, "version": "8.10.0",
                "observedGeneration": 1, "conditions": [{"type": "ReconciliationComplete", "status": "True"},
                {"type": "ElasticsearchIsReachable", "status": "True"}]}"#,
            broken: r#"{"phase": "Invalid", "health": "unknown"}"#,
            words: "Invalid",
            is_subresource: true,
        }),
    }],
};

const PROMETHEUS: System = System {
    folder: "prometheus",
    operator: ("monitoring", "prometheus-operator"),
    resources: &[
        Resource {
            group: "monitoring.coreos.com",
            version: "v1",
            kind: "Prometheus",
            plural: "prometheuses",
            namespace: Some("monitoring"),
            name: "prometheus",
            holds_data: false,
            finalizer: Some("monitoring.coreos.com/status-cleanup"),
            told: Some(Told {
                on_its_way: r#"{"replicas": 2, "availableReplicas": 0, "conditions": [
                    {"type": "Available", "status": "False", "reason": "NoPodReady", "message": "no Pod is ready"},
                    {"type": "Reconciled", "status": "True", "observedGeneration": 1}]}"#,
                well: r#"{"replicas": 2, "availableReplicas": 2, "conditions": [
                    {"type": "Available", "status": "True", "observedGeneration": 1},
                    {"type": "Reconciled", "status": "True", "observedGeneration": 1}]}"#,
                broken: r#"{"conditions": [{"type": "Available", "status": "True", "observedGeneration": 1},
                    {"type": "Reconciled", "status": "False", "reason": "ReconciliationFailed",
                    "message": "the retention 30x is no duration", "observedGeneration": 1}]}"#,
                words: "the retention 30x is no duration",
                is_subresource: true,
            }),
        },
        Resource {
            group: "monitoring.coreos.com",
            version: "v1",
            kind: "ServiceMonitor",
            plural: "servicemonitors",
            namespace: Some("monitoring"),
            name: "frontend",
            holds_data: false,
            finalizer: None,
            told: None,
        },
    ],
};

const CERT_MANAGER: System = System {
    folder: "cert-manager",
    operator: ("cert-manager", "cert-manager"),
    resources: &[
        Resource {
            group: "cert-manager.io",
            version: "v1",
            kind: "Certificate",
            plural: "certificates",
            namespace: Some("cert-manager"),
            name: "example-com",
            holds_data: false,
            finalizer: None,
            told: Some(Told {
                on_its_way: r#"{"conditions": [
                    {"type": "Issuing", "status": "True", "reason": "DoesNotExist", "observedGeneration": 1},
                    {"type": "Ready", "status": "False", "reason": "DoesNotExist", "observedGeneration": 1,
                        "message": "the Secret example-com-tls is not there yet"}]}"#,
                well: r#"{"revision": 1, "conditions": [{"type": "Ready", "status": "True", "reason": "Ready",
                    "message": "the certificate is up to date", "observedGeneration": 1}]}"#,
                broken: r#"{"failedIssuanceAttempts": 1, "conditions": [
                    {"type": "Issuing", "status": "False", "reason": "Failed", "observedGeneration": 1,
                        "message": "the order is invalid: www.example.com is not ours"},
                    {"type": "Ready", "status": "False", "reason": "Failed", "observedGeneration": 1,
                        "message": "the order is invalid: www.example.com is not ours"}]}"#,
                words: "www.example.com is not ours",
                is_subresource: true,
            }),
        },
        Resource {
            group: "cert-manager.io",
            version: "v1",
            kind: "ClusterIssuer",
            plural: "clusterissuers",
            namespace: None,
            name: "letsencrypt-prod",
            holds_data: false,
            finalizer: None,
            told: Some(Told {
                // It says nothing about itself before its account is there.
                on_its_way: r#"{"acme": {}}"#,
                well: r#"{"conditions": [{"type": "Ready", "status": "True", "reason": "ACMEAccountRegistered",
                    "observedGeneration": 1}]}"#,
                broken: "{}",
                words: "",
                is_subresource: true,
            }),
        },
    ],
};

const ARGOCD: System = System {
    folder: "argocd",
    operator: ("argocd", "argocd-application-controller"),
    resources: &[Resource {
        group: "argoproj.io",
        version: "v1alpha1",
        kind: "Application",
        plural: "applications",
        namespace: Some("argocd"),
        name: "guestbook",
        holds_data: false,
        finalizer: Some("resources-finalizer.argocd.argoproj.io"),
        told: Some(Told {
            on_its_way: r#"{"sync": {"status": "OutOfSync"}, "health": {"status": "Missing"},
                "operationState": {"phase": "Running", "message": "waiting for deployment/guestbook"}}"#,
            well: r#"{"sync": {"status": "Synced"}, "health": {"status": "Healthy"},
                "operationState": {"phase": "Succeeded", "message": "successfully synced"}}"#,
            broken: r#"{"sync": {"status": "Synced"}, "health": {"status": "Degraded",
                "message": "the Deployment guestbook has no Pod"}}"#,
            words: "the Deployment guestbook has no Pod",
            is_subresource: false,
        }),
    }],
};

const CROSSPLANE: System = System {
    folder: "crossplane",
    operator: ("crossplane-system", "provider-aws"),
    resources: &[rds("database.aws.crossplane.io", "v1beta1"), rds("rds.aws.crossplane.io", "v1alpha1")],
};

const fn rds(group: &'static str, version: &'static str) -> Resource {
    Resource {
        group,
        version,
        kind: "RDSInstance",
        plural: "rdsinstances",
        namespace: None,
        name: "my-db",
        holds_data: true,
        finalizer: Some("finalizer.managedresource.crossplane.io"),
        told: Some(Told {
            on_its_way: r#"{"conditions": [
                {"type": "Synced", "status": "True", "reason": "ReconcileSuccess"},
                {"type": "Ready", "status": "False", "reason": "Creating"}]}"#,
            well: r#"{"conditions": [
                {"type": "Synced", "status": "True", "reason": "ReconcileSuccess"},
                {"type": "Ready", "status": "True", "reason": "Available"}]}"#,
            broken: r#"{"conditions": [
                {"type": "Synced", "status": "False", "reason": "ReconcileError",
                    "message": "the instance class db.t3.micro is not to be had in us-east-1"},
                {"type": "Ready", "status": "True", "reason": "Available"}]}"#,
            words: "db.t3.micro is not to be had in us-east-1",
            is_subresource: true,
        }),
    }
}
