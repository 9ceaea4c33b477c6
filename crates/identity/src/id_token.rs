//! Verifies ID tokens of OpenID Connect: signature, issuer, audience, nonce and time.
//!
//! In: a token, the keys of the provider, and [`TokenRules`].
//! Out: the claims, or an [`IdTokenError`]. Only RS256 and ES256 are accepted, also if the token
//! names another algorithm. Claims are read after the signature was verified.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::Value;

use crate::exchange::MAX_TOKEN_BYTES;

/// Seconds by which the clock of the provider may differ from ours.
pub const CLOCK_SKEW_SECONDS: i64 = 60;

/// Maximum number of keys of a provider.
const MAX_KEYS: usize = 100;

/// Number of bytes of a coordinate of a P-256 key.
const COORDINATE_BYTES: usize = 32;

/// First byte of a point that is not compressed.
const UNCOMPRESSED: u8 = 4;

/// Claims that a token has to have.
#[derive(Debug, Clone, Copy)]
pub struct TokenRules<'a> {
    /// The provider.
    pub issuer: &'a str,
    /// The client that the token is for.
    pub client: &'a str,
    /// The nonce of the sign-in.
    pub nonce: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// Error of a token that is not accepted. Nothing of the token is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdTokenError {
    /// It is not a signed token.
    #[error("the ID token cannot be read")]
    Malformed,
    /// The algorithm is not accepted.
    #[error(
        "the ID token is not signed by RS256 or ES256; choose one of them for the client at the provider"
    )]
    Algorithm,
    /// The key is not among those of the provider.
    #[error("the ID token is signed by a key that the provider does not publish")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the signature of the ID token is wrong")]
    Signature,
    /// A claim is wrong.
    #[error("the ID token has a wrong {0}")]
    Claim(&'static str),
    /// It has expired, or is not valid yet.
    #[error("the ID token is not valid at this time; compare the clocks")]
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
}

impl Algorithm {
    fn named(name: Option<&str>) -> Option<Self> {
        match name {
            Some("RS256") => Some(Self::Rs256),
            Some("ES256") => Some(Self::Es256),
            _ => None,
        }
    }

    /// True if a published key is one for this algorithm.
    fn fits(self, key: &Value) -> bool {
        let is_for_signatures = key["use"].is_null() || key["use"] == "sig";
        let says = key["alg"].is_null() || Self::named(key["alg"].as_str()) == Some(self);
        is_for_signatures
            && says
            && match self {
                Self::Rs256 => key["kty"] == "RSA",
                Self::Es256 => key["kty"] == "EC" && key["crv"] == "P-256",
            }
    }

    fn verify(self, key: &Value, signed: &[u8], signature: &[u8]) -> Result<(), IdTokenError> {
        let part = |name: &str| decode(key[name].as_str()?);
        let done = match self {
            Self::Rs256 => {
                let (n, e) = part("n").zip(part("e")).ok_or(IdTokenError::UnknownKey)?;
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            }
            Self::Es256 => {
                let (x, y) = part("x").zip(part("y")).ok_or(IdTokenError::UnknownKey)?;
                if x.len() != COORDINATE_BYTES || y.len() != COORDINATE_BYTES {
                    return Err(IdTokenError::UnknownKey);
                }
                let point = [&[UNCOMPRESSED], x.as_slice(), y.as_slice()].concat();
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
        };
        done.map_err(|_| IdTokenError::Signature)
    }
}

/// Verifies a token, and returns its claims.
pub fn verify_id_token(token: &str, keys: &Value, rules: TokenRules<'_>) -> Result<Value, IdTokenError> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(IdTokenError::Malformed);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(IdTokenError::Malformed)?;
    let (head, claims) = signed.split_once('.').ok_or(IdTokenError::Malformed)?;
    let head = object(head)?;
    let algorithm = Algorithm::named(head["alg"].as_str()).ok_or(IdTokenError::Algorithm)?;
    // An extension that must be understood is none of ours.
    if !head["crit"].is_null() {
        return Err(IdTokenError::Malformed);
    }
    let key = key_of(&head, keys, algorithm)?;
    let signature = decode(signature).ok_or(IdTokenError::Malformed)?;
    algorithm.verify(key, signed.as_bytes(), &signature)?;
    let claims = object(claims)?;
    judge(&claims, rules)?;
    Ok(claims)
}

/// Finds the key that the head names; without a name, the only key that fits.
fn key_of<'a>(head: &Value, keys: &'a Value, algorithm: Algorithm) -> Result<&'a Value, IdTokenError> {
    let all = keys["keys"].as_array().ok_or(IdTokenError::UnknownKey)?;
    let named = head["kid"].as_str();
    let fits = |key: &&Value| algorithm.fits(key) && named.is_none_or(|name| key["kid"] == name);
    let mut found = all.iter().take(MAX_KEYS).filter(fits);
    let key = found.next().ok_or(IdTokenError::UnknownKey)?;
    match found.next() {
        None => Ok(key),
        Some(_) => Err(IdTokenError::UnknownKey),
    }
}

