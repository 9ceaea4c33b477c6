//! Cookies that only this console can read and write.
//!
//! In: a key, and values. Out: text for a cookie, and the values of a cookie that was not altered.
//! AES-256-GCM seals with keys derived by HKDF, one for each kind of cookie; what a session depends
//! on is authenticated along, so that a cookie of other settings is refused.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};
use serde_json::Value;

/// The most characters of the value of a cookie: browsers keep 4096 bytes with its name.
pub(super) const MAX_COOKIE_CHARACTERS: usize = 3800;

/// Number of random bytes of ids, states and verifiers.
const RANDOM_BYTES: usize = 32;

/// Kinds of cookies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CookieKind {
    /// The session of a person.
    Session,
    /// A sign-in that has begun.
    SignIn,
}

/// The keys of a console. They cannot be formatted.
pub(super) struct CookieKeys {
    session: LessSafeKey,
    sign_in: LessSafeKey,
    /// Key of proofs in forms.
    pub(super) forms: Arc<hmac::Key>,
    /// The settings that cookies depend on.
    binding: Vec<u8>,
}

impl CookieKeys {
    /// Derives the keys from a secret.
    pub(super) fn new(secret: &[u8], binding: &str) -> Option<Self> {
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"moorline console").extract(secret);
        let key = |purpose: &[u8]| {
            let parts = [purpose];
            let key: UnboundKey = root.expand(&parts, &AES_256_GCM).ok()?.into();
            Some(LessSafeKey::new(key))
        };
        let parts: [&[u8]; 1] = [b"forms"];
        let forms: hmac::Key = root.expand(&parts, hmac::HMAC_SHA256).ok()?.into();
        Some(Self {
            session: key(b"session cookie")?,
            sign_in: key(b"sign-in cookie")?,
            forms: Arc::new(forms),
            binding: binding.as_bytes().to_vec(),
        })
    }

    /// Seals a value; `None` if it does not fit into a cookie.
    pub(super) fn seal(&self, kind: CookieKind, value: &Value) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut text = value.to_string().into_bytes();
        let sealed = Nonce::assume_unique_for_key(nonce);
        self.key(kind).seal_in_place_append_tag(sealed, Aad::from(&self.binding), &mut text).ok()?;
        let whole = URL_SAFE_NO_PAD.encode([&nonce[..], &text].concat());
        (whole.len() <= MAX_COOKIE_CHARACTERS).then_some(whole)
    }

    /// Opens the value of a cookie that this console sealed.
    pub(super) fn open(&self, kind: CookieKind, text: &str) -> Option<Value> {
        if text.len() > MAX_COOKIE_CHARACTERS {
            return None;
        }
        let mut bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = self.key(kind).open_in_place(nonce, Aad::from(&self.binding), sealed).ok()?;
        serde_json::from_slice(opened).ok()
    }

    fn key(&self, kind: CookieKind) -> &LessSafeKey {
        match kind {
            CookieKind::Session => &self.session,
            CookieKind::SignIn => &self.sign_in,
        }
    }
}

impl std::fmt::Debug for CookieKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CookieKeys(..)")
    }
}

/// Returns random text that can be a part of a URL; `None` if the system gives no random numbers.
pub(in crate::serve) fn random_text() -> Option<String> {
    let mut bytes = [0; RANDOM_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_this_console_sealed_is_opened() {
        let keys = |secret: &[u8], binding| CookieKeys::new(secret, binding).unwrap();
        let own = keys(b"one", "https://id");
        let value = json!({"user": "ada"});
        let text = own.seal(CookieKind::Session, &value).unwrap();
        assert_eq!(own.open(CookieKind::Session, &text), Some(value.clone()));
        assert_ne!(own.seal(CookieKind::Session, &value), Some(text.clone()), "each has its own nonce");
        assert_eq!(keys(b"two", "https://id").open(CookieKind::Session, &text), None, "another key");
        assert_eq!(keys(b"one", "https://other").open(CookieKind::Session, &text), None, "other settings");
        assert_eq!(own.open(CookieKind::SignIn, &text), None, "another kind");
        for at in [0, 13, text.len() - 2] {
            let mut altered = text.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(own.open(CookieKind::Session, &altered), None, "{at}");
        }
        for wrong in ["", "AAAA", &text[1..], &text[..text.len() - 4], &"A".repeat(MAX_COOKIE_CHARACTERS + 1)]
        {
            assert_eq!(own.open(CookieKind::Session, wrong), None, "{wrong}");
        }
        let long = json!({"groups": "a".repeat(MAX_COOKIE_CHARACTERS)});
        assert_eq!(own.seal(CookieKind::Session, &long), None);
        assert!(!format!("{own:?}").contains("one"));
    }
}
