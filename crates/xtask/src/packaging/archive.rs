//! Archives whose bytes depend on their content alone.
//!
//! In: paths, modes and bytes, in the order in which they are added. Out: a tar archive in which
//! all files have one time and belong to root, and the same compressed.

use std::io::Write;

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

/// Tar archive that is being written.
pub(crate) struct Archive {
    builder: tar::Builder<Vec<u8>>,
    time: u64,
}

impl Archive {
    /// Starts an archive whose files all have this time, in seconds since 1970.
    pub(crate) fn new(time: u64) -> Self {
        Self { builder: tar::Builder::new(Vec::new()), time }
    }

    /// Adds a folder.
    pub(crate) fn folder(&mut self, path: &str) -> Result<(), String> {
        self.add(&format!("{}/", path.trim_end_matches('/')), 0o755, tar::EntryType::Directory, &[])
    }

    /// Adds a file.
    pub(crate) fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> Result<(), String> {
        self.add(path, mode, tar::EntryType::Regular, bytes)
    }

    fn add(&mut self, path: &str, mode: u32, kind: tar::EntryType, bytes: &[u8]) -> Result<(), String> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(self.time);
        header.set_size(bytes.len() as u64);
        self.builder.append_data(&mut header, path, bytes).map_err(|error| format!("{path}: {error}"))
    }

    /// Returns the bytes of the archive.
    pub(crate) fn finish(self) -> Result<Vec<u8>, String> {
        self.builder.into_inner().map_err(|error| format!("the archive: {error}"))
    }
}

/// Compresses bytes, without a name or a time of the moment.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| format!("gzip: {error}"))
}

/// SHA-256 of bytes, as 64 hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed() -> Vec<u8> {
        let mut archive = Archive::new(1_700_000_000);
        archive.folder("a").expect("a folder");
        archive.file("a/program", 0o755, b"bytes").expect("a file");
        gzip(&archive.finish().expect("an archive")).expect("compressed")
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        assert_eq!(packed(), packed());
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn files_belong_to_root_and_have_the_time_that_was_asked_for() {
        let archive = packed();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&archive[..]));
        for entry in archive.entries().expect("entries") {
            let entry = entry.expect("an entry");
            assert_eq!(entry.header().mtime().expect("a time"), 1_700_000_000);
            assert_eq!(entry.header().uid().expect("an owner"), 0);
            assert_eq!(entry.header().mode().expect("a mode"), 0o755);
        }
    }
}
