//! Basic types that every part of Moorline uses.
//!
//! In: nothing.
//! Out: the identity of an object, the API server's rules for names, durations, a tree of files
//! with bounded memory, a position in a file, and helpers for texts: grammar of messages, "did you
//! mean", log lines that repeat, and texts from outside without control characters.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod did_you_mean;
pub mod duration;
pub mod grammar;
pub mod log_repeats;
pub mod name_rules;
pub mod object;
pub mod position;
pub mod sanitize;
pub mod tree;
