//! Finds the layer of an artifact in a registry, and downloads it.
//!
//! In: the digest of a manifest.
//! Out: a file whose content has the size and digest in that manifest.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use super::super::chart::Digest;
use super::super::error::Error;
use super::artifact_error::ArtifactError;
use super::manifest::{LayerEntry, Manifest, read_manifest};
use super::registry_client::RegistryClient;

/// Returns the layer of an artifact, and the origin that its author claims. A list of manifests is
/// followed once, so one that leads to itself is refused.
pub(super) fn find_layer(
    client: &mut RegistryClient,
    digest: Digest,
    by: Instant,
) -> Result<(LayerEntry, String), Error> {
    let wanted = client.address().layer().clone();
    let mut manifest = client.manifest(digest, by)?;
    if let Manifest::Index(inner) = read_manifest(&manifest, &wanted)? {
        manifest = client.manifest(inner, by)?;
    }
    match read_manifest(&manifest, &wanted)? {
        Manifest::Artifact { layer, claims } => Ok((layer, claims)),
        Manifest::Index(_) => {
            let problem = "is a list of manifests that leads to another list, which is not followed";
            Err(ArtifactError::Manifest(problem.into()).into())
        }
    }
}

/// Downloads a layer of at most `limit` bytes into a file.
pub(super) fn download_layer(
    client: &mut RegistryClient,
    layer: &LayerEntry,
    (file, limit): (&Path, u64),
    by: Instant,
) -> Result<(), Error> {
    if layer.size > limit {
        let server = client.address().server().into();
        return Err(Error::TooLarge { server, what: "bytes of a layer", limit });
    }
    let disk = |error: io::Error| Error::Disk { what: "write a layer", cause: error.to_string().into() };
    let fetch = |client: &mut RegistryClient, by: Instant| {
        // Bytes that another server has sent before are dropped.
        let mut output = BufWriter::new(File::create(file).map_err(disk)?);
        client.blob((layer.digest, layer.size), &mut output, by)?;
        output.flush().map_err(disk)
    };
    match client.of_mirrors(by, fetch) {
        Some(()) => Ok(()),
        None => fetch(client, by),
    }
}
