//! Renders the files of a revision to the Kubernetes objects that they describe.
//!
//! In: a [`FileTree`] and [`RenderOptions`]. Out: [`Rendered`], which is either `Complete` or
//! `Incomplete`. Only this crate can make a [`Complete`], and only a [`Complete`] can become a
//! desired set, so an incomplete render can be shown but can never prune.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Input must never cause a panic; tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod documents;
mod folder_contents;
mod glob;
pub mod helm;
mod kubectl_dump;
mod kustomization_root;
mod manifest_header;
mod packed_object;
mod plain_directory;
mod problem;
mod rendered;
mod secret_data;
mod substitute;
mod top_level_fields;

use std::sync::Arc;

pub use crate::folder_contents::FolderContents;
pub use crate::kubectl_dump::{Dump, dump};
pub use crate::manifest_header::HOOK_NAME_DIGITS;
pub use crate::packed_object::PackedObject;
pub use crate::plain_directory::{PlainOptions, is_kustomization, is_read};
pub use documents::FieldPath;
pub use glob::Glob;
pub use helm::HelmOptions;
pub use problem::Problem;
pub use rendered::{Complete, Incomplete, Rendered, Skipped};
use serde_json::{Map, Value};
pub use substitute::{VariableError as VariableFault, Variables, Visibility, variable_rule};

use helm::KustomizationCharts;
use kustomization_root::KustomizationRoot;
use moorline_core::object::ObjectId;
use moorline_core::tree::{FileTree, MemoryLimit};
use moorline_kustomize::{self as kustomize, BuildStep, KustomizeError, KustomizeOptions, MissingInputs};
use rendered::Findings;

/// Input options of a render.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// Folder (or single file) in the tree; empty for the whole tree.
    pub path: String,
    /// Type of the folder, or detection of the type.
    pub kind: SourceType,
    /// Choice of the files of a plain directory.
    pub plain: PlainOptions,
    /// Values of the variables in manifests; none turns substitution off.
    pub variables: Option<Arc<Variables>>,
    /// Options for a Helm chart.
    pub helm: HelmOptions,
    /// Options over a kustomization. With them, a folder without a kustomization is built as one of
    /// its manifests.
    pub kustomize: Option<Arc<KustomizeOptions>>,
}

impl RenderOptions {
    /// Returns the type of the folder, detected if it is not chosen.
    pub fn source_type(&self, tree: &FileTree) -> SourceType {
        match (&self.kustomize, self.kind) {
            (Some(_), SourceType::Auto | SourceType::Plain) => SourceType::Kustomize,
            (_, kind) => kind.detect(tree, &self.path),
        }
    }
}

/// Type of a folder, which decides how it is rendered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SourceType {
    /// Detected: a chart, else a kustomization, else plain manifests.
    #[default]
    Auto,
    /// Plain manifests.
    Plain,
    /// Kustomization.
    Kustomize,
    /// Helm chart.
    Helm,
}

impl SourceType {
    /// Returns the type of this folder, detected if it is [`Self::Auto`].
    pub fn detect(self, tree: &FileTree, path: &str) -> Self {
        let holds_one = || {
            let root = tree.resolve(path).unwrap_or_default();
            let inside =
                |name: &str| if root.is_empty() { name.to_owned() } else { format!("{root}/{name}") };
            kustomize::FILE_NAMES.iter().any(|name| tree.is_file(&inside(name)))
        };
        match self {
            // Argo CD also takes a folder that is both for a chart.
            Self::Auto if helm::is_chart(tree, path) => Self::Helm,
            Self::Auto if holds_one() => Self::Kustomize,
            Self::Auto => Self::Plain,
            chosen => chosen,
        }
    }
}

