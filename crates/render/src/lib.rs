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
mod manifest_header;
mod packed_object;
mod plain_directory;
mod problem;
mod secret_data;
mod substitute;
mod top_level_fields;

use std::collections::{BTreeSet, HashMap};
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
use serde_json::{Map, Value};
pub use substitute::{VariableError as VariableFault, Variables, Visibility, variable_rule};

use helm::KustomizationCharts;
use moorline_core::object::{ObjectId, Origin};
use moorline_core::position::SourcePosition;
use moorline_core::tree::{FileTree, MemoryLimit};
use moorline_kustomize::{self as kustomize, BuildStep, KustomizeError, MissingInputs, PublishedChart};

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

/// Largest size of the objects of one render: that much is held for each Sync as long as it exists.
const MAX_RENDER_BYTES: usize = 256 * 1024 * 1024;

fn too_much(path: &str, objects: &[PackedObject], most: usize) -> Option<Problem> {
    let size: usize = objects.iter().map(PackedObject::size).sum();
    let mib = |bytes: usize| bytes.div_ceil(1024 * 1024);
    (size > most).then(|| Problem::TooLarge { path: path.to_owned(), mib: mib(size), most: mib(most) })
}

/// Result of a render.
#[derive(Debug)]
pub enum Rendered {
    /// Every file was read and every object is valid.
    Complete(Complete),
    /// Something is wrong; what could be read is there to be shown.
    Incomplete(Incomplete),
}

/// All objects of a revision, each of them once and valid.
#[derive(Debug, Clone)]
pub struct Complete {
    objects: Vec<PackedObject>,
    skipped: Vec<Skipped>,
    input_paths: Option<BTreeSet<String>>,
    uses_api_versions: bool,
    by_helm: bool,
    tree: FileTree,
}

/// Result of a render with problems.
#[derive(Debug)]
pub struct Incomplete {
    /// Objects that are valid.
    pub objects: Vec<PackedObject>,
    /// Files that hold no manifests.
    pub skipped: Vec<Skipped>,
    /// All problems, in the order of the files; never empty.
    pub problems: Vec<Problem>,
    /// Runs of helm whose output a kustomization needs. The caller adds the output to the tree
    /// ([`helm::with_helm_output`]) and renders again.
    pub wanted_runs: Vec<Arc<helm::Invocation>>,
    /// Published charts that a kustomization needs. The caller adds them to the tree and renders
    /// again.
    pub missing_charts: Vec<PublishedChart>,
}

/// A file that ends in `.yaml`, `.yml` or `.json` and holds no manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Path of the file.
    pub file: String,
    /// Reason why it was skipped, as a clause.
    pub reason: &'static str,
}

/// Renders a folder of the tree. A chart is rendered by helm instead, whose output
/// [`render_helm_output`] reads.
pub fn render(tree: &FileTree, options: &RenderOptions) -> Rendered {
    let kind = options.kind.detect(tree, &options.path);
    let mut found = match kind {
        SourceType::Kustomize => render_kustomization(tree, options),
        SourceType::Helm => {
            let path = tree.display_path(&options.path);
            Findings { problems: vec![Problem::ChartUnrendered { path }], ..Findings::default() }
        }
        SourceType::Auto | SourceType::Plain => {
            let variables = options.variables.as_deref();
            let taken =
                |manifest, bytes: &[u8]| object_of_manifest(manifest, bytes, variables, tree.memory_limit());
            crate::plain_directory::collect(tree, options, &taken)
        }
    };
    if found.problems.is_empty() && found.objects.is_empty() {
        let path = tree.display_path(&options.path);
        found.problems.push(match kind {
            SourceType::Kustomize => Problem::NothingBuilt { path },
            SourceType::Auto | SourceType::Plain | SourceType::Helm => Problem::NothingFound {
                path,
                skipped: found.skipped.iter().map(|skipped| skipped.file.clone()).collect(),
            },
        });
    }
    into_rendered(found, tree.clone(), &tree.display_path(&options.path))
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
    into_rendered(found, tree, run.display_folder())
}

