//! The repository that `--url` names.
//!
//! In: the flag. Out: its address, or why there is none.

use anyhow::{Context as _, bail};

use crate::source::{Address, not_a_repository};

/// The repository, wherever this is read: a path on the disk means what it does where it was typed.
pub(super) fn address(url: &str) -> anyhow::Result<Address> {
    let address = Address::any(url)?;
    let Some(path) = address.local_path() else { return Ok(address) };
    let whole = path.canonicalize().or_else(|_| std::path::absolute(path))?;
    Ok(Address::any(&whole.to_string_lossy())?)
}

/// Refuses a folder of this disk that holds no repository: waiting for one would look like a daemon at work.
pub(super) fn must_be_there(url: &str) -> anyhow::Result<()> {
    let address = address(url).context("--url")?;
    match address.local_path().and_then(not_a_repository) {
        Some(why) => bail!("--url: {why}"),
        None => Ok(()),
    }
}
