//! Glob patterns that select files.
//!
//! In: a glob, and a path. Out: true if it matches. The parts between slashes are matched
//! separately: over a whole path, the `glob` library tries every way to divide the text among the
//! stars, and does not finish with ten of them.

use glob::{MatchOptions, Pattern, PatternError};

/// Hidden files are treated like other files.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// A glob; `*` does not cross folders, `**` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<GlobPart>);

/// One part of a glob, between slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobPart {
    /// `**`: any number of names.
    AnyFolders,
    /// A pattern for one name.
    Pattern(Pattern),
}

impl Glob {
    /// Parses a glob.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        Pattern::new(text)?;
        let part = |part: &str| match part {
            "**" => Ok(GlobPart::AnyFolders),
            part => Pattern::new(part).map(GlobPart::Pattern),
        };
        let mut parts = split(text);
        // In the library, the slash after `**` belongs to it.
        if parts.ends_with(&["**", ""]) {
            parts.pop();
        }
        parts.into_iter().map(part).collect::<Result<_, _>>().map(Self)
    }

    /// True if the glob matches the path.
    pub fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        // Marks after how many names the parts so far may end.
        let mut ends = vec![false; names.len() + 1];
        ends[0] = true;
        for (at, part) in self.0.iter().enumerate() {
            let mut next = vec![false; ends.len()];
            match part {
                // A final `**` needs at least one name.
                GlobPart::AnyFolders if at + 1 == self.0.len() => return ends[..names.len()].contains(&true),
                GlobPart::AnyFolders => {
                    if let Some(first) = ends.iter().position(|end| *end) {
                        next[first..].fill(true);
                    }
                }
                GlobPart::Pattern(pattern) => {
                    for (place, name) in names.iter().enumerate() {
                        next[place + 1] = ends[place] && pattern.matches_with(name, MATCHING);
                    }
                }
            }
            ends = next;
        }
        ends[names.len()]
    }
}

impl std::str::FromStr for Glob {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::new(text)
    }
}

/// Splits a glob at slashes, except at those inside a character class.
fn split(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut parts, mut begin, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'[' => {
                // Directly after the opening bracket, `]` is a literal character.
                let first = at + if bytes.get(at + 1) == Some(&b'!') { 3 } else { 2 };
                let end = bytes.iter().skip(first).position(|byte| *byte == b']');
                at = end.map_or(at, |end| first + end);
            }
            b'/' => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(&text[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_glob_of_many_stars_comes_to_an_end() {
        let glob = Glob::new(&format!("{}b/x", "*a".repeat(30))).unwrap();
        let begun = std::time::Instant::now();
        assert!(!glob.matches(&format!("{}/x", "a".repeat(200))));
        assert!(glob.matches(&format!("{}b/x", "a".repeat(200))));
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }

    proptest! {
        #[test]
        fn a_glob_means_what_the_library_says(
            glob in "([ab*?]|\\*\\*|\\[[ab/]\\]|\\[!a\\]|/|/\\*\\*/){1,6}",
            path in "[ab.]{1,3}(/[ab]{1,3}){0,3}",
        ) {
            if let (Ok(ours), Ok(theirs)) = (Glob::new(&glob), Pattern::new(&glob)) {
                prop_assert_eq!(ours.matches(&path), theirs.matches_with(&path, MATCHING), "{} {}", glob, path);
            }
        }
    }
}
