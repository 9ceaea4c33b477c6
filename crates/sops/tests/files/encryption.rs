//! Encrypts documents as SOPS does, written apart from the crate.

use aes_gcm::AesGcm;
use aes_gcm::aead::array::Array;
use aes_gcm::aead::array::typenum::U32;
use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use moorline_sops::{Format, KeyHolder, KeyRefusal, KeySource, SecretBytes};
use ring::digest;

use crate::documents::{Chance, Tree};
use crate::writing::{self, Style};

/// The data key of all files that are encrypted here.
pub(crate) const KEY: [u8; 32] = [7; 32];
pub(crate) const MODIFIED: &str = "2026-01-02T03:04:05Z";

/// A rule for the choice of values: its name and argument.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    pub(crate) rule: Option<(&'static str, &'static str)>,
    pub(crate) only_encrypted: bool,
}

impl Options {
    /// Returns a rule that the documents have keys for.
    pub(crate) fn random(chance: &mut Chance) -> Self {
        let rules = [
            None,
            Some(("unencrypted_suffix", "_plain")),
            Some(("encrypted_suffix", "_secret")),
            Some(("encrypted_regex", "^(data|.*secret)$")),
            Some(("unencrypted_regex", "^(kind|name|.*_plain)$")),
        ];
        Self { rule: rules[chance.below(rules.len())], only_encrypted: chance.below(2) == 0 }
    }

    fn encrypts(&self, path: &[String]) -> bool {
        let any = |fits: &dyn Fn(&String) -> bool| path.iter().any(fits);
        match self.rule {
            None => !any(&|key| key.ends_with("_unencrypted")),
            Some(("unencrypted_suffix", end)) => !any(&|key| key.ends_with(end)),
            Some(("encrypted_suffix", end)) => any(&|key| key.ends_with(end)),
            Some(("encrypted_regex", _)) => any(&|key| key == "data" || key.ends_with("secret")),
            Some(_) => !any(&|key| key == "kind" || key == "name" || key.ends_with("_plain")),
        }
    }
}

/// Returns an encrypted value.
pub(crate) fn seal(text: &[u8], kind: &str, path: &str, key: &[u8; 32]) -> String {
    let hash = digest::digest(&digest::SHA256, &[path.as_bytes(), text].concat());
    let nonce: [u8; 32] = hash.as_ref().try_into().expect("has 32 bytes");
    let mut data = text.to_vec();
    let tag = AesGcm::<Aes256, U32>::new(&Array::from(*key))
        .encrypt_inout_detached(&Array::from(nonce), path.as_bytes(), data.as_mut_slice().into())
        .expect("encrypts");
    let coded = |bytes: &[u8]| BASE64.encode(bytes);
    let (data, nonce, tag) = (coded(&data), coded(&nonce), coded(&tag));
    format!("ENC[AES256_GCM,data:{data},iv:{nonce},tag:{tag},type:{kind}]")
}

/// Encrypts documents in the style of SOPS.
pub(crate) fn encrypt(documents: &[Tree], format: Format, options: &Options) -> String {
    encrypt_styled(documents, format, options, Style::SOPS)
}

/// Encrypts documents; the data key is encrypted as `enc` for an OpenPGP key that does not exist.
pub(crate) fn encrypt_styled(documents: &[Tree], format: Format, options: &Options, style: Style) -> String {
    let mut mac = digest::Context::new(&digest::SHA512);
    if options.only_encrypted {
        mac.update(digest::digest(&digest::SHA256, b"sops").as_ref());
    }
    let sealed: Vec<Tree> =
        documents.iter().map(|tree| encrypt_tree(tree, &mut Vec::new(), options, &mut mac)).collect();
    let mac: String = mac.finish().as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    let text = |text: &str| Tree::Text(text.to_owned());
    let key = vec![
        ("created_at".to_owned(), text(MODIFIED)),
        ("enc".to_owned(), text("-----BEGIN PGP MESSAGE-----\n\nx\n-----END PGP MESSAGE-----")),
        ("fp".to_owned(), text("F00D")),
    ];
    let mut metadata = vec![
        ("pgp".to_owned(), Tree::List(vec![Tree::Map(key)])),
        ("lastmodified".to_owned(), text(MODIFIED)),
        ("mac".to_owned(), Tree::Text(seal(mac.as_bytes(), "str", MODIFIED, &KEY))),
        ("version".to_owned(), text("3.13.3")),
    ];
    if options.only_encrypted {
        metadata.push(("mac_only_encrypted".to_owned(), Tree::Bool(true)));
    }
    if let Some((name, argument)) = options.rule {
        metadata.push((name.to_owned(), text(argument)));
    }
    writing::write_styled(&sealed, Some(&Tree::Map(metadata)), format, style)
}

fn encrypt_tree(tree: &Tree, path: &mut Vec<String>, options: &Options, mac: &mut digest::Context) -> Tree {
    let (form, kind) = match tree {
        Tree::Null | Tree::Comment(_) => return tree.clone(),
        Tree::List(items) => {
            return Tree::List(items.iter().map(|item| encrypt_tree(item, path, options, mac)).collect());
        }
        Tree::Map(fields) => {
            let mut sealed = Vec::new();
            for (key, value) in fields {
                path.push(key.clone());
                sealed.push((key.clone(), encrypt_tree(value, path, options, mac)));
                path.pop();
            }
            return Tree::Map(sealed);
        }
        Tree::Bool(value) => (if *value { "True" } else { "False" }.to_owned(), "bool"),
        Tree::Int(value) => (value.to_string(), "int"),
        Tree::Float(value) => (value.to_string(), "float"),
        Tree::Text(text) => (text.clone(), "str"),
    };
    let encrypts = options.encrypts(path);
    if encrypts || !options.only_encrypted {
        mac.update(form.as_bytes());
    }
    match encrypts && !form.is_empty() {
        true => Tree::Text(seal(form.as_bytes(), kind, &format!("{}:", path.join(":")), &KEY)),
        false => tree.clone(),
    }
}

/// Holder of the data key of the files that are encrypted here.
pub(crate) struct OwnKey;

impl KeyHolder for OwnKey {
    fn decrypt(&self, source: &KeySource) -> Result<Option<SecretBytes>, KeyRefusal> {
        match source {
            KeySource::Pgp { fingerprint, .. } if fingerprint == "F00D" => {
                Ok(Some(SecretBytes::new(KEY.to_vec())))
            }
            _ => Ok(None),
        }
    }
}

/// Decrypts a file with the key of the files that are encrypted here.
pub(crate) fn decrypted(file: &str, text: &[u8], format: Format) -> Result<Vec<u8>, String> {
    let decrypted = || -> Result<Option<SecretBytes>, moorline_sops::SopsError> {
        let Some(read) = moorline_sops::read(file, text, format)? else { return Ok(None) };
        read.decrypt(&read.data_key(&[&OwnKey])?).map(Some)
    };
    let plain = decrypted().map_err(|error| error.to_string())?.ok_or("it is not encrypted")?;
    Ok(plain.as_bytes().to_vec())
}
