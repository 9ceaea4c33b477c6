//! Errors for people, and the bounds on reading.
//!
//! In: findings of the parts. Out: [`SopsError`], which names file, line and field and says what to
//! do. Contents, plain or encrypted, are in no message.

/// Largest encrypted file, in bytes.
pub const MAX_FILE_BYTES: usize = 5 * 1024 * 1024;

/// Most encrypted values and comments in one file.
pub const MAX_ENCRYPTED_VALUES: usize = 10_000;

/// Most values, maps and lists in one file, encrypted or not; and most lines of dotenv and INI.
pub const MAX_VALUES: usize = 200_000;

/// Most bytes in the keys of the path of an encrypted value.
pub const MAX_PATH_BYTES: usize = 16 * 1024;

/// Most keys that one file may be encrypted for.
pub const MAX_KEYS: usize = 200;

/// Largest text in the metadata, in bytes: a data key encrypted by one key, or a rule.
pub const MAX_METADATA_BYTES: usize = 64 * 1024;

/// Longest part of a field's name in a message.
const MAX_NAME_CHARS: usize = 200;

/// An error in an encrypted file, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct SopsError {
    file: Box<str>,
    line: u32,
    problem: Problem,
}

/// The problem itself, without its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file is too large.
    #[error("the encrypted file has {0} bytes; at most {MAX_FILE_BYTES} are decrypted")]
    FileBytes(usize),
    /// There are too many of something.
    #[error("found more than {most} {what}")]
    TooMany {
        /// The things, in the plural.
        what: &'static str,
        /// The bound.
        most: usize,
    },
    /// The text does not have the form of its format.
    #[error("the encrypted file cannot be read: {0}")]
    Syntax(Box<str>),
    /// A form that SOPS does not write.
    #[error("found {found}, which SOPS does not write: {remedy}")]
    Form {
        /// The form.
        found: &'static str,
        /// Advice.
        remedy: &'static str,
    },
    /// A field of the metadata is missing or wrong.
    #[error("{field} must be {expected}; encrypt the file again with sops")]
    Metadata {
        /// Its path.
        field: Box<str>,
        /// The expected form.
        expected: &'static str,
    },
    /// Two rules for the choice of values.
    #[error("sops has both {0} and {1}, but may have one rule for the choice of values")]
    Rules(&'static str, &'static str),
    /// Comments choose the values, and the MAC covers only these.
    #[error(
        "sops has both mac_only_encrypted and {0}, so a plain value in place of an encrypted one cannot be noticed; encrypt the file again with only one of them"
    )]
    Uncovered(&'static str),
    /// No key of a group opens its part.
    #[error("no key here opens {what}: {tried}; add a key, or run `sops updatekeys` with one that is here")]
    NoKey {
        /// The file, or the groups that are missing.
        what: Box<str>,
        /// The keys of the file, with the reason for each.
        tried: Box<str>,
    },
    /// The parts of the data key do not fit together.
    #[error("the data key cannot be put together: {0}; encrypt the file again with sops")]
    DataKey(&'static str),
    /// A value that must be encrypted is plain.
    #[error("{field} must be encrypted by the rule of this file, but is not; edit the file with `sops edit`")]
    Plain {
        /// Its path.
        field: Box<str>,
    },
    /// A value does not have the form of an encrypted value.
    #[error("{field} is cut off or damaged: {part}; restore it from Git or encrypt the file again")]
    Damaged {
        /// Its path.
        field: Box<str>,
        /// The wrong part.
        part: &'static str,
    },
    /// A value is not authentic.
    #[error(
        "{field} cannot be decrypted with the data key of this file: it was changed, moved, or copied from another file"
    )]
    Forged {
        /// Its path.
        field: Box<str>,
    },
    /// A decrypted value does not fit its type.
    #[error("{field} is encrypted as type {kind}, but its value is not; encrypt the file again")]
    Kind {
        /// Its path.
        field: Box<str>,
        /// The type.
        kind: &'static str,
    },
    /// The file has no MAC.
    #[error(
        "sops.mac is missing, so changes of the file cannot be noticed; encrypt the file again with sops"
    )]
    NoMac,
    /// The MAC does not fit.
    #[error(
        "the MAC does not fit: a value was added, removed, moved or changed without sops; restore the file from Git, or edit it with `sops edit`"
    )]
    Mac,
    /// A decrypted value cannot be written in the format of the file.
    #[error("{field} cannot be written: {why}")]
    Unwritable {
        /// Its path.
        field: Box<str>,
        /// The reason.
        why: &'static str,
    },
}

impl SopsError {
    /// The file's name, as passed to [`crate::read`].
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

/// A problem at a line, still without the file's name.
#[derive(Debug)]
pub(crate) struct Refusal {
    line: u32,
    problem: Problem,
}

impl Refusal {
    /// Creates a refusal at a line, from 1.
    pub(crate) fn new(line: u32, problem: Problem) -> Self {
        Self { line, problem }
    }

    /// True if the file could not be read at all.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self.problem, Problem::FileBytes(_) | Problem::Syntax(_) | Problem::TooMany { .. })
    }

    /// Adds the file's name.
    pub(crate) fn in_file(self, file: &str) -> SopsError {
        SopsError { file: file.into(), line: self.line.max(1), problem: self.problem }
    }
}

/// Returns a name from the file for a message: on one line, and of bounded length.
pub(crate) fn shown(name: &str) -> Box<str> {
    let mut out = String::new();
    for (count, character) in name.chars().enumerate() {
        if count == MAX_NAME_CHARS {
            out.push('…');
            break;
        }
        match character.is_control() {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_a_place() {
        let error = Refusal::new(0, Problem::NoMac).in_file("a.yaml");
        assert_eq!((error.file(), error.line(), error.problem()), ("a.yaml", 1, &Problem::NoMac));
        assert!(error.to_string().starts_with("a.yaml:1: sops.mac is missing"));
    }

    #[test]
    fn names_are_bounded_and_on_one_line() {
        assert_eq!(&*shown("a\nb"), "a\\nb");
        assert_eq!(shown(&"é".repeat(300)).chars().count(), MAX_NAME_CHARS + 1);
    }
}
