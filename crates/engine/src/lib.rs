//! What is to be done, as a function of what is wanted and what is there.
//!
//! In: rendered objects, live objects, and the policy of a Sync. Out: a plan: which object is created, changed, pruned, kept or waited for, and
//! why. Nothing here waits, asks or knows the time.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod desired;
pub mod diff;
pub mod observed;
pub mod plan;
pub mod proof;
pub mod rights;
