//! Renders a Sync for a command that does not serve it.
//!
//! In: a Sync as the API server has it. Out: its current desired set, by the same steps as in the
//! daemon. Nothing is written.

pub mod pull_request;
pub mod sync_set;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::credentials::cloud_identity::{
    TokenClusters, chart_identity, mount_credentials, source_credentials,
};
use super::credentials::{ChartLogin, read_credentials, read_secret};
use super::peers::latest_revisions::LatestRevisions;
use super::reconcile::decryption_keys;
use super::reconcile::mounts::{MountSource, name_mount};
use super::reconcile::prepare::prepare;
use super::reconcile::remote_bases::{RemoteBaseContext, TrackedBases};
use super::reconcile::renderer::RenderContext;
use super::reconcile::rollout::RolloutProgress;
use super::reconcile::substitution_values;
use super::reconcile::trusted_signers;
use super::reconcile_errors::{cluster_error, of_chart, source_error};
use super::spec;
use super::spec::{ValidatedSpec, Verification, validate_within};
use crate::api::{SpecHash, SyncName, SyncStatus};
use crate::clock;
use crate::cluster::Cluster;
use crate::desired::{DesiredSet, HashMatch};
use crate::helm::Helm;
use crate::metrics::Metrics;
use crate::object::ObjectId;
use crate::plan::{Policy, Rollout};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{
    Address, AllowList, ArtifactReference, Digest, Error, MountedRevision, NameError, ObjectHash, Reference,
    Repositories, Repository, Revision, TrustedKeys,
};

/// A rendered Sync.
#[derive(Debug)]
pub struct Inspected {
    /// The valid spec.
    pub valid_spec: ValidatedSpec,
    /// The newest revision.
    pub revision: Revision,
    /// The desired set of that revision.
    pub desired: Arc<DesiredSet>,
}

impl Inspected {
    /// Returns the policy that the daemon would use, as far as the status has its inputs: completed
    /// hooks, and the rollout.
    pub fn policy(&self, approved: Option<String>, status: &SyncStatus) -> Policy {
        let mut rolled_out = RolloutProgress::default();
        rolled_out.restore(status);
        let (revision, digest) = (self.revision.to_string(), self.desired.digest());
        let rollout = rolled_out.begin(&digest, &revision).map(|is_later| Rollout {
            is_upgrade: is_later || self.valid_spec.options.helm.is_upgrade,
            only_hooks: !self.valid_spec.health.wait,
            ..Rollout::default()
        });
        let ended = status.finished.iter().filter(|end| !end.begun);
        let ended = ended.filter_map(|end| Some((ObjectId::parse(&end.object)?, end)));
        let (mut finished, mut ended_well) = (BTreeMap::new(), BTreeMap::new());
        for (id, end) in ended {
            ended_well.insert(id.clone(), !end.failed);
            finished.extend(SpecHash::parse(&end.hash).map(|hash| (id, hash)));
        }
        let is_it = |known: &SpecHash| digest.matches(known) != HashMatch::Other;
        let was_applied = status.revision.as_ref().is_some_and(|it| it.is_applied(&revision, is_it));
        Policy {
            rollout,
            completed: finished,
            succeeded: ended_well,
            was_applied,
            ..self.valid_spec.policy(approved)
        }
    }
}

