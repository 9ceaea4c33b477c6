//! Follows one Sync for as long as it is there: the schedule's commands become futures, their ends become events.
//!
//! In: what the Sync asks for, as it changes. Out: reports, as they come. At most one look and one pass of a Sync
//! are under way at one time, beside each other; while neither acts, objects that nobody has looked at since the
//! start are verified one by one.

mod driving;
mod health;
mod holding;
mod hurry;
mod lags;
mod lineage;
mod looking;
mod order;
mod passing;
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
use rollback::Trials;

/// How often it is asked what nobody has looked at for long.
const LOOK_OVER: Duration = Duration::from_secs(60);

/// What there is to tell about a Sync.
#[derive(Debug)]
pub(crate) enum Told {
    /// The repository was looked at.
    Seen {
        found: Result<Revision, Trouble>,
        /// Which repository and ref.
        source: Box<str>,
        /// The request that this answers.
        request: Option<String>,
    },
    /// A pass has ended.
    Passed(Box<Report>),
    /// An object was verified.
    Verified(ObjectId, Outcome),
    /// The newest revision waits for something, or not any more.
    Waits(Option<Trouble>),
    /// The newest revision was given up, or not any more.
    Rejected(Option<Rejected>),
    /// It was found out how a commit came after another.
    Moved(Lineage),
    /// It was found out how the objects are, each of them where somebody may look, and whether the Sync is not ready before they are well.
    Health(Box<Summary>, Arc<Healths>, bool),
}

struct Follower {
    context: Arc<Context>,
    owner: SyncName,
    order: Order,
    /// Where the scope is written down, if the Sync has a status.
    desk: Option<Desk>,
    /// Where all of it is told, whether the Sync has a status or not.
    told: Desk,
    schedule: Schedule,
    revision: Option<Revision>,
    /// The revision that was taken up last, also when it is not known any more whether it is to be trusted.
    last: Option<Revision>,
    /// When the revision was first seen, until it is applied; none if it was applied before.
    seen_at: Option<Instant>,
    /// The last revision for which nothing had to be waited for.
    taken_up: Option<Revision>,
    /// No revision was seen since the start.
    is_first: bool,
    /// The revision before, until it was asked how this one came after it.
    before: Option<Revision>,
    /// Where the revisions of the repository are told.
    head: Arc<Head>,
    heard: watch::Receiver<Option<Seen>>,
    /// The repositories that are named by URLs.
    followed: Followed,
    /// Somebody asks to look at the repository itself.
    nudged: bool,
    /// The request that the last look answered.
    answered: Option<String>,
    memory: Option<Memory>,
    /// How often that was lost when it was used last.
    losses: u64,
    /// What wakes it when something in the cluster changes.
    wake: Arc<Notify>,
    /// The cluster as it was seen before, as somebody else; what is under way may use it still.
    left: Vec<Cluster>,
    stop: Stop,
    looking: Option<BoxFuture<'static, Looked>>,
    passing: Option<BoxFuture<'static, (Memory, Report, Option<Held>)>>,
    /// The try of a commit, which gives way to repairs.
    hurry: Option<Hurry>,
    verifying: Option<BoxFuture<'static, (ObjectId, Option<Outcome>)>>,
    verify_stop: Stop,
    relating: Option<BoxFuture<'static, Lineage>>,
    /// How the objects are.
    vitals: Arc<Vitals>,
    /// What wakes it when objects of the Sync were written.
    stir: Arc<Notify>,
    reading: Option<BoxFuture<'static, ()>>,
    told_health: ToldHealth,
    /// What was not well, and what had failed, when it was last asked what waits for that.
    gate: Option<Unwell>,
    /// How the objects are may not be as it was when that was compared last.
    health_moved: bool,
    /// A person asks to run hooks again that have failed.
    again: bool,
    /// Which revisions were well, and which were given up.
    trials: Trials,
    /// What was applied last, all of it.
    applied: Option<Revision>,
    /// The revision that is kept while nothing newer can be applied.
    holding: Holding,
    /// The newer commit or spec that cannot be applied.
    refused: Option<Box<str>>,
    /// A commit that was refused is tried again in the next pass.
    tries_newest: bool,
    /// So are the objects that could not be written.
    retries: bool,
    /// The repository itself was not asked for the newest revision: another Sync has seen it, or the path is a new one.
    is_hearsay: bool,
    /// What the API server lags behind with.
    lags: Lags,
}

/// Follows a Sync until the daemon ends or nobody wants it any more.
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
        is_hearsay: false,
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

    /// Lets what is under way come to its end; nothing new begins.
    async fn end(&mut self) {
        self.stop.stop();
        if let Some(passing) = self.passing.take() {
            // What takes longer is as good as killed, which every write survives.
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
        // The commit with the new path may have been pushed after the last look.
        self.is_hearsay |= old.path != new.path;
        if other_ref {
            self.last = None;
        }
        let lost = elsewhere || (&old.verify, &self.order.keys) != (&new.verify, &order.keys);
        if lost {
            (self.revision, self.before, self.relating) = (None, None, None);
            self.taken_up = None;
            self.looking = None;
        }
        // What changed while nothing was read is not known.
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

    /// What was seen of the cluster as somebody else is forgotten, once nothing uses it any more.
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
