//! Writes a pack, the form in which Git sends objects.
//!
//! In: objects, as many as are announced.
//! Out: the bytes of a pack, written as they come. Blobs are not held: their content is passed
//! through.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use git2::ObjectType;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use super::super::error::Error;
use super::layer_files::FileContent;

/// A pack that is being written.
pub(super) struct PackWriter<'a> {
    output: HashingWriter<'a>,
    bytes: u64,
}

/// Passes bytes on and hashes them.
struct HashingWriter<'a> {
    inner: &'a mut dyn Write,
    hash: Context,
    bytes: u64,
}

impl Write for HashingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<'a> PackWriter<'a> {
    /// Begins a pack of `count` objects.
    pub(super) fn begin(inner: &'a mut dyn Write, count: u32) -> Result<Self, Error> {
        let mut output = HashingWriter { inner, hash: Context::new(&SHA1_FOR_LEGACY_USE_ONLY), bytes: 0 };
        output.write_all(b"PACK\0\0\0\x02").map_err(write_error)?;
        output.write_all(&count.to_be_bytes()).map_err(write_error)?;
        Ok(Self { output, bytes: 0 })
    }

    /// Writes an object that is in memory.
    pub(super) fn object(&mut self, kind: ObjectType, bytes: &[u8]) -> Result<(), Error> {
        self.streamed(kind, bytes.len() as u64, &mut |sink| sink(bytes))
    }

    /// Writes an object whose content is passed through.
    pub(super) fn streamed(
        &mut self,
        kind: ObjectType,
        size: u64,
        content: FileContent<'_>,
    ) -> Result<(), Error> {
        self.output.write_all(&entry_header(kind, size)).map_err(write_error)?;
        // Fast rather than small: a mirror is read once or twice.
        let mut packed = ZlibEncoder::new(&mut self.output, Compression::fast());
        content(&mut |part| packed.write_all(part).map_err(write_error))?;
        packed.finish().map(drop).map_err(write_error)
    }

    /// Ends the pack and returns its size.
    pub(super) fn finish(mut self) -> Result<u64, Error> {
        let hash = self.output.hash.clone().finish();
        self.output.write_all(hash.as_ref()).map_err(write_error)?;
        self.output.flush().map_err(write_error)?;
        self.bytes += self.output.bytes;
        Ok(self.bytes)
    }
}

/// Returns the type and size before an object: four bits of the size, then seven a byte.
fn entry_header(kind: ObjectType, size: u64) -> Vec<u8> {
    let kind: u8 = match kind {
        ObjectType::Commit => 1,
        ObjectType::Tree => 2,
        ObjectType::Blob | ObjectType::Any => 3,
        ObjectType::Tag => 4,
    };
    let (mut header, mut left) = (Vec::new(), size >> 4);
    let mut byte = kind << 4 | u8::try_from(size & 15).unwrap_or_default();
    while left > 0 {
        header.push(byte | 0x80);
        byte = u8::try_from(left & 0x7f).unwrap_or_default();
        left >>= 7;
    }
    header.push(byte);
    header
}

fn write_error(error: io::Error) -> Error {
    super::super::http_failure::fault(
        "the registry",
        "an artifact",
        crate::pkt_line::ProtocolError::Output(error),
    )
}

#[cfg(test)]
mod tests {
    use git2::{Odb, Oid};

    use super::*;

    #[test]
    fn a_library_reads_what_is_written() {
        let root = tempfile::tempdir().unwrap();
        let texts: Vec<Vec<u8>> = [0, 1, 15, 16, 2047, 2048, 70_000].map(|size| vec![b'x'; size]).to_vec();
        let mut indexer = git2::Indexer::new(None, root.path(), 0, true).unwrap();
        let mut pack = PackWriter::begin(&mut indexer, texts.len() as u32).unwrap();
        texts.iter().for_each(|text| pack.object(ObjectType::Blob, text).unwrap());
        assert!(pack.finish().unwrap() > 100);
        indexer.commit().unwrap();
        std::fs::create_dir(root.path().join("pack")).unwrap();
        for entry in std::fs::read_dir(root.path()).unwrap().flatten() {
            if entry.file_type().unwrap().is_file() {
                std::fs::rename(entry.path(), root.path().join("pack").join(entry.file_name())).unwrap();
            }
        }
        let database = Odb::new().unwrap();
        database.add_disk_alternate(root.path().to_str().unwrap()).unwrap();
        for text in texts {
            let id = Oid::hash_object(ObjectType::Blob, &text).unwrap();
            assert_eq!(database.read(id).unwrap().data(), text);
        }
    }
}
