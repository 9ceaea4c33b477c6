//! Transport over ssh: each exchange is one connection, with a login that runs `git-upload-pack`.
//!
//! In: an address, a key and known hosts.
//! Out: capabilities and responses. No connection outlives an exchange: an idle one would need a
//! thread that answers the server's keep-alives.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;

use russh::keys::{Algorithm, PrivateKey, decode_secret_key};

use super::address::SshAddress;
use super::credentials::{Credentials, CredentialsError, Sensitive};
use super::error::Error;
use super::hosts::HostPolicy;
use super::http_failure::fault;
use super::known_hosts::KnownHosts;
use super::remote::{MAX_LISTING_BYTES, ResponseLines, Transport};
use super::revision::AdvertisedRef;
use super::ssh_session::SshSession;
use crate::pkt_line::{PktLineReader, ProtocolError};
use crate::upload_pack;
use crate::upload_pack::ServerCapabilities;

/// Exit status of a shell for a missing program.
const NO_PROGRAM: u32 = 127;

/// Login key, and the known keys of the server.
#[derive(Debug)]
pub(super) struct SshLogin {
    pub(super) key: Sensitive<Arc<PrivateKey>>,
    pub(super) known: Arc<KnownHosts>,
}

impl SshLogin {
    /// Reads the key and the known hosts of a Secret.
    pub(super) fn read(credentials: &Credentials) -> Result<Self, CredentialsError> {
        let missing = "an ssh URL needs a Secret with ssh-privatekey and known_hosts";
        let ssh = credentials.ssh.as_ref().ok_or(CredentialsError::Mismatch(missing))?;
        let known = KnownHosts::parse(ssh.known_hosts.reveal())?;
        Ok(Self {
            key: Sensitive::new(Arc::new(private_key(ssh.identity.reveal())?)),
            known: Arc::new(known),
        })
    }
}

/// Parses the key of a Secret. A key with a passphrase is refused: the cost of its key derivation
/// is set in the key itself, and could be unlimited.
fn private_key(pem: &str) -> Result<PrivateKey, CredentialsError> {
    let refuse = |problem| Err(CredentialsError::Value { key: "ssh-privatekey", problem });
    let locked = "has a passphrase, which is not supported; take one without (ssh-keygen -p -N '' -f FILE)";
    if pem.lines().any(|line| line.contains("ENCRYPTED")) {
        return refuse(locked);
    }
    match decode_secret_key(pem, None) {
        Ok(key) => match key.algorithm() {
            Algorithm::Ed25519 | Algorithm::Ecdsa { .. } | Algorithm::Rsa { .. } => Ok(key),
            _ => refuse("is of a kind that is not supported; use ed25519, ecdsa or rsa"),
        },
        Err(russh::keys::Error::KeyIsEncrypted) => refuse(locked),
        Err(_) => refuse("is not a private key that can be read (OpenSSH or PEM; ed25519, ecdsa or rsa)"),
    }
}

/// Transport to a repository over ssh.
pub(super) struct SshTransport {
    address: SshAddress,
    login: SshLogin,
    hosts: HostPolicy,
    session: Option<SshSession>,
}

impl SshTransport {
    /// Creates a transport that connects only where `hosts` allows it.
    pub(super) fn new(
        address: &SshAddress,
        credentials: &Credentials,
        hosts: &HostPolicy,
    ) -> Result<Self, Error> {
        let (address, login) = (address.clone(), SshLogin::read(credentials)?);
        Ok(Self { address, login, hosts: hosts.clone(), session: None })
    }

    /// Converts an error of the first response. A server that ends before it sends anything does
    /// not have the repository, or hides it: the reason is in its error output, for people only.
    fn unwelcome(&self, session: &mut SshSession, error: ProtocolError, by: Instant) -> Error {
        let server: Box<str> = self.server().into();
        match error {
            ProtocolError::Input(cause)
                if cause.kind() == io::ErrorKind::UnexpectedEof && !session.has_said_something() =>
            {
                match session.exit(by) {
                    Some(NO_PROGRAM) => Error::InvalidResponse { server, what: "it has no git-upload-pack" },
                    Some(_) => Error::NoRepository { server, path: self.address.path.clone() },
                    None => {
                        Error::InvalidResponse { server, what: "it ends the connection without an answer" }
                    }
                }
            }
            error => fault(&server, "bytes of refs", error),
        }
    }
}

impl Transport for SshTransport {
    fn server(&self) -> String {
        self.address.server()
    }

    fn is_ready(&self) -> bool {
        self.session.is_some()
    }

    fn greet(&mut self, by: Instant) -> Result<(ServerCapabilities, Vec<AdvertisedRef>), Error> {
        self.end();
        // The address contains no character that ends the quotes.
        let command = format!("git-upload-pack '{}'", self.address.path);
        let mut session = SshSession::open(&self.address, &self.login, &self.hosts, command, by)?;
        let found = {
            let input: Box<dyn Read + '_> = Box::new(session.answer(by));
            upload_pack::greeting(&mut PktLineReader::new(input, MAX_LISTING_BYTES))
        };
        match found {
            Ok(found) => {
                self.session = Some(session);
                Ok(found)
            }
            Err(error) => {
                let error = self.unwelcome(&mut session, error, by);
                session.close();
                Err(error)
            }
        }
    }

    fn ask(&mut self, request: Vec<u8>, limit: u64, by: Instant) -> Result<ResponseLines<'_>, Error> {
        let session = self.session.as_mut().ok_or(Error::Stopped)?;
        session.send(request, by)?;
        Ok(PktLineReader::new(Box::new(session.answer(by)), limit))
    }

    fn end(&mut self) {
        if let Some(session) = self.session.take() {
            session.close();
        }
    }
}

impl fmt::Debug for SshTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ssh").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use russh::keys::key::safe_rng;
    use russh::keys::ssh_key::LineEnding;

    use super::*;

    fn refused(pem: &str) -> String {
        private_key(pem).map(|key| key.algorithm().to_string()).unwrap_err().to_string()
    }

    #[test]
    fn keys_are_read_in_the_forms_that_people_have() {
        let curve = russh::keys::EcdsaCurve::NistP256;
        for kind in [Algorithm::Ed25519, Algorithm::Ecdsa { curve }] {
            let key = PrivateKey::random(&mut safe_rng(), kind.clone()).unwrap();
            let pem = key.to_openssh(LineEnding::LF).unwrap();
            assert_eq!(
                private_key(&pem).unwrap().public_key().key_data(),
                key.public_key().key_data(),
                "{kind}"
            );
            assert!(private_key(&pem.replace('\n', "\r\n")).is_ok(), "{kind}");
            let mut plain = Vec::new();
            russh::keys::encode_pkcs8_pem(&key, &mut plain).unwrap();
            assert!(private_key(std::str::from_utf8(&plain).unwrap()).is_ok(), "{kind}");
        }
    }

    #[test]
    fn an_unusable_key_is_reported_with_the_reason() {
        let key = PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).unwrap();
        let locked = key.encrypt(&mut safe_rng(), "planted").unwrap().to_openssh(LineEnding::LF).unwrap();
        assert!(refused(&locked).contains("has a passphrase"));
        let front =
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n";
        assert!(refused(front).contains("has a passphrase"));
        let table = [
            "-----BEGIN OPENSSH PRIVATE KEY-----\nplanted\n-----END OPENSSH PRIVATE KEY-----\n",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "-----BEGIN X-----\nAAAA\n-----END X-----\n",
        ];
        for pem in table {
            let found = refused(pem);
            assert!(found.contains("is not a private key that can be read") && !found.contains("planted"));
        }
    }
}
