//! The daemons of a cluster, as their objects show them.
//!
//! In: a connection, and a namespace if the caller names one. Out: an [`Installation`]: the Syncs,
//! and each daemon with its Lease, its Deployment and its settings. A daemon may run without a
//! Deployment, as `moorline run` does on a machine; then only its Lease is known.

use std::collections::BTreeSet;

use serde_json::Value;

use super::election::lease_name;
use crate::cluster::{Connection, LeaseState, Lookup, OperatorError, SyncResource};
use crate::settings::Settings;
use crate::yaml::{self, Dialect};

/// Namespace of the daemon, if neither a flag nor a Sync names one.
const NAMESPACE: &str = "moorline";

/// Label of the objects of an installation.
const PART_OF: &str = "app.kubernetes.io/part-of%3Dmoorline";

/// The daemons of one namespace, and the Syncs of the cluster.
pub(super) struct Installation {
    pub(super) namespace: String,
    /// The Syncs of all namespaces, or why they cannot be listed.
    pub(super) syncs: Result<Vec<SyncResource>, OperatorError>,
    /// The daemons; at least one, which may not exist.
    pub(super) daemons: Vec<Daemon>,
}

/// One daemon.
pub(super) struct Daemon {
    /// The Lease, as namespace/name.
    pub(super) lease: String,
    pub(super) lease_state: LeaseState,
    pub(super) deployment: Option<Value>,
    /// The settings of its ConfigMap and environment; none without a Deployment, or if they cannot
    /// be read.
    pub(super) settings: Option<Settings>,
}

impl Daemon {
    /// The version that the daemon has written into its Lease, or else that of its Deployment.
    pub(super) fn version(&self) -> Option<&str> {
        let label = || self.deployment.as_ref()?["metadata"]["labels"]["app.kubernetes.io/version"].as_str();
        self.lease_state.version.as_deref().or_else(label)
    }

    pub(super) fn image(&self) -> Option<&str> {
        container(self.deployment.as_ref()?)?["image"].as_str()
    }

    /// The ServiceAccount of its Pods.
    pub(super) fn account(&self) -> Option<&str> {
        let pod = &self.deployment.as_ref()?["spec"]["template"]["spec"];
        Some(pod["serviceAccountName"].as_str().unwrap_or("default"))
    }
}

/// Finds the daemons.
pub(super) async fn find_installation(connection: &Connection, namespace: Option<&str>) -> Installation {
    let syncs = connection.syncs(None).await;
    let leases: BTreeSet<String> =
        syncs.iter().flatten().filter_map(|sync| sync.status.held_by.clone()).collect();
    let of_first = leases.first().and_then(|lease| lease.split_once('/')).map(|(namespace, _)| namespace);
    let namespace = namespace.or(of_first).unwrap_or(NAMESPACE).to_owned();
    let mut daemons = Vec::new();
    for deployment in deployments(connection, &namespace).await {
        let settings = settings(connection, &namespace, &deployment).await;
        let lease = lease_name(None, settings.as_ref().unwrap_or(&Settings::default()));
        daemons.push((format!("{namespace}/{lease}"), Some(deployment), settings));
    }
    for lease in leases.into_iter().filter(|lease| lease.split('/').next() == Some(&namespace)) {
        if !daemons.iter().any(|(known, _, _)| *known == lease) {
            daemons.push((lease, None, None));
        }
    }
    if daemons.is_empty() {
        daemons.push((format!("{namespace}/{}", lease_name(None, &Settings::default())), None, None));
    }
    let mut found = Vec::new();
    for (lease, deployment, settings) in daemons {
        let lease_state = connection.lease_state(&lease).await;
        found.push(Daemon { lease, lease_state, deployment, settings });
    }
    Installation { namespace, syncs, daemons: found }
}

async fn deployments(connection: &Connection, namespace: &str) -> Vec<Value> {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments?labelSelector={PART_OF}");
    match connection.look_up(&path).await {
        Lookup::Found(mut list) => serde_json::from_value(list["items"].take()).unwrap_or_default(),
        Lookup::Missing | Lookup::Forbidden | Lookup::Failed(_) => Vec::new(),
    }
}

/// Reads the settings as the daemon of a Deployment does: the file of its ConfigMap, then its
/// environment.
async fn settings(connection: &Connection, namespace: &str, deployment: &Value) -> Option<Settings> {
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array()?;
    let map = volumes.iter().find_map(|volume| volume["configMap"]["name"].as_str())?;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{map}");
    let map = connection.look_up(&path).await;
    let file = map.found()?["data"]["daemon.yaml"].as_str()?.to_owned();
    let file = yaml::read("daemon.yaml", file.as_bytes(), Dialect::Kubectl).ok()?.into_iter().next()?.value;
    let variables = container(deployment)?["env"].as_array().cloned().unwrap_or_default();
    let variables = variables.iter().filter_map(|variable| {
        Some((variable["name"].as_str()?.to_owned(), variable["value"].as_str()?.to_owned()))
    });
    Settings::from_sources(Some(&file), variables, []).ok()
}

/// The container of the daemon.
pub(super) fn container(deployment: &Value) -> Option<&Value> {
    deployment.pointer("/spec/template/spec/containers/0")
}
