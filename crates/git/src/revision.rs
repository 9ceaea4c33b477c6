//! Types of this crate: references, revisions, and their relation.
//!
//! In: text from a person, and ids from a repository.
//! Out: [`Reference`], [`Revision`], [`ObjectHash`] and [`History`]. Pure.

use std::cmp::Ordering;
use std::fmt;

use crate::artifact::ArtifactReference;
use crate::chart::{ChartVersion, Digest};
use crate::mounted_revision::MountedRevision;
use crate::semver_range;
use crate::semver_range::VersionRange;

/// Id of a commit, tree or blob.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectHash([u8; 20]);

impl ObjectHash {
    /// Parses an id of 40 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 40 {
            return None;
        }
        let mut bytes = [0; 20];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Self(bytes))
    }

    /// Returns the id of an artifact: the first bytes of its digest.
    pub(crate) fn of_digest(digest: Digest) -> Self {
        Self(digest.first_bytes())
    }

    pub(super) fn of(oid: git2::Oid) -> Self {
        let mut bytes = [0; 20];
        bytes.copy_from_slice(oid.as_bytes());
        Self(bytes)
    }

    pub(super) fn oid(self) -> git2::Oid {
        // Twenty bytes are always an id; the zero id matches no object.
        git2::Oid::from_bytes(&self.0).unwrap_or(git2::Oid::ZERO_SHA1)
    }
}

impl fmt::Display for ObjectHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reference to a revision of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reference {
    /// The default branch.
    Head,
    /// The newest commit of a branch.
    Branch(Box<str>),
    /// The commit of a tag.
    Tag(Box<str>),
    /// The tag or branch of this name; a tag takes precedence, as in Git.
    Named(Box<str>),
    /// The tag with the highest version in a range.
    Semver(VersionRange),
    /// A fixed commit.
    Commit(ObjectHash),
    /// An artifact of a registry.
    Artifact(ArtifactReference),
}

/// Error for a name that cannot be a branch or a tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot be the name of a branch or a tag: it {problem}")]
pub struct NameError {
    /// The name.
    pub name: Box<str>,
    /// The problem.
    pub problem: &'static str,
}

/// Maximum number of bytes of a branch or tag name.
const MAX_NAME_BYTES: usize = 244;

impl Reference {
    /// References the branch `name`; a leading `refs/heads/` is accepted.
    pub fn branch(name: &str) -> Result<Self, NameError> {
        checked(name.strip_prefix("refs/heads/").unwrap_or(name)).map(|name| Self::Branch(name.into()))
    }

    /// References the tag `name`; a leading `refs/tags/` is accepted.
    pub fn tag(name: &str) -> Result<Self, NameError> {
        checked(name.strip_prefix("refs/tags/").unwrap_or(name)).map(|name| Self::Tag(name.into()))
    }

    /// Parses a name that may be a branch, a tag or a commit; empty is the default branch.
    pub fn named(name: &str) -> Result<Self, NameError> {
        match name {
            "" | "HEAD" => Ok(Self::Head),
            name => match ObjectHash::parse(name) {
                Some(commit) => Ok(Self::Commit(commit)),
                None => checked(name).map(|name| Self::Named(name.into())),
            },
        }
    }

    /// True if the revision is known without asking a server.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self, Self::Commit(_) | Self::Artifact(ArtifactReference::Digest(_)))
    }

    /// Returns the refs to request from a Git server, or prefixes that end with `/`; empty for a
    /// commit.
    pub(super) fn wanted(&self) -> Vec<String> {
        match self {
            Self::Head => vec!["HEAD".to_owned()],
            Self::Branch(name) => vec![format!("refs/heads/{name}")],
            Self::Tag(name) => vec![format!("refs/tags/{name}")],
            Self::Named(name) => refs_named(name).into(),
            Self::Semver(_) => vec!["refs/tags/".to_owned()],
            Self::Commit(_) | Self::Artifact(_) => Vec::new(),
        }
    }

    /// Selects the revision among `advertised`.
    pub(super) fn choose(&self, advertised: &[AdvertisedRef]) -> Option<Revision> {
        let named = |wanted: &str| advertised.iter().find(|found| &*found.name == wanted);
        let found = match self {
            Self::Commit(commit) => {
                return Some(Revision {
                    commit: *commit,
                    name: commit.to_string().into(),
                    tag: None,
                    chart: None,
                    mounts: Vec::new(),
                });
            }
            Self::Artifact(_) => None,
            Self::Head => named("HEAD"),
            Self::Branch(name) => named(&format!("refs/heads/{name}")),
            Self::Tag(name) => named(&format!("refs/tags/{name}")),
            Self::Named(name) => refs_named(name).iter().find_map(|name| named(name)),
            Self::Semver(range) => {
                let tags = advertised.iter().filter_map(|found| found.name.strip_prefix("refs/tags/"));
                range.best(tags).and_then(|tag| named(&format!("refs/tags/{tag}")))
            }
        }?;
        let name = found.symbolic.as_ref().unwrap_or(&found.name).clone();
        Some(match found.peeled {
            Some(commit) => Revision { commit, name, tag: Some(found.id), chart: None, mounts: Vec::new() },
            None => Revision { commit: found.id, name, tag: None, chart: None, mounts: Vec::new() },
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head => f.write_str("HEAD"),
            Self::Branch(name) => write!(f, "branch {name}"),
            Self::Tag(name) => write!(f, "tag {name}"),
            Self::Named(name) => write!(f, "branch or tag {name}"),
            Self::Semver(range) => write!(f, "tag in the range {range}"),
            Self::Commit(commit) => write!(f, "commit {commit}"),
            Self::Artifact(reference) => write!(f, "{reference}"),
        }
    }
}

