//! Keeps a Lease that was won, and gives it back.
//!
//! In: the Lease as it was won. Out: [`Leadership`], with a [`Permit`] that is good as long as nobody else can have
//! taken the Lease, and [`Loss`] when it is lost.
//!
//! Each renewal is one write with the resourceVersion of the last. It moves the permit's deadline to `renew_deadline`
//! after its request *began*: the server cannot have written it earlier, nobody can have seen it earlier than that,
//! and nobody may take the Lease sooner than `duration` after having seen it. What lies between the two is for the
//! last write that began under the permit. A deadline that has passed is final, whatever a late answer says.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::clock::Moment;
use super::decide::{Standing, standing};
use super::permit::Permit;
use super::requests::{Requests, Trouble, late};
use super::tenure::Tenure;
use super::{LeaseError, Timings};

/// Notes that wait to be written; who has more to say waits as well.
const NOTES: usize = 8;

/// Why a Lease is no longer ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// It names another.
    #[error("{holder} holds the Lease now")]
    Taken {
        /// Who.
        holder: Box<str>,
    },
    /// Somebody removed our name from it.
    #[error("somebody cleared the holder of the Lease")]
    Cleared,
    /// It could not be renewed in time.
    #[error("the Lease was not renewed in time: {cause}")]
    Late {
        /// What went wrong last.
        cause: Box<str>,
    },
}

/// Annotations to write, and whom to tell when they are written.
#[derive(Debug)]
struct Note {
    entries: BTreeMap<String, String>,
    written: oneshot::Sender<()>,
}

/// The way to write annotations onto a Lease that is held; cheap to clone.
#[derive(Debug, Clone)]
pub struct Notes(mpsc::Sender<Note>);

impl Notes {
    /// Writes annotations; returns when they are written, and false if the Lease is lost.
    pub async fn write(&self, entries: BTreeMap<String, String>) -> bool {
        let (written, told) = oneshot::channel();
        self.0.send(Note { entries, written }).await.is_ok() && told.await.is_ok()
    }
}

/// The Lease as it was before it was won.
pub(super) struct Found {
    /// Its annotations.
    pub(super) notes: BTreeMap<String, String>,
    /// Its last tenure; none if there was no Lease.
    pub(super) before: Option<Tenure>,
}

/// A Lease that is held. Dropped without [`Leadership::release`], it ends the permit at once, and others wait until
/// the term has passed.
#[derive(Debug)]
pub struct Leadership {
    permit: Permit,
    found: BTreeMap<String, String>,
    before: Option<Tenure>,
    tenure: Tenure,
    timings: Timings,
    loss: watch::Receiver<Option<Loss>>,
    notes: Notes,
    /// Dropped to stop the renewals.
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<(Requests, Option<Lease>)>,
}

impl Leadership {
    /// Begins to renew `lease`, which was written by a request that began at `begun`; `found` is
    /// what it was before.
    pub(super) fn begin(requests: Requests, lease: Lease, found: Found, begun: Moment) -> Self {
        let timings = requests.timings;
        let deadline = begun + timings.renew_deadline;
        let permit = Permit::until(deadline, timings.request, requests.clock);
        let (stop, stopped) = oneshot::channel();
        let (tell, loss) = watch::channel(None);
        let (notes, asked) = mpsc::channel(NOTES);
        let tenure = Tenure::of(&lease);
        let seat = Seat { requests, lease, deadline, permit: permit.clone(), waiting: Vec::new() };
        let task = tokio::spawn(seat.keep(stopped, asked, tell));
        let Found { notes: found, before } = found;
        Self { permit, found, before, tenure, timings, loss, notes: Notes(notes), stop: Some(stop), task }
    }

    /// The right to write while this lasts.
    pub fn permit(&self) -> Permit {
        self.permit.clone()
    }

    /// True if nobody held the Lease between an earlier term and this one.
    pub fn follows(&self, earlier: &Self) -> bool {
        earlier.tenure.lasted_until(self.before.as_ref())
    }

    /// The annotations that were on the Lease when it was won: what a predecessor noted.
    pub fn found(&self) -> &BTreeMap<String, String> {
        &self.found
    }

    /// Writes annotations onto the Lease; returns when they are written. They say what was done under the claim and,
    /// unlike the claim's record, keep nobody from taking it.
    pub async fn note(&self, entries: BTreeMap<String, String>) -> Result<(), Loss> {
        if self.notes.write(entries).await { Ok(()) } else { Err(self.lost().await) }
    }

    /// The way to write annotations, for whoever does not hold the Lease itself.
    pub fn notes(&self) -> Notes {
        self.notes.clone()
    }

    /// Waits until the Lease is lost. The permit has ended by then.
    pub async fn lost(&self) -> Loss {
        let mut loss = self.loss.clone();
        let ended = || Loss::Late { cause: "the task that renews it has ended".into() };
        match loss.wait_for(Option::is_some).await {
            Ok(loss) => loss.clone().unwrap_or_else(ended),
            Err(_) => ended(),
        }
    }

    /// Gives the Lease back, so that the next holder need not wait. To be called when no write is on its way any
    /// more: the next holder may begin at once. Takes no longer than a request may.
    pub async fn release(mut self) -> Result<(), LeaseError> {
        self.permit.end();
        self.stop = None;
        let deadline = Instant::now() + self.timings.request;
        let name = |requests: &Requests| requests.claim.full_name();
        let failed = |lease, trouble: Trouble| LeaseError::NotReleased { lease, cause: trouble.cause() };
        // It ends with its present wait, so that this is only for a task that panicked.
        let Ok((requests, lease)) = (&mut self.task).await else { return Ok(()) };
        let Some(lease) = lease else { return Ok(()) };
        let answer = tokio::time::timeout_at(deadline, give_back(&requests, lease)).await;
        let answer = answer.unwrap_or_else(|_| Err(late(self.timings.request)));
        answer.map_err(|trouble| failed(name(&requests), trouble))
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        // Nobody would hear of a loss any more. The task ends when the sender beside it is dropped.
        self.permit.end();
    }
}

