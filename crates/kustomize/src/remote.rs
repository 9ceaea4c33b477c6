//! Parses URLs of folders in other repositories as kustomize does.
//!
//! In: the text of an entry. Out: [`Remote`], or the reason why it is not fetched; none for a path
//! in the repository. The test table is recorded from kustomize. URLs that need a login, lead to a
//! disk, or name a single file are refused here.

use std::collections::BTreeMap;

/// A folder in another repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remote {
    /// URL of the repository, as it would be cloned.
    pub repository: String,
    /// A branch, tag or commit; none for the default branch.
    pub reference: Option<String>,
    /// Path of the folder in the repository.
    pub path: String,
}

/// Reason why a URL is not fetched. It never quotes the URL, which may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RefusedUrl(pub(super) &'static str);

const SCHEMES: [&str; 4] = ["ssh://", "https://", "http://", "file://"];

/// Number of path parts of a repository, if the URL does not mark its end.
const USUAL_PARTS: usize = 2;

impl Remote {
    /// Parses an entry; none if it is a path in the repository.
    pub(super) fn parse(text: &str) -> Option<Result<Self, RefusedUrl>> {
        let looks_remote = text.contains("://") || text.contains("?ref=") || starts_with(text, "git::");
        let refuse = |why| Some(Err(RefusedUrl(why)));
        let Some((repository, path, query)) = split(text) else {
            return if looks_remote { refuse(NO_FOLDER) } else { None };
        };
        if let Some(why) = unwanted(&repository) {
            return refuse(why);
        }
        if [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end)) {
            return refuse("is a single file, and only folders of repositories are fetched; commit the file");
        }
        let Some(mut query) = values(query) else {
            return refuse("has a query that cannot be read; write ?ref= and a branch, a tag or a commit");
        };
        let reference = query.remove("ref").filter(|text| !text.is_empty());
        let reference = reference.or_else(|| query.remove("version")).filter(|text| !text.is_empty());
        Some(Ok(Self { repository, reference, path }))
    }

    /// Returns the name of the repository at this reference.
    pub fn name(&self) -> String {
        match &self.reference {
            Some(reference) => format!("{}?ref={reference}", self.repository),
            None => self.repository.clone(),
        }
    }
}

const NO_FOLDER: &str =
    "is not a URL of a folder in a repository; write https://host/group/repository//folder?ref=v1.2.3";

/// Returns the reason why a repository is not fetched.
fn unwanted(repository: &str) -> Option<&'static str> {
    let Some((scheme, rest)) = repository.split_once("://") else { return Some(OVER_SSH) };
    match scheme {
        "ssh" => Some(OVER_SSH),
        "file" => Some("is a path on the local disk; only https is fetched"),
        _ if authority(rest).contains('@') => Some(
            "has a user or a password in it; leave it out, because remote bases are fetched without credentials",
        ),
        _ => None,
    }
}

const OVER_SSH: &str = "uses ssh, which needs credentials; write the https URL, because remote bases are fetched without credentials";

/// Returns the text of an entry without a possible password.
pub(super) fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    match authority(rest).rsplit_once('@') {
        Some((login, _)) => format!("{scheme}://…{}", &rest[login.len()..]),
        None => text.to_owned(),
    }
}

fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Splits a URL into repository, path and query; none for a text that kustomize takes for a path.
fn split(text: &str) -> Option<(String, String, &str)> {
    if text.starts_with('/') {
        return None;
    }
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let (host, rest) = host(text)?;
    let (repository, path) =
        if host == "file://" { split_marked(rest).or(Some((rest, ""))) } else { parts(rest) }?;
    if repository.is_empty() {
        return None;
    }
    let path = path.strip_prefix('/').unwrap_or(path);
    moorline_core::tree::normalise("", path)?;
    Some((format!("{host}{repository}"), path.to_owned(), query))
}

/// Splits off scheme, user and host, including their separator.
fn host(text: &str) -> Option<(String, &str)> {
    let text = if starts_with(text, "git::") { &text[5..] } else { text };
    let scheme = SCHEMES.into_iter().find(|scheme| starts_with(text, scheme)).unwrap_or_default();
    let text = &text[scheme.len()..];
    if scheme == "file://" {
        return Some((scheme.to_owned(), text));
    }
    let (user, text) = user(text);
    let is_github = ["github.com/", "github.com:"].iter().any(|host| starts_with(text, host));
    let is_short = scheme.is_empty() && (!user.is_empty() || is_github);
    if scheme.is_empty() && !is_short {
        return None;
    }
    let (slash, colon) = (text.find('/'), text.find(':').filter(|_| is_short));
    // A colon ends a host only before the first slash.
    let end = match (slash, colon) {
        (Some(slash), Some(colon)) if colon > 0 && colon < slash => colon,
        (Some(slash), _) => slash,
        (None, Some(colon)) => colon,
        (None, None) => return None,
    };
    let (host, rest) = text.split_at(end + 1);
    Some(match is_github {
        true if scheme == "ssh://" || !user.is_empty() => (format!("{user}github.com:"), rest),
        true => ("https://github.com/".to_owned(), rest),
        false => (format!("{scheme}{user}{host}"), rest),
    })
}

/// Splits off a user with its `@`.
fn user(text: &str) -> (&str, &str) {
    let plain = |user: &str| {
        user.starts_with(|first: char| first.is_ascii_alphabetic())
            && user.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    match text.split_once('@') {
        Some((user, _)) if plain(user) => text.split_at(user.len() + 1),
        _ => ("", text),
    }
}

/// Splits repository and path, if a marker shows the end of the repository.
fn split_marked(text: &str) -> Option<(&str, &str)> {
    const ROOT: &str = "_git/";
    const END: &str = ".git";
    if let Some(at) = text.find(ROOT) {
        let begin = at + ROOT.len();
        let end = text[begin..].find('/').map_or(text.len(), |slash| begin + slash);
        return Some((&text[..end], text[end..].strip_prefix('/').unwrap_or_default()));
    }
    if let Some((repository, path)) = text.split_once("//") {
        return Some((repository, path));
    }
    text.find(END).map(|at| text.split_at(at + END.len()))
}

fn parts(text: &str) -> Option<(&str, &str)> {
    let usual = || {
        let mut slashes = text.match_indices('/').map(|(at, _)| at);
        match (slashes.nth(USUAL_PARTS - 2), slashes.next()) {
            (None, _) => None,
            (Some(_), None) => Some((text, "")),
            (Some(_), Some(end)) => Some((&text[..end], &text[end + 1..])),
        }
    };
    split_marked(text).or_else(usual)
}

/// Returns the parameters of a query, the first of each name; none if it is invalid.
fn values(query: &str) -> Option<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if pair.contains(';') {
            return None;
        }
        values.entry(decoded(name)?).or_insert(decoded(value)?);
    }
    Some(values)
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn starts_with(text: &str, front: &str) -> bool {
    text.get(..front.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(front))
}

#[cfg(test)]
mod tests;
