//! Files of layers that lie on disk: those of an archive, or the layer itself.
//!
//! In: one file with the layers of an artifact, as published.
//! Out: each file with its content. If there is one layer and it begins as gzip does, it is an
//! archive, regardless of its media type, and so is one that begins as tar does; any other is one
//! file. If there are several layers, each is the file or the folder that its title names. The
//! limits are those of all layers together.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::super::error::Error;
use super::super::tar_reader::{MAGIC_BYTES, is_tar};
use super::archive_files::{ArchiveFiles, FileLimits, shown};
use super::artifact_error::ArtifactError;
use super::layer_choice::{LayerEntry, LayerPlace};
use moorline_core::tree::MAX_TREE_BYTES;

/// Maximum compression ratio; a text of nothing but spaces has a ratio of a thousand.
const MAX_RATIO: u64 = 200;

/// Number of bytes that may be unpacked at any ratio.
const FREE_BYTES: u64 = 4 * 1024 * 1024;

/// First bytes of what gzip writes.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Gives the content of a file piece by piece.
pub(super) type FileContent<'a> =
    &'a mut dyn FnMut(&mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>;

/// Receives the path and size of each file, and its content.
pub(super) type FileVisitor<'a> = &'a mut dyn FnMut(&str, u64, FileContent<'_>) -> Result<(), Error>;

/// Visits the files of all layers.
pub(super) fn visit_files(file: &Path, layers: &[LayerEntry], visit: FileVisitor<'_>) -> Result<(), Error> {
    let file = File::open(file).map_err(|error| read_error(&error))?;
    let size: u64 = layers.iter().map(|layer| layer.size).sum();
    let mut limits = FileLimits::of_bytes(MAX_TREE_BYTES.min(FREE_BYTES + MAX_RATIO * size));
    layers.iter().try_for_each(|layer| visit_layer(&file, layer, &mut limits, visit))
}

fn visit_layer(
    mut file: &File,
    layer: &LayerEntry,
    limits: &mut FileLimits,
    visit: FileVisitor<'_>,
) -> Result<(), Error> {
    let mut begin = Vec::new();
    file.seek(SeekFrom::Start(layer.start)).map_err(|error| read_error(&error))?;
    let looked = file.take(layer.size.min(MAGIC_BYTES as u64)).read_to_end(&mut begin);
    looked.and_then(|_| file.seek(SeekFrom::Start(layer.start))).map_err(|error| read_error(&error))?;
    let packed = BufReader::new(file.take(layer.size));
    let folder = match &layer.place {
        LayerPlace::File(path) => return visit_whole(packed, (path, layer.size), limits, visit),
        LayerPlace::Folder(folder) => &**folder,
        LayerPlace::Only(_) => "",
    };
    if begin.starts_with(&GZIP) {
        visit_archive(MultiGzDecoder::new(packed), folder, limits, visit)
    } else if is_tar(&begin) {
        visit_archive(packed, folder, limits, visit)
    } else if layer.media_type.contains("zstd") {
        let problem = "is packed by zstd, which is not read; pack it by gzip";
        Err(ArtifactError::Manifest(problem.into()).into())
    } else if let LayerPlace::Only(name) = &layer.place {
        visit_whole(packed, (name, layer.size), limits, visit)
    } else {
        Err(ArtifactError::Archive("is not packed as gzip does, or is damaged".into()).into())
    }
}

/// Visits the files of an archive, which must all be in a folder; the empty one is the root.
fn visit_archive(
    input: impl Read,
    folder: &str,
    limits: &mut FileLimits,
    visit: FileVisitor<'_>,
) -> Result<(), Error> {
    let mut reader = ArchiveFiles::new(input, *limits);
    while let Some(file) = reader.next_file()? {
        let below = file.path.strip_prefix(folder);
        if !folder.is_empty() && !below.is_some_and(|rest| rest.starts_with('/')) {
            let (path, folder) = (shown(&file.path), shown(folder));
            let problem = format!("has {path}, which is not in {folder}, the title of its layer");
            return Err(ArtifactError::Archive(problem.into()).into());
        }
        visit(&file.path, file.size, &mut |sink| reader.content(sink))?;
    }
    *limits = reader.left();
    Ok(())
}

fn visit_whole(
    mut input: impl Read,
    (name, size): (&str, u64),
    limits: &mut FileLimits,
    visit: FileVisitor<'_>,
) -> Result<(), Error> {
    limits.count_file(name, size)?;
    visit(name, size, &mut |sink| {
        let mut buffer = [0; 32 * 1024];
        loop {
            match input.read(&mut buffer).map_err(|error| read_error(&error))? {
                0 => return Ok(()),
                read => sink(&buffer[..read])?,
            }
        }
    })
}

fn read_error(error: &std::io::Error) -> Error {
    Error::Disk { what: "read a fetched layer", cause: error.to_string().into() }
}
