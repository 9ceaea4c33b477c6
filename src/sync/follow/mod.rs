//! Event loop of one Sync: turns the schedule's commands into futures, and their results into
//! events.
//!
//! In: the newest [`ReconcileRequest`] of the Sync. Out: [`WorkerEvent`]s for the status. At most
//! one poll and one reconcile of a Sync run at a time, side by side; while neither runs, objects
//! that were not verified since the start are verified one by one.

mod driving;
mod health;
mod holding;
mod hurry;
mod lags;
mod lineage;
mod looking;
mod order;
mod passing;
mod path_lag;
mod rollback;
mod trust;
mod verify;
mod waiting;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::sync::{Notify, watch};

use super::bases::Followed;
use super::desk::Desk;
use super::heads::{Head, Seen};
use super::lineage::Lineage;
use super::memory::Memory;
use super::pass::Report;
use super::rollout::Unwell;
use super::schedule::{Command, Event, Schedule};
use super::subject::of_wish;
use super::vitals::Vitals;
use super::waiting::{running, sleep_until};
use super::{Context, chance};
use crate::api::SyncName;
use crate::clock;
use crate::cluster::{Cluster, Stop};
use crate::health::Summary;
use crate::object::ObjectId;
use crate::plan::{DriftMode, Outcome};
use crate::report::board::Healths;
use crate::report::{Rejected, Trouble};
use crate::source::Revision;
use health::ToldHealth;
use holding::{Held, Holding};
use hurry::Hurry;
use lags::Lags;
use looking::Looked;
pub(crate) use order::Order;
use path_lag::PathLag;
use rollback::Trials;

/// Interval of the check for objects that were not verified for long.
const LOOK_OVER: Duration = Duration::from_secs(60);

/// Event of a Sync, recorded in its status, metrics and log.
#[derive(Debug)]
pub(crate) enum Told {
    /// The repository was polled.
    Seen {
        found: Result<Revision, Trouble>,
        /// Identifier of the repository and ref.
        source: Box<str>,
        /// The value of the request annotation that this poll answers.
        request: Option<String>,
    },
    /// A reconcile has ended.
    Passed(Box<Report>),
    /// An object was verified.
    Verified(ObjectId, Outcome),
    /// The newest revision waits for something, or no longer waits.
    Waits(Option<Trouble>),
    /// The newest revision was rolled back, or is accepted again.
    Rejected(Option<Rejected>),
    /// The relation of a new commit to the previous one is known.
    Moved(Lineage),
    /// Health of the objects: the summary, the health of each object while the status page is read,
    /// and true if the Sync is ready only when they are healthy.
    Health(Box<Summary>, Arc<Healths>, bool),
}

struct Follower {
    context: Arc<Context>,
    owner: SyncName,
    order: Order,
    /// Handle to the status of the Sync, if it has a resource.
    desk: Option<Desk>,
    /// Recorder of all events, whether the Sync has a status or not.
    told: Desk,
    schedule: Schedule,
    revision: Option<Revision>,
    /// The revision that was accepted last, also while its signature has to be checked again.
    last: Option<Revision>,
    /// Time at which the revision was first observed, until it is applied; none if it was applied
    /// before.
    seen_at: Option<Instant>,
    /// The last revision that did not have to wait for dependencies.
    taken_up: Option<Revision>,
    /// No revision was observed since the start.
    is_first: bool,
    /// The previous revision, until its relation to this one is known.
    before: Option<Revision>,
    /// Channel on which the Syncs of one source share its newest revision.
    head: Arc<Head>,
    heard: watch::Receiver<Option<Seen>>,
    /// Remote bases that the revision names by URL.
    followed: Followed,
    /// The next poll must ask the repository itself.
    nudged: bool,
    /// The request that the last poll answered.
    answered: Option<String>,
    memory: Option<Memory>,
    /// Counter of dropped caches at the last use of the memory.
    losses: u64,
    /// Notified when an object of the Sync changes in the cluster.
    wake: Arc<Notify>,
    /// The cluster with previous identities, which work in progress may still use.
    left: Vec<Cluster>,
    stop: Stop,
    looking: Option<BoxFuture<'static, Looked>>,
    passing: Option<BoxFuture<'static, (Memory, Report, Option<Held>)>>,
    /// The attempt to render a new commit, which yields to repairs.
    hurry: Option<Hurry>,
    verifying: Option<BoxFuture<'static, (ObjectId, Option<Outcome>)>>,
    verify_stop: Stop,
    relating: Option<BoxFuture<'static, Lineage>>,
    /// Health of the objects.
    vitals: Arc<Vitals>,
    /// Notified when the status of an object of the Sync may have changed.
    stir: Arc<Notify>,
    reading: Option<BoxFuture<'static, ()>>,
    told_health: ToldHealth,
    /// Unhealthy and failed objects at the last reconcile, if something waited for them.
    gate: Option<Unwell>,
    /// The health may have changed since it was last compared.
    health_moved: bool,
    /// A person has requested that failed hooks run again.
    again: bool,
    /// The healthy revisions, and the ones that were rolled back.
    trials: Trials,
    /// The revision that was last applied completely.
    applied: Option<Revision>,
    /// The revision that is held while nothing newer can be applied.
    holding: Holding,
    /// The newer commit or spec that cannot be applied.
    refused: Option<Box<str>>,
    /// The next reconcile tries a refused commit again.
    tries_newest: bool,
    /// The next reconcile tries objects again that could not be applied.
    retries: bool,
    /// The path may have been pushed after the newest revision was polled.
    path_lag: PathLag,
    /// Time limits for kinds that the API server does not serve yet.
    lags: Lags,
}

