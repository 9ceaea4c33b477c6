//! Artifacts: files of a Sync from an OCI registry instead of a Git repository.
//!
//! In: a [`RegistryAddress`] and an [`ArtifactReference`].
//! Out: a [`Revision`](crate::Revision) whose name has the digest of the manifest, and its files as
//! the trees and blobs of a commit in a mirror. So everything behind the source reads an artifact
//! as it reads a commit. `registry_address.rs` and `artifact_reference.rs` have the types,
//! `registry_client.rs` sends requests, `token_request.rs` answers challenges. `manifest.rs`,
//! `layer_choice.rs` and `layer_download.rs` find the layers, `layer_files.rs` and
//! `archive_files.rs` read their files, `tree_builder.rs` and `pack_writer.rs` make Git objects of
//! the files, and `artifact_mirror.rs` keeps them on disk. `artifact_push.rs` makes artifacts.
//! `signature_search.rs` verifies signatures by the signers of `artifact_signers.rs`, and
//! `signature_store.rs` keeps those that were accepted.

mod archive_files;
mod artifact_error;
mod artifact_mirror;
mod artifact_push;
mod artifact_reference;
mod artifact_signers;
mod layer_choice;
mod layer_download;
mod layer_files;
mod manifest;
mod pack_writer;
mod registry_address;
mod registry_answer;
mod registry_client;
mod signature_search;
mod signature_store;
mod tag_list;
mod tag_selection;
mod token_request;
mod tree_builder;

pub use artifact_error::ArtifactError;
pub(super) use artifact_mirror::ArtifactMirror;
pub use artifact_push::{ArtifactFolder, ArtifactNotes, PushedArtifact, pull_artifact, push_artifact};
pub use artifact_reference::{ArtifactReference, TagFilter};
pub(super) use artifact_signers::ArtifactSigners;
pub use registry_address::{LayerSelection, RegistryAddress};
pub(super) use registry_client::RegistryClient;
pub(super) use signature_search::SignatureSearch;
pub(super) use signature_store::SignatureStore;
pub use tag_selection::TagSelection;

/// Reads any bytes as the manifest of an artifact and as the archive of its layer, for fuzzing.
pub(super) fn read_any(bytes: &[u8], limit: u64) {
    drop(manifest::read_manifest(bytes, &LayerSelection::default()));
    let mut reader = archive_files::ArchiveFiles::new(bytes, archive_files::FileLimits::of_bytes(limit));
    while let Ok(Some(_)) = reader.next_file() {
        if reader.content(&mut |_| Ok(())).is_err() {
            return;
        }
    }
}
