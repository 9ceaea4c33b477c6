//! What can be wrong with a variable in a text, as a clause.
//!
//! Only names of variables are told, never values or the text around them: either may be of a Secret.

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A variable without a value.
    #[error("there is no variable {name}{}; give it a value in spec.render.substitute or a default (${{{name}:-...}}), or write $${{{name}}} where the text itself is meant", near(.nearest))]
    Unknown {
        /// Its name.
        name: String,
        /// The variable of nearly that name.
        nearest: Option<String>,
    },
    /// A brace is missing.
    #[error("an expression that begins with ${{ has no closing brace; {ESCAPE}")]
    Unclosed,
    /// No name follows.
    #[error("no name of a variable (letters, digits and _, no digit first) follows ${{; {ESCAPE}")]
    NoName,
    /// What follows the name says nothing.
    #[error(
        "what follows the name in ${{{name}...}} is no operator that is known here (:+ and :? are none); {ESCAPE}"
    )]
    UnknownOperator {
        /// The variable.
        name: String,
    },
    /// Nothing to write instead.
    #[error("the second / is missing in ${{{name}/...}}; write ${{{name}/text/}} to take the text away")]
    NoReplacement {
        /// The variable.
        name: String,
    },
    /// Nothing to look for.
    #[error("there is nothing to replace in ${{{name}/...}}; write ${{{name}/text/other}}")]
    EmptyText {
        /// The variable.
        name: String,
    },
    /// Expressions within expressions.
    #[error("expressions stand more than {most} deep within each other")]
    TooDeep {
        /// How deep they may be.
        most: usize,
    },
    /// A place or length that is no number.
    #[error("a place in ${{{name}:...}} must be a whole number, and a length one that is not negative")]
    NoNumber {
        /// The variable.
        name: String,
    },
    /// A bad pattern.
    #[error("the pattern for ${{{name}}} has more than {most} characters")]
    LongPattern {
        /// The variable.
        name: String,
        /// How many it may have.
        most: usize,
    },
    /// Too much comes out.
    #[error("the variables of the object come to more than {most} bytes")]
    TooLong {
        /// How many may.
        most: usize,
    },
    /// A list or mapping that cannot be read.
    #[error(
        "the value begins like a list or mapping and cannot be read as one; put quotes around it within the value if it is meant as text"
    )]
    Broken,
    /// One key twice.
    #[error("two keys of the mapping are the same once variables are replaced")]
    KeyTwice,
    /// A value that nobody may see, where everybody sees it.
    #[error(
        "a value from a Secret cannot be part of a name (of an object, a kind or a right), because names are shown; take it from spec.render.substitute.vars or a ConfigMap"
    )]
    SecretInName,
    /// The same in a key.
    #[error(
        "a value from a Secret cannot be part of a key, because keys are shown; take it from spec.render.substitute.vars or a ConfigMap"
    )]
    SecretInKey,
}

const ESCAPE: &str =
    "write $${ where the text itself is meant, or annotate the object with moorline.dev/substitute: disabled";

impl Fault {
    /// The class of the problem, for conditions, events and metrics.
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
