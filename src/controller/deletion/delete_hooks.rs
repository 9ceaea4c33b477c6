//! Hooks that run when a Sync is deleted together with its objects.
//!
//! In: a Sync that is being deleted, and the revision that was applied last.
//! Out: its delete hooks have run, or the reason why they did not.
//!
//! If a hook before the deletion fails, nothing is deleted: a failed backup keeps the data that it
//! was to save. A completed hook is recorded before anything is deleted, so that no second run
//! saves data that is half gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::{FinishedObject, SpecHash, SyncName, SyncStatus};
use crate::clock;
use crate::cluster::{ApiError, Cluster};
use crate::controller::Context;
use crate::controller::apply::ApplyContext;
use crate::controller::apply::recreate::run_again;
use crate::controller::credentials::cloud_identity::{
    TokenClusters, chart_identity, mount_credentials, source_credentials,
};
use crate::controller::credentials::read_secret;
use crate::controller::credentials::secret_permission::{chart_login, repository_login, source_login};
use crate::controller::reconcile::decryption_keys;
use crate::controller::reconcile::mounts::{MountSource, name_mount};
use crate::controller::reconcile::prepare::prepare;
use crate::controller::reconcile::remote_bases::{RemoteBaseContext, TrackedBases};
use crate::controller::reconcile::renderer::RenderContext;
use crate::controller::reconcile::revision_gate::check_deletion;
use crate::controller::reconcile::substitution_values;
use crate::controller::reconcile_errors::source_error;
use crate::controller::spec::ValidatedSpec;
use crate::controller::spec::identity::login_owner;
use crate::controller::status::StatusRecorder;
use crate::desired::{DeletePhase, DesiredObject, DesiredSet, REDACTED};
use crate::health::{self, Health, health};
use crate::object::ObjectId;
use crate::plan::{Action, Outcome, Step, is_run_kind};
use crate::report::ReconcileError;
use crate::sanitize::sanitize;
use crate::source::Revision;

/// Pause between two checks if a hook has ended.
const LOOK: Duration = Duration::from_secs(1);

fn parting(object: &DesiredObject) -> Option<DeletePhase> {
    object.annotations.hook.and_then(|hook| hook.delete_phase)
}

/// Returns the set that was applied last, if it has delete hooks.
pub(crate) async fn find(
    context: &Context,
    cluster: &Cluster,
    name: &SyncName,
    (status, uid): (&SyncStatus, &str),
    valid_spec: &ValidatedSpec,
    by: Instant,
) -> Result<Option<Arc<DesiredSet>>, ReconcileError> {
    if status.hooks_at_deletion.is_empty() {
        return Ok(None);
    }
    let applied = status.revision.as_ref().and_then(|revision| revision.applied.as_ref());
    let Some(revision) = applied.and_then(|text| Revision::parse(text, None, &valid_spec.reference)) else {
        // It has never been applied, so no hook has anything to clean up.
        return Ok(None);
    };
    let home = &context.home_of(name, valid_spec).await?;
    let repositories = &context.sources.repositories;
    let clusters = TokenClusters { daemon: &context.cluster, asker: home };
    let credentials = match &valid_spec.secret {
        Some(secret) => {
            let data = read_secret(&context.cluster, &name.namespace, secret).await?;
            repository_login(context, home, name, valid_spec, (secret, data), &mut None).await?
        }
        None => source_credentials(repositories, clusters, name, valid_spec)?,
    };
    let owner = login_owner(valid_spec, &name.namespace);
    let repository = repositories.repository(&valid_spec.address, &owner, &credentials);
    let repository = repository.map_err(source_error)?.on_behalf_of(&name.namespace);
    let valid_spec = substitution_values::filled(home, name, valid_spec.clone()).await?;
    let valid_spec = &decryption_keys::filled(clusters, name, valid_spec).await?;
    let followed = TrackedBases::default();
    let base_context = &RemoteBaseContext::of_sync(context, name, valid_spec, &followed, valid_spec.interval);
    let login = match &valid_spec.chart_secret {
        Some(secret) => {
            let data = read_secret(&context.cluster, &name.namespace, secret).await?;
            chart_login(context, home, name, valid_spec, (secret, data), &mut None).await?
        }
        None => chart_identity(repositories, clusters, name, valid_spec)?.unwrap_or_default(),
    };
    let helm = &context.sources.helm;
    let mounts = mount_sources(context, home, name, valid_spec).await?;
    let render_context = RenderContext {
        cluster,
        helm,
        base_context,
        login: &login,
        mounts: &mounts,
        is_for_strangers: false,
    };
    let prepared = prepare(&repository, &revision, valid_spec, render_context, None, by).await?;
    let prepared = prepared.with_keys(cluster.notary().content_keys(), None);
    check_deletion(status, valid_spec, &prepared)?;
    Ok(Some(Arc::new(prepared.rendered.delete_hooks(uid))))
}

