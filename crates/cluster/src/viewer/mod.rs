//! Reads for people who look at the console: bounded lists, logs of containers, and reviews of
//! their tokens.
//!
//! In: a Cluster with the identity of the Sync. Out: objects and logs, each within its bounds; no
//! watch, and nothing is kept.

mod lists;
mod pod_logs;
mod token_review;

pub use lists::{ListBounds, ListEnd, ListForm, ListScope, list_for_viewer};
pub use pod_logs::{LogOptions, PodLog, open_pod_log};
pub use token_review::{ReviewedUser, review_token};
