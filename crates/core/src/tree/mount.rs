//! Files of other repositories, mounted into the tree of one.
//!
//! In: names as files write them, and for each the mount point of its files or the reason why there
//! are none.
//! Out: the mount point that a path belongs to. A mount point contains `//`, which no normalized
//! path of a repository does. So no file can name one by its path, and no link leads from one mount
//! to another.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Mount point of the files of a name, or the reason why there are none.
pub type MountResult = Result<Box<str>, Box<str>>;

/// Mounted files of other repositories.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    pub(super) names: BTreeMap<Box<str>, MountResult>,
    /// The folders and files that were fetched, by their full paths.
    pub(super) brought: BTreeSet<Box<str>>,
    places: BTreeSet<Box<str>>,
}

impl Mounts {
    pub(super) fn new(names: BTreeMap<Box<str>, MountResult>, brought: BTreeSet<Box<str>>) -> Self {
        let places = names.values().filter_map(|named| named.clone().ok()).collect();
        Self { names, brought, places }
    }

    /// Splits a path into its mount point and the path inside it; the mount point is empty for the
    /// tree's own paths.
    pub(super) fn split<'a>(&self, path: &'a str) -> (&'a str, &'a str) {
        let found = self.places.iter().find(|place| is_inside(place, path));
        let (place, rest) = path.split_at(found.map_or(0, |place| place.len()));
        if place.is_empty() { (place, rest) } else { (place, rest.trim_start_matches('/')) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// True if `path` is `folder` or below it.
pub(super) fn is_inside(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Joins a mount point and a path inside it to a path of the tree.
pub(super) fn join_mount<'a>(place: &str, path: &'a str) -> Cow<'a, str> {
    match (place, path) {
        ("", path) => path.into(),
        (place, "") => place.to_owned().into(),
        (place, path) => format!("{place}/{path}").into(),
    }
}
