//! Tests of age: files are made here as the format's description says, with fixed randomness.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::*;

/// Returns an identity and its recipient.
pub(crate) fn identity(seed: u8) -> (String, String) {
    let secret = [seed; 32];
    let text = bech32::encode("age-secret-key-", &secret).to_ascii_uppercase();
    (text, bech32::encode("age", &MontgomeryPoint::mul_base_clamped(secret).to_bytes()))
}

fn seal(key: &[u8; 32], nonce: [u8; 12], plain: &[u8]) -> Vec<u8> {
    let key = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::CHACHA20_POLY1305, key).expect("fits"));
    let mut sealed = plain.to_vec();
    let nonce = aead::Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(nonce, aead::Aad::empty(), &mut sealed).expect("seals");
    sealed
}

/// Encrypts for a recipient, after a stanza of another kind.
pub(crate) fn encrypt(recipient: &str, plain: &[u8]) -> String {
    let (_, public) = bech32::decode(recipient).expect("is a recipient");
    let public: [u8; 32] = public.as_bytes().try_into().expect("has 32 bytes");
    let (file_key, ephemeral) = ([3; FILE_KEY_BYTES], [5; 32]);
    let share = MontgomeryPoint::mul_base_clamped(ephemeral).to_bytes();
    let shared = MontgomeryPoint(public).mul_clamped(ephemeral).to_bytes();
    let wrap = derive(&[share, public].concat(), &shared, "age-encryption.org/v1/X25519").expect("derives");
    let body = STANDARD_NO_PAD.encode(seal(&wrap, [0; 12], &file_key));
    let share = STANDARD_NO_PAD.encode(share);
    let header = format!("age-encryption.org/v1\n-> odd-grease x\n\n-> X25519 {share}\n{body}\n---");
    let mac_key = derive(&[], &file_key, "header").expect("derives");
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &*mac_key), header.as_bytes());
    let mut file = format!("{header} {}\n", STANDARD_NO_PAD.encode(mac)).into_bytes();
    let payload_key = derive(&[9; 16], &file_key, "payload").expect("derives");
    file.extend([9; 16]);
    file.extend(seal(&payload_key, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], plain));
    armored(&file)
}

pub(crate) fn armored(file: &[u8]) -> String {
    let coded = STANDARD.encode(file);
    let lines: Vec<&str> =
        (0..coded.len()).step_by(64).map(|at| &coded[at..coded.len().min(at + 64)]).collect();
    format!("-----BEGIN AGE ENCRYPTED FILE-----\n{}\n-----END AGE ENCRYPTED FILE-----\n", lines.join("\n"))
}

fn bytes(armored: &str) -> Vec<u8> {
    armor::decode(armored).expect("is armored")
}

fn source(recipient: &str, enc: &str) -> KeySource {
    KeySource::Age { recipient: recipient.to_owned(), enc: enc.to_owned() }
}

fn opened(keys: &str, recipient: &str, enc: &str) -> Result<Option<Vec<u8>>, String> {
    let keys = AgeIdentities::read(keys).expect("has identities");
    let found = keys.decrypt(&source(recipient, enc)).map_err(|refusal| refusal.to_string())?;
    Ok(found.map(|found| found.as_bytes().to_vec()))
}

#[test]
fn the_right_identity_decrypts() {
    let (secret, recipient) = identity(1);
    let (other, _) = identity(2);
    let enc = encrypt(&recipient, b"data key");
    let file = format!("# created: today\n{other}\n\n  {secret}  \r\n");
    assert_eq!(opened(&file, &recipient, &enc), Ok(Some(b"data key".to_vec())));
    assert_eq!(opened(&other, &recipient, &enc), Ok(None));
    let keys = AgeIdentities::read(&file).expect("has identities");
    assert_eq!(keys.recipients().nth(1), Some(recipient.as_str()));
    assert!(!format!("{keys:?}").to_lowercase().contains("secret"), "{keys:?}");
    let other_kind = KeySource::Pgp { fingerprint: "F".into(), enc };
    assert!(matches!(keys.decrypt(&other_kind), Ok(None)));
}

#[test]
fn every_changed_bit_is_noticed() {
    let (secret, recipient) = identity(1);
    let good = bytes(&encrypt(&recipient, b"data key"));
    for bit in 0..good.len() * 8 {
        let mut changed = good.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let found = opened(&secret, &recipient, &armored(&changed));
        assert!(!matches!(found, Ok(Some(_))), "bit {bit}");
    }
    for length in 0..good.len() {
        let found = opened(&secret, &recipient, &armored(&good[..length]));
        assert!(!matches!(found, Ok(Some(_))), "{length} bytes");
    }
}

#[test]
fn kinds_that_are_not_served_are_named() {
    let (secret, recipient) = identity(1);
    let enc = encrypt(&recipient, b"data key");
    let refusal = |recipient: &str| opened(&secret, recipient, &enc).expect_err(recipient);
    assert_eq!(refusal("age1pq1qqqq"), "post-quantum recipients are not served yet");
    assert_eq!(refusal("ssh-dss AAAA"), "of ssh keys, only those of ed25519 and rsa are served");
    assert_eq!(refusal("age1yubikey1qqqq"), "this kind of recipient is not served");
    let read = |text: &str| AgeIdentities::read(text).map_err(|error| error.to_string());
    let refused = |text: &str| read(text).expect_err(text);
    assert!(refused("\nAGE-SECRET-KEY-PQ-1QQQ").starts_with("line 2: post-quantum identities"));
    assert_eq!(refused("AGE-PLUGIN-YUBIKEY-1QQQ"), "line 1: plugins of age are not served");
    assert_eq!(refused("# nothing\n"), "line 1: the file has no identity of age");
    assert_eq!(refused("hunter2"), "line 1: this is not an identity of age (AGE-SECRET-KEY-1…)");
    let both = read(&format!("{secret}\nAGE-SECRET-KEY-PQ-1QQQ\n")).expect("has an identity");
    assert_eq!(both.unserved().len(), 1);
}

#[test]
fn damaged_files_are_refused_in_words() {
    let (secret, recipient) = identity(1);
    let enc = encrypt(&recipient, b"data key");
    let refusal = |enc: &str| opened(&secret, &recipient, enc).expect_err(enc);
    assert_eq!(refusal("x"), "the encrypted data key is not an armored file of age");
    let broken = enc.replace("-----\nYWdl", "-----\n!");
    assert_eq!(refusal(&broken), "the encrypted data key is damaged: it is not base64");
    assert_eq!(refusal(&armored(b"x\n")), "the encrypted data key is not a file of age v1");
    let long = encrypt(&recipient, &[0; 2000]);
    assert_eq!(refusal(&long), "the encrypted data key is longer than a data key");
    let mut many = b"age-encryption.org/v1\n".to_vec();
    many.extend(b"-> x\n\n".repeat(65));
    assert_eq!(refusal(&armored(&many)), "the encrypted data key has more than 64 recipients");
}
