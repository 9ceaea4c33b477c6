//! What is wrong with the settings: which one, what was given, what is allowed, and where it came from.

use std::fmt;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody gave one.
    Default,
    /// The settings file.
    File,
    /// An environment variable, by its name.
    Variable(Box<str>),
    /// A flag of the command line, by its name with dashes.
    Flag(Box<str>),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default"),
            Self::File => f.write_str("from the settings file"),
            Self::Variable(name) => write!(f, "from the environment variable {name}"),
            Self::Flag(name) => write!(f, "from the flag {name}"),
        }
    }
}

/// What is wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A value that the setting cannot have.
    #[error("{setting} is {given} ({origin}); it must be {allowed}")]
    Value {
        /// The setting.
        setting: &'static str,
        /// The value, shortened.
        given: Box<str>,
        /// What it may be.
        allowed: Box<str>,
        /// Where the value came from.
        origin: Origin,
    },
    /// Two values that do not go together.
    #[error("{setting} is {given} ({origin}); it must be {rule} {other}, which is {limit} ({other_origin})")]
    Together {
        /// The setting that is too large.
        setting: &'static str,
        /// Its value.
        given: Box<str>,
        /// Where that came from.
        origin: Origin,
        /// How it must relate to the other.
        rule: &'static str,
        /// The other setting.
        other: &'static str,
        /// Its value.
        limit: Box<str>,
        /// Where that came from.
        other_origin: Origin,
    },
    /// A name that no setting has.
    #[error("there is no setting {name} ({origin}){}", .nearest.as_ref().map(|name| format!("; did you mean {name}?")).unwrap_or_default())]
    Unknown {
        /// The name as it was written.
        name: Box<str>,
        /// A name like it that there is, in the same spelling.
        nearest: Option<Box<str>>,
        /// Where the name came from.
        origin: Origin,
    },
    /// A file that is no map.
    #[error("the settings file is {given}; it must be a map of settings and their values")]
    NoMap {
        /// What it is.
        given: Box<str>,
    },
}
