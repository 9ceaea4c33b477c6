//! SyncSets, as values: parameters to Syncs, and Syncs to a plan.
//!
//! In: a SyncSet, the files of its repositories, the metadata of its clusters' Secrets, the tags of
//! its artifacts, its pull requests, and the Syncs of its namespace.
//! Out: [`ParameterSets`] from generators (`generate.rs`), [`SetChildren`] from a [`CompiledSet`]
//! (`children.rs` over `template.rs` and `settable_fields.rs`), and a [`SetPlan`] (`plan.rs`), held
//! back in stages (`rollout.rs`).
//!
//! Parameter sets exist only when every generator has answered, and a plan only of all children of
//! a set. So an answer that is incomplete removes nothing, by type.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod addresses;
mod child_condition;
mod child_name;
mod children;
mod cluster_parameters;
#[cfg(test)]
mod cluster_tests;
mod combine;
mod existing;
mod generate;
mod git_parameters;
#[cfg(test)]
mod listed_tests;
mod parameters;
mod plan;
mod pull_request_rules;
mod rollout;
mod settable_fields;
mod template;
mod unavailable;
mod unread_field;

pub use addresses::repository_addresses;
pub use children::{SetChild, SetChildren};
pub use cluster_parameters::{ListedSecret, label_selector};
pub use existing::{ExistingSync, SetOwner};
pub use generate::{
    MAX_SETS, ParameterSets, PullRequest, SourceAnswers, cluster_generators, generate, git_generators,
    pull_request_generators, tag_generators,
};
pub use git_parameters::{read_folders, select_files};
pub use plan::{PlannedRemoval, RemovalPolicy, SetPlan, SetStep, plan_children};
pub use rollout::{PlannedRollout, RolloutState, hold_stages};
pub use settable_fields::is_settable;
pub use template::CompiledSet;

/// Returns a hash as hex digits.
fn hash(text: &str, bytes: usize) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(bytes).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}
