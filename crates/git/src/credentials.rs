//! Credentials for a repository, read from the usual keys of a Secret.
//!
//! In: the data of a Secret.
//! Out: [`Credentials`]. Values cannot be formatted, and errors name keys only.

use std::collections::BTreeMap;
use std::fmt;

use super::address::{Address, Kind};
use super::artifact::RegistryAddress;
use super::cloud::CloudLogin;
use super::docker_login::{LoginTarget, registry_login};
use super::github_app::AppLogin;
pub(super) use super::http_login::HttpLogin;

/// Maximum number of bytes of one value.
const MAX_VALUE_BYTES: usize = 1024 * 1024;

/// A value that is never shown; `Debug` prints `…`.
#[derive(Clone, PartialEq, Eq)]
pub struct Sensitive<T>(T);

impl<T> Sensitive<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value.
    pub fn reveal(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Sensitive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Login for a server, and the keys by which the server is recognised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    pub(super) login: Option<HttpLogin>,
    /// Certificates (PEM) trusted in addition to those of the system.
    pub(super) authorities: Option<Sensitive<Vec<u8>>>,
    pub(super) client: Option<ClientCertificate>,
    pub(super) ssh: Option<SshKey>,
    /// A GitHub App, whose tokens are the login.
    pub(super) app: Option<AppLogin>,
    /// A login of a cloud, which is exchanged as it is needed.
    pub(super) cloud: Option<CloudLogin>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientCertificate {
    pub(super) certificates: Sensitive<Vec<u8>>,
    pub(super) key: Sensitive<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SshKey {
    pub(super) identity: Sensitive<String>,
    pub(super) known_hosts: Sensitive<String>,
}

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

impl Credentials {
    /// Reads the data of a Secret; unknown keys are ignored.
    pub fn from_secret<K: AsRef<str>, V: AsRef<[u8]>>(
        data: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, CredentialsError> {
        match Self::read(&owned(data))? {
            read if read == Self::default() => Err(CredentialsError::Nothing),
            read => Ok(read),
        }
    }

    /// Reads the data of a Secret for the source at `address`.
    pub fn for_source<K: AsRef<str>, V: AsRef<[u8]>>(
        data: impl IntoIterator<Item = (K, V)>,
        address: &Address,
    ) -> Result<Self, CredentialsError> {
        match address.registry() {
            Some(registry) => Self::for_registry(data, &registry.login_target()),
            None => Self::from_secret(data),
        }
    }

    /// Reads the data of a Secret for a server of artifacts or charts. Its login may also be in
    /// `.dockerconfigjson`, which names servers.
    pub fn for_registry<K: AsRef<str>, V: AsRef<[u8]>>(
        data: impl IntoIterator<Item = (K, V)>,
        target: &LoginTarget,
    ) -> Result<Self, CredentialsError> {
        let mut data = owned(data);
        let logins = data.remove(DOCKER_CONFIG);
        let mut read = Self::read(&data)?;
        if let Some(logins) = logins {
            if read.login.is_some() {
                return Err(CredentialsError::Both(DOCKER_CONFIG, "password or bearerToken"));
            }
            let none = || CredentialsError::NoLogin(target.to_string().into());
            read.login = Some(registry_login(&logins, target)?.ok_or_else(none)?);
        }
        match read == Self::default() {
            true => Err(CredentialsError::NothingForRegistry),
            false => Ok(read),
        }
    }

    /// Reads a file of logins as docker writes it, for a command of a person; without a login for
    /// the registry there are no credentials.
    pub fn of_docker_config(json: &[u8], address: &Address) -> Result<Self, CredentialsError> {
        let target = address.registry().map(RegistryAddress::login_target);
        let login = target.map(|target| registry_login(json, &target)).transpose()?.flatten();
        Ok(Self { login, ..Self::default() })
    }

    /// Returns the credentials with an authority that is trusted in addition to those of the
    /// system.
    pub fn with_authority(mut self, pem: Vec<u8>) -> Self {
        self.authorities = Some(Sensitive(pem));
        self
    }

    fn read(data: &BTreeMap<String, Vec<u8>>) -> Result<Self, CredentialsError> {
        let keys = SecretKeys(data);
        let ssh = keys.ssh()?;
        let read = Self {
            login: keys.login(ssh.is_some())?,
            authorities: keys.pem("ca.crt")?.map(Sensitive),
            client: match (keys.pem("tls.crt")?, keys.pem("tls.key")?) {
                (None, None) => None,
                (Some(certificates), Some(key)) => {
                    Some(ClientCertificate { certificates: Sensitive(certificates), key: Sensitive(key) })
                }
                (Some(_), None) => {
                    return Err(CredentialsError::Missing { key: "tls.crt", missing: "tls.key" });
                }
                (None, Some(_)) => {
                    return Err(CredentialsError::Missing { key: "tls.key", missing: "tls.crt" });
                }
            },
            ssh,
            app: AppLogin::from_secret(&keys)?,
            cloud: None,
        };
        match &read.login {
            Some(HttpLogin::Basic { .. }) if read.app.is_some() => {
                Err(CredentialsError::Both("password", "githubAppID"))
            }
            Some(HttpLogin::Bearer(_)) if read.app.is_some() => {
                Err(CredentialsError::Both("bearerToken", "githubAppID"))
            }
            _ => Ok(read),
        }
    }

    /// Checks that these credentials may be used for `address`.
    pub fn check_address(&self, address: &Address) -> Result<(), CredentialsError> {
        let refuse = |problem| Err(CredentialsError::Mismatch(problem));
        match address.kind() {
            Kind::Http(address) if !address.tls && *self != Self::default() => {
                refuse("credentials are not sent over plain http; write https:// in the repository's URL")
            }
            Kind::Http(_) if self.ssh.is_some() => refuse(
                "the Secret has an ssh key, but the repository's URL is https; write ssh://git@host/path",
            ),
            Kind::Ssh(_) if self.app.is_some() && self.ssh.is_none() => refuse(
                "the Secret has a GitHub App, which works over https only; write https://host/path in the repository's URL",
            ),
            Kind::Ssh(_) if self.ssh.is_none() => refuse(
                "an ssh URL needs a Secret with ssh-privatekey and known_hosts (ssh-keyscan HOST prints the latter)",
            ),
            Kind::Local(_) if *self != Self::default() => {
                refuse("a repository on the local disk takes no Secret")
            }
            Kind::Registry(address) if !address.is_tls() && *self != Self::default() => {
                refuse("credentials are not sent over plain http; the registry needs https")
            }
            Kind::Registry(_) if self.ssh.is_some() => refuse(
                "the Secret has an ssh key; a registry needs .dockerconfigjson, or username and password",
            ),
            Kind::Registry(_) if self.app.is_some() => refuse(
                "the Secret has a GitHub App; a registry needs .dockerconfigjson, or username and password",
            ),
            Kind::Http(address) => match &self.app {
                Some(app) => app.api(address).map(drop),
                None => Ok(()),
            },
            Kind::Ssh(_) | Kind::Local(_) | Kind::Registry(_) => Ok(()),
        }
    }

    /// Returns credentials whose login a cloud gives.
    pub fn of_cloud(login: CloudLogin) -> Self {
        Self { cloud: Some(login), ..Self::default() }
    }

    /// Returns the value of the `Authorization` header.
    pub(super) fn authorization(&self) -> Option<Sensitive<String>> {
        self.login.as_ref().map(HttpLogin::authorization)
    }
}

/// Key of a Secret of the type `kubernetes.io/dockerconfigjson`.
pub(super) const DOCKER_CONFIG: &str = ".dockerconfigjson";

fn owned<K: AsRef<str>, V: AsRef<[u8]>>(data: impl IntoIterator<Item = (K, V)>) -> BTreeMap<String, Vec<u8>> {
    data.into_iter().map(|(key, value)| (key.as_ref().to_owned(), value.as_ref().to_vec())).collect()
}

pub(super) struct SecretKeys<'a>(&'a BTreeMap<String, Vec<u8>>);

impl SecretKeys<'_> {
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
            false => Ok(Some(Sensitive(text.to_owned()))),
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

    fn login(&self, has_ssh_key: bool) -> Result<Option<HttpLogin>, CredentialsError> {
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

    fn ssh(&self) -> Result<Option<SshKey>, CredentialsError> {
        let Some(identity) = self.pem("ssh-privatekey")? else { return Ok(None) };
        let Some(known_hosts) = self.text("known_hosts")? else {
            return Err(CredentialsError::Missing { key: "ssh-privatekey", missing: "known_hosts" });
        };
        Ok(Some(SshKey {
            identity: Sensitive(String::from_utf8_lossy(&identity).into_owned()),
            known_hosts: Sensitive(known_hosts.to_owned()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = "-----BEGIN X-----\nAAAA\n-----END X-----\n";

    fn read(keys: &[(&str, &str)]) -> Result<Credentials, CredentialsError> {
        Credentials::from_secret(keys.iter().map(|(key, value)| (*key, value.as_bytes())))
    }

    #[test]
    fn keys_are_read_as_people_have_them() {
        let header = |keys: &[(&str, &str)]| read(keys).unwrap().authorization().unwrap().reveal().clone();
        assert_eq!(header(&[("username", "me\n"), ("password", "a:b\r\n")]), "Basic bWU6YTpi");
        assert_eq!(header(&[("bearerToken", "abc\n")]), "Bearer abc");
        assert_eq!(header(&[("bearerToken", "abc"), ("username", "")]), "Bearer abc");
        for key in ["ssh-privatekey", "identity", "sshPrivateKey"] {
            let ssh = read(&[(key, PEM), ("known_hosts", "host key"), ("password", "word")]).unwrap();
            assert!(ssh.login.is_none() && ssh.ssh.is_some(), "{key}");
        }
        assert!(read(&[("ca.crt", PEM)]).unwrap().authorities.is_some());
        assert!(read(&[("caFile", PEM), ("other", "\u{0}")]).unwrap().authorities.is_some());
        assert!(read(&[("tls.crt", PEM), ("tls.key", PEM)]).unwrap().client.is_some());
    }

    #[test]
    fn what_is_wrong_is_named_by_its_key_and_never_quoted() {
        let table: &[(&[(&str, &str)], &str)] = &[
            (&[], "none of the keys"),
            (&[("other", "planted")], "none of the keys"),
            (&[("username", "planted")], "has username but not password"),
            (&[("password", "planted")], "has password but not username"),
            (&[("username", "plan:ted"), ("password", "planted")], "username has a colon"),
            (&[("username", "planted"), ("password", "planted\nplanted")], "password must be one line"),
            (&[("bearerToken", "planted planted")], "bearerToken has characters"),
            (&[("password", "planted"), ("bearerToken", "planted")], "both password and bearerToken"),
            (&[("ca.crt", "planted")], "ca.crt is not PEM"),
            (&[("tls.crt", PEM)], "tls.crt but not tls.key"),
            (&[("tls.key", PEM)], "tls.key but not tls.crt"),
            (&[("identity", PEM)], "ssh-privatekey but not known_hosts"),
            (&[("identity", "planted"), ("known_hosts", "planted")], "ssh-privatekey is not PEM"),
        ];
        for (keys, expect) in table {
            let message = read(keys).unwrap_err().to_string();
            assert!(message.contains(expect), "{keys:?}: {message}");
            assert!(!message.contains("planted"), "{message}");
        }
        let shown = format!("{:?}", read(&[("username", "planted"), ("password", "planted")]).unwrap());
        assert!(shown.contains('…') && !shown.contains("planted"), "{shown}");
    }

    #[test]
    fn credentials_fit_the_url() {
        let basic = read(&[("username", "a"), ("password", "b")]).unwrap();
        let ssh = read(&[("identity", PEM), ("known_hosts", "h")]).unwrap();
        let none = Credentials::default();
        let table = [
            (&basic, "https://h/a", true),
            (&basic, "http://h/a", false),
            (&basic, "ssh://h/a", false),
            (&basic, "/a", false),
            (&ssh, "ssh://h/a", true),
            (&ssh, "https://h/a", false),
            (&none, "http://h/a", true),
            (&none, "https://h/a", true),
            (&none, "ssh://h/a", false),
            (&none, "/a", true),
        ];
        for (credentials, url, expect) in table {
            assert_eq!(
                credentials.check_address(&Address::local_or_remote(url).unwrap()).is_ok(),
                expect,
                "{url}"
            );
        }
    }
}
