//! Reads bodies of webhook calls within a shared budget of bytes.
//!
//! In: bodies, as they arrive. Out: whole bodies. When the budget is used up, the body that has
//! been read for the longest time is aborted: a fast call gets through, no matter how many slow
//! ones hold bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes};
use futures::StreamExt as _;
use tokio::sync::Notify;

/// The most bytes of unfinished bodies.
const BUDGET: usize = 16 << 20;

/// The unfinished bodies.
#[derive(Debug, Default)]
pub(super) struct BodyReader(Mutex<OpenBodies>);

#[derive(Debug, Default)]
struct OpenBodies {
    next: u64,
    bytes: usize,
    open: BTreeMap<u64, OpenBody>,
}

#[derive(Debug)]
struct OpenBody {
    bytes: usize,
    abort: Arc<Notify>,
}

/// The reason why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyError {
    /// It is too long, or was cut off.
    Invalid,
    /// It was aborted, because newer ones needed its bytes.
    Aborted,
}

/// One unfinished body. Dropping it frees its bytes.
struct BodyGuard<'a> {
    reading: &'a BodyReader,
    number: u64,
    abort: Arc<Notify>,
}

impl BodyReader {
    /// Reads a body of at most `most` bytes.
    pub(super) async fn read(&self, body: Body, most: usize) -> Result<Vec<u8>, BodyError> {
        let part = self.register();
        let (mut stream, mut whole) = (body.into_data_stream(), Vec::new());
        loop {
            let chunk = tokio::select! {
                biased;
                () = part.abort.notified() => return Err(BodyError::Aborted),
                chunk = stream.next() => chunk,
            };
            let chunk: Bytes = match chunk {
                None => return Ok(whole),
                Some(Ok(chunk)) => chunk,
                Some(Err(_)) => return Err(BodyError::Invalid),
            };
            if whole.len() + chunk.len() > most {
                return Err(BodyError::Invalid);
            }
            self.add_bytes(part.number, chunk.len());
            whole.extend_from_slice(&chunk);
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenBodies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self) -> BodyGuard<'_> {
        let mut bodies = self.lock();
        bodies.next += 1;
        let (number, give_up) = (bodies.next, Arc::new(Notify::new()));
        bodies.open.insert(number, OpenBody { bytes: 0, abort: give_up.clone() });
        BodyGuard { reading: self, number, abort: give_up }
    }

    /// Adds bytes to a body, and aborts the oldest ones while there are too many.
    fn add_bytes(&self, number: u64, bytes: usize) {
        let mut bodies = self.lock();
        let Some(held) = bodies.open.get_mut(&number) else { return };
        held.bytes += bytes;
        bodies.bytes += bytes;
        while bodies.bytes > BUDGET {
            let Some((_, oldest)) = bodies.open.pop_first() else { break };
            bodies.bytes -= oldest.bytes;
            oldest.abort.notify_one();
        }
    }
}

impl Drop for BodyGuard<'_> {
    fn drop(&mut self) {
        let mut bodies = self.reading.lock();
        if let Some(held) = bodies.open.remove(&self.number) {
            bodies.bytes -= held.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_body_is_given_up_when_bytes_run_out() {
        let reading = BodyReader::default();
        let parts: Vec<BodyGuard<'_>> = (0..4).map(|_| reading.register()).collect();
        for part in &parts {
            reading.add_bytes(part.number, BUDGET / 4);
        }
        let given_up = |part: &BodyGuard<'_>| !reading.lock().open.contains_key(&part.number);
        assert!(!parts.iter().any(given_up));
        let new = reading.register();
        reading.add_bytes(new.number, 1);
        assert!(given_up(&parts[0]) && !parts[1..].iter().any(given_up) && !given_up(&new));
        // The bytes of a finished body are freed, and those of an aborted one only once.
        drop((parts, new));
        let bodies = reading.lock();
        assert_eq!((bodies.bytes, bodies.open.len()), (0, 0));
    }
}
