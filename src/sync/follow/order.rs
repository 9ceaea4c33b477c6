//! The order of a Sync: its spec, and everything that the spec names, read.
//!
//! In: what `keep` has read. Out: [`Order`], which a follower carries out until it gets another one.

use std::sync::Arc;

use super::super::heads::Key;
use super::super::login::Permission;
use super::super::wish::Wish;
use crate::adopt::Predecessor;
use crate::cluster::Cluster;
use crate::report::Trouble;
use crate::source::{Credentials, Keys, Repository};

/// The newest spec of a Sync, and everything that it names.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) wish: Arc<Wish>,
    pub(crate) repository: Repository,
    /// The approval that a person gave.
    pub(crate) approved: Option<String>,
    /// The Sync to which this one moves its objects, as somebody wrote it.
    pub(crate) moves_to: Option<Box<str>>,
    /// Whose objects these were before.
    pub(crate) predecessor: Option<Predecessor>,
    pub(crate) credentials: Credentials,
    /// The right by which they may be sent, where it is not the Secret that allows it.
    pub(crate) permission: Option<Arc<Permission>>,
    /// Whose signatures count, where they are asked for.
    pub(crate) keys: Option<Arc<Keys>>,
    /// The namespace of the Sync, where its Secret is.
    pub(crate) namespace: Box<str>,
    pub(crate) cluster: Cluster,
    /// Changes whenever somebody asks to look now.
    pub(crate) request: Option<String>,
    /// Changes with everything else that is asked for.
    pub(crate) generation: u64,
    /// A hash of the fields of the spec that decide what is rendered.
    pub(crate) render_spec: Box<str>,
    /// Why the newest spec cannot be applied: what is asked for here is the one before, narrowed.
    pub(crate) refused: Option<Trouble>,
}

impl Order {
    /// The repository and the reference.
    pub(super) fn head(&self) -> Key {
        let secret = self.wish.secret.as_deref().unwrap_or_default();
        let owner = if secret.is_empty() { "" } else { &*self.namespace };
        (format!("{}\n{owner}/{secret}", self.wish.address).into(), self.wish.reference.clone())
    }

    /// True if nothing but a look is asked for anew.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        (&self.wish, &self.approved, &self.predecessor) == (&other.wish, &other.approved, &other.predecessor)
            && (&self.credentials, &self.keys) == (&other.credentials, &other.keys)
            && self.permission.is_some() == other.permission.is_some()
            && (&self.refused, &self.moves_to) == (&other.refused, &other.moves_to)
    }
}
