//! Logins in a file as docker writes it, and as a Secret of the type kubernetes.io/dockerconfigjson
//! has it.
//!
//! In: JSON, and the address of a repository.
//! Out: the login for the registry. The entry with the longest path counts, as for image pulls.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::super::credentials::{CredentialsError, DOCKER_CONFIG, HttpLogin, Sensitive};
use super::registry_address::RegistryAddress;

/// Maximum number of bytes of the file.
const MAX_BYTES: usize = 1024 * 1024;

/// Names of Docker Hub in such files.
const DOCKER_HUB: [&str; 3] = ["index.docker.io", "docker.io", "registry-1.docker.io"];

/// Returns the login for a registry; none if the file has no entry for it.
pub(crate) fn registry_login(
    json: &[u8],
    registry: &RegistryAddress,
) -> Result<Option<HttpLogin>, CredentialsError> {
    let refuse = |problem| CredentialsError::Value { key: DOCKER_CONFIG, problem };
    if json.len() > MAX_BYTES {
        return Err(refuse("is larger than a Secret can be"));
    }
    let config: Value = serde_json::from_slice(json).map_err(|_| refuse("is no JSON"))?;
    let entries = config["auths"].as_object();
    let fits = entries
        .into_iter()
        .flatten()
        .filter_map(|(name, entry)| Some((match_length(name, registry)?, entry)));
    let Some((_, entry)) = fits.max_by_key(|(length, _)| *length) else { return Ok(None) };
    let text = |name: &str| entry[name].as_str().filter(|text| !text.is_empty());
    let is_line = |text: &str| !text.chars().any(char::is_control);
    if let Some(token) = text("registrytoken") {
        let is_token = token.bytes().all(|byte| byte.is_ascii_graphic());
        let token = is_token.then(|| HttpLogin::Bearer(Sensitive::new(token.to_owned())));
        return token
            .map(Some)
            .ok_or_else(|| refuse("has a registrytoken with characters that no token has"));
    }
    let pair = match (text("username"), text("password"), text("auth")) {
        (Some(username), Some(password), _) => Some((username.to_owned(), password.to_owned())),
        (_, _, Some(auth)) => {
            let bytes = STANDARD.decode(auth.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            bytes.and_then(|pair| pair.split_once(':').map(|(name, word)| (name.to_owned(), word.to_owned())))
        }
        _ if text("identitytoken").is_some() => {
            return Err(refuse(
                "has an identitytoken, which is not supported; use a user name and a password",
            ));
        }
        _ => return Err(refuse("has no user name and password for the registry in the URL")),
    };
    match pair.filter(|(name, word)| is_line(name) && is_line(word) && !name.is_empty()) {
        Some((username, password)) => Ok(Some(HttpLogin::Basic {
            username: Sensitive::new(username),
            password: Sensitive::new(password),
        })),
        None => Err(refuse("has an auth that is not base64 of USER:PASSWORD")),
    }
}

/// Returns the length of the path that an entry shares with a repository; none if it is for
/// another.
fn match_length(name: &str, registry: &RegistryAddress) -> Option<usize> {
    let name = name.split_once("://").map_or(name, |(_, rest)| rest).trim_end_matches('/');
    let (host, path) = name.split_once('/').unwrap_or((name, ""));
    let (host, own) = (host.to_ascii_lowercase(), registry.host_and_port());
    let is_hub = DOCKER_HUB.contains(&&*host) && DOCKER_HUB.contains(&&*own);
    if !is_hub && !has_pattern(&host, &own) {
        return None;
    }
    match path {
        // Versions of the interface, as in older files.
        "" | "v1" | "v2" => Some(0),
        path => {
            let rest = registry.repository().strip_prefix(path)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(path.len())
        }
    }
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

    use super::super::registry_address::LayerSelection;
    use super::*;

    fn login(auths: Value, url: &str) -> Result<Option<String>, String> {
        let registry = RegistryAddress::new(url, LayerSelection::default()).unwrap();
        let json = json!({"auths": auths}).to_string();
        let found = registry_login(json.as_bytes(), &registry).map_err(|error| error.to_string())?;
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
            ("oci://docker.io/a/b", Some("hub:a:b")),
            ("oci://registry-1.docker.io/a/b", Some("hub:a:b")),
            ("oci://ghcr.io/org/other", Some("me:one")),
            ("oci://ghcr.io/org/team", Some("me:two")),
            ("oci://ghcr.io/org/team/app", Some("me:two")),
            ("oci://ghcr.io/org/teams", Some("me:one")),
            ("oci://localhost:5000/a", Some("local:x")),
            ("oci://localhost/a", None),
            ("oci://a.example.com/a", Some("star:x")),
            ("oci://a.b.example.com/a", None),
            ("oci://example.com/a", None),
            ("oci://token.io/a", Some("abc")),
            ("oci://evil.ghcr.io/a", None),
        ] {
            assert_eq!(login(auths.clone(), url).unwrap().as_deref(), expect, "{url}");
        }
    }

    #[test]
    fn a_broken_file_is_named_and_never_quoted() {
        for (entry, part) in [
            (json!({"auth": "planted"}), "not base64"),
            (json!({"auth": STANDARD.encode("planted")}), "not base64"),
            (json!({"username": "planted"}), "no user name and password"),
            (json!({"identitytoken": "planted"}), "identitytoken"),
            (json!({"registrytoken": "plan ted"}), "registrytoken"),
            (json!({"username": "me", "password": "plan\nted"}), "not base64"),
        ] {
            let problem = login(json!({"host": entry}), "oci://host/a").unwrap_err();
            assert!(problem.contains(part) && !problem.contains("planted"), "{part}: {problem}");
        }
        let registry = RegistryAddress::new("oci://host/a", LayerSelection::default()).unwrap();
        assert!(registry_login(b"{", &registry).is_err());
        assert_eq!(registry_login(b"{}", &registry), Ok(None));
    }
}
