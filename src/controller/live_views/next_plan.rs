//! Makes the plan of the newest revision of a Sync that does not take it up: a suspended Sync, or
//! one that a person holds at a revision.
//!
//! In: the Sync, as its worker was asked to serve it. Out: a plan that nobody executes. The
//! revision is polled, verified and rendered as the worker would do it, and compared with what the
//! watches know. Nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::super::Context;
use super::super::reconcile::inventory_scope::watches_of_scope;
use super::super::reconcile::mounts::MountSource;
use super::super::reconcile::prepare::{PreparedRevision, prepare};
use super::super::reconcile::remote_bases::{RemoteBaseContext, TrackedBases};
use super::super::reconcile::renderer::RenderContext;
use super::super::reconcile::request::ReconcileRequest;
use super::super::reconcile_errors::{cluster_error, of_chart, source_error};
use crate::api::SyncName;
use crate::clock;
use crate::cluster::WatchRequirements;
use crate::plan::{Policy, plan};
use crate::report::next_plan::NextPlan;
use crate::report::{ErrorCause, ReconcileError};
use crate::sanitize::sanitize;
use crate::source::{MountedRevision, Revision};

/// Longest time for one plan.
const MAKE_TIMEOUT: Duration = Duration::from_secs(60);
/// Holder of the memory of the objects.
const HOLDER: &str = "plans for viewers";

/// Syncs that take up no new revision, as their workers were asked to serve them.
#[derive(Default)]
pub(crate) struct HeldBackSyncs(Mutex<BTreeMap<SyncName, ReconcileRequest>>);

impl HeldBackSyncs {
    /// Notes a Sync if it is suspended or held, and forgets it otherwise.
    pub(crate) fn note(&self, sync: &SyncName, request: &ReconcileRequest) {
        match request.valid_spec.suspend || request.hold.is_some() {
            true => self.set(sync, Some(request.clone())),
            false => self.forget(sync),
        }
    }

    /// Forgets a Sync.
    pub(crate) fn forget(&self, sync: &SyncName) {
        self.set(sync, None);
    }

    fn set(&self, sync: &SyncName, request: Option<ReconcileRequest>) {
        let last = match request {
            Some(request) => self.lock().insert(sync.clone(), request),
            None => self.lock().remove(sync),
        };
        // Outside of the lock: it may hold the last handle to a repository.
        drop(last);
    }

