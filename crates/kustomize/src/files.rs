//! Reads the files of a build, and enforces the limits on paths.
//!
//! In: the tree of a revision. Out: bytes and folders, by the paths in kustomizations. A file must
//! be in or below the folder of its kustomization; a folder may be anywhere in the repository, but
//! neither one of the folders that include it nor a folder above those. Every requested path is
//! recorded: the result of a build depends on these paths.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::bounds::Bounds;
use super::chart_inputs::ChartInputs;
use super::charts::PublishedChart;
use super::decrypted_reads::DecryptedReads;
use super::error::{BuildError, ErrorClass, FieldLocation};
use super::host::{ChartInflation, ChartRequest, ChartRun, Host};
use super::kustomization::FILE_NAMES;
use super::node::LocatedText;
use super::overlay::BuildRoot;
use super::provenance::SourcePath;
use super::remote::{self, Remote};
use moorline_core::tree::{FileTree, link_targets};

/// Deepest nesting of kustomizations.
const MAX_NESTING: usize = 64;
/// Number of bytes searched in the time of one object visit.
const BYTES_OF_A_LOOK: usize = 64;

/// A tree, and a record of the paths read from it.
#[derive(Debug)]
pub(super) struct Files<'a> {
    tree: &'a FileTree,
    host: &'a dyn Host,
    requested_paths: RefCell<BTreeSet<String>>,
    pub(super) charts: ChartInputs,
    pub(super) decrypted: DecryptedReads,
    pub(super) bounds: Bounds,
}

/// Folder of a kustomization, with the folders that include it.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    /// Its path, with links resolved.
    pub(super) path: String,
    /// The including folders, outermost first.
    ancestors: Vec<String>,
    /// URLs of the including folders as written.
    urls: Vec<String>,
    /// Its path as the kustomizations write it.
    pub(super) source: SourcePath,
    /// Namespace of charts that have none.
    pub(super) namespace: String,
    /// Its kustomization is generated, so that its files may be links to anywhere in the
    /// repository.
    is_generated: bool,
}

impl Folder {
    /// Returns the folder with another namespace for its charts, unless the namespace is empty.
    pub(super) fn with_namespace(&self, namespace: &str) -> Self {
        let mut folder = self.clone();
        if !namespace.is_empty() {
            folder.namespace = namespace.to_owned();
        }
        folder
    }
}

/// Target of an entry of `resources`.
#[derive(Debug)]
pub(super) enum ResourceTarget {
    File(String, Arc<[u8]>),
    /// Anything that is not a file.
    Folder,
}

impl<'a> Files<'a> {
    pub(super) fn new(tree: &'a FileTree, host: &'a dyn Host) -> Self {
        Self {
            tree,
            host,
            requested_paths: RefCell::default(),
            charts: ChartInputs::default(),
            decrypted: DecryptedReads::default(),
            bounds: Bounds::default(),
        }
    }

    /// Returns every path that was requested.
    pub(super) fn into_requested_paths(self) -> BTreeSet<String> {
        self.requested_paths.into_inner()
    }

    /// Reserves memory.
    pub(super) fn reserve(&self, bytes: u64, at: &FieldLocation) -> Result<(), BuildError> {
        self.tree
            .memory_limit()
            .reserve(bytes)
            .map_err(|no_room| at.error(ErrorClass::Bound, no_room.to_string()))
    }

    /// False once the build was cancelled.
    pub(super) fn is_awaited(&self) -> bool {
        self.tree.memory_limit().is_running()
    }

    /// Releases reserved memory.
    pub(super) fn release(&self, bytes: u64) {
        self.tree.memory_limit().give_back(bytes);
    }

    pub(super) fn display_path(&self, path: &str) -> String {
        self.tree.display_path(path)
    }

    /// Returns the outermost folder of a build.
    pub(super) fn root(&self, root: BuildRoot<'_>) -> Result<Folder, BuildError> {
        let at = FieldLocation::file(root.path);
        let resolved =
            self.tree.resolve(root.path).map_err(|error| BuildError::from_tree_error(&at, &error))?;
        Ok(Folder {
            path: resolved,
            ancestors: Vec::new(),
            urls: Vec::new(),
            namespace: String::new(),
            source: SourcePath::default(),
            is_generated: root.generated.is_some(),
        })
    }

