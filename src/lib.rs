//! Moorline holds a Kubernetes cluster to a committed Git revision.
//!
//! The code is one sentence, and the folders follow it:
//!
//! ```text
//! Revision -source-> FileTree -render-> Objects -desired-> DesiredSet -plan(with ObservedSet)-> Plan
//! ```
//!
//! Every arrow is one function, every noun one type. `ARCHITECTURE.md` has the map.

#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
// Output goes through the streams that the command line hands out.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod adopt;
pub mod api;
pub mod chance;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod desired;
pub mod diff;
mod expression;
pub mod fair;
pub mod fields;
pub mod harmless;
pub mod health;
pub mod helm;
pub mod metrics;
pub mod nearest;
pub mod object;
pub mod observed;
pub mod plan;
pub mod proof;
mod quantity;
pub mod render;
pub mod repeats;
pub mod report;
pub mod rights;
pub mod sandbox;
pub mod serve;
pub mod settings;
pub mod settings_watch;
pub mod source;
pub mod sync;
pub mod tree;
pub mod yaml;
