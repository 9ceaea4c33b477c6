//! The daemon: every Sync is followed by a task of its own, and this is what they share.
//!
//! In: a cluster, repositories, settings. Out: a cluster that is as the repositories say. The way of one Sync is
//! `follow.rs` (when), `pass.rs` (what, in one sentence), `prepare.rs` (from a commit to objects) and `carry_out.rs`
//! (from a plan to writes); `schedule/` decides, and `memory.rs` is what a Sync remembers.

pub mod carry_out;
mod follow;
mod memory;
mod pass;
mod prepare;
pub mod schedule;
pub mod single;
pub mod wish;

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::cluster::Cluster;
use memory::Pauses;
use schedule::{Backoff, Time};

/// What all Syncs of a daemon share.
pub struct Context {
    /// The cluster, as the daemon itself.
    pub cluster: Cluster,
    /// True once the daemon is asked to end.
    pub ending: watch::Receiver<bool>,
    /// How long what is under way may take then.
    pub grace: Duration,
    began: Instant,
    pauses: Pauses,
    verify: tokio::sync::Mutex<tokio::time::Interval>,
}

impl Context {
    /// Everything but the Syncs.
    pub fn new(
        cluster: Cluster,
        ending: watch::Receiver<bool>,
        pauses: (Duration, Duration, Duration),
    ) -> Self {
        let (base, cap, manifest) = pauses;
        let mut verify = tokio::time::interval(VERIFY_PAUSE);
        verify.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Self {
            cluster,
            ending,
            grace: GRACE,
            began: Instant::now(),
            pauses: Pauses { cluster: Backoff::new(base, cap), manifest },
            verify: tokio::sync::Mutex::new(verify),
        }
    }

    fn now(&self) -> Time {
        self.began.elapsed()
    }

    fn instant(&self, time: Time) -> Instant {
        self.began + time
    }

    /// Waits until one more object may be verified.
    async fn verify_turn(&self) {
        self.verify.lock().await.tick().await;
    }
}

/// Between two objects that are only verified.
const VERIFY_PAUSE: Duration = Duration::from_millis(10);
/// How long what is under way may take when the daemon ends.
const GRACE: Duration = Duration::from_secs(8);

/// A number between 0 and 1.
fn chance() -> f64 {
    // Every `RandomState` has keys of its own, which the operating system's chance has made.
    (RandomState::new().hash_one(0) >> 11) as f64 / (1_u64 << 53) as f64
}
