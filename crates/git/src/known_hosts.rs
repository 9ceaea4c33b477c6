//! Host keys that are trusted: the file `known_hosts`, in the format of ssh.
//!
//! In: its text, a host, and the key that the host presents.
//! Out: nothing, or a [`HostKeyError`]. A host that is not in the file is not trusted, and nothing
//! is ever added to the file. Host certificates are not supported.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::hmac;
use sha2::{Digest, Sha256};

use super::credentials::CredentialsError;

/// The valid lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownHosts(Vec<KnownHostLine>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownHostLine {
    mark: Mark,
    hosts: Box<str>,
    key: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Trusted,
    Revoked,
    Authority,
}

/// Reason for not trusting a host's key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum HostKeyError {
    #[error(
        "known_hosts has no key of {name}; make sure that its {kind} key is {print}, then add what \
         `{scan}` prints to the Secret"
    )]
    Unknown { name: Box<str>, kind: Box<str>, print: Box<str>, scan: Box<str> },
    #[error(
        "known_hosts has only a @cert-authority for {name}, and certificates of hosts are not supported; add what \
         `{scan}` prints to the Secret"
    )]
    Authority { name: Box<str>, scan: Box<str> },
    #[error("its {kind} key {print} is marked @revoked in known_hosts")]
    Revoked { kind: Box<str>, print: Box<str> },
    #[error(
        "its {kind} key {print} is not the one in known_hosts: this may be a man-in-the-middle attack, or the server has a \
         new key; if its owner confirms that, put what `{scan}` prints into the Secret"
    )]
    Other { kind: Box<str>, print: Box<str>, scan: Box<str> },
}

impl KnownHosts {
    /// Parses the text. Invalid lines are skipped, as ssh does, but an unknown marker is an error:
    /// it could be the one that revokes trust.
    pub(super) fn parse(text: &str) -> Result<Self, CredentialsError> {
        let refuse = |problem| Err(CredentialsError::Value { key: "known_hosts", problem });
        let mut lines = Vec::new();
        for text in text.lines().map(str::trim).filter(|text| !text.is_empty() && !text.starts_with('#')) {
            match line(text) {
                Some(line) => lines.push(line),
                None if text.starts_with('@') => {
                    return refuse("has a line that begins with @ and cannot be read");
                }
                None => {}
            }
        }
        match lines.is_empty() {
            true => refuse("has no line with a host's key; `ssh-keyscan HOST` prints what belongs there"),
            false => Ok(Self(lines)),
        }
    }

    /// Checks that the host at `port` may present `key`. An IPv6 address may have brackets.
    pub(super) fn judge(&self, host: &str, port: u16, key: &[u8]) -> Result<(), HostKeyError> {
        let kind = || kind(key).into();
        let print = || fingerprint(key);
        let mut other = None;
        let mut trusted = false;
        for line in self.of(host, port) {
            match line.mark {
                Mark::Revoked if line.key == key => {
                    return Err(HostKeyError::Revoked { kind: kind(), print: print() });
                }
                Mark::Revoked => {}
                Mark::Trusted if line.key == key => trusted = true,
                mark @ (Mark::Trusted | Mark::Authority) => {
                    other = other.filter(|found| *found == Mark::Trusted).or(Some(mark));
                }
            }
        }
        let (name, scan) = (name(host, port).into(), scan(host, port));
        match other {
            _ if trusted => Ok(()),
            Some(Mark::Trusted) => Err(HostKeyError::Other { kind: kind(), print: print(), scan }),
            Some(Mark::Authority) => Err(HostKeyError::Authority { name, scan }),
            Some(Mark::Revoked) | None => {
                Err(HostKeyError::Unknown { name, kind: kind(), print: print(), scan })
            }
        }
    }

    /// Returns the types of the trusted keys of a host, so that one of them is negotiated.
    pub(super) fn kinds(&self, host: &str, port: u16) -> Vec<&str> {
        self.of(host, port).filter(|line| line.mark == Mark::Trusted).map(|line| kind(&line.key)).collect()
    }

