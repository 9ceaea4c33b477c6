//! One encrypted file, from its bytes to the plain file.
//!
//! In: bytes, a format, and keys. Out: the bytes of the plain file, once its MAC fits.

use std::fmt;

use super::error::{MAX_FILE_BYTES, Problem, Refusal, SopsError};
use super::format::Format;
use super::key_groups::{self, KeyHolder};
use super::metadata::{self, Metadata};
use super::secret::{DataKey, SecretBytes};
use super::stores::{self, Loaded};

/// A file that SOPS encrypted. Formatting shows its name only.
pub struct EncryptedFile<'a> {
    file: String,
    metadata: Metadata,
    loaded: Loaded<'a>,
}

/// Reads a file; none if it is not encrypted.
///
/// A file is encrypted if it has the metadata of SOPS in its first document. Nothing is decrypted
/// yet. Pure and bounded: the bounds are the `MAX_` constants of this crate.
pub fn read<'a>(file: &str, bytes: &'a [u8], format: Format) -> Result<Option<EncryptedFile<'a>>, SopsError> {
    // The name of the metadata is in each format.
    if !bytes.windows(METADATA.len()).any(|part| part == METADATA) {
        return Ok(None);
    }
    load(file, bytes, format).map_err(|refusal| refusal.in_file(file))
}

const METADATA: &[u8] = b"sops";

fn load<'a>(file: &str, bytes: &'a [u8], format: Format) -> Result<Option<EncryptedFile<'a>>, Refusal> {
    let loaded = match bytes.len() > MAX_FILE_BYTES {
        true => Err(Refusal::new(1, Problem::FileBytes(bytes.len()))),
        false => stores::load(bytes, format),
    };
    let loaded = match loaded {
        // A file that cannot be read and has nothing encrypted is no matter of this crate.
        Err(refusal) if refusal.is_unreadable() && !bytes.windows(MARK.len()).any(|part| part == MARK) => {
            None
        }
        loaded => loaded?,
    };
    let Some(loaded) = loaded else { return Ok(None) };
    let metadata = metadata::read(&loaded.metadata, loaded.metadata_line)?;
    Ok(Some(EncryptedFile { file: file.to_owned(), metadata, loaded }))
}

/// Begin of an encrypted value.
const MARK: &[u8] = b"ENC[AES256_GCM,";

impl EncryptedFile<'_> {
    /// The metadata: the keys that the file is encrypted for.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the data key with the help of holders of keys, tried in order.
    pub fn data_key(&self, holders: &[&dyn KeyHolder]) -> Result<DataKey, SopsError> {
        key_groups::data_key(&self.metadata, holders).map_err(|refusal| refusal.in_file(&self.file))
    }

    /// Returns the bytes of the plain file, once the MAC over all its values fits.
    pub fn decrypt(&self, key: &DataKey) -> Result<SecretBytes, SopsError> {
        let Loaded { leaves, layout, .. } = &self.loaded;
        let plains = leaves.decrypt(&self.metadata, key);
        let written = plains.and_then(|plains| layout.write(leaves, &plains));
        written.map_err(|refusal| refusal.in_file(&self.file))
    }
}

impl fmt::Debug for EncryptedFile<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EncryptedFile").field("file", &self.file).finish_non_exhaustive()
    }
}
