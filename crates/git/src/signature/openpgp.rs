//! Signatures by OpenPGP keys, as `git commit -S` creates them with GnuPG.
//!
//! In: armoured public keys; content and its signature.
//! Out: true if one of the keys, or one of their signing subkeys, made it. The key must be valid
//! now: a signature by a key that has since expired or was revoked does not count, because its
//! holder could have backdated it.

use std::time::{Duration, SystemTime};

use pgp::composed::{Deserializable as _, DetachedSignature, SignedPublicKey, SignedPublicSubKey};
use pgp::packet::{Signature, SignatureType};
use pgp::types::KeyDetails as _;

use super::SignatureProblem;

/// First line of a public key.
pub(super) const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
/// First line of a signature.
pub(super) const SIGNATURE: &str = "-----BEGIN PGP SIGNATURE-----";

/// A public key with its self-signatures.
pub(super) type Key = SignedPublicKey;

/// Reads armoured public keys; only statements signed by the key itself count.
pub(super) fn read(text: &str) -> Result<Vec<Key>, &'static str> {
    let mut keys = Vec::new();
    for block in text.split_inclusive("-----END PGP PUBLIC KEY BLOCK-----") {
        let Some(at) = block.find(BEGIN) else { continue };
        let (read, _) = SignedPublicKey::from_armor_many(&block.as_bytes()[at..])
            .map_err(|_| "is no OpenPGP public key that can be read")?;
        for key in read {
            keys.push(key.map_err(|_| "is no OpenPGP public key that can be read")?);
        }
    }
    if keys.is_empty() { Err("is no OpenPGP public key that can be read") } else { Ok(keys) }
}

/// Checks that the content is signed by one of the keys.
pub(super) fn check(
    keys: &[Key],
    text: &[u8],
    signature: &str,
    now: SystemTime,
) -> Result<(), SignatureProblem> {
    let (signature, _) = DetachedSignature::from_armor_single(signature.as_bytes())
        .map_err(|_| SignatureProblem::Unreadable("it is damaged, or of an unknown kind"))?;
    let signature = signature.signature;
    if !matches!(signature.typ(), Some(SignatureType::Binary | SignatureType::Text)) {
        return Err(SignatureProblem::Unreadable("it is no signature of a text"));
    }
    let mut found = None;
    for key in keys {
        for part in parts(key).filter(|part| is_by(&signature, part)) {
            let signer: Box<str> = format!("{}", part.fingerprint()).to_uppercase().into();
            match part.check(key, &signature, text, now) {
                Ok(()) => return Ok(()),
                Err(SigningKeyError::Wrong) => found = found.or(Some(SignatureProblem::Wrong(signer))),
                Err(SigningKeyError::Unusable(why)) => found = Some(SignatureProblem::Unusable(signer, why)),
            }
        }
    }
    Err(found.unwrap_or_else(|| SignatureProblem::Unknown(issuer(&signature))))
}

/// A key that may have made a signature: a primary key, or one of its subkeys.
enum Part<'a> {
    Primary(&'a SignedPublicKey),
    Sub(&'a SignedPublicSubKey),
}

enum SigningKeyError {
    Wrong,
    Unusable(&'static str),
}

fn parts(key: &SignedPublicKey) -> impl Iterator<Item = Part<'_>> {
    std::iter::once(Part::Primary(key)).chain(key.public_subkeys.iter().map(Part::Sub))
}

impl Part<'_> {
    fn fingerprint(&self) -> pgp::types::Fingerprint {
        match self {
            Self::Primary(key) => key.fingerprint(),
            Self::Sub(key) => key.key.fingerprint(),
        }
    }

    fn check(
        &self,
        key: &SignedPublicKey,
        signature: &Signature,
        text: &[u8],
        now: SystemTime,
    ) -> Result<(), SigningKeyError> {
        match self {
            Self::Primary(key) => signature.verify(&key.primary_key, text),
            Self::Sub(sub) => signature.verify(&sub.key, text),
        }
        .map_err(|_| SigningKeyError::Wrong)?;
        is_good(key, now)?;
        if has_ended(
            signature.created().map(SystemTime::from),
            signature.signature_expiration_time().map(Into::into),
            now,
        ) {
            return Err(SigningKeyError::Unusable("made it with an expiration time that has passed"));
        }
        match self {
            Self::Primary(key) => match may_sign(key) {
                true => Ok(()),
                false => Err(SigningKeyError::Unusable("may not sign")),
            },
            Self::Sub(sub) => is_bound(key, sub, now),
        }
    }
}

