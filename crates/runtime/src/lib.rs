//! A clock, random numbers, a fair queue and a rate limit that a simulation can control.
//!
//! In: nothing, or a seed.
//! Out: the current time, numbers, and the order of requests. With a seed and a paused clock the
//! same program behaves the same each time.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod chance;
pub mod clock;
pub mod fair_queue;
pub mod lanes;
pub mod token_bucket;
