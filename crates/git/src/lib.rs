//! Where manifests come from: repositories on servers and on the local disk, and plain folders.
//!
//! In: what a Sync or the command line names. Out: a [`Revision`], and the files of it. The words are in
//! `revision.rs`, `range.rs`, `address.rs` and `credentials.rs`; what is said to servers is in `protocol.rs` over
//! `packet.rs` and `remote.rs`, by the ways in `transport.rs` (`web.rs` over `http.rs`, `ssh.rs` over
//! `ssh_session.rs` and `known_hosts.rs`); what lies on disk is in `guard.rs`, `store.rs`, `mirror.rs`, `local.rs` and
//! `snapshot.rs`; who signed it is checked in `signature.rs`, and where submodules are in `submodules.rs`; which
//! other repositories may be read is in `allow_list.rs`, which hosts may be asked at all in `hosts.rs` over `reach.rs`, and how charts are fetched in `chart/`; and `repository.rs` is what the daemon uses, with
//! `watch.rs` beside it; who gets a worker when is in `turns/`.
//!
//! The library (libgit2) is used for packs and objects only. Fetching is spoken here, because the library knows
//! neither version 2 of the protocol, nor deadlines for a request, nor trust for a repository, and its calls
//! cannot be given up.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod address;
mod allow_list;
mod chart;
mod commit_words;
mod credentials;
pub mod directory;
mod error;
mod guard;
mod history;
pub mod hostile;
mod hosts;
mod http;
mod known_hosts;
mod local;
mod memory;
mod mirror;
mod packet;
mod protocol;
mod range;
mod reach;
mod remote;
mod repository;
mod resolve;
mod revision;
mod signature;
mod snapshot;
mod ssh;
mod ssh_session;
mod store;
mod submodules;
mod transport;
mod turns;
mod watch;
mod web;
mod within;
mod workshop;

pub use address::{Address, AddressError};
pub use allow_list::AllowList;
pub use chart::{Chart, ChartError, ChartPlace, ChartRef, Digest};
pub use commit_words::CommitWords;
pub use credentials::{Credentials, CredentialsError, Hidden};
pub use error::Error;
pub use hosts::Hosts;
pub use http::Proxy;
pub use local::{not_a_repository, remotes};
pub use memory::{Memory, Share};
pub use range::{Range, RangeError};
pub use repository::{Reading, Repositories, Repository};
pub use revision::{History, NameError, ObjectHash, Reference, Revision};
pub use signature::{Keys, KeysError, Problem, SignatureError, Signed};
pub use snapshot::{Ids, Snapshot};
pub use watch::Watch;
pub use within::{Choose, Chosen, Within};
pub use workshop::Workshop;
