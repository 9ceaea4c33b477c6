//! Notifications about transitions of Syncs, as values.
//!
//! In: the status of a Sync that was written last, the next one, and the Notifiers.
//! Out: the records of what is to be sent, a part of the next status (`records.rs` over
//! `transitions.rs` and `selection.rs`), and for a record the request of a service (`request.rs`
//! over a module for each service). `retry.rs` decides when a delivery is tried again.
//!
//! A record is written in the same write as its transition and before anything is sent. So nothing
//! is lost when the daemon ends at any moment, and a repeated notification has the id of the first.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod alertmanager;
mod cloud_events;
mod commit_status;
mod markup;
pub mod pull_requests;
mod records;
mod repository;
mod request;
mod retry;
mod selection;
mod slack;
mod subject;
mod teams;
mod text;
mod throttle;
mod transitions;
mod webhook;

pub use records::{DeliveryResult, MAX_WAITING, advance, waiting};
pub use repository::{HostedRepository, host_of_url};
pub use request::{RequestError, ServiceSecret, build_request, needed_host, read_answer};
pub use retry::{AttemptResult, DeliveryAge, MAX_LIMIT, NextAttempt, decide_retry};
pub use selection::{CompiledNotifier, Service};
pub use subject::Subject;
pub use throttle::owed_in;
pub use transitions::known_before;
