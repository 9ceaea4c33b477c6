//! A clock, dice and turns that a simulation can hold.
//!
//! In: nothing, or a seed. Out: the present, numbers, and whose turn it is. Under a seed and a paused clock the same program does the same
//! each time.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod chance;
pub mod clock;
pub mod fair;