/// Serves a Sync until the daemon ends or the sender of requests is dropped.
pub(crate) async fn follow(
    context: Arc<Context>,
    owner: SyncName,
    mut orders: watch::Receiver<Order>,
    desk: Option<Desk>,
) {
    let order = orders.borrow_and_update().clone();
    let schedule = Schedule::new(context.pauses().cluster);
    let head = context.heads.of(order.head());
    let wake = order.cluster.wake(&owner);
    let stir = order.cluster.stir(&owner);
    let of = (context.clone(), order.cluster.clone(), owner.clone(), order.wish.health.clone());
    let vitals = Arc::new(Vitals::new(of.0, of.1, of.2, of.3));
    let told = desk.clone().unwrap_or_else(|| {
        let desk = Desk::new(context.clone(), owner.clone());
        desk.follows(of_wish(&order.wish));
        desk
    });
    let mut follower = Follower {
        context,
        owner,
        order,
        desk,
        told,
        schedule,
        revision: None,
        last: None,
        seen_at: None,
        taken_up: None,
        is_first: true,
        before: None,
        heard: head.subscribe(),
        head,
        followed: Followed::default(),
        nudged: false,
        answered: None,
        memory: Some(Memory::default()),
        losses: 0,
        wake,
        left: Vec::new(),
        stop: Stop::default(),
        looking: None,
        passing: None,
        hurry: None,
        verifying: None,
        verify_stop: Stop::default(),
        relating: None,
        vitals,
        stir,
        reading: None,
        told_health: ToldHealth::default(),
        gate: None,
        health_moved: false,
        again: false,
        trials: Trials::default(),
        applied: None,
        holding: Holding::default(),
        refused: None,
        tries_newest: false,
        retries: false,
        path_lag: PathLag::default(),
        lags: Lags::default(),
    };
    follower.run(&mut orders).await;
}

impl Follower {
    async fn run(&mut self, orders: &mut watch::Receiver<Order>) {
        let context = self.context.clone();
        let mut ending = context.ending.clone();
        let bell = context.neighbours.bell(&self.owner);
        let first = context.dependencies.again(&self.owner);
        let wished = self.wished();
        self.step(wished);
        let mut look_over = tokio::time::interval(LOOK_OVER);
        let mut term = context.cluster.terms().watch();
        loop {
            self.begin_verifying();
            self.begin_reading();
            if self.health_has_moved() && (self.backends_came() || self.gives_up() || self.gate_has_moved()) {
                self.step(Event::Dirty);
            }
            let hurries = self.hurry.as_ref().and_then(Hurry::next);
            let next = self.schedule.next().into_iter().chain(self.next_read()).chain(hurries).min();
            let next = next.map(|due| context.instant(due));
            let event = tokio::select! {
                changed = orders.changed() => match changed {
                    Ok(()) => self.ordered(orders.borrow_and_update().clone()),
                    Err(_) => break,
                },
                _ = ending.wait_for(|ending| *ending) => break,
                looked = running(&mut self.looking) => self.looked(looked),
                done = running(&mut self.passing) => self.passed(done),
                (id, outcome) = running(&mut self.verifying) => match self.verified(id, outcome) {
                    Some(event) => event,
                    None => continue,
                },
                lineage = running(&mut self.relating) => {
                    self.related(lineage);
                    continue;
                }
                () = running(&mut self.reading) => {
                    self.have_read();
                    continue;
                }
                () = self.stir.notified() => {
                    self.vitals.stir();
                    self.health_moved = true;
                    continue;
                }
                () = self.wake.notified() => Event::Dirty,
                () = bell.again.notified() => Event::Dirty,
                () = first.notified() => Event::Dirty,
                () = bell.look.notified() => Event::Nudged,
                () = bell.called.notified() => {
                    self.nudged = true;
                    Event::Nudged
                }
                _ = self.heard.changed() => match self.heard() {
                    Some(event) => event,
                    None => continue,
                },
                _ = look_over.tick() => match self.look_over() {
                    Some(event) => event,
                    None => continue,
                },
                Ok(()) = term.changed() => {
                    self.verify_stop.stop();
                    Event::TermBegan
                }
                () = sleep_until(next) => Event::Woke,
            };
            self.step(event);
        }
        self.end().await;
    }

