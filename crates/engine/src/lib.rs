//! Decision engine: from desired and observed state to a plan.
//!
//! In: rendered objects, live objects, and the policy of a Sync.
//! Out: a plan: the action for every object (create, adopt, update, keep, hand over, prune or hold)
//! and its reason. Nothing here waits, sends requests or reads a clock.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod desired;
pub mod diff;
pub mod observed;
pub mod plan;
pub mod proof;
pub mod rbac;
