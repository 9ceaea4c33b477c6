//! Signatures by ssh keys, as `git config gpg.format ssh` creates them.
//!
//! In: public keys, one a line, with optional prefixes as in `allowed_signers`; content and its
//! signature.
//! Out: true if one of the keys made it, in the namespace of Git only.

use russh::keys::ssh_key::{HashAlg, PublicKey, SshSig};

use super::SignatureProblem;

/// First line of a signature.
pub(super) const SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----";
/// Namespace of Git's signatures; signatures for other purposes do not count.
const NAMESPACE: &str = "git";

/// A public key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key(PublicKey);

/// Reads public keys, one a line.
pub(super) fn read(text: &str) -> Result<Vec<Key>, String> {
    let lines = text.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(at, line)| key(line).map_err(|problem| format!("has in line {} {problem}", at + 1)))
        .collect()
}

fn key(line: &str) -> Result<Key, &'static str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_kind = |word: &&str| ["ssh-", "ecdsa-", "sk-"].iter().any(|front| word.starts_with(front));
    // The key may follow principals and options.
    let Some(at) = words.iter().position(is_kind) else {
        return Err("no ssh public key, such as ssh-ed25519 AAAA...");
    };
    let options = words[..at].iter().skip(1).flat_map(|word| word.split(','));
    for option in options {
        match option.split_once('=') {
            Some(("namespaces", value)) if value.trim_matches('"') == NAMESPACE => {}
            _ => return Err("an option that is not understood; only namespaces=\"git\" is"),
        }
    }
    let text = words.get(at..).unwrap_or_default().join(" ");
    PublicKey::from_openssh(&text).map(Key).map_err(|_| "an ssh public key that cannot be read")
}

/// Checks that the content is signed by one of the keys.
pub(super) fn check(keys: &[Key], text: &[u8], signature: &str) -> Result<(), SignatureProblem> {
    let signature = SshSig::from_pem(signature)
        .map_err(|_| SignatureProblem::Unreadable("it is damaged, or of an unknown kind"))?;
    let signer: Box<str> = signature.public_key().fingerprint(HashAlg::Sha256).to_string().into();
    if signature.namespace() != NAMESPACE {
        return Err(SignatureProblem::Other("the signature was not made for Git"));
    }
    let Some(Key(key)) = keys.iter().find(|Key(key)| key.key_data() == signature.public_key()) else {
        return Err(SignatureProblem::Unknown(signer));
    };
    key.verify(NAMESPACE, text, &signature).map_err(|_| SignatureProblem::Wrong(signer))
}
