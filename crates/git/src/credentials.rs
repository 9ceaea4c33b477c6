//! Credentials for a repository, read from the usual keys of a Secret.
//!
//! In: the data of a Secret.
//! Out: [`Credentials`]. Values cannot be formatted, and errors name keys only.

use std::collections::BTreeMap;

use super::address::{Address, Kind};
use super::artifact::RegistryAddress;
use super::cloud::CloudLogin;
use super::docker_login::{LoginTarget, registry_login};
use super::github_app::AppLogin;
pub(super) use super::http_login::HttpLogin;
pub use super::secret_keys::CredentialsError;
use super::secret_keys::{ClientCertificate, DOCKER_CONFIG, SecretKeys, SshKey};
pub use super::sensitive::Sensitive;

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
        self.authorities = Some(Sensitive::new(pem));
        self
    }

    fn read(data: &BTreeMap<String, Vec<u8>>) -> Result<Self, CredentialsError> {
        let keys = SecretKeys::new(data);
        let ssh = keys.ssh()?;
        let read = Self {
            login: keys.login(ssh.is_some())?,
            authorities: keys.pem("ca.crt")?.map(Sensitive::new),
            client: match (keys.pem("tls.crt")?, keys.pem("tls.key")?) {
                (None, None) => None,
                (Some(certificates), Some(key)) => Some(ClientCertificate {
                    certificates: Sensitive::new(certificates),
                    key: Sensitive::new(key),
                }),
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

    /// Returns the additional authorities and the client certificate.
    pub(super) fn tls(&self) -> (Option<&Sensitive<Vec<u8>>>, Option<&ClientCertificate>) {
        (self.authorities.as_ref(), self.client.as_ref())
    }

    /// Returns the value of the `Authorization` header.
    pub(super) fn authorization(&self) -> Option<Sensitive<String>> {
        self.login.as_ref().map(HttpLogin::authorization)
    }
}

fn owned<K: AsRef<str>, V: AsRef<[u8]>>(data: impl IntoIterator<Item = (K, V)>) -> BTreeMap<String, Vec<u8>> {
    data.into_iter().map(|(key, value)| (key.as_ref().to_owned(), value.as_ref().to_vec())).collect()
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
