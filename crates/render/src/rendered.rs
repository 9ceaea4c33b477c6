//! Results of a render, complete or not.
//!
//! In: the objects and problems that a render has found. Out: [`Rendered`]. Only
//! [`Findings::into_rendered`] makes a [`Complete`].

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use moorline_core::object::{ObjectId, Origin};
use moorline_core::position::SourcePosition;
use moorline_core::tree::FileTree;
use moorline_kustomize::PublishedChart;

use crate::documents::{self, FieldPath};
use crate::helm;
use crate::packed_object::PackedObject;
use crate::problem::Problem;

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
    uses_lookup: bool,
    set_namespace: Option<Box<str>>,
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
    /// Dependencies that a chart needs. The caller adds them to the options and renders again.
    pub missing_dependencies: Vec<helm::LockedDependency>,
}

/// A file that ends in `.yaml`, `.yml` or `.json` and holds no manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Path of the file.
    pub file: String,
    /// Reason why it was skipped, as a clause.
    pub reason: &'static str,
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

    /// True if a template of a chart looks for an object in the cluster, and finds none.
    pub fn uses_lookup(&self) -> bool {
        self.uses_lookup
    }

    /// Namespace that the options of the caller set. Kustomize also sets it on objects of unknown
    /// kinds without a namespace.
    pub fn set_namespace(&self) -> Option<&str> {
        self.set_namespace.as_deref()
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

/// Objects and problems collected during a render.
#[derive(Debug)]
pub(crate) struct Findings<T> {
    pub(crate) objects: Vec<T>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) problems: Vec<Problem>,
    /// Paths on which the result depends, if that is not the whole folder.
    pub(crate) input_paths: Option<BTreeSet<String>>,
    /// A template may read the API versions that the server serves.
    pub(crate) uses_api_versions: bool,
    /// Helm rendered a part of it.
    pub(crate) by_helm: bool,
    /// A template of a chart looks for an object in the cluster.
    pub(crate) uses_lookup: bool,
    /// The kustomization is generated.
    pub(crate) is_generated: bool,
    /// Namespace that the options of the caller set.
    pub(crate) set_namespace: Option<Box<str>>,
    /// Runs of helm whose output is missing.
    pub(crate) wanted_runs: Vec<Arc<helm::Invocation>>,
    /// Published charts that are missing.
    pub(crate) missing_charts: Vec<PublishedChart>,
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
            uses_lookup: false,
            is_generated: false,
            set_namespace: None,
            wanted_runs: Vec::new(),
            missing_charts: Vec::new(),
        }
    }
}

impl Findings<PackedObject> {
    /// Returns the result, with the tree from which positions of fields are looked up.
    pub(crate) fn into_rendered(mut self, tree: FileTree, path: &str) -> Rendered {
        refuse_duplicates(&mut self, |object| (&object.id, &object.origin));
        let Self {
            objects,
            skipped,
            mut problems,
            input_paths,
            uses_api_versions,
            by_helm,
            uses_lookup,
            is_generated: _,
            set_namespace,
            wanted_runs,
            missing_charts,
        } = self;
        problems.extend(too_much(path, &objects, MAX_RENDER_BYTES));
        match problems.is_empty() {
            true => Rendered::Complete(Complete {
                objects,
                skipped,
                input_paths,
                uses_api_versions,
                by_helm,
                uses_lookup,
                set_namespace,
                tree,
            }),
            false => Rendered::Incomplete(Incomplete {
                objects,
                skipped,
                problems,
                wanted_runs,
                missing_charts,
                missing_dependencies: Vec::new(),
            }),
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

/// Refuses the second definition of an object; the message names both positions.
pub(crate) fn refuse_duplicates<T>(found: &mut Findings<T>, name: fn(&T) -> (&ObjectId, &Origin)) {
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
    use crate::{RenderOptions, render};

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
