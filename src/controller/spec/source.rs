//! Validates the source of a Sync: repository, ref, signatures, path.
//!
//! In: `spec.source` and `spec.path`. Out: types of the crate `moorline-git`, or an error.

use std::fmt;

use super::{SpecError, named, refuse};
use crate::api::{GitRef, GitSource, SignatureVerification, VerifyMode};
use crate::source::{Address, ObjectHash, Reference, SignaturePolicy};

pub(super) fn address(git: &GitSource) -> Result<Address, SpecError> {
    const FIELD: &str = "spec.source.git.url";
    let url = git.url.trim();
    // Without a user in front of the host, `host:path` may as well be a login and its password.
    let short =
        !url.contains("://") && url.split_once(':').is_some_and(|(login, _)| !login.contains(['@', '/']));
    if short {
        return refuse(FIELD, "write https://host/path, ssh://user@host/path or user@host:path");
    }
    let address = Address::remote(url).or_else(|error| refuse(FIELD, error.to_string()))?;
    if git.secret_ref.is_some() && url.to_ascii_lowercase().starts_with("http://") {
        return refuse(
            FIELD,
            "use https:// in the URL: with plain http, the Secret of secretRef would be sent unencrypted",
        );
    }
    Ok(address)
}

pub(super) fn reference(reference: &GitRef) -> Result<Reference, SpecError> {
    const FIELD: &str = "spec.source.git.ref";
    let GitRef { branch, tag, semver, commit } = reference;
    let told = |name: &str, error: &dyn fmt::Display| refuse(format!("{FIELD}.{name}"), error.to_string());
    match (branch, tag, semver, commit) {
        (Some(name), None, None, None) => Reference::branch(name).or_else(|error| told("branch", &error)),
        (None, Some(name), None, None) => Reference::tag(name).or_else(|error| told("tag", &error)),
        (None, None, Some(range), None) => {
            range.parse().map(Reference::Semver).or_else(|error| told("semver", &error))
        }
        (None, None, None, Some(commit)) => match ObjectHash::parse(commit) {
            Some(commit) => Ok(Reference::Commit(commit)),
            None => told("commit", &"write all 40 hex digits of the commit; git rev-parse prints them"),
        },
        _ => refuse(
            FIELD,
            "write exactly one of branch, tag, semver and commit; without ref, the default branch of the repository is used",
        ),
    }
}

/// Returns the kind of signature that is required, and the Secret with the trusted keys.
pub(super) fn signed(
    git: &GitSource,
    verify: &SignatureVerification,
) -> Result<(SignaturePolicy, Box<str>), SpecError> {
    let has_tag = git.reference.as_ref().is_some_and(|it| it.tag.is_some() || it.semver.is_some());
    let chooses = git.reference.as_ref().is_some_and(|it| it.semver.is_some());
    let signed = match verify.mode {
        VerifyMode::Head if chooses => {
            let message = "write the mode Tag or TagAndHEAD with ref.semver: anyone who may push could tag an old signed commit \
                           with any version";
            return refuse("spec.source.git.verify", message);
        }
        VerifyMode::Head => SignaturePolicy::Commit,
        VerifyMode::Tag | VerifyMode::TagAndHead if !has_tag => {
            let message = "set ref.tag or ref.semver: the mode requires a signed tag";
            return refuse("spec.source.git.verify", message);
        }
        VerifyMode::Tag => SignaturePolicy::Tag,
        VerifyMode::TagAndHead => SignaturePolicy::Both,
    };
    let secret = named("spec.source.git.verify.secretRef.name", Some(&verify.secret_ref.name))?;
    Ok((signed, secret.unwrap_or_default()))
}

/// Returns the path in normal form, without `.` and without a slash at its end.
pub(super) fn path(text: &str) -> Result<String, SpecError> {
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    match text.is_empty() || text.starts_with('/') || parts.contains(&"..") {
        true => refuse(
            "spec.path",
            "write a path inside the repository such as ./clusters/prod: no / in front, and no .. in it",
        ),
        false => Ok(parts.join("/")),
    }
}
