//! Foundation of the integration tests: one real control plane for each test program, clients of
//! its users, a namespace for each test, and the audit log to count the requests that were really
//! sent.
//!
//! A test begins with
//!
//! ```ignore
//! let Some(plane) = control_plane::shared() else { return };
//! let client = plane.client(MOORLINE).await;
//! let namespace = plane.namespace("drift").await;
//! ```
//!
//! and fails by panicking, never by returning an error: when a panic drops the guard in `plane`, it
//! prints the end of the API server's log.
#![doc = include_str!("../README.md")]
#![expect(
    clippy::new_without_default,
    clippy::should_implement_trait,
    reason = "tests read these names, and no other program uses them"
)]

pub mod admission;
mod archives;
pub mod artifact_registry;
pub mod artifact_signer;
pub mod asked;
pub mod audit;
pub mod authority;
pub mod binaries;
pub mod bombs;
pub mod browser;
pub mod cgroup;
pub mod clouds;
pub mod command;
pub mod control_plane;
pub mod conversion;
pub mod credentials;
pub mod daemon;
pub mod etcd;
pub mod fault_proxy;
pub mod git_bench;
pub mod git_server;
pub mod github;
pub mod gitops_tools;
pub mod kept;
pub mod lfs_server;
pub mod manifests;
pub mod numbers;
pub mod page_requests;
pub mod person;
pub mod places;
pub mod programs;
pub mod reaper;
pub mod registry;
pub mod registry_login;
pub mod rest;
pub mod running;
pub mod sandbox_plane;
pub mod scene;
pub mod second_server;
pub mod server;
pub mod shifted_clock;
pub mod signers;
pub mod sops;
pub mod ssh_server;
pub mod start;
pub mod status;
pub mod stream;
mod sweep;
pub mod turn;
pub mod under_load;
