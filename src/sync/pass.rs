//! One pass: the sentence of the program, for one Sync and one revision.
//!
//! In: a revision, what the Sync asks for, and what it remembers. Out: a [`Report`]. Doing it twice changes nothing
//! the second time, and it may be cut short at any place: the next pass begins with what is there.

mod aim;
mod deciding;
mod receiving;
mod rendering;
mod report;
mod sending;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

pub(crate) use aim::Aim;
pub(crate) use report::{Refused, Report};

use super::asked::Asked;
use super::backends::Backends;
use super::bases::Followed;
use super::carry_out::{Deletions, Work};
use super::desk::Desk;
use super::event::is_change;
use super::ledger::{Ledger, polled};
use super::log_lines::{About, Tone};
use super::memory::{Memory, Postponed};
use super::namespaces::may_be_missing;
use super::notebook::Notebook;
use super::prepare::{Prepared, of_failure};
use super::rights::rights;
use super::rollout::written_ones;
use super::schedule::Time;
use super::scope::{need, remaining, scope};
use super::vitals::Vitals;
use super::wish::Wish;
use super::{Context, chance, room};
use crate::adopt::Predecessor;
use crate::api::{HeldRevision, Scope, SyncName};
use crate::clock;
use crate::cluster::{Cluster, Need, Stop};
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::plan::{Hold, Outcome, Plan, Rollout};
use crate::report::Trouble;
use crate::source::{Repository, Revision};

/// How long the definitions of kinds may take until their kinds are served.
const ESTABLISH: Duration = Duration::from_secs(30);
/// Between two looks whether they are.
const ESTABLISH_LOOK: Duration = Duration::from_millis(100);
/// So long after a hook has ended it is asked whether that is written down.
const CLEAR: Duration = Duration::from_secs(1);
/// How often a pass begins anew because it has brought kinds that others of its objects need.
const MAX_ROUNDS: usize = 4;

/// What a pass is about.
pub(crate) struct Subject<'a> {
    pub(crate) context: &'a Context,
    pub(crate) cluster: &'a Cluster,
    /// Where the scope is written down, if anywhere.
    pub(crate) desk: Option<&'a Desk>,
    pub(crate) owner: &'a SyncName,
    pub(crate) wish: &'a Wish,
    /// How often what the Sync asks for has changed until this.
    pub(crate) generation: u64,
    /// The number of the order by which the revision is rendered: an older one while the newest is refused.
    pub(crate) rendered_by: u64,
    pub(crate) aim: Aim,
    /// The revision, as the status names it before it is applied.
    pub(crate) record: HeldRevision,
    /// The memory that its objects take, once that is known.
    pub(crate) bytes: OnceLock<u64>,
    /// The approval that a person gave.
    pub(crate) approved: Option<String>,
    /// The Sync to which this one moves its objects, as somebody wrote it.
    pub(crate) moves_to: Option<&'a str>,
    /// Whose objects these were before.
    pub(crate) predecessor: Option<&'a Predecessor>,
    /// How the objects are.
    pub(crate) vitals: &'a Vitals,
    pub(crate) repository: &'a Repository,
    /// The repositories that are named by URLs.
    pub(crate) followed: &'a Followed,
    pub(crate) revision: &'a Revision,
    /// What was read of the repository last: another one where that was given up, and this is held instead.
    pub(crate) newest: &'a Revision,
    pub(crate) stop: &'a Stop,
    /// Ends the pass while its commit is not rendered; none where no other revision is kept.
    pub(crate) gives_way: Option<&'a Stop>,
}

