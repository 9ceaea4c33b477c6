//! Problems in the files of a revision, with messages for their author.
//!
//! Each message says what was found, at which position, and what to write instead. It never
//! contains a value of a Secret.

use super::helm::HelmChartError;
use super::substitute;
use moorline_core::grammar::with_article;
use moorline_core::object::{ObjectId, Origin};
use moorline_core::position::SourcePosition;
use moorline_core::tree;
use moorline_kustomize::{ErrorClass, KustomizeError};
use moorline_yaml as yaml;

/// One problem that makes a render incomplete.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A file that is not valid YAML for Kubernetes.
    #[error(transparent)]
    Unreadable(#[from] yaml::Error),
    /// A path that the tree refuses.
    #[error(transparent)]
    Tree(#[from] tree::TreeError),
    /// The path to render is not in the tree.
    #[error("there is no {path}; check the spelling and the revision")]
    NoSuchPath {
        /// The path asked for.
        path: String,
    },
    /// There is no manifest below the path.
    #[error(
        "there is no manifest below {}: files that end in .yaml, .yml or .json and hold an apiVersion and a kind are read{}",
        shown_path(.path), passed_over(.skipped)
    )]
    NothingFound {
        /// The path asked for.
        path: String,
        /// Files with a matching name and without a manifest.
        skipped: Vec<String>,
    },
    /// A kustomization without any object.
    #[error("the kustomization in {} has no objects; add resources to it", shown_path(.path))]
    NothingBuilt {
        /// The path asked for.
        path: String,
    },
    /// The objects are larger than the daemon holds for one Sync.
    #[error(
        "the objects of {} total {mib} MiB, more than the limit of {most} MiB for one Sync; split them over several Syncs",
        shown_path(.path)
    )]
    TooLarge {
        /// The path asked for.
        path: String,
        /// Their size.
        mib: usize,
        /// The bound.
        most: usize,
    },
    /// The render exceeded its memory or its time.
    #[error("{no_room}")]
    NoRoom {
        /// The exceeded limit.
        no_room: tree::MemoryLimitError,
    },
    /// A chart that renders to no object.
    #[error("the chart in {path} renders to no objects with these values; enable something in it")]
    NothingTemplated {
        /// The chart's folder.
        path: String,
    },
    /// A chart in a place without helm.
    #[error("{path}: this is a Helm chart, and helm does not run here; render it first, and use its output")]
    ChartUnrendered {
        /// The chart's folder.
        path: String,
    },
    /// A chart that cannot be rendered.
    #[error(transparent)]
    Chart(#[from] HelmChartError),
    /// A kustomization that cannot be built.
    #[error(transparent)]
    Kustomize(#[from] KustomizeError),
    /// A kustomization in a plain directory: applying its files one by one would differ from its
    /// build.
    #[error(
        "{file}: a kustomization among plain manifests; set the path to its folder to build it, or exclude the file"
    )]
    Kustomization {
        /// The kustomization's path.
        file: String,
    },
    /// Options of a kustomization for a chart.
    #[error(
        "{}: this is a Helm chart, to which spec.render.kustomize does not apply; remove these options, or name the chart in a kustomization (helmCharts)",
        shown_path(.path)
    )]
    OptionsOnChart {
        /// The chart's folder.
        path: String,
    },
    /// Options of a kustomization for a single file.
    #[error(
        "{path} is a file, and spec.render.kustomize needs a folder; set the path to the folder, and name the file in render.plain.include"
    )]
    OptionsOnFile {
        /// The file's path.
        path: String,
    },
    /// A document among manifests that is not a mapping.
    #[error("{place}: expected an object with apiVersion and kind, found {found}")]
    NotAMapping {
        /// Position of the document.
        place: SourcePosition,
        /// Type of the document.
        found: &'static str,
    },
    /// A document with only one of `apiVersion` and `kind`, or with neither among manifests.
    #[error("{place}: the document has {}; add {lacks}, or move the document to a file without manifests",
        .has.map_or_else(|| "neither an apiVersion nor a kind".to_owned(), |has| format!("{} but no {lacks}", with_article(has))))]
    IncompleteType {
        /// Position of the document.
        place: SourcePosition,
        /// The field that it has.
        has: Option<&'static str>,
        /// The field that it lacks.
        lacks: &'static str,
    },
    /// A list within a list.
    #[error("{place}: a list within a list; move its items to the outer list or to separate documents")]
    NestedList {
        /// Position of the inner list.
        place: SourcePosition,
    },
    /// A file encrypted by SOPS.
    #[error(
        "{place}: the file is encrypted with SOPS, and would be applied as ciphertext; name the Secret with its keys in spec.decryption.sops.secretRef, or use --decrypt on the command line"
    )]
    Encrypted {
        /// Position of the `sops` field.
        place: SourcePosition,
    },
    /// A variable in the text of a decrypted file that cannot be substituted.
    #[error(
        "{place}: {field} of {object}: an expression that begins with ${{ cannot be evaluated (not shown, the file was encrypted); write $${{ for the literal text"
    )]
    SecretSubstitution {
        /// Position of the field.
        place: SourcePosition,
        /// The field's path.
        field: String,
        /// The object's name as written.
        object: String,
        /// The reason of the error.
        reason: &'static str,
    },
    /// A field with a value of the wrong type.
    #[error("{place}: {field} must be {expected}, found {found}{}", quote_hint(.expected, .found))]
    WrongType {
        /// Position of the field.
        place: SourcePosition,
        /// The field's path.
        field: String,
        /// The expected type.
        expected: &'static str,
        /// The type that was found.
        found: &'static str,
    },
    /// A required field that is missing.
    #[error("{place}: the {kind} has no {field}{}", .nearest.as_ref().map_or_else(|| "; add it".to_owned(), |_| meant(.nearest)))]
    MissingField {
        /// Position of the object.
        place: SourcePosition,
        /// The object's kind.
        kind: String,
        /// The field that is missing.
        field: &'static str,
        /// A field with a similar name beside it.
        nearest: Option<String>,
    },
    /// A field that does not exist.
    #[error("{place}: {of} has no field {field}{}", meant(.nearest))]
    UnknownField {
        /// Position of the field.
        place: SourcePosition,
        /// The object without this field.
        of: String,
        /// The field as written.
        field: String,
        /// The known field with a similar name.
        nearest: Option<String>,
    },
    /// A name, namespace, kind, label or other text that the API server would refuse.
    #[error("{place}: {field} {text:?} {rule}{}", not_substituted(.text))]
    BadText {
        /// Position of the text.
        place: SourcePosition,
        /// Role of the text.
        field: String,
        /// The text.
        text: String,
        /// The rule that it breaks, as a clause.
        rule: &'static str,
    },
    /// A name that the API server would generate.
    #[error(
        "{place}: generateName makes a new object on every apply; write a metadata.name that Moorline can find again"
    )]
    GenerateName {
        /// Position of the field.
        place: SourcePosition,
    },
    /// An owner given by its uid.
    #[error(
        "{place}: ownerReferences identify an owner by its uid in one cluster, and the object is deleted when the owner is missing; remove them"
    )]
    OwnerReferences {
        /// Position of the field.
        place: SourcePosition,
    },
    /// A Secret whose data the API server would refuse. The value is not repeated.
    #[error("{place}: {field} of the Secret {rule} (the value is not shown)")]
    SecretData {
        /// Position of the value.
        place: SourcePosition,
        /// The field's path.
        field: String,
        /// The rule that the value breaks, as a clause.
        rule: &'static str,
    },
    /// A variable that cannot be substituted.
    #[error("{place}: {field} of {object}: {fault}")]
    Substitution {
        /// Position of the field.
        place: SourcePosition,
        /// The field's path.
        field: String,
        /// The object's name as written.
        object: String,
        /// The error.
        fault: Box<substitute::VariableError>,
    },
    /// An object that is defined twice.
    #[error("{second}: {id} is written a second time; the first is at {first}; remove one")]
    Duplicate {
        /// The object.
        id: ObjectId,
        /// Position of the first definition.
        first: Origin,
        /// Position of the second definition.
        second: Origin,
    },
}