/// A commit of a repository, and the ref that led to it; or an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// The commit; for an artifact, the first bytes of its digest.
    pub commit: ObjectHash,
    /// The full ref, such as `refs/heads/main`; for a commit requested by id, the id; for an
    /// artifact, `tag@sha256:…`.
    pub name: Box<str>,
    /// The tag object, if the ref is an annotated tag.
    pub tag: Option<ObjectHash>,
    /// The version of the chart that was taken up with the commit, if the Sync asks for a version
    /// without a digest.
    pub chart: Option<ChartVersion>,
    /// The mounts of the Sync, with the revisions that were taken up with the commit.
    pub mounts: Vec<MountedRevision>,
}

impl Revision {
    /// Parses the output of [`Display`](fmt::Display), given the reference. It does not contain the
    /// tag object, which is passed in for an annotated tag.
    pub fn parse(text: &str, tag: Option<&str>, asked: &Reference) -> Option<Self> {
        let (text, mounts) = MountedRevision::split(text);
        let (text, chart) = match split_chart(text) {
            (text, Some(chart)) => (text, Some(ChartVersion::parse(chart)?)),
            (text, None) => (text, None),
        };
        if matches!(asked, Reference::Artifact(_)) {
            return Self::parse_artifact(text).map(|artifact| Self { chart, mounts, ..artifact });
        }
        let (short, commit) = text.rsplit_once('@').unwrap_or((text, text));
        let name = match asked {
            Reference::Commit(_) => commit.into(),
            Reference::Tag(_) | Reference::Semver(_) => format!("refs/tags/{short}").into(),
            Reference::Head if short == commit => "HEAD".into(),
            Reference::Head if short.starts_with("refs/") => short.into(),
            Reference::Head | Reference::Branch(_) | Reference::Named(_) | Reference::Artifact(_) => {
                format!("refs/heads/{short}").into()
            }
        };
        let tag = tag.and_then(ObjectHash::parse);
        Some(Self { commit: ObjectHash::parse(commit)?, name, tag, chart, mounts })
    }

    /// Returns the revision of the repository alone.
    pub fn of_repository(&self) -> Self {
        Self { chart: None, mounts: Vec::new(), ..self.clone() }
    }

    /// True if both stand for the same files: the same commit, the same version of the chart, and
    /// the same mounts.
    pub fn has_same_files(&self, other: &Self) -> bool {
        (self.commit, &self.chart, &self.mounts) == (other.commit, &other.chart, &other.mounts)
    }

    /// Compares the versions of two revisions, if both are tags with one.
    pub fn compare_versions(&self, other: &Self) -> Option<Ordering> {
        let tag = |revision: &Self| match revision.digest() {
            Some(_) => revision.name.rsplit_once('@').map(|(tag, _)| tag.to_owned()),
            None => revision.name.strip_prefix("refs/tags/").map(str::to_owned),
        };
        semver_range::compare(&tag(self)?, &tag(other)?)
    }
}

impl fmt::Display for Revision {
    /// Formats `main@1f0c…` with the short name of the ref, as in conditions; with a chart and a
    /// mount `main@1f0c…+shop:1.2.3@sha256:…+vendor/base/:main@2e1d…`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = ["refs/heads/", "refs/tags/"].iter().find_map(|front| self.name.strip_prefix(front));
        match (short, self.name.starts_with("refs/")) {
            (None, false) if self.digest().is_some() => f.write_str(&self.name)?,
            (None, false) => write!(f, "{}", self.commit)?,
            (short, _) => write!(f, "{}@{}", short.unwrap_or(&self.name), self.commit)?,
        }
        self.chart.iter().try_for_each(|chart| write!(f, "+{chart}"))?;
        self.mounts.iter().try_for_each(|mount| write!(f, "+{mount}"))
    }
}

