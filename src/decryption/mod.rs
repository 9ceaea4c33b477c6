//! Decrypts the files of a tree that SOPS encrypted, or masks them for the text of a stranger.
//!
//! In: a tree, and the keys of a Secret or of a user. Out: the tree in which these files are plain,
//! so that every reader of the tree sees them decrypted. A file that cannot be decrypted keeps the
//! reason, which only its reader meets: a file for others among them breaks no render.

mod cloud_entries;
mod decrypt_files;
mod keys;
mod mask_files;
mod services;

pub use decrypt_files::{DecryptedFiles, decrypt_files, decrypt_with_holders};
pub use keys::{DecryptionKeys, KeyEntryError};
pub use mask_files::mask_files;
pub use services::{Refusals, ServiceKeys, WantedKey};
