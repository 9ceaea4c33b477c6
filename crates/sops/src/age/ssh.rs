//! Private keys of ssh as identities of age: Ed25519 and RSA, without a passphrase.
//!
//! In: a private key in the format of OpenSSH, or one of RSA in PKCS#1, and a stanza for an ssh
//! key. Out: the key of an age file, if the stanza names this key.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, STANDARD_NO_PAD};
use ring::digest;
use zeroize::Zeroizing;

use super::FILE_KEY_BYTES;
use super::header::Stanza;
use super::ssh_ed25519::Ed25519Key;
use super::ssh_rsa::RsaKey;

/// First and last line of a key in the format of OpenSSH.
const OPENSSH: [&str; 2] = ["-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"];
/// First and last line of a key in PKCS#1.
const PKCS1: [&str; 2] = ["-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"];
/// First bytes of a decoded key.
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// Length of the tag by which a stanza names its key.
const TAG_BYTES: usize = 4;

/// Problem of bytes that are no key in the format of OpenSSH.
pub(super) const DAMAGED: &str = "this is no ssh key in the format of OpenSSH";
/// Problem of a key that is encrypted itself.
const LOCKED: &str = "ssh keys with a passphrase are not served; remove it with ssh-keygen -p";

/// A key of ssh.
pub(super) struct SshIdentity {
    /// The public key as ssh sends it.
    wire: Vec<u8>,
    secret: SshSecret,
}

enum SshSecret {
    Ed25519(Ed25519Key),
    Rsa(Box<RsaKey>),
}

/// Returns the last line of the key that begins with a line.
pub(super) fn last_line(first: &str) -> Option<&'static str> {
    [OPENSSH, PKCS1].into_iter().find(|[begin, _]| *begin == first).map(|[_, end]| end)
}

impl SshIdentity {
    /// Reads a key from its first line, and the lines between that and the last one.
    pub(super) fn read(first: &str, lines: &[&str]) -> Result<Self, &'static str> {
        if lines.iter().any(|line| line.starts_with("Proc-Type:")) {
            return Err(LOCKED);
        }
        let text: Zeroizing<String> = Zeroizing::new(lines.concat().split_whitespace().collect());
        match BASE64.decode(&*text).map(Zeroizing::new) {
            Ok(bytes) if first == OPENSSH[0] => Self::from_openssh(&bytes),
            Ok(bytes) => {
                let (wire, key) = RsaKey::from_pkcs1(&bytes)?;
                Ok(Self { wire, secret: SshSecret::Rsa(Box::new(key)) })
            }
            Err(_) if first == OPENSSH[0] => Err(DAMAGED),
            Err(_) => Err(RsaKey::NOT_PKCS1),
        }
    }

    fn from_openssh(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut rest = bytes.strip_prefix(MAGIC).ok_or(DAMAGED)?;
        let (cipher, derivation) = (part(&mut rest)?, part(&mut rest)?);
        if (cipher, derivation) != (b"none", b"none") {
            return Err(LOCKED);
        }
        let (_, count) = (part(&mut rest)?, number(&mut rest)?);
        let (wire, mut private) = (part(&mut rest)?, part(&mut rest)?);
        let checks = (number(&mut private)?, number(&mut private)?);
        if count != 1 || checks.0 != checks.1 {
            return Err(DAMAGED);
        }
        let (wire, secret) = match part(&mut private)? {
            b"ssh-ed25519" => (wire.to_vec(), SshSecret::Ed25519(Ed25519Key::read(&mut private)?)),
            b"ssh-rsa" => {
                let (wire, key) = RsaKey::read(&mut private)?;
                (wire, SshSecret::Rsa(Box::new(key)))
            }
            _ => return Err("of ssh keys, only those of ed25519 and rsa are served"),
        };
        Ok(Self { wire, secret })
    }

    /// Returns the recipient, such as `ssh-ed25519 …`.
    pub(super) fn recipient(&self) -> String {
        let kind = match self.secret {
            SshSecret::Ed25519(_) => "ssh-ed25519",
            SshSecret::Rsa(_) => "ssh-rsa",
        };
        format!("{kind} {}", BASE64.encode(&self.wire))
    }

    /// Returns the key of an age file if its stanza is for this identity.
    pub(super) fn unwrap(&self, stanza: &Stanza) -> Option<Zeroizing<[u8; FILE_KEY_BYTES]>> {
        match (stanza, &self.secret) {
            (Stanza::SshEd25519 { tag, share, body }, SshSecret::Ed25519(key)) if self.has_tag(tag) => {
                key.unwrap(&self.wire, share, body)
            }
            (Stanza::SshRsa { tag, body }, SshSecret::Rsa(key)) if self.has_tag(tag) => key.unwrap(body),
            _ => None,
        }
    }

    fn has_tag(&self, tag: &str) -> bool {
        let hash = digest::digest(&digest::SHA256, &self.wire);
        hash.as_ref().get(..TAG_BYTES).is_some_and(|start| tag == STANDARD_NO_PAD.encode(start))
    }
}

