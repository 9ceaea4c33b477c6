//! State of a Sync between reconciles. It is only a cache: losing it costs requests, nothing else.

pub(crate) mod compare_failures;
pub(crate) mod contention;
pub(crate) mod field_conflicts;
pub(crate) mod health_monitor;
pub(crate) mod hook_completion;
pub(crate) mod noisy_objects;
pub(crate) mod pending_namespaces;
pub(crate) mod prune_guards;
mod rejected_manifests;
mod retry_state;
pub(crate) mod stuck_deletions;
pub(crate) mod verification_times;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::peers::claims::ClaimWaits;
use super::reconcile::autoscalers::AutoscaledReplicas;
use super::reconcile::awaited_resources::AwaitedResources;
use super::reconcile::missing_permissions::MissingPermissions;
use super::reconcile::policy_inputs::CompletedObjects;
use super::reconcile::prepare::PreparedRevision;
use super::reconcile::refused_commit::RefusedCommit;
use super::reconcile::rollout::RolloutProgress;
use super::reconcile::webhook_backends::WebhookFailures;
use super::schedule::{Backoff, RetryPolicy, Uptime};
use super::status::reconcile_result::UnhealthySnapshot;
use crate::api::SyncName;
use crate::clock;
use crate::cluster::{Cluster, CrdChanges};
use crate::desired::DesiredSet;
use crate::object::{GroupKind, ObjectId};
use crate::observed::ObservedSet;
use crate::plan::{Deferrals, DuePlan, FailedStep, Hold, Outcome, Replacement};
use crate::source::{ChartVersion, Revision, SignaturePolicy, TrustedKeys};
use compare_failures::{CompareFailures, VerifyMethod};
use contention::Contention;
use field_conflicts::FieldConflicts;
use noisy_objects::NoisyObjects;
use pending_namespaces::PendingNamespaces;
use prune_guards::PruneGuards;
pub(crate) use rejected_manifests::RejectedManifests;
pub(crate) use retry_state::RetryState;
use stuck_deletions::StuckDeletions;
use verification_times::VerificationTimes;

