//! The worker of one set.
//!
//! In: the set and the Syncs of its namespace, at each change, and the time of the next poll.
//! Out: passes: the generators are asked where that is due, all Syncs are planned, the plan is
//! executed, and the status is written. Every pass starts from what is there.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::super::Context;
use super::super::deletion::find_terminating;
use super::super::schedule::Backoff;
use super::NamespaceSyncs;
use super::child_writes::{
    AcceptedForms, AnswerKey, BegunRemoval, SetChange, WriteReport, remove, write_children,
};
use super::set_answer::SetGenerators;
use super::set_deletion::{DeletionStep, keep_finalizer, next_step};
use super::set_repository::{GeneratorSource, validated};
use super::set_rollout::{StageClock, end_of_stage, rollout_status};
use super::set_state::{ChildNumbers, set_state};
use super::set_status::{SetFacts, SetState, list_names, report_set, tell};
use crate::api::{
    APPROVE_ANNOTATION, EventReason, HeldRemoval, REQUEST_ANNOTATION, Reason, SetCounts, SyncName, SyncSet,
};
use crate::clock;
use crate::cluster::{ApiError, Cluster};
use crate::controller::reconcile_errors::cluster_error;
use crate::controller::{chance, spec};
use crate::report::{ErrorCause, ReconcileError};
use crate::sync_set::{
    CompiledSet, ExistingSync, PlannedRemoval, RemovalPolicy, SetChildren, SetOwner, SetPlan, hold_stages,
    plan_children,
};

/// Changes of Syncs within this time are handled together.
const SETTLE: Duration = Duration::from_millis(250);
/// Longest wait until the watch reports what was written.
const SEEN_WITHIN: Duration = Duration::from_secs(5);
/// Pause between passes of a set that waits for a change.
const IDLE: Duration = Duration::from_secs(3600);
/// Shortest pause after a failure.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// Maximum number of names in the status.
const MAX_HELD: usize = 20;