/// Splits the text of a revision into that of the commit, and that of the chart.
fn split_chart(text: &str) -> (&str, Option<&str>) {
    let chart = text.rsplit_once("@sha256:").and_then(|(front, _)| {
        // Neither the name nor the version of a chart has an @, and a commit has no plus sign.
        let commit = front.rfind('@').map_or(0, |at| at + 1);
        let plus = commit + front[commit..].find('+')?;
        let id = &front[commit..plus];
        (ObjectHash::parse(id).is_some() || Digest::parse(id).is_some()).then_some(plus)
    });
    match chart {
        Some(plus) => (&text[..plus], Some(&text[plus + 1..])),
        None => (text, None),
    }
}

/// Relation of a revision to a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The older commit is an ancestor of the newer one, or the same.
    Forward,
    /// The older commit is proven not to be an ancestor of the newer one: a force push.
    Rewritten,
    /// The visited commits prove neither.
    Unknown,
}

/// A ref as listed by a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AdvertisedRef {
    pub(super) name: Box<str>,
    pub(super) id: ObjectHash,
    /// For an annotated tag, its commit.
    pub(super) peeled: Option<ObjectHash>,
    /// For HEAD, its branch.
    pub(super) symbolic: Option<Box<str>>,
}

/// Returns the refs that a short name may mean, in Git's order.
fn refs_named(name: &str) -> [String; 3] {
    let whole = if name.starts_with("refs/") { name.to_owned() } else { format!("refs/{name}") };
    [whole, format!("refs/tags/{name}"), format!("refs/heads/{name}")]
}