    fn of(&self, host: &str, port: u16) -> impl Iterator<Item = &KnownHostLine> {
        let name = name(host, port);
        self.0.iter().filter(move |line| names(&line.hosts, &name))
    }
}

/// Parses one line: an optional marker, the hosts, the key type, the key.
fn line(text: &str) -> Option<KnownHostLine> {
    let mut words = text.split_ascii_whitespace();
    let mut hosts = words.next()?;
    let mark = match hosts {
        "@revoked" => Mark::Revoked,
        "@cert-authority" => Mark::Authority,
        other if other.starts_with('@') => return None,
        _ => Mark::Trusted,
    };
    if mark != Mark::Trusted {
        hosts = words.next()?;
    }
    let (written, key) = (words.next()?, STANDARD.decode(words.next()?).ok()?);
    (kind(&key) == written).then(|| KnownHostLine { mark, hosts: hosts.into(), key })
}

/// Returns the type that a key declares; empty for bytes that are no key.
fn kind(key: &[u8]) -> &str {
    let text = key.split_first_chunk::<4>().and_then(|(length, rest)| {
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        std::str::from_utf8(rest.get(..length)?).ok()
    });
    text.filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()) && text.len() <= 64)
        .unwrap_or_default()
}

fn fingerprint(key: &[u8]) -> Box<str> {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key))).into()
}

/// Returns a host as the file names it.
fn name(host: &str, port: u16) -> String {
    let host = bare(host);
    match port {
        22 => host.to_owned(),
        port => format!("[{host}]:{port}"),
    }
}

fn scan(host: &str, port: u16) -> Box<str> {
    match port {
        22 => format!("ssh-keyscan {}", bare(host)).into(),
        port => format!("ssh-keyscan -p {port} {}", bare(host)).into(),
    }
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// True if the hosts of a line include `name`; a pattern with `!` excludes it.
fn names(hosts: &str, name: &str) -> bool {
    let mut found = false;
    for pattern in hosts.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if is_like(pattern, name) => return false,
            Some(_) => {}
            None => found |= is_like(pattern, name),
        }
    }
    found
}

fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix("|1|") {
        Some(hashed) => is_hash_of(hashed, name).unwrap_or(false),
        None => matches(pattern.to_ascii_lowercase().as_bytes(), name.as_bytes()),
    }
}

/// Compares with `salt|hash`, both in base64: HMAC-SHA-1 of the name. It hides names from readers;
/// it is no protection against forgery.
fn is_hash_of(hashed: &str, name: &str) -> Option<bool> {
    let (salt, hash) = hashed.split_once('|')?;
    let (salt, hash) = (STANDARD.decode(salt).ok()?, STANDARD.decode(hash).ok()?);
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    Some(hmac::verify(&key, name.as_bytes(), &hash).is_ok())
}

