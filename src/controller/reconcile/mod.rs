//! Runs one reconcile: from a revision to the status, for one Sync.
//!
//! In: a revision, the spec of the Sync, and its memory.
//! Out: a `ReconcileResult`.
//!
//! A reconcile is idempotent and can be interrupted anywhere: the next one starts from the observed
//! state.

mod aim;
pub(crate) mod autoscalers;
pub(crate) mod awaited_resources;
pub(crate) mod crd_changes;
pub(crate) mod foreign_marks;
pub(crate) mod inventory_scope;
pub(crate) mod missing_permissions;
mod object_claims;
mod planning;
pub(crate) mod policy_inputs;
pub(crate) mod prepare;
pub(crate) mod refused_commit;
pub mod remote_bases;
pub(crate) mod render_memory;
pub(crate) mod renderer;
mod result;
mod revision;
pub(crate) mod rollout;
pub(crate) mod substitution_values;
pub(crate) mod unrendered_commit;
pub(crate) mod webhook_backends;
mod writes;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

pub(crate) use aim::Aim;
pub(crate) use result::{ReconcileResult, RefusedUpdate};

use super::apply::delete_precondition::DeletePrecondition;
use super::apply::{ApplyContext, DeletionLimits};
use super::memory::SyncMemory;
use super::memory::field_conflicts::{FieldConflicts, polled};
use super::memory::health_monitor::HealthMonitor;
use super::memory::pending_namespaces::may_be_missing;
use super::schedule::Uptime;
use super::spec::ValidatedSpec;
use super::status::StatusRecorder;
use super::status::events::was_written;
use super::status::lease_record::LeaseRecord;
use super::status::log_lines::{LogSubject, Tone};
use super::{Context, chance};
use crate::adopt::AdoptedFrom;
use crate::api::{HeldRevision, Scope, SyncName};
use crate::clock;
use crate::cluster::{CancelFlag, Cluster, WatchRequirements};
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::plan::{Deferrals, Hold, Outcome, Plan, Rollout};
use crate::report::ReconcileError;
use crate::source::{Repository, Revision};
use inventory_scope::{needed_watches, remaining_watches, scope};
use missing_permissions::rights;
use prepare::{PreparedRevision, cluster_error};
use remote_bases::TrackedBases;
use rollout::written_ones;
use webhook_backends::WebhookBackends;

/// Time that new CRDs may take until their kinds are served.
const ESTABLISH: Duration = Duration::from_secs(30);
/// Pause between two checks if they are served.
const ESTABLISH_LOOK: Duration = Duration::from_millis(100);
/// Delay after the end of a hook before its record in the status is checked.
const CLEAR: Duration = Duration::from_secs(1);
/// Most rounds of one reconcile. A new round starts if the last one brought kinds that other
/// objects need.
const MAX_ROUNDS: usize = 4;

/// Inputs of one reconcile, borrowed for its duration.
pub(crate) struct ReconcileContext<'a> {
    pub(crate) context: &'a Context,
    pub(crate) cluster: &'a Cluster,
    /// Status handle of the Sync; `None` for a run without a Sync.
    pub(crate) desk: Option<&'a StatusRecorder>,
    pub(crate) owner: &'a SyncName,
    pub(crate) wish: &'a ValidatedSpec,
    /// Number of the spec revision.
    pub(crate) spec_revision: u64,
    /// Number of the spec revision with which the revision is rendered: an older one while the
    /// newest is refused.
    pub(crate) rendered_spec_revision: u64,
    pub(crate) aim: Aim,
    /// The revision, as the status names it before it is applied.
    pub(crate) record: HeldRevision,
    /// Memory that its objects take, once known.
    pub(crate) bytes: OnceLock<u64>,
    /// The approval that a person gave.
    pub(crate) approved: Option<String>,
    /// The Sync to which this one moves its objects, as written in the resource.
    pub(crate) moves_to: Option<&'a str>,
    /// The tool that managed these objects before, if the Sync was adopted from one.
    pub(crate) predecessor: Option<&'a AdoptedFrom>,
    /// Health of the objects.
    pub(crate) vitals: &'a HealthMonitor,
    pub(crate) repository: &'a Repository,
    /// Remote bases of the Sync.
    pub(crate) followed: &'a TrackedBases,
    pub(crate) revision: &'a Revision,
    /// Newest revision of the repository. It differs from `revision` while that commit is given up
    /// and the older one is held.
    pub(crate) newest: &'a Revision,
    pub(crate) stop: &'a CancelFlag,
    /// Ends the reconcile while its commit is not rendered yet; `None` if no other revision is
    /// held.
    pub(crate) gives_way: Option<&'a CancelFlag>,
}

