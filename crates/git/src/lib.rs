//! Reads Git repositories, artifacts, charts and plain folders: finds the revision of a reference,
//! and its files.
//!
//! In: the source of a Sync or of the command line.
//! Out: a [`Revision`], and its files. The types are in `revision.rs`, `semver_range.rs`,
//! `address.rs` and `credentials.rs`. The protocol is in `upload_pack.rs` over `pkt_line.rs`; one
//! remote repository is in `remote.rs`, with its transport over http (`http.rs`) or ssh
//! (`ssh_transport.rs` over `ssh_session.rs` and `known_hosts.rs`). The login of a GitHub App is in
//! `github_app.rs`, its tokens in `installation_token.rs`. Storage is in
//! `pack_inspection.rs`, `store.rs`, `mirror.rs`, `local_repository.rs` and `snapshot.rs`.
//! Signatures are checked in `signature.rs`; submodules are found in `submodules.rs`.
//! `allow_list.rs` limits other repositories, `hosts.rs` over `public_address.rs` limits
//! hosts, `webhook_call.rs` finds the repositories of a push, `chart/` fetches charts, `lfs/`
//! fetches files of Git LFS into the `digest_cache.rs`, and `artifact/` reads artifacts from
//! registries as if they were commits; `registry_mirrors.rs` names the mirrors of registries, and
//! `tar_reader.rs` reads archives. `transit.rs` asks Vault for keys,
//! and `cloud/` clouds for keys and logins. The
//! daemon uses `repository.rs` and `ref_watch.rs`; `worker_pool/` shares the workers among servers
//! and namespaces.
//!
//! libgit2 is used for packs and objects only. Fetching is implemented here, because libgit2 has
//! neither version 2 of the protocol, nor deadlines for a request, nor trust settings for each
//! repository, and its calls cannot be cancelled.
//!
//! # Guarantees
//!
//! Nothing is sent to a host that [`HostPolicy`] does not allow. Every function with a parameter
//! `by` ends by that time.
//!
//! # Cancellation
//!
//! A fetch belongs to its repository and not to the caller: if the future is dropped, the fetch
//! ends by itself, and the next caller finds what it stored. A place in a queue is released.
//!
//! # Errors
//!
//! Functions fail with an [`Error`], whose [`Error::reason`] is the reason in conditions; charts
//! with a [`ChartError`].
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Input never causes a panic; tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod address;
mod allow_list;
mod ancestry;
mod artifact;
mod challenge;
mod chart;
mod cloud;
mod credentials;
mod demo_repository;
mod digest_cache;
pub mod directory;
mod docker_login;
mod error;
mod file_request;
mod github_app;
pub mod hostile;
mod hosts;
mod http;
mod http_failure;
mod http_login;
mod http_response;
mod installation_token;
mod known_hosts;
mod lfs;
mod local_repository;
mod memory;
mod mirror;
mod mounted_revision;
mod named_pause;
mod outbound;
mod pack_inspection;
mod pkt_line;
mod public_address;
mod read_limits;
mod ref_watch;
mod registry_mirrors;
mod remote;
mod repository;
mod resolver;
mod revision;
mod secret_keys;
mod semver_range;
mod sensitive;
mod signature;
mod snapshot;
mod ssh_session;
mod ssh_transport;
mod store;
mod submodules;
mod tar_reader;
mod tls;
mod transit;
mod upload_pack;
pub mod webhook_call;
mod worker_pool;

pub use crate::demo_repository::DemoRepository;
pub use crate::local_repository::{remotes, why_not_a_repository};
pub use crate::read_limits::{FileFilter, FileSelection, ReadLimits};
pub use crate::ref_watch::RefWatch;
pub use crate::semver_range::{VersionRange, VersionRangeError};
pub use address::{Address, AddressError};
pub use allow_list::AllowList;
pub use artifact::{
    ArtifactError, ArtifactFolder, ArtifactNotes, ArtifactReference, LayerSelection, PushedArtifact,
    RegistryAddress, TagFilter, TagSelection, pull_artifact, push_artifact,
};
pub use chart::{Chart, ChartError, ChartPlace, ChartRef, ChartRequest, ChartVersion, Digest};
pub use cloud::{
    AccountFacts, AccountName, AccountTokens, Cloud, CloudAccount, CloudLogin, KmsCiphertext, KmsError,
    KmsLogin,
};
pub use credentials::{Credentials, CredentialsError, Sensitive};
pub use docker_login::LoginTarget;
pub use error::Error;
pub use hosts::HostPolicy;
pub use http::Proxy;
pub use lfs::{LfsError, LfsFile, LfsProblem};
pub use memory::{Memory, MemoryShare};
pub use moorline_identity::azure::AzureClient;
pub use moorline_identity::gcp_kms::GcpKeyFile;
pub use moorline_identity::sigv4::AwsCredentials;
pub use moorline_identity::{CloudEndpoints, SecretText};
pub use mounted_revision::MountedRevision;
pub use outbound::{OutboundAnswer, OutboundClient};
pub use registry_mirrors::RegistryMirrors;
pub use repository::clouds::{kms_decrypt, registry_identity, set_clouds, source_identity};
pub use repository::exchange::send_exchange;
pub use repository::transit::transit_decrypt;
pub use repository::{
    Collector, CommitSummary, OccupiedPlace, ReadResult, Repositories, Repository, fetch_lfs, fill_lfs,
};
pub use revision::{History, NameError, ObjectHash, Reference, Revision};
pub use signature::{SignatureError, SignaturePolicy, SignatureProblem, TrustedKeys, TrustedKeysError};
pub use snapshot::{ObjectIds, Snapshot};
pub use transit::{TransitCiphertext, TransitError, TransitLogin};
