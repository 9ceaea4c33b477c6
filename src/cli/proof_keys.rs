//! Provides the keys of ownership proofs: from the key Secret of the daemon, or from this process.

use crate::api::SyncName;
use crate::controller::Context;
use crate::controller::key_manager::{KeyLocation, KeyManager, use_temporary_keys};

use super::election;

/// Manager of the keys in the key Secret; `None` if the keys exist only in this process, beside its
/// API server.
pub(super) struct ProofKeys(Option<KeyManager>);

impl ProofKeys {
    /// Selects the place of the keys. `run` is the name under which `run --url` owns objects;
    /// `in_memory` is true for an API server in this process.
    pub(super) fn new(context: &Context, namespace: &str, run: Option<SyncName>, in_memory: bool) -> Self {
        if in_memory {
            use_temporary_keys(&context.cluster, run.as_ref());
            return Self(None);
        }
        let settings = context.settings();
        let lease = election::lease_name(run.as_ref().map(|run| &*run.name), &settings);
        let name = settings.key_secret.clone().unwrap_or_else(|| format!("{lease}-key").into());
        Self(Some(KeyManager::new(context, KeyLocation { namespace: namespace.into(), name, run })))
    }

    /// Reads the keys; must happen before anything is planned.
    pub(super) async fn begin(&mut self, context: &Context) {
        if let Some(keyring) = &mut self.0 {
            keyring.begin(context).await;
        }
    }

    /// Follows the key Secret; never returns.
    pub(super) async fn keep(&mut self) {
        match &mut self.0 {
            Some(keyring) => keyring.follow().await,
            None => std::future::pending().await,
        }
    }
}