/// State of a Sync between reconciles.
#[derive(Debug, Default)]
pub(crate) struct SyncMemory {
    /// The held revision, rendered.
    pub(crate) prepared: Option<PreparedRevision>,
    /// Objects that could not be written, and the times of their next attempts.
    pub(crate) retries: BTreeMap<ObjectId, RetryState>,
    /// Objects that could not be compared.
    pub(crate) compare_failures: CompareFailures,
    /// Kinds that may contain objects of this Sync.
    pub(crate) inventory_kinds: BTreeSet<GroupKind>,
    /// Namespaces that may contain objects of this Sync.
    pub(crate) inventory_namespaces: BTreeSet<Box<str>>,
    /// Times of the next verifications.
    verification_times: VerificationTimes,
    /// Spec revision and Git revision of the last accepted render.
    spec_revision: u64,
    revision: Option<Revision>,
    /// Time for which admission may deny an object before a rollback; `None` without rollback.
    pub(crate) rejection_limit: Option<Duration>,
    /// Last revision with a valid signature, and the keys that were used.
    pub(crate) trusted: Option<(Revision, SignaturePolicy, Arc<TrustedKeys>)>,
    /// The same for the chart.
    pub(crate) trusted_chart: Option<(ChartVersion, Arc<TrustedKeys>)>,
    /// The same for each mount of a held revision.
    pub(crate) trusted_mounts: Vec<(Revision, SignaturePolicy, Arc<TrustedKeys>)>,
    /// True once the earlier inventory of this Sync was loaded.
    pub(crate) inventory_loaded: bool,
    /// True if some kinds could not be listed when the inventory was loaded: only the recorded
    /// scope covers their objects.
    pub(crate) inventory_incomplete: bool,
    /// Objects that are still to be verified since the start.
    pub(crate) unverified: VecDeque<(ObjectId, VerifyMethod)>,
    /// True while comparisons of this reconcile are outstanding: drift counts are incomplete.
    pub(crate) comparing: bool,
    /// Controllers that undo our repairs.
    pub(crate) contention: Contention,
    /// Approved deletions that are not complete yet, by uid.
    pub(crate) consented: BTreeMap<ObjectId, Box<str>>,
    /// Changes that need a new object, and wait for approval to delete the old one.
    pub(crate) replacements: BTreeMap<ObjectId, Replacement>,
    /// Objects on which the mark of another Sync is ignored.
    pub(crate) ignored_marks: BTreeSet<ObjectId>,
    /// True if an apply has found a replacement that needs approval: the next plan names the
    /// approval.
    pub(crate) needs_replan: bool,
    /// Objects that are written to all the time.
    pub(crate) noisy_objects: NoisyObjects,
    /// Start times of objects that wait for other Syncs.
    pub(crate) claim_waits: ClaimWaits,
    /// Objects that are being deleted.
    pub(crate) stuck_deletions: StuckDeletions,
    /// Objects whose deletion takes other objects with it.
    pub(crate) prune_guards: PruneGuards,
    /// Objects that have completed.
    pub(crate) completed: CompletedObjects,
    /// Time at which the next pause that a person asked for ends.
    pub(crate) pause_ends: Option<Uptime>,
    /// Conflicts with other managers over fields.
    pub(crate) field_conflicts: Arc<FieldConflicts>,
    /// Namespaces that objects wait for.
    pub(crate) namespaces: PendingNamespaces,
    /// Permissions that are missing.
    pub(crate) missing_permissions: Option<MissingPermissions>,
    /// Numbers of replicas that autoscalers may set.
    pub(crate) autoscaled_replicas: AutoscaledReplicas,
    /// The newest commit, while it cannot be rendered.
    pub(crate) refused_commit: Option<RefusedCommit>,
    /// Changes of CRDs that were not processed yet.
    pub(crate) crd_changes: CrdChanges,
    /// Resources whose kinds are not served yet.
    pub(crate) awaited_resources: AwaitedResources,
    /// Objects whose webhooks fail.
    pub(crate) webhook_failures: WebhookFailures,
    /// Desired sets that have been rolled out.
    pub(crate) rolled_out: RolloutProgress,
    /// Objects that were unhealthy when the rollout was last evaluated.
    pub(crate) unhealthy_at_rollout: Option<UnhealthySnapshot>,
    /// Objects that other actors deleted and that do not exist again.
    pub(crate) deleted: BTreeSet<ObjectId>,
    /// Objects that are gone as expected: this Sync deleted them, or they had completed. Their
    /// absence is no drift.
    pub(crate) departed: BTreeSet<ObjectId>,
    /// True if a person asks to run failed hooks again.
    pub(crate) rerun_failed_hooks: bool,
    /// Time at which completed hooks are deleted, if there are any.
    pub(crate) hook_cleanup_at: Option<Uptime>,
    /// Next discovery of kinds that the server does not serve, and of autoscalers that it does not
    /// list; `None` if nothing is missing.
    pub(crate) rediscover_at: Option<(Uptime, Backoff)>,
}

/// Retry interval of holds that a person or a watch event resolves.
pub(super) const HELD: Duration = Duration::from_secs(60);

/// Interval at which one of many forbidden objects is retried.
const PROBE: Duration = Duration::from_secs(4);

/// A kind in a namespace.
type KindInNamespace = (GroupKind, Box<str>);

fn place(id: &ObjectId) -> KindInNamespace {
    (id.group_kind(), id.namespace().unwrap_or_default().into())
}

fn is_forbidden(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(why) if why.is_forbidden())
}

impl SyncMemory {
    /// Returns the last render, if it was made with this spec revision: every field of the spec can
    /// affect a render.
    pub(crate) fn rendered_as(&self, order: u64) -> Option<&PreparedRevision> {
        self.prepared.as_ref().filter(|_| self.spec_revision == order)
    }

    /// Accepts a completely rendered revision that is about to be applied. With new input, earlier
    /// failures are retried at once.
    pub(crate) fn accept_revision(&mut self, generation: u64, revision: &Revision) {
        if self.spec_revision != generation || self.revision.as_ref() != Some(revision) {
            self.retries.clear();
            self.compare_failures.clear();
        }
        self.spec_revision = generation;
        self.revision = Some(revision.clone());
    }

