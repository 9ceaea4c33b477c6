//! Keys of a Secret with credentials, in the spellings of Kubernetes and of other tools.
//!
//! In: the data of a Secret.
//! Out: the value of a key, or an error that names the key and never the value.

use std::collections::BTreeMap;

use super::http_login::HttpLogin;
use super::sensitive::Sensitive;

/// Maximum number of bytes of one value.
const MAX_VALUE_BYTES: usize = 1024 * 1024;

/// Key of a Secret of the type `kubernetes.io/dockerconfigjson`.
pub(super) const DOCKER_CONFIG: &str = ".dockerconfigjson";

/// The keys of Kubernetes, and spellings of older versions and other tools.
const SPELLINGS: &[(&str, &[&str])] = &[
    ("username", &["username"]),
    ("password", &["password"]),
    ("bearerToken", &["bearerToken"]),
    ("ssh-privatekey", &["ssh-privatekey", "identity", "sshPrivateKey"]),
    ("known_hosts", &["known_hosts"]),
    ("ca.crt", &["ca.crt", "caFile"]),
    ("tls.crt", &["tls.crt", "certFile"]),
    ("tls.key", &["tls.key", "keyFile"]),
    ("githubAppID", &["githubAppID"]),
    ("githubAppInstallationID", &["githubAppInstallationID"]),
    ("githubAppInstallationOwner", &["githubAppInstallationOwner"]),
    ("githubAppPrivateKey", &["githubAppPrivateKey"]),
    ("githubAppBaseURL", &["githubAppBaseURL", "githubAppEnterpriseBaseUrl"]),
];

/// Error of reading a Secret. Keys are named, values never.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// A key without its partner.
    #[error("the Secret has {key} but not {missing}; both are needed")]
    Missing {
        /// The key that exists.
        key: &'static str,
        /// The key that is missing.
        missing: &'static str,
    },
    /// Two keys that exclude each other.
    #[error("the Secret has both {0} and {1}; leave one of them out")]
    Both(&'static str, &'static str),
    /// A malformed value.
    #[error("the Secret's key {key} {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// The problem with its value.
        problem: &'static str,
    },
    /// A registry login that does not name the server.
    #[error("the Secret's key .dockerconfigjson has no login for {0}")]
    NoLogin(Box<str>),
    /// No known key.
    #[error(
        "the Secret has none of the keys that Git needs: username and password, bearerToken, \
         ssh-privatekey and known_hosts, githubAppID and githubAppPrivateKey, ca.crt, or tls.crt and tls.key"
    )]
    Nothing,
    /// No known key for a registry.
    #[error(
        "the Secret has none of the keys that a registry needs: .dockerconfigjson, username and password, bearerToken, ca.crt, \
         or tls.crt and tls.key"
    )]
    NothingForRegistry,
    /// The Secret does not fit the URL.
    #[error("{0}")]
    Mismatch(&'static str),
    /// A malformed id of a GitHub App.
    #[error("the Secret's key {0}")]
    App(&'static str),
    /// The Secret of a GitHub App does not name the API of its server.
    #[error(
        "the repository is on {host}; write the address of its API into the Secret, githubAppBaseURL: {api}"
    )]
    NoApi {
        /// The host of the repository.
        host: Box<str>,
        /// The address to write.
        api: Box<str>,
    },
    /// The Secret of a GitHub App names the API of another server.
    #[error(
        "the Secret's githubAppBaseURL is {base}, but the API of {host} is {api}; the App signs in only where the repository is"
    )]
    OtherApi {
        /// The address in the Secret.
        base: Box<str>,
        /// The host of the repository.
        host: Box<str>,
        /// The address to write.
        api: Box<str>,
    },
}

/// Certificate of a client and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientCertificate {
    pub(super) certificates: Sensitive<Vec<u8>>,
    pub(super) key: Sensitive<Vec<u8>>,
}

/// Key of an ssh client, and the keys of its servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SshKey {
    pub(super) identity: Sensitive<String>,
    pub(super) known_hosts: Sensitive<String>,
}

/// Values of a Secret by the names of their keys.
pub(super) struct SecretKeys<'a>(&'a BTreeMap<String, Vec<u8>>);

