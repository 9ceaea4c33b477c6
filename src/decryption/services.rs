//! Data keys that servers decrypt, kept in memory with the logins that they were asked with.
//!
//! In: a token of Vault, credentials of clouds or a ServiceAccount, and the answers of servers.
//! Out: a holder of keys that knows the answers, and the questions that it has no answer to.
//! Nothing here asks a server: that happens while no render holds memory.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use moorline_sops::{KeyHolder, KeyRefusal, KeySource, SecretBytes};

use crate::source::{KmsCiphertext, KmsLogin, TransitCiphertext, TransitLogin};

/// Most data keys that are kept; others are asked for again.
const MAX_DATA_KEYS: usize = 10_000;

/// An encrypted data key, as a file names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WantedKey {
    /// Of Vault.
    Vault(TransitCiphertext),
    /// Of the key service of a cloud.
    Cloud(KmsCiphertext),
}

/// Logins for servers, and the data keys that these have decrypted.
#[derive(Default)]
pub struct ServiceKeys {
    pub(super) vault: Option<TransitLogin>,
    pub(super) clouds: KmsLogin,
    data_keys: Mutex<BTreeMap<WantedKey, SecretBytes>>,
}

/// Answers that were refused during one render, with the reasons.
pub type Refusals = BTreeMap<WantedKey, Box<str>>;

impl ServiceKeys {
    /// The token of Vault.
    pub fn vault(&self) -> Option<&TransitLogin> {
        self.vault.as_ref()
    }

    /// The credentials of clouds.
    pub fn clouds(&self) -> &KmsLogin {
        &self.clouds
    }

    /// Keeps an answer.
    pub fn keep(&self, wanted: WantedKey, data_key: &[u8]) {
        let mut known = self.lock();
        if known.len() >= MAX_DATA_KEYS {
            known.clear();
        }
        known.insert(wanted, SecretBytes::new(data_key.to_vec()));
    }

