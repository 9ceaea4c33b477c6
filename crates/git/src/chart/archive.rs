//! Unpacks the archive of a chart.
//!
//! In: the bytes of a `.tgz`.
//! Out: the files below its single folder, by relative path; or a [`ChartError`]. Everything is
//! bounded before it is unpacked, nothing is written to disk, and anything that could lead outside
//! is refused: links, devices, paths with `..`, and duplicate names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::super::tar_reader::{
    BLOCK, MAX_EXTENSION_BYTES, TarError, TarLimits, TarPart, TarReader, path_parts,
};
use super::error::ChartError;
use moorline_core::tree::{FileTree, MAX_FILE_BYTES, MemoryLimit, TreeEntry};

/// Maximum number of unpacked bytes.
const MAX_UNPACKED_BYTES: u64 = 128 * 1024 * 1024;

/// Maximum compression ratio; a text of nothing but spaces has a ratio of a thousand.
const MAX_RATIO: u64 = 200;

/// Number of bytes that may be unpacked at any ratio.
const FREE_BYTES: u64 = 4 * 1024 * 1024;

/// Maximum number of files.
const MAX_ENTRIES: usize = 20_000;

/// Maximum number of bytes of a path.
const MAX_PATH_BYTES: usize = 1024;

/// The mandatory file of a chart.
const CHART: &str = "Chart.yaml";

/// Unpacks the files of a chart, within `memory_limit`.
pub(super) fn unpack(packed: &[u8], memory_limit: &MemoryLimit) -> Result<FileTree, ChartError> {
    let limits = TarLimits {
        bytes: MAX_UNPACKED_BYTES.min(FREE_BYTES + MAX_RATIO * packed.len() as u64),
        entries: MAX_ENTRIES,
        path_bytes: MAX_PATH_BYTES as u64,
        skips_targets: false,
    };
    let mut entries = TarReader::new(MultiGzDecoder::new(packed), limits);
    let mut files: BTreeMap<Box<str>, TreeEntry> = BTreeMap::new();
    let mut folder = None;
    while let Some(entry) = entries.next_entry()? {
        match entry.kind {
            b'0' | b'\0' | b'7' | b'5' => {
                let (top, inside) = parts(&entry.path)?;
                if *folder.get_or_insert_with(|| top.clone()) != top {
                    return refuse("has more than one folder at its top; a chart has one");
                }
                let bytes = content(&mut entries, entry.size, memory_limit)?;
                if entry.kind == b'5' {
                    continue;
                }
                let Some(inside) = inside else { return refuse("has a file beside its folder") };
                if files.insert(inside.clone(), TreeEntry::File(bytes.into())).is_some() {
                    return refuse(format!("has the file {inside} twice"));
                }
            }
            b'1' | b'2' => return refuse("has a link in it, which is not followed"),
            _ => return refuse(NO_FILE),
        }
    }
    let under_a_file = |path: &str| path.match_indices('/').any(|(at, _)| files.contains_key(&path[..at]));
    if let Some(path) = files.keys().find(|path| under_a_file(path)) {
        return refuse(format!("has a file where a folder of {path} is"));
    }
    match files.contains_key(CHART) {
        true => Ok(files.into_iter().collect::<FileTree>().with_memory_limit(memory_limit.clone())),
        false => refuse("has no Chart.yaml in its folder, so that it is no chart"),
    }
}

/// Reads the content of the last entry.
fn content(
    entries: &mut TarReader<impl Read>,
    size: u64,
    memory_limit: &MemoryLimit,
) -> Result<Vec<u8>, ChartError> {
    if size > MAX_FILE_BYTES {
        return refuse(format!("has a file of {size} bytes; {MAX_FILE_BYTES} are allowed"));
    }
    entries.begin()?;
    let padded = size.next_multiple_of(BLOCK as u64);
    memory_limit.reserve(padded).map_err(|no_room| ChartError::Server(no_room.into()))?;
    let mut bytes = Vec::new();
    entries.content(&mut |part: &[u8]| {
        bytes.extend_from_slice(part);
        Ok::<(), ChartError>(())
    })?;
    Ok(bytes)
}

/// Splits a path into the top folder and the path below it; none for the folder itself.
fn parts(path: &str) -> Result<(Box<str>, Option<Box<str>>), ChartError> {
    let Some(parts) = path_parts(path) else {
        return refuse(
            "has a path in it that leads elsewhere: one that begins with a slash, or has .., a backslash or a control character in it",
        );
    };
    match parts.split_first() {
        _ if path.len() > MAX_PATH_BYTES => refuse(format!("has a path of more than {MAX_PATH_BYTES} bytes")),
        None => refuse("has a file without a name"),
        Some((top, [])) => Ok(((*top).into(), None)),
        Some((top, inside)) => Ok(((*top).into(), Some(inside.join("/").into()))),
    }
}

const NO_FILE: &str = "has a device or another thing in it that is no file";

impl From<TarError> for ChartError {
    fn from(error: TarError) -> Self {
        let damaged = |what: &str| Cow::Owned(format!("is damaged: {what} is not whole"));
        let name = |part| match part {
            TarPart::Header => "a head",
            TarPart::Extension => "an extended head",
            TarPart::Path => "a path",
            TarPart::Content => "a file",
        };
        Self::Archive(match error {
            TarError::Ended(part) => damaged(name(part)),
            TarError::Input(TarPart::Header) => "is not packed as gzip does, or is damaged".into(),
            TarError::Input(_) => damaged("what is packed in it"),
            TarError::Checksum => damaged("a head"),
            TarError::Size => damaged("a size"),
            TarError::LargeExtension(part, size) => {
                let limit = if part == TarPart::Path { MAX_PATH_BYTES as u64 } else { MAX_EXTENSION_BYTES };
                format!("has {} of {size} bytes; {limit} are allowed", name(part)).into()
            }
            TarError::Extension => damaged("an extended head"),
            TarError::Text => "has a path in it that is not UTF-8".into(),
            TarError::Sparse => NO_FILE.into(),
            TarError::TooLarge => {
                "unpacks to more than a chart may have: 128 MiB, or 200 times as much as it was packed".into()
            }
            TarError::TooMany => format!("has more than {MAX_ENTRIES} files").into(),
        })
    }
}

fn refuse<T>(problem: impl Into<Cow<'static, str>>) -> Result<T, ChartError> {
    Err(ChartError::Archive(problem.into()))
}

#[cfg(test)]
mod tests;
