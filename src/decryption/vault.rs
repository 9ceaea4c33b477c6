//! Data keys that Vault decrypts, kept in memory with the token that they were asked with.
//!
//! In: a token, and the answers of servers. Out: a holder of keys that knows the answers, and the
//! questions that it has no answer to. Nothing here asks a server: that happens while no render
//! holds memory.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use moorline_sops::{KeyHolder, KeyRefusal, KeySource, SecretBytes};

use crate::source::{TransitCiphertext, TransitLogin};

/// Most data keys that are kept; others are asked for again.
const MAX_DATA_KEYS: usize = 10_000;

/// A token, and the data keys that it has decrypted.
pub struct VaultKeys {
    login: TransitLogin,
    data_keys: Mutex<BTreeMap<TransitCiphertext, SecretBytes>>,
}

/// Answers that were refused during one render, with the reasons.
pub type Refusals = BTreeMap<TransitCiphertext, Box<str>>;

impl VaultKeys {
    pub(super) fn new(login: TransitLogin) -> Self {
        Self { login, data_keys: Mutex::default() }
    }

    /// The token.
    pub fn login(&self) -> &TransitLogin {
        &self.login
    }

    /// Keeps an answer.
    pub fn keep(&self, wanted: TransitCiphertext, data_key: &[u8]) {
        let mut known = self.lock();
        if known.len() >= MAX_DATA_KEYS {
            known.clear();
        }
        known.insert(wanted, SecretBytes::new(data_key.to_vec()));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TransitCiphertext, SecretBytes>> {
        self.data_keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holder of the data keys for the files of one render.
pub(super) struct VaultHolder<'a> {
    keys: Option<&'a VaultKeys>,
    refusals: &'a Refusals,
    wanted: RefCell<BTreeSet<TransitCiphertext>>,
}

impl<'a> VaultHolder<'a> {
    pub(super) fn new(keys: Option<&'a VaultKeys>, refusals: &'a Refusals) -> Self {
        Self { keys, refusals, wanted: RefCell::default() }
    }

    /// Returns the questions since the last call.
    pub(super) fn take_wanted(&self) -> BTreeSet<TransitCiphertext> {
        self.wanted.take()
    }
}

impl KeyHolder for VaultHolder<'_> {
    fn decrypt(&self, source: &KeySource) -> Result<Option<SecretBytes>, KeyRefusal> {
        let KeySource::Vault { address, engine_path, key_name, enc } = source else { return Ok(None) };
        let Some(keys) = self.keys else {
            return Err(KeyRefusal("there is no sops.vault-token".to_owned()));
        };
        let wanted = TransitCiphertext {
            address: address.as_str().into(),
            engine_path: engine_path.as_str().into(),
            key_name: key_name.as_str().into(),
            ciphertext: enc.as_str().into(),
        };
        if let Some(found) = keys.lock().get(&wanted) {
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
        let keys = || VaultKeys::new(TransitLogin::new("planted".into(), None));
        let (one, two, refusals) = (keys(), keys(), Refusals::new());
        let holder = VaultHolder::new(Some(&one), &refusals);
        assert!(matches!(holder.decrypt(&source), Ok(None)));
        let wanted = holder.take_wanted().pop_first().expect("is asked for");
        assert!(holder.take_wanted().is_empty());
        one.keep(wanted.clone(), &[7; 32]);
        assert!(matches!(holder.decrypt(&source), Ok(Some(_))) && holder.take_wanted().is_empty());
        assert!(matches!(VaultHolder::new(Some(&two), &refusals).decrypt(&source), Ok(None)));
        let refusals = Refusals::from([(wanted, "no".into())]);
        let refused = VaultHolder::new(Some(&two), &refusals).decrypt(&source);
        assert_eq!(refused.map(drop), Err(KeyRefusal("no".into())));
        assert!(VaultHolder::new(None, &refusals).decrypt(&source).is_err());
    }
}
