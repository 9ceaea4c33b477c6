//! Renews an acquired Lease, and releases it.
//!
//! In: the Lease as acquired.
//! Out: [`Leadership`], with a [`WritePermit`] that is valid while no other daemon can have taken
//! the Lease, and a [`LeaseLoss`] when it is lost.
//!
//! Each renewal is one write with the resourceVersion of the last. It moves the permit's deadline
//! to `renew_deadline` after its request *began*: the server cannot have written it earlier, no
//! other daemon can have read it earlier, and none may take the Lease sooner than `duration` after
//! having read it. The time between the two is for the last write that began under the permit. A
//! deadline that has passed is final, even if a late response says otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::clock::Moment;
use super::decide::{LeaseHolder, current_holder};
use super::requests::{LeaseClient, LeaseRequestError, late};
use super::tenure::Tenure;
use super::write_permit::WritePermit;
use super::{LeaseError, LeaseTimings};
use moorline_journal::Journal;

/// Capacity of the queue of annotation writes; further writers wait.
const NOTES: usize = 8;

/// Reason for losing a Lease.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseLoss {
    /// Another daemon holds it.
    #[error("{holder} holds the Lease now")]
    Taken {
        /// The new holder.
        holder: Box<str>,
    },
    /// Our name was removed from the Lease.
    #[error("the holder of the Lease was cleared")]
    Cleared,
    /// It was not renewed in time.
    #[error("the Lease was not renewed in time: {cause}")]
    NotRenewed {
        /// The last error.
        cause: Box<str>,
    },
}

/// Annotations to write, and the channel that reports the write.
#[derive(Debug)]
struct Note {
    entries: BTreeMap<String, String>,
    written: oneshot::Sender<()>,
}

/// Writes annotations onto a held Lease; cheap to clone.
#[derive(Debug, Clone)]
pub struct AnnotationWriter(mpsc::Sender<Note>);

impl AnnotationWriter {
    /// Writes annotations; returns true once they are written, and false if the Lease is lost.
    pub async fn write(&self, entries: BTreeMap<String, String>) -> bool {
        let (written, acknowledged) = oneshot::channel();
        self.0.send(Note { entries, written }).await.is_ok() && acknowledged.await.is_ok()
    }
}

/// The Lease before it was acquired.
pub(super) struct PreviousLease {
    /// Its annotations.
    pub(super) notes: BTreeMap<String, String>,
    /// Its last tenure; none if there was no Lease.
    pub(super) before: Option<Tenure>,
}

/// A held Lease. Dropping it without [`Leadership::release`] ends the permit at once, and other
/// daemons wait until the term has ended.
#[derive(Debug)]
pub struct Leadership {
    permit: WritePermit,
    found: BTreeMap<String, String>,
    before: Option<Tenure>,
    tenure: Tenure,
    timings: LeaseTimings,
    loss: watch::Receiver<Option<LeaseLoss>>,
    journal: Arc<OnceLock<Journal>>,
    notes: AnnotationWriter,
    /// Dropped to stop the renewals.
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<(LeaseClient, Option<Lease>)>,
}

impl Leadership {
    /// Starts to renew `lease`, which was written by a request that began at `begun`; `found` is
    /// the Lease before it.
    pub(super) fn begin(requests: LeaseClient, lease: Lease, found: PreviousLease, begun: Moment) -> Self {
        let timings = requests.timings;
        let deadline = begun + timings.renew_deadline;
        let permit = WritePermit::until(deadline, timings.request, requests.clock);
        let (stop, stopped) = oneshot::channel();
        let (tell, loss) = watch::channel(None);
        let (notes, asked) = mpsc::channel(NOTES);
        let (tenure, journal) = (Tenure::of(&lease), requests.journal.clone());
        let seat = Seat { requests, lease, deadline, permit: permit.clone(), waiting: Vec::new() };
        let task = tokio::spawn(seat.keep(stopped, asked, tell));
        let PreviousLease { notes: found, before } = found;
        Self {
            permit,
            found,
            before,
            tenure,
            timings,
            loss,
            journal,
            notes: AnnotationWriter(notes),
            stop: Some(stop),
            task,
        }
    }

