//! The payload of an age file: chunks of 64 KiB, each with a counter.

use super::super::secret::SecretBytes;
use super::{FILE_KEY_BYTES, derive, open_in_place};

const NONCE_BYTES: usize = 16;
/// Largest payload: a data key or a share of one takes far less than the first chunk.
const MAX_BYTES: usize = 1024;

/// Decrypts a payload of one chunk.
pub(super) fn decrypt(file_key: &[u8; FILE_KEY_BYTES], payload: &[u8]) -> Result<SecretBytes, &'static str> {
    if payload.len() > MAX_BYTES {
        return Err("the encrypted data key is longer than a data key");
    }
    let damaged = "the encrypted data key was changed";
    let (nonce, sealed) = payload.split_at_checked(NONCE_BYTES).ok_or(damaged)?;
    let key = derive(nonce, file_key, "payload").ok_or(damaged)?;
    // The first chunk has the counter 0; the last byte marks the last chunk.
    let counter = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let mut chunk = SecretBytes::new(sealed.to_vec());
    let length = open_in_place(&key, counter, chunk.as_mut()).ok_or(damaged)?.len();
    chunk.truncate(length);
    Ok(chunk)
}
