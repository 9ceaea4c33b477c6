//! Reads a tar archive, entry by entry.
//!
//! In: the unpacked bytes of an archive, as they come.
//! Out: entries with their path, size and kind as the archive has them, and their content; or a
//! [`TarError`]. Bounds come before memory. Which kinds and paths are allowed is up to the caller.

use std::io::{ErrorKind, Read};
use std::ops::Range;

/// Maximum number of bytes of an extended header.
pub(super) const MAX_EXTENSION_BYTES: u64 = 64 * 1024;

/// Size of a header; content is padded to a multiple of it.
pub(super) const BLOCK: usize = 512;

/// Fields of a header.
const NAME: Range<usize> = 0..100;
const SIZE: Range<usize> = 124..136;
const CHECKSUM: Range<usize> = 148..156;
const KIND: usize = 156;
const MAGIC: Range<usize> = 257..262;
const PREFIX: Range<usize> = 345..500;

/// Number of bytes that tell a tar archive from another file.
pub(super) const MAGIC_BYTES: usize = MAGIC.end;

/// True if a file begins as a tar archive does.
pub(super) fn is_tar(begin: &[u8]) -> bool {
    begin.get(MAGIC).is_some_and(|magic| magic == b"ustar")
}

/// Bounds of an archive.
pub(super) struct TarLimits {
    /// Maximum number of unpacked bytes.
    pub(super) bytes: u64,
    /// Maximum number of entries, with extended headers.
    pub(super) entries: usize,
    /// Maximum number of bytes of a path that has a header of its own.
    pub(super) path_bytes: u64,
    /// True if the targets of links are passed over; the headers of the links follow.
    pub(super) skips_targets: bool,
}

/// Part of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TarPart {
    Header,
    Extension,
    Path,
    Content,
}

/// Error of reading an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TarError {
    /// The archive ends in a part.
    Ended(TarPart),
    /// The bytes cannot be unpacked.
    Input(TarPart),
    /// The header has another checksum.
    Checksum,
    /// The size of an entry is no number.
    Size,
    /// An extended header, or a path in one, is too large.
    LargeExtension(TarPart, u64),
    /// An extended header cannot be read.
    Extension,
    /// A path is not UTF-8.
    Text,
    /// An entry has holes, which are not in the archive.
    Sparse,
    /// The archive unpacks to too much.
    TooLarge,
    /// There are too many entries.
    TooMany,
}

/// An entry of an archive; its content follows in the reader.
pub(super) struct TarEntry {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) kind: u8,
}

/// Path and size from the extended headers before an entry's own header.
#[derive(Debug, Default)]
struct Extended {
    path: Option<String>,
    size: Option<u64>,
}

/// Reads an archive from beginning to end.
pub(super) struct TarReader<R> {
    input: R,
    limits: TarLimits,
    /// Size of the last entry, until it is counted.
    waiting: Option<u64>,
    /// Bytes of the content that follow, and of its padding.
    content: u64,
    padding: u64,
    entries: usize,
    part: TarPart,
}

impl<R: Read> TarReader<R> {
    pub(super) fn new(input: R, limits: TarLimits) -> Self {
        Self { input, limits, waiting: None, content: 0, padding: 0, entries: 0, part: TarPart::Header }
    }

