//! Files of an archive from a registry.
//!
//! In: the unpacked bytes of a layer, as they come.
//! Out: the files, each with a relative path and its content; or an [`ArtifactError`]. Everything
//! that could lead outside, or that stands for other content than is in the archive, is refused:
//! links, devices, sparse files, paths with `..`. A link is refused and not dropped: a file that
//! silently is not there would be pruned from the cluster.

use std::borrow::Cow;
use std::io::Read;

use super::super::error::Error;
use super::super::tar_reader::{MAX_EXTENSION_BYTES, TarError, TarLimits, TarReader, path_parts};
use super::artifact_error::ArtifactError;
use moorline_core::tree::{MAX_FILES, MAX_PATH_BYTES};

/// Maximum number of bytes of a path.
const MAX_ONE_PATH_BYTES: usize = 1024;

/// Maximum number of folders in a path.
const MAX_DEPTH: usize = 64;

/// A file in an archive; its content follows in the reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArchiveFile {
    pub(super) path: Box<str>,
    pub(super) size: u64,
}

/// Bytes and files that the layers of an artifact may still have.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileLimits {
    bytes: u64,
    entries: usize,
    path_bytes: u64,
}

impl FileLimits {
    /// Limits of files that unpack to at most `bytes` together.
    pub(super) fn of_bytes(bytes: u64) -> Self {
        Self { bytes, entries: MAX_FILES, path_bytes: MAX_PATH_BYTES }
    }

    /// Counts a file that is in no archive.
    pub(super) fn count_file(&mut self, path: &str, size: u64) -> Result<(), Error> {
        self.bytes = self.bytes.checked_sub(size).ok_or(TarError::TooLarge)?;
        self.entries = self.entries.checked_sub(1).ok_or(TarError::TooMany)?;
        self.count_path(path)
    }

    fn count_path(&mut self, path: &str) -> Result<(), Error> {
        match self.path_bytes.checked_sub(path.len() as u64) {
            Some(left) => self.path_bytes = left,
            None => return refuse(format!("has paths of more than {MAX_PATH_BYTES} bytes together")),
        }
        Ok(())
    }
}

/// Reads the files of an archive from beginning to end.
pub(super) struct ArchiveFiles<R> {
    entries: TarReader<R>,
    limits: FileLimits,
}

impl<R: Read> ArchiveFiles<R> {
    /// Reads an archive within limits.
    pub(super) fn new(input: R, limits: FileLimits) -> Self {
        let tar = TarLimits {
            bytes: limits.bytes,
            entries: limits.entries,
            path_bytes: MAX_EXTENSION_BYTES,
            skips_targets: true,
        };
        Self { entries: TarReader::new(input, tar), limits }
    }

    /// Returns the part of the limits that the archive did not use.
    pub(super) fn left(&self) -> FileLimits {
        let (bytes, entries) = self.entries.left();
        FileLimits { bytes, entries, path_bytes: self.limits.path_bytes }
    }

    /// Returns the next file; none at the end. Content of the last one that was not read is
    /// skipped.
    pub(super) fn next_file(&mut self) -> Result<Option<ArchiveFile>, Error> {
        while let Some(entry) = self.entries.next_entry()? {
            match entry.kind {
                b'5' => drop(sound_path(&entry.path).or_else(has)?),
                b'0' | b'\0' | b'7' => {
                    let path = sound_path(&entry.path).or_else(has)?;
                    let Some(path) = path else { return refuse("has a file without a name") };
                    self.limits.count_path(&path)?;
                    self.entries.begin()?;
                    return Ok(Some(ArchiveFile { path, size: entry.size }));
                }
                b'1' | b'2' => {
                    return refuse(format!(
                        "has the link {}, and links are not followed",
                        shown(&entry.path)
                    ));
                }
                b'S' => return refuse(format!("has the sparse file {}", shown(&entry.path))),
                _ => return refuse(format!("has {}, which is no file and no folder", shown(&entry.path))),
            }
        }
        Ok(None)
    }

    /// Passes the content of the last file on, piece by piece.
    pub(super) fn content(&mut self, sink: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.entries.content(sink)
    }
}

impl From<TarError> for Error {
    fn from(error: TarError) -> Self {
        let problem: Cow<'static, str> = match error {
            TarError::Ended(_) => "is not whole: it ends in the middle".into(),
            TarError::Input(_) => "is not packed as gzip does, or is damaged".into(),
            TarError::Checksum => "is no tar archive, or is damaged: a header has another checksum".into(),
            TarError::Size => "has a file whose size is no number".into(),
            TarError::LargeExtension(..) => {
                format!("has an extended header of more than {MAX_EXTENSION_BYTES} bytes").into()
            }
            TarError::Extension => "has an extended header that cannot be read".into(),
            TarError::Text => "has a path that is not UTF-8".into(),
            TarError::Sparse => "has a sparse file".into(),
            TarError::TooLarge => {
                "unpacks to more than is allowed: 1 GiB, or 200 times as much as it was packed".into()
            }
            TarError::TooMany => format!("has more than {MAX_FILES} files").into(),
        };
        ArtifactError::Archive(problem).into()
    }
}

/// Returns a path without `.`, none for the root itself; or the problem of the path.
pub(super) fn sound_path(given: &str) -> Result<Option<Box<str>>, Cow<'static, str>> {
    let Some(parts) = path_parts(given) else {
        return Err(
            "a path that leads elsewhere: one that begins with a slash, or has .., a backslash or a control character"
                .into(),
        );
    };
    if given.len() > MAX_ONE_PATH_BYTES || parts.len() > MAX_DEPTH {
        let problem =
            format!("a path of more than {MAX_ONE_PATH_BYTES} bytes, or of more than {MAX_DEPTH} folders");
        return Err(problem.into());
    }
    Ok((!parts.is_empty()).then(|| parts.join("/").into()))
}

fn has<T>(problem: Cow<'static, str>) -> Result<T, Error> {
    refuse(format!("has {problem}"))
}

/// Returns a path from a registry for a message.
pub(super) fn shown(path: &str) -> String {
    moorline_core::sanitize::sanitize(&path.chars().take(100).collect::<String>())
}

fn refuse<T>(problem: impl Into<Cow<'static, str>>) -> Result<T, Error> {
    Err(ArtifactError::Archive(problem.into()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tar_reader::{BLOCK, is_tar};

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
        let mut reader = ArchiveFiles::new(archive, FileLimits::of_bytes(limit));
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