impl<'a> SecretKeys<'a> {
    pub(super) fn new(data: &'a BTreeMap<String, Vec<u8>>) -> Self {
        Self(data)
    }

    /// Returns the value under any spelling of `key`; an empty one counts as missing.
    fn bytes(&self, key: &'static str) -> Result<Option<&[u8]>, CredentialsError> {
        let spellings = SPELLINGS.iter().find(|(name, _)| *name == key).map_or(&[][..], |(_, all)| all);
        let found = spellings.iter().find_map(|name| self.0.get(*name));
        match found.map(Vec::as_slice) {
            Some(value) if value.len() > MAX_VALUE_BYTES => {
                Err(CredentialsError::Value { key, problem: "is larger than a Secret can be" })
            }
            Some(value) if value.iter().all(u8::is_ascii_whitespace) => Ok(None),
            found => Ok(found),
        }
    }

    fn text(&self, key: &'static str) -> Result<Option<&str>, CredentialsError> {
        let Some(bytes) = self.bytes(key)? else { return Ok(None) };
        let problem = "is not text in UTF-8";
        std::str::from_utf8(bytes).map(Some).map_err(|_| CredentialsError::Value { key, problem })
    }

    /// Returns text of one line, without the trailing line break that `echo` adds.
    pub(super) fn line(&self, key: &'static str) -> Result<Option<Sensitive<String>>, CredentialsError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let text = text.trim_end_matches(['\r', '\n']);
        match text.chars().any(char::is_control) {
            true => {
                Err(CredentialsError::Value { key, problem: "must be one line without control characters" })
            }
            false => Ok(Some(Sensitive::new(text.to_owned()))),
        }
    }

    pub(super) fn pem(&self, key: &'static str) -> Result<Option<Vec<u8>>, CredentialsError> {
        match self.text(key)? {
            Some(text) if !text.contains("-----BEGIN ") => Err(CredentialsError::Value {
                key,
                problem: "is not PEM; it must have a line -----BEGIN …----- (base64 only once in `data`)",
            }),
            text => Ok(text.map(|text| text.as_bytes().to_vec())),
        }
    }

    pub(super) fn login(&self, has_ssh_key: bool) -> Result<Option<HttpLogin>, CredentialsError> {
        let (username, token) = (self.line("username")?, self.line("bearerToken")?);
        // Next to an ssh key, a password is that of the key; keys that need one are refused when
        // they are parsed.
        let password = if has_ssh_key { None } else { self.line("password")? };
        match (username, password, token) {
            (_, Some(_), Some(_)) => Err(CredentialsError::Both("password", "bearerToken")),
            (_, None, Some(token)) if token.reveal().bytes().all(|byte| byte.is_ascii_graphic()) => {
                Ok(Some(HttpLogin::Bearer(token)))
            }
            (_, None, Some(_)) => Err(CredentialsError::Value {
                key: "bearerToken",
                problem: "has characters that no token has",
            }),
            (Some(username), Some(_), None) if username.reveal().contains(':') => {
                Err(CredentialsError::Value { key: "username", problem: "has a colon in it" })
            }
            (Some(username), Some(password), None) => Ok(Some(HttpLogin::Basic { username, password })),
            (Some(_), None, None) if has_ssh_key => Ok(None),
            (Some(_), None, None) => Err(CredentialsError::Missing { key: "username", missing: "password" }),
            (None, Some(_), None) => Err(CredentialsError::Missing { key: "password", missing: "username" }),
            (None, None, None) => Ok(None),
        }
    }

    pub(super) fn ssh(&self) -> Result<Option<SshKey>, CredentialsError> {
        let Some(identity) = self.pem("ssh-privatekey")? else { return Ok(None) };
        let Some(known_hosts) = self.text("known_hosts")? else {
            return Err(CredentialsError::Missing { key: "ssh-privatekey", missing: "known_hosts" });
        };
        Ok(Some(SshKey {
            identity: Sensitive::new(String::from_utf8_lossy(&identity).into_owned()),
            known_hosts: Sensitive::new(known_hosts.to_owned()),
        }))
    }
}
