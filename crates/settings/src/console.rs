//! The setting `console`: ways to sign in to the page.
//!
//! In: a map of names and texts.
//! Out: [`ConsoleSettings`]. Contradictions are refused here, so that a page that asks for a
//! sign-in never starts with half of one.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Maximum number of characters of a value.
const MAX_LENGTH: usize = 1024;

/// Prefix of names that Kubernetes keeps for itself.
const RESERVED: &str = "system:";

/// Names of the entries.
pub(super) const NAMES: [&str; 15] = [
    "url",
    "tokenAudience",
    "oidcIssuer",
    "oidcClientID",
    "oidcUsernameClaim",
    "oidcGroupsClaim",
    "oidcPrefix",
    "oidcScopes",
    "oidcGroups",
    "oidcHosts",
    "proxyUserHeader",
    "proxyGroupsHeader",
    "proxyPrefix",
    "secrets",
    "tls",
];

/// Ways to sign in to the page. Without any the page is as it is bound: read-only, for everyone who
/// reaches it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsoleSettings(BTreeMap<Box<str>, Box<str>>);

impl ConsoleSettings {
    /// Checks the entries. The error is the rest of a sentence about the setting.
    pub fn new(entries: BTreeMap<Box<str>, Box<str>>) -> Result<Self, &'static str> {
        let known = Self(entries);
        for (name, value) in &known.0 {
            check(name, value)?;
        }
        let wants = |name: &str, needed: &[&str]| {
            known.get(name).is_none() || needed.iter().all(|needed| known.get(needed).is_some())
        };
        if !wants("oidcIssuer", &["oidcClientID", "url"]) {
            return Err("a map that names oidcClientID and url beside oidcIssuer");
        }
        if !wants("proxyUserHeader", &["tls", "secrets"]) {
            return Err("a map that names tls and secrets beside proxyUserHeader");
        }
        let mut names = known.0.keys();
        if names.any(|name| name.starts_with("oidc")) && known.get("oidcIssuer").is_none() {
            return Err("a map that names oidcIssuer beside the other entries of oidc");
        }
        let mut names = known.0.keys();
        if names.any(|name| name.starts_with("proxy")) && known.get("proxyUserHeader").is_none() {
            return Err("a map that names proxyUserHeader beside the other entries of proxy");
        }
        if !known.0.is_empty() && !known.has_sign_in() {
            return Err("a map with a way to sign in: tokenAudience, oidcIssuer or proxyUserHeader");
        }
        Ok(known)
    }

    /// Returns all entries.
    pub fn entries(&self) -> &BTreeMap<Box<str>, Box<str>> {
        &self.0
    }

    /// Returns an entry that is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| &**value).filter(|value| !value.is_empty())
    }

    /// True if an entry is given, if only as an empty text.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// True if there is a way to sign in.
    pub fn has_sign_in(&self) -> bool {
        ["tokenAudience", "oidcIssuer", "proxyUserHeader"].iter().any(|name| self.get(name).is_some())
    }

    /// Returns the file of a name in the folder of an entry.
    pub fn file(&self, folder: &str, name: &str) -> Option<PathBuf> {
        self.get(folder).map(|folder| PathBuf::from(folder).join(name))
    }
}

fn check(name: &str, value: &str) -> Result<(), &'static str> {
    if !NAMES.contains(&name) {
        return Err(
            "a map with entries of these names: url, tokenAudience, oidcIssuer, oidcClientID, oidcUsernameClaim, oidcGroupsClaim, oidcPrefix, oidcScopes, oidcGroups, oidcHosts, proxyUserHeader, proxyGroupsHeader, proxyPrefix, secrets, tls",
        );
    }
    if value.len() > MAX_LENGTH || value.chars().any(char::is_control) {
        return Err("a map of texts in one line each");
    }
    if value.is_empty() {
        return Ok(());
    }
    let is_header = || value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match name {
        "url" if !is_origin(value) => Err(
            "a map whose url is like https://console.example.com, without a path; http only for 127.0.0.1, [::1] and localhost",
        ),
        "oidcIssuer" if !is_web(value) => Err(
            "a map whose oidcIssuer is a URL such as https://id.example.com; http only for 127.0.0.1, [::1] and localhost",
        ),
        "oidcPrefix" | "proxyPrefix" if value.starts_with(RESERVED) => {
            Err("a map whose prefixes do not begin with system:")
        }
        "proxyUserHeader" | "proxyGroupsHeader" if !is_header() => {
            Err("a map whose headers are names such as X-Remote-User")
        }
        "oidcScopes" if !value.split(' ').any(|scope| scope == "openid") => {
            Err("a map whose oidcScopes include openid")
        }
        "secrets" | "tls" if !value.starts_with('/') => {
            Err("a map whose secrets and tls are absolute paths of folders")
        }
        _ => Ok(()),
    }
}

/// True for https, and for http on the loopback interface.
fn is_web(url: &str) -> bool {
    let sound = |rest: &str| {
        let host = rest.split('/').next().unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        !host.is_empty() && host.bytes().all(plain) && !rest.contains(['?', '#', ' '])
    };
    let is_loopback = |rest: &str| {
        let host = rest.split('/').next().unwrap_or_default();
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => name,
            _ => host,
        };
        ["127.0.0.1", "[::1]", "localhost"].contains(&name)
    };
    match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => sound(rest),
        (None, Some(rest)) => sound(rest) && is_loopback(rest),
        (None, None) => false,
    }
}

fn is_origin(url: &str) -> bool {
    is_web(url) && !url.split("://").nth(1).unwrap_or_default().contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_sign_in_is_refused() {
        let oidc = "url=https://a oidcIssuer=https://id/realm oidcClientID=moorline";
        let proxy = "proxyUserHeader=X-User tls=/tls secrets=/secrets";
        let with = |rest: &str| format!("{oidc} {rest}");
        for (text, expect) in [
            ("", true),
            ("tokenAudience=moorline-console", true),
            (oidc, true),
            ("url=http://localhost:8081 oidcIssuer=http://127.0.0.1:9 oidcClientID=a", true),
            (&with("oidcPrefix= oidcGroups=team-"), true),
            (proxy, true),
            ("url=https://a", false),
            ("tokenAudience=", false),
            ("tokenaudience=a", false),
            ("url=https://a oidcIssuer=https://id", false),
            ("oidcIssuer=https://id oidcClientID=moorline", false),
            ("oidcPrefix=a tokenAudience=b", false),
            ("proxyUserHeader=X-User", false),
            ("proxyGroupsHeader=X-Group tokenAudience=a", false),
            ("proxyUserHeader=X_User tls=/tls secrets=/secrets", false),
            ("url=http://a tokenAudience=b", false),
            ("url=https://a/path tokenAudience=b", false),
            ("url=https://user@a tokenAudience=b", false),
            ("url=http://localhost.evil tokenAudience=b", false),
            ("url=https://a oidcIssuer=http://id oidcClientID=b", false),
            (&with("oidcPrefix=system:oidc:"), false),
            (&with("oidcScopes=email"), false),
            (&with("secrets=folder"), false),
        ] {
            let entries = text.split_whitespace().map(|entry| entry.split_once('=').unwrap());
            let entries = entries.map(|(name, value)| (name.into(), value.into())).collect();
            assert_eq!(ConsoleSettings::new(entries).is_ok(), expect, "{text}");
        }
    }
}
