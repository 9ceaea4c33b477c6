//! A Sync whose repository may have pull requests.
//!
//! In: the Sync as the API server has it, and what its worker uses.
//! Out: [`PlanTarget`]. The repository has the login of the Sync, which only reads.

use std::sync::Arc;

use serde_json::Value;

use crate::api::{REQUEST_ANNOTATION, SyncName, WEBHOOK_REQUEST};
use crate::cluster::{Cluster, SyncText};
use crate::notifications::{HostedRepository, Subject};
use crate::source::Repository;

/// A Sync that is served.
pub(crate) struct PlanTarget {
    /// The resource.
    pub(super) sync: Arc<SyncText>,
    pub(super) subject: Subject,
    pub(super) repository: Repository,
    /// The cluster with the identity of the Sync.
    pub(super) cluster: Cluster,
    pub(super) is_suspended: bool,
    webhook_request: Option<Box<str>>,
    /// The page of the Sync, where the console has an address.
    pub(super) link: Option<String>,
}

impl PlanTarget {
    /// Returns the target of a Sync; none if its repository is on no host.
    pub(crate) fn new(
        (cluster_name, console): (&str, Option<&str>),
        name: &SyncName,
        sync: Arc<SyncText>,
        (repository, cluster): (&Repository, &Cluster),
    ) -> Option<Self> {
        let read = sync.read();
        let text = |pointer: &str| read.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let hosted = HostedRepository::of_url(text("/spec/source/git/url"))?;
        let labels = read.pointer("/metadata/labels").cloned().unwrap_or_default();
        let subject = Subject {
            cluster: cluster_name.into(),
            namespace: name.namespace.clone(),
            name: name.name.clone(),
            uid: text("/metadata/uid").into(),
            labels: serde_json::from_value(labels).unwrap_or_default(),
            repository: Some(hosted),
        };
        let is_suspended = read.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or_default();
        let request = read.pointer("/metadata/annotations").and_then(|all| all.get(REQUEST_ANNOTATION));
        let request = request.and_then(Value::as_str).filter(|request| request.starts_with(WEBHOOK_REQUEST));
        let webhook_request = request.map(Box::from);
        let (repository, cluster) = (repository.clone(), cluster.clone());
        let link = console
            .map(|url| format!("{}/syncs/{}/{}", url.trim_end_matches('/'), name.namespace, name.name));
        Some(Self { sync, subject, repository, cluster, is_suspended, webhook_request, link })
    }

    /// True if the same Notifiers select it.
    pub(super) fn is_selected_as(&self, other: &Self) -> bool {
        (&self.subject, self.is_suspended) == (&other.subject, other.is_suspended)
    }

    /// Returns the last webhook that a daemon without the Lease has passed on; each is another one.
    pub(super) fn webhook_request(&self) -> Option<&str> {
        self.webhook_request.as_deref()
    }
}
