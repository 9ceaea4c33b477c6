//! Renders a Sync for a command that does not serve it.
//!
//! In: a Sync as the API server has it. Out: its current desired set, by the same steps as in the
//! daemon. Nothing is written.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use super::bases::{Followed, Ground};
use super::heads::Heads;
use super::prepare::{self, of_failure, of_source, prepare};
use super::rendering::Means;
use super::rollout::RolledOut;
use super::values;
use super::wish::{self, Wish, wish_within};
use crate::api::{SpecHash, SyncName, SyncStatus};
use crate::clock;
use crate::cluster::{Cluster, SecretData};
use crate::desired::{DesiredSet, Match};
use crate::helm::Helm;
use crate::metrics::Metrics;
use crate::object::ObjectId;
use crate::plan::{Policy, Rollout};
use crate::report::Trouble;
use crate::source::{
    Address, AllowList, Credentials, Error, Keys, NameError, ObjectHash, Reference, Repositories, Repository,
    Revision,
};

/// A rendered Sync.
#[derive(Debug)]
pub struct Inspected {
    /// The valid spec.
    pub wish: Wish,
    /// The newest revision.
    pub revision: Revision,
    /// The desired set of that revision.
    pub desired: Arc<DesiredSet>,
}

impl Inspected {
    /// Returns the policy that the daemon would use, as far as the status has its inputs: completed
    /// hooks, and the rollout.
    pub fn policy(&self, approved: Option<String>, status: &SyncStatus) -> Policy {
        let mut rolled_out = RolledOut::default();
        rolled_out.restore(status);
        let (revision, digest) = (self.revision.to_string(), self.desired.digest());
        let rollout = rolled_out.begin(&digest, &revision).map(|is_later| Rollout {
            is_later,
            only_hooks: !self.wish.health.wait,
            ..Rollout::default()
        });
        let ended = status.finished.iter().filter(|end| !end.begun);
        let ended = ended.filter_map(|end| Some((ObjectId::parse(&end.object)?, end)));
        let (mut finished, mut ended_well) = (BTreeMap::new(), BTreeMap::new());
        for (id, end) in ended {
            ended_well.insert(id.clone(), !end.failed);
            finished.extend(SpecHash::parse(&end.hash).map(|hash| (id, hash)));
        }
        let is_it = |known: &SpecHash| digest.matches(known) != Match::Other;
        let was_applied = status.revision.as_ref().is_some_and(|it| it.is_applied(&revision, is_it));
        Policy { rollout, finished, ended_well, was_applied, ..self.wish.policy(approved) }
    }
}

/// Renders a Sync at its own revision, or at `at`: a commit, a branch or a tag.
///
/// # Errors
///
/// Returns the first error of the spec, a Secret, the repository, a signature or the render.
pub async fn inspect(
    cluster: &Cluster,
    (repositories, allowed, helm): (&Repositories, &AllowList, &Helm),
    metrics: &Metrics,
    name: &SyncName,
    sync: Value,
    at: Option<&str>,
) -> Result<Inspected, Trouble> {
    let refuse = |refusal: wish::Refusal| Trouble {
        reason: "SpecInvalid",
        message: refusal.to_string(),
        problems: Vec::new(),
        lasting: true,
    };
    let spec = wish::read(sync).map_err(refuse)?.spec;
    // The daemon of a local sandbox reads repositories on the local disk.
    let is_local = || Address::any(&spec.source.git.url).is_ok_and(|address| address.local_path().is_some());
    let disk = (is_local() && cluster.is_sandbox().await).then_some(Path::new("/"));
    let wish = wish_within(name, &spec, disk).map_err(refuse)?;
    cluster.know().await.map_err(|failure| of_failure(&failure))?;
    let wish = values::filled(cluster, name, wish).await?;
    let credentials = match &wish.secret {
        Some(secret) => credentials(cluster, &name.namespace, secret).await?,
        None => Credentials::default(),
    };
    let repository = repositories.repository(&wish.address, "", &credentials).map_err(of_source)?;
    let by = clock::now() + wish.timeout;
    let revision = match at {
        None => repository.look(&wish.reference, by).await.map_err(of_source)?,
        Some(name) => named(&repository, name, by).await?,
    };
    if let Some((signed, secret)) = &wish.verify {
        let keys = keys(secret, self::secret(cluster, &name.namespace, secret).await?)?;
        repository.verify(&revision, *signed, &keys, by).await.map_err(of_source)?;
    }
    let (heads, followed) = (Heads::default(), Followed::default());
    let (pinned, fresh) = (wish.verify.is_some(), wish.timeout);
    let ground = &Ground {
        repositories,
        heads: &heads,
        allowed,
        followed: &followed,
        asker: "",
        sync: Box::default(),
        metrics,
        pinned,
        fresh,
    };
    let means = Means { cluster, helm, ground };
    let prepared = prepare(&repository, &revision, &wish, means, None, by).await?;
    Ok(Inspected { wish, revision, desired: prepared.rendered })
}

