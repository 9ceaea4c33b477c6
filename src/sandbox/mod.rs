//! An API server in this process: Kubernetes as far as a daemon, a demonstration and a test can see it.
//!
//! In: requests as they are sent to a Kubernetes API server. Out: what that server would answer.

#![expect(
    dead_code,
    unused_imports,
    reason = "its parts are built side by side: what nobody calls yet, the others will"
)]

mod kinds;
mod ownership;
mod patch;
mod schema;
mod table;
