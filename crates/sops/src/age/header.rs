//! The header of an age file.
//!
//! In: the bytes of a file. Out: its stanzas, its MAC and the bytes that the MAC covers, and the
//! payload behind it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;

const VERSION: &str = "age-encryption.org/v1";
/// Most stanzas; SOPS writes one.
const MAX_STANZAS: usize = 64;
/// Length of a full line of a stanza's body.
const LINE_CHARS: usize = 64;

/// A header.
pub(super) struct Header<'a> {
    pub(super) stanzas: Vec<Stanza>,
    /// The bytes that the MAC covers.
    pub(super) signed: &'a [u8],
    pub(super) mac: Vec<u8>,
}

/// One stanza: the file key, encrypted for a recipient.
pub(super) enum Stanza {
    /// For an X25519 recipient.
    X25519 {
        /// The sender's share.
        share: [u8; 32],
        /// The encrypted file key with its tag.
        body: [u8; 32],
    },
    /// For an Ed25519 key of ssh.
    SshEd25519 {
        /// Tag of the key.
        tag: String,
        /// The sender's share.
        share: [u8; 32],
        /// The encrypted file key with its tag.
        body: [u8; 32],
    },
    /// For an RSA key of ssh.
    SshRsa {
        /// Tag of the key.
        tag: String,
        /// The encrypted file key, as long as the modulus.
        body: Vec<u8>,
    },
    /// For another kind of recipient.
    Other,
}

/// Splits a file into header and payload.
pub(super) fn read(file: &[u8]) -> Result<(Header<'_>, &[u8]), &'static str> {
    let mut lines = Lines { file, at: 0 };
    if lines.next() != Some(VERSION) {
        return Err("the encrypted data key is not a file of age v1");
    }
    let damaged = "the encrypted data key is damaged: its header cannot be read";
    let mut stanzas = Vec::new();
    loop {
        let start = lines.at;
        let line = lines.next().ok_or(damaged)?;
        if let Some(mac) = line.strip_prefix("--- ") {
            let mac = BASE64.decode(mac).map_err(|_| damaged)?;
            let signed = file.get(..start + 3).ok_or(damaged)?;
            let payload = file.get(lines.at..).ok_or(damaged)?;
            return Ok((Header { stanzas, signed, mac }, payload));
        }
        let arguments = line.strip_prefix("-> ").ok_or(damaged)?;
        if stanzas.len() == MAX_STANZAS {
            return Err("the encrypted data key has more than 64 recipients");
        }
        let body = body(&mut lines).ok_or(damaged)?;
        stanzas.push(stanza(arguments, &body).ok_or(damaged)?);
    }
}

/// Reads the lines of a stanza's body: all are full but the last one.
fn body(lines: &mut Lines<'_>) -> Option<Vec<u8>> {
    let mut text = String::new();
    loop {
        let line = lines.next()?;
        text.push_str(line);
        match line.len() {
            LINE_CHARS => {}
            0..LINE_CHARS => return BASE64.decode(text).ok(),
            _ => return None,
        }
    }
}

fn stanza(arguments: &str, body: &[u8]) -> Option<Stanza> {
    let words: Vec<&str> = arguments.split(' ').collect();
    let share = |text: &str| BASE64.decode(text).ok()?.try_into().ok();
    match words[..] {
        ["X25519", text] => Some(Stanza::X25519 { share: share(text)?, body: body.try_into().ok()? }),
        ["ssh-ed25519", tag, text] => {
            let (share, body) = (share(text)?, body.try_into().ok()?);
            Some(Stanza::SshEd25519 { tag: tag.to_owned(), share, body })
        }
        ["ssh-rsa", tag] => Some(Stanza::SshRsa { tag: tag.to_owned(), body: body.to_vec() }),
        ["X25519" | "ssh-ed25519" | "ssh-rsa", ..] => None,
        _ => Some(Stanza::Other),
    }
}

/// The lines of a header, as text.
struct Lines<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let rest = self.file.get(self.at..)?;
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        self.at += end + 1;
        std::str::from_utf8(&rest[..end]).ok()
    }
}
