//! The home cluster as the ServiceAccounts of Syncs see it.
//!
//! In: the user name of a ServiceAccount. Out: the home cluster through a connection that
//! impersonates that user; it is kept as long as the daemon runs.

use std::collections::HashMap;

use tokio::sync::Mutex;

use crate::cluster::{Cluster, connect};
use crate::fair_queue::FairQueue;
use crate::report::{ErrorCause, ReconcileError};

/// Syncs of the home cluster whose object statuses are read at the same time.
const READS: usize = 8;

/// Access of Syncs to the home cluster.
pub(super) struct HomeAccess {
    /// Clusters by the name of the impersonated user.
    identities: Mutex<HashMap<String, Cluster>>,
    /// Limits the concurrent reads of object statuses.
    pub(super) reads: FairQueue,
}

impl Default for HomeAccess {
    fn default() -> Self {
        Self { identities: Mutex::default(), reads: FairQueue::new(READS) }
    }
}

impl HomeAccess {
    /// Returns the home cluster as a user sees it, and connects as that user the first time.
    pub(super) async fn impersonate(
        &self,
        home: &Cluster,
        user: String,
        http2: bool,
    ) -> Result<Cluster, ReconcileError> {
        let mut identities = self.identities.lock().await;
        if let Some(known) = identities.get(&user) {
            return Ok(known.clone());
        }
        let connection = connect(Some(&user), http2).await.map_err(|error| ReconcileError {
            cause: ErrorCause::ClusterUnreachable,
            message: error.to_string(),
            problems: Vec::new(),
            permanent: false,
        })?;
        let cluster = home.with_connection(connection);
        identities.insert(user, cluster.clone());
        Ok(cluster)
    }

    /// Runs a function for the home cluster as each user sees it.
    pub(super) async fn for_each(&self, act: impl Fn(&Cluster)) {
        self.identities.lock().await.values().for_each(act);
    }
}