    /// Waits for work in progress; nothing new begins.
    async fn end(&mut self) {
        self.stop.stop();
        if let Some(passing) = self.passing.take() {
            // Longer work is dropped, as when the process is killed; every write survives that.
            let _ = tokio::time::timeout(self.context.grace, passing).await;
        }
        self.see_anew();
        self.order.cluster.forget(&self.owner);
    }

    fn wished(&mut self) -> Event {
        self.looks_anew();
        let wish = &self.order.wish;
        let known = self.revision.is_some() || self.order.refused.is_some();
        self.context.neighbours.anew(&self.owner);
        self.context.dependencies.depends(&self.owner, &wish.depends_on);
        Event::Wished { suspended: wish.suspend, interval: wish.interval, known }
    }

    fn ordered(&mut self, order: Order) -> Event {
        let changed = order.generation != self.order.generation;
        let (old, new) = (&self.order.wish, &order.wish);
        let elsewhere =
            (&old.address, &old.reference, &old.secret) != (&new.address, &new.reference, &new.secret);
        if elsewhere {
            self.applied = None;
            self.has_come();
        }
        let other_ref = (&old.address, &old.reference) != (&new.address, &new.reference);
        let other_source = other_ref || old.path != new.path;
        // The commit with the new path may have been pushed after the last poll.
        if old.path != new.path {
            self.path_lag.begin(clock::now());
        }
        if other_ref {
            self.last = None;
        }
        let lost = elsewhere || (&old.verify, &self.order.keys) != (&new.verify, &order.keys);
        if lost {
            (self.revision, self.before, self.relating) = (None, None, None);
            self.taken_up = None;
            self.looking = None;
        }
        // Health that changed while no status was read is unknown.
        let judges_anew = old.health != new.health || old.suspend && !new.suspend;
        let other_eyes = old.service_account != new.service_account;
        let repairs_anew = old.drift != new.drift && new.drift == DriftMode::Repair;
        let last = std::mem::replace(&mut self.order, order);
        if other_source {
            self.forget_trials();
        }
        self.left.extend(other_eyes.then_some(last.cluster));
        if judges_anew {
            self.examine_anew();
        }
        if repairs_anew {
            self.distrusts_unproven();
        }
        if self.passing.is_none() {
            self.see_anew();
        }
        self.nudged = true;
        self.head = self.context.heads.of(self.order.head());
        self.heard = self.head.subscribe();
        if !changed && !lost {
            return Event::Nudged;
        }
        self.stop.stop();
        self.wished()
    }

    /// After a change of the ServiceAccount: drops the watches of the previous identity once no
    /// reconcile uses them.
    fn see_anew(&mut self) {
        if self.left.is_empty() {
            return;
        }
        self.left.drain(..).for_each(|cluster| cluster.forget(&self.owner));
        self.wake = self.order.cluster.wake(&self.owner);
        self.memory = Some(Memory::default());
        self.examine_anew();
    }

    fn step(&mut self, event: Event) {
        self.schedule.pace(self.context.pauses().cluster);
        let now = self.context.now();
        match (&mut self.hurry, event) {
            (Some(hurry), Event::Dirty) => hurry.call(now),
            (Some(hurry), _) => hurry.look(now),
            (None, _) => {}
        }
        for command in self.schedule.step(event, now, chance()) {
            match command {
                Command::Look => self.look(),
                Command::Pass => self.pass(),
                Command::Stop => self.stop.stop(),
            }
        }
    }

    fn tell(&self, told: Told) {
        self.told.tell(told);
    }
}
