//! Keys that decrypt files, from the Secret of a Sync or from a user.
//!
//! In: the entries of a Secret, named as Flux names them: `NAME.agekey`, `NAME.asc`,
//! `sops.vault-token`, `sops.aws-kms`, `sops.gcp-kms`, `sops.azure-kv`; a ServiceAccount.
//! Out: [`DecryptionKeys`], which cannot be formatted. Two of them are equal if their entries and
//! accounts are equal.

use std::fmt;

use moorline_sops::{AgeIdentities, KeyHolder, OpenPgpKeys};
use sha2::{Digest as _, Sha256};

use super::cloud_entries;
use super::services::ServiceKeys;
use crate::source::{AccountName, CloudAccount, TransitLogin};

/// Ending of an entry with identities of age.
const AGE: &str = ".agekey";
/// Ending of an entry with private keys of OpenPGP.
const OPEN_PGP: &str = ".asc";
/// Entry with a token of Vault.
const VAULT: &str = "sops.vault-token";
/// Entries with credentials of clouds.
const AWS: &str = "sops.aws-kms";
const GCP: &str = "sops.gcp-kms";
const AZURE: &str = "sops.azure-kv";
/// Entry with the certificates by which Vault is recognised.
const AUTHORITIES: &str = "ca.crt";
/// Most bytes of one entry.
const MAX_ENTRY_BYTES: usize = 1024 * 1024;
/// Most entries with keys.
const MAX_ENTRIES: usize = 100;

/// Keys that decrypt files.
pub struct DecryptionKeys {
    age: Vec<AgeIdentities>,
    openpgp: Vec<OpenPgpKeys>,
    services: ServiceKeys,
    /// Digest of all entries.
    digest: [u8; 32],
}

/// An entry of a Secret that holds no key that can be used. It quotes nothing of the entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyEntryError {
    /// No entry has the name of a key.
    #[error(
        "it has no key: name an entry with identities of age NAME{AGE}, one with OpenPGP keys NAME{OPEN_PGP}, one with a token of Vault {VAULT}, and those with credentials of clouds {AWS}, {GCP} and {AZURE}"
    )]
    None,
    /// There are too many entries.
    #[error("it has more than {MAX_ENTRIES} keys")]
    TooMany,
    /// An entry is no key.
    #[error("{entry}: {problem}")]
    Unusable {
        /// The entry's name.
        entry: Box<str>,
        /// The problem.
        problem: Box<str>,
    },
}

/// Content of an entry, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EntryKind {
    Age,
    OpenPgp,
    VaultToken,
    Aws,
    Gcp,
    Azure,
    Authorities,
}

impl EntryKind {
    fn of(name: &str) -> Option<Self> {
        match () {
            () if name.ends_with(AGE) => Some(Self::Age),
            () if name.ends_with(OPEN_PGP) => Some(Self::OpenPgp),
            () if name == VAULT => Some(Self::VaultToken),
            () if name == AWS => Some(Self::Aws),
            () if name == GCP => Some(Self::Gcp),
            () if name == AZURE => Some(Self::Azure),
            () if name == AUTHORITIES => Some(Self::Authorities),
            () => None,
        }
    }
}

impl DecryptionKeys {
    /// Reads the keys among the entries of a Secret; other entries do not matter.
    pub fn from_entries<'a>(
        entries: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Self, KeyEntryError> {
        let known = entries.into_iter().filter_map(|(name, bytes)| Some((name, EntryKind::of(name)?, bytes)));
        Self::read(known.collect())
    }

    /// Reads identities of age from files or variables, which have any name.
    pub fn from_identities<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Self, KeyEntryError> {
        Self::read(files.into_iter().map(|(name, bytes)| (name, EntryKind::Age, bytes)).collect())
    }

    /// Returns no keys but those that clouds decrypt for a ServiceAccount.
    pub fn of_account(account: CloudAccount) -> Self {
        let (age, openpgp) = (Vec::new(), Vec::new());
        Self { age, openpgp, services: ServiceKeys::default(), digest: [0; 32] }.with_account(account)
    }

