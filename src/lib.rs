//! Moorline keeps a Kubernetes cluster in sync with Git.
//!
//! The code follows one sentence:
//!
//! ```text
//! Revision -read_changed-> FileTree -render-> Objects -build_desired_set-> DesiredSet
//!     -plan(+ ObservedSet)-> Plan -execute-> Outcome -status-> SyncStatus
//! ```
//!
//! Every arrow is one function. `ARCHITECTURE.md` names the file of each, and is the map of the
//! code.

#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
// Output goes through the streams that the command line hands out.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod adopt;
pub mod cli;
pub mod controller;
pub mod decryption;
pub mod helm;
pub mod mcp;
pub mod report;
pub mod serve;
pub mod settings_watch;

pub use moorline_api as api;
pub use moorline_cluster as cluster;
pub use moorline_core::{
    did_you_mean, duration, grammar, log_repeats, name_rules, object, position, sanitize, tree,
};
pub use moorline_engine::{desired, diff, observed, plan, proof, rbac};
pub use moorline_git as source;
pub use moorline_health as health;
pub use moorline_journal as journal;
pub use moorline_kustomize as kustomize;
pub use moorline_managed_fields as fields;
pub use moorline_metrics as metrics;
pub use moorline_notify as notifications;
pub use moorline_render as render;
pub use moorline_runtime::{chance, clock, fair_queue, lanes, token_bucket};
pub use moorline_sandbox as sandbox;
pub use moorline_settings as settings;
pub use moorline_sync_set as sync_set;
pub use moorline_windows as windows;
pub use moorline_yaml as yaml;