    /// Returns the permit to write during this leadership.
    pub fn permit(&self) -> WritePermit {
        self.permit.clone()
    }

    /// True if the Lease had no other holder between an earlier leadership and this one.
    pub fn follows_without_gap(&self, earlier: &Self) -> bool {
        earlier.tenure.lasted_until(self.before.as_ref())
    }

    /// Annotations that were on the Lease when it was acquired, as a predecessor wrote them.
    pub fn previous_annotations(&self) -> &BTreeMap<String, String> {
        &self.found
    }

    /// Anchors a journal: every renewal, and the release, repeats its head. No request is added.
    pub fn anchor(&self, journal: &Journal) {
        // A leadership has one journal.
        let _ = self.journal.set(journal.clone());
    }

    /// Writes annotations onto the Lease; returns when they are written. They describe work done
    /// under the claim and, unlike the claim's record, do not restrict other candidates.
    ///
    /// # Guarantees
    ///
    /// The annotations are sent with a renewal, under the resourceVersion of the last one.
    ///
    /// # Cancellation
    ///
    /// Dropping the future does not withdraw the write.
    ///
    /// # Errors
    ///
    /// [`LeaseLoss`] if the Lease is lost before they are written.
    pub async fn write_annotations(&self, entries: BTreeMap<String, String>) -> Result<(), LeaseLoss> {
        if self.notes.write(entries).await { Ok(()) } else { Err(self.wait_until_lost().await) }
    }

    /// Returns a handle for writing annotations without owning the leadership.
    pub fn annotation_writer(&self) -> AnnotationWriter {
        self.notes.clone()
    }

    /// Waits until the Lease is lost. The permit has ended by then.
    pub async fn wait_until_lost(&self) -> LeaseLoss {
        let mut loss = self.loss.clone();
        let ended = || LeaseLoss::NotRenewed { cause: "the task that renews it has ended".into() };
        match loss.wait_for(Option::is_some).await {
            Ok(loss) => loss.clone().unwrap_or_else(ended),
            Err(_) => ended(),
        }
    }

    /// Releases the Lease, so that the next holder need not wait. Call it when no write is in
    /// flight any more: the next holder may start at once.
    ///
    /// # Guarantees
    ///
    /// The permit ends before the request. Takes no longer than `request`.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves the Lease to end with its term.
    ///
    /// # Errors
    ///
    /// [`LeaseError::NotReleased`] if the API server did not accept the release in time.
    pub async fn release(mut self) -> Result<(), LeaseError> {
        self.permit.end();
        self.stop = None;
        let deadline = Instant::now() + self.timings.request;
        let name = |requests: &LeaseClient| requests.claim.full_name();
        let failed =
            |lease, trouble: LeaseRequestError| LeaseError::NotReleased { lease, cause: trouble.cause() };
        // The task ends after its current wait, so this covers only a panic of the task.
        let Ok((requests, lease)) = (&mut self.task).await else { return Ok(()) };
        let Some(lease) = lease else { return Ok(()) };
        let answer = tokio::time::timeout_at(deadline, give_back(&requests, lease)).await;
        let answer = answer.unwrap_or_else(|_| Err(late(self.timings.request)));
        answer.map_err(|trouble| failed(name(&requests), trouble))
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        // No receiver for a loss is left. The task ends when the sender beside it is dropped.
        self.permit.end();
    }
}

/// Clears the holder; reads the Lease again if a renewal that was cut off had succeeded after all.
async fn give_back(requests: &LeaseClient, lease: Lease) -> Result<(), LeaseRequestError> {
    match requests.release(&lease).await {
        Ok(_) => return Ok(()),
        Err(LeaseRequestError::Conflict) => {}
        Err(other) => return Err(other),
    }
    let found = requests.read().await?;
    match (current_holder(found.as_ref(), &requests.claim.identity), &found) {
        (LeaseHolder::Ours, Some(lease)) => requests.release(lease).await.map(drop),
        (LeaseHolder::Ours | LeaseHolder::Deleted | LeaseHolder::Cleared | LeaseHolder::Theirs(_), _) => {
            Ok(())
        }
    }
}