impl ReconcileContext<'_> {
    /// Reconciles the cluster with the revision.
    ///
    /// # Guarantees
    ///
    /// Nothing is written before the commit has rendered completely and the status names the
    /// revision. Nothing is deleted after an incomplete render.
    ///
    /// # Cancellation
    ///
    /// Setting `stop` ends the reconcile between two writes. Writes that were sent are finished,
    /// and the result is marked as stopped.
    pub(crate) async fn reconcile(&self, memory: &mut SyncMemory) -> ReconcileResult {
        let (order, revision) = (self.spec_revision, Some(self.revision.clone()));
        let mut report = ReconcileResult { spec_revision: order, revision, ..ReconcileResult::default() };
        for _ in 0..MAX_ROUNDS {
            memory.needs_replan = false;
            if let Err(trouble) = self.reconcile_once(memory, &mut report).await {
                report.trouble = Some(trouble);
                return report;
            }
            report.stopped = self.stop.is_cancelled();
            if report.stopped
                || report.gave_way
                || !(memory.needs_replan || self.wait_for_new_kinds(memory).await)
            {
                break;
            }
        }
        report
    }

    /// Prepares the desired set, and waits until all of its kinds are observed.
    async fn observe_cluster(
        &self,
        memory: &mut SyncMemory,
        report: &mut ReconcileResult,
    ) -> Result<(PreparedRevision, WatchRequirements), ReconcileError> {
        self.heed_definitions(memory).await?;
        let mut prepared = self.prepare(memory).await?;
        let need = needed_watches(&prepared, memory);
        self.follow_definitions(&need, prepared.looks_at_kinds());
        // Without a status, the earlier inventory is found by listing, if that is permitted.
        if memory.inventory_incomplete || self.desk.is_none_or(|desk| desk.scope().is_some()) {
            // Recorded before anything is applied there, so that the next daemon knows the
            // inventory.
            self.record(scope(&need)).await?;
        }
        let (blind, scaled) = tokio::join!(
            self.cluster.ensure_watches(self.owner, &need, self.wish.timeout),
            self.scaled(&mut memory.scaling, &prepared.rendered)
        );
        report.unobserved = blind;
        let scaled = scaled.map_err(|failure| cluster_error(&failure))?;
        self.leave_to_scalers(memory, &mut prepared, scaled).await;
        // Only now: otherwise a later verification would take back the numbers of autoscalers.
        memory.accept_revision(self.rendered_spec_revision, self.revision);
        let before = memory.prepared.as_ref().filter(|before| before.revision.commit != self.revision.commit);
        let before = before.map(|before| (&*before.rendered, before.revision.commit));
        memory.claim_waits.takes_up(before, &prepared.rendered);
        memory.prepared = Some(prepared.clone());
        let _ = self.bytes.set(render_memory::bytes(&prepared.rendered));
        Ok((prepared, need))
    }

    async fn reconcile_once(
        &self,
        memory: &mut SyncMemory,
        report: &mut ReconcileResult,
    ) -> Result<(), ReconcileError> {
        // Until the first write, a newer commit interrupts everything that takes long.
        let (prepared, need) = tokio::select! {
            seen = self.observe_cluster(memory, report) => seen?,
            () = self.stop.wait_until_cancelled() => return Ok(()),
            () = given_way(self.gives_way) => {
                report.gave_way = true;
                return Ok(());
            }
        };
        let desired = &*prepared.desired;
        // While a newer commit cannot be rendered, its claims are unknown, and nothing is handed
        // over to this Sync.
        let is_newest = self.aim.refused().is_none();
        let takes = !self.wish.suspend && is_newest;
        self.claims(&prepared.desired, takes).await?;
        if is_newest {
            self.publish_rendered();
        }
        report.is_of(&prepared);
        self.gather_policy_inputs(memory, desired).await;
        let rollout = self.rollout(memory, &prepared);
        let policy = self.policy(memory, rollout.clone());
        let (contested, was_applied) = (policy.contested.clone(), policy.was_applied);
        let protected = policy.protected.clone();
        let now = self.context.now();
        let deferrals = self.deferrals(memory, now);
        let (due, open, claimed) = self.make_plan(memory, desired, policy, &deferrals).await;
        memory.note_deferred(&due);
        let spared = due.throttled.len() + memory.enqueue_verification(open, now);
        report.pending = memory.comparing;
        report.kept = due.plan.kept.len() + memory.unverified.len() + spared;
        (report.approval, memory.consented) = (due.plan.approval.clone(), due.plan.consented.clone());
        report.approved.clone_from(&self.approved);
        let held: Vec<(ObjectId, Hold)> = due.plan.held.clone();
        memory.leaving.see(&held, now);
        self.names_revision(&due.plan, report).await?;
        let created = self.create_namespace(&due.plan, desired).await;
        report.restored_namespace = created.filter(|_| was_applied).or(report.restored_namespace.take());
        let (ledger, asked) =
            (memory.ledger.clone(), DeletePrecondition::for_spec_revision(self.spec_revision, self.desk));
        let (contested, numbers) = (Arc::new(contested), memory.scaling.numbers());
        let backends = memory.unreached.backends(now);
        let deletions = Arc::new(DeletionLimits { claimed, protected, consented: memory.consented.clone() });
        let work =
            ApplyContext { contested, numbers, deletions, ..self.work(desired, &ledger, &asked, &backends) };
        report.gate = memory.unhealthy_at_rollout.take();
        let (mut outcomes, postponed) = self.execute_plan(memory, &work, due, rollout.as_ref()).await;
        report.added = work.process_extra_fields(self.wish, memory, &mut outcomes).await;
        report.restores(desired, &outcomes, |id| memory.was_deleted(id, was_applied));
        self.record_outcomes(memory, &prepared, rollout.as_ref(), &outcomes);
        (report.finished, report.tries.next_attempts) = (memory.completed.written(), memory.next_tries());
        report.remarks = ledger.remarks(desired);
        let kinds = self.cluster.kinds();
        report.remarks.extend(polled(desired, |kind| kinds.get(kind).is_some_and(|it| !it.watchable)));
        memory.replied(outcomes.keys().cloned(), self.context.now());
        let held = memory.leaving.judged(held, self.context.now(), self.wish.timeout);
        report.gate.iter_mut().for_each(|(unwell, _)| unwell.extend(written_ones(&outcomes)));
        report.adds(held.chain(postponed).chain(outcomes));
        self.finish_rollout_if_done(memory, &rollout, report, prepared.digest.hash);
        let need = self
            .cluster
            .read_observed(self.owner, |observed| remaining_watches(need, desired, observed, &kinds));
        memory.inventory_kinds.clone_from(&need.kinds);
        memory.inventory_namespaces.clone_from(&need.namespaces);
        let refused = rights(&report.unobserved, &report.outcomes, &self.cluster.kinds());
        report.rights = self.missing_permissions(memory, desired, prepared.digest.hash, refused).await;
        let scope = scope(&need);
        if let Some(notebook) = &self.context.notebook {
            notebook.record(scope.clone()).await;
        }
        report.scope = Some(scope);
        Ok(())
    }

    /// Returns the retry state of the objects.
    fn deferrals(&self, memory: &mut SyncMemory, now: Uptime) -> Deferrals {
        let registry = &self.context.registry;
        memory.free_released(|other, id| registry.is_gone(other) || registry.has_released(other, id));
        memory.deferrals(now)
    }

    /// Returns the context for executing a plan.
    fn work<'a>(
        &'a self,
        desired: &'a DesiredSet,
        ledger: &'a FieldConflicts,
        asked: &'a DeletePrecondition<'a>,
        backends: &'a WebhookBackends,
    ) -> ApplyContext<'a> {
        ApplyContext {
            context: self.context,
            cluster: self.cluster,
            owner: self.owner,
            desired,
            conflicts: self.wish.conflicts,
            predecessor: self.predecessor,
            ledger,
            contested: Arc::default(),
            numbers: Arc::default(),
            deletions: Arc::default(),
            asked,
            backends,
            refused: self.aim.refused(),
            stop: self.stop,
        }
    }

    /// Publishes the rendered commit to the Syncs of the same repository, which may wait for it.
    fn publish_rendered(&self) {
        let (held, newest) = (self.revision.commit, self.newest.commit);
        self.context.neighbours.rendered(self.owner, self.spec_revision, held, newest);
    }

    /// Records the outcomes of the plan.
    fn record_outcomes(
        &self,
        memory: &mut SyncMemory,
        prepared: &PreparedRevision,
        rollout: Option<&Rollout>,
        outcomes: &BTreeMap<ObjectId, Outcome>,
    ) {
        let (desired, now) = (&*prepared.desired, self.context.now());
        memory.record_outcomes(outcomes, desired, now, chance(), self.context.pauses());
        memory.note_tries(outcomes, now, wall_clock());
        let is_new = |outcome: &Outcome| matches!(outcome, Outcome::Created | Outcome::Recreated);
        memory.deleted.retain(|id| !outcomes.get(id).is_some_and(is_new));
        let anew = || outcomes.iter().filter(|(_, it)| is_new(it)).map(|(id, _)| id);
        memory.note_departed(outcomes, |id| {
            desired.get(id).is_some() || self.cluster.read_observed(self.owner, |seen| seen.get(id).is_some())
        });
        memory.completed.begin_anew(anew());
        self.vitals.begin_anew(anew());
        memory.fights.learn(outcomes, desired, now);
        memory.wait(self.cluster, self.owner);
        let is_missing = !self.has_all_kinds(prepared) || !memory.scaling.uncertain_replicas.is_empty();
        memory.schedule_rediscovery(is_missing, now, chance(), self.context.pauses());
        self.note_pauses(memory);
        let hooks = self.vitals.hooks();
        self.cluster.read_observed(self.owner, |observed| {
            memory.completed.see_hooks(desired, observed, &hooks);
            memory.completed.begin(desired, observed);
        });
        memory.rolled_out.wrote(outcomes.iter().filter(|(_, it)| was_written(it)).map(|(id, _)| id));
        let clears = !self.wish.suspend
            && self
                .cluster
                .read_observed(self.owner, |seen| self.are_to_be_cleared(desired, memory, rollout, seen));
        memory.hook_cleanup_at = clears.then(|| now + CLEAR);
    }

    /// Returns the recorded scope: the kinds and namespaces in which the Sync may own objects.
    fn written_scope(&self) -> Option<Scope> {
        let notebook = self.context.notebook.as_deref();
        let written = self.desk.map_or_else(|| notebook.and_then(LeaseRecord::scope), StatusRecorder::scope);
        // An empty record is treated as a missing one.
        written.filter(|scope| !scope.kinds.is_empty())
    }

    async fn record(&self, scope: Scope) -> Result<(), ReconcileError> {
        match (self.desk, &self.context.notebook) {
            (Some(desk), _) => {
                let stands = desk.record(scope, self.wish.timeout).await;
                return if stands { Ok(()) } else { Err(unwritten()) };
            }
            (None, Some(notebook)) => notebook.record(scope).await,
            (None, None) => {}
        }
        Ok(())
    }

    /// Names the revision in the status before its first write: a daemon that starts later keeps
    /// exactly this one.
    async fn names_revision(&self, plan: &Plan, report: &mut ReconcileResult) -> Result<(), ReconcileError> {
        report.held = Some(self.named());
        match plan.stages.is_empty() {
            true => Ok(()),
            false => self.record_revision().await,
        }
    }

    /// Returns the revision as the status names it.
    fn named(&self) -> HeldRevision {
        HeldRevision { bytes: self.bytes.get().copied(), ..self.record.clone() }
    }

    async fn record_revision(&self) -> Result<(), ReconcileError> {
        match self.desk {
            Some(desk) if !desk.record_revision(self.named(), self.wish.timeout).await => {
                return Err(unwritten());
            }
            Some(_) => {}
            None => {
                if let Some(notebook) = &self.context.notebook {
                    notebook.record_revision(self.named()).await;
                }
            }
        }
        Ok(())
    }

    /// Creates the target namespace, if the Sync asks for that and it may be missing. On a failure
    /// the objects in it report the problem. Returns the name if it was created.
    async fn create_namespace(&self, plan: &Plan, desired: &DesiredSet) -> Option<Box<str>> {
        let name = &*self.wish.target_namespace;
        let needed = self.wish.create_namespace
            && self.cluster.read_observed(self.owner, |seen| may_be_missing(plan, desired, seen, name));
        if !needed {
            return None;
        }
        match self.cluster.create_namespace(name).await {
            Ok(created) => {
                self.context.end_condition(self.owner, LogSubject::Namespace);
                tracing::info!(sync = %self.owner, namespace = name, created, "target namespace ensured");
                created.then(|| name.into())
            }
            Err(failure) => {
                let text = format!("the namespace {name} could not be created: {failure}");
                self.context.log_condition(
                    self.owner,
                    LogSubject::Namespace,
                    Tone::Warning,
                    "NamespaceMissing",
                    &text,
                );
                None
            }
        }
    }

    /// Waits for the kinds that this reconcile has defined; returns true if more kinds are served
    /// now.
    async fn wait_for_new_kinds(&self, memory: &SyncMemory) -> bool {
        let Some(prepared) = memory.prepared.as_ref().filter(|prepared| !self.has_all_kinds(prepared)) else {
            return false;
        };
        let defines = |id: &ObjectId| id.is_kind("apiextensions.k8s.io", "CustomResourceDefinition");
        if !prepared.desired.objects().iter().any(|object| defines(&object.id)) {
            return false;
        }
        let within = ESTABLISH.min(self.wish.timeout).min(memory.awaited.left(self.context.now()));
        let until = clock::now() + within;
        while clock::now() < until && !self.stop.is_cancelled() {
            match self.cluster.refresh_discovery().await {
                Ok(true) => return true,
                Ok(false) | Err(_) => tokio::time::sleep(ESTABLISH_LOOK).await,
            }
        }
        false
    }
}

fn wall_clock() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or_default()
}

/// Returns the error of a status that could not be written: nothing is applied before its scope is
/// recorded.
fn unwritten() -> ReconcileError {
    let message =
        "the kinds and namespaces about to be applied could not be recorded in the status".to_owned();
    ReconcileError { reason: "StatusUnwritable", message, problems: Vec::new(), permanent: false }
}

/// Waits until the reconcile has to give way; forever if it never has to.
async fn given_way(stop: Option<&CancelFlag>) {
    match stop {
        Some(stop) => stop.wait_until_cancelled().await,
        None => std::future::pending().await,
    }
}