    /// Returns the request of a Sync that is suspended or held.
    pub(super) fn get(&self, sync: &SyncName) -> Option<ReconcileRequest> {
        self.lock().get(sync).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SyncName, ReconcileRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the plan, or returns the reason why there is none.
pub(super) async fn make_plan(
    context: &Context,
    sync: &SyncName,
    order: &ReconcileRequest,
) -> Result<NextPlan, String> {
    in_time(plan_newest(context, sync, order)).await
}

/// Returns the plan, unless it takes too long.
async fn in_time(plan: impl Future<Output = Result<NextPlan, ReconcileError>>) -> Result<NextPlan, String> {
    let made = tokio::time::timeout(MAKE_TIMEOUT, plan).await;
    let made = made.unwrap_or_else(|_| Err(too_late()));
    made.map_err(|error| sanitize(&error.message))
}

fn too_late() -> ReconcileError {
    ReconcileError {
        cause: ErrorCause::Progressing,
        message: format!("it took longer than {} s", MAKE_TIMEOUT.as_secs()),
        problems: Vec::new(),
        permanent: false,
    }
}

async fn plan_newest(
    context: &Context,
    sync: &SyncName,
    order: &ReconcileRequest,
) -> Result<NextPlan, ReconcileError> {
    let by = clock::now() + order.valid_spec.timeout.min(MAKE_TIMEOUT);
    let ensured = order.cluster.discovery().ensure().await;
    ensured.map_err(|failure| cluster_error(&failure))?;
    let revision = newest_revision(context, sync, order, by).await?;
    let prepared = render(context, sync, order, &revision, by).await?;
    let need = needed_watches(context, sync, &prepared);
    let left = by.saturating_duration_since(clock::now());
    let blind = order.cluster.ensure_watches(sync, &need, left).await;
    let blind: Vec<_> = blind.into_iter().map(|(kind, _)| kind).collect();
    let policy = Policy { suspended: false, rollout: None, ..order.valid_spec.policy(None) };
    let plan = order.cluster.read_observed(sync, |observed| plan(&prepared.desired, observed, &policy));
    let now = Timestamp::from_second(i64::try_from(clock::wall().as_secs()).unwrap_or_default());
    Ok(NextPlan::new(revision.to_string(), &plan, &blind, now.unwrap_or_default()))
}

/// Returns the newest revision with chart and mounts, all verified as the spec asks for.
async fn newest_revision(
    context: &Context,
    sync: &SyncName,
    order: &ReconcileRequest,
    by: Instant,
) -> Result<Revision, ReconcileError> {
    let (spec, repositories) = (&order.valid_spec, &context.sources.repositories);
    if let Some(permission) = &order.permission {
        permission.holds(&order.home, sync).await?;
    }
    let revision = order.repository.resolve(&spec.reference, by).await.map_err(source_error)?;
    if let (Some(verification), Some(keys)) = (&spec.verify, &order.keys) {
        let verified = order.repository.verify(&revision, verification.signed, keys, by).await;
        verified.map_err(source_error)?;
    }
    let mut mounts = Vec::new();
    for source in order.mounts.iter() {
        let mounted = mounted_revision(sync, order, source, by).await;
        mounts.push(mounted.map_err(|error| source.named(error))?);
    }
    let revision = Revision { mounts, ..revision };
    let Some(chart) = spec.chart.as_ref().filter(|chart| chart.pinned().is_none()) else {
        return Ok(revision);
    };
    if let Some(permission) = &order.chart_permission {
        permission.holds(&order.home, sync).await?;
    }
    let login = &order.chart_login;
    let asked = (&*login.owner, &*sync.namespace);
    let found =
        repositories.chart_version(chart, asked, &login.credentials, (None, Duration::ZERO), by).await;
    let found = found.map_err(|error| of_chart(&error))?;
    if let Some(keys) = &order.chart_keys {
        let verified = repositories.verify_chart((chart, &found), asked, &login.credentials, keys, by).await;
        verified.map_err(|error| of_chart(&error))?;
    }
    Ok(Revision { chart: Some(found), ..revision })
}

async fn mounted_revision(
    sync: &SyncName,
    order: &ReconcileRequest,
    source: &MountSource,
    by: Instant,
) -> Result<MountedRevision, ReconcileError> {
    if let Some(permission) = &source.permission {
        permission.holds(&order.home, sync).await?;
    }
    let wanted = &source.mount.source;
    let found = source.repository.resolve(&wanted.reference, by).await.map_err(source_error)?;
    if let (Some(verification), Some(keys)) = (&wanted.verify, &source.keys) {
        let verified = source.repository.verify(&found, verification.signed, keys, by).await;
        verified.map_err(source_error)?;
    }
    Ok(MountedRevision::new(&source.mount.path, &found))
}

async fn render(
    context: &Context,
    sync: &SyncName,
    order: &ReconcileRequest,
    revision: &Revision,
    by: Instant,
) -> Result<PreparedRevision, ReconcileError> {
    let (spec, followed) = (&*order.valid_spec, TrackedBases::default());
    let base_context = RemoteBaseContext::of_sync(context, sync, spec, &followed, spec.interval);
    let base_context = &RemoteBaseContext { sync: HOLDER.into(), ..base_context };
    let render_context = RenderContext {
        cluster: &order.cluster,
        helm: &context.sources.helm,
        base_context,
        login: &order.chart_login,
        mounts: &order.mounts,
        is_for_strangers: false,
    };
    let prepared = prepare(&order.repository, revision, spec, render_context, None, by).await?;
    Ok(prepared.with_keys(order.cluster.notary().content_keys(), None))
}

/// Returns the watches for the objects of the revision, and for all that the Sync may own: those of
/// its worker stay.
fn needed_watches(context: &Context, sync: &SyncName, prepared: &PreparedRevision) -> WatchRequirements {
    let board = context.reporting.board.watch().borrow().clone();
    let scope = board.cards.get(sync).and_then(|card| card.status.scope.clone()).unwrap_or_default();
    let mut need = watches_of_scope(&scope);
    let held = context.peers.claimed_set(sync);
    let held = held.iter().flat_map(|set| set.objects());
    let ids: BTreeSet<_> = held.chain(prepared.desired.objects()).map(|object| &object.id).collect();
    for id in ids {
        need.kinds.insert(id.group_kind());
        need.namespaces.extend(id.namespace().map(Box::<str>::from));
    }
    need
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_plan_ends_after_a_minute() {
        let begun = clock::now();
        let late = in_time(std::future::pending()).await;
        assert_eq!(late.unwrap_err(), "it took longer than 60 s");
        assert_eq!(clock::since(begun).as_secs(), 60);
        let slow = async {
            tokio::time::sleep(Duration::from_secs(59)).await;
            Err(ReconcileError { message: "no\u{1b}[1m file".to_owned(), ..too_late() })
        };
        let refused = in_time(slow).await.unwrap_err();
        assert!(refused.starts_with("no") && !refused.contains('\u{1b}'), "{refused:?}");
    }
}