/// Resolves a commit, a branch or a tag.
async fn named(repository: &Repository, name: &str, by: Instant) -> Result<Revision, Trouble> {
    if let Some(commit) = ObjectHash::parse(name) {
        return repository.look(&Reference::Commit(commit), by).await.map_err(of_source);
    }
    let bad = |error: NameError| Trouble {
        reason: "NoReference",
        message: error.to_string(),
        problems: Vec::new(),
        lasting: true,
    };
    let branch = repository.look(&Reference::branch(name).map_err(bad)?, by).await;
    match branch {
        Err(Error::NoReference { .. }) => {
            // If there is no such tag either, the missing branch is reported.
            let tag = repository.look(&Reference::tag(name).map_err(bad)?, by).await;
            tag.or(branch).map_err(of_source)
        }
        found => found.map_err(of_source),
    }
}

/// Reads the credentials of a repository from a Secret.
async fn credentials(cluster: &Cluster, namespace: &str, name: &str) -> Result<Credentials, Trouble> {
    login(secret(cluster, namespace, name).await?).map(|(credentials, _)| credentials)
}

/// Returns the credentials in a Secret, with the hosts that the Secret names.
pub(super) fn login(secret: SecretData) -> Result<(Credentials, Option<Box<str>>), Trouble> {
    let read = Credentials::from_secret(secret.data).map_err(|error| prepare::of_source(error.into()))?;
    Ok((read, secret.hosts))
}

/// Returns the trusted signing keys in the Secret of this name.
pub(super) fn keys(name: &str, secret: SecretData) -> Result<Arc<Keys>, Trouble> {
    Keys::from_secret(secret.data).map(Arc::new).map_err(|error| Trouble {
        reason: "KeysInvalid",
        message: format!("the Secret {name} that spec.source.git.verify names: {error}"),
        problems: Vec::new(),
        lasting: true,
    })
}

/// Error for a Secret with the keys of the daemon, by which objects are proven: no Sync may read
/// them.
pub(super) fn is_of_the_daemon(name: &str) -> Trouble {
    Trouble {
        reason: "SpecInvalid",
        message: format!(
            "the Secret {name} holds the keys of the daemon, which no Sync may name; name another Secret"
        ),
        problems: Vec::new(),
        lasting: true,
    }
}

/// Reads a Secret that a Sync names.
pub(super) async fn secret(cluster: &Cluster, namespace: &str, name: &str) -> Result<SecretData, Trouble> {
    if cluster.notary().is_place(namespace, name) {
        return Err(is_of_the_daemon(name));
    }
    let found = cluster.secret(namespace, name).await.map_err(|failure| of_failure(&failure))?;
    if found.as_ref().is_some_and(|found| found.holds_keys) {
        return Err(is_of_the_daemon(name));
    }
    found.ok_or_else(|| Trouble {
        reason: "SecretMissing",
        message: format!("there is no Secret {name} in the namespace {namespace}"),
        problems: Vec::new(),
        lasting: false,
    })
}
