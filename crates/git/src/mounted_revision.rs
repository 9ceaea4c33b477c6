//! Revision of another source that is mounted into the files of a revision.
//!
//! In: the folder of the mount, and the revision of its source; or the text of a status.
//! Out: [`MountedRevision`].

use std::fmt;

use crate::revision::{Reference, Revision};

/// Separates the folder of a mount from its revision. No ref, no tag and no chart has it.
const SEPARATOR: &str = "/:";

/// Separates a revision from its tag object. No ref has it.
const TAG: char = '~';

/// A mount, and the revision of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedRevision {
    /// The folder that holds its files.
    pub path: Box<str>,
    /// The revision, as a status shows it, and the tag object, if the ref is an annotated tag.
    text: Box<str>,
}

impl MountedRevision {
    /// Records the revision that was found for a mount.
    pub fn new(path: &str, revision: &Revision) -> Self {
        let tag = revision.tag.map(|tag| format!("{TAG}{tag}")).unwrap_or_default();
        Self { path: path.into(), text: format!("{}{tag}", revision.of_repository()).into() }
    }

    /// Returns the revision of the source, given its reference; none if it is of another kind.
    pub fn revision(&self, asked: &Reference) -> Option<Revision> {
        let (text, tag) =
            self.text.split_once(TAG).map_or((&*self.text, None), |(text, tag)| (text, Some(tag)));
        Revision::parse(text, tag, asked)
    }

    /// Splits the text of a revision into that of the source itself, and its mounts.
    pub(crate) fn split(text: &str) -> (&str, Vec<Self>) {
        let (mut front, mut mounts) = (text, Vec::new());
        // From the end: the folder of a mount has no plus sign, its ref may have one.
        while let Some((before, mounted)) = front.rsplit_once(SEPARATOR) {
            let Some((rest, path)) = before.rsplit_once('+') else { break };
            mounts.insert(0, Self { path: path.into(), text: mounted.into() });
            front = rest;
        }
        (front, mounts)
    }
}

impl fmt::Display for MountedRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{SEPARATOR}{}", self.path, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::ObjectHash;

    #[test]
    fn mounts_are_read_as_they_are_written() {
        let commit = ObjectHash::parse(&"a".repeat(40)).unwrap();
        let branch = Reference::branch("a+b/c").unwrap();
        let plain =
            Revision { commit, name: "refs/heads/a+b/c".into(), tag: None, chart: None, mounts: Vec::new() };
        let mounts = vec![MountedRevision::new("vendor/base", &plain), MountedRevision::new("b", &plain)];
        let whole = Revision { mounts, ..plain.clone() };
        let read = Revision::parse(&whole.to_string(), None, &branch).unwrap();
        assert_eq!(read, whole);
        assert_eq!(read.mounts[0].revision(&branch), Some(plain.clone()));
        let (tag, asked) = (Some(ObjectHash::parse(&"b".repeat(40)).unwrap()), Reference::tag("v1").unwrap());
        let tagged = Revision { name: "refs/tags/v1".into(), tag, ..plain.clone() };
        let mounts = vec![MountedRevision::new("b", &tagged)];
        let of_tag =
            Revision::parse(&Revision { mounts, ..plain.clone() }.to_string(), None, &branch).unwrap();
        assert_eq!(of_tag.mounts[0].revision(&asked), Some(tagged));
        assert!(!read.has_same_files(&plain) && read.of_repository() == plain);
    }
}
