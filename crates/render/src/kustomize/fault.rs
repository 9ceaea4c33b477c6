//! Errors of a kustomization, with messages for its author.

use std::fmt;
use std::sync::Arc;

use crate::problem::Place;
use moorline_core::tree::{self, FileTree};
use moorline_yaml::{self as yaml, Dialect, Step};

/// An error in a kustomization, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Class of the error.
    pub class: Class,
    /// Position of the error.
    pub place: Place,
    /// Finding and remedy, as a clause.
    pub text: String,
}

/// Classes of errors: a closed list, so that tests and users can rely on their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Class {
    /// A folder without a kustomization file, or with two.
    Kustomization,
    /// An unknown field.
    UnknownField,
    /// A value of the wrong type, or an invalid one.
    Field,
    /// A file or folder that does not exist.
    Missing,
    /// A file outside of its kustomization's folder, or anything outside of the repository.
    Restricted,
    /// A folder in another repository that is not fetched.
    Remote,
    /// A folder that includes itself.
    Cycle,
    /// A component in place of a kustomization, or the reverse.
    Component,
    /// An invalid resource.
    Resource,
    /// Two objects with the same id.
    Duplicate,
    /// An invalid patch.
    Patch,
    /// A patch, replacement or replica count whose target does not exist.
    Target,
    /// Invalid data of a generator.
    Generator,
    /// A name that may refer to several objects.
    Reference,
    /// A replacement that fails.
    Replacement,
    /// An invalid variable.
    Variable,
    /// Field specifications that contradict each other.
    Configuration,
    /// Something that is not supported, by design or not yet.
    Unsupported,
    /// A bound is exceeded.
    Bound,
}

impl Class {
    /// Returns the name of the class.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kustomization => "kustomization",
            Self::UnknownField => "unknown-field",
            Self::Field => "field",
            Self::Missing => "missing",
            Self::Restricted => "restricted",
            Self::Remote => "remote",
            Self::Cycle => "cycle",
            Self::Component => "component",
            Self::Resource => "resource",
            Self::Duplicate => "duplicate",
            Self::Patch => "patch",
            Self::Target => "target",
            Self::Generator => "generator",
            Self::Reference => "reference",
            Self::Replacement => "replacement",
            Self::Variable => "variable",
            Self::Configuration => "configuration",
            Self::Unsupported => "unsupported",
            Self::Bound => "bound",
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Path of a field in a file, for messages.
#[derive(Debug, Clone, Default)]
pub(super) struct At {
    /// Path of the file in the tree.
    pub(super) file: Arc<str>,
    steps: Vec<Owned>,
}

#[derive(Debug, Clone)]
enum Owned {
    Key(String),
    Item(usize),
}

impl At {
    pub(super) fn file(path: &str) -> Self {
        Self { file: path.into(), steps: Vec::new() }
    }

    pub(super) fn key(&self, key: &str) -> Self {
        self.with(Owned::Key(key.to_owned()))
    }

    pub(super) fn item(&self, item: usize) -> Self {
        self.with(Owned::Item(item))
    }

    fn with(&self, step: Owned) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { file: self.file.clone(), steps }
    }

    pub(super) fn refuse(&self, class: Class, text: impl Into<String>) -> Refusal {
        Refusal(Box::new(Refused { class, at: self.clone(), text: text.into(), place: None }))
    }

    pub(super) fn place(&self, tree: &FileTree) -> Place {
        let steps: Vec<Step<'_>> = self.steps.iter().map(Owned::step).collect();
        // After a cancellation the position is not needed.
        let found = tree.read(&self.file).ok().filter(|_| tree.room().is_open());
        let found = found.and_then(|bytes| yaml::locate(&bytes, Dialect::Kubectl, 0, &steps));
        let (line, column) = found.map_or((1, 1), |found| (found.line, found.column));
        Place { file: tree.shown(&self.file), line, column }
    }
}

impl Owned {
    fn step(&self) -> Step<'_> {
        match self {
            Self::Key(key) => Step::Key(key),
            Self::Item(item) => Step::Item(*item),
        }
    }
}

/// An error whose line has not been looked up yet.
#[derive(Debug)]
pub(super) struct Refusal(Box<Refused>);

#[derive(Debug)]
struct Refused {
    class: Class,
    at: At,
    text: String,
    place: Option<Place>,
}

impl Refusal {
    /// Creates an error for a file that is not YAML.
    pub(super) fn unreadable(class: Class, error: &yaml::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let place = Place { file: error.file().to_owned(), line, column };
        let text = error.finding();
        Self(Box::new(Refused { class, at: At::default(), text, place: Some(place) }))
    }

    /// Creates an error with a known position.
    pub(super) fn placed(class: Class, place: Place, text: impl Into<String>) -> Self {
        Self(Box::new(Refused { class, at: At::default(), text: text.into(), place: Some(place) }))
    }

    /// Creates an error for a path that the tree refuses.
    pub(super) fn tree(at: &At, error: &tree::Error) -> Self {
        let class = match error {
            tree::Error::Missing { .. } => Class::Missing,
            tree::Error::Outside { .. } => Class::Restricted,
            tree::Error::TooLarge { .. } => Class::Bound,
            tree::Error::Left { .. } | tree::Error::Unreadable { .. } | tree::Error::Loop { .. } => {
                Class::Missing
            }
        };
        at.refuse(class, error.to_string())
    }

    /// Changes the class.
    pub(super) fn of(mut self, class: Class) -> Self {
        self.0.class = class;
        self
    }

    /// Message without the position.
    pub(super) fn text(&self) -> &str {
        &self.0.text
    }

    #[cfg(test)]
    pub(super) fn class(&self) -> Class {
        self.0.class
    }

    pub(super) fn fault(self, tree: &FileTree) -> Fault {
        let Refused { class, at, text, place } = *self.0;
        Fault { class, place: place.unwrap_or_else(|| at.place(tree)), text }
    }
}
