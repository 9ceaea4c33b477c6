//! An API server in this process: Kubernetes as far as a daemon, a demonstration and a test can see it.
//!
//! In: requests as they are sent to a Kubernetes API server. Out: what that server would answer.

// Its parts are built side by side: what nobody calls yet is called by the others.
#![allow(dead_code)]

mod ownership;
mod schema;