/// Clears the holder; another look where the renewal that was cut short had been carried out all the same.
async fn give_back(requests: &Requests, lease: Lease) -> Result<(), Trouble> {
    match requests.release(&lease).await {
        Ok(_) => return Ok(()),
        Err(Trouble::Conflict) => {}
        Err(other) => return Err(other),
    }
    let found = requests.read().await?;
    match (standing(found.as_ref(), &requests.claim.identity), &found) {
        (Standing::Ours, Some(lease)) => requests.release(lease).await.map(drop),
        (Standing::Ours | Standing::Deleted | Standing::Cleared | Standing::Theirs(_), _) => Ok(()),
    }
}

/// The holder's side of a Lease.
struct Seat {
    requests: Requests,
    lease: Lease,
    /// When the permit ends.
    deadline: Moment,
    permit: Permit,
    /// Who waits for their notes to be written.
    waiting: Vec<oneshot::Sender<()>>,
}

/// What came of one attempt to renew.
enum Attempt {
    Renewed,
    Again(Box<str>),
    Lost(Loss),
}

impl Seat {
    /// Renews until the Lease is lost or nobody wants it any more. Gives the Lease if it is still ours.
    async fn keep(
        mut self,
        mut stopped: oneshot::Receiver<()>,
        mut notes: mpsc::Receiver<Note>,
        tell: watch::Sender<Option<Loss>>,
    ) -> (Requests, Option<Lease>) {
        let loss = tokio::select! {
            biased;
            _ = &mut stopped => None,
            loss = self.until_lost(&mut notes) => Some(loss),
        };
        self.permit.end();
        let Some(loss) = loss else { return (self.requests, Some(self.lease)) };
        tracing::warn!(lease = %self.requests.claim.full_name(), "lost the Lease: {loss}");
        // Notes that nobody will write are answered only when the loss can be asked for.
        let _ = tell.send(Some(loss));
        (self.requests, None)
    }

    async fn until_lost(&mut self, notes: &mut mpsc::Receiver<Note>) -> Loss {
        let mut ticks = tokio::time::interval(self.requests.timings.retry);
        // After a delay one renewal is enough.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.reset();
        let mut trouble: Option<Box<str>> = None;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = tokio::time::sleep(self.time_left()) => {}
                Some(note) = notes.recv() => {
                    self.requests.claim.record.extend(note.entries);
                    self.waiting.push(note.written);
                    // The renewal that carries the note is the one of this period.
                    ticks.reset();
                }
            }
            // By the clock that runs while the machine sleeps: the timers above do not.
            let left = self.time_left();
            if left.is_zero() {
                let cause = trouble.unwrap_or_else(|| "this process or its machine stood still".into());
                return Loss::Late { cause };
            }
            let attempt = tokio::time::timeout(left, self.renew()).await;
            match attempt.unwrap_or_else(|_| Attempt::Again(late(left).cause())) {
                Attempt::Renewed => {
                    if trouble.take().is_some() {
                        tracing::info!(lease = %self.requests.claim.full_name(), "renewed the Lease again");
                    }
                }
                Attempt::Again(cause) => self.complain(&mut trouble, cause),
                Attempt::Lost(loss) => return loss,
            }
        }
    }

    /// Says each new trouble once.
    fn complain(&self, trouble: &mut Option<Box<str>>, cause: Box<str>) {
        if trouble.as_ref() != Some(&cause) {
            let left = self.time_left();
            tracing::warn!(
                lease = %self.requests.claim.full_name(),
                "cannot renew the Lease, which ends in {left:.1?}: {cause}"
            );
        }
        *trouble = Some(cause);
    }

    fn time_left(&self) -> Duration {
        self.requests.clock.now().until(self.deadline)
    }

    /// One renewal: one request, unless somebody else wrote in between.
    async fn renew(&mut self) -> Attempt {
        let begun = self.requests.clock.now();
        match self.requests.hold(Some(&self.lease)).await {
            Ok(lease) => return self.renewed(lease, begun),
            Err(Trouble::Conflict) => {}
            Err(other) => return Attempt::Again(other.cause()),
        }
        let found = match self.requests.read().await {
            Ok(found) => found,
            Err(trouble) => return Attempt::Again(trouble.cause()),
        };
        match standing(found.as_ref(), &self.requests.claim.identity) {
            // A candidate that knew the Lease waits out our term even if it was deleted, so that it can be made
            // anew; if another was faster, this fails and the next look shows who.
            Standing::Ours | Standing::Deleted => {}
            Standing::Cleared => return Attempt::Lost(Loss::Cleared),
            Standing::Theirs(holder) => return Attempt::Lost(Loss::Taken { holder: holder.into() }),
        }
        let begun = self.requests.clock.now();
        match self.requests.hold(found.as_ref()).await {
            Ok(lease) => self.renewed(lease, begun),
            Err(trouble) => Attempt::Again(trouble.cause()),
        }
    }

    fn renewed(&mut self, lease: Lease, begun: Moment) -> Attempt {
        self.lease = lease;
        let deadline = begun + self.requests.timings.renew_deadline;
        if !self.permit.extend(deadline) {
            return Attempt::Lost(Loss::Late { cause: "the answer came after the deadline".into() });
        }
        self.deadline = deadline;
        for waiting in self.waiting.drain(..) {
            // Whoever asked may have gone.
            let _ = waiting.send(());
        }
        Attempt::Renewed
    }
}