fn judge(claims: &Value, rules: TokenRules<'_>) -> Result<(), IdTokenError> {
    if claims["iss"] != rules.issuer {
        return Err(IdTokenError::Claim("issuer"));
    }
    let audiences: Vec<&Value> = match &claims["aud"] {
        Value::Array(all) => all.iter().collect(),
        one => vec![one],
    };
    let authorized = &claims["azp"];
    if !audiences.iter().any(|one| **one == rules.client) {
        return Err(IdTokenError::Claim("audience"));
    }
    // Of several audiences, the token says which one asked for it.
    if (audiences.len() > 1 || !authorized.is_null()) && *authorized != rules.client {
        return Err(IdTokenError::Claim("authorized party"));
    }
    let nonce = claims["nonce"].as_str().unwrap_or_default();
    if nonce.is_empty() || nonce != rules.nonce {
        return Err(IdTokenError::Claim("nonce"));
    }
    let now = rules.now.as_second() as f64;
    let skew = CLOCK_SKEW_SECONDS as f64;
    let starts = |name: &str| match &claims[name] {
        Value::Null => true,
        time => time.as_f64().is_some_and(|time| time <= now + skew),
    };
    let is_alive = claims["exp"].as_f64().is_some_and(|end| end > now - skew);
    if is_alive && starts("nbf") && starts("iat") { Ok(()) } else { Err(IdTokenError::Time) }
}

fn object(part: &str) -> Result<Value, IdTokenError> {
    let bytes = decode(part).ok_or(IdTokenError::Malformed)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| IdTokenError::Malformed)?;
    if value.is_object() { Ok(value) } else { Err(IdTokenError::Malformed) }
}

fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::hmac;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
    use serde_json::json;

    const NOW: i64 = 1_800_000_000;

    fn encode(bytes: impl AsRef<[u8]>) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The public part of an RSA key, and a token of [`claims`] that it signed. The key is gone.
    const RSA: &str = "liCzqm1JC3umtNy1XiNEaJ0CD4srkbeHbLbXyesS2_pDvzxtki7Q1SUQ2T2f\
        -7wcAknZeM2DEWE5-VYSn4T-8-cK3on2-WHDf0wGP2kmL76KVBIQBqXyyNagy8lRZxPRxEoZyFmfqw4P67wEbaCGvO\
        ziPqgSG8Wpo_qOx2lNsgBj0FJL7cSEUjwPZjWs_luBV1JSQ46Zx5S9PY0znUj8iLA-4tJWmCMiXW3Q5qV342ZDzys9\
        qQl423O1GNmbTkUp8Sju0Qoz79EWAXI_uJ6Eh0LFoSYN6YzVhTQxGPWRqkawgxPoIj-z5WV11ZCCK3yxqDTw-k9FxVnPtTu8CyucQw";
    const SIGNED_BY_RSA: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.\
        eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOiJtb29ybGluZSIsIm5vbmNlIjoibi0xIiwic3ViIjoiYWRhIiwiZXhwIjoxODAwMDAwMzAwfQ.\
        lTFcbdFHYr_qeVxgJGkG6Qygot_m3zhrrHm3gBUCDZrqNQ7L98_KyJ-DiKLN98XZg-CxB27nzcVMYXgZI1SLJP_639\
        RVE5kzoYPPp1KpkHCJt2xZeLbfjXyLLKlMPcu3w4KMcLehpyf9UibxNoeD2L5EX9jiYQF-sJsGuffqb9k8BKf8gffC\
        mJ8pAtOGNetIowOLAdhArA_LgtapX6HxNfYbIatSd_dJS9gpa_KXib7lMBMCI3cPIru4Z-s1-z5T8ERtutgW0XQ0nW\
        4oLy11iJJZVWeTxQF7et-o1HlJgRR7r58FzPCPIWL2rgtDt-NbAT7FojdzA7uOU8RscQxFbw";

    /// A provider with a key of each kind.
    struct Provider {
        elliptic: EcdsaKeyPair,
    }

    impl Provider {
        fn new() -> Self {
            let random = SystemRandom::new();
            let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
            let elliptic =
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random).unwrap();
            Self { elliptic }
        }

        fn keys(&self) -> Value {
            let point = self.elliptic.public_key().as_ref();
            json!({"keys": [
                {"kty": "RSA", "use": "sig", "n": RSA, "e": "AQAB"},
                {"kty": "EC", "crv": "P-256", "kid": "two", "alg": "ES256", "x": encode(&point[1..33]), "y": encode(&point[33..])},
                {"kty": "RSA", "kid": "three", "use": "enc", "n": "AQAB", "e": "AQAB"},
            ]})
        }

        fn elliptic(&self, head: &Value, claims: &Value) -> String {
            let signed = format!("{}.{}", encode(head.to_string()), encode(claims.to_string()));
            let signature = self.elliptic.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
            format!("{signed}.{}", encode(signature))
        }
    }

    fn verify(token: &str, keys: &Value) -> Result<Value, IdTokenError> {
        let now = Timestamp::from_second(NOW).unwrap();
        let rules = TokenRules { issuer: "https://id.example", client: "moorline", nonce: "n-1", now };
        verify_id_token(token, keys, rules)
    }

    fn claims() -> Value {
        json!({"iss": "https://id.example", "aud": "moorline", "nonce": "n-1", "sub": "ada",
            "exp": NOW + 300, "iat": NOW})
    }

    #[test]
    fn each_claim_is_verified() {
        let provider = Provider::new();
        let keys = provider.keys();
        let with = |change: Value| {
            let mut claims = claims();
            for (name, value) in change.as_object().unwrap() {
                claims[name] = value.clone();
            }
            let head = json!({"alg": "ES256", "kid": "two"});
            verify(&provider.elliptic(&head, &claims), &keys).map(|_| ())
        };
        let claim = |name| Err(IdTokenError::Claim(name));
        let late = Err(IdTokenError::Time);
        for (change, expect) in [
            (json!({}), Ok(())),
            (json!({"aud": ["moorline"]}), Ok(())),
            (json!({"aud": ["moorline", "b"], "azp": "moorline"}), Ok(())),
            (json!({"exp": NOW - 59}), Ok(())),
            (json!({"nbf": NOW + 60, "exp": 1.9e9}), Ok(())),
            (json!({"iss": "https://id.example/"}), claim("issuer")),
            (json!({"iss": null}), claim("issuer")),
            (json!({"aud": "other"}), claim("audience")),
            (json!({"aud": []}), claim("audience")),
            (json!({"aud": ["moorline", "b"]}), claim("authorized party")),
            (json!({"azp": "other"}), claim("authorized party")),
            (json!({"nonce": "n-2"}), claim("nonce")),
            (json!({"nonce": null}), claim("nonce")),
            (json!({"exp": NOW - 61}), late),
            (json!({"exp": null}), late),
            (json!({"exp": "1900000000"}), late),
            (json!({"nbf": NOW + 61}), late),
            (json!({"iat": NOW + 61}), late),
        ] {
            assert_eq!(with(change.clone()), expect, "{change}");
        }
    }

    #[test]
    fn only_signatures_of_published_keys_are_accepted() {
        let provider = Provider::new();
        let keys = provider.keys();
        let sound = provider.elliptic(&json!({"alg": "ES256", "kid": "two"}), &claims());
        assert!(verify(&sound, &keys).is_ok());
        assert_eq!(verify(SIGNED_BY_RSA, &keys).unwrap()["sub"], "ada");

        let of = |head: Value| provider.elliptic(&head, &claims());
        let body =
            format!("{}.{}", encode(json!({"alg": "HS256"}).to_string()), encode(claims().to_string()));
        let forged = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &decode(RSA).unwrap()), body.as_bytes());
        let none = format!("{}.{}.", encode(r#"{"alg":"none"}"#), encode(claims().to_string()));
        let mut altered = sound.clone().into_bytes();
        altered[60] ^= 1;
        let (signed, _) = sound.rsplit_once('.').unwrap();
        for (token, expect) in [
            (none, IdTokenError::Algorithm),
            (format!("{body}.{}", encode(forged)), IdTokenError::Algorithm),
            (of(json!({"alg": "ES384", "kid": "two"})), IdTokenError::Algorithm),
            (of(json!({"kid": "two"})), IdTokenError::Algorithm),
            (of(json!({"alg": "ES256", "kid": "four"})), IdTokenError::UnknownKey),
            // The algorithm of another key.
            (of(json!({"alg": "RS256", "kid": "two"})), IdTokenError::UnknownKey),
            (of(json!({"alg": "RS256", "kid": "three"})), IdTokenError::UnknownKey),
            (of(json!({"alg": "RS256"})), IdTokenError::Signature),
            (of(json!({"alg": "ES256", "kid": "two", "crit": ["b64"]})), IdTokenError::Malformed),
            (String::from_utf8(altered).unwrap(), IdTokenError::Signature),
            (format!("{signed}."), IdTokenError::Signature),
            (signed.to_owned(), IdTokenError::Malformed),
            (String::new(), IdTokenError::Malformed),
            ("a".repeat(MAX_TOKEN_BYTES + 1), IdTokenError::Malformed),
        ] {
            assert_eq!(verify(&token, &keys).unwrap_err(), expect, "{token}");
        }
        let others = Provider::new().keys();
        assert_eq!(verify(&sound, &others).unwrap_err(), IdTokenError::Signature);
        assert_eq!(verify(&sound, &json!({"keys": []})).unwrap_err(), IdTokenError::UnknownKey);
    }
}
