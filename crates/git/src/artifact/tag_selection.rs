//! Selection of the tags of a repository in a registry.
//!
//! In: a range of versions, a regular expression and a number. Out: the tags that fit all of them.

use super::artifact_reference::{ArtifactReference, TagFilter};
use crate::semver_range::VersionRange;

/// Selects tags. Without a range and a filter it selects none.
#[derive(Debug, Clone, Default)]
pub struct TagSelection {
    /// Only tags whose versions are in this range.
    pub range: Option<VersionRange>,
    /// Only tags that this regular expression matches.
    pub filter: Option<TagFilter>,
    /// Only this number of tags with the highest versions; needs a range.
    pub newest: Option<usize>,
}

impl TagSelection {
    /// Returns the selected tags: by version with a range, the highest one first, else by name.
    pub(crate) fn select(&self, tags: &[String]) -> Vec<String> {
        if self.range.is_none() && self.filter.is_none() {
            return Vec::new();
        }
        // A tag that is none may be a part of no URL.
        let sound = tags.iter().map(String::as_str).filter(|tag| ArtifactReference::tag(tag).is_ok());
        let matching = sound.filter(|tag| self.filter.as_ref().is_none_or(|filter| filter.matches(tag)));
        let mut found = match &self.range {
            Some(range) => range.select(matching),
            None => {
                let mut names: Vec<&str> = matching.collect();
                names.sort_unstable();
                names
            }
        };
        // A page may repeat a tag that moved while the list was read.
        found.dedup();
        if let (Some(newest), Some(_)) = (self.newest, &self.range) {
            found.truncate(newest);
        }
        found.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A range, a filter, a number, and the selected tags.
    type TagCase = (Option<&'static str>, Option<&'static str>, Option<usize>, &'static [&'static str]);

    #[test]
    fn tags_are_selected_by_range_filter_and_number() {
        let tags = [
            "v1.2.0",
            "1.10.0",
            "1.9.0",
            "2.0.0",
            "1.11.0-rc.1",
            "pr-7",
            "pr-12",
            "latest",
            "../up",
            "1.9.0",
        ];
        let tags = tags.map(str::to_owned);
        let cases: [TagCase; 7] = [
            (Some("1.x"), None, None, &["1.10.0", "1.9.0", "v1.2.0"]),
            (Some("1.x"), None, Some(2), &["1.10.0", "1.9.0"]),
            (Some("1.x"), Some("^v"), None, &["v1.2.0"]),
            (None, Some("^pr-[0-9]+$"), None, &["pr-12", "pr-7"]),
            // There is no newest one among names.
            (None, Some("^pr-[0-9]+$"), Some(1), &["pr-12", "pr-7"]),
            (None, Some("up"), None, &[]),
            (None, None, None, &[]),
        ];
        for (range, filter, newest, expect) in cases {
            let range = range.map(|text| text.parse().unwrap());
            let filter = filter.map(|text| TagFilter::new(text).unwrap());
            let selection = TagSelection { range, filter, newest };
            assert_eq!(selection.select(&tags), expect, "{selection:?}");
        }
    }
}
