//! Splits a file into its documents.
//!
//! In: a file's text and the dialect. Out: [`Chunk`]s, each parsed separately. kubectl and
//! Kustomize both split files at lines that begin with `---` before a YAML parser sees them.
//! Therefore `--- {a: b}` and directives are refused, and a second document after `...` is never
//! read.

use std::borrow::Cow;

use super::error::{ErrorKind, MarkedError};
use super::parser::Mark;
use super::{Dialect, MAX_DOCUMENTS};

/// Number of bytes in which kubectl looks for the brace that makes a file JSON.
const JSON_PEEK_BYTES: usize = 4096;

/// One piece of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    pub(super) text: &'a str,
    /// Number of lines of the file before it.
    pub(super) line: u32,
}

impl<'a> Chunk<'a> {
    /// Returns the text for the parser: without a byte order mark, and for kubectl with a line
    /// break at its end, so that a literal block at the end of the file ends with a break.
    pub(super) fn parser_text(self, dialect: Dialect) -> Cow<'a, str> {
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(self.text);
        match dialect {
            Dialect::Kubectl if !text.is_empty() && !text.ends_with('\n') => Cow::Owned(format!("{text}\n")),
            Dialect::Kubectl | Dialect::Kustomize => Cow::Borrowed(text),
        }
    }

    /// Returns the mark of its first character.
    pub(super) fn mark(self) -> Mark {
        Mark { line: self.line, column: 0 }
    }

    /// True if it holds only blank lines, comments and the dashes before a document.
    pub(super) fn is_blank(self) -> bool {
        let blank = |line: &str| {
            let dashes =
                line.strip_prefix("---").filter(|rest| rest.is_empty() || rest.starts_with([' ', '\r']));
            let line = dashes.unwrap_or(line).trim_start_matches(' ').trim_end_matches('\r');
            line.is_empty() || line.starts_with('#')
        };
        self.text.split('\n').all(blank)
    }

    /// Returns the mark of a directive before the document. The parser would refuse it as well,
    /// because its `---` was cut off, but with a misleading message.
    pub(super) fn find_directive(self) -> Option<Mark> {
        let mut lines = (self.line..).zip(self.text.lines());
        let first = lines.find(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        first.filter(|(_, line)| line.starts_with('%')).map(|(line, _)| Mark { line, column: 0 })
    }
}

/// True if kubectl reads the whole file as a stream of JSON values.
pub(super) fn is_json(text: &str, dialect: Dialect) -> bool {
    let json = || {
        let start = text.trim_start_matches(char::is_whitespace);
        start.starts_with('{') && text.len() - start.len() < JSON_PEEK_BYTES
    };
    dialect == Dialect::Kubectl && json()
}

/// Returns the pieces of a file, in order.
pub(super) fn chunks(text: &str, dialect: Dialect) -> Chunks<'_> {
    Chunks { rest: Some(text), line: 0, count: 0, dialect }
}

/// Iterator over the pieces of a file; it ends after an error.
pub(super) struct Chunks<'a> {
    rest: Option<&'a str>,
    line: u32,
    count: u32,
    dialect: Dialect,
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<Chunk<'a>, MarkedError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        self.count += 1;
        if self.count > MAX_DOCUMENTS {
            return Some(Err(self.fault(ErrorKind::Documents, 0)));
        }
        // kubectl also checks dashes on a document's first line; Kustomize leaves those to the
        // parser.
        let first = self.dialect == Dialect::Kubectl && rest.starts_with("---");
        if first && !is_separator(rest) {
            return Some(Err(self.fault(ErrorKind::Separator, 3)));
        }
        let Some((end, after)) = separator(rest, self.dialect) else {
            return Some(Ok(Chunk { text: rest, line: self.line }));
        };
        let chunk = Chunk { text: &rest[..end], line: self.line };
        self.line = self.line.saturating_add(count_lines(&rest[..end]));
        if !is_separator(&rest[end..]) {
            return Some(Err(self.fault(ErrorKind::Separator, 3)));
        }
        self.line = self.line.saturating_add(1);
        self.rest = Some(&rest[after..]);
        Some(Ok(chunk))
    }
}

impl Chunks<'_> {
    fn fault(&self, kind: ErrorKind, column: u32) -> MarkedError {
        MarkedError::new(Mark { line: self.line, column }, kind)
    }
}

/// Finds the next separator line: its offset and the offset of the text after it.
fn separator(text: &str, dialect: Dialect) -> Option<(usize, usize)> {
    let end = text.find("\n---")? + 1;
    match text[end..].find('\n') {
        Some(length) => Some((end, end + length + 1)),
        // Kustomize requires a line break; an unfinished last line stays part of the document.
        None if dialect == Dialect::Kustomize => None,
        None => Some((end, text.len())),
    }
}

/// True if only blanks or a comment follow the three dashes at the start of `text`.
fn is_separator(text: &str) -> bool {
    let line = text[3..].split('\n').next().unwrap_or_default().trim();
    line.is_empty() || line.starts_with('#')
}

/// Counts the line breaks in `text`.
pub(super) fn count_lines(text: &str) -> u32 {
    let breaks = text.bytes().filter(|byte| *byte == b'\n').count();
    u32::try_from(breaks).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, dialect: Dialect, expect: &[(&str, u32)]) {
        let chunks: Result<Vec<_>, _> = chunks(text, dialect).collect();
        let chunks = chunks.expect("splits");
        let found: Vec<_> = chunks.iter().map(|chunk| (chunk.text, chunk.line)).collect();
        assert_eq!(found, expect, "{text:?}");
    }

    #[test]
    fn documents_are_cut_at_lines_of_dashes() {
        check("a\n---\nb\n", Dialect::Kubectl, &[("a\n", 0), ("b\n", 2)]);
        check("---\na\n--- # c\nb", Dialect::Kubectl, &[("---\na\n", 0), ("b", 3)]);
        check("a\n---", Dialect::Kubectl, &[("a\n", 0), ("", 2)]);
        check("a\n---", Dialect::Kustomize, &[("a\n---", 0)]);
        check("a: |\n  ---\n", Dialect::Kubectl, &[("a: |\n  ---\n", 0)]);
    }

    #[test]
    fn text_after_dashes_is_refused_where_it_stands() {
        let fault = chunks("a\n---b\n", Dialect::Kubectl).find_map(Result::err).expect("refused");
        assert_eq!((fault.mark.line, fault.mark.column), (1, 3));
    }
}
