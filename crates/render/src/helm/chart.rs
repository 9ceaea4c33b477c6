//! Reads the files of a chart, and adds the dependencies that are not among them.
//!
//! In: a tree and a folder, and dependencies that were fetched. Out: [`Chart`], or the dependencies
//! that have to be fetched. Links inside the tree are resolved, so the run of helm meets none. A
//! missing dependency is found here, with a message that says what to do; helm only says that it is
//! missing.

use serde_json::Value;

use super::dependencies::{self, DependencyPlace, FetchedDependency, LockedDependency};
use super::error::HelmChartError;
use super::{CHART, ChartFiles, below};
use crate::documents::DIALECT;
use crate::problem::Problem;
use moorline_core::tree::{FileTree, TreeEntry, TreeError, normalise};
use moorline_yaml as yaml;

/// Most files of a chart, including those that links lead to.
pub(super) const MAX_CHART_FILES: usize = 10_000;

/// Most bytes of these files.
pub(super) const MAX_CHART_BYTES: usize = 64 * 1024 * 1024;

/// Most links to folders that are followed.
const MAX_LINKED_FOLDERS: usize = 64;

/// Folder of the charts that a chart depends on.
const CHARTS: &str = "charts";

/// Files of a chart, read from a tree.
#[derive(Debug, Clone)]
pub(super) struct Chart {
    /// Name of the chart, the prefix of its templates' names in helm's output.
    pub(super) name: String,
    /// Its folder, for messages.
    pub(super) shown: String,
    /// Its files, by path relative to the folder.
    pub(super) files: ChartFiles,
    /// Files of it were decrypted.
    pub(super) contains_secret: bool,
    /// Reason why a file of it is still encrypted.
    pub(super) ciphertext: Option<Box<str>>,
}

/// A chart that is not read.
#[derive(Debug)]
pub struct ChartRefusal {
    /// The problem.
    pub problem: Box<Problem>,
    /// Dependencies whose absence is the problem, and which can be fetched.
    pub missing: Vec<LockedDependency>,
}

impl<P: Into<Problem>> From<P> for ChartRefusal {
    fn from(problem: P) -> Self {
        Self { problem: Box::new(problem.into()), missing: Vec::new() }
    }
}

/// Reads the chart in a folder.
pub(super) fn read(
    tree: &FileTree,
    path: &str,
    fetched: &[FetchedDependency],
) -> Result<Chart, ChartRefusal> {
    let folder = tree.resolve(path)?;
    let shown = tree.display_path(&folder);
    if !tree.contains(&folder) {
        return Err(Problem::NoSuchPath { path: shown }.into());
    }
    let FoundFiles { files, contains_secret, ciphertext } = files(tree, &folder, &shown)?;
    let Some(bytes) = files.get(CHART) else { return Err(HelmChartError::NoChart { folder: shown }.into()) };
    let file = tree.display_path(&below(&folder, CHART));
    let says = yaml::read(&file, bytes, DIALECT)?.into_iter().next().map(|document| document.value);
    let says = says.unwrap_or_default();
    let Some(name) = text(&says, "name") else {
        let problem = "a chart needs a name; write one such as name: shop";
        return Err(HelmChartError::BadChart { file, problem }.into());
    };
    let mut chart = Chart { name: name.to_owned(), shown, files, contains_secret, ciphertext };
    chart.add_dependencies((tree, &folder), (&says, &file), fetched)?;
    Ok(chart)
}

/// Files of a chart, with what its files say of themselves.
#[derive(Default)]
struct FoundFiles {
    files: ChartFiles,
    contains_secret: bool,
    ciphertext: Option<Box<str>>,
}