/// Takes a number of four bytes.
fn number(rest: &mut &[u8]) -> Result<u32, &'static str> {
    let (bytes, after) = rest.split_first_chunk::<4>().ok_or(DAMAGED)?;
    *rest = after;
    Ok(u32::from_be_bytes(*bytes))
}

/// Takes a text with its length in front.
pub(super) fn part<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    let length = number(rest)? as usize;
    let (part, after) = rest.split_at_checked(length).ok_or(DAMAGED)?;
    *rest = after;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::super::{AgeIdentities, KeyHolder as _, KeySource};

    const ED25519: &str = include_str!("../../tests/files/ssh/ed25519.key");
    const RSA: &str = include_str!("../../tests/files/ssh/rsa.key");
    /// The key of `RSA` in PKCS#1.
    const PKCS1: &str = include_str!("../../tests/files/ssh/rsa.pem");
    const LOCKED: &str = include_str!("../../tests/files/ssh/locked.key");
    const SMALL: &str = include_str!("../../tests/files/ssh/small.key");

    /// Recipients of ssh-keygen, each with a data key that the library of SOPS encrypted for it.
    const FOR_ED25519: [&str; 2] = [
        include_str!("../../tests/files/ssh/ed25519.pub"),
        include_str!("../../tests/files/ssh/ed25519.age"),
    ];
    const FOR_RSA: [&str; 2] =
        [include_str!("../../tests/files/ssh/rsa.pub"), include_str!("../../tests/files/ssh/rsa.age")];

    fn opened(keys: &AgeIdentities, [recipient, enc]: [&str; 2]) -> Option<Vec<u8>> {
        let source = KeySource::Age { recipient: recipient.trim().into(), enc: enc.into() };
        keys.decrypt(&source).expect("is served").map(|found| found.as_bytes().to_vec())
    }

    #[test]
    fn an_ssh_key_decrypts_what_is_for_it() {
        let (x25519, recipient) = super::super::tests::identity(1);
        let all = format!("{x25519}\n# of a machine\n{ED25519}{RSA}\n{PKCS1}");
        let keys = AgeIdentities::read(&all).expect("has identities");
        let known: Vec<&str> = keys.recipients().collect();
        let (ed25519, rsa) = (FOR_ED25519[0].trim(), FOR_RSA[0].trim());
        assert_eq!(known, [recipient.as_str(), ed25519, rsa, rsa]);
        for (keys, sealed, expect) in [
            (all.as_str(), FOR_ED25519, true),
            (&all, FOR_RSA, true),
            (ED25519, FOR_ED25519, true),
            (ED25519, FOR_RSA, false),
            (RSA, FOR_RSA, true),
            (PKCS1, FOR_RSA, true),
            (RSA, FOR_ED25519, false),
            (&x25519, FOR_RSA, false),
        ] {
            let found = opened(&AgeIdentities::read(keys).expect("has identities"), sealed);
            assert_eq!(found, expect.then(|| vec![7; 32]), "{}", sealed[0]);
        }
    }

    #[test]
    fn a_changed_rsa_block_reads_like_one_for_nobody_here() {
        let keys = AgeIdentities::read(RSA).expect("has identities");
        let file = super::super::armor::decode(FOR_RSA[1]).expect("is armored");
        let text = String::from_utf8_lossy(&file).into_owned();
        let (head, rest) = text.split_at(text.find('\n').expect("has lines") + 1);
        let (recipient, rest) = rest.split_at(rest.find('\n').expect("has lines") + 1);
        let block = &rest[..rest.find("---").expect("has an end")];
        assert_eq!(block.len(), 342 + 6, "a block of 256 bytes in lines");
        for at in [0, 1, 100, 200, 300] {
            let mut changed = block.to_owned();
            changed.replace_range(at..=at, if block.as_bytes()[at] == b'/' { "+" } else { "/" });
            let header = format!("{head}{recipient}{changed}");
            let sealed = super::super::tests::armored(&[header.as_bytes(), &file[header.len()..]].concat());
            assert_eq!(opened(&keys, [FOR_RSA[0], &sealed]), None, "{at}");
        }
    }

    #[test]
    fn keys_that_cannot_be_used_are_refused_in_words() {
        let refused = |text: &str| AgeIdentities::read(text).expect_err(text).to_string();
        assert!(refused(LOCKED).starts_with("line 1: ssh keys with a passphrase"));
        let first = |text: &str, lines| text.lines().take(lines).map(|line| format!("{line}\n")).collect();
        let (cut, half): (String, String) = (first(ED25519, 3), first(PKCS1, 5));
        let old =
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----";
        let damaged = "this is no ssh key in the format of OpenSSH";
        for (text, expect) in [
            (cut, "the ssh key has no last line"),
            (half.clone(), "the ssh key has no last line"),
            (half + "-----END RSA PRIVATE KEY-----", "this is no RSA key in PKCS#1"),
            (ED25519.replacen("b3BlbnNz", "b3BlbnNy", 1), damaged),
            // A bit in the middle of the primes.
            (flip_line(RSA, 20), "the numbers of this RSA key do not fit each other"),
            (old.to_owned(), "ssh keys with a passphrase are not served; remove it with ssh-keygen -p"),
            (SMALL.to_owned(), "RSA keys of 2048 to 8192 bits are served"),
            ("-----BEGIN EC PRIVATE KEY-----\nAAAA".to_owned(), "this kind of private key is not served"),
        ] {
            let message = refused(&text);
            assert!(message.starts_with(&format!("line 1: {expect}")), "{expect}: {message}");
        }
    }

    #[test]
    fn damaged_rsa_keys_are_refused_or_open_nothing_and_never_panic() {
        use base64::Engine as _;
        for (text, [first, last]) in [(RSA, super::OPENSSH), (PKCS1, super::PKCS1)] {
            let inside: String = text.lines().filter(|line| !line.starts_with("---")).collect();
            let good = super::BASE64.decode(inside).expect("is base64");
            for at in (0..good.len()).step_by(31) {
                for value in [0, 1, 2, 0x7f, 0x80, 0xff, good[at] ^ 4] {
                    let mut changed = good.clone();
                    changed[at] = value;
                    let text = format!("{first}\n{}\n{last}\n", super::BASE64.encode(&changed));
                    let _ = AgeIdentities::read(&text);
                    let cut = super::BASE64.encode(&good[..at]);
                    let _ = AgeIdentities::read(&format!("{first}\n{cut}\n{last}\n"));
                }
            }
        }
    }

    /// Changes a letter in the middle of a line.
    fn flip_line(text: &str, nth: usize) -> String {
        let change = |(at, line): (usize, &str)| {
            let mut bytes = line.as_bytes().to_vec();
            if at == nth {
                bytes[30] = if bytes[30] == b'A' { b'B' } else { b'A' };
            }
            String::from_utf8(bytes).expect("is ASCII") + "\n"
        };
        text.lines().enumerate().map(change).collect()
    }
}
