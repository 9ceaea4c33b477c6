//! Errors of the reader, and the bounds on reading.
//!
//! In: findings of the parts of the reader. Out: [`Error`], which always names file, line and
//! column, and says what was found and what was expected. It never quotes values: a manifest may
//! hold secrets.

use super::parser::Mark;

/// Largest file that is read, in bytes; the file tree refuses larger files at the same size.
pub const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;

/// Most documents in one file, empty ones included.
pub const MAX_DOCUMENTS: u32 = 100_000;

/// Most nodes (maps, lists, scalars) in one document, expanded aliases included.
pub const MAX_NODES: usize = 8_000_000;

/// Deepest nesting of maps and lists. Kubernetes objects stay far below 100; values of this depth
/// can still be compared, printed and dropped by recursion on a small stack.
pub const MAX_DEPTH: usize = 512;

/// Most nodes that the aliases of one document may add up to, the same bound as kubectl's.
pub const MAX_ALIAS_NODES: usize = 400_000;

/// Most bytes of text that anchors and aliases of one document may copy.
pub const MAX_ALIAS_BYTES: usize = 8 * 1024 * 1024;

/// An error in a file, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {kind}")]
pub struct Error {
    file: Box<str>,
    line: u32,
    column: u32,
    kind: ErrorKind,
}

/// The problem itself, without a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ErrorKind {
    #[error("found a file of {0} bytes, expected at most {MAX_FILE_BYTES}")]
    FileBytes(usize),
    #[error("found more than {MAX_DOCUMENTS} documents in one file")]
    Documents,
    #[error("found more than {MAX_NODES} nodes in one document")]
    Nodes,
    #[error("found more than {0} nodes in the file")]
    Events(usize),
    #[error("found maps and lists nested deeper than {MAX_DEPTH}")]
    Depth,
    #[error("reading was cancelled or ran out of time")]
    Stopped,
    #[error("found aliases that expand to far more than is written (an alias bomb), expected plain values")]
    Aliasing,
    #[error("found bytes that are not UTF-8, expected text in UTF-8")]
    Encoding,
    #[error("found text that is not YAML: {0}")]
    Syntax(Box<str>),
    #[error("found text that is not JSON, expected JSON because the file begins with a brace: {0}")]
    Json(Box<str>),
    #[error("found a Git merge conflict marker, expected a file without conflicts")]
    MergeMarker,
    #[error("found `{{{{`, expected plain YAML: this is an unrendered template")]
    Template,
    #[error("found a tab in the indentation, expected spaces")]
    Tab,
    #[error("found text after `---`, expected the end of the line or a comment")]
    Separator,
    #[error("found a % directive, expected a document without one")]
    Directive,
    #[error("found an alias of the anchor {0:?}, which is not defined above it in this document")]
    UnknownAnchor(Box<str>),
    #[error("found an alias of the anchor {0:?} inside that anchor's own value")]
    SelfAlias(Box<str>),
    #[error("found a map or a list as a key, expected text (is this an unrendered template?)")]
    KeyCollection,
    #[error("found a key that is {0}, expected text")]
    Key(&'static str),
    #[error("found the key {0:?} a second time in one map")]
    DuplicateKey(Box<str>),
    #[error("found `<<` with a value that is not a map or a list of maps")]
    Merge,
    #[error("found a value that does not fit its tag {0:?}")]
    Tag(Box<str>),
    #[error("found a `!!binary` value that is not base64 of UTF-8 text")]
    Binary,
    #[error("found infinity or not-a-number, expected a number that JSON can hold")]
    NotFinite,
    #[error("found a time with an offset that cannot be written")]
    Time,
}

/// An error at a mark, still without the file's name; [`Self::in_file`] makes it an [`Error`].
#[derive(Debug)]
pub(super) struct MarkedError {
    pub(super) mark: Mark,
    pub(super) kind: ErrorKind,
}

impl MarkedError {
    /// Creates an error of this kind at `mark`.
    pub(super) fn new(mark: Mark, kind: ErrorKind) -> Self {
        Self { mark, kind }
    }

    /// Adds the file's name, and counts line and column from 1.
    pub(super) fn in_file(self, file: &str) -> Error {
        Error {
            file: file.into(),
            line: self.mark.line.saturating_add(1),
            column: self.mark.column.saturating_add(1),
            kind: self.kind,
        }
    }
}

impl Error {
    /// The file's name, as passed to [`super::read`].
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The column, from 1, in characters.
    pub fn column(&self) -> u32 {
        self.column
    }

    /// The message without the position: what was found and what was expected.
    pub fn finding(&self) -> String {
        self.kind.to_string()
    }

    /// Machine-readable reason for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self.kind {
            ErrorKind::FileBytes(_)
            | ErrorKind::Documents
            | ErrorKind::Nodes
            | ErrorKind::Events(_)
            | ErrorKind::Depth
            | ErrorKind::Aliasing => "YamlTooLarge",
            ErrorKind::Stopped => "RenderFailed",
            ErrorKind::Encoding
            | ErrorKind::Syntax(_)
            | ErrorKind::Json(_)
            | ErrorKind::MergeMarker
            | ErrorKind::Template
            | ErrorKind::Tab
            | ErrorKind::Separator
            | ErrorKind::Directive => "YamlSyntax",
            ErrorKind::UnknownAnchor(_) | ErrorKind::SelfAlias(_) | ErrorKind::Merge => "YamlAlias",
            ErrorKind::KeyCollection | ErrorKind::Key(_) | ErrorKind::DuplicateKey(_) => "YamlKey",
            ErrorKind::Tag(_) | ErrorKind::Binary | ErrorKind::NotFinite | ErrorKind::Time => "YamlValue",
        }
    }
}