/// The task that renews a held Lease.
struct Seat {
    requests: LeaseClient,
    lease: Lease,
    /// End of the permit.
    deadline: Moment,
    permit: WritePermit,
    /// Callers that wait for their annotations to be written.
    waiting: Vec<oneshot::Sender<()>>,
}

/// Result of one attempt to renew.
enum Attempt {
    Renewed,
    Again(Box<str>),
    Lost(LeaseLoss),
}

impl Seat {
    /// Renews until the Lease is lost or the leadership is dropped. Returns the Lease if it is
    /// still ours.
    async fn keep(
        mut self,
        mut stopped: oneshot::Receiver<()>,
        mut notes: mpsc::Receiver<Note>,
        tell: watch::Sender<Option<LeaseLoss>>,
    ) -> (LeaseClient, Option<Lease>) {
        let loss = tokio::select! {
            biased;
            _ = &mut stopped => None,
            loss = self.until_lost(&mut notes) => Some(loss),
        };
        self.permit.end();
        let Some(loss) = loss else { return (self.requests, Some(self.lease)) };
        tracing::warn!(lease = %self.requests.claim.full_name(), "lost the Lease: {loss}");
        // Waiting annotation writers are dropped only after the loss can be read.
        let _ = tell.send(Some(loss));
        (self.requests, None)
    }

    async fn until_lost(&mut self, notes: &mut mpsc::Receiver<Note>) -> LeaseLoss {
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
                    // The renewal that carries the annotations is the one of this period.
                    ticks.reset();
                }
            }
            // Measured by the clock that runs while the machine sleeps; the timers above do not.
            let left = self.time_left();
            if left.is_zero() {
                let cause = trouble.unwrap_or_else(|| "this process or its machine was suspended".into());
                return LeaseLoss::NotRenewed { cause };
            }
            let attempt = tokio::time::timeout(left, self.renew()).await;
            match attempt.unwrap_or_else(|_| Attempt::Again(late(left).cause())) {
                Attempt::Renewed => {
                    if trouble.take().is_some() {
                        tracing::info!(lease = %self.requests.claim.full_name(), "the Lease is renewed again");
                    }
                }
                Attempt::Again(cause) => self.complain(&mut trouble, cause),
                Attempt::Lost(loss) => return loss,
            }
        }
    }

    /// Logs each new error once.
    fn complain(&self, trouble: &mut Option<Box<str>>, cause: Box<str>) {
        if trouble.as_ref() != Some(&cause) {
            let left = self.time_left();
            tracing::warn!(
                lease = %self.requests.claim.full_name(),
                "cannot renew the Lease, which expires in {left:.1?}: {cause}"
            );
        }
        *trouble = Some(cause);
    }

    fn time_left(&self) -> Duration {
        self.requests.clock.now().time_until(self.deadline)
    }

    /// Renews once: one request, unless another manager wrote in between.
    async fn renew(&mut self) -> Attempt {
        let begun = self.requests.clock.now();
        match self.requests.hold(Some(&self.lease)).await {
            Ok(lease) => return self.renewed(lease, begun),
            Err(LeaseRequestError::Conflict) => {}
            Err(other) => return Attempt::Again(other.cause()),
        }
        let found = match self.requests.read().await {
            Ok(found) => found,
            Err(trouble) => return Attempt::Again(trouble.cause()),
        };
        match current_holder(found.as_ref(), &self.requests.claim.identity) {
            // Candidates that knew the Lease wait out our term even if it was deleted, so it can be
            // created again; if another daemon was faster, this fails and the next read shows the
            // holder.
            LeaseHolder::Ours | LeaseHolder::Deleted => {}
            LeaseHolder::Cleared => return Attempt::Lost(LeaseLoss::Cleared),
            LeaseHolder::Theirs(holder) => return Attempt::Lost(LeaseLoss::Taken { holder: holder.into() }),
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
            return Attempt::Lost(LeaseLoss::NotRenewed {
                cause: "the answer came after the deadline".into(),
            });
        }
        self.deadline = deadline;
        for waiting in self.waiting.drain(..) {
            // The caller may be gone.
            let _ = waiting.send(());
        }
        Attempt::Renewed
    }
}
