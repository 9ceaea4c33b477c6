//! Errors of variables in a text, as clauses.
//!
//! Messages contain only names of variables, never values or the text around them: either may come
//! from a Secret.

/// An error in an expression, or in its evaluation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// A variable without a value.
    #[error("there is no variable {name}{}; give it a value in spec.render.substitute or a default (${{{name}:-...}}), or write $${{{name}}} for the literal text", near(.nearest))]
    Unknown {
        /// Its name.
        name: String,
        /// The variable of nearly that name.
        nearest: Option<String>,
    },
    /// A closing brace is missing.
    #[error("an expression that begins with ${{ has no closing brace; {ESCAPE}")]
    Unclosed,
    /// No name follows `${`.
    #[error(
        "there is no variable name (letters, digits and _, not beginning with a digit) after ${{; {ESCAPE}"
    )]
    NoName,
    /// Unknown operator after the name.
    #[error("unknown operator after the name in ${{{name}...}} (:+ and :? are not supported); {ESCAPE}")]
    UnknownOperator {
        /// The variable.
        name: String,
    },
    /// A replacement without its second slash.
    #[error("the second / is missing in ${{{name}/...}}; write ${{{name}/text/}} to remove the text")]
    NoReplacement {
        /// The variable.
        name: String,
    },
    /// A replacement with an empty text to search for.
    #[error("there is nothing to replace in ${{{name}/...}}; write ${{{name}/text/other}}")]
    EmptyText {
        /// The variable.
        name: String,
    },
    /// Expressions nested too deeply.
    #[error("expressions are nested more than {most} levels deep")]
    TooDeep {
        /// Deepest nesting that is allowed.
        most: usize,
    },
    /// An offset or length that is not a number.
    #[error("an offset in ${{{name}:...}} must be an integer, and a length must not be negative")]
    NoNumber {
        /// The variable.
        name: String,
    },
    /// A pattern that is too long.
    #[error("the pattern for ${{{name}}} has more than {most} characters")]
    LongPattern {
        /// The variable.
        name: String,
        /// Most characters that are allowed.
        most: usize,
    },
    /// Too much output.
    #[error("the substituted values of the object have more than {most} bytes")]
    TooLong {
        /// Most bytes that are allowed.
        most: usize,
    },
    /// A list or mapping that cannot be parsed.
    #[error(
        "the value begins like a list or mapping but cannot be parsed as one; if it is text, put quotes inside the value"
    )]
    Broken,
    /// A key that occurs twice.
    #[error("two keys of the mapping are equal after substitution")]
    KeyTwice,
    /// A secret value in a name, which is visible to everyone.
    #[error(
        "a value from a Secret cannot be part of a name (of an object, a kind or a permission), because names are shown; take it from spec.render.substitute.vars or a ConfigMap"
    )]
    SecretInName,
    /// A secret value in a key.
    #[error(
        "a value from a Secret cannot be part of a key, because keys are shown; take it from spec.render.substitute.vars or a ConfigMap"
    )]
    SecretInKey,
}

const ESCAPE: &str =
    "write $${ for a literal ${, or annotate the object with moorline.dev/substitute: disabled";

impl VariableError {
    /// Machine-readable reason for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "VariableUnknown",
            Self::Unclosed
            | Self::NoName
            | Self::UnknownOperator { .. }
            | Self::NoReplacement { .. }
            | Self::EmptyText { .. }
            | Self::TooDeep { .. }
            | Self::NoNumber { .. }
            | Self::LongPattern { .. }
            | Self::TooLong { .. }
            | Self::Broken
            | Self::KeyTwice
            | Self::SecretInName
            | Self::SecretInKey => "SubstitutionInvalid",
        }
    }
}

fn near(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean {name}?)")).unwrap_or_default()
}
