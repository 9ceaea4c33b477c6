//! Logins for registries in the form of Docker: the key `.dockerconfigjson` of a Secret.
//!
//! In: the value of the key, and the server.
//! Out: the login for that server. Values are never quoted, only the name of the server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::credentials::{CredentialsError, HttpLogin, Sensitive};

/// Key of the Secret.
pub(super) const KEY: &str = ".dockerconfigjson";

/// Maximum number of bytes of the value.
const MAX_BYTES: usize = 1024 * 1024;

/// Names of one server, which Docker calls by the first.
const DOCKER_HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// Returns the login for a server, given its host and port.
pub(super) fn login(config: &[u8], server: &str) -> Result<HttpLogin, CredentialsError> {
    let bad = |problem| CredentialsError::Value { key: KEY, problem };
    if config.len() > MAX_BYTES {
        return Err(bad("is larger than a Secret can be"));
    }
    let config: Value = serde_json::from_slice(config).map_err(|_| bad("is not JSON"))?;
    let auths = config.get("auths").and_then(Value::as_object);
    let auths =
        auths.ok_or_else(|| bad("has no field auths; `kubectl create secret docker-registry` writes it"))?;
    let wanted = name_of(server);
    let entry = auths.iter().find(|(name, _)| name_of(name) == wanted).map(|(_, entry)| entry);
    let entry = entry.ok_or_else(|| CredentialsError::NoLogin(server.into()))?;
    let text = |field: &str| entry.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(token) = text("registrytoken") {
        return match token.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(HttpLogin::Bearer(Sensitive::new(token.to_owned()))),
            false => Err(bad("has a token with characters that no token has")),
        };
    }
    let (username, password) = match (text("username"), text("password"), text("auth")) {
        (Some(username), Some(password), _) => (username.to_owned(), password.to_owned()),
        (_, _, Some(auth)) => {
            let pair = STANDARD.decode(auth.trim()).ok().and_then(|pair| String::from_utf8(pair).ok());
            let pair = pair.ok_or_else(|| bad("has a field auth that is not base64 of text"))?;
            let (username, password) =
                pair.split_once(':').ok_or_else(|| bad("has a field auth without a colon in it"))?;
            (username.to_owned(), password.trim_end_matches(['\r', '\n', '\0']).to_owned())
        }
        _ if text("identitytoken").is_some() => {
            return Err(bad("has an identitytoken, which is not supported; use a username and a password"));
        }
        _ => return Err(bad("has no username and password for the server")),
    };
    if username.chars().chain(password.chars()).any(char::is_control) || username.contains(':') {
        return Err(bad("has a login with control characters, or a username with a colon"));
    }
    Ok(HttpLogin::Basic { username: Sensitive::new(username), password: Sensitive::new(password) })
}

/// Returns host and port of a name such as `https://host/v1/`, in lower case.
fn name_of(server: &str) -> String {
    let rest = server.split_once("://").map_or(server, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default().to_ascii_lowercase();
    let host = host.strip_suffix(":443").unwrap_or(&host);
    match DOCKER_HUB.contains(&host) {
        true => DOCKER_HUB[0].to_owned(),
        false => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::credentials::Credentials;
    use super::*;

    fn header(config: &str, server: &str) -> Result<String, String> {
        let read = Credentials::for_server([(KEY, config)], server).map_err(|error| error.to_string())?;
        Ok(read.authorization().unwrap().reveal().clone())
    }

    #[test]
    fn a_login_is_the_one_of_the_server() {
        // me:planted, and you:planted
        let config = r#"{"auths": {
            "https://index.docker.io/v1/": {"auth": "bWU6cGxhbnRlZA=="},
            "registry.example.com:5000": {"username": "you", "password": "planted"},
            "ghcr.io": {"registrytoken": "abc"}}}"#;
        assert_eq!(header(config, "registry-1.docker.io").unwrap(), "Basic bWU6cGxhbnRlZA==");
        assert_eq!(header(config, "Registry.example.com:5000").unwrap(), "Basic eW91OnBsYW50ZWQ=");
        assert_eq!(header(config, "ghcr.io:443").unwrap(), "Bearer abc");
        let problem = header(config, "registry.example.com").unwrap_err();
        assert!(problem.contains("has no login for registry.example.com"), "{problem}");
    }

    #[test]
    fn what_is_wrong_is_named_and_never_quoted() {
        for (config, expect) in [
            ("planted", "is not JSON"),
            (r#"{"planted": {}}"#, "has no field auths"),
            (r#"{"auths": {"host": {"auth": "planted!"}}}"#, "not base64"),
            (r#"{"auths": {"host": {"auth": "cGxhbnRlZA=="}}}"#, "without a colon"),
            (r#"{"auths": {"host": {"identitytoken": "planted"}}}"#, "identitytoken"),
            (r#"{"auths": {"host": {}}}"#, "no username and password"),
            (r#"{"auths": {"host": {"username": "planted\n", "password": "x"}}}"#, "control characters"),
        ] {
            let problem = header(config, "host").unwrap_err();
            assert!(problem.contains(expect) && !problem.contains("planted"), "{config}: {problem}");
        }
        let both = [(KEY, r#"{"auths": {"host": {"auth": "bWU6eA=="}}}"#), ("bearerToken", "x")];
        assert!(Credentials::for_server(both, "host").is_err());
        assert!(Credentials::for_server([("bearerToken", "x")], "host").is_ok());
    }
}