/// True if a signature names this key as its issuer; a signature without an issuer may be by any
/// key.
fn is_by(signature: &Signature, part: &Part<'_>) -> bool {
    let (fingerprints, ids) = (signature.issuer_fingerprint(), signature.issuer_key_id());
    let id = match part {
        Part::Primary(key) => key.legacy_key_id(),
        Part::Sub(key) => key.key.legacy_key_id(),
    };
    let own = part.fingerprint();
    match (fingerprints.is_empty(), ids.is_empty()) {
        (true, true) => true,
        (false, _) => fingerprints.contains(&&own),
        (true, false) => ids.contains(&&id),
    }
}

fn issuer(signature: &Signature) -> Box<str> {
    let fingerprint = signature.issuer_fingerprint().first().map(|one| format!("{one}").to_uppercase());
    let id = || signature.issuer_key_id().first().map(|id| format!("{id}").to_uppercase());
    fingerprint.or_else(id).unwrap_or_else(|| "an OpenPGP key".to_owned()).into()
}

/// Checks that a primary key was not revoked and has not expired, by its own self-signatures.
fn is_good(key: &SignedPublicKey, now: SystemTime) -> Result<(), SigningKeyError> {
    let revoked = key.details.revocation_signatures.iter().any(|it| it.verify_key(&key.primary_key).is_ok());
    if revoked {
        return Err(SigningKeyError::Unusable("was revoked"));
    }
    let expiry = newest(own_words(key)).and_then(|words| words.key_expiration_time()).map(Into::into);
    match has_ended(Some(key.primary_key.created_at().into()), expiry, now) {
        true => Err(SigningKeyError::Unusable("has expired")),
        false => Ok(()),
    }
}

/// Returns the valid self-signatures of a key.
fn own_words(key: &SignedPublicKey) -> Vec<&Signature> {
    let direct = key.details.direct_signatures.iter().filter(|it| it.verify_key(&key.primary_key).is_ok());
    let of_users = key.details.users.iter().flat_map(|user| {
        user.signatures.iter().filter(|it| {
            it.is_certification()
                && it.verify_certification(&key.primary_key, pgp::types::Tag::UserId, &user.id).is_ok()
        })
    });
    direct.chain(of_users).collect()
}

fn newest(words: Vec<&Signature>) -> Option<&Signature> {
    words.into_iter().max_by_key(|words| words.created().map(SystemTime::from))
}

/// A key without usage flags may be used for anything.
fn may_sign(key: &SignedPublicKey) -> bool {
    let flags = newest(own_words(key)).map(Signature::key_flags);
    flags.is_none_or(|flags| flags.sign() || flags == pgp::packet::KeyFlags::default())
}

/// Checks that the primary key certifies this subkey for signing, and the subkey confirms the
/// binding.
fn is_bound(key: &SignedPublicKey, sub: &SignedPublicSubKey, now: SystemTime) -> Result<(), SigningKeyError> {
    let of_type = |type_: SignatureType| {
        let fits = move |it: &&Signature| {
            it.typ() == Some(type_) && it.verify_subkey_binding(&key.primary_key, &sub.key).is_ok()
        };
        sub.signatures.iter().filter(fits)
    };
    let revoked = sub.signatures.iter().any(|it| {
        it.typ() == Some(SignatureType::SubkeyRevocation)
            && it.verify_subkey_binding(&key.primary_key, &sub.key).is_ok()
    });
    if revoked {
        return Err(SigningKeyError::Unusable("was revoked"));
    }
    let Some(binding) = newest(of_type(SignatureType::SubkeyBinding).collect()) else {
        return Err(SigningKeyError::Unusable("its primary key does not certify"));
    };
    let agrees = binding
        .embedded_signature()
        .is_some_and(|back| back.verify_primary_key_binding(&sub.key, &key.primary_key).is_ok());
    if !binding.key_flags().sign() || !agrees {
        return Err(SigningKeyError::Unusable("may not sign"));
    }
    let expiry = binding.key_expiration_time().map(Into::into);
    match has_ended(Some(sub.key.created_at().into()), expiry, now) {
        true => Err(SigningKeyError::Unusable("has expired")),
        false => Ok(()),
    }
}

/// True if the period from `began` of this length is over; without a length it never ends.
fn has_ended(began: Option<SystemTime>, length: Option<Duration>, now: SystemTime) -> bool {
    let length = length.filter(|length| !length.is_zero());
    match (began, length) {
        (Some(began), Some(length)) => began.checked_add(length).is_none_or(|end| end <= now),
        (None, Some(_)) => true,
        (_, None) => false,
    }
}