/// Returns the result, with the tree from which positions of fields are looked up.
fn into_rendered(mut found: Findings<PackedObject>, tree: FileTree, path: &str) -> Rendered {
    refuse_duplicates(&mut found, |object| (&object.id, &object.origin));
    let Findings {
        objects,
        skipped,
        mut problems,
        input_paths: read,
        uses_api_versions: looks,
        by_helm,
        wanted_runs: wanted,
        missing_charts: unfetched,
    } = found;
    problems.extend(too_much(path, &objects, MAX_RENDER_BYTES));
    match problems.is_empty() {
        true => Rendered::Complete(Complete {
            objects,
            skipped,
            input_paths: read,
            uses_api_versions: looks,
            by_helm,
            tree,
        }),
        false => Rendered::Incomplete(Incomplete {
            objects,
            skipped,
            problems,
            wanted_runs: wanted,
            missing_charts: unfetched,
        }),
    }
}

/// Returns the files and repositories that must be added to the tree before it can be rendered.
/// They may name further ones, so the caller asks again until nothing is missing.
pub fn missing_inputs(tree: &FileTree, options: &RenderOptions) -> MissingInputs {
    match options.kind.detect(tree, &options.path) {
        SourceType::Kustomize => kustomize::missing_inputs(tree, &options.path),
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
) -> Result<Vec<(ObjectId, Vec<BuildStep>)>, KustomizeError> {
    let built = kustomize::explain(tree, &options.path, &KustomizationCharts::new(tree))?;
    let mut told = Vec::new();
    for (kustomize::BuiltObject { body, origin, .. }, steps) in built {
        let bytes = tree.read(tree.parse_display_path(&origin.file)).unwrap_or_else(|_| [].into());
        let manifest = documents::Manifest { body, origin };
        let made = object_of_manifest(manifest, &bytes, options.variables.as_deref(), tree.memory_limit());
        if let Ok(object) = made {
            told.push((object.id, steps));
        }
    }
    Ok(told)
}

/// Builds a kustomization and checks each object like those of plain files.
fn render_kustomization(tree: &FileTree, options: &RenderOptions) -> Findings<PackedObject> {
    let mut found = Findings::default();
    let charts = KustomizationCharts::new(tree);
    let built = match kustomize::build_with_host(tree, &options.path, &charts) {
        Ok(built) => built,
        Err(kustomize::BuildFailure { error, missing_charts }) => {
            (found.wanted_runs, found.missing_charts) = (charts.wanted_runs(&error), missing_charts);
            found.problems.push(Problem::Kustomize(error));
            return found;
        }
    };
    let mut read = built.input_paths;
    found.by_helm = built.by_helm;
    if options.kind == SourceType::Auto {
        // If this file appears, the folder becomes a chart, so the render depends on it.
        read.extend(helm::chart_file_path(tree, &options.path));
    }
    found.input_paths = Some(read);
    for kustomize::BuiltObject { body, origin, .. } in built.objects {
        if found.problems.len() >= documents::MAX_PROBLEMS_PER_FILE {
            // Each problem costs another reading of its file.
            break;
        }
        // Messages need the text of the file; a generated object has the position of its
        // kustomization.
        let bytes = tree.read(tree.parse_display_path(&origin.file)).unwrap_or_else(|_| [].into());
        let manifest = documents::Manifest { body, origin };
        match object_of_manifest(manifest, &bytes, options.variables.as_deref(), tree.memory_limit()) {
            Ok(object) => found.objects.push(object),
            Err(problems) => found.problems.extend(problems),
        }
    }
    found
}

/// Number of copies of an object's text in memory: the rendered one and its canonical form.
const TEXTS: u64 = 2;

/// Makes the object of a manifest: substitutes its variables, then checks its header.
fn object_of_manifest(
    manifest: documents::Manifest,
    bytes: &[u8],
    variables: Option<&Variables>,
    room: &MemoryLimit,
) -> Result<PackedObject, Vec<Problem>> {
    let object = substitute_and_check(manifest, (bytes, room), variables)?;
    let cost = TEXTS * object.size() as u64;
    room.reserve(cost).map_err(|no_room| vec![no_room.into()])?;
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

impl Rendered {
    /// Returns the folder of a kustomization without objects, if nothing else is wrong. A desired
    /// set is never made of it.
    pub fn empty_kustomization(&self) -> Option<&str> {
        match self {
            Self::Incomplete(Incomplete { problems, .. }) => match problems.as_slice() {
                [Problem::NothingBuilt { path }] => Some(if path.is_empty() { "." } else { path }),
                _ => None,
            },
            Self::Complete(_) => None,
        }
    }
}

impl Complete {
    /// Objects in the order of files and documents.
    pub fn objects(&self) -> &[PackedObject] {
        &self.objects
    }

    /// Takes the objects out. The remaining render can still look up the positions of their fields.
    pub fn into_parts(mut self) -> (Self, Vec<PackedObject>) {
        let objects = std::mem::take(&mut self.objects);
        (self, objects)
    }

    /// Paths on which the render depends, if that is not its whole folder: as long as these files
    /// stay the same, including those that do not exist, the result stays the same.
    pub fn input_paths(&self) -> Option<&BTreeSet<String>> {
        self.input_paths.as_ref()
    }

    /// True if a template may read the API versions that the server serves.
    pub fn uses_api_versions(&self) -> bool {
        self.uses_api_versions
    }

    /// True if helm rendered a part of it.
    pub fn is_by_helm(&self) -> bool {
        self.by_helm
    }

    /// Files that hold no manifests.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// False once the render was cancelled.
    pub fn is_awaited(&self) -> bool {
        self.tree.memory_limit().is_running()
    }

    /// Returns the position of a field of an object, for a message about it.
    pub fn place(&self, origin: &Origin, path: &FieldPath<'_>) -> SourcePosition {
        documents::position_of(&self.tree, origin, path)
    }
}

impl<T> Default for Findings<T> {
    fn default() -> Self {
        let (objects, skipped, problems) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            objects,
            skipped,
            problems,
            input_paths: None,
            uses_api_versions: false,
            by_helm: false,
            wanted_runs: Vec::new(),
            missing_charts: Vec::new(),
        }
    }
}

/// Objects and problems collected during a render.
#[derive(Debug)]
struct Findings<T> {
    objects: Vec<T>,
    skipped: Vec<Skipped>,
    problems: Vec<Problem>,
    /// Paths on which the result depends, if that is not the whole folder.
    input_paths: Option<BTreeSet<String>>,
    /// A template may read the API versions that the server serves.
    uses_api_versions: bool,
    /// Helm rendered a part of it.
    by_helm: bool,
    /// Runs of helm whose output is missing.
    wanted_runs: Vec<Arc<helm::Invocation>>,
    /// Published charts that are missing.
    missing_charts: Vec<PublishedChart>,
}

/// Refuses the second definition of an object; the message names both positions.
fn refuse_duplicates<T>(found: &mut Findings<T>, name: fn(&T) -> (&ObjectId, &Origin)) {
    let mut first: HashMap<ObjectId, Origin> = HashMap::with_capacity(found.objects.len());
    let problems = &mut found.problems;
    found.objects.retain(|object| {
        let (id, origin) = name(object);
        let Some(earlier) = first.get(id) else {
            first.insert(id.clone(), origin.clone());
            return true;
        };
        problems.push(Problem::Duplicate { id: id.clone(), first: earlier.clone(), second: origin.clone() });
        false
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_of_a_sync_is_bounded() {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {}}}\n",
            "x".repeat(3 << 20)
        );
        let tree = FileTree::from_texts([("a.yaml", text.as_str())]);
        let Rendered::Complete(complete) = render(&tree, &RenderOptions::default()) else {
            unreachable!("the bound is higher")
        };
        let refused = |most: usize| too_much("", complete.objects(), most);
        assert!(refused(4 << 20).is_none());
        let told = refused(2 << 20).map(|problem| (problem.reason(), problem.to_string()));
        let (reason, told) = told.unwrap_or_default();
        assert_eq!(reason, "RenderTooLarge");
        assert!(told.contains("total 4 MiB, more than the limit of 2 MiB"), "{told}");
    }
}
