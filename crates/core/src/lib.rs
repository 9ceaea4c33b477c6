//! What every part of Moorline speaks of.
//!
//! In: nothing. Out: the identity of an object, a tree of files that is bounded in memory, and small things about words: plain
//! sentences, the nearest name, texts of strangers without control characters.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod grammar;
pub mod harmless;
pub mod nearest;
pub mod object;
pub mod repeats;
pub mod tree;