/// Returns the sources of the mounts, with the logins that the Sync may use.
async fn mount_sources(
    context: &Context,
    home: &Cluster,
    name: &SyncName,
    valid_spec: &ValidatedSpec,
) -> Result<Vec<MountSource>, ReconcileError> {
    let (repositories, mut found) = (&context.sources.repositories, Vec::new());
    for (at, mount) in valid_spec.mounts.iter().enumerate() {
        let open = async || {
            let credentials = match &mount.source.secret {
                Some(secret) => {
                    let data = read_secret(&context.cluster, &name.namespace, secret).await?;
                    let of = (name, valid_spec.service_account.as_deref());
                    let to = &mount.source.address;
                    source_login(context, home, of, to, (secret, data), &mut None).await?
                }
                None => {
                    let clusters = TokenClusters { daemon: &context.cluster, asker: home };
                    mount_credentials(repositories, clusters, name, valid_spec, &mount.source)?
                }
            };
            MountSource::open(repositories, (name, valid_spec), (at, mount), (credentials, None), None)
        };
        found.push(open().await.map_err(|error| name_mount(at, mount, error))?);
    }
    Ok(found)
}

/// Returns true if it is recorded that this hook has run for this deletion.
fn has_run(hook: &DesiredObject, ran: &[FinishedObject]) -> bool {
    let is_it = |end: &&FinishedObject| end.object == hook.id.as_str() && !end.begun && !end.failed;
    let mut hashes = ran.iter().filter(is_it).filter_map(|end| SpecHash::parse(&end.hash));
    hashes.any(|hash| hook.is_recorded_as(&hash))
}

/// Runs the hooks of one phase, wave by wave; returns false if one of them fails or takes too
/// long.
pub(crate) async fn run_delete_hooks(
    work: &ApplyContext<'_>,
    at: DeletePhase,
    resource_recorder: &StatusRecorder,
    by: Instant,
) -> Result<bool, ApiError> {
    let ran = resource_recorder.finished();
    // Deleting a hook that has run must not start another run.
    let is_open = |hook: &&DesiredObject| parting(hook) == Some(at) && !has_run(hook, &ran);
    let mut hooks: Vec<&DesiredObject> = work.desired.objects().iter().filter(is_open).collect();
    hooks.sort_by_key(|object| object.annotations.phase_wave());
    for wave in hooks.chunk_by(|a, b| a.annotations.phase_wave() == b.annotations.phase_wave()) {
        for hook in wave {
            if let Outcome::Failed(why) = begin(work, hook).await? {
                let message = sanitize(&why.message);
                tracing::warn!(sync = %work.owner, object = %hook.id, reason = why.reason.as_str(), "a delete hook could not be started: {message}");
                return Ok(false);
            }
        }
        for hook in wave {
            if !ends_well(work, &hook.id, by).await? {
                return Ok(false);
            }
            let hash = hook.recorded_hash().map(|hash| hash.to_string()).unwrap_or_default();
            let object = hook.id.as_str().to_owned();
            let end = FinishedObject { object, hash, begun: false, failed: false };
            if !resource_recorder.has_run(end, by.saturating_duration_since(clock::now())).await {
                tracing::warn!(sync = %work.owner, object = %hook.id, "the completion of a delete hook could not be recorded in the status");
            }
        }
    }
    Ok(true)
}

/// Starts a hook, unless it was started for this deletion already. A run for anything else is
/// replaced.
async fn begin(work: &ApplyContext<'_>, hook: &DesiredObject) -> Result<Outcome, ApiError> {
    let live = work.cluster.observe_object(&hook.id, work.owner).await?;
    let recorded = live.as_ref().and_then(|live| live.recorded_hash);
    match live {
        Some(_) if recorded.is_some_and(|recorded| hook.is_recorded_as(&recorded)) => Ok(Outcome::Kept),
        Some(_) if is_run_kind(&hook.id) => run_again(work, &hook.id).await,
        Some(_) | None => {
            let step = Step { id: hook.id.clone(), action: Action::Create };
            Ok(work.step(&step).await.unwrap_or(Outcome::Kept))
        }
    }
}

async fn ends_well(work: &ApplyContext<'_>, id: &ObjectId, by: Instant) -> Result<bool, ApiError> {
    loop {
        let Some(live) = work.cluster.objects().read_whole(id, None).await? else {
            tracing::warn!(sync = %work.owner, object = %id, "a delete hook was deleted before it completed");
            return Ok(false);
        };
        let found = health(&id.group_kind(), &live.body, &health::Context::default());
        match &found {
            Health::Healthy => return Ok(true),
            Health::Degraded { why } => {
                let why = if work.desired.is_tainted(id) { REDACTED } else { why };
                tracing::warn!(sync = %work.owner, object = %id, "a delete hook failed: {}", sanitize(why));
                return Ok(false);
            }
            _ if clock::now() >= by => {
                tracing::warn!(sync = %work.owner, object = %id, "a delete hook did not complete in time");
                return Ok(false);
            }
            // A suspended Job waits for its turn and has not run yet.
            Health::Suspended | Health::Progressing { .. } | Health::Unknown { .. } => {
                tokio::time::sleep(LOOK).await;
            }
        }
    }
}
