//! Version of a chart that was taken up, as the status records it.
//!
//! In: the name, the version and the digest that a server announced, or the text of a status.
//! Out: [`ChartVersion`].

use std::cmp::Ordering;
use std::fmt;

use super::reference::{Digest, is_plain};
use crate::semver_range;

/// A version of a chart, with the digest of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartVersion {
    /// Name of the chart.
    pub name: Box<str>,
    /// Version, as published.
    pub version: Box<str>,
    /// Digest of the archive; in a registry, of the manifest.
    pub digest: Digest,
}

impl ChartVersion {
    /// Parses the output of [`Display`](fmt::Display).
    pub fn parse(text: &str) -> Option<Self> {
        let (front, digest) = text.split_once('@')?;
        let (name, version) = front.split_once(':')?;
        let digest = digest.strip_prefix("sha256:").and_then(Digest::parse)?;
        let is_sound = is_plain(name) && is_plain(version);
        is_sound.then(|| Self { name: name.into(), version: version.into(), digest })
    }

    /// Compares two versions of one chart; none if one of them is no version.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        semver_range::compare(&self.version, &other.version).filter(|_| self.name == other.name)
    }

    /// Returns the name and the version, without the digest.
    pub fn short(&self) -> String {
        format!("{}:{}", self.name, self.version)
    }
}

impl fmt::Display for ChartVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.name, self.version, self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_it_is_written() {
        let digest = Digest::hash(b"x");
        let taken = ChartVersion { name: "web".into(), version: "1.2.3+b".into(), digest };
        assert_eq!(ChartVersion::parse(&taken.to_string()), Some(taken.clone()));
        assert_eq!(taken.short(), "web:1.2.3+b");
        for wrong in ["", "web:1", "web@sha256:12", "web:1@12", "../a:1@sha256:", &format!("a b:1@{digest}")]
        {
            assert_eq!(ChartVersion::parse(wrong), None, "{wrong}");
        }
    }
}
