//! A log that is followed: text as the container writes it.
//!
//! In: bytes of the log. Out: harmless text. The right to read it is asked for again every
//! [`DECISION_AGE`], before further bytes go out. It ends with the log, after [`MAX_BYTES`],
//! when the right is gone, with the session, and with the daemon.

use std::convert::Infallible;

use futures::Stream;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::login::SessionEnd;
use super::rights::DECISION_AGE;
use super::viewer::{AccessQuestion, AccessReviews, Viewer};
use crate::serve::page::LogText;

/// The most bytes of one stream.
const MAX_BYTES: usize = 16 << 20;

/// A stream to one viewer.
pub(super) struct LogStream {
    log: mpsc::Receiver<Vec<u8>>,
    text: LogText,
    viewer: Viewer,
    reviews: AccessReviews,
    question: AccessQuestion,
    /// The end of the session.
    end: SessionEnd,
    /// Time of the last decision.
    reviewed: Instant,
    sent: usize,
    ending: watch::Receiver<bool>,
    is_done: bool,
    _place: OwnedSemaphorePermit,
}

impl LogStream {
    /// Creates the stream after the right was granted once.
    pub(super) fn new(
        log: mpsc::Receiver<Vec<u8>>,
        (reviews, viewer, end): (AccessReviews, Viewer, SessionEnd),
        (question, reviewed): (AccessQuestion, Instant),
        ending: watch::Receiver<bool>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let (text, sent, is_done) = (LogText::default(), 0, false);
        Self { log, text, viewer, reviews, question, end, reviewed, sent, ending, is_done, _place: place }
    }

    /// The texts, as they arrive.
    pub(super) fn into_texts(self) -> impl Stream<Item = Result<String, Infallible>> {
        futures::stream::unfold(self, |mut stream| async move {
            let text = stream.next().await?;
            Some((Ok(text), stream))
        })
    }

    /// The next text; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        while !self.is_done {
            let bytes = tokio::select! {
                // The review comes first, so that no byte goes out on an older decision.
                biased;
                _ = self.ending.wait_for(|ending| *ending) => return None,
                () = self.end.come() => None,
                () = sleep_until(self.reviewed + DECISION_AGE) => None,
                bytes = self.log.recv() => Some(bytes),
            };
            match bytes {
                None if self.end.has_come() => {
                    return Some(self.say_end("your session has ended"));
                }
                None => {
                    let asked = Instant::now();
                    match self.reviews.is_allowed(&self.viewer, self.question.clone()).await {
                        Ok(true) => self.reviewed = asked,
                        Ok(false) => return Some(self.say_end("you may not read this log any more")),
                        Err(_) => return Some(self.say_end("your permission could not be confirmed")),
                    }
                }
                Some(None) => return Some(self.say_end("the log has ended, or its time limit is reached")),
                Some(Some(bytes)) => {
                    let text = self.text.push(&bytes);
                    self.sent += text.len();
                    if self.sent > MAX_BYTES {
                        return Some(text + &self.say_end("a longer log is not sent at once"));
                    }
                    if !text.is_empty() {
                        return Some(text);
                    }
                }
            }
        }
        None
    }

    /// Ends the stream with a line that says why.
    fn say_end(&mut self, why: &str) -> String {
        self.is_done = true;
        self.log.close();
        format!("{}\n[moorline: {why}]\n", self.text.finish())
    }
}