/// Renders a folder of the tree. A chart is rendered by helm instead, whose output
/// [`render_helm_output`] reads.
pub fn render(tree: &FileTree, options: &RenderOptions) -> Rendered {
    let kind = options.source_type(tree);
    let mut found = match kind {
        SourceType::Kustomize => render_kustomization(tree, options),
        SourceType::Helm => {
            let path = tree.display_path(&options.path);
            Findings { problems: vec![Problem::ChartUnrendered { path }], ..Findings::default() }
        }
        SourceType::Auto | SourceType::Plain => {
            let variables = options.variables.as_deref();
            let taken = |manifest: documents::Manifest, bytes: &[u8]| {
                let contains_secret = tree.is_decrypted(tree.parse_display_path(&manifest.origin.file));
                object_of_manifest((manifest, contains_secret), bytes, variables, tree.memory_limit())
            };
            crate::plain_directory::collect(tree, options, &taken)
        }
    };
    if found.problems.is_empty() && found.objects.is_empty() {
        let path = tree.display_path(&options.path);
        found.problems.push(match kind {
            SourceType::Kustomize if !found.is_generated => Problem::NothingBuilt { path },
            SourceType::Auto | SourceType::Plain | SourceType::Kustomize | SourceType::Helm => {
                Problem::NothingFound {
                    path,
                    skipped: found.skipped.iter().map(|skipped| skipped.file.clone()).collect(),
                }
            }
        });
    }
    found.into_rendered(tree.clone(), &tree.display_path(&options.path))
}

/// Reads the objects of a chart from the output of helm.
pub fn render_helm_output(
    run: &helm::Invocation,
    output: Arc<[u8]>,
    variables: Option<&Variables>,
) -> Rendered {
    let (mut found, tree) = helm::parse_output(run, output, variables);
    (found.input_paths, found.uses_api_versions, found.by_helm) =
        (run.input_paths.clone(), run.uses_api_versions(), true);
    found.uses_lookup = run.uses_lookup();
    found.into_rendered(tree, run.display_folder())
}

/// Returns the files and repositories that must be added to the tree before it can be rendered.
/// They may name further ones, so the caller asks again until nothing is missing.
pub fn missing_inputs(tree: &FileTree, options: &RenderOptions) -> MissingInputs {
    match options.source_type(tree) {
        SourceType::Kustomize => match KustomizationRoot::of_names(tree, options) {
            Ok(root) => kustomize::missing_inputs(tree, root.build_root(options)),
            // The render reports the error.
            Err(_) => MissingInputs::default(),
        },
        SourceType::Helm => {
            MissingInputs { folders: helm::missing_files(tree, options), ..MissingInputs::default() }
        }
        SourceType::Auto | SourceType::Plain => MissingInputs::default(),
    }
}

/// Returns the objects of a kustomization before they are checked, as `kustomize build` prints
/// them.
pub fn build_kustomization(tree: &FileTree, path: &str) -> Result<Vec<Map<String, Value>>, KustomizeError> {
    let charts = KustomizationCharts::new(tree);
    let built = kustomize::build_with_host(tree, path, &charts).map_err(|unbuilt| unbuilt.error)?;
    Ok(built.objects.into_iter().map(|object| object.body).collect())
}

/// Returns the steps of a kustomization that made or changed each object. Only for kustomizations:
/// the objects of plain files are not changed.
pub fn explain_kustomization(
    tree: &FileTree,
    options: &RenderOptions,
) -> Result<Vec<(ObjectId, Vec<BuildStep>)>, Problem> {
    let root = KustomizationRoot::of(tree, options)?;
    let built = kustomize::explain(tree, root.build_root(options), &KustomizationCharts::new(tree))?;
    let mut explained = Vec::new();
    for (kustomize::BuiltObject { body, origin, contains_secret, .. }, steps) in built {
        let bytes = tree.read(tree.parse_display_path(&origin.file)).unwrap_or_else(|_| [].into());
        let manifest = (documents::Manifest { body, origin }, contains_secret);
        let made = object_of_manifest(manifest, &bytes, options.variables.as_deref(), tree.memory_limit());
        if let Ok(object) = made {
            explained.push((object.id, steps));
        }
    }
    Ok(explained)
}