/// Serves a set until its task is aborted.
pub(super) async fn run_set(
    context: Arc<Context>,
    name: SyncName,
    mut snapshots: watch::Receiver<Arc<Value>>,
) {
    context.sync_sets.wait_until_listed().await;
    let mut syncs = context.sync_sets.follow(&name.namespace);
    let settings = context.settings();
    let newest = snapshots.clone();
    let mut worker = SetWorker {
        newest,
        context,
        name,
        generators: SetGenerators::default(),
        accepted: AcceptedForms::default(),
        removal: BegunRemoval::default(),
        children: None,
        known_status: None,
        inputs_changed: Arc::default(),
        backoff: Backoff::new(settings.retry_base, settings.retry_cap),
        is_current: false,
        stage_end: None,
        stage_clock: StageClock::default(),
    };
    let (inputs_changed, shared) = (worker.inputs_changed.clone(), worker.context.clone());
    let calls = shared.sync_sets.calls.receive(&worker.name);
    loop {
        let set = snapshots.borrow_and_update().clone();
        // It has seen exactly this set.
        worker.newest = snapshots.clone();
        let pause = worker.pass(&set, &mut syncs).await;
        calls.note_repositories(worker.generators.repository_names());
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { return },
            _ = syncs.changed() => tokio::time::sleep(SETTLE).await,
            () = inputs_changed.notified() => worker.generators.close(),
            () = calls.called() => worker.generators.poll_soon(),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

struct SetWorker {
    /// Has changed once the set of this pass is outdated.
    newest: watch::Receiver<Arc<Value>>,
    context: Arc<Context>,
    name: SyncName,
    generators: SetGenerators,
    accepted: AcceptedForms,
    removal: BegunRemoval,
    /// The Syncs of a generation and an answer.
    children: Option<(AnswerKey, Arc<SetChildren>)>,
    known_status: Option<Value>,
    inputs_changed: Arc<Notify>,
    backoff: Backoff,
    /// True once this pass has asked the generators, or does not need to.
    is_current: bool,
    /// Time until the stage of a roll-out has been healthy for long enough.
    stage_end: Option<Duration>,
    stage_clock: StageClock,
}

/// Reason why a pass ended early.
enum PassEnd {
    /// A state that lasts until something changes.
    Rest(SetState),
    /// A failure that is tried again.
    Failed(SetState),
}

impl From<ReconcileError> for PassEnd {
    fn from(error: ReconcileError) -> Self {
        let state = SetState::not_ready(error.cause.reason(), error.message);
        match error.permanent {
            true => Self::Rest(state),
            false => Self::Failed(state),
        }
    }
}

impl From<ApiError> for PassEnd {
    fn from(failure: ApiError) -> Self {
        cluster_error(&failure).into()
    }
}

impl SetWorker {
    /// Serves the set once; returns the time until the next pass.
    async fn pass(&mut self, set: &Value, syncs: &mut watch::Receiver<NamespaceSyncs>) -> Duration {
        self.is_current = false;
        let found = self.attempt(set, syncs).await;
        // A pass that ends before the generators are asked waits for a change of the set.
        let next_poll = self.generators.next_poll().filter(|_| self.is_current);
        let next_poll =
            next_poll.map_or(IDLE, |next| next.saturating_duration_since(clock::now()).max(SETTLE));
        let next_poll = self.stage_end.take().map_or(next_poll, |end| next_poll.min(end));
        let (facts, pause) = match found {
            Ok(None) => return IDLE,
            // Another daemon may serve the Sync that has the name: no watch reports its end.
            Ok(Some(facts)) if facts.has_conflicts => (facts, next_poll.min(self.retry_pause())),
            Ok(Some(facts)) => {
                self.backoff.reset();
                (facts, next_poll)
            }
            Err(PassEnd::Rest(state)) => (self.unchanged(state), next_poll),
            Err(PassEnd::Failed(state)) => {
                let pause = self.retry_pause();
                self.generators.retry_in(pause);
                (self.unchanged(state), pause)
            }
        };
        report_set(&self.context, &self.name, set, facts, &mut self.known_status).await;
        pause
    }

    fn retry_pause(&mut self) -> Duration {
        self.backoff.failed(chance()).max(FIRST_RETRY)
    }

    /// Returns the facts of a pass that has planned nothing.
    fn unchanged(&self, state: SetState) -> SetFacts {
        let revisions = self.generators.revisions();
        let allowed_forks = self.generators.allowed_forks();
        SetFacts {
            state,
            counts: None,
            revisions,
            allowed_forks,
            removal: None,
            has_conflicts: false,
            rollout: None,
        }
    }

    async fn attempt(
        &mut self,
        raw: &Value,
        syncs: &mut watch::Receiver<NamespaceSyncs>,
    ) -> Result<Option<SetFacts>, PassEnd> {
        let rest = |reason: Reason, message: String| PassEnd::Rest(SetState::not_ready(reason, message));
        let deletes = raw.pointer("/spec/onDelete").and_then(Value::as_str) == Some("Delete");
        if raw.pointer("/metadata/deletionTimestamp").is_some() && !deletes {
            keep_finalizer(&self.context, &self.name, raw, false).await?;
            return Ok(None);
        }
        let set: SyncSet = serde_json::from_value(raw.clone()).map_err(|_| {
            rest(Reason::SpecInvalid, "this version of Moorline cannot read the spec".to_owned())
        })?;
        let owner = SetOwner::of(raw);
        let identity = validated(self.context.process.disk(), &self.name, &set, GeneratorSource::None)?;
        self.context
            .may_act_as_itself(&self.name, &identity)
            .map_err(|message| rest(Reason::ServiceAccountRequired, message))?;
        let cluster = self.context.home_of(&self.name, &identity).await?.in_current_term();
        if set.metadata.deletion_timestamp.is_some() {
            return self.delete(raw, &set, (&cluster, &owner), syncs).await.map(|()| None);
        }
        keep_finalizer(&self.context, &self.name, raw, deletes).await?;
        if set.spec.suspend {
            return Err(rest(Reason::Suspended, "the SyncSet is suspended: no Sync is written".to_owned()));
        }
        let annotation = |key: &str| set.metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned();
        let who = (&cluster, &self.name);
        let request = annotation(REQUEST_ANNOTATION);
        let asked =
            self.generators.refresh(&self.context, who, &set, &self.inputs_changed, request.as_deref()).await;
        self.is_current = true;
        // The last complete answer of this spec stays in force; without one, nothing happens.
        let Some(answer) = self.generators.answer() else {
            return Err(asked.map_or_else(PassEnd::from, |()| rest(Reason::Progressing, String::new())));
        };
        let key = (set.metadata.generation, answer.number);
        let children = match self.children.take().filter(|(known, _)| *known == key) {
            Some((_, known)) => known,
            None => {
                let check = |name: &str, manifest: &Value| {
                    check_child(&self.context, &SyncName::new(&owner.namespace, name), manifest)
                };
                let compiled = CompiledSet::compile(&set, raw)
                    .map_err(|errors| rest(Reason::SpecInvalid, errors.join("; ")))?;
                let built = SetChildren::build(&compiled, &owner, &answer.parameters, check);
                Arc::new(built.map_err(|errors| rest(Reason::SpecInvalid, errors.join("; ")))?)
            }
        };
        self.children = Some((key, children.clone()));
        let approval = annotation(APPROVE_ANNOTATION);
        let mut policy = RemovalPolicy::of(set.spec.prune.as_ref(), approval.as_deref());
        policy.begun = self.removal.uids(key, approval.as_ref());
        let existing = existing(syncs, &owner);
        let plan = plan_children(&children, &existing, &policy, |child, live| {
            self.accepted.is_accepted(child, live)
        });
        let (clock, moment) = (&mut self.stage_clock, (clock::now(), clock::wall()));
        clock.begin_pass();
        let mut plan = hold_stages(plan, (&children, &existing), &mut |since| clock.age(since, moment));
        self.stage_end = end_of_stage(&plan);
        match asked {
            Ok(()) => self.removal.note(key, approval, &plan.removal),
            // The removal is one of an older answer.
            Err(_) => plan.removal = plan.removal.put_off(Vec::new()),
        }
        let change = || SetChange::since(raw, &self.newest);
        let report = write_children(&cluster, &owner, &plan, &mut self.accepted, &change).await;
        self.tell_writes(raw, &report).await;
        wait_until_seen(syncs, &owner, &report).await;
        if let Some((child, failure)) = report.failures.first() {
            return Err(of_write(child, failure));
        }
        let facts = self.facts(&children, &plan, &report, &self::existing(syncs, &owner), asked.err());
        Ok(Some(facts))
    }

    fn facts(
        &self,
        children: &SetChildren,
        plan: &SetPlan,
        report: &WriteReport,
        existing: &[ExistingSync],
        asked: Option<ReconcileError>,
    ) -> SetFacts {
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let ready = existing.iter().filter(|live| live.is_own() && live.is_ready && !live.is_deleting);
        let ready = ready.filter(|live| children.get(&live.name).is_some()).count();
        let left = existing.iter().filter(|live| live.is_own() && children.get(&live.name).is_none()).count();
        let removal = match &plan.removal {
            PlannedRemoval::Hold { hash, syncs } => {
                let syncs = syncs.iter().take(MAX_HELD).cloned().collect();
                Some(HeldRemoval { hash: hash.clone(), syncs })
            }
            PlannedRemoval::Remove(_) | PlannedRemoval::Wait { .. } | PlannedRemoval::Keep(_) => None,
        };
        let rollout = plan.rollout.as_ref().and_then(|rollout| rollout.state.as_ref());
        let numbers = ChildNumbers { desired: children.len(), ready, left };
        let state = set_state(&self.name, (plan, removal.as_ref()), &report.conflicts, numbers, asked);
        let counts = SetCounts { desired: number(children.len()), ready: number(ready), held: number(left) };
        SetFacts {
            state,
            counts: Some(counts),
            revisions: self.generators.revisions(),
            allowed_forks: self.generators.allowed_forks(),
            removal,
            has_conflicts: !report.conflicts.is_empty(),
            rollout: rollout.map(rollout_status),
        }
    }

    async fn tell_writes(&self, set: &Value, report: &WriteReport) {
        let (created, changed, removed) = (&report.created, &report.changed, &report.removed);
        if created.len() + changed.len() + removed.len() > 0 {
            tracing::info!(
                set = %self.name, created = created.len(), changed = changed.len(), removed = removed.len(),
                "wrote Syncs"
            );
        }
        if !removed.is_empty() {
            let uid = set.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
            let note = format!("deleted the Syncs {}", list_names(removed));
            let reason = EventReason::Pruned.to_string();
            tell(&self.context, &self.name, uid, ("Normal", &reason, &note)).await;
        }
    }

    async fn delete(
        &self,
        raw: &Value,
        set: &SyncSet,
        (cluster, owner): (&Cluster, &SetOwner),
        syncs: &mut watch::Receiver<NamespaceSyncs>,
    ) -> Result<(), PassEnd> {
        // The end of the namespace or of the definition is no request to delete Syncs.
        if let Some(why) = find_terminating(&self.context, &self.name, "syncsets.moorline.dev").await? {
            tracing::warn!(set = %self.name, reason = why, "the Syncs of the set were not deleted");
            return Ok(keep_finalizer(&self.context, &self.name, raw, false).await?);
        }
        loop {
            let gone = match next_step(set, &existing(syncs, owner)) {
                DeletionStep::Finish => {
                    return Ok(keep_finalizer(&self.context, &self.name, raw, false).await?);
                }
                DeletionStep::Await => return Ok(()),
                DeletionStep::Delete(gone) => gone,
            };
            let mut report = WriteReport::default();
            let is_outdated = || self.newest.has_changed().unwrap_or(true);
            remove(cluster, owner, &gone, (&mut report, &is_outdated)).await;
            self.tell_writes(raw, &report).await;
            if is_outdated() {
                return Ok(());
            }
            wait_until_seen(syncs, owner, &report).await;
            if let Some((child, failure)) = report.failures.first() {
                return Err(of_write(child, failure));
            }
            // Nothing was deleted that the watch has not reported yet.
            if report.removed.is_empty() {
                return Err(of_gone());
            }
        }
    }
}

/// Returns the Syncs of the namespace of a set.
fn existing(syncs: &mut watch::Receiver<NamespaceSyncs>, owner: &SetOwner) -> Vec<ExistingSync> {
    syncs.borrow_and_update().values().map(|sync| ExistingSync::of(&sync.read(), owner)).collect()
}

/// Waits until the watch has reported what was written, so that nothing is written twice.
async fn wait_until_seen(
    syncs: &mut watch::Receiver<NamespaceSyncs>,
    owner: &SetOwner,
    report: &WriteReport,
) {
    let is_seen = |syncs: &NamespaceSyncs| {
        report.stored.iter().all(|(name, form)| {
            let live = syncs.get(&**name).map(|sync| ExistingSync::of(&sync.read(), owner));
            match (live, form) {
                (Some(live), Some(form)) => live.digest() == *form,
                (Some(live), None) => live.is_deleting,
                (None, form) => form.is_none(),
            }
        })
    };
    // The next pass sees what happens later.
    let _ = tokio::time::timeout(SEEN_WITHIN, syncs.wait_for(is_seen)).await;
}

/// The watch has not reported yet that Syncs are gone.
fn of_gone() -> PassEnd {
    let message = "the Syncs of the set are gone; waiting for the watch to report it";
    PassEnd::Failed(SetState::not_ready(Reason::Deleting, message))
}

/// Checks a Sync of a set as its own worker would.
fn check_child(context: &Context, name: &SyncName, manifest: &Value) -> Result<(), String> {
    let sync = spec::read(manifest.clone()).map_err(|refusal| refusal.to_string())?;
    spec::check_fields(manifest, &sync.spec).map_err(|refusal| refusal.to_string())?;
    let disk = context.process.disk();
    let valid_spec = spec::validate_within(name, &sync.spec, disk).map_err(|refusal| refusal.to_string())?;
    context.may_act_as_itself(name, &valid_spec)
}

fn of_write(child: &str, failure: &ApiError) -> PassEnd {
    // Its status was written meanwhile.
    let error = cluster_error(failure);
    let reason = match failure.code() == Some(409) {
        true => ErrorCause::Progressing,
        false => error.cause,
    };
    PassEnd::Failed(SetState::not_ready(reason.reason(), format!("the Sync {child}: {}", error.message)))
}
