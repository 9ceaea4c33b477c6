//! Files of a layer that lies on disk: those of an archive, or the layer itself.
//!
//! In: the file of a layer, as published.
//! Out: each file with its content. A layer that begins as gzip does is an archive,
//! regardless of its media type, and so is one that begins as tar does; any other is one file.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::super::error::Error;
use super::super::tar_reader::{MAGIC_BYTES, is_tar};
use super::archive_files::ArchiveFiles;
use super::artifact_error::ArtifactError;
use super::manifest::LayerEntry;
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

/// Visits the files of a layer. One that is not an archive, or that is copied, has the name of the
/// layer.
pub(super) fn visit_files(
    file: &Path,
    layer: &LayerEntry,
    copies: bool,
    visit: FileVisitor<'_>,
) -> Result<(), Error> {
    let mut packed = File::open(file).map_err(|error| read_error(&error))?;
    let size = packed.metadata().map_err(|error| read_error(&error))?.len();
    let mut begin = Vec::new();
    let looked = (&mut packed).take(MAGIC_BYTES as u64).read_to_end(&mut begin);
    looked.and_then(|_| packed.seek(SeekFrom::Start(0))).map_err(|error| read_error(&error))?;
    let limit = MAX_TREE_BYTES.min(FREE_BYTES + MAX_RATIO * size);
    let packed = BufReader::new(packed);
    match copies {
        false if begin.starts_with(&GZIP) => visit_archive(MultiGzDecoder::new(packed), limit, visit),
        false if is_tar(&begin) => visit_archive(packed, limit, visit),
        false if layer.media_type.contains("zstd") => {
            Err(ArtifactError::Manifest("is packed by zstd, which is not read; pack it by gzip".into())
                .into())
        }
        true | false => visit_whole(packed, (&layer.file_name(), size), visit),
    }
}

fn visit_archive(input: impl Read, limit: u64, visit: FileVisitor<'_>) -> Result<(), Error> {
    let mut reader = ArchiveFiles::new(input, limit);
    while let Some(file) = reader.next_file()? {
        visit(&file.path, file.size, &mut |sink| reader.content(sink))?;
    }
    Ok(())
}

fn visit_whole(mut input: impl Read, (name, size): (&str, u64), visit: FileVisitor<'_>) -> Result<(), Error> {
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
