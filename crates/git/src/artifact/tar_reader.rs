//! Reads a tar archive from a registry, entry by entry.
//!
//! In: the unpacked bytes of a layer, as they come.
//! Out: the files, each with a relative path and its content; or an [`ArtifactError`]. Bounds come
//! before memory, and everything that could lead outside, or that stands for other content than is
//! in the archive, is refused: links, devices, sparse files, paths with `..`. A link is refused and
//! not dropped: a file that silently is not there would be pruned from the cluster.

use std::io::{ErrorKind, Read};

use super::super::error::Error;
use super::super::tar_number::number;
use super::artifact_error::ArtifactError;
use moorline_core::tree::{MAX_FILES, MAX_PATH_BYTES};

/// Maximum number of bytes of a path.
const MAX_ONE_PATH_BYTES: usize = 1024;

/// Maximum number of folders in a path.
const MAX_DEPTH: usize = 64;

/// Maximum number of bytes of an extended header.
const MAX_EXTENSION_BYTES: u64 = 64 * 1024;

/// Size of a header; content is padded to a multiple of it.
const BLOCK: usize = 512;

/// Place of the magic word in a header.
const MAGIC: std::ops::Range<usize> = 257..262;

/// Number of bytes that tell a tar archive from another file.
pub(super) const MAGIC_BYTES: usize = MAGIC.end;

/// True if a file begins as a tar archive does.
pub(super) fn is_tar(begin: &[u8]) -> bool {
    begin.get(MAGIC).is_some_and(|magic| magic == b"ustar")
}

/// A file in an archive; its content follows in the reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TarFile {
    pub(super) path: Box<str>,
    pub(super) size: u64,
}

/// Reads an archive from beginning to end.
pub(super) struct TarReader<R> {
    input: R,
    /// Number of bytes that may still be unpacked.
    left: u64,
    /// Bytes of the content that follow, and of its padding.
    content: u64,
    padding: u64,
    entries: usize,
    path_bytes: u64,
}

/// Path and size from the extended headers before a file's own header.
#[derive(Debug, Default)]
struct Extended {
    path: Option<String>,
    size: Option<u64>,
}

/// Header of an entry.
struct TarHeader {
    path: String,
    size: u64,
    kind: u8,
}

impl<R: Read> TarReader<R> {
    /// Reads an archive that unpacks to at most `limit` bytes.
    pub(super) fn new(input: R, limit: u64) -> Self {
        Self { input, left: limit, content: 0, padding: 0, entries: 0, path_bytes: 0 }
    }

    /// Returns the next file; none at the end. Content of the last one that was not read is
    /// skipped.
    pub(super) fn next_file(&mut self) -> Result<Option<TarFile>, Error> {
        self.skip()?;
        let mut extended = Extended::default();
        while let Some(header) = self.header()? {
            self.entries += 1;
            if self.entries > MAX_FILES {
                return refuse(format!("has more than {MAX_FILES} files"));
            }
            match header.kind {
                b'x' => extended.read(&self.extension(header.size)?)?,
                // Attributes of all entries, such as the commit in an archive that Git made.
                b'g' => drop(self.extension(header.size)?),
                // The target of a link, whose own header follows.
                b'K' => drop(self.extension(header.size)?),
                b'L' => extended.path = Some(text(&self.extension(header.size)?)?),
                b'5' => {
                    path(extended.path.as_deref().unwrap_or(&header.path))?;
                    extended = Extended::default();
                    self.begin(header.size)?;
                    self.skip()?;
                }
                b'0' | b'\0' | b'7' => {
                    let shown = extended.path.as_deref().unwrap_or(&header.path);
                    let Some(path) = path(shown)? else { return refuse("has a file without a name") };
                    self.path_bytes += path.len() as u64;
                    if self.path_bytes > MAX_PATH_BYTES {
                        return refuse(format!("has paths of more than {MAX_PATH_BYTES} bytes together"));
                    }
                    let size = extended.size.unwrap_or(header.size);
                    self.begin(size)?;
                    return Ok(Some(TarFile { path, size }));
                }
                b'1' | b'2' => {
                    return refuse(format!(
                        "has the link {}, and links are not followed",
                        shown(&header.path)
                    ));
                }
                b'S' => return refuse(format!("has the sparse file {}", shown(&header.path))),
                _ => return refuse(format!("has {}, which is no file and no folder", shown(&header.path))),
            }
        }
        Ok(None)
    }

    /// Passes the content of the last file on, piece by piece.
    pub(super) fn content(&mut self, sink: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut buffer = [0; 32 * 1024];
        while self.content > 0 {
            let most = usize::try_from(self.content).unwrap_or(usize::MAX).min(buffer.len());
            let read = self.fill(&mut buffer[..most])?;
            self.content -= read as u64;
            sink(&buffer[..read])?;
        }
        Ok(())
    }