    /// Returns the next entry; none at the end. Content of the last one that was not read is
    /// skipped.
    pub(super) fn next_entry(&mut self) -> Result<Option<TarEntry>, TarError> {
        self.skip()?;
        let mut extended = Extended::default();
        while let Some(entry) = self.header()? {
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(TarError::TooMany);
            }
            match entry.kind {
                b'x' => extended.read(&self.extension(TarPart::Extension, entry.size)?)?,
                // Attributes of all entries, such as the commit in an archive that Git made.
                b'g' => drop(self.extension(TarPart::Extension, entry.size)?),
                // The target of a link, whose own header follows.
                b'K' if self.limits.skips_targets => {
                    drop(self.extension(TarPart::Extension, entry.size)?);
                }
                b'L' => extended.path = Some(text(&self.extension(TarPart::Path, entry.size)?)?),
                kind => {
                    let path = extended.path.unwrap_or(entry.path);
                    let size = extended.size.unwrap_or(entry.size);
                    self.waiting = Some(size);
                    return Ok(Some(TarEntry { path, size, kind }));
                }
            }
        }
        Ok(None)
    }

    /// Counts the content of the last entry, before it is read.
    pub(super) fn begin(&mut self) -> Result<(), TarError> {
        let Some(size) = self.waiting.take() else { return Ok(()) };
        let padded = size.checked_next_multiple_of(BLOCK as u64).unwrap_or(u64::MAX);
        self.limits.bytes = self.limits.bytes.checked_sub(padded).ok_or(TarError::TooLarge)?;
        (self.content, self.padding, self.part) = (size, padded - size, TarPart::Content);
        Ok(())
    }

    /// Passes the content of the last entry on, piece by piece.
    pub(super) fn content<E: From<TarError>>(
        &mut self,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.begin()?;
        let mut buffer = [0; 32 * 1024];
        while self.content > 0 {
            let most = usize::try_from(self.content).unwrap_or(usize::MAX).min(buffer.len());
            let read = self.fill(&mut buffer[..most])?;
            self.content -= read as u64;
            sink(&buffer[..read])?;
        }
        Ok(())
    }

    /// Returns the bytes and entries that the archive did not use of its limits.
    pub(super) fn left(&self) -> (u64, usize) {
        (self.limits.bytes, self.limits.entries.saturating_sub(self.entries))
    }

    fn skip(&mut self) -> Result<(), TarError> {
        self.begin()?;
        self.content += std::mem::take(&mut self.padding);
        self.content(&mut |_| Ok::<(), TarError>(()))
    }

    /// Reads the content of an extended header.
    fn extension(&mut self, part: TarPart, size: u64) -> Result<Vec<u8>, TarError> {
        let limit = if part == TarPart::Path { self.limits.path_bytes } else { MAX_EXTENSION_BYTES };
        if size > limit {
            return Err(TarError::LargeExtension(part, size));
        }
        self.waiting = Some(size);
        self.begin()?;
        self.part = part;
        let mut bytes = Vec::new();
        self.content(&mut |part| {
            bytes.extend_from_slice(part);
            Ok::<(), TarError>(())
        })?;
        self.skip()?;
        Ok(bytes)
    }

    /// Returns the next header; none at the end.
    fn header(&mut self) -> Result<Option<TarEntry>, TarError> {
        let mut block = [0; BLOCK];
        self.limits.bytes = self.limits.bytes.checked_sub(BLOCK as u64).ok_or(TarError::TooLarge)?;
        self.part = TarPart::Header;
        let mut filled = 0;
        while filled < BLOCK {
            filled += self.fill(&mut block[filled..])?;
        }
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        // The checksum counts its own field as spaces.
        let counted = |(at, byte): (usize, &u8)| if CHECKSUM.contains(&at) { b' ' } else { *byte };
        let sum: u64 = block.iter().enumerate().map(|one| u64::from(counted(one))).sum();
        if number(&block[CHECKSUM]) != Some(sum) {
            return Err(TarError::Checksum);
        }
        let mut path = field(&block[NAME])?;
        // The older format has other fields in the place of the path prefix.
        if is_tar(&block) && block[MAGIC.end] == 0 {
            let front = field(&block[PREFIX])?;
            if !front.is_empty() {
                path = format!("{front}/{path}");
            }
        }
        let size = number(&block[SIZE]).ok_or(TarError::Size)?;
        Ok(Some(TarEntry { path, size, kind: block[KIND] }))
    }

    /// Reads at least one byte.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, TarError> {
        loop {
            match self.input.read(buffer) {
                Ok(0) => return Err(TarError::Ended(self.part)),
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Err(TarError::Ended(self.part));
                }
                Err(_) => return Err(TarError::Input(self.part)),
            }
        }
    }
}

impl Extended {
    /// Parses records of the form `LENGTH NAME=VALUE`, each with a line feed.
    fn read(&mut self, mut bytes: &[u8]) -> Result<(), TarError> {
        const BROKEN: TarError = TarError::Extension;
        while !bytes.is_empty() {
            let space = bytes.iter().position(|byte| *byte == b' ').ok_or(BROKEN)?;
            let length = std::str::from_utf8(&bytes[..space]).ok().and_then(|digits| digits.parse().ok());
            let record = length.and_then(|length: usize| bytes.get(space + 1..length)).ok_or(BROKEN)?;
            let record = record.strip_suffix(b"\n").ok_or(BROKEN)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or(BROKEN)?;
            match &record[..equals] {
                b"path" => self.path = Some(text(&record[equals + 1..])?),
                b"size" => self.size = Some(text(&record[equals + 1..])?.parse().map_err(|_| BROKEN)?),
                name if name.starts_with(b"GNU.sparse.") => return Err(TarError::Sparse),
                _ => {}
            }
            bytes = &bytes[length.unwrap_or(bytes.len())..];
        }
        Ok(())
    }
}

/// Splits a path into its parts, without `.`; none if it leads elsewhere.
pub(super) fn path_parts(path: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let leads_away = path.starts_with('/')
        || parts.contains(&"..")
        || path.contains('\\')
        || path.chars().any(char::is_control);
    (!leads_away).then_some(parts)
}

fn field(bytes: &[u8]) -> Result<String, TarError> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    text(&bytes[..end])
}

fn text(bytes: &[u8]) -> Result<String, TarError> {
    let text = std::str::from_utf8(bytes).map(|text| text.trim_end_matches('\0').to_owned());
    text.map_err(|_| TarError::Text)
}

/// Parses an octal number between spaces and zero bytes; an empty field is 0.
fn number(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}