    /// Returns the keys with a ServiceAccount for clouds of which the Secret has no credentials.
    pub fn with_account(mut self, account: CloudAccount) -> Self {
        let AccountName { namespace, name, asker } = account.name();
        let mut digest = Sha256::new();
        digest.update(self.digest);
        for part in [Some(namespace), name.as_ref(), asker.as_ref()] {
            let part = part.map(|part| part.as_bytes()).unwrap_or_default();
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        self.digest = digest.finalize().into();
        self.services.clouds.account = Some(account);
        self
    }

    fn read(mut entries: Vec<(&str, EntryKind, &[u8])>) -> Result<Self, KeyEntryError> {
        let services = ServiceKeys::default();
        let mut keys = Self { age: Vec::new(), openpgp: Vec::new(), services, digest: [0; 32] };
        let (mut token, mut authorities) = (None, None);
        let mut digest = Sha256::new();
        entries.sort_unstable();
        match entries.iter().filter(|(_, kind, _)| *kind != EntryKind::Authorities).count() {
            0 => return Err(KeyEntryError::None),
            count if count > MAX_ENTRIES => return Err(KeyEntryError::TooMany),
            _ => {}
        }
        for (name, kind, bytes) in entries {
            let unusable =
                |problem: &str| KeyEntryError::Unusable { entry: name.into(), problem: problem.into() };
            if bytes.len() > MAX_ENTRY_BYTES {
                return Err(unusable("it is too large for keys"));
            }
            let text = std::str::from_utf8(bytes).map_err(|_| unusable("it is no text"))?;
            match kind {
                EntryKind::Age => {
                    let read = AgeIdentities::read(text);
                    keys.age.push(read.map_err(|error| unusable(&error.to_string()))?);
                }
                EntryKind::OpenPgp => {
                    let read = OpenPgpKeys::read(text);
                    keys.openpgp.push(read.map_err(|error| unusable(&error.to_string()))?);
                }
                EntryKind::VaultToken => {
                    let text = text.trim();
                    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
                        return Err(unusable("this is no token of Vault"));
                    }
                    token = Some(text.to_owned());
                }
                EntryKind::Aws => {
                    keys.services.clouds.aws = Some(cloud_entries::aws(text).map_err(unusable)?)
                }
                EntryKind::Gcp => {
                    keys.services.clouds.gcp = Some(cloud_entries::gcp(text).map_err(unusable)?)
                }
                EntryKind::Azure => {
                    keys.services.clouds.azure = Some(cloud_entries::azure(text).map_err(unusable)?);
                }
                EntryKind::Authorities => authorities = Some(bytes.to_vec()),
            }
            for part in [name.as_bytes(), bytes] {
                digest.update((part.len() as u64).to_be_bytes());
                digest.update(part);
            }
        }
        keys.services.vault = token.map(|token| TransitLogin::new(token, authorities));
        keys.digest = digest.finalize().into();
        Ok(keys)
    }

    /// The logins for servers, and the data keys that these have decrypted.
    pub fn services(&self) -> &ServiceKeys {
        &self.services
    }

    /// Returns the holders of the keys that need no server, in the order in which they are asked.
    pub fn holders(&self) -> Vec<&dyn KeyHolder> {
        let age = self.age.iter().map(|identities| -> &dyn KeyHolder { identities });
        let openpgp = self.openpgp.iter().map(|keys| -> &dyn KeyHolder { keys });
        age.chain(openpgp).collect()
    }
}

impl PartialEq for DecryptionKeys {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for DecryptionKeys {}

impl fmt::Debug for DecryptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecryptionKeys(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Identity of a test.
    const KEY: &str = "AGE-SECRET-KEY-1QQPQYZQFZSYGPYGPQZRYSGQYPQXPQCRSYQCPQXPQ";

    fn read(entries: &[(&str, &str)]) -> Result<DecryptionKeys, String> {
        let entries = entries.iter().map(|(name, text)| (*name, text.as_bytes()));
        DecryptionKeys::from_entries(entries).map_err(|error| error.to_string())
    }

    #[test]
    fn an_entry_that_is_no_key_is_named_and_never_quoted() {
        assert_eq!(read(&[("password", "hunter2")]), Err(KeyEntryError::None.to_string()));
        let told = read(&[("a.agekey", "hunter2")]).unwrap_err();
        assert_eq!(told, "a.agekey: line 1: this is not an identity of age (AGE-SECRET-KEY-1…)");
        let told = read(&[("sops.aws-kms", "hunter2")]).unwrap_err();
        assert_eq!(told, "sops.aws-kms: it is no mapping of names to values");
        let told = read(&[("a.agekey", KEY)]).unwrap_err();
        assert!(!told.contains("QQPQYZ"), "{told}");
    }
}
