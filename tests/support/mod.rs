//! Foundation of the integration tests: one real control plane for each test binary, clients of its
//! users, a namespace for each test, and the audit log to count the requests that were really sent.
//!
//! A test begins with
//!
//! ```ignore
//! let Some(plane) = support::control_plane::shared() else { return };
//! let client = plane.client(MOORLINE).await;
//! let namespace = plane.namespace("drift").await;
//! ```
//!
//! and fails by panicking, never by returning an error: when a panic drops the guard in `plane`, it
//! prints the end of the API server's log.

#![expect(dead_code, reason = "every test binary compiles all of this and uses a part of it")]

pub(crate) mod asked;
pub(crate) mod audit;
pub(crate) mod authority;
pub(crate) mod binaries;
pub(crate) mod board;
pub(crate) mod bombs;
pub(crate) mod browser;
pub(crate) mod cgroup;
pub(crate) mod control_plane;
pub(crate) mod conversion;
pub(crate) mod credentials;
pub(crate) mod daemon;
pub(crate) mod etcd;
pub(crate) mod fault_proxy;
pub(crate) mod git_server;
pub(crate) mod kept;
pub(crate) mod person;
pub(crate) mod programs;
pub(crate) mod reaper;
pub(crate) mod rest;
pub(crate) mod running;
pub(crate) mod sandbox_plane;
pub(crate) mod scene;
pub(crate) mod second_server;
pub(crate) mod server;
pub(crate) mod shifted_clock;
pub(crate) mod signers;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stream;
