//! Regular expressions with the semantics of Go.

use regex::bytes::{Regex, RegexBuilder};

/// Maximal memory of a compiled pattern, in bytes.
const MAX_PATTERN: usize = 1 << 20;

/// A compiled pattern. Two patterns are equal if their texts are.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern; `None` if it is invalid.
    pub fn new(pattern: &str) -> Option<Self> {
        let compile =
            |unicode| RegexBuilder::new(pattern).unicode(unicode).size_limit(MAX_PATTERN).build().ok();
        // In Go, classes such as \d are ASCII, here only without Unicode; a dot is a character only
        // with it.
        let classes = ["\\d", "\\w", "\\s", "\\b", "\\D", "\\W", "\\S", "\\B"];
        let has_class = classes.iter().any(|class| pattern.contains(class));
        let compiled = if has_class { compile(false) } else { compile(true).or_else(|| compile(false)) };
        compiled.map(Self)
    }

    /// True if the pattern matches anywhere in a text.
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }

    /// Returns all matches, in order.
    pub(super) fn all<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let found = self.0.find_iter(text.as_bytes()).map(|found| found.range());
        found.filter_map(|range| text.get(range)).collect::<Vec<_>>().into_iter()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_in_patterns_are_of_ascii_and_dots_are_characters() {
        let matches =
            |pattern: &str, text: &str| Pattern::new(pattern).is_some_and(|it| it.is_match(text.as_bytes()));
        assert!(matches("^\\d+$", "12") && !matches("^\\d+$", "\u{664}") && matches("^.$", "\u{e4}"));
        assert!(Pattern::new("(").is_none());
    }
}
