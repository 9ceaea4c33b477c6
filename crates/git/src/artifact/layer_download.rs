//! Finds the layers of an artifact in a registry, and downloads them.
//!
//! In: the digest of a manifest.
//! Out: one file with the layers, one behind the other. Each has the size and digest in that
//! manifest.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Instant;

use super::super::chart::Digest;
use super::super::error::Error;
use super::artifact_error::ArtifactError;
use super::layer_choice::LayerEntry;
use super::manifest::{Manifest, read_manifest};
use super::registry_client::RegistryClient;

/// Returns the layers of an artifact, and the origin that its author claims. A list of manifests is
/// followed once, so one that leads to itself is refused.
pub(super) fn find_layers(
    client: &mut RegistryClient,
    digest: Digest,
    by: Instant,
) -> Result<(Vec<LayerEntry>, String), Error> {
    let wanted = client.address().layer().clone();
    let mut manifest = client.manifest(digest, by)?;
    if let Manifest::Index(inner) = read_manifest(&manifest, &wanted)? {
        manifest = client.manifest(inner, by)?;
    }
    match read_manifest(&manifest, &wanted)? {
        Manifest::Artifact { layers, claims } => Ok((layers, claims)),
        Manifest::Index(_) => {
            let problem = "is a list of manifests that leads to another list, which is not followed";
            Err(ArtifactError::Manifest(problem.into()).into())
        }
    }
}

/// Downloads layers of at most `limit` bytes together into a file; returns the number of bytes.
/// Content that several layers have is downloaded once.
pub(super) fn download_layers(
    client: &mut RegistryClient,
    layers: &[LayerEntry],
    (file, limit): (&Path, u64),
    by: Instant,
) -> Result<u64, Error> {
    let size = layers.iter().map(LayerEntry::end).max().unwrap_or_default();
    if size > limit {
        let server = client.address().server().into();
        return Err(Error::TooLarge { server, what: "bytes of a layer", limit });
    }
    let output = File::create(file).map_err(|error| disk(&error))?;
    for layer in layers.iter().filter(|layer| !layer.is_repeated) {
        download_layer(client, layer, &output, by)?;
    }
    Ok(size)
}

/// Downloads a layer to its place in the file.
fn download_layer(
    client: &mut RegistryClient,
    layer: &LayerEntry,
    mut file: &File,
    by: Instant,
) -> Result<(), Error> {
    let mut fetch = |client: &mut RegistryClient, by: Instant| {
        // Bytes that another server has sent before are dropped.
        let cut = file.set_len(layer.start).and_then(|()| file.seek(SeekFrom::Start(layer.start)));
        cut.map_err(|error| disk(&error))?;
        let mut output = BufWriter::new(file);
        client.blob((layer.digest, layer.size), &mut output, by)?;
        output.flush().map_err(|error| disk(&error))
    };
    match client.of_mirrors(by, &mut fetch) {
        Some(()) => Ok(()),
        None => fetch(client, by),
    }
}

fn disk(error: &io::Error) -> Error {
    Error::Disk { what: "write a layer", cause: error.to_string().into() }
}