    /// Counts the content of an entry before it is read.
    fn begin(&mut self, size: u64) -> Result<(), Error> {
        let padded = size.checked_next_multiple_of(BLOCK as u64).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(padded).ok_or_else(too_large)?;
        (self.content, self.padding) = (size, padded - size);
        Ok(())
    }

    fn skip(&mut self) -> Result<(), Error> {
        self.content += std::mem::take(&mut self.padding);
        self.content(&mut |_| Ok(()))
    }

    /// Reads the content of an extended header.
    fn extension(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        if size > MAX_EXTENSION_BYTES {
            return refuse(format!("has an extended header of more than {MAX_EXTENSION_BYTES} bytes"));
        }
        self.begin(size)?;
        let mut bytes = Vec::new();
        self.content(&mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        self.skip()?;
        Ok(bytes)
    }

    /// Returns the next header; none at the end.
    fn header(&mut self) -> Result<Option<TarHeader>, Error> {
        let mut block = [0; BLOCK];
        self.left = self.left.checked_sub(BLOCK as u64).ok_or_else(too_large)?;
        let mut filled = 0;
        while filled < BLOCK {
            filled += self.fill(&mut block[filled..])?;
        }
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
            return refuse("is no tar archive, or is damaged: a header has another checksum");
        }
        let mut path = field(&block[..100])?;
        // The older format has other fields in the place of the path prefix.
        if &block[257..263] == b"ustar\0" {
            let front = field(&block[345..500])?;
            if !front.is_empty() {
                path = format!("{front}/{path}");
            }
        }
        let size = number(&block[124..136]);
        let size = size.ok_or_else(|| archive("has a file whose size is no number"))?;
        Ok(Some(TarHeader { path, size, kind: block[156] }))
    }

    /// Reads at least one byte.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        loop {
            match self.input.read(buffer) {
                Ok(0) => return refuse("is not whole: it ends in the middle"),
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return refuse("is not whole: it ends in the middle");
                }
                Err(_) => return refuse("is not packed as gzip does, or is damaged"),
            }
        }
    }
}

impl Extended {
    /// Parses records of the form `LENGTH NAME=VALUE`, each with a line feed.
    fn read(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        let broken = || archive("has an extended header that cannot be read");
        while !bytes.is_empty() {
            let space = bytes.iter().position(|byte| *byte == b' ').ok_or_else(broken)?;
            let length = std::str::from_utf8(&bytes[..space]).ok().and_then(|digits| digits.parse().ok());
            let record = length.and_then(|length: usize| bytes.get(space + 1..length)).ok_or_else(broken)?;
            let record = record.strip_suffix(b"\n").ok_or_else(broken)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(broken)?;
            match &record[..equals] {
                b"path" => self.path = Some(text(&record[equals + 1..])?),
                b"size" => {
                    let size = text(&record[equals + 1..])?;
                    self.size = Some(size.parse().map_err(|_| broken())?);
                }
                name if name.starts_with(b"GNU.sparse.") => return refuse("has a sparse file"),
                _ => {}
            }
            bytes = &bytes[length.unwrap_or(bytes.len())..];
        }
        Ok(())
    }
}

/// Returns a path without `.`; none for the root itself.
fn path(given: &str) -> Result<Option<Box<str>>, Error> {
    let parts: Vec<&str> = given.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let leads_away = given.starts_with('/')
        || parts.contains(&"..")
        || given.contains('\\')
        || given.chars().any(char::is_control);
    if leads_away {
        return refuse(
            "has a path that leads elsewhere: one that begins with a slash, or has .., a backslash or a control character",
        );
    }
    if given.len() > MAX_ONE_PATH_BYTES || parts.len() > MAX_DEPTH {
        return refuse(format!(
            "has a path of more than {MAX_ONE_PATH_BYTES} bytes, or of more than {MAX_DEPTH} folders"
        ));
    }
    Ok((!parts.is_empty()).then(|| parts.join("/").into()))
}

fn field(bytes: &[u8]) -> Result<String, Error> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    text(&bytes[..end])
}

fn text(bytes: &[u8]) -> Result<String, Error> {
    let text = std::str::from_utf8(bytes).map(|text| text.trim_end_matches('\0').to_owned());
    text.map_err(|_| archive("has a path that is not UTF-8"))
}

/// Returns a path from an archive for a message.
fn shown(path: &str) -> String {
    moorline_core::sanitize::sanitize(&path.chars().take(100).collect::<String>())
}

fn too_large() -> Error {
    archive("unpacks to more than is allowed: 1 GiB, or 200 times as much as it was packed")
}

fn archive(problem: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    ArtifactError::Archive(problem.into()).into()
}