/// Returns the files below a folder. A link counts as the file it leads to, or as all files of the
/// folder.
fn files(tree: &FileTree, folder: &str, shown: &str) -> Result<FoundFiles, Problem> {
    let FoundFiles { mut files, mut contains_secret, mut ciphertext } = FoundFiles::default();
    let (mut bytes, mut followed, mut pointer) = (0, 0, None);
    // Path inside the chart, and path in the tree.
    let mut waiting = vec![(String::new(), folder.to_owned())];
    let too_large = || Problem::from(HelmChartError::TooLarge { folder: shown.to_owned() });
    while let Some((inside, place)) = waiting.pop() {
        let top = if place.is_empty() { 0 } else { place.len() + 1 };
        for (path, entry) in tree.entries_below(&place) {
            let inside = below(&inside, path.get(top..).unwrap_or_default());
            let target = match entry {
                TreeEntry::Link(_) => tree.resolve(path)?,
                TreeEntry::File(_)
                | TreeEntry::Decrypted(_)
                | TreeEntry::Encrypted { .. }
                | TreeEntry::TooLarge(_)
                | TreeEntry::NotFetched(_)
                | TreeEntry::Unreadable { .. } => path.to_owned(),
            };
            if files.len() + waiting.len() >= MAX_CHART_FILES {
                return Err(too_large());
            }
            if matches!(entry, TreeEntry::Link(_)) && !tree.is_file(&target) && tree.contains(&target) {
                // A link to a parent folder would never end.
                followed += 1;
                if followed > MAX_LINKED_FOLDERS {
                    return Err(too_large());
                }
                waiting.push((inside, target));
                continue;
            }
            let read = match tree.encrypted(&target) {
                // Templates do not read it by themselves, and ciphertext in the output is refused.
                Some((bytes, error)) if is_extra(&inside) => {
                    ciphertext.get_or_insert(error);
                    bytes
                }
                Some(_) | None => match tree.read(&target) {
                    // All pointers are read, so that they are fetched together.
                    Err(error @ TreeError::LfsPointer { .. }) => {
                        pointer.get_or_insert(error);
                        continue;
                    }
                    read => read?,
                },
            };
            contains_secret |= tree.is_decrypted(&target);
            bytes += read.len();
            if bytes > MAX_CHART_BYTES {
                return Err(too_large());
            }
            files.insert(inside, read);
        }
    }
    match pointer {
        Some(pointer) => Err(pointer.into()),
        None => Ok(FoundFiles { files, contains_secret, ciphertext }),
    }
}

/// True for a file that helm does not read unless a template asks for it.
fn is_extra(inside: &str) -> bool {
    let folder = inside.split_once('/').map_or("", |(folder, _)| folder);
    let own = [CHART, "values.yaml", "values.schema.json", "requirements.yaml"];
    !["templates", "crds", CHARTS].contains(&folder) && !own.contains(&inside)
}

impl Chart {
    /// Adds the dependencies that are not in the folder `charts`, by the lock. If the name of an
    /// archive is ambiguous, helm decides.
    fn add_dependencies(
        &mut self,
        (tree, folder): (&FileTree, &str),
        (says, file): (&Value, &str),
        fetched: &[FetchedDependency],
    ) -> Result<(), ChartRefusal> {
        let inner = self.inner();
        let is_missing = |name: &&str| !inner.iter().any(|inner| inner.may_be(name));
        if let Some(older) = self.files.get("requirements.yaml") {
            let older = yaml::read(file, older, DIALECT)?.into_iter().next().map(|document| document.value);
            if let Some(name) = names(&older.unwrap_or_default()).into_iter().find(is_missing) {
                let (file, name) = (file.to_owned(), name.to_owned());
                let (charts, folder) = self.places();
                return Err(HelmChartError::OldDependency { file, name, charts, folder }.into());
            }
        }
        let missing: Vec<&str> = names(says).into_iter().filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut unfetched = Vec::new();
        for dependency in dependencies::locked(&self.files, says, &missing, (file, &self.shown))? {
            match dependency.place(file)? {
                DependencyPlace::Folder(written) => {
                    let place = normalise(folder, written);
                    self.add_folder(tree, (place, written), (&dependency, file))?;
                }
                DependencyPlace::Server => match fetched.iter().find(|one| one.locked == dependency) {
                    Some(one) => {
                        let path = format!("{CHARTS}/{}", dependency.file_name());
                        self.files.insert(path, one.archive.clone());
                    }
                    None => unfetched.push(dependency),
                },
            }
        }
        self.check_size()?;
        let Some(first) = unfetched.first() else { return Ok(()) };
        let (file, name) = (file.to_owned(), first.name.clone());
        let (charts, folder) = self.places();
        let problem = Box::new(HelmChartError::NoDependency { file, name, charts, folder }.into());
        Err(ChartRefusal { problem, missing: unfetched })
    }

