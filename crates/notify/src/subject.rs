//! The Sync that a notification is about.
//!
//! In: its metadata and the URL of its repository.
//! Out: [`Subject`].

use std::collections::BTreeMap;

use crate::repository::HostedRepository;

/// A Sync, as notifications name it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The name of the cluster.
    pub cluster: Box<str>,
    /// The namespace of the Sync.
    pub namespace: Box<str>,
    /// The name of the Sync.
    pub name: Box<str>,
    /// The uid of the Sync.
    pub uid: Box<str>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its repository, if it is one on a host.
    pub repository: Option<HostedRepository>,
}

impl Subject {
    /// Returns the context of a commit status: the same for each commit, and another for each
    /// cluster.
    pub fn context(&self) -> String {
        format!("moorline/{}/{}/{}", self.cluster, self.namespace, self.name)
    }
}
