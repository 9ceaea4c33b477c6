//! Files of other repositories in the tree of one: where they lie, and what names them.
//!
//! In: names as files write them, and for each the place of its files or why there are none. Out: the place in which a path lies.
//! A place has `//` in it, and no path of a repository has once it is in its normal form; so no file can name one by its path,
//! and no link leads from one place to another.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Where the files of a name lie, or why there are none.
pub type Named = Result<Box<str>, Box<str>>;

/// What was brought from elsewhere.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    pub(super) names: BTreeMap<Box<str>, Named>,
    /// The folders and files that were brought, by their whole paths.
    pub(super) brought: BTreeSet<Box<str>>,
    places: BTreeSet<Box<str>>,
}

impl Mounts {
    pub(super) fn new(names: BTreeMap<Box<str>, Named>, brought: BTreeSet<Box<str>>) -> Self {
        let places = names.values().filter_map(|named| named.clone().ok()).collect();
        Self { names, brought, places }
    }

    /// The place in which a path lies, and the path in it; no place is that of the tree itself.
    pub(super) fn split<'a>(&self, path: &'a str) -> (&'a str, &'a str) {
        let found = self.places.iter().find(|place| lies_in(place, path));
        let (place, rest) = path.split_at(found.map_or(0, |place| place.len()));
        if place.is_empty() { (place, rest) } else { (place, rest.trim_start_matches('/')) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// True if `path` is `folder` or lies below it.
pub(super) fn lies_in(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A path in a place, as a path of the tree.
pub(super) fn whole<'a>(place: &str, path: &'a str) -> Cow<'a, str> {
    match (place, path) {
        ("", path) => path.into(),
        (place, "") => place.to_owned().into(),
        (place, path) => format!("{place}/{path}").into(),
    }
}
