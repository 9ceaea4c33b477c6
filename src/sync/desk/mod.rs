//! What is known about one Sync, and the status that says it.
//!
//! In: what `follow` tells. Out: a status, written when it says something else than the last one, and not before
//! there is something to say: what comes within a moment is written once.

mod board;
mod passed;
mod remembered;
mod uncounted;
mod writer;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::{Notify, oneshot};

use super::Context;
use super::event_queue::EventQueue;
use super::follow::Told;
use super::pass::Report;
use crate::api::{EventReason, Finished, HeldRevision, Scope, SyncName, SyncStatus};
use crate::clock;
use crate::health::Summary;
use crate::object::ObjectId;
use crate::plan::Outcome;
use crate::report::{Commit, Facts, PassFacts, Rejected, Sighting, Trouble, status};
use crate::source::Revision;
use board::Posting;
use remembered::Wrong;
use uncounted::Uncounted;

/// A pass that takes longer is told of before it ends.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is known about one Sync; cheap to clone.
#[derive(Clone)]
pub(crate) struct Desk(Arc<Inner>);

struct Inner {
    name: SyncName,
    context: Arc<Context>,
    state: Mutex<State>,
    changed: Notify,
    /// Somebody waits for a status before it writes.
    urgent: Notify,
}

#[derive(Default)]
struct State {
    uid: Box<str>,
    /// When the Sync was first seen.
    since: Option<Instant>,
    generation: Option<i64>,
    suspended: bool,
    /// Why the newest spec is not followed.
    refused: Option<Trouble>,
    /// An order of before is followed, whatever is refused.
    is_followed: bool,
    /// Why the repository gives nothing.
    source: Option<Trouble>,
    /// Why the newest revision is not taken up.
    waits: Option<Trouble>,
    seen: Option<Sighting>,
    request: Option<String>,
    report: Option<Box<Report>>,
    /// The newest revision was given up, and another is held.
    rejected: Option<Rejected>,
    /// How the objects are.
    health: Option<Box<Summary>>,
    /// The Sync is not ready before they are well.
    waits_for_health: bool,
    /// Until when it is waited for the health of what was just written.
    unread: Option<Instant>,
    /// Since when a newer revision is being applied.
    pending: Option<Instant>,
    /// Since when the Sync asks for something else than at the last pass.
    asked: Option<Instant>,
    /// What it asks for, by its number; none while that is being found out.
    order: Option<u64>,
    /// The newest such number, and by which Sync.
    ordered: Option<Ordered>,
    /// When a pass last changed something, or something was repaired beside one. A pass that changes nothing may follow before
    /// it is told.
    done: Option<Time>,
    /// When the repository had last nothing newer than the report is about.
    current: Option<Time>,
    /// Where the Sync may own objects, as far as this daemon knows.
    scope: Option<Scope>,
    /// The revision that rendered completely last.
    held: Option<HeldRevision>,
    /// Hooks that have run for the end of the Sync.
    ran: Vec<Finished>,
    waiting: Vec<oneshot::Sender<()>>,
    /// Events about revisions, repairs and prunes that are not written yet.
    queue: EventQueue,
    /// Changes that stand in no entry of the history yet.
    uncounted: Uncounted,
    /// The last commits of which author and subject are known.
    commits: Vec<Commit>,
    /// How long it took to apply a revision.
    took: Option<(Revision, Duration)>,
    /// What is said in Events only: types, reasons and notes.
    news: Vec<(&'static str, EventReason, String)>,
    written: Arc<SyncStatus>,
    /// What is for the status board.
    posting: Posting,
    /// The version of the Sync that our last write made.
    version: u64,
    /// The newest version that is known.
    latest: u64,
    /// In which of the server's histories that was.
    history: u64,
}

/// The order of a Sync, and the state of the Sync that gave it.
#[derive(Debug, PartialEq, Eq)]
struct Ordered {
    /// The number of the order.
    order: u64,
    /// The generation of the Sync, and the Sync to which it moves its objects, by which deletions are decided.
    generation: Option<i64>,
    moves_to: Option<Box<str>>,
}

/// How long it takes as a rule to learn how objects are that were just written.
const MOMENT: Duration = Duration::from_millis(400);
/// The most Events that wait to be written.
const MAX_NEWS: usize = 5;

impl Desk {
    pub(crate) fn new(context: Arc<Context>, name: SyncName) -> Self {
        let posting = Posting::new(context.board.is_read());
        let state = Mutex::new(State { posting, ..State::default() });
        Self(Arc::new(Inner { name, context, state, changed: Notify::new(), urgent: Notify::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What follows is of this one of the server's histories; of our writes in another nothing may be left.
    pub(crate) fn in_history(&self, history: u64) {
        let mut state = self.lock();
        if state.history != history {
            (state.history, state.version, state.latest) = (history, 0, 0);
        }
    }

    /// The Sync as the API server has it now: its identity, and the status that stands there.
    pub(crate) fn is(
        &self,
        uid: &str,
        generation: Option<i64>,
        suspended: bool,
        version: u64,
        stands: SyncStatus,
    ) {
        let mut state = self.lock();
        if *state.uid != *uid {
            let (since, history) = (Some(clock::now()), state.history);
            let posting = Posting::new(self.0.context.board.is_read());
            *state = State { uid: uid.into(), since, history, posting, ..State::default() };
            state.scope = stands.scope.clone();
        }
        let changed = state.generation != generation || state.suspended != suspended;
        if changed && !suspended && state.report.is_some() {
            // What was done so far may be no answer to what is asked for now.
            (state.asked, state.order) = (Some(clock::now()), None);
        }
        (state.generation, state.suspended) = (generation, suspended);
        // Our own write comes back as an event; an older one must not make us write again.
        state.latest = state.latest.max(version);
        let foreign = version > state.version && *state.written != stands;
        if foreign {
            state.written = Arc::new(stands);
        }
        drop(state);
        if changed || foreign {
            self.0.changed.notify_one();
        }
    }

    /// Notes the number of the newest order, and the Sync to which this one moves its objects.
    pub(crate) fn asks(&self, order: u64, moves_to: Option<Box<str>>) {
        let mut state = self.lock();
        state.is_followed = true;
        state.order = Some(order);
        state.ordered = Some(Ordered { order, generation: state.generation, moves_to });
        // Nothing that objects depend on has changed.
        let answered = state.report.as_ref().is_some_and(|report| report.order == order);
        let told = answered && state.asked.take().is_some();
        drop(state);
        if told {
            self.0.changed.notify_one();
        }
    }

    /// Why the Sync is not followed; none if it is.
    pub(crate) fn refuse(&self, refused: Option<Trouble>) {
        let mut state = self.lock();
        let changed = state.refused != refused || refused.is_some() && state.asked.is_some();
        if refused.is_some() {
            state.asked = None;
        }
        state.refused = refused;
        drop(state);
        if changed {
            self.0.changed.notify_one();
        }
    }

    /// The Sync is not followed any more, so that nothing is known of its objects.
    pub(crate) fn is_left(&self) {
        self.lock().is_followed = false;
    }

    /// True if this is the commit that is applied.
    pub(crate) fn has_applied(&self, revision: &Revision) -> bool {
        let state = self.lock();
        let applied = state.written.revision.as_ref().and_then(|revision| revision.applied.as_ref());
        applied == Some(&revision.to_string())
    }

    /// Takes in what was found or done.
    pub(crate) fn tell(&self, told: Told) {
        self.0.context.count(&self.0.name, &told);
        match told {
            Told::Seen { found: Ok(revision), source, request } => {
                let mut state = self.lock();
                state.source = None;
                let tag = revision.tag.map(|tag| tag.to_string());
                state.seen = Some(Sighting { revision: revision.to_string(), tag, source });
                if state.has_passed(&revision) {
                    state.current = Some(now());
                    state.request = request.or(state.request.take());
                } else {
                    // A pass will say more in a moment.
                    state.pending = Some(clock::now());
                }
            }
            Told::Seen { found: Err(trouble), request, .. } => {
                let mut state = self.lock();
                state.source = Some(trouble);
                state.request = request.or(state.request.take());
            }
            Told::Passed(report) if report.stopped => return self.lock().notes(&report),
            Told::Passed(report) => self.lock().passed(report),
            Told::Health(health, healths, waits) => {
                let mut state = self.lock();
                state.posting.healths(healths);
                let until = || clock::now() + MOMENT;
                state.unread = (health.unread > 0).then(|| state.unread.unwrap_or_else(until));
                (state.health, state.waits_for_health) = (Some(health), waits);
            }
            Told::Waits(waits) => {
                let mut state = self.lock();
                if state.waits == waits {
                    return;
                }
                // The pass that has found nothing to wait for says more in a moment; one that waits does not.
                state.pending = waits.is_none().then(clock::now);
                state.waits = waits;
            }
            Told::Rejected(rejected) => {
                if !self.lock().reject(rejected) {
                    return;
                }
            }
            Told::Moved(lineage) => {
                let mut state = self.lock();
                if !state.uid.is_empty() && state.news.len() < MAX_NEWS {
                    state.news.extend(lineage.news());
                }
            }
            Told::Verified(id, outcome) => {
                if !self.lock().verified(id, outcome) {
                    return;
                }
            }
        }
        self.changed();
    }

    fn changed(&self) {
        if self.lock().uid.is_empty() {
            // There is no Sync whose status could be written, and nothing to wait for.
            self.next();
        }
        self.0.changed.notify_one();
    }

    /// The status that is to be written, if it is not the one that stands.
    fn next(&self) -> Option<(Box<str>, Arc<SyncStatus>)> {
        let mut state = self.lock();
        // What is asked for may take long to find out, or to do.
        state.asked = state.asked.filter(|since| clock::since(*since) < PATIENCE);
        let report = state.report.as_deref();
        let Wrong { trouble, of_revision, refused } = state.trouble();
        let keeps = state.is_followed && report.is_some_and(|report| report.trouble.is_none());
        let empty = BTreeMap::new();
        let outcomes: &BTreeMap<ObjectId, Outcome> = report.map_or(&empty, |report| &report.outcomes);
        let files = |id: &ObjectId| Some(report?.set.as_ref()?.get(id)?.origin.to_string());
        let grant = state.grant(&self.0.name);
        let pass = report.and_then(|report| {
            let revision = report.revision.as_ref()?;
            Some(PassFacts {
                revision: revision.to_string(),
                tag: revision.tag.map(|tag| tag.to_string()),
                tree: report.tree.clone(),
                digest: report.digest.as_ref(),
                outcomes,
                files: &files,
                desired: report.desired,
                scope: state.scope.clone(),
                approval: report.approval.as_deref(),
                approved: report.approved.as_deref(),
                pending: report.pending,
                added: &report.added,
                finished: &report.finished,
                last_hooks: &report.last_hooks,
                remarks: &report.remarks,
                caution: report.caution.as_deref(),
                tries: &report.tries,
                rights: &report.rights,
                grant: &grant,
                took: state.took.as_ref().filter(|(of, _)| of == revision).map(|(_, took)| *took),
                changed: state.done.clone(),
            })
        });
        let speechless = pass.is_none() && trouble.is_none() && !state.suspended;
        let says_more_soon = state.says_more_soon() || speechless && state.waits_for_words();
        if says_more_soon && !state.uid.is_empty() {
            return state.first_lines();
        }
        let facts = Facts {
            behind: state.is_behind(),
            generation: state.generation,
            suspended: state.suspended,
            trouble: trouble.as_deref(),
            of_revision,
            refused,
            keeps,
            seen: state.seen.clone(),
            pass,
            rejected: state.rejected.as_ref(),
            health: state.health.as_deref(),
            waits_for_health: state.waits_for_health,
            commits: &state.commits,
            request: state.request.clone(),
            held_by: self.0.context.held_by.clone(),
            now: now(),
        };
        let next = status(&state.written, &facts);
        let next = Arc::new(state.completed(next));
        self.post(&mut state, &next);
        self.0.context.show(&self.0.name, &next, state.current.as_ref());
        state.differing(next)
    }
}

impl State {
    /// The status for the API server, if it says something else than the one that stands. Without an object there it stands at once.
    fn differing(&mut self, next: Arc<SyncStatus>) -> Option<(Box<str>, Arc<SyncStatus>)> {
        if self.uid.is_empty() {
            self.written = next;
            self.uncounted.stands();
            return None;
        }
        (next != self.written).then(|| (self.uid.clone(), next))
    }

    /// True if what is known now is not all that there is to say in a moment.
    fn says_more_soon(&self) -> bool {
        let pending = self.pending.is_some_and(|since| clock::since(since) < PATIENCE);
        let unread = self.unread.is_some_and(|until| clock::now() < until);
        pending || self.asked.is_some() || unread
    }

    /// True if the last pass is about an older commit or spec than is asked for now.
    fn is_behind(&self) -> bool {
        let is_older = |report: &Report| self.order != Some(report.order) || self.pending.is_some();
        !self.uid.is_empty() && self.report.as_deref().is_some_and(is_older)
    }
}

/// The time in whole seconds, as Kubernetes writes it.
fn now() -> Time {
    let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    Time(jiff::Timestamp::from_second(now.as_second()).unwrap_or(now))
}
