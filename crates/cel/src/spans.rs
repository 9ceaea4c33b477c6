//! Finds the positions of the parts of an expression in its text.
//!
//! In: the text, and its names, literals and operators in their order.
//! Out: their byte offsets. A node that a macro adds is not in the text, and does not advance the
//! cursor.

use crate::size_limit::literal;

/// A text, and a cursor in it.
pub(super) struct SpanFinder<'a> {
    text: &'a str,
    cursor: usize,
}

impl<'a> SpanFinder<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, cursor: 0 }
    }

    /// Returns the cursor.
    pub(super) fn position(&self) -> usize {
        self.cursor
    }

    /// Moves the cursor back.
    pub(super) fn reset(&mut self, met: usize) {
        self.cursor = met;
    }

    /// Finds a text behind the cursor, without moving the cursor.
    pub(super) fn peek(&self, words: &str) -> usize {
        self.rest().find(words).map_or(self.cursor, |at| self.cursor + at)
    }

    /// Finds a text behind the cursor and moves the cursor behind it.
    pub(super) fn advance_past(&mut self, words: &str) -> usize {
        let at = self.peek(words);
        if self.text[at..].starts_with(words) {
            self.cursor = at + words.len();
        }
        at
    }

    /// Finds a name after a sign, with optional space between them, and returns the position of the
    /// sign.
    pub(super) fn member(&mut self, sign: &str, name: &str) -> usize {
        let places = self.rest().match_indices(sign).map(|(at, _)| self.cursor + at);
        let found = places.map(|at| (at, at + sign.len())).find(|(_, behind)| {
            let rest = &self.text[*behind..];
            is_word(rest.trim_start(), name) && (!sign.is_empty() || rest.starts_with(name))
        });
        let Some((at, behind)) = found else { return self.cursor };
        self.cursor = behind + self.text[behind..].find(name).unwrap_or(0) + name.len();
        at
    }

    /// Finds a whole identifier.
    pub(super) fn word(&mut self, name: &str) -> usize {
        let letter = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let places = self.rest().match_indices(name).map(|(at, _)| self.cursor + at);
        let found = places
            .into_iter()
            .find(|at| is_word(&self.text[*at..], name) && !self.text[..*at].ends_with(letter));
        let Some(at) = found else { return self.cursor };
        self.cursor = at + name.len();
        at
    }

    /// Finds a number, a string, or a keyword such as `true`.
    pub(super) fn literal(&mut self) -> usize {
        let begins = |char: char| char.is_ascii_alphanumeric() || matches!(char, '\'' | '"' | '.');
        let Some(at) = self.rest().find(begins).map(|at| self.cursor + at) else { return self.cursor };
        let length = literal(&self.text.as_bytes()[at..]);
        let word = |char: char| !char.is_ascii_alphanumeric() && !matches!(char, '.' | '_');
        let rest = &self.text[at..];
        self.cursor = at + if length > 0 { length } else { rest.find(word).unwrap_or(rest.len()) };
        at
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.cursor..).unwrap_or_default()
    }
}

/// True if a text begins with a whole identifier.
fn is_word(text: &str, word: &str) -> bool {
    let letter = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(letter))
}