    /// Returns the retry state of all objects, as an input of the next plan.
    pub(crate) fn deferrals(&mut self, now: Uptime) -> Deferrals {
        let namespaces = &self.namespaces;
        self.retries.retain(|_, failing| !namespaces.frees(&failing.why));
        let failed = self.retries.iter().map(|(id, failing)| {
            let outcome = failing.why.clone();
            (id.clone(), FailedStep { hash: failing.hash, is_due: failing.until <= now, outcome })
        });
        Deferrals { failed: failed.collect(), throttled: self.noisy_objects.throttled(now) }
    }

    /// Records the steps that a plan has left out.
    pub(crate) fn note_deferred(&mut self, due: &DuePlan) {
        self.retries.retain(|id, _| due.still_failing.contains(id));
        self.noisy_objects.note_throttled(&due.throttled);
    }

    /// Retries at once the objects that their owning Sync has released.
    pub(crate) fn free_released(&mut self, is_released: impl Fn(&str, &ObjectId) -> bool) {
        self.retries.retain(|id, failing| match &failing.why {
            Outcome::Held(Hold::OwnedBy(other)) => !is_released(other, id),
            _ => true,
        });
    }

    /// Returns the next attempts of refused objects, as far as they are known.
    pub(crate) fn next_tries(&self) -> BTreeMap<ObjectId, Timestamp> {
        let tries = self.retries.iter().filter_map(|(id, failing)| Some((id.clone(), failing.next_try?)));
        tries.collect()
    }

    /// Records the next attempts of objects that were just refused. Recorded times do not move.
    pub(crate) fn note_tries(
        &mut self,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        now: Uptime,
        wall: Timestamp,
    ) {
        for (id, failing) in &mut self.retries {
            let is_refused = matches!(&failing.why, Outcome::Failed(why) if why.manifest);
            if is_refused && outcomes.contains_key(id) {
                failing.next_try = wall.checked_add(failing.until.saturating_sub(now)).ok();
            }
        }
    }

    /// Records failures, and forgets those that are resolved.
    pub(crate) fn record_outcomes(
        &mut self,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        desired: &DesiredSet,
        now: Uptime,
        chance: f64,
        pauses: RetryPolicy,
    ) {
        self.noisy_objects.learn(outcomes, now);
        self.webhook_failures.learn(outcomes, now);
        let mut granted = BTreeSet::new();
        for (id, outcome) in outcomes {
            if let Outcome::Held(Hold::ReplacementWaits(replacement)) = outcome {
                self.replacements.insert(id.clone(), (**replacement).clone());
                self.needs_replan = true;
            }
            let hash = desired.get(id).map(|wanted| wanted.hash);
            let mut backoff = match self.retries.get(id) {
                Some(known) if known.hash == hash => known.backoff,
                Some(_) | None => pauses.cluster,
            };
            let pause = match outcome {
                Outcome::Failed(why) if why.manifest => {
                    let left = self.rejection_time_left(id, hash, why, now);
                    left.map_or(pauses.manifest, |left| left.min(pauses.manifest))
                }
                Outcome::Held(Hold::WebhookUnserved(_)) => {
                    backoff.failed(chance).min(self.webhook_failures.left(id, now))
                }
                Outcome::Failed(_) => backoff.failed(chance),
                Outcome::Held(
                    Hold::Conflict { .. }
                    | Hold::NamespaceMissing(_)
                    | Hold::NamespaceTerminating(_)
                    | Hold::OwnedBy(_)
                    | Hold::NotEmpty(_)
                    | Hold::ContentUnknown(_),
                ) => HELD,
                _ => {
                    let known = self.retries.remove(id);
                    if known.is_some_and(|known| is_forbidden(&known.why)) {
                        granted.insert(place(id));
                    }
                    continue;
                }
            };
            let refused = self.refused_since(id, hash, outcome, now).map(|since| (since, now));
            let (until, why) = (now + pause, outcome.clone());
            let failing = RetryState { hash, until, next_try: None, backoff, refused, why };
            self.retries.insert(id.clone(), failing);
        }
        self.retry_one_forbidden(&granted, now);
    }

