//! Unpacks the archive of a chart.
//!
//! In: the bytes of a `.tgz`.
//! Out: the files below its single folder, by relative path; or a [`ChartError`]. Everything is
//! bounded before it is unpacked, nothing is written to disk, and anything that could lead outside
//! is refused: links, devices, paths with `..`, and duplicate names.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};

use flate2::read::MultiGzDecoder;

use super::super::tar_number::number;
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

/// Maximum number of bytes of an extended header.
const MAX_EXTENSION_BYTES: u64 = 64 * 1024;

/// Size of a header; content is padded to a multiple of it.
const BLOCK: usize = 512;

/// The mandatory file of a chart.
const CHART: &str = "Chart.yaml";

/// Unpacks the files of a chart, within the memory of `room`.
pub(super) fn unpack(packed: &[u8], room: &MemoryLimit) -> Result<FileTree, ChartError> {
    let limit = MAX_UNPACKED_BYTES.min(FREE_BYTES + MAX_RATIO * packed.len() as u64);
    let mut tape = Tape { input: MultiGzDecoder::new(packed), left: limit, room };
    let mut files: BTreeMap<Box<str>, TreeEntry> = BTreeMap::new();
    let (mut said, mut folder, mut count) = (Said::default(), None, 0);
    while let Some(head) = tape.head()? {
        count += 1;
        if count > MAX_ENTRIES {
            return refuse(format!("has more than {MAX_ENTRIES} files"));
        }
        match head.kind {
            b'x' => said.read(&tape.content(head.size, MAX_EXTENSION_BYTES, "an extended head")?)?,
            b'g' => drop(tape.content(head.size, MAX_EXTENSION_BYTES, "an extended head")?),
            b'L' => said.path = Some(text(&tape.content(head.size, MAX_PATH_BYTES as u64, "a path")?)?),
            b'0' | b'\0' | b'7' | b'5' => {
                let said = std::mem::take(&mut said);
                let path = said.path.unwrap_or(head.path);
                let (top, inside) = parts(&path)?;
                if *folder.get_or_insert_with(|| top.clone()) != top {
                    return refuse("has more than one folder at its top; a chart has one");
                }
                let bytes = tape.content(said.size.unwrap_or(head.size), MAX_FILE_BYTES, "a file")?;
                if head.kind == b'5' {
                    continue;
                }
                let Some(inside) = inside else { return refuse("has a file beside its folder") };
                if files.insert(inside.clone(), TreeEntry::File(bytes.into())).is_some() {
                    return refuse(format!("has the file {inside} twice"));
                }
            }
            b'1' | b'2' => return refuse("has a link in it, which is not followed"),
            _ => return refuse("has a device or another thing in it that is no file"),
        }
    }
    let under_a_file = |path: &str| path.match_indices('/').any(|(at, _)| files.contains_key(&path[..at]));
    if let Some(path) = files.keys().find(|path| under_a_file(path)) {
        return refuse(format!("has a file where a folder of {path} is"));
    }
    match files.contains_key(CHART) {
        true => Ok(files.into_iter().collect::<FileTree>().with_memory_limit(room.clone())),
        false => refuse("has no Chart.yaml in its folder, so that it is no chart"),
    }
}

/// Splits a path into the top folder and the path below it; none for the folder itself.
fn parts(path: &str) -> Result<(Box<str>, Option<Box<str>>), ChartError> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if path.starts_with('/')
        || parts.contains(&"..")
        || path.contains('\\')
        || path.chars().any(char::is_control)
    {
        return refuse(
            "has a path in it that leads elsewhere: one that begins with a slash, or has .., a backslash or a control character in it",
        );
    }
    match parts.split_first() {
        _ if path.len() > MAX_PATH_BYTES => refuse(format!("has a path of more than {MAX_PATH_BYTES} bytes")),
        None => refuse("has a file without a name"),
        Some((top, [])) => Ok(((*top).into(), None)),
        Some((top, inside)) => Ok(((*top).into(), Some(inside.join("/").into()))),
    }
}

/// Path and size from the extended headers before a file's own header.
#[derive(Debug, Default)]
struct Said {
    path: Option<String>,
    size: Option<u64>,
}

