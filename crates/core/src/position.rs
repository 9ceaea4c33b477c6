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
    /// The line, from 1; 0 if `file` is the field of a resource.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl SourcePosition {
    /// Returns the position of a field of a resource, such as `spec.render`, which is in no file.
    pub fn of_field(field: String) -> Self {
        Self { file: field, line: 0, column: 0 }
    }
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}:{}", self.file, self.column),
        }
    }
}
