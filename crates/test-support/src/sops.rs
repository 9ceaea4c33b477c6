//! Encrypts files as SOPS does, for keys of tests.
//!
//! In: a document, the fields to encrypt, and the keys. Out: the text of the encrypted file. The
//! data key is the same in every file.

use std::fmt::Write as _;

use aes_gcm::AesGcm;
use aes_gcm::aead::array::Array;
use aes_gcm::aead::array::typenum::U32;
use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use curve25519_dalek::MontgomeryPoint;
use ring::{aead, digest, hkdf, hmac};
use serde_json::{Map, Value, json};

/// The data key of every file.
pub const DATA_KEY: [u8; 32] = [7; 32];
const MODIFIED: &str = "2026-01-02T03:04:05Z";

/// An identity of age, and its recipient.
#[derive(Debug, Clone, Copy)]
pub struct AgeKey {
    seed: u8,
    pub identity: &'static str,
    pub recipient: &'static str,
}

/// Identities that open nothing but files of tests.
pub const AGE_KEYS: [AgeKey; 2] = [
    AgeKey {
        seed: 1,
        identity: "AGE-SECRET-KEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZ9K4CN",
        recipient: "age15nsf9y4k28p83wth93tf7hafhvfajp45d2mge80ems45gz0c5gys3me64l",
    },
    AgeKey {
        seed: 2,
        identity: "AGE-SECRET-KEY-1QGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQ0N3JDM",
        recipient: "age1e6xn45wvkce7c7msc9upffw8dmxs9959q5xng369hgzcwrjc04vszex59m",
    },
];

impl AgeKey {
    /// Metadata of a file that is encrypted for this key.
    pub fn metadata(&self) -> Value {
        self.metadata_of_file(0)
    }

    /// Metadata of one of many files: no two have the same share, as from the real tool.
    pub fn metadata_of_file(&self, number: usize) -> Value {
        let mut ephemeral = [5; 32];
        ephemeral[8..16].copy_from_slice(&number.to_le_bytes());
        json!({"age": [{"recipient": self.recipient, "enc": self.encrypt(&DATA_KEY, ephemeral)}]})
    }

    /// Encrypts bytes for the recipient, as an armored file of age.
    fn encrypt(&self, plain: &[u8], ephemeral: [u8; 32]) -> String {
        let public = MontgomeryPoint::mul_base_clamped([self.seed; 32]).to_bytes();
        let file_key = [3; 16];
        let share = MontgomeryPoint::mul_base_clamped(ephemeral).to_bytes();
        let shared = MontgomeryPoint(public).mul_clamped(ephemeral).to_bytes();
        let wrap = derive(&[share, public].concat(), &shared, "age-encryption.org/v1/X25519");
        let body = STANDARD_NO_PAD.encode(seal_chacha(&wrap, [0; 12], &file_key));
        let share = STANDARD_NO_PAD.encode(share);
        let header = format!("age-encryption.org/v1\n-> X25519 {share}\n{body}\n---");
        let mac_key = hmac::Key::new(hmac::HMAC_SHA256, &derive(&[], &file_key, "header"));
        let mac = STANDARD_NO_PAD.encode(hmac::sign(&mac_key, header.as_bytes()));
        let mut file = format!("{header} {mac}\n").into_bytes();
        file.extend([9; 16]);
        let mut nonce = [0; 12];
        nonce[11] = 1;
        file.extend(seal_chacha(&derive(&[9; 16], &file_key, "payload"), nonce, plain));
        let coded = STANDARD.encode(file);
        let lines: Vec<&str> =
            (0..coded.len()).step_by(64).map(|at| &coded[at..coded.len().min(at + 64)]).collect();
        format!(
            "-----BEGIN AGE ENCRYPTED FILE-----\n{}\n-----END AGE ENCRYPTED FILE-----\n",
            lines.join("\n")
        )
    }
}

fn derive(salt: &[u8], secret: &[u8], info: &str) -> [u8; 32] {
    let mut key = [0; 32];
    let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(secret);
    let info = [info.as_bytes()];
    extracted.expand(&info, hkdf::HKDF_SHA256).unwrap().fill(&mut key).unwrap();
    key
}

fn seal_chacha(key: &[u8; 32], nonce: [u8; 12], plain: &[u8]) -> Vec<u8> {
    let key = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::CHACHA20_POLY1305, key).unwrap());
    let mut sealed = plain.to_vec();
    let nonce = aead::Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(nonce, aead::Aad::empty(), &mut sealed).unwrap();
    sealed
}

