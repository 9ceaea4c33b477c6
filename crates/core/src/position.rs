//! A position in a file, for messages.
//!
//! In: the line and column that a reader of the file found.
//! Out: [`SourcePosition`], which formats as editors and compilers write it.

use std::fmt;

/// A position in a file: line and column as an editor counts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePosition {
    /// The file's path.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