    /// Adds a dependency that is a folder of the same tree.
    fn add_folder(
        &mut self,
        tree: &FileTree,
        (place, written): (Option<String>, &str),
        (dependency, file): (&LockedDependency, &str),
    ) -> Result<(), Problem> {
        let (file, name) = (file.to_owned(), dependency.name.clone());
        let refuse = |problem| {
            let (file, name, folder) = (file.clone(), name.clone(), written.to_owned());
            Problem::from(HelmChartError::WrongFolder { file, name, folder, problem })
        };
        let place = place.ok_or_else(|| refuse("is outside of the repository"))?;
        let place = tree.resolve(&place)?;
        let FoundFiles { files: found, contains_secret, ciphertext } = files(tree, &place, written)?;
        let bytes = found.get(CHART).ok_or_else(|| refuse("has no Chart.yaml"))?;
        let shown = tree.display_path(&below(&place, CHART));
        let says = yaml::read(&shown, bytes, DIALECT)?.into_iter().next().map(|document| document.value);
        let says = says.unwrap_or_default();
        if text(&says, "name") != Some(&name) {
            return Err(refuse("is a chart of another name"));
        }
        if text(&says, "version") != Some(&dependency.version) {
            return Err(refuse("has another version than Chart.lock"));
        }
        self.contains_secret |= contains_secret;
        self.ciphertext = self.ciphertext.take().or(ciphertext);
        self.files.extend(found.into_iter().map(|(path, bytes)| (format!("{CHARTS}/{name}/{path}"), bytes)));
        Ok(())
    }

    /// Checks the size again, with what was added.
    fn check_size(&self) -> Result<(), Problem> {
        let bytes: usize = self.files.values().map(|bytes| bytes.len()).sum();
        match self.files.len() > MAX_CHART_FILES || bytes > MAX_CHART_BYTES {
            true => Err(HelmChartError::TooLarge { folder: self.shown.clone() }.into()),
            false => Ok(()),
        }
    }

    /// Returns the folder of dependencies and that of the chart, for messages.
    fn places(&self) -> (String, String) {
        let charts = format!("{}/{CHARTS}", self.shown).trim_start_matches('/').to_owned();
        let folder = if self.shown.is_empty() { ".".to_owned() } else { self.shown.clone() };
        (charts, folder)
    }

    /// Returns the charts in the folder `charts`.
    fn inner(&self) -> Vec<BundledChart> {
        let inside =
            |path: &str| path.strip_prefix(CHARTS).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned);
        let one = |(path, bytes): (&String, &std::sync::Arc<[u8]>)| {
            let path = inside(path)?;
            match path.split_once('/') {
                None => path.strip_suffix(".tgz").map(|name| BundledChart::Archive(name.to_owned())),
                Some((_, file)) if file == CHART => {
                    let says = yaml::read(CHART, bytes, DIALECT).ok()?.into_iter().next()?.value;
                    text(&says, "name").map(|name| BundledChart::Folder(name.to_owned()))
                }
                Some(_) => None,
            }
        };
        self.files.iter().filter_map(one).collect()
    }
}

/// A chart inside a chart.
enum BundledChart {
    /// An unpacked chart, by its name.
    Folder(String),
    /// An archive, by the file's name without its extension.
    Archive(String),
}

impl BundledChart {
    /// False only if this certainly is another chart.
    fn may_be(&self, name: &str) -> bool {
        match self {
            Self::Folder(own) => own == name,
            Self::Archive(file) => {
                // `helm package` names archives by the chart's name and version.
                let version = file.rsplit_once('-').filter(|(_, rest)| rest.starts_with(is_digit));
                file.starts_with(name) || version.is_none()
            }
        }
    }
}

/// Returns the names of the dependencies in a file.
fn names(says: &Value) -> Vec<&str> {
    let named = says.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    named.filter_map(|dependency| text(dependency, "name")).collect()
}

fn is_digit(char: char) -> bool {
    char.is_ascii_digit()
}

fn text<'a>(says: &'a Value, field: &str) -> Option<&'a str> {
    says.get(field)?.as_str().filter(|text| !text.is_empty())
}