/// Matches a pattern with `*` and `?`. After a mismatch only the last star is retried, which bounds
/// the work.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut here) = (0, 0);
    let mut star = None;
    while here < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, here));
                at += 1;
            }
            Some(b'?') => (at, here) = (at + 1, here + 1),
            Some(byte) if *byte == name[here] => (at, here) = (at + 1, here + 1),
            Some(_) | None => match star {
                Some((behind, from)) => {
                    star = Some((behind, from + 1));
                    (at, here) = (behind, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcoBw8b36bCa6DhJuox+18w0QLHQwpQBZVSgFVVKF12";
    const EC: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBLa0f+R2xdZp8dC6GUKewZ\
                      1nUC4OcAYhYPXPrudaPyb0qkEYIymw6ZN1hJBc5XCSeaiD/EJGeAF9dNFHE+d5WLA=";
    /// As `ssh-keygen -H` wrote them, of git.example.com and of its port 2222.
    const HASHED: &str = "|1|FRNA9vTe30I81cmfdE5GsefgCFw=|9pBqi61QxXR4Dc5qiy4L4uHTz9g=";
    const HASHED_PORT: &str = "|1|C3hPqbUdMVe4HU2D6nfzOmHoBy0=|p8M9isqTLQOR7YppqENujpkAqZE=";

    fn key(text: &str) -> Vec<u8> {
        STANDARD.decode(text.split(' ').nth(1).unwrap()).unwrap()
    }

    /// Result for the first key when git.example.com presents it.
    fn judged(file: &str, port: u16) -> Result<(), String> {
        let known = KnownHosts::parse(file).unwrap();
        known.judge("git.example.com", port, &key(ED)).map_err(|doubt| doubt.to_string())
    }

    #[test]
    fn hosts_are_found_as_ssh_finds_them() {
        let table: &[(&str, u16, bool)] = &[
            ("git.example.com", 22, true),
            ("Git.Example.COM", 22, true),
            ("other,git.example.com", 22, true),
            ("*.example.com", 22, true),
            ("git.exampl?.*m", 22, true),
            ("*,!git.example.com", 22, false),
            ("!git.example.com,*", 22, false),
            ("git.example.co", 22, false),
            ("example.com", 22, false),
            ("git.example.com", 2222, false),
            ("[git.example.com]:2222", 2222, true),
            ("[*.example.com]:2222", 2222, true),
            ("[git.example.com]:2222", 22, false),
            (HASHED, 22, true),
            (HASHED, 2222, false),
            (HASHED_PORT, 2222, true),
            (HASHED_PORT, 22, false),
            ("|1|broken|broken", 22, false),
        ];
        for (hosts, port, expect) in table {
            let file = format!("# a comment\n\nunreadable line\n{hosts}\t{ED} a comment\nelsewhere {EC}\n");
            assert_eq!(judged(&file, *port).is_ok(), *expect, "{hosts} {port}");
        }
        let six = KnownHosts::parse(&format!("::1 {ED}\n[::1]:2222 {EC}")).unwrap();
        assert_eq!(six.judge("[::1]", 22, &key(ED)), Ok(()));
        assert_eq!(six.judge("[::1]", 2222, &key(EC)), Ok(()));
        assert_eq!(six.kinds("[::1]", 2222), ["ecdsa-sha2-nistp256"]);
    }

    #[test]
    fn a_doubt_says_what_to_write() {
        let host = "git.example.com";
        let table = [
            (
                format!("other {ED}"),
                22,
                "has no key of git.example.com; make sure that its ssh-ed25519 key is \
              SHA256:eNkr9cDhSSivrVDvvmiJHXbshXj3SP+pmAvMppNXxS4, then add what `ssh-keyscan git.example.com` prints",
            ),
            (format!("{host} {ED}"), 2222, "`ssh-keyscan -p 2222 git.example.com` prints"),
            (format!("{host} {EC}"), 22, "is not the one in known_hosts"),
            (format!("@cert-authority *.example.com {ED}"), 22, "certificates of hosts are not supported"),
            (format!("@cert-authority * {EC}\n{host} {EC}"), 22, "is not the one in known_hosts"),
            (format!("@revoked * {ED}\n{host} {ED}"), 22, "is marked @revoked"),
            (format!("{host} {ED}\n@revoked * {ED}"), 22, "is marked @revoked"),
        ];
        for (file, port, expect) in table {
            let found = judged(&file, port).unwrap_err();
            assert!(found.contains(expect), "{file}: {found}");
        }
        assert_eq!(judged(&format!("{host} {EC}\n{host} {ED}\n@revoked * {EC}"), 22), Ok(()));
    }

    #[test]
    fn a_file_that_says_nothing_is_refused() {
        let table = [
            ("", "has no line with a host's key"),
            ("# planted", "has no line with a host's key"),
            ("planted ssh-ed25519 planted", "has no line with a host's key"),
            ("host ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIA==", "has no line with a host's key"),
            ("@revoked * planted", "begins with @"),
            ("@planted * ssh-ed25519 AAAA", "begins with @"),
        ];
        for (text, expect) in table {
            let found = KnownHosts::parse(text).unwrap_err().to_string();
            assert!(found.contains(expect) && !found.contains("planted"), "{text}: {found}");
        }
    }
}
