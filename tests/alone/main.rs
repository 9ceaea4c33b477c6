//! Tests that compare times, hold them to bars in milliseconds, or count requests that a busy machine multiplies.
//!
//! `tests/run.sh` runs them last, while no other program runs; here they run one after the other.

mod artifact_memory;
mod deadline;
mod dependencies;
mod git_shares;
mod hooks;
mod hundred_syncs;
mod moves_across;
mod stops;
