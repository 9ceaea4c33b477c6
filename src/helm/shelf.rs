//! What helm printed before, on the disk: a daemon that begins anew must not draw every random number anew.
//!
//! In: a folder, and answers that are packed. Out: those that were put there, the oldest first. They may hold Secrets, as what helm
//! prints may, and are for this user's eyes only. What cannot be written or read is missing, and nothing else.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;

/// The digest of all that an answer depends on.
pub(super) type Key = [u8; 32];

/// How the file of an answer ends.
const ENDING: &str = ".packed";
/// The most files that are looked at.
const MAX_FILES: usize = 20_000;

/// A folder of answers.
#[derive(Debug, Clone)]
pub(super) struct Shelf(PathBuf);

impl Shelf {
    /// The answers in this folder.
    pub(super) fn at(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// What is there, the oldest first; what is larger than `most` bytes is left out.
    pub(super) fn all(&self, most: usize) -> Vec<(Key, Arc<[u8]>)> {
        let files = fs::read_dir(&self.0).into_iter().flatten().flatten().take(MAX_FILES);
        let mut found: Vec<_> = files
            .filter_map(|file| {
                let key = read(file.file_name().to_str()?.strip_suffix(ENDING)?)?;
                let metadata = file.metadata().ok().filter(|it| it.is_file() && it.len() <= most as u64)?;
                Some((metadata.modified().ok()?, key))
            })
            .collect();
        found.sort();
        let bytes = |key: &Key| fs::read(self.place(key)).ok().map(Arc::from);
        found.into_iter().filter_map(|(_, key)| Some((key, bytes(&key)?))).collect()
    }

    /// Puts an answer there.
    pub(super) fn put(&self, key: &Key, bytes: &[u8]) {
        if let Err(error) = self.write(key, bytes) {
            tracing::warn!(folder = %self.0.display(), %error, "what helm printed could not be kept on the disk");
        }
    }

    fn write(&self, key: &Key, bytes: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        // Half of a file is never found under its name.
        let (place, beside) = (self.place(key), self.place(key).with_extension("new"));
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)?
            .write_all(bytes)?;
        fs::rename(beside, place)
    }

    /// Takes it away.
    pub(super) fn remove(&self, key: &Key) {
        let _ = fs::remove_file(self.place(key));
    }

    fn place(&self, key: &Key) -> PathBuf {
        let name = key.iter().fold(String::new(), |name, byte| name + &format!("{byte:02x}"));
        self.0.join(name + ENDING)
    }
}

/// The key that a name is of.
fn read(name: &str) -> Option<Key> {
    let mut key = [0; 32];
    if name.len() != 2 * key.len() || !name.is_ascii() {
        return None;
    }
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(name.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(key)
}