impl Said {
    /// Parses records of the form `LENGTH NAME=VALUE`, each with a line feed.
    fn read(&mut self, mut bytes: &[u8]) -> Result<(), ChartError> {
        let broken = || damaged("an extended head");
        while !bytes.is_empty() {
            let space = bytes.iter().position(|byte| *byte == b' ').ok_or_else(broken)?;
            let length = std::str::from_utf8(&bytes[..space]).ok().and_then(|digits| digits.parse().ok());
            let record = length.and_then(|length: usize| bytes.get(space + 1..length)).ok_or_else(broken)?;
            let record = text(record.strip_suffix(b"\n").ok_or_else(broken)?)?;
            match record.split_once('=').ok_or_else(broken)? {
                ("path", path) => self.path = Some(path.to_owned()),
                ("size", size) => self.size = Some(size.parse().map_err(|_| broken())?),
                _ => {}
            }
            bytes = &bytes[length.unwrap_or(bytes.len())..];
        }
        Ok(())
    }
}

/// Header of one archive entry.
struct EntryHeader {
    path: String,
    size: u64,
    kind: u8,
}

/// Reads an archive from beginning to end.
struct Tape<'a, R> {
    input: R,
    left: u64,
    room: &'a MemoryLimit,
}

impl<R: Read> Tape<'_, R> {
    /// Returns the next header; none at the end.
    fn head(&mut self) -> Result<Option<EntryHeader>, ChartError> {
        let mut block = [0; BLOCK];
        self.fill(&mut block, "a head")?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        // The checksum counts its own field as spaces.
        let sum: u64 = block
            .iter()
            .enumerate()
            .map(|(at, byte)| u64::from(if (148..156).contains(&at) { b' ' } else { *byte }))
            .sum();
        if number(&block[148..156]) != Some(sum) {
            return Err(damaged("a head"));
        }
        let mut path = field(&block[..100])?;
        // The older format has other fields in the place of the path prefix.
        if &block[257..263] == b"ustar\0" {
            let front = field(&block[345..500])?;
            if !front.is_empty() {
                path = format!("{front}/{path}");
            }
        }
        let size = number(&block[124..136]).ok_or_else(|| damaged("a size"))?;
        Ok(Some(EntryHeader { path, size, kind: block[156] }))
    }

    /// Returns the content of an entry, without the padding.
    fn content(&mut self, size: u64, limit: u64, what: &'static str) -> Result<Vec<u8>, ChartError> {
        if size > limit {
            return refuse(format!("has {what} of {size} bytes; {limit} are allowed"));
        }
        let padded = size.div_ceil(BLOCK as u64) * BLOCK as u64;
        if padded > self.left {
            return refuse(TOO_LARGE);
        }
        self.room.reserve(padded).map_err(|no_room| ChartError::Server(no_room.into()))?;
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(padded).read_to_end(&mut bytes);
        read.map_err(|_| damaged("what is packed in it"))?;
        self.left -= padded;
        if (bytes.len() as u64) < padded {
            return Err(damaged(what));
        }
        bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        Ok(bytes)
    }

    fn fill(&mut self, block: &mut [u8; BLOCK], what: &'static str) -> Result<(), ChartError> {
        self.left = self.left.checked_sub(BLOCK as u64).ok_or(ChartError::Archive(TOO_LARGE.into()))?;
        match self.input.read_exact(block) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(damaged(what)),
            Err(_) => refuse("is not packed as gzip does, or is damaged"),
        }
    }
}

const TOO_LARGE: &str =
    "unpacks to more than a chart may have: 128 MiB, or 200 times as much as it was packed";

fn field(bytes: &[u8]) -> Result<String, ChartError> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    text(&bytes[..end])
}

fn text(bytes: &[u8]) -> Result<String, ChartError> {
    let text = std::str::from_utf8(bytes).map(|text| text.trim_end_matches('\0').to_owned());
    text.map_err(|_| ChartError::Archive("has a path in it that is not UTF-8".into()))
}

fn damaged(what: &'static str) -> ChartError {
    ChartError::Archive(format!("is damaged: {what} is not whole").into())
}

fn refuse<T>(problem: impl Into<std::borrow::Cow<'static, str>>) -> Result<T, ChartError> {
    Err(ChartError::Archive(problem.into()))
}

#[cfg(test)]
mod tests;
