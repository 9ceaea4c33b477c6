//! Errors in the settings: the setting, its value, the allowed values, and the origin of the value.

use std::fmt;

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default.
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

/// An error in the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A value that the setting cannot have.
    #[error("{setting} is {given} ({origin}); it must be {allowed}")]
    InvalidValue {
        /// The setting.
        setting: &'static str,
        /// The value, shortened.
        given: Box<str>,
        /// The allowed values.
        allowed: Box<str>,
        /// Origin of the value.
        origin: Origin,
    },
    /// Two values that contradict each other.
    #[error("{setting} is {given} ({origin}); it must be {rule} {other}, which is {limit} ({other_origin})")]
    Contradiction {
        /// The setting that is too large.
        setting: &'static str,
        /// Its value.
        given: Box<str>,
        /// Origin of its value.
        origin: Origin,
        /// The required relation to the other setting.
        rule: &'static str,
        /// The other setting.
        other: &'static str,
        /// Its value.
        limit: Box<str>,
        /// Origin of the other value.
        other_origin: Origin,
    },
    /// A name of no setting.
    #[error("there is no setting {name} ({origin}){}", .nearest.as_ref().map(|name| format!("; did you mean {name}?")).unwrap_or_default())]
    Unknown {
        /// The name as it was written.
        name: Box<str>,
        /// A similar name of a setting, in the same spelling.
        nearest: Option<Box<str>>,
        /// Origin of the name.
        origin: Origin,
    },
    /// A settings file that is not a map.
    #[error("the settings file is {given}; it must be a map of settings and their values")]
    NotAMap {
        /// The content of the file, shortened.
        given: Box<str>,
    },
}
