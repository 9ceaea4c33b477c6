//! Validates the source of a Sync: repository or artifact, ref, signatures, path.
//!
//! In: `spec.source` and `spec.path`. Out: types of the crate `moorline-git`, or an error.

use std::fmt;

use super::identity::{SourceIdentity, cloud, identity};
use super::verification::{Verification, of_artifact, of_git};
use super::{SpecError, named, refuse};
use crate::api::{GitProvider, GitRef, GitSource, LayerOperation, OciRef, OciSource};
use crate::source::{
    Address, ArtifactReference, Cloud, Digest, LayerSelection, ObjectHash, Reference, RegistryAddress,
    TagFilter, VersionRangeError,
};

/// Tag that is read if none is named.
const LATEST: &str = "latest";

/// A valid source.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatedSource {
    /// Address of the repository, or of the artifact.
    pub address: Address,
    /// Branch, tag or commit of the repository; tag or digest of the artifact.
    pub reference: Reference,
    /// The Secret in the Sync's namespace with the credentials.
    pub secret: Option<Box<str>>,
    /// The cloud that gives the login.
    pub identity: Option<SourceIdentity>,
    /// Signatures that are required.
    pub verify: Option<Verification>,
    /// Fetch the files of submodules too.
    pub submodules: bool,
}

pub(super) fn source(git: Option<&GitSource>, oci: Option<&OciSource>) -> Result<ValidatedSource, SpecError> {
    match (git, oci) {
        (Some(git), None) => repository(git),
        (None, Some(oci)) => artifact(oci),
        (Some(_), Some(_)) | (None, None) => {
            refuse("spec.source", "write exactly one of git and oci: a Sync has one source")
        }
    }
}

fn repository(git: &GitSource) -> Result<ValidatedSource, SpecError> {
    const SECRET: &str = "spec.source.git.secretRef.name";
    let provider = git.provider.map(|GitProvider::Azure| Cloud::Azure);
    let (account, has_secret) = (git.service_account_name.as_deref(), git.secret_ref.is_some());
    Ok(ValidatedSource {
        address: address(git)?,
        identity: identity("spec.source.git", provider, account, has_secret)?,
        reference: git.reference.as_ref().map_or(Ok(Reference::Head), reference)?,
        secret: named(SECRET, git.secret_ref.as_ref().map(|secret| &*secret.name))?,
        verify: of_git(git)?,
        submodules: git.submodules,
    })
}

fn artifact(oci: &OciSource) -> Result<ValidatedSource, SpecError> {
    const SECRET: &str = "spec.source.oci.secretRef.name";
    let layer = oci.layer.clone().unwrap_or_default();
    if layer.media_type.as_deref().is_some_and(|media| !is_media_type(media)) {
        const MEDIA_TYPE: &str = "spec.source.oci.layer.mediaType";
        return refuse(
            MEDIA_TYPE,
            "write a media type such as application/vnd.cncf.flux.content.v1.tar+gzip",
        );
    }
    let layer = LayerSelection {
        media_type: layer.media_type.map(Into::into),
        copies: layer.operation == Some(LayerOperation::Copy),
    };
    let address = RegistryAddress::new(&oci.url, layer);
    let (account, has_secret) = (oci.service_account_name.as_deref(), oci.secret_ref.is_some());
    let latest = OciRef { tag: Some(LATEST.to_owned()), ..OciRef::default() };
    let wanted = oci.reference.clone().unwrap_or(latest);
    Ok(ValidatedSource {
        address: address.or_else(|error| refuse("spec.source.oci.url", error.to_string()))?.into(),
        reference: Reference::Artifact(artifact_reference(&wanted)?),
        secret: named(SECRET, oci.secret_ref.as_ref().map(|secret| &*secret.name))?,
        identity: identity("spec.source.oci", oci.provider.map(cloud), account, has_secret)?,
        verify: of_artifact(oci.verify.as_ref())?,
        submodules: false,
    })
}

fn is_media_type(text: &str) -> bool {
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_sound);
    text.len() <= 255 && text.split_once('/').is_some_and(|(kind, name)| is_part(kind) && is_part(name))
}

fn artifact_reference(reference: &OciRef) -> Result<ArtifactReference, SpecError> {
    const FIELD: &str = "spec.source.oci.ref";
    let OciRef { tag, semver, digest, filter } = reference;
    let refuse_field =
        |name: &str, error: &dyn fmt::Display| refuse(format!("{FIELD}.{name}"), error.to_string());
    let filtered = filter.as_deref().map(TagFilter::new);
    match (tag, semver, digest) {
        (Some(tag), None, None) if filter.is_none() => {
            ArtifactReference::tag(tag).or_else(|error| refuse_field("tag", &error))
        }
        (None, Some(range), None) => match (range.parse(), filtered) {
            (Err(error), _) => {
                let error: VersionRangeError = error;
                refuse_field("semver", &error)
            }
            (Ok(range), None) => Ok(ArtifactReference::Semver(range, None)),
            (Ok(range), Some(Some(filter))) => Ok(ArtifactReference::Semver(range, Some(filter))),
            (Ok(_), Some(None)) => {
                refuse_field("filter", &"write a regular expression such as ^v1[.] or -rc[.]")
            }
        },
        (None, None, Some(digest)) if filter.is_none() => match Digest::parse(digest) {
            Some(digest) => Ok(ArtifactReference::Digest(digest)),
            None => refuse_field("digest", &"write the digest of the manifest: sha256: and 64 hex digits"),
        },
        (Some(_), None, None) | (None, None, Some(_)) => {
            refuse_field("filter", &"use filter with semver only: it selects the tags that are compared")
        }
        _ => {
            refuse(FIELD, "write exactly one of tag, semver and digest; without ref, the tag latest is used")
        }
    }
}

fn address(git: &GitSource) -> Result<Address, SpecError> {
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
    if git.provider.is_some() && !url.to_ascii_lowercase().starts_with("https://") {
        return refuse(FIELD, "use https:// in the URL: the provider gives a login for https only");
    }
    Ok(address)
}

fn reference(reference: &GitRef) -> Result<Reference, SpecError> {
    const FIELD: &str = "spec.source.git.ref";
    let GitRef { branch, tag, semver, commit } = reference;
    let refuse_field =
        |name: &str, error: &dyn fmt::Display| refuse(format!("{FIELD}.{name}"), error.to_string());
    match (branch, tag, semver, commit) {
        (Some(name), None, None, None) => {
            Reference::branch(name).or_else(|error| refuse_field("branch", &error))
        }
        (None, Some(name), None, None) => Reference::tag(name).or_else(|error| refuse_field("tag", &error)),
        (None, None, Some(range), None) => {
            range.parse().map(Reference::Semver).or_else(|error| refuse_field("semver", &error))
        }
        (None, None, None, Some(commit)) => match ObjectHash::parse(commit) {
            Some(commit) => Ok(Reference::Commit(commit)),
            None => {
                refuse_field("commit", &"write all 40 hex digits of the commit; git rev-parse prints them")
            }
        },
        _ => refuse(
            FIELD,
            "write exactly one of branch, tag, semver and commit; without ref, the default branch of the repository is used",
        ),
    }
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