impl Problem {
    /// Returns the problem without its text, which may contain a secret value.
    pub(super) fn redacted(mut self) -> Self {
        match self {
            Self::BadText { ref mut text, .. } => {
                *text = NOT_SHOWN.to_owned();
                self
            }
            Self::Substitution { place, field, object, fault } => {
                Self::SecretSubstitution { place, field, object, reason: fault.reason() }
            }
            shown => shown,
        }
    }

    /// Machine-readable reason for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "YamlInvalid",
            Self::Tree(tree::TreeError::Encrypted { .. }) => "DecryptionFailed",
            Self::Tree(_) => "FileUnreadable",
            Self::NoSuchPath { .. } => "PathMissing",
            Self::NothingFound { .. } | Self::NothingBuilt { .. } | Self::NothingTemplated { .. } => {
                "NoManifests"
            }
            Self::ChartUnrendered { .. } => "ChartInvalid",
            Self::Chart(fault) => fault.reason(),
            Self::Kustomization { .. } | Self::OptionsOnChart { .. } | Self::OptionsOnFile { .. } => {
                "KustomizeUnsupported"
            }
            Self::Kustomize(fault) => match fault.class {
                ErrorClass::Unsupported => "KustomizeUnsupported",
                ErrorClass::Remote => "RemoteBaseRefused",
                ErrorClass::Decryption => "DecryptionFailed",
                _ => "KustomizeInvalid",
            },
            Self::NotAMapping { .. }
            | Self::IncompleteType { .. }
            | Self::NestedList { .. }
            | Self::WrongType { .. }
            | Self::MissingField { .. }
            | Self::UnknownField { .. }
            | Self::BadText { .. }
            | Self::GenerateName { .. }
            | Self::OwnerReferences { .. }
            | Self::SecretData { .. } => "ManifestInvalid",
            Self::TooLarge { .. } => "RenderTooLarge",
            Self::NoRoom { no_room: tree::MemoryLimitError::Full } => "MemoryExceeded",
            Self::NoRoom { no_room: tree::MemoryLimitError::Stopped } => "RenderFailed",
            Self::Substitution { fault, .. } => fault.reason(),
            Self::SecretSubstitution { reason, .. } => reason,
            Self::Encrypted { .. } => "Encrypted",
            Self::Duplicate { .. } => "DuplicateObject",
        }
    }
}

impl From<tree::MemoryLimitError> for Problem {
    fn from(no_room: tree::MemoryLimitError) -> Self {
        Self::NoRoom { no_room }
    }
}

/// Names the variable in a text that has no value.
fn not_substituted(text: &str) -> String {
    let name = text.split_once("${").map(|(_, rest)| {
        rest.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
            .next()
            .unwrap_or_default()
    });
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!(
            "; the variable {name} is not substituted: give it a value with spec.render.substitute, or with --var {name}=VALUE"
        ),
        None => String::new(),
    }
}

/// Replacement for a text that must not be shown.
const NOT_SHOWN: &str = "(not shown, it contains a secret value)";

fn shown_path(path: &str) -> &str {
    match path {
        "" => "the root of the repository",
        path => path,
    }
}

fn passed_over(skipped: &[String]) -> String {
    match skipped {
        [] => String::new(),
        files => format!("; skipped, because they have neither: {}", files.join(", ")),
    }
}

fn meant(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

fn quote_hint(expected: &str, found: &str) -> &'static str {
    match (expected, found) {
        ("a string", "a number" | "a boolean") => "; put it in quotes",
        _ => "",
    }
}
