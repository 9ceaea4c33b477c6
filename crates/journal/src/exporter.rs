//! Sends lines to a collector, on a thread of its own.
//!
//! In: lines that are written already, from the thread of the journal. Out: batches. Nobody waits
//! for it: beyond the bound of the queue, and after the last attempt, lines are dropped and
//! counted.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::journal::JournalEvent;
use crate::otlp::{ExportAnswer, ExportedLine, NextStep, Origin, batch_body, next_step};

/// Lines that wait at most.
const MAX_QUEUED_LINES: usize = 4096;
/// The most lines of a batch.
const MAX_BATCH_LINES: usize = 256;
/// The most bytes of the lines of a batch; a longer line is a batch of its own.
const MAX_BATCH_BYTES: usize = 512 * 1024;

/// Sends a body, and returns the answer; it must end by itself.
pub type SendBatch = Box<dyn FnMut(&[u8]) -> ExportAnswer + Send>;

/// Queue between the thread of the journal and the one that sends; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Exporter(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<ExportedLine>,
    sending: bool,
    closed: bool,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("queued", &self.lock().lines.len()).finish_non_exhaustive()
    }
}

impl Exporter {
    /// Starts the thread that sends.
    pub(crate) fn start(
        origin: Origin,
        mut send: SendBatch,
        observe: impl Fn(JournalEvent) + Send + 'static,
    ) -> io::Result<Self> {
        let exporter = Self::default();
        let thread = exporter.clone();
        std::thread::Builder::new().name("journal-export".to_owned()).spawn(move || {
            let mut failing = false;
            while let Some(batch) = thread.next_batch() {
                let count = batch.len() as u64;
                let taken = thread.send_batch(&batch_body(&batch, &origin), &mut send);
                let (dropped, turn) = judge(taken, count, &mut failing);
                observe(JournalEvent::Exported(count - dropped));
                if dropped > 0 {
                    observe(JournalEvent::Dropped(dropped));
                }
                match turn {
                    Some(Turn::Stops(why)) => tracing::warn!(
                        "the collector of the journal takes no lines, and they are dropped: {why}"
                    ),
                    Some(Turn::Resumes) => {
                        tracing::info!("the collector of the journal takes lines again");
                    }
                    None => {}
                }
            }
        })?;
        Ok(exporter)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line; false if there is no room for it.
    pub(crate) fn push(&self, line: ExportedLine) -> bool {
        let mut state = self.lock();
        let has_room = state.lines.len() < MAX_QUEUED_LINES;
        if has_room {
            state.lines.push_back(line);
        }
        drop(state);
        self.0.wake.notify_all();
        has_room
    }

    /// True if no line waits and none is being sent.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.lines.is_empty() && !state.sending
    }

    /// Ends the thread after the attempt that runs.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.0.wake.notify_all();
    }

    /// Waits for lines; none once the exporter is closed.
    fn next_batch(&self) -> Option<Vec<ExportedLine>> {
        let mut state = self.lock();
        state.sending = false;
        loop {
            if state.closed {
                return None;
            }
            if !state.lines.is_empty() {
                state.sending = true;
                let (mut batch, mut bytes) = (Vec::new(), 0_usize);
                while let Some(line) = state.lines.front() {
                    bytes = bytes.saturating_add(line.text.len());
                    let is_full = batch.len() >= MAX_BATCH_LINES || bytes > MAX_BATCH_BYTES;
                    if is_full && !batch.is_empty() {
                        break;
                    }
                    batch.extend(state.lines.pop_front());
                }
                return Some(batch);
            }
            state = self.0.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sends a batch until it is taken or given up; returns the number of lines that the collector
    /// rejected, or the reason of the last failure.
    fn send_batch(&self, body: &[u8], send: &mut SendBatch) -> Result<u64, String> {
        let mut attempt = 1;
        loop {
            let answer = send(body);
            let why = match &answer {
                ExportAnswer::Status(code, _) => format!("it answers {code}"),
                ExportAnswer::Silence(why) => why.clone(),
            };
            match next_step(attempt, &answer) {
                NextStep::Done { rejected } => return Ok(rejected),
                NextStep::GiveUp => return Err(why),
                NextStep::Retry(pause) => {
                    if !self.pause(pause) {
                        return Err(why);
                    }
                }
            }
            attempt += 1;
        }
    }

    /// Waits before another attempt; false once the exporter is closed.
    fn pause(&self, pause: Duration) -> bool {
        let waited = self.0.wake.wait_timeout_while(self.lock(), pause, |state| !state.closed);
        !waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }
}

/// Turn of a collector that is logged.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// It takes no lines any more, with the reason.
    Stops(String),
    /// It takes lines again.
    Resumes,
}