    /// Returns the question to a server; none for keys that need none.
    fn question(&self, source: &KeySource) -> Result<Option<WantedKey>, KeyRefusal> {
        let has_account = self.clouds.account.is_some();
        let served = |is_served: bool, entry: &str, wanted: WantedKey| match is_served {
            true => Ok(Some(wanted)),
            false => Err(KeyRefusal(format!("there is no {entry}"))),
        };
        match source {
            KeySource::Vault { address, engine_path, key_name, enc } => {
                let wanted = TransitCiphertext {
                    address: address.as_str().into(),
                    engine_path: engine_path.as_str().into(),
                    key_name: key_name.as_str().into(),
                    ciphertext: enc.as_str().into(),
                };
                served(self.vault.is_some(), "sops.vault-token", WantedKey::Vault(wanted))
            }
            KeySource::AwsKms { arn, role, context, enc, .. } => {
                let wanted = KmsCiphertext::Aws {
                    arn: arn.as_str().into(),
                    role: role.as_str().into(),
                    context: context.clone(),
                    ciphertext: enc.as_str().into(),
                };
                let is_served = self.clouds.aws.is_some() || has_account;
                served(is_served, "sops.aws-kms, and no ServiceAccount", WantedKey::Cloud(wanted))
            }
            KeySource::GcpKms { resource, enc } => {
                let (resource, ciphertext) = (resource.as_str().into(), enc.as_str().into());
                let is_served = self.clouds.gcp.is_some() || has_account;
                let wanted = WantedKey::Cloud(KmsCiphertext::Gcp { resource, ciphertext });
                served(is_served, "sops.gcp-kms, and no ServiceAccount", wanted)
            }
            KeySource::AzureKeyVault { vault_url, name, version, enc } => {
                let wanted = KmsCiphertext::Azure {
                    vault: vault_url.as_str().into(),
                    name: name.as_str().into(),
                    version: version.as_str().into(),
                    ciphertext: enc.as_str().into(),
                };
                let is_served = self.clouds.azure.is_some() || has_account;
                served(is_served, "sops.azure-kv, and no ServiceAccount", WantedKey::Cloud(wanted))
            }
            KeySource::HuaweiKms { .. } => Err(KeyRefusal(
                "Huawei Cloud KMS is not served; encrypt the file for a key of age, too".to_owned(),
            )),
            _ => Ok(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<WantedKey, SecretBytes>> {
        self.data_keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holder of the data keys for the files of one render.
pub(super) struct ServiceHolder<'a> {
    keys: &'a ServiceKeys,
    refusals: &'a Refusals,
    wanted: RefCell<BTreeSet<WantedKey>>,
}

impl<'a> ServiceHolder<'a> {
    pub(super) fn new(keys: &'a ServiceKeys, refusals: &'a Refusals) -> Self {
        Self { keys, refusals, wanted: RefCell::default() }
    }

    /// Returns the questions since the last call.
    pub(super) fn take_wanted(&self) -> BTreeSet<WantedKey> {
        self.wanted.take()
    }
}

impl KeyHolder for ServiceHolder<'_> {
    fn decrypt(&self, source: &KeySource) -> Result<Option<SecretBytes>, KeyRefusal> {
        let Some(wanted) = self.keys.question(source)? else { return Ok(None) };
        if let Some(found) = self.keys.lock().get(&wanted) {
            return Ok(Some(SecretBytes::new(found.as_bytes().to_vec())));
        }
        if let Some(reason) = self.refusals.get(&wanted) {
            return Err(KeyRefusal(reason.to_string()));
        }
        self.wanted.borrow_mut().insert(wanted);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_asked_for_once_and_belongs_to_its_token() {
        let source = KeySource::Vault {
            address: "https://vault.example".into(),
            engine_path: "transit".into(),
            key_name: "shop".into(),
            enc: "vault:v1:c2hvcA==".into(),
        };
        let keys = || ServiceKeys {
            vault: Some(TransitLogin::new("planted".into(), None)),
            ..ServiceKeys::default()
        };
        let (one, two, refusals) = (keys(), keys(), Refusals::new());
        let holder = ServiceHolder::new(&one, &refusals);
        assert!(matches!(holder.decrypt(&source), Ok(None)));
        let wanted = holder.take_wanted().pop_first().expect("is asked for");
        assert!(holder.take_wanted().is_empty());
        one.keep(wanted.clone(), &[7; 32]);
        assert!(matches!(holder.decrypt(&source), Ok(Some(_))) && holder.take_wanted().is_empty());
        assert!(matches!(ServiceHolder::new(&two, &refusals).decrypt(&source), Ok(None)));
        let refusals = Refusals::from([(wanted, "no".into())]);
        let refused = ServiceHolder::new(&two, &refusals).decrypt(&source);
        assert_eq!(refused.map(drop), Err(KeyRefusal("no".into())));
        assert!(ServiceHolder::new(&ServiceKeys::default(), &refusals).decrypt(&source).is_err());
    }

    #[test]
    fn keys_of_clouds_need_credentials_and_are_distinguished_by_their_context() {
        let source = |app: &str| KeySource::AwsKms {
            arn: "arn:aws:kms:eu-central-1:123456789012:key/a".into(),
            role: String::new(),
            context: BTreeMap::from([("app".to_owned(), app.to_owned())]),
            profile: String::new(),
            enc: "AQIC".into(),
        };
        let nothing = ServiceKeys::default();
        let told = ServiceHolder::new(&nothing, &Refusals::new()).decrypt(&source("a"));
        let expect = "there is no sops.aws-kms, and no ServiceAccount";
        assert_eq!(told.map(drop), Err(KeyRefusal(expect.into())));
        let mut keys = ServiceKeys::default();
        keys.clouds.aws = Some(crate::source::AwsCredentials {
            access_key: "AKIA1".to_owned(),
            secret_key: "planted".into(),
            session_token: None,
        });
        let refusals = Refusals::new();
        let holder = ServiceHolder::new(&keys, &refusals);
        assert!(matches!((holder.decrypt(&source("a")), holder.decrypt(&source("b"))), (Ok(None), Ok(None))));
        assert_eq!(holder.take_wanted().len(), 2);
    }
}