    /// Returns the kustomization file of a folder: path and bytes.
    pub(super) fn kustomization(
        &self,
        folder: &Folder,
        at: &FieldLocation,
    ) -> Result<(String, Arc<[u8]>), BuildError> {
        let mut found = Vec::new();
        for name in FILE_NAMES {
            let path = join(&folder.path, name);
            self.record_path(&path);
            let is_inside =
                self.tree.resolve(&path).is_ok_and(|resolved| lies_below(&resolved, &folder.path));
            // A link to a file outside of the folder is ignored.
            if is_inside && self.is_file(&path) {
                self.tree.links(&path).iter().for_each(|link| self.record_path(link));
                let bytes = self
                    .tree
                    .read(&path)
                    .map_err(|error| BuildError::from_tree_error(&FieldLocation::file(&path), &error))?;
                self.note_decrypted(&path);
                found.push((path, bytes));
            }
        }
        let shown = self.display_path(&folder.path);
        match (found.pop(), found.pop()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => {
                let text =
                    format!("{shown} has more than one kustomization; keep one of {}", FILE_NAMES.join(", "));
                Err(at.error(ErrorClass::Kustomization, text))
            }
            (None, _) => {
                // The root has no name, and nothing in it that the message could point at.
                let (shown, at) = match &*shown {
                    "" => ("the root folder", &FieldLocation::file(FILE_NAMES[0])),
                    shown => (shown, at),
                };
                let text = format!("{shown} has no kustomization (one of {})", FILE_NAMES.join(", "));
                Err(at.error(ErrorClass::Kustomization, text))
            }
        }
    }

    /// Returns path and bytes of a file that a kustomization names.
    pub(super) fn file(
        &self,
        folder: &Folder,
        path: &str,
        at: &FieldLocation,
    ) -> Result<(String, Arc<[u8]>), BuildError> {
        if path.contains("://") {
            let shown = remote::without_password(path);
            let text =
                format!("{shown} is not in the repository, and single files are not fetched; commit it");
            return Err(at.error(ErrorClass::Unsupported, text));
        }
        let inside = self.inside(folder, path, at)?;
        let resolved = self.resolve(&inside, at)?;
        self.record_path(&resolved);
        if !folder.is_generated && !lies_below(&resolved, &folder.path) {
            let text = format!("{path} does not lie below the folder of its kustomization; move it there");
            return Err(at.error(ErrorClass::Restricted, text));
        }
        let bytes = self.tree.read(&resolved).map_err(|error| BuildError::from_tree_error(at, &error))?;
        self.note_decrypted(&resolved);
        Ok((resolved, bytes))
    }

    fn note_decrypted(&self, path: &str) {
        if self.tree.is_decrypted(path) {
            self.decrypted.add();
        }
    }

    /// Returns the target of an entry of `resources`.
    pub(super) fn resource(
        &self,
        folder: &Folder,
        entry: &LocatedText,
    ) -> Result<ResourceTarget, BuildError> {
        let (path, at) = (entry.text.as_str(), &entry.at);
        if path.is_empty() {
            return Err(at.error(ErrorClass::Missing, "the path is empty"));
        }
        // Kustomize first requests such a URL as a file; here it is always a folder.
        if path.contains("://") {
            return Ok(ResourceTarget::Folder);
        }
        let inside = self.inside(folder, path, at)?;
        match self.is_file(&inside) {
            true => self.file(folder, path, at).map(|(path, bytes)| ResourceTarget::File(path, bytes)),
            false => Ok(ResourceTarget::Folder),
        }
    }

    /// Returns the folder of an entry of `resources` or `components`.
    pub(super) fn folder(&self, from: &Folder, entry: &LocatedText) -> Result<Folder, BuildError> {
        let (path, at) = (entry.text.as_str(), &entry.at);
        let remote = self.remote(entry)?;
        let inside = match &remote {
            Some((place, remote)) => self.inside_of(place, &remote.path, at)?,
            None => self.inside(from, path, at)?,
        };
        let resolved = self.resolve(&inside, at)?;
        if self.is_file(&resolved) || !(resolved.is_empty() || self.tree.contains(&resolved)) {
            return Err(at.error(
                ErrorClass::Missing,
                format!("there is no file or folder {}", self.display_path(&inside)),
            ));
        }
        let leads_back = |visited: &String| {
            resolved.is_empty() || *visited == resolved || visited.starts_with(&format!("{resolved}/"))
        };
        let named_before = remote.is_some() && from.urls.iter().any(|url| url.starts_with(path));
        if named_before || from.ancestors.iter().chain([&from.path]).any(leads_back) {
            let text =
                format!("{path} leads back to {}, a folder on the way to it", self.display_path(&resolved));
            return Err(at.error(ErrorClass::Cycle, text));
        }
        if from.ancestors.len() >= MAX_NESTING {
            let text = format!("kustomizations are nested deeper than {MAX_NESTING}");
            return Err(at.error(ErrorClass::Bound, text));
        }
        let before = from.ancestors.iter().cloned().chain([from.path.clone()]).collect();
        let urls = from.urls.iter().cloned().chain(remote.map(|_| path.to_owned())).collect();
        Ok(Folder {
            path: resolved,
            ancestors: before,
            urls,
            namespace: from.namespace.clone(),
            source: from.source.append(path),
            is_generated: false,
        })
    }

