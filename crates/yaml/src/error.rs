//! Why a file cannot be read, and the budgets that bound reading.
//!
//! In: the findings of the reader's parts. Out: [`Error`], which always names file, line and column, and
//! says what was found and what was expected. It never quotes values: a manifest may hold secrets.

use super::parser::Mark;

/// The most bytes that are read of one file; the tree holds files back at the same size.
pub const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;

/// The most documents in one file, empty ones included.
pub const MAX_DOCUMENTS: u32 = 100_000;

/// The most nodes (maps, lists, scalars) in one document, what aliases stand for included.
pub const MAX_NODES: usize = 8_000_000;

/// How deep maps and lists may be nested. Kubernetes objects stay far below 100; values that deep can still
/// be compared, printed and dropped by recursion on a small stack.
pub const MAX_DEPTH: usize = 512;

/// The most nodes that the aliases of one document may add up to, where kubectl stops as well.
pub const MAX_ALIAS_NODES: usize = 400_000;

/// The most bytes of text that anchors and aliases of one document may copy.
pub const MAX_ALIAS_BYTES: usize = 8 * 1024 * 1024;

/// Why a file cannot be read, with the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {kind}")]
pub struct Error {
    file: Box<str>,
    line: u32,
    column: u32,
    kind: Kind,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Kind {
    #[error("found a file of {0} bytes, expected at most {MAX_FILE_BYTES}")]
    FileBytes(usize),
    #[error("found more than {MAX_DOCUMENTS} documents in one file")]
    Documents,
    #[error("found more than {MAX_NODES} nodes in one document")]
    Nodes,
    #[error("found maps and lists nested deeper than {MAX_DEPTH}")]
    Depth,
    #[error("reading it took longer than there was time for")]
    Stopped,
    #[error("found aliases that expand to far more than is written (an alias bomb), expected plain values")]
    Aliasing,
    #[error("found bytes that are not UTF-8, expected text in UTF-8")]
    Encoding,
    #[error("found text that is not YAML: {0}")]
    Syntax(Box<str>),
    #[error("found text that is not JSON, expected JSON because the file begins with a brace: {0}")]
    Json(Box<str>),
    #[error("found a merge marker of Git, expected a file whose conflicts are resolved")]
    MergeMarker,
    #[error("found `{{{{`, expected plain YAML: this is a template that nothing has rendered")]
    Template,
    #[error("found a tab in the indentation, expected spaces")]
    Tab,
    #[error("found text after `---`, expected the end of the line or a comment")]
    Separator,
    #[error("found a % directive, expected a document without one")]
    Directive,
    #[error("found an alias of the anchor {0:?}, which stands nowhere above it in this document")]
    UnknownAnchor(Box<str>),
    #[error("found an alias of the anchor {0:?} inside that anchor's own value")]
    SelfAlias(Box<str>),
    #[error("found a map or a list as a key, expected text (is this an unrendered template?)")]
    KeyCollection,
    #[error("found a key that is {0}, expected text")]
    Key(&'static str),
    #[error("found the key {0:?} a second time in one map")]
    DuplicateKey(Box<str>),
    #[error("found `<<` with something else than a map or a list of maps")]
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

/// A problem at a place of the file; it becomes an [`Error`] where the file's name is known.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) mark: Mark,
    pub(super) kind: Kind,
}

impl Fault {
    /// A problem at a mark.
    pub(super) fn new(mark: Mark, kind: Kind) -> Self {
        Self { mark, kind }
    }

    /// The error for people, who count from 1.
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
    /// The file, as it was named to [`super::read`].
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

    /// What was found and what was expected, without the place.
    pub fn finding(&self) -> String {
        self.kind.to_string()
    }

    /// One word for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self.kind {
            Kind::FileBytes(_) | Kind::Documents | Kind::Nodes | Kind::Depth | Kind::Aliasing => {
                "YamlTooLarge"
            }
            Kind::Stopped => "RenderFailed",
            Kind::Encoding
            | Kind::Syntax(_)
            | Kind::Json(_)
            | Kind::MergeMarker
            | Kind::Template
            | Kind::Tab
            | Kind::Separator
            | Kind::Directive => "YamlSyntax",
            Kind::UnknownAnchor(_) | Kind::SelfAlias(_) | Kind::Merge => "YamlAlias",
            Kind::KeyCollection | Kind::Key(_) | Kind::DuplicateKey(_) => "YamlKey",
            Kind::Tag(_) | Kind::Binary | Kind::NotFinite | Kind::Time => "YamlValue",
        }
    }
}
