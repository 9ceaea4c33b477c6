//! Sources beside a real API server: repositories, charts, Secrets, variables, signatures.

mod allowed_hosts;
mod artifact_signatures;
mod artifacts;
mod bombs;
mod clouds;
mod decryption;
mod follows_itself;
mod github_app;
mod helm;
mod identity;
mod kustomizations;
mod kustomize_options;
mod lfs;
mod mounts;
mod notifications;
mod registry_mirrors;
mod remote_bases;
mod remote_bases_cli;
mod rotation;
mod secret_not_allowed;
mod signatures;
mod source_sshd;
mod submodules;
mod substitution;
mod sync_sets;
mod trust;
