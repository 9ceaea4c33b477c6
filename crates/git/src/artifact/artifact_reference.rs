//! Reference to a revision of an artifact: a tag, a range of versions or a digest.
//!
//! In: text from a person.
//! Out: an [`ArtifactReference`].

use std::fmt;
use std::hash::{Hash, Hasher};

use regex::bytes::{Regex, RegexBuilder};

use super::super::chart::Digest;
use super::super::revision::{NameError, ObjectHash, Revision};
use crate::semver_range::VersionRange;

/// Maximum number of bytes of a tag.
const MAX_TAG_BYTES: usize = 128;

/// Maximum number of bytes of a filter.
const MAX_FILTER_BYTES: usize = 256;

/// Maximum number of bytes of a compiled filter.
const MAX_COMPILED_BYTES: usize = 256 * 1024;

/// Reference to a revision of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ArtifactReference {
    /// The artifact of a tag.
    Tag(Box<str>),
    /// The tag with the highest version in a range, among the tags that the filter matches.
    Semver(VersionRange, Option<TagFilter>),
    /// The artifact whose manifest has this digest.
    Digest(Digest),
}

/// A regular expression that selects tags. Equal if the text is.
#[derive(Debug, Clone)]
pub struct TagFilter(Regex);

impl ArtifactReference {
    /// References a tag.
    pub fn tag(name: &str) -> Result<Self, NameError> {
        let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let refuse = |problem| Err(NameError { name: name.chars().take(MAX_TAG_BYTES).collect(), problem });
        match name {
            "" => refuse("is empty"),
            _ if name.len() > MAX_TAG_BYTES => refuse("is too long"),
            _ if name.starts_with(['.', '-']) => refuse("begins with a dot or a dash"),
            _ if !name.bytes().all(is_sound) => {
                refuse("has another character than letters, digits, dots, dashes and underscores")
            }
            name => Ok(Self::Tag(name.into())),
        }
    }

    /// Returns the tag with the highest version.
    pub(crate) fn best<'a>(&self, tags: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        match self {
            Self::Tag(_) | Self::Digest(_) => None,
            Self::Semver(range, None) => range.best(tags),
            Self::Semver(range, Some(filter)) => range.best(tags.filter(|tag| filter.matches(tag))),
        }
    }
}

impl Revision {
    /// Returns the revision of an artifact: its name has the tag, if there is one, and the digest.
    pub(crate) fn of_artifact(tag: Option<&str>, digest: Digest) -> Self {
        let name = tag.map_or_else(|| digest.to_string(), |tag| format!("{tag}@{digest}"));
        Self {
            commit: ObjectHash::of_digest(digest),
            name: name.into(),
            tag: None,
            chart: None,
            mounts: Vec::new(),
        }
    }

    /// Returns the digest of the manifest; none for a commit of a repository.
    pub fn digest(&self) -> Option<Digest> {
        let text = self.name.rsplit_once('@').map_or(&*self.name, |(_, digest)| digest);
        text.starts_with("sha256:").then(|| Digest::parse(text)).flatten()
    }

    /// Parses the text of a revision of an artifact.
    pub(crate) fn parse_artifact(text: &str) -> Option<Self> {
        let (tag, digest) = text.rsplit_once('@').map_or((None, text), |(tag, digest)| (Some(tag), digest));
        let digest = digest.starts_with("sha256:").then(|| Digest::parse(digest)).flatten()?;
        Some(Self::of_artifact(tag, digest))
    }
}

impl TagFilter {
    /// Compiles a regular expression; none if it is invalid or too large.
    pub fn new(text: &str) -> Option<Self> {
        let mut builder = RegexBuilder::new(text);
        // Tags are of ASCII characters.
        builder.unicode(false).size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES);
        (text.len() <= MAX_FILTER_BYTES).then(|| builder.build().ok().map(Self)).flatten()
    }

    pub(super) fn matches(&self, tag: &str) -> bool {
        self.0.is_match(tag.as_bytes())
    }
}

impl PartialEq for TagFilter {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for TagFilter {}

impl Hash for TagFilter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

impl fmt::Display for ArtifactReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(name) => write!(f, "tag {name}"),
            Self::Semver(range, None) => write!(f, "tag in the range {range}"),
            Self::Semver(range, Some(filter)) => {
                write!(f, "tag in the range {range} that matches {}", filter.0.as_str())
            }
            Self::Digest(digest) => write!(f, "artifact {digest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_registries() {
        for good in ["latest", "v1.2.0", "_x", "A-b_c.d", &"a".repeat(128)] {
            assert!(ArtifactReference::tag(good).is_ok(), "{good}");
        }
        for bad in ["", ".a", "-a", "a/b", "a:b", "a@b", "a b", "ü", &"a".repeat(129)] {
            assert!(ArtifactReference::tag(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_revision_is_shown_by_tag_and_digest_and_read_again() {
        let digest = Digest::hash(b"x");
        for tag in [None, Some("v1.2.0")] {
            let revision = Revision::of_artifact(tag, digest);
            let expect = tag.map_or_else(|| digest.to_string(), |tag| format!("{tag}@{digest}"));
            assert_eq!((revision.to_string(), revision.digest()), (expect.clone(), Some(digest)));
            assert_eq!(Revision::parse_artifact(&expect), Some(revision.clone()));
            assert_eq!(digest.to_string()[7..47], revision.commit.to_string());
        }
        for wrong in ["", "v1", "v1@sha256:12", &format!("v1@{}", "a".repeat(64)), &"a".repeat(40)] {
            assert_eq!(Revision::parse_artifact(wrong), None, "{wrong}");
        }
        let branch = Revision {
            commit: ObjectHash::of_digest(digest),
            name: "refs/heads/a".into(),
            tag: None,
            chart: None,
            mounts: Vec::new(),
        };
        assert_eq!(branch.digest(), None);
    }

    #[test]
    fn a_filter_comes_before_the_range() {
        let tags = ["1.0.0", "1.1.0-rc.1", "1.2.0-dev", "2.0.0", "latest"];
        let best = |range: &str, filter: Option<&str>| {
            let filter = filter.map(|filter| TagFilter::new(filter).unwrap());
            ArtifactReference::Semver(range.parse().unwrap(), filter).best(tags.into_iter())
        };
        assert_eq!(best("1.x", None), Some("1.0.0"));
        assert_eq!(best(">=1.0.0-0", Some("-rc")), Some("1.1.0-rc.1"));
        assert_eq!(best(">=1.0.0-0 <2.0.0", Some(r"^\d+\.\d+\.\d+-(rc|dev)")), Some("1.2.0-dev"));
        assert_eq!(best("1.x", Some("^v")), None);
        assert!(TagFilter::new("(").is_none() && TagFilter::new(r"\w{1000}{1000}").is_none());
        assert_eq!(TagFilter::new("a"), TagFilter::new("a"));
        assert_ne!(TagFilter::new("a"), TagFilter::new("b"));
    }
}