/// Renders a Sync at its own revision, or at `at`: a commit, a branch or a tag.
///
/// # Errors
///
/// Returns the first error of the spec, a Secret, the repository, a signature or the render.
pub async fn render_sync(
    cluster: &Cluster,
    (repositories, allowed, helm): (&Repositories, &AllowList, &Helm),
    metrics: &Metrics,
    name: &SyncName,
    sync: Value,
    at: Option<&str>,
) -> Result<Inspected, ReconcileError> {
    let refuse = |refusal: spec::SpecError| ReconcileError {
        cause: ErrorCause::SpecInvalid,
        message: refusal.to_string(),
        problems: Vec::new(),
        permanent: true,
    };
    let spec = spec::read(sync.clone()).map_err(refuse)?.spec;
    spec::check_fields(&sync, &spec).map_err(refuse)?;
    // The daemon of a local sandbox reads repositories on the local disk.
    let url = spec.source.git.as_ref().map(|git| git.url.as_str()).unwrap_or_default();
    let is_local = || Address::local_or_remote(url).is_ok_and(|address| address.local_path().is_some());
    let disk = (is_local() && cluster.discovery().is_sandbox().await).then_some(Path::new("/"));
    let valid_spec = validate_within(name, &spec, disk).map_err(refuse)?;
    check_home(&valid_spec).map_err(refuse)?;
    cluster.discovery().ensure().await.map_err(|failure| cluster_error(&failure))?;
    let valid_spec = substitution_values::filled(cluster, name, valid_spec).await?;
    let clusters = TokenClusters { daemon: cluster, asker: cluster };
    let valid_spec = decryption_keys::filled(clusters, name, valid_spec).await?;
    let credentials = match &valid_spec.secret {
        Some(secret) => read_credentials(cluster, &name.namespace, secret, &valid_spec.address).await?,
        None => source_credentials(repositories, clusters, name, &valid_spec)?,
    };
    let repository = repositories.repository(&valid_spec.address, "", &credentials).map_err(source_error)?;
    let by = clock::now() + valid_spec.timeout;
    let revision = match at {
        None => repository.resolve(&valid_spec.reference, by).await.map_err(source_error)?,
        Some(name) => named(&repository, name, valid_spec.address.registry().is_some(), by).await?,
    };
    if let Some(verification) = &valid_spec.verify {
        let keys = signers(cluster, name, verification).await?;
        repository.verify(&revision, verification.signed, &keys, by).await.map_err(source_error)?;
    }
    let (heads, followed) = (LatestRevisions::default(), TrackedBases::default());
    let (pinned, fresh) = (valid_spec.verify.is_some(), valid_spec.timeout);
    let base_context = &RemoteBaseContext {
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
    let login = match (&valid_spec.chart_secret, &valid_spec.chart) {
        (Some(secret), Some(chart)) => {
            let data = read_secret(cluster, &name.namespace, secret).await?;
            ChartLogin::from_secret(name, secret, data, chart)?
        }
        (Some(_) | None, _) => chart_identity(repositories, clusters, name, &valid_spec)?.unwrap_or_default(),
    };
    let revision = match valid_spec.chart.as_ref().filter(|chart| chart.pinned().is_none()) {
        Some(chart) => {
            let (asked, known) = ((&*login.owner, ""), (None, Duration::ZERO));
            let found = repositories.chart_version(chart, asked, &login.credentials, known, by).await;
            let found = found.map_err(|error| of_chart(&error))?;
            if let Some(verification) = &valid_spec.chart_verify {
                let keys = signers(cluster, name, verification).await?;
                let verified =
                    repositories.verify_chart((chart, &found), asked, &login.credentials, &keys, by).await;
                verified.map_err(|error| of_chart(&error))?;
            }
            Revision { chart: Some(found), ..revision }
        }
        None => revision,
    };
    let mounts = mount_sources((cluster, repositories), name, &valid_spec, by).await?;
    let revision = Revision { mounts: mounts.iter().map(|(_, taken)| taken.clone()).collect(), ..revision };
    let mounts: Vec<MountSource> = mounts.into_iter().map(|(source, _)| source).collect();
    let render_context = RenderContext {
        cluster,
        helm,
        base_context,
        login: &login,
        mounts: &mounts,
        is_for_strangers: false,
    };
    let prepared = prepare(&repository, &revision, &valid_spec, render_context, None, by).await?;
    Ok(Inspected { valid_spec, revision, desired: prepared.rendered })
}

/// Refuses a Sync with objects in another cluster: a command cannot compare with that cluster.
fn check_home(valid_spec: &ValidatedSpec) -> Result<(), spec::SpecError> {
    let message = "a command cannot compare with another cluster; the status of the Sync says what its daemon does there";
    match &valid_spec.cluster {
        None => Ok(()),
        Some(_) => Err(spec::SpecError { field: "spec.cluster".into(), message: message.into() }),
    }
}

/// Returns the sources of the mounts with their newest revisions, whose signatures are verified.
async fn mount_sources(
    (cluster, repositories): (&Cluster, &Repositories),
    name: &SyncName,
    valid_spec: &ValidatedSpec,
    by: Instant,
) -> Result<Vec<(MountSource, MountedRevision)>, ReconcileError> {
    let mut found = Vec::new();
    for (at, mount) in valid_spec.mounts.iter().enumerate() {
        let read = async || {
            let wanted = &mount.source;
            let credentials = match &wanted.secret {
                Some(secret) => read_credentials(cluster, &name.namespace, secret, &wanted.address).await?,
                None => {
                    let clusters = TokenClusters { daemon: cluster, asker: cluster };
                    mount_credentials(repositories, clusters, name, valid_spec, wanted)?
                }
            };
            let keys = match &wanted.verify {
                Some(verification) => Some(signers(cluster, name, verification).await?),
                None => None,
            };
            let source =
                MountSource::open(repositories, (name, valid_spec), (at, mount), (credentials, None), keys)?;
            let revision = source.repository.resolve(&wanted.reference, by).await.map_err(source_error)?;
            if let (Some(verification), Some(keys)) = (&wanted.verify, &source.keys) {
                source
                    .repository
                    .verify(&revision, verification.signed, keys, by)
                    .await
                    .map_err(source_error)?;
            }
            Ok((source, MountedRevision::new(&mount.path, &revision)))
        };
        found.push(read().await.map_err(|error| name_mount(at, mount, error))?);
    }
    Ok(found)
}

/// Resolves a commit, a branch or a tag; of an artifact, a digest or a tag.
async fn named(
    repository: &Repository,
    name: &str,
    is_artifact: bool,
    by: Instant,
) -> Result<Revision, ReconcileError> {
    let bad = |error: NameError| ReconcileError {
        cause: ErrorCause::NoReference,
        message: error.to_string(),
        problems: Vec::new(),
        permanent: true,
    };
    if is_artifact {
        // A revision as the status shows it has the digest behind its tag.
        let digest = name.rsplit_once('@').map_or(name, |(_, digest)| digest);
        let reference = match digest.strip_prefix("sha256:").and_then(Digest::parse) {
            Some(digest) => ArtifactReference::Digest(digest),
            None => ArtifactReference::tag(name).map_err(bad)?,
        };
        return repository.resolve(&Reference::Artifact(reference), by).await.map_err(source_error);
    }
    if let Some(commit) = ObjectHash::parse(name) {
        return repository.resolve(&Reference::Commit(commit), by).await.map_err(source_error);
    }
    let branch = repository.resolve(&Reference::branch(name).map_err(bad)?, by).await;
    match branch {
        Err(Error::NoReference { .. }) => {
            // If there is no such tag either, the missing branch is reported.
            let tag = repository.resolve(&Reference::tag(name).map_err(bad)?, by).await;
            tag.or(branch).map_err(source_error)
        }
        found => found.map_err(source_error),
    }
}

/// Reads the keys or the trust root of those who may sign.
async fn signers(
    cluster: &Cluster,
    name: &SyncName,
    verification: &Verification,
) -> Result<Arc<TrustedKeys>, ReconcileError> {
    match verification.secret() {
        Some(named) => {
            let found = read_secret(cluster, &name.namespace, named).await?;
            trusted_signers::of_secret(verification, &found)
        }
        None => trusted_signers::config_map(cluster, name, verification).await?.keys,
    }
}
