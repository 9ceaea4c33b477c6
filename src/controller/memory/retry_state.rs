//! Retry state of an object that could not be written.

use jiff::Timestamp;

use crate::api::SpecHash;
use crate::controller::schedule::{Backoff, Uptime};
use crate::plan::{Hold, Outcome, UnservedWebhook};

/// Retry state of an object that could not be written.
#[derive(Debug)]
pub(crate) struct RetryState {
    pub(super) hash: Option<SpecHash>,
    pub(super) until: Uptime,
    /// Time of the next attempt by the wall clock, for people.
    pub(super) next_try: Option<Timestamp>,
    pub(super) backoff: Backoff,
    /// First and last time of a refusal that only another manifest can resolve.
    pub(super) refused: Option<(Uptime, Uptime)>,
    pub(super) why: Outcome,
}

impl RetryState {
    /// Returns the webhook that it waits for, if it does.
    pub(crate) fn unserved(&self) -> Option<&UnservedWebhook> {
        match &self.why {
            Outcome::Held(Hold::WebhookUnserved(why)) => Some(why),
            _ => None,
        }
    }

    /// Returns true if another Sync applies the object: it is not retried before that Sync releases
    /// it, or before a reconcile for another reason.
    pub(super) fn is_owned(&self) -> bool {
        matches!(self.why, Outcome::Held(Hold::OwnedBy(_)))
    }

    /// Returns true if the object is not retried yet.
    pub(crate) fn waits(&self, now: Uptime) -> bool {
        self.until > now
    }
}
