//! Resolves the repository of `--url`.
//!
//! In: the flag. Out: its address, or an error.

use anyhow::{Context as _, bail};

use crate::source::{Address, why_not_a_repository};

/// The address of the repository; local paths become absolute, because they are relative to the
/// current folder of the user.
pub(super) fn address(url: &str) -> anyhow::Result<Address> {
    let address = Address::local_or_remote(url)?;
    let Some(path) = address.local_path() else { return Ok(address) };
    let whole = path.canonicalize().or_else(|_| std::path::absolute(path))?;
    Ok(Address::local_or_remote(&whole.to_string_lossy())?)
}

/// Refuses a local folder that is no repository: a daemon that waits for one would look as if it
/// worked.
pub(super) fn require_repository(url: &str) -> anyhow::Result<()> {
    let address = address(url).context("--url")?;
    match address.local_path().and_then(why_not_a_repository) {
        Some(why) => bail!("--url: {why}"),
        None => Ok(()),
    }
}