fn refuse<T>(problem: impl Into<std::borrow::Cow<'static, str>>) -> Result<T, Error> {
    Err(archive(problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        block[..path.len()].copy_from_slice(path.as_bytes());
        block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        block[156] = kind;
        block[257..263].copy_from_slice(b"ustar\0");
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
        block.extend_from_slice(content);
        block.resize(block.len().next_multiple_of(BLOCK), 0);
        block
    }

    fn read(archive: &[u8], limit: u64) -> Result<Vec<(String, String)>, String> {
        let mut reader = TarReader::new(archive, limit);
        let mut found = Vec::new();
        while let Some(file) = reader.next_file().map_err(|error| error.to_string())? {
            let mut content = Vec::new();
            let mut sink = |part: &[u8]| {
                content.extend_from_slice(part);
                Ok(())
            };
            reader.content(&mut sink).map_err(|error| error.to_string())?;
            assert_eq!(content.len() as u64, file.size);
            found.push((file.path.into(), String::from_utf8(content).unwrap()));
        }
        Ok(found)
    }

    fn whole(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut archive = entries.concat();
        archive.extend_from_slice(&[0; 2 * BLOCK]);
        archive
    }

    #[test]
    fn files_are_read_in_every_form_that_tools_write() {
        let long = "a/".repeat(60) + "long.yaml";
        let pax = format!("path=b/{long}\n");
        let pax = format!("{} {pax}", pax.len() + 4);
        let archive = whole(&[
            entry("pax_global_header", b'g', b"52 comment=0123456789012345678901234567890123456789\n"),
            entry("./", b'5', b""),
            entry("./one.yaml", b'0', b"one"),
            entry("sub/", b'5', b""),
            entry("sub/two.yaml", b'\0', b""),
            entry("././@LongLink", b'L', format!("{long}\0").as_bytes()),
            entry("short", b'0', b"three"),
            entry("PaxHeaders/x", b'x', pax.as_bytes()),
            entry("short", b'0', b"four"),
        ]);
        assert!(is_tar(&archive) && !is_tar(b"kind: ConfigMap\n"));
        let expect =
            [("one.yaml", "one"), ("sub/two.yaml", ""), (&*long, "three"), (&format!("b/{long}"), "four")];
        let expect: Vec<_> = expect.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        assert_eq!(read(&archive, 1 << 20).unwrap(), expect);
    }

    #[test]
    fn what_leads_elsewhere_is_refused_by_name() {
        let table: &[(Vec<u8>, &str)] = &[
            (entry("/etc/passwd", b'0', b"x"), "leads elsewhere"),
            (entry("a/../../b", b'0', b"x"), "leads elsewhere"),
            (entry("a\\b", b'0', b"x"), "leads elsewhere"),
            (entry("a\nb", b'0', b"x"), "leads elsewhere"),
            (entry("../b", b'5', b""), "leads elsewhere"),
            (entry("", b'0', b"x"), "without a name"),
            (entry("app.yaml", b'1', b""), "has the link app.yaml"),
            (entry("app.yaml", b'2', b""), "has the link app.yaml"),
            (entry("null", b'3', b""), "has null, which is no file"),
            (entry("disk", b'4', b""), "has disk, which is no file"),
            (entry("pipe", b'6', b""), "has pipe, which is no file"),
            (entry("big", b'S', b"x"), "the sparse file big"),
            (entry("x", b'x', b"22 GNU.sparse.major=1\n"), "has a sparse file"),
            (entry("x", b'x', b"99 path=a\n"), "cannot be read"),
            (entry(&"a/".repeat(49), b'0', b"x")[..BLOCK].to_vec(), "ends in the middle"),
            (vec![b'x'; BLOCK], "another checksum"),
        ];
        for (bytes, expect) in table {
            let error = read(bytes, 1 << 20).unwrap_err();
            assert!(error.contains(expect), "{expect}: {error}");
        }
        let deep = "a/".repeat(70);
        let deep = whole(&[entry("x", b'L', deep.as_bytes()), entry("x", b'0', b"x")]);
        assert!(read(&deep, 1 << 20).unwrap_err().contains("more than 64 folders"));
    }

    #[test]
    fn an_archive_is_bounded_before_it_is_read() {
        let archive = whole(&[entry("a", b'0', &[b'x'; 4000])]);
        assert!(read(&archive, 5000).unwrap_err().contains("unpacks to more"));
        assert_eq!(read(&archive, 6000).unwrap().len(), 1);
        let mut lies = entry("a", b'0', b"x");
        lies[124..135].copy_from_slice(b"77777777777");
        lies[148..156].fill(b' ');
        let sum: u32 = lies[..BLOCK].iter().map(|byte| u32::from(*byte)).sum();
        lies[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
        assert!(read(&lies, 1 << 20).unwrap_err().contains("unpacks to more"));
        assert!(read(&lies, u64::MAX).unwrap_err().contains("ends in the middle"));
    }
}
