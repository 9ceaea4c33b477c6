//! Reasons why a kustomization cannot be built, in words for the person who wrote it.

use std::fmt;
use std::sync::Arc;

use crate::problem::Place;
use moorline_core::tree::{self, FileTree};
use moorline_yaml::{self as yaml, Dialect, Step};

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The sort of the fault.
    pub class: Class,
    /// Where it stands.
    pub place: Place,
    /// The finding and the remedy, as a clause.
    pub text: String,
}

/// The sorts of faults: a closed list, so that tests and people can rely on the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Class {
    /// A folder without a kustomization, or with two.
    Kustomization,
    /// A field that no kustomization has.
    UnknownField,
    /// A value of another type, or one that makes no sense.
    Field,
    /// A file or folder that is not there.
    Missing,
    /// A file outside of the folder of its kustomization, or anything outside of the repository.
    Restricted,
    /// A folder in another repository that is not fetched.
    Remote,
    /// A folder that leads to itself.
    Cycle,
    /// A component where a kustomization belongs, or the other way round.
    Component,
    /// A resource that is none.
    Resource,
    /// Two objects with one identity.
    Duplicate,
    /// A patch that cannot be read.
    Patch,
    /// A patch, a replacement or a number of replicas without its object.
    Target,
    /// A generator's data.
    Generator,
    /// A name that could mean several objects.
    Reference,
    /// A replacement that cannot be made.
    Replacement,
    /// A variable.
    Variable,
    /// Field specifications that contradict each other.
    Configuration,
    /// Something that is not supported, on purpose or not yet.
    Unsupported,
    /// A bound is passed.
    Bound,
}

impl Class {
    /// The word for it.
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

/// A field of a file, to which a message may point.
#[derive(Debug, Clone, Default)]
pub(super) struct At {
    /// The file's path in the tree.
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
        // After a stop nobody waits for it.
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

/// A fault on its way out, whose line nobody has looked for yet.
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
    /// A file that is not YAML.
    pub(super) fn unreadable(class: Class, error: &yaml::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let place = Place { file: error.file().to_owned(), line, column };
        let text = error.finding();
        Self(Box::new(Refused { class, at: At::default(), text, place: Some(place) }))
    }

    /// At a place that is known already.
    pub(super) fn placed(class: Class, place: Place, text: impl Into<String>) -> Self {
        Self(Box::new(Refused { class, at: At::default(), text: text.into(), place: Some(place) }))
    }

    /// A path that the tree refuses.
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

    /// The same as another sort of thing.
    pub(super) fn of(mut self, class: Class) -> Self {
        self.0.class = class;
        self
    }

    /// The finding, without the place.
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
