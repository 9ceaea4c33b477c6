//! Everything that is said to a cluster.
//!
//! In: a client and what is wanted. Out: what the cluster answered, as values of our own.

pub mod lease;