    /// Retries one forbidden object of each kind and namespace soon, so that granted permissions
    /// are noticed. Once it succeeds, all others are retried.
    fn retry_one_forbidden(&mut self, granted: &BTreeSet<KindInNamespace>, now: Uptime) {
        let mut probed = BTreeSet::new();
        for (id, failing) in self.retries.iter_mut().filter(|(_, failing)| is_forbidden(&failing.why)) {
            let place = place(id);
            if granted.contains(&place) {
                failing.until = failing.until.min(now);
            } else if probed.insert(place) {
                failing.until = failing.until.min(now + PROBE);
            }
        }
    }

    /// Schedules the next discovery, if anything is missing.
    pub(crate) fn schedule_rediscovery(
        &mut self,
        missing: bool,
        now: Uptime,
        chance: f64,
        pauses: RetryPolicy,
    ) {
        let mut backoff = match self.rediscover_at {
            // Discovery ran earlier, for another reason.
            Some((due, _)) if missing && due > now => return,
            Some((_, backoff)) => backoff,
            None => pauses.cluster,
        };
        self.rediscover_at = missing.then(|| (now + backoff.failed(chance), backoff));
    }

    /// Returns true if another actor deleted an object that is created now: either every object had
    /// been applied, or its deletion was observed.
    pub(crate) fn was_deleted(&self, id: &ObjectId, was_applied: bool) -> bool {
        was_applied || self.deleted.contains(id) && !self.departed.contains(id)
    }

    /// Records the objects that are gone as expected, until they exist again or are not known any
    /// more.
    pub(crate) fn note_departed(
        &mut self,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        is_known: impl Fn(&ObjectId) -> bool,
    ) {
        let going = outcomes.iter().filter(|(_, it)| matches!(it, Outcome::Pruned { gone: false }));
        self.departed.retain(|id| is_known(id) && outcomes.get(id) != Some(&Outcome::Created));
        self.departed.extend(going.map(|(id, _)| id.clone()));
    }

    /// Watches the namespaces that objects wait for.
    pub(crate) fn wait(&mut self, cluster: &Cluster, owner: &SyncName) {
        let waiting = self.retries.values().map(|failing| &failing.why);
        self.namespaces.watch(cluster, owner, waiting);
    }

    /// Returns the objects whose last verification is so old that they are verified again; each
    /// once.
    pub(crate) fn due_for_verification(&mut self, now: Uptime, every: Duration) -> Vec<ObjectId> {
        self.verification_times.take_due(now, every)
    }

    /// Records that the server has just answered about these objects.
    pub(crate) fn replied(&mut self, ids: impl Iterator<Item = ObjectId>, now: Uptime) {
        self.verification_times.replied(ids, now);
    }

    /// Gives a time of verification to each sound desired object that has none, such as one that is
    /// believed.
    pub(crate) fn schedule_sound(
        &mut self,
        (desired, observed): (&DesiredSet, &ObservedSet),
        now: Uptime,
        every: Duration,
    ) {
        let times = &mut self.verification_times;
        let is_sound = |id: &ObjectId| observed.get(id).is_some_and(|seen| seen.verification.is_sound());
        let ids = desired.objects().iter().map(|wanted| &wanted.id);
        let open: Vec<ObjectId> = ids.filter(|id| !times.has(id) && is_sound(id)).cloned().collect();
        times.schedule(open.into_iter(), now, clock::wall(), every);
    }

    /// Returns the next time at which a failure is retried, a wait ends or a deletion is stuck.
    pub(crate) fn next(&self, now: Uptime, within: Duration) -> Option<Uptime> {
        let failing = self.retries.values().filter(|it| !it.is_owned()).map(|it| it.until);
        let unknown = self.rediscover_at.map(|(due, _)| due);
        let late = self.stuck_deletions.next(now, within);
        let failing = failing
            .chain(self.hook_cleanup_at)
            .chain(self.compare_failures.next(now))
            .chain(self.awaited_resources.next(now));
        let failing = failing.chain(self.claim_waits.next(now));
        let again = self.contention.next(now).into_iter().chain(self.noisy_objects.next());
        failing
            .chain(again)
            .chain(self.pause_ends)
            .chain(unknown)
            .chain(late)
            .chain(self.refused_commit.as_ref().map(RefusedCommit::next_try))
            .min()
    }
}

#[cfg(test)]
mod tests;