/// Returns how many of `count` lines were dropped, and the turn. The collector is failing after a
/// batch of which it took no line.
fn judge(taken: Result<u64, String>, count: u64, failing: &mut bool) -> (u64, Option<Turn>) {
    let dropped = taken.as_ref().map_or(count, |rejected| (*rejected).min(count));
    let fails = dropped == count;
    let turn = match (fails, std::mem::replace(failing, fails)) {
        (true, false) => Some(Turn::Stops(taken.err().unwrap_or_else(|| "it rejects each line".to_owned()))),
        (false, true) => Some(Turn::Resumes),
        (true, true) | (false, false) => None,
    };
    (dropped, turn)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::chain::Chain;
    use crate::entry::Entry;

    fn line(chain: &mut Chain, bytes: usize) -> ExportedLine {
        let entry = Entry { object: Some("x".repeat(bytes)), ..Entry::default() };
        ExportedLine { text: chain.append(&entry), place: chain.head(), entry }
    }

    #[test]
    fn batches_are_bounded_and_what_finds_no_room_is_refused() {
        let (exporter, mut chain) = (Exporter::default(), Chain::default());
        let pushed = (0..MAX_QUEUED_LINES + 5).filter(|_| exporter.push(line(&mut chain, 10))).count();
        assert_eq!(pushed, MAX_QUEUED_LINES);
        assert_eq!(exporter.next_batch().unwrap().len(), MAX_BATCH_LINES);
        while !exporter.lock().lines.is_empty() {
            drop(exporter.next_batch());
        }
        exporter.push(line(&mut chain, 2 * MAX_BATCH_BYTES));
        exporter.push(line(&mut chain, 10));
        assert_eq!(exporter.next_batch().unwrap().len(), 1, "a long line goes alone");
        assert!(!exporter.is_idle());
        exporter.close();
        assert!(exporter.next_batch().is_none());
    }

    #[test]
    fn lines_are_sent_in_order_and_what_is_refused_is_counted() {
        let (bodies, sent) = channel();
        let (events, seen) = channel();
        let answers = std::cell::Cell::new(0);
        let send: SendBatch = Box::new(move |body| {
            bodies.send(body.to_vec()).unwrap();
            answers.set(answers.get() + 1);
            if answers.get() == 1 {
                ExportAnswer::Status(403, Vec::new())
            } else {
                ExportAnswer::Status(200, Vec::new())
            }
        });
        let origin = Origin { daemon: "d".to_owned(), program: "0".to_owned() };
        let exporter = Exporter::start(origin, send, move |event| events.send(event).unwrap()).unwrap();
        let mut chain = Chain::default();
        let first = line(&mut chain, 1);
        exporter.push(first.clone());
        let body = String::from_utf8(sent.recv().unwrap()).unwrap();
        assert!(body.contains(&first.place.hash.to_string()), "{body}");
        assert_eq!(
            (seen.recv().unwrap(), seen.recv().unwrap()),
            (JournalEvent::Exported(0), JournalEvent::Dropped(1))
        );
        exporter.push(line(&mut chain, 1));
        assert_eq!(seen.recv().unwrap(), JournalEvent::Exported(1));
        exporter.close();
    }

    #[test]
    fn a_collector_that_rejects_each_line_takes_none() {
        let stops = |why: &str| Some(Turn::Stops(why.to_owned()));
        let mut failing = false;
        for (at, (taken, expect)) in [
            (Ok(0), (0, None)),
            (Ok(5), (4, stops("it rejects each line"))),
            (Err("gone"), (4, None)),
            (Ok(4), (4, None)),
            (Ok(3), (3, Some(Turn::Resumes))),
            (Err("gone"), (4, stops("gone"))),
            (Ok(0), (0, Some(Turn::Resumes))),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(judge(taken.map_err(str::to_owned), 4, &mut failing), expect, "batch {at}");
        }
    }
}