/// Builds a kustomization and checks each object like those of plain files.
fn render_kustomization(tree: &FileTree, options: &RenderOptions) -> Findings<PackedObject> {
    let mut found = Findings::default();
    let charts = KustomizationCharts::new(tree);
    let root = match KustomizationRoot::of(tree, options) {
        Ok(root) => root,
        Err(problem) => {
            found.problems.push(problem);
            return found;
        }
    };
    let built = match kustomize::build_with_host(tree, root.build_root(options), &charts) {
        Ok(built) => built,
        Err(kustomize::BuildFailure { error, missing_charts }) => {
            (found.wanted_runs, found.missing_charts) = (charts.wanted_runs(&error), missing_charts);
            found.problems.push(Problem::Kustomize(error));
            return found;
        }
    };
    let mut read = built.input_paths;
    found.by_helm = built.by_helm;
    if options.kind == SourceType::Auto && options.kustomize.is_none() {
        // If this file appears, the folder becomes a chart, so the render depends on it.
        read.extend(helm::chart_file_path(tree, &options.path));
    }
    found.input_paths = Some(read);
    found.is_generated = root.is_generated();
    let namespace = options.kustomize.as_ref().map(|options| options.namespace.as_str());
    found.set_namespace = namespace.filter(|namespace| !namespace.is_empty()).map(Box::from);
    found.skipped = root.skipped;
    for kustomize::BuiltObject { body, origin, contains_secret, .. } in built.objects {
        if found.problems.len() >= documents::MAX_PROBLEMS_PER_FILE {
            // Each problem costs another reading of its file.
            break;
        }
        // Messages need the text of the file; a generated object has the position of its
        // kustomization.
        let bytes = tree.read(tree.parse_display_path(&origin.file)).unwrap_or_else(|_| [].into());
        let manifest = (documents::Manifest { body, origin }, contains_secret);
        match object_of_manifest(manifest, &bytes, options.variables.as_deref(), tree.memory_limit()) {
            Ok(object) => found.objects.push(object),
            Err(problems) => found.problems.extend(problems),
        }
    }
    found
}

/// Number of copies of an object's text in memory: the rendered one and its canonical form.
const TEXTS: u64 = 2;

/// Makes the object of a manifest: substitutes its variables, then checks its header. The flag says
/// that the manifest has values of a decrypted file.
fn object_of_manifest(
    (manifest, contains_secret): (documents::Manifest, bool),
    bytes: &[u8],
    variables: Option<&Variables>,
    memory_limit: &MemoryLimit,
) -> Result<PackedObject, Vec<Problem>> {
    let made = substitute_and_check(manifest, (bytes, memory_limit), variables);
    let object = match contains_secret {
        true => made
            .map(PackedObject::with_secret)
            .map_err(|problems| problems.into_iter().map(Problem::redacted).collect::<Vec<_>>())?,
        false => made?,
    };
    let cost = TEXTS * object.size() as u64;
    memory_limit.reserve(cost).map_err(|error| vec![error.into()])?;
    Ok(object)
}

fn substitute_and_check(
    manifest: documents::Manifest,
    source: (&[u8], &MemoryLimit),
    variables: Option<&Variables>,
) -> Result<PackedObject, Vec<Problem>> {
    let Some(variables) = variables else {
        return crate::manifest_header::check_manifest(manifest, source).map(PackedObject::from_object);
    };
    let substitute::Substituted { manifest, contains_secret: secret } =
        substitute::substitute(manifest, source, variables)?;
    match crate::manifest_header::check_manifest(manifest, source) {
        Ok(object) => {
            let mut object = PackedObject::from_object(object);
            object.contains_secret = secret;
            Ok(object)
        }
        Err(problems) if secret => Err(problems.into_iter().map(Problem::redacted).collect()),
        Err(problems) => Err(problems),
    }
}