impl Subject<'_> {
    /// Drives the cluster to the revision.
    pub(crate) async fn pass(&self, memory: &mut Memory) -> Report {
        let (order, revision) = (self.generation, Some(self.revision.clone()));
        let mut report = Report { order, revision, ..Report::default() };
        for _ in 0..MAX_ROUNDS {
            memory.asks = false;
            if let Err(trouble) = self.round(memory, &mut report).await {
                report.trouble = Some(trouble);
                return report;
            }
            report.stopped = self.stop.is_stopped();
            if report.stopped || report.gave_way || !(memory.asks || self.learns(memory).await) {
                break;
            }
        }
        report
    }

    /// What Git says, once all of it can be seen in the cluster.
    async fn see(&self, memory: &mut Memory, report: &mut Report) -> Result<(Prepared, Need), Trouble> {
        self.heed_definitions(memory).await?;
        let mut prepared = self.prepare(memory).await?;
        let need = need(&prepared, memory);
        self.follow_definitions(&need, prepared.looks_at_kinds());
        // Without any status where its objects are is found out by listing, where that may be done.
        if memory.is_blind || self.desk.is_none_or(|desk| desk.scope().is_some()) {
            // Written down before anything is applied there, so that whoever comes after us knows where to look.
            self.record(scope(&need)).await?;
        }
        let (blind, scaled) = tokio::join!(
            self.cluster.require(self.owner, &need, self.wish.timeout),
            self.scaled(&mut memory.scaling, &prepared.rendered)
        );
        report.blind = blind;
        let scaled = scaled.map_err(|failure| of_failure(&failure))?;
        self.leave_to_scalers(memory, &mut prepared, scaled).await;
        // Only now: what is verified later must not take the numbers back that are left to others.
        memory.takes_up(self.rendered_by, self.revision);
        let before = memory.prepared.as_ref().filter(|before| before.revision.commit != self.revision.commit);
        let before = before.map(|before| (&*before.rendered, before.revision.commit));
        memory.claim_waits.takes_up(before, &prepared.rendered);
        memory.prepared = Some(prepared.clone());
        let _ = self.bytes.set(room::bytes(&prepared.rendered));
        Ok((prepared, need))
    }

    async fn round(&self, memory: &mut Memory, report: &mut Report) -> Result<(), Trouble> {
        // Until something is written, whatever takes long is given up for a newer commit.
        let (prepared, need) = tokio::select! {
            seen = self.see(memory, report) => seen?,
            () = self.stop.stopped() => return Ok(()),
            () = given_way(self.gives_way) => {
                report.gave_way = true;
                return Ok(());
            }
        };
        let desired = &*prepared.desired;
        // While a newer commit cannot be rendered, nobody knows what it wants, and nothing is handed over to this Sync.
        let is_newest = self.aim.refused().is_none();
        let takes = !self.wish.suspend && is_newest;
        self.claims(&prepared.desired, takes).await?;
        if is_newest {
            self.tell_neighbours();
        }
        report.is_of(&prepared);
        self.survey(memory, desired).await;
        let rollout = self.rollout(memory, &prepared);
        let policy = self.policy(memory, rollout.clone());
        let (contested, was_applied) = (policy.contested.clone(), policy.was_applied);
        let protected = policy.protected.clone();
        let (mut plan, open, claimed) = self.decided(memory, desired, policy).await;
        let now = self.context.now();
        let mut postponed = self.postpone(memory, &mut plan, desired, now);
        let spared = memory.restless.spare(&mut plan, now) + memory.queue(open, now);
        report.pending = memory.compares;
        // Whether these are held is about to be known.
        plan.held.retain(|(_, hold)| *hold != Hold::Unverified);
        report.kept = plan.kept.len() + memory.unverified.len() + spared;
        (report.approval, memory.consented) = (plan.approval.clone(), plan.consented.clone());
        report.approved.clone_from(&self.approved);
        let held: Vec<(ObjectId, Hold)> = plan.held.clone();
        memory.leaving.see(&held, now);
        self.names_revision(&plan, report).await?;
        let created = self.create_namespace(&plan, desired).await;
        report.restored_namespace = created.filter(|_| was_applied).or(report.restored_namespace.take());
        let (ledger, asked) = (memory.ledger.clone(), Asked::by(self.generation, self.desk));
        let (contested, numbers) = (Arc::new(contested), memory.scaling.numbers());
        let backends = memory.unreached.backends(now);
        let deletions = Arc::new(Deletions { claimed, protected, consented: memory.consented.clone() });
        let work = Work { contested, numbers, deletions, ..self.work(desired, &ledger, &asked, &backends) };
        report.gate = memory.gate.take();
        let mut outcomes = self.send(memory, &work, (plan, &mut postponed), rollout.as_ref()).await;
        report.added = work.additions(self.wish, memory, &mut outcomes).await;
        report.restores(desired, &outcomes, |id| memory.was_deleted(id, was_applied));
        self.learn(memory, &prepared, rollout.as_ref(), &outcomes);
        (report.finished, report.tries.next) = (memory.ends.written(), memory.next_tries());
        report.remarks = ledger.remarks(desired);
        let kinds = self.cluster.kinds();
        report.remarks.extend(polled(desired, |kind| kinds.get(kind).is_some_and(|it| !it.watchable)));
        memory.replied(outcomes.keys().cloned(), self.context.now());
        let held = memory.leaving.judged(held, self.context.now(), self.wish.timeout);
        report.gate.iter_mut().for_each(|(unwell, _)| unwell.extend(written_ones(&outcomes)));
        report.adds(held.chain(postponed.outcomes).chain(outcomes));
        self.note_end(memory, &rollout, report, prepared.digest.hash);
        let need = self.cluster.observed(self.owner, |observed| remaining(need, desired, observed, &kinds));
        memory.kinds.clone_from(&need.kinds);
        memory.places.clone_from(&need.namespaces);
        let refused = rights(&report.blind, &report.outcomes, &self.cluster.kinds());
        report.rights = self.lacks(memory, desired, prepared.digest.hash, refused).await;
        let scope = scope(&need);
        if let Some(notebook) = &self.context.notebook {
            notebook.record(scope.clone()).await;
        }
        report.scope = Some(scope);
        Ok(())
    }

    /// Takes out of the plan whatever is not tried again yet.
    fn postpone(&self, memory: &mut Memory, plan: &mut Plan, desired: &DesiredSet, now: Time) -> Postponed {
        let registry = &self.context.registry;
        memory.free_released(|other, id| registry.is_gone(other) || registry.has_let_go(other, id));
        memory.postpone(plan, desired, now)
    }

    /// Who writes, where, and what.
    fn work<'a>(
        &'a self,
        desired: &'a DesiredSet,
        ledger: &'a Ledger,
        asked: &'a Asked<'a>,
        backends: &'a Backends,
    ) -> Work<'a> {
        Work {
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

    /// Who goes by the same repository may wait for this one.
    fn tell_neighbours(&self) {
        let (held, newest) = (self.revision.commit, self.newest.commit);
        self.context.neighbours.rendered(self.owner, self.generation, held, newest);
    }

    /// Takes in what became of the plan.
    fn learn(
        &self,
        memory: &mut Memory,
        prepared: &Prepared,
        rollout: Option<&Rollout>,
        outcomes: &BTreeMap<ObjectId, Outcome>,
    ) {
        let (desired, now) = (&*prepared.desired, self.context.now());
        memory.learn(outcomes, desired, now, chance(), self.context.pauses());
        memory.note_tries(outcomes, now, wall_clock());
        let is_new = |outcome: &Outcome| matches!(outcome, Outcome::Created | Outcome::Recreated);
        memory.deleted.retain(|id| !outcomes.get(id).is_some_and(is_new));
        let anew = || outcomes.iter().filter(|(_, it)| is_new(it)).map(|(id, _)| id);
        memory.note_departed(outcomes, |id| {
            desired.get(id).is_some() || self.cluster.observed(self.owner, |seen| seen.get(id).is_some())
        });
        memory.ends.begin_anew(anew());
        self.vitals.begin_anew(anew());
        memory.fights.learn(outcomes, desired, now);
        memory.wait(self.cluster, self.owner);
        let is_missing = !self.knows(prepared) || !memory.scaling.in_doubt.is_empty();
        memory.miss(is_missing, now, chance(), self.context.pauses());
        self.note_pauses(memory);
        let hooks = self.vitals.hooks();
        self.cluster.observed(self.owner, |observed| {
            memory.ends.see_hooks(desired, observed, &hooks);
            memory.ends.begin(desired, observed);
        });
        memory.rolled_out.wrote(outcomes.iter().filter(|(_, it)| is_change(it)).map(|(id, _)| id));
        let clears = !self.wish.suspend
            && self
                .cluster
                .observed(self.owner, |seen| self.are_to_be_cleared(desired, memory, rollout, seen));
        memory.clears = clears.then(|| now + CLEAR);
    }

    /// Where the Sync may own objects, as it is written down.
    fn written_scope(&self) -> Option<Scope> {
        let notebook = self.context.notebook.as_deref();
        let written = self.desk.map_or_else(|| notebook.and_then(Notebook::scope), Desk::scope);
        // One that says nothing is as good as none.
        written.filter(|scope| !scope.kinds.is_empty())
    }

    async fn record(&self, scope: Scope) -> Result<(), Trouble> {
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

    /// Names the revision in the status before the first write of it: a daemon that starts later keeps exactly this one.
    async fn names_revision(&self, plan: &Plan, report: &mut Report) -> Result<(), Trouble> {
        report.held = Some(self.named());
        match plan.stages.is_empty() {
            true => Ok(()),
            false => self.record_revision().await,
        }
    }

    /// The revision as the status names it.
    fn named(&self) -> HeldRevision {
        HeldRevision { bytes: self.bytes.get().copied(), ..self.record.clone() }
    }

    async fn record_revision(&self) -> Result<(), Trouble> {
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

    /// Creates the namespace of objects that name none, where that is asked for and may be needed. If it cannot be,
    /// the objects say so. Gives its name if it was not there.
    async fn create_namespace(&self, plan: &Plan, desired: &DesiredSet) -> Option<Box<str>> {
        let name = &*self.wish.target_namespace;
        let needed = self.wish.create_namespace
            && self.cluster.observed(self.owner, |seen| may_be_missing(plan, desired, seen, name));
        if !needed {
            return None;
        }
        match self.cluster.create_namespace(name).await {
            Ok(created) => {
                self.context.is_over(self.owner, About::Namespace);
                tracing::info!(sync = %self.owner, namespace = name, created, "a namespace is wanted");
                created.then(|| name.into())
            }
            Err(failure) => {
                let text = format!("the namespace {name} could not be created: {failure}");
                self.context.says(self.owner, About::Namespace, Tone::Warning, "NamespaceMissing", &text);
                None
            }
        }
    }

    /// Waits for the kinds that this pass has brought; true if more is known than before.
    async fn learns(&self, memory: &Memory) -> bool {
        let Some(prepared) = memory.prepared.as_ref().filter(|prepared| !self.knows(prepared)) else {
            return false;
        };
        let defines = |id: &ObjectId| id.is("apiextensions.k8s.io", "CustomResourceDefinition");
        if !prepared.desired.objects().iter().any(|object| defines(&object.id)) {
            return false;
        }
        let within = ESTABLISH.min(self.wish.timeout).min(memory.awaited.left(self.context.now()));
        let until = clock::now() + within;
        while clock::now() < until && !self.stop.is_stopped() {
            match self.cluster.discover().await {
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

/// Nothing is applied before it is written down where.
fn unwritten() -> Trouble {
    let message = "where objects are about to be applied could not be written into the status".to_owned();
    Trouble { reason: "StatusUnwritable", message, problems: Vec::new(), lasting: false }
}

/// Waits until a pass has to give way; for ever where none has to.
async fn given_way(stop: Option<&Stop>) {
    match stop {
        Some(stop) => stop.stopped().await,
        None => std::future::pending().await,
    }
}