/// Checks the rules of `git check-ref-format`.
fn checked(name: &str) -> Result<&str, NameError> {
    let refuse = |problem| Err(NameError { name: name.into(), problem });
    let forbidden = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    match name {
        "" => refuse("is empty"),
        "@" => refuse("is @ alone"),
        _ if name.len() > MAX_NAME_BYTES => refuse("is too long"),
        _ if name.contains(forbidden) => refuse("has a space or one of ~ ^ : ? * [ \\ in it"),
        _ if name.contains("..") || name.contains("@{") => refuse("has .. or @{ in it"),
        _ if name.ends_with('.') => refuse("ends with a dot"),
        _ if name.starts_with('-') => refuse("begins with a dash"),
        _ if name
            .split('/')
            .any(|part| part.is_empty() || part.starts_with('.') || part.ends_with(".lock")) =>
        {
            refuse("has an empty part, or one that begins with a dot or ends with .lock")
        }
        name => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(digit: char) -> ObjectHash {
        ObjectHash::parse(&digit.to_string().repeat(40)).unwrap()
    }

    #[test]
    fn ids_are_forty_hex_digits() {
        let text = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(ObjectHash::parse(text).unwrap().to_string(), text);
        assert_eq!(ObjectHash::parse(&text.to_uppercase()).unwrap().to_string(), text);
        for wrong in ["", "0123", &text[1..], "g123456789abcdef0123456789abcdef01234567", "é"] {
            assert_eq!(ObjectHash::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_follow_gits_rules() {
        for good in ["main", "feature/x", "release-1.2", "refs/heads/main", "ü", "a@b"] {
            assert!(Reference::branch(good).is_ok(), "{good}");
        }
        for bad in
            ["", "@", "a b", "a..b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a~1", "x\n", "-x", "a."]
        {
            assert!(Reference::branch(bad).is_err(), "{bad}");
            assert!(Reference::tag(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_reference_chooses_among_what_a_server_lists() {
        let listed = |name: &str, id, peeled, symbolic: Option<&str>| AdvertisedRef {
            name: name.into(),
            id: hash(id),
            peeled: Option::map(peeled, hash),
            symbolic: symbolic.map(Into::into),
        };
        let listed = [
            listed("HEAD", '1', None, Some("refs/heads/trunk")),
            listed("refs/heads/trunk", '1', None, None),
            listed("refs/heads/trunk2", '2', None, None),
            listed("refs/tags/v1.0.0", '3', Some('4'), None),
            listed("refs/tags/v1.1.0", '5', None, None),
            listed("refs/tags/latest", '6', None, None),
        ];
        let check = |reference: Reference, expect: Option<(&str, char)>| {
            let found = reference.choose(&listed);
            let found = found.as_ref().map(|found| (&*found.name, found.commit));
            assert_eq!(found, expect.map(|(name, id)| (name, hash(id))), "{reference}");
        };
        check(Reference::Head, Some(("refs/heads/trunk", '1')));
        check(Reference::branch("trunk2").unwrap(), Some(("refs/heads/trunk2", '2')));
        check(Reference::branch("tr").unwrap(), None);
        check(Reference::tag("v1.0.0").unwrap(), Some(("refs/tags/v1.0.0", '4')));
        check(Reference::Semver(">=1.0".parse().unwrap()), Some(("refs/tags/v1.1.0", '5')));
        check(Reference::Semver("~1.0.0".parse().unwrap()), Some(("refs/tags/v1.0.0", '4')));
        check(Reference::Semver(">=2".parse().unwrap()), None);
        let named = |name: &str| Reference::named(name).unwrap();
        check(named("trunk2"), Some(("refs/heads/trunk2", '2')));
        check(named("latest"), Some(("refs/tags/latest", '6')));
        check(named("tags/v1.0.0"), Some(("refs/tags/v1.0.0", '4')));
        check(named("refs/heads/trunk"), Some(("refs/heads/trunk", '1')));
        check(named("HEAD"), Some(("refs/heads/trunk", '1')));
        check(named("tr"), None);
        assert_eq!(named(&"a".repeat(40)), Reference::Commit(hash('a')));
        assert!(Reference::named("a b").is_err());
    }

    #[test]
    fn a_revision_is_shown_with_its_short_name() {
        let shown = |name: &str| {
            Revision { commit: hash('a'), name: name.into(), tag: None, chart: None, mounts: Vec::new() }
                .to_string()
        };
        let id = "a".repeat(40);
        assert_eq!(shown("refs/heads/feature/x"), format!("feature/x@{id}"));
        assert_eq!(shown("refs/pull/1/head"), format!("refs/pull/1/head@{id}"));
        assert_eq!(shown(&id), id);
    }

    #[test]
    fn what_is_shown_of_a_revision_is_read_again() {
        let branch = Reference::branch("feature/x@y").unwrap();
        let table = [
            ("refs/heads/feature/x@y", branch),
            ("refs/heads/trunk", Reference::Head),
            ("refs/heads/a+b@sha256:c", Reference::branch("main").unwrap()),
            ("HEAD", Reference::Head),
            ("refs/tags/v1.0.0", Reference::tag("v1.0.0").unwrap()),
            ("refs/tags/v1.0.0", Reference::Semver("1".parse().unwrap())),
            (&*"a".repeat(40), Reference::Commit(hash('a'))),
        ];
        for (name, asked) in table {
            let digest = crate::chart::Digest::hash(b"x");
            let chart = ChartVersion { name: "a+b".into(), version: "1.2.3+c".into(), digest };
            for (tag, chart) in [(None, None), (Some(hash('b')), Some(chart))] {
                let revision =
                    Revision { commit: hash('a'), name: name.into(), tag, chart, mounts: Vec::new() };
                let tag = tag.map(|tag| tag.to_string());
                let read = Revision::parse(&revision.to_string(), tag.as_deref(), &asked);
                assert_eq!(read, Some(revision));
            }
        }
        assert_eq!(Revision::parse("main@123", None, &Reference::Head), None);
        assert_eq!(Revision::parse("", None, &Reference::Head), None);
    }

    #[test]
    fn tags_are_compared_by_their_versions() {
        let tag = |name: &str| Revision {
            commit: hash('a'),
            name: name.into(),
            tag: None,
            chart: None,
            mounts: Vec::new(),
        };
        let compare = |one: &str, other: &str| tag(one).compare_versions(&tag(other));
        assert_eq!(compare("refs/tags/v1.9.0", "refs/tags/v1.10.0"), Some(Ordering::Less));
        assert_eq!(compare("refs/tags/1.0.0", "refs/tags/v1.0.0+build"), Some(Ordering::Equal));
        assert_eq!(compare("refs/tags/v1.0.0", "refs/tags/v1.0.0-rc.1"), Some(Ordering::Greater));
        assert_eq!(compare("refs/tags/v1.0.0", "refs/tags/latest"), None);
        assert_eq!(compare("refs/heads/v1.0.0", "refs/tags/v1.0.0"), None);
        let artifact = |tag: Option<&str>| Revision::of_artifact(tag, Digest::hash(b"x"));
        let compare =
            |one: Option<&str>, other: Option<&str>| artifact(one).compare_versions(&artifact(other));
        assert_eq!(compare(Some("1.9.0"), Some("v1.10.0")), Some(Ordering::Less));
        assert_eq!(compare(Some("1.9.0"), None), None);
    }
}
