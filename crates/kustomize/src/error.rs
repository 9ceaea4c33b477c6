//! Errors of a kustomization, with messages for its author.

use std::fmt;
use std::sync::Arc;

use super::files::Files;
use moorline_core::position::SourcePosition;
use moorline_core::tree::{self, FileTree};
use moorline_yaml::{self as yaml, Dialect, Step};

/// An error in a kustomization, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KustomizeError {
    /// Class of the error.
    pub class: ErrorClass,
    /// Position of the error.
    pub place: SourcePosition,
    /// Finding and remedy, as a clause.
    pub text: String,
}

/// Classes of errors: a closed list, so that tests and users can rely on their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
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
    /// A file that cannot be decrypted.
    Decryption,
    /// Something that is not supported, by design or not yet.
    Unsupported,
    /// A bound is exceeded.
    Bound,
}

impl ErrorClass {
    /// Returns the name of the class.
    pub fn name(self) -> &'static str {
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
            Self::Decryption => "decryption",
            Self::Unsupported => "unsupported",
            Self::Bound => "bound",
        }
    }
}

impl std::error::Error for KustomizeError {}

impl KustomizeError {
    /// Removes a text that may quote values, because decrypted files were read. Texts about paths
    /// of a plain kustomization stay.
    pub(super) fn without_values(mut self, tree: &FileTree) -> Self {
        let is_safe = matches!(
            self.class,
            ErrorClass::Kustomization
                | ErrorClass::Missing
                | ErrorClass::Restricted
                | ErrorClass::Remote
                | ErrorClass::Cycle
                | ErrorClass::Component
                | ErrorClass::Decryption
                | ErrorClass::Bound
        );
        if !is_safe || tree.is_decrypted(tree.parse_display_path(&self.place.file)) {
            self.text = format!(
                "an error of class {} ({NOT_SHOWN}; `kustomize build` of the decrypted files shows it)",
                self.class.name()
            );
        }
        self
    }
}

/// Replacement for a text that may quote values.
const NOT_SHOWN: &str = "not shown, it may contain a value of a decrypted file";

impl fmt::Display for KustomizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Path of a field in a file, for messages.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldLocation {
    /// Path of the file in the tree.
    pub(super) file: Arc<str>,
    steps: Vec<OwnedPathStep>,
    /// `file` is the field of a resource that holds options, not a file.
    is_option: bool,
}

#[derive(Debug, Clone)]
enum OwnedPathStep {
    Key(String),
    Item(usize),
}

impl FieldLocation {
    pub(super) fn file(path: &str) -> Self {
        Self { file: path.into(), steps: Vec::new(), is_option: false }
    }

    /// Returns the position of a field with options of the caller.
    pub(super) fn option(field: &str) -> Self {
        Self { file: field.into(), steps: Vec::new(), is_option: true }
    }

    /// Returns the name of the file, or the path of the option.
    pub(super) fn display(&self, files: &Files<'_>) -> String {
        match self.is_option {
            true => self.option_path(),
            false => files.display_path(&self.file),
        }
    }

    fn option_path(&self) -> String {
        let mut path = self.file.to_string();
        for step in &self.steps {
            match step {
                OwnedPathStep::Key(key) => path.push_str(&format!(".{key}")),
                OwnedPathStep::Item(item) => path.push_str(&format!("[{item}]")),
            }
        }
        path
    }

    pub(super) fn key(&self, key: &str) -> Self {
        self.with(OwnedPathStep::Key(key.to_owned()))
    }

    pub(super) fn item(&self, item: usize) -> Self {
        self.with(OwnedPathStep::Item(item))
    }

    fn with(&self, step: OwnedPathStep) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { file: self.file.clone(), steps, is_option: self.is_option }
    }

    pub(super) fn error(&self, class: ErrorClass, text: impl Into<String>) -> BuildError {
        BuildError(Box::new(ErrorDetails { class, at: self.clone(), text: text.into(), place: None }))
    }

    pub(super) fn position(&self, tree: &FileTree) -> SourcePosition {
        if self.is_option {
            return SourcePosition::of_field(self.option_path());
        }
        let steps: Vec<Step<'_>> = self.steps.iter().map(OwnedPathStep::step).collect();
        // After a cancellation the position is not needed.
        let found = tree.read(&self.file).ok().filter(|_| tree.memory_limit().is_running());
        let found = found.and_then(|bytes| yaml::locate(&bytes, Dialect::Kubectl, 0, &steps));
        let (line, column) = found.map_or((1, 1), |found| (found.line, found.column));
        SourcePosition { file: tree.display_path(&self.file), line, column }
    }
}

impl OwnedPathStep {
    fn step(&self) -> Step<'_> {
        match self {
            Self::Key(key) => Step::Key(key),
            Self::Item(item) => Step::Item(*item),
        }
    }
}

/// An error whose line has not been looked up yet.
#[derive(Debug)]
pub(super) struct BuildError(Box<ErrorDetails>);

/// Result of a step of a build.
pub(super) type Built<T> = Result<T, BuildError>;

#[derive(Debug)]
struct ErrorDetails {
    class: ErrorClass,
    at: FieldLocation,
    text: String,
    place: Option<SourcePosition>,
}

impl BuildError {
    /// Creates an error for a file that is not YAML.
    pub(super) fn invalid_yaml(class: ErrorClass, error: &yaml::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let place = SourcePosition { file: error.file().to_owned(), line, column };
        let text = error.finding();
        Self(Box::new(ErrorDetails { class, at: FieldLocation::default(), text, place: Some(place) }))
    }

    /// Creates an error with a known position.
    pub(super) fn at_position(class: ErrorClass, place: SourcePosition, text: impl Into<String>) -> Self {
        Self(Box::new(ErrorDetails {
            class,
            at: FieldLocation::default(),
            text: text.into(),
            place: Some(place),
        }))
    }

    /// Creates an error for a path that the tree refuses.
    pub(super) fn from_tree_error(at: &FieldLocation, error: &tree::TreeError) -> Self {
        let class = match error {
            tree::TreeError::Missing { .. } => ErrorClass::Missing,
            tree::TreeError::Outside { .. } => ErrorClass::Restricted,
            tree::TreeError::TooLarge { .. } => ErrorClass::Bound,
            tree::TreeError::LfsPointer { .. } => ErrorClass::Unsupported,
            tree::TreeError::Encrypted { .. } => ErrorClass::Decryption,
            tree::TreeError::NotFetched { .. }
            | tree::TreeError::Unreadable { .. }
            | tree::TreeError::Loop { .. } => ErrorClass::Missing,
        };
        at.error(class, error.to_string())
    }

    /// Changes the class.
    pub(super) fn with_class(mut self, class: ErrorClass) -> Self {
        self.0.class = class;
        self
    }

    /// Message without the position.
    pub(super) fn text(&self) -> &str {
        &self.0.text
    }

    #[cfg(test)]
    pub(super) fn class(&self) -> ErrorClass {
        self.0.class
    }

    pub(super) fn locate(self, tree: &FileTree) -> KustomizeError {
        let ErrorDetails { class, at, text, place } = *self.0;
        KustomizeError { class, place: place.unwrap_or_else(|| at.position(tree)), text }
    }
}
