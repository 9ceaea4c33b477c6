//! The sentence as code: from a Sync to what is done on the cluster.
//!
//! In: what a Sync says. Out, so far: the [`wish::Wish`] that the stations work on. This is the only place where
//! stations meet.

pub mod wish;