    /// Returns the folder of a chart, if it exists. The build depends on all files in it and on
    /// link targets.
    pub(super) fn chart(
        &self,
        folder: &Folder,
        path: &str,
        at: &FieldLocation,
    ) -> Result<Option<String>, BuildError> {
        let inside = self.inside(folder, path, at)?;
        self.record_path(&inside);
        let resolved = self.resolve(&inside, at)?;
        self.record_path(&resolved);
        if self.is_file(&resolved) || !self.tree.contains(&resolved) {
            return Ok(None);
        }
        link_targets(self.tree, resolved.clone()).iter().for_each(|target| self.record_path(target));
        Ok(Some(resolved))
    }

    /// Returns the files of a published chart; a missing one is recorded.
    pub(super) fn fetched_chart(
        &self,
        chart: PublishedChart,
        at: &FieldLocation,
    ) -> Result<Option<FileTree>, BuildError> {
        self.charts.find_published(self.tree, chart, at)
    }

    /// Returns the run of helm for a chart, in the repository if the chart has no tree of its own.
    pub(super) fn helm_run(
        &self,
        fetched: Option<&FileTree>,
        chart: &str,
        inflation: ChartInflation,
        at: &FieldLocation,
    ) -> Result<ChartRun, BuildError> {
        let request = ChartRequest { tree: fetched.unwrap_or(self.tree), folder: chart, inflation };
        let run = self.host.render_chart(request);
        let run = run.map_err(|finding| at.error(ErrorClass::Generator, finding))?;
        if run.contains_secret {
            self.decrypted.add();
        }
        self.reserve(self.charts.record_run(&run, at)?, at)?;
        Ok(run)
    }

    /// Returns the mounted repository of an entry with a URL, and the folder in it; none for a
    /// plain path.
    fn remote(&self, entry: &LocatedText) -> Result<Option<(String, Remote)>, BuildError> {
        let refuse = |class, why: &str| {
            let shown = remote::without_password(&entry.text);
            Err(entry.at.error(class, format!("{shown} {why}")))
        };
        let remote = match Remote::parse(&entry.text) {
            None => return Ok(None),
            Some(Err(refused)) => return refuse(ErrorClass::Remote, refused.0),
            Some(Ok(remote)) => remote,
        };
        match self.tree.mount_of(&remote.name()) {
            Some(Ok(place)) => Ok(Some((place.to_string(), remote))),
            Some(Err(why)) => refuse(ErrorClass::Remote, why),
            None => {
                let remedy = self.host.missing_repository();
                refuse(ErrorClass::Remote, &format!("is not in the repository, and is not fetched: {remedy}"))
            }
        }
    }

    fn inside(&self, folder: &Folder, path: &str, at: &FieldLocation) -> Result<String, BuildError> {
        match path.starts_with('/') {
            true => Err(leads_out(path, at)),
            false => self.inside_of(&folder.path, path, at),
        }
    }

    fn inside_of(&self, folder: &str, path: &str, at: &FieldLocation) -> Result<String, BuildError> {
        let inside = self.tree.resolve_relative(folder, path);
        inside.ok_or_else(|| leads_out(path, at))
    }

    /// True if a text of a file is quoted; none if only some occurrences are, or if it does not
    /// occur.
    pub(super) fn is_quoted(&self, shown: &str, text: &str) -> Option<bool> {
        let bytes = self.tree.read(self.tree.parse_display_path(shown)).ok()?;
        // Each text is searched in the whole file, so the work is counted.
        self.count_visits(bytes.len() / BYTES_OF_A_LOOK, 1, &FieldLocation::file(shown)).ok()?;
        let file = std::str::from_utf8(&bytes).ok()?;
        let all = file.matches(text).count();
        let quoted = ['"', '\''].map(|quote| file.matches(&format!("{quote}{text}{quote}")).count());
        match quoted.iter().sum::<usize>() {
            _ if all == 0 => None,
            0 => Some(false),
            quoted if quoted == all => Some(true),
            _ => None,
        }
    }

    /// Resolves the links of a path, and records them.
    fn resolve(&self, inside: &str, at: &FieldLocation) -> Result<String, BuildError> {
        self.tree.links(inside).iter().for_each(|link| self.record_path(link));
        self.tree.resolve(inside).map_err(|error| BuildError::from_tree_error(at, &error))
    }

    fn is_file(&self, path: &str) -> bool {
        self.tree.is_file(path)
    }

    pub(super) fn record_path(&self, path: &str) {
        self.requested_paths.borrow_mut().insert(path.to_owned());
    }
}

fn leads_out(path: &str, at: &FieldLocation) -> BuildError {
    at.error(ErrorClass::Restricted, format!("{path} is outside of the repository"))
}

fn lies_below(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn join(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}
