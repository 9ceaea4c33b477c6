//! Comparison of two source trees, item by item.
//!
//! In: the items of both sides.
//! Out: the number of equal items, and the items that only one side has.

use std::fmt;

use super::items::{Items, Place};

/// Maximum number of items of a side that are printed.
const MOST: usize = 60;

#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) same: usize,
    before: Vec<(Place, String)>,
    now: Vec<(Place, String)>,
}

impl Comparison {
    /// Compares the sides; an item that occurs twice on one side must occur twice on the other.
    pub(crate) fn new(before: Items, mut now: Items) -> Self {
        let mut found = Self::default();
        for (tokens, places) in before.0 {
            let mut others = now.0.remove(&tokens).unwrap_or_default();
            let same = places.len().min(others.len());
            found.same += same;
            found.before.extend(places.into_iter().skip(same).map(|place| (place, tokens.clone())));
            found.now.extend(others.drain(same..).map(|place| (place, tokens.clone())));
        }
        let left = now.0.into_iter();
        found
            .now
            .extend(left.flat_map(|(tokens, places)| places.into_iter().map(move |it| (it, tokens.clone()))));
        found
    }

    /// True if both sides have the same items.
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.now.is_empty()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the same: {} items", self.same)?;
        for (side, items) in [("only before", &self.before), ("only now", &self.now)] {
            writeln!(f, "{side}: {}", items.len())?;
            for (place, tokens) in items.iter().take(MOST) {
                let short: String = tokens.chars().take(160).collect();
                writeln!(f, "  {} {}: {short}", place.path, place.name)?;
            }
        }
        Ok(())
    }
}