/// Encrypts a text with the data key, for a path of keys that ends in `:`.
fn seal(text: &str, kind: &str, path: &str) -> String {
    let hash = digest::digest(&digest::SHA256, &[path.as_bytes(), text.as_bytes()].concat());
    let nonce: [u8; 32] = hash.as_ref().try_into().unwrap();
    let mut data = text.as_bytes().to_vec();
    let tag = AesGcm::<Aes256, U32>::new(&Array::from(DATA_KEY))
        .encrypt_inout_detached(&Array::from(nonce), path.as_bytes(), data.as_mut_slice().into())
        .unwrap();
    let (data, nonce, tag) = (STANDARD.encode(&data), STANDARD.encode(nonce), STANDARD.encode(tag));
    format!("ENC[AES256_GCM,data:{data},iv:{nonce},tag:{tag},type:{kind}]")
}

/// Encrypts the values below keys that are in `fields`, or all values if there are none; returns
/// the metadata too.
fn sealed(document: &Value, fields: &[&str], keys: &Value) -> (Value, Map<String, Value>) {
    let mut mac = digest::Context::new(&digest::SHA512);
    let sealed = seal_tree(document, &mut Vec::new(), fields, &mut mac);
    let mac: String = mac.finish().as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    let mut metadata = keys.as_object().unwrap().clone();
    metadata.insert("lastmodified".into(), MODIFIED.into());
    metadata.insert("mac".into(), seal(&mac, "str", MODIFIED).into());
    metadata.insert("version".into(), "3.13.3".into());
    if !fields.is_empty() {
        metadata.insert("encrypted_regex".into(), format!("^({})$", fields.join("|")).into());
    }
    (sealed, metadata)
}

fn seal_tree(tree: &Value, path: &mut Vec<String>, fields: &[&str], mac: &mut digest::Context) -> Value {
    let (form, kind) = match tree {
        Value::Null => return Value::Null,
        Value::Array(items) => {
            return items.iter().map(|item| seal_tree(item, path, fields, mac)).collect();
        }
        Value::Object(map) => {
            let mut sealed = Map::new();
            for (key, value) in map {
                path.push(key.clone());
                sealed.insert(key.clone(), seal_tree(value, path, fields, mac));
                path.pop();
            }
            return Value::Object(sealed);
        }
        Value::Bool(value) => (if *value { "True" } else { "False" }.to_owned(), "bool"),
        Value::Number(value) => (value.to_string(), "int"),
        Value::String(text) => (text.clone(), "str"),
    };
    mac.update(form.as_bytes());
    let chosen = fields.is_empty() || path.iter().any(|key| fields.contains(&key.as_str()));
    match chosen && !form.is_empty() {
        true => seal(&form, kind, &format!("{}:", path.join(":"))).into(),
        false => tree.clone(),
    }
}

/// Encrypts a document of YAML.
pub fn encrypt_yaml(document: &Value, fields: &[&str], keys: &Value) -> String {
    let (sealed, metadata) = sealed(document, fields, keys);
    let mut out = String::new();
    write_yaml(&mut out, &sealed, 0);
    write_yaml(&mut out, &json!({"sops": metadata}), 0);
    out
}

/// Encrypts a document of JSON.
pub fn encrypt_json(document: &Value, fields: &[&str], keys: &Value) -> String {
    let (mut sealed, metadata) = sealed(document, fields, keys);
    sealed["sops"] = Value::Object(metadata);
    serde_json::to_string_pretty(&sealed).unwrap()
}

/// Encrypts lines `NAME=value`.
pub fn encrypt_dotenv(lines: &[(&str, &str)], keys: &Value) -> String {
    let mut mac = digest::Context::new(&digest::SHA512);
    let mut out = String::new();
    for (name, value) in lines {
        mac.update(value.as_bytes());
        writeln!(out, "{name}={}", seal(value, "str", &format!("{name}:"))).unwrap();
    }
    let mac: String = mac.finish().as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    for (kind, list) in keys.as_object().unwrap() {
        for (at, key) in list.as_array().unwrap().iter().enumerate() {
            for (field, value) in key.as_object().unwrap() {
                let text = value.as_str().unwrap().replace('\n', "\\n");
                writeln!(out, "sops_{kind}__list_{at}__map_{field}={text}").unwrap();
            }
        }
    }
    writeln!(out, "sops_lastmodified={MODIFIED}\nsops_mac={}", seal(&mac, "str", MODIFIED)).unwrap();
    out
}

/// Writes a mapping in blocks.
fn write_yaml(out: &mut String, tree: &Value, column: usize) {
    for (key, value) in tree.as_object().unwrap() {
        write!(out, "{}{key}:", " ".repeat(column)).unwrap();
        match value {
            Value::Object(map) if !map.is_empty() => {
                out.push('\n');
                write_yaml(out, value, column + 4);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                for item in items {
                    let mut inner = String::new();
                    match item {
                        Value::Object(_) => write_yaml(&mut inner, item, column + 6),
                        scalar => writeln!(inner, "{scalar}").unwrap(),
                    }
                    write!(out, "{}- {}", " ".repeat(column + 4), inner.trim_start()).unwrap();
                }
            }
            Value::String(text) if text.starts_with("ENC[") => writeln!(out, " {text}").unwrap(),
            scalar => writeln!(out, " {scalar}").unwrap(),
        }
    }
}
