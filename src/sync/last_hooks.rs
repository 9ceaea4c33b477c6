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

use super::Context;
use super::bases::Followed;
use super::carry_out::Work;
use super::desk::Desk;
use super::inspect;
use super::prepare::{of_source, prepare};
use super::values;
use super::wish::Wish;
use crate::api::{Finished, SpecHash, SyncName, SyncStatus};
use crate::clock;
use crate::cluster::{Cluster, Failure};
use crate::desired::{DesiredObject, DesiredSet, Parting, UNTOLD};
use crate::harmless::harmless;
use crate::health::{self, Health, health};
use crate::object::ObjectId;
use crate::plan::{Action, Outcome, Step, may_run};
use crate::report::Trouble;
use crate::source::{Credentials, Revision};

/// Pause between two checks if a hook has ended.
const LOOK: Duration = Duration::from_secs(1);

/// Returns the delete hooks of a set, as the status names them.
pub(super) fn named(desired: &DesiredSet) -> Vec<String> {
    let hooks = desired.objects().iter().filter(|object| parting(object).is_some());
    hooks.take(MAX_NAMED).map(|object| object.id.to_string()).collect()
}

/// Most hooks that a status names; only their existence matters.
const MAX_NAMED: usize = 10;

fn parting(object: &DesiredObject) -> Option<Parting> {
    object.switches.hook.and_then(|hook| hook.at_parting)
}

/// Returns the set that was applied last, if it has delete hooks.
pub(super) async fn find(
    context: &Context,
    cluster: &Cluster,
    name: &SyncName,
    (status, uid): (&SyncStatus, &str),
    wish: &Wish,
    by: Instant,
) -> Result<Option<Arc<DesiredSet>>, Trouble> {
    if status.hooks_at_deletion.is_empty() {
        return Ok(None);
    }
    let applied = status.revision.as_ref().and_then(|revision| revision.applied.as_ref());
    let Some(revision) = applied.and_then(|text| Revision::read(text, None, &wish.reference)) else {
        // It has never been applied, so no hook has anything to clean up.
        return Ok(None);
    };
    let credentials = match &wish.secret {
        Some(secret) => {
            let data = inspect::secret(&context.cluster, &name.namespace, secret).await?;
            context.login(cluster, name, wish, (secret, data), &mut None).await?
        }
        None => Credentials::default(),
    };
    let owner = wish.secret.as_ref().map(|secret| format!("{}/{secret}", name.namespace)).unwrap_or_default();
    let repository = context.repositories.repository(&wish.address, &owner, &credentials);
    let repository = repository.map_err(of_source)?.asked_by(&name.namespace);
    let wish = &values::filled(cluster, name, wish.clone()).await?;
    let followed = Followed::default();
    let ground = &context.ground(name, wish, &followed, wish.interval);
    let means = context.means(cluster, ground);
    let prepared = prepare(&repository, &revision, wish, means, None, by).await?;
    let prepared = prepared.with_keys(cluster.notary().content_keys(), None);
    Ok(Some(Arc::new(prepared.rendered.at_parting(uid))))
}

/// Returns true if it is recorded that this hook has run for this deletion.
fn has_run(hook: &DesiredObject, ran: &[Finished]) -> bool {
    let is_it = |end: &&Finished| end.object == hook.id.as_str() && !end.begun && !end.failed;
    let mut hashes = ran.iter().filter(is_it).filter_map(|end| SpecHash::parse(&end.hash));
    hashes.any(|hash| hook.is_recorded_as(&hash))
}

impl Work<'_> {
    /// Runs the hooks of one phase, wave by wave; returns false if one of them fails or takes too
    /// long.
    pub(super) async fn last_hooks(&self, at: Parting, desk: &Desk, by: Instant) -> Result<bool, Failure> {
        let ran = desk.finished();
        // Deleting a hook that has run must not start another run.
        let is_open = |hook: &&DesiredObject| parting(hook) == Some(at) && !has_run(hook, &ran);
        let mut hooks: Vec<&DesiredObject> = self.desired.objects().iter().filter(is_open).collect();
        hooks.sort_by_key(|object| object.switches.turn());
        for wave in hooks.chunk_by(|a, b| a.switches.turn() == b.switches.turn()) {
            for hook in wave {
                if let Outcome::Failed(why) = self.begin(hook).await? {
                    let told = harmless(&why.message);
                    tracing::warn!(sync = %self.owner, object = %hook.id, reason = why.reason, "a hook did not begin: {told}");
                    return Ok(false);
                }
            }
            for hook in wave {
                if !self.ends_well(&hook.id, by).await? {
                    return Ok(false);
                }
                let hash = hook.recorded().map(|hash| hash.to_string()).unwrap_or_default();
                let object = hook.id.as_str().to_owned();
                let end = Finished { object, hash, begun: false, failed: false };
                if !desk.has_run(end, by.saturating_duration_since(clock::now())).await {
                    tracing::warn!(sync = %self.owner, object = %hook.id, "that it has run could not be written down");
                }
            }
        }
        Ok(true)
    }

    /// Starts a hook, unless it was started for this deletion already. A run for anything else is
    /// replaced.
    async fn begin(&self, hook: &DesiredObject) -> Result<Outcome, Failure> {
        let live = self.cluster.look(&hook.id, self.owner).await?;
        let recorded = live.as_ref().and_then(|live| live.recorded);
        match live {
            Some(_) if recorded.is_some_and(|recorded| hook.is_recorded_as(&recorded)) => Ok(Outcome::Kept),
            Some(_) if may_run(&hook.id) => self.run_again(&hook.id).await,
            Some(_) | None => {
                let step = Step { id: hook.id.clone(), action: Action::Create };
                Ok(self.step(&step).await.unwrap_or(Outcome::Kept))
            }
        }
    }

    async fn ends_well(&self, id: &ObjectId, by: Instant) -> Result<bool, Failure> {
        loop {
            let Some(live) = self.cluster.whole(id, None).await? else {
                tracing::warn!(sync = %self.owner, object = %id, "a hook was deleted before it had ended");
                return Ok(false);
            };
            let found = health(&id.group_kind(), &live.body, &health::Context::default());
            match &found {
                Health::Healthy => return Ok(true),
                Health::Degraded { why } => {
                    let why = if self.desired.is_tainted(id) { UNTOLD } else { why };
                    tracing::warn!(sync = %self.owner, object = %id, "a hook has failed: {}", harmless(why));
                    return Ok(false);
                }
                _ if clock::now() >= by => {
                    tracing::warn!(sync = %self.owner, object = %id, "a hook has not ended in time");
                    return Ok(false);
                }
                // A suspended Job waits for its turn and has not run yet.
                Health::Suspended | Health::Progressing { .. } | Health::Unknown { .. } => {
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
    }
}
