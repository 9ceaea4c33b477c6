//! Logins in a file as docker writes it, and as a Secret of the type kubernetes.io/dockerconfigjson
//! has it.
//!
//! In: JSON, and the server with the path of a repository.
//! Out: the login for it. The entry with the longest path counts, as for image pulls. Values are
//! never quoted.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::http_login::HttpLogin;
use super::secret_keys::{CredentialsError, DOCKER_CONFIG};
use super::sensitive::Sensitive;

/// Maximum number of bytes of the file.
const MAX_BYTES: usize = 1024 * 1024;

/// Names of Docker Hub in such files.
const DOCKER_HUB: [&str; 3] = ["index.docker.io", "docker.io", "registry-1.docker.io"];

/// A repository on a server, as entries of the file name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginTarget {
    /// Host and port, in lower case and without the port of https.
    server: Box<str>,
    repository: Box<str>,
}

impl LoginTarget {
    /// Names a repository; its path may be empty.
    pub fn new(host_and_port: &str, repository: &str) -> Self {
        Self { server: server_name(host_and_port), repository: repository.trim_matches('/').into() }
    }

    /// Returns the length of the path that an entry shares with this repository; none if it is for
    /// another.
    fn match_length(&self, entry: &str) -> Option<usize> {
        let entry = entry.split_once("://").map_or(entry, |(_, rest)| rest).trim_end_matches('/');
        let (host, path) = entry.split_once('/').unwrap_or((entry, ""));
        let host = server_name(host);
        let is_hub = DOCKER_HUB.contains(&&*host) && DOCKER_HUB.contains(&&*self.server);
        if !is_hub && !has_pattern(&host, &self.server) {
            return None;
        }
        match path {
            // Versions of the interface, as in older files.
            "" | "v1" | "v2" => Some(0),
            path => {
                let rest = self.repository.strip_prefix(path)?;
                (rest.is_empty() || rest.starts_with('/')).then_some(path.len())
            }
        }
    }
}

impl fmt::Display for LoginTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.server)?;
        match &*self.repository {
            "" => Ok(()),
            path => write!(f, "/{path}"),
        }
    }
}

/// Returns the login for a repository; none if the file has no entry for it.
pub(super) fn registry_login(
    json: &[u8],
    target: &LoginTarget,
) -> Result<Option<HttpLogin>, CredentialsError> {
    if json.len() > MAX_BYTES {
        return refuse("is larger than a Secret can be");
    }
    let Ok(config) = serde_json::from_slice::<Value>(json) else { return refuse("is not JSON") };
    let entries = config["auths"].as_object().into_iter().flatten();
    let fits = entries.filter_map(|(name, entry)| Some((target.match_length(name)?, entry)));
    let Some((_, entry)) = fits.max_by_key(|(length, _)| *length) else { return Ok(None) };
    let text = |name: &str| entry[name].as_str().filter(|text| !text.is_empty());
    if let Some(token) = text("registrytoken") {
        return match token.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Some(HttpLogin::Bearer(Sensitive::new(token.to_owned())))),
            false => refuse("has a registrytoken with characters that no token has"),
        };
    }
    let (username, password) = match (text("username"), text("password"), text("auth")) {
        (Some(username), Some(password), _) => (username.to_owned(), password.to_owned()),
        (_, _, Some(auth)) => {
            let pair = STANDARD.decode(auth.trim()).ok().and_then(|pair| String::from_utf8(pair).ok());
            let Some(pair) = pair else { return refuse("has a field auth that is not base64 of text") };
            let Some((username, password)) = pair.split_once(':') else {
                return refuse("has a field auth without a colon in it");
            };
            (username.to_owned(), password.trim_end_matches(['\r', '\n', '\0']).to_owned())
        }
        _ if text("identitytoken").is_some() => {
            return refuse("has an identitytoken, which is not supported; use a user name and a password");
        }
        _ => return refuse("has no user name and password for the registry in the URL"),
    };
    let is_line = |text: &str| !text.chars().any(char::is_control);
    match !username.is_empty() && !username.contains(':') && is_line(&username) && is_line(&password) {
        true => Ok(Some(HttpLogin::Basic {
            username: Sensitive::new(username),
            password: Sensitive::new(password),
        })),
        false => refuse("has a login with control characters, or a user name that is empty or has a colon"),
    }
}

fn refuse<T>(problem: &'static str) -> Result<T, CredentialsError> {
    Err(CredentialsError::Value { key: DOCKER_CONFIG, problem })
}

/// Returns host and port in lower case, without the port of https.
fn server_name(host_and_port: &str) -> Box<str> {
    let name = host_and_port.to_ascii_lowercase();
    name.strip_suffix(":443").unwrap_or(&name).into()
}

/// True if a host fits a pattern, in which a part may be `*`.
fn has_pattern(pattern: &str, host: &str) -> bool {
    let (wanted, given): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), host.split('.').collect());
    wanted.len() == given.len()
        && wanted.iter().zip(&given).all(|(wanted, given)| *wanted == "*" || wanted == given)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(url: &str) -> LoginTarget {
        let (server, repository) = url.split_once('/').unwrap();
        LoginTarget::new(server, repository)
    }

    fn login(auths: Value, url: &str) -> Result<Option<String>, String> {
        let json = json!({"auths": auths}).to_string();
        let found = registry_login(json.as_bytes(), &target(url)).map_err(|error| error.to_string())?;
        Ok(found.map(|login| match login {
            HttpLogin::Basic { username, password } => format!("{}:{}", username.reveal(), password.reveal()),
            HttpLogin::Bearer(token) => token.reveal().clone(),
        }))
    }

    #[test]
    fn the_entry_that_fits_best_counts() {
        let pair = |text: &str| json!({"auth": STANDARD.encode(text)});
        let auths = json!({
            "https://index.docker.io/v1/": pair("hub:a:b"),
            "ghcr.io": {"username": "me", "password": "one"},
            "ghcr.io/org/team": pair("me:two"),
            "localhost:5000": pair("local:x"),
            "*.example.com": pair("star:x"),
            "token.io": {"registrytoken": "abc"},
        });
        for (url, expect) in [
            ("docker.io/a/b", Some("hub:a:b")),
            ("registry-1.docker.io/a/b", Some("hub:a:b")),
            ("GHCR.io:443/org/other", Some("me:one")),
            ("ghcr.io/org/other", Some("me:one")),
            ("ghcr.io/org/team", Some("me:two")),
            ("ghcr.io/org/team/app", Some("me:two")),
            ("ghcr.io/org/teams", Some("me:one")),
            ("localhost:5000/a", Some("local:x")),
            ("localhost/a", None),
            ("a.example.com/a", Some("star:x")),
            ("a.b.example.com/a", None),
            ("example.com/a", None),
            ("token.io/a", Some("abc")),
            ("evil.ghcr.io/a", None),
        ] {
            assert_eq!(login(auths.clone(), url).unwrap().as_deref(), expect, "{url}");
        }
    }

    #[test]
    fn a_broken_file_is_named_and_never_quoted() {
        for (entry, part) in [
            (json!({"auth": "planted"}), "not base64"),
            (json!({"auth": STANDARD.encode("planted")}), "without a colon"),
            (json!({"username": "planted"}), "no user name and password"),
            (json!({"identitytoken": "planted"}), "identitytoken"),
            (json!({"registrytoken": "plan ted"}), "registrytoken"),
            (json!({"username": "me", "password": "plan\nted"}), "control characters"),
            (json!({"username": "a:b", "password": "planted"}), "has a colon"),
        ] {
            let problem = login(json!({"host": entry}), "host/a").unwrap_err();
            assert!(problem.contains(part) && !problem.contains("planted"), "{part}: {problem}");
        }
        assert!(registry_login(b"{", &target("host/a")).is_err());
        assert_eq!(registry_login(b"{}", &target("host/a")), Ok(None));
    }
}
