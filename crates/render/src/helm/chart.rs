//! The files of a chart, and whether the charts that it needs are among them.
//!
//! In: a tree and a folder. Out: [`Chart`]. Links are followed inside the tree, so that whoever reads the files meets none. What
//! is missing is found here, where it can be said what to do; helm would only say that it is.

use serde_json::Value;

use super::fault::ChartFault;
use super::{CHART, Files, below};
use crate::documents::DIALECT;
use crate::problem::Problem;
use moorline_core::tree::{Entry, FileTree};
use moorline_yaml as yaml;

/// The most files of a chart, those that links lead to included.
pub(super) const MAX_CHART_FILES: usize = 10_000;

/// The most bytes of them.
pub(super) const MAX_CHART_BYTES: usize = 64 * 1024 * 1024;

/// The most links to folders that are followed.
const MAX_LINKED_FOLDERS: usize = 64;

/// Where the charts that a chart needs are.
const CHARTS: &str = "charts";

/// A chart as it lies in a tree.
#[derive(Debug, Clone)]
pub(super) struct Chart {
    /// Its name, which begins the names of its templates in what helm prints.
    pub(super) name: String,
    /// Its folder, for people.
    pub(super) shown: String,
    /// Its files, relative to the folder.
    pub(super) files: Files,
}

/// Reads the chart in a folder.
pub(super) fn read(tree: &FileTree, path: &str) -> Result<Chart, Problem> {
    let folder = tree.resolve(path)?;
    let shown = tree.shown(&folder);
    if !tree.contains(&folder) {
        return Err(Problem::NoSuchPath { path: shown });
    }
    let files = files(tree, &folder, &shown)?;
    let Some(bytes) = files.get(CHART) else { return Err(ChartFault::NoChart { folder: shown }.into()) };
    let file = tree.shown(&below(&folder, CHART));
    let says = yaml::read(&file, bytes, DIALECT)?.into_iter().next().map(|document| document.value);
    let says = says.unwrap_or_default();
    let Some(name) = text(&says, "name") else {
        let problem = "a chart needs a name; write one such as name: shop";
        return Err(ChartFault::BadChart { file, problem }.into());
    };
    let chart = Chart { name: name.to_owned(), shown, files };
    chart.lacks_none(&says, &file)?;
    Ok(chart)
}

/// The files below a folder. A link is the file it leads to, or all files of the folder.
fn files(tree: &FileTree, folder: &str, shown: &str) -> Result<Files, Problem> {
    let mut files = Files::new();
    let (mut bytes, mut followed) = (0, 0);
    // Where something lies in the chart, and where in the tree.
    let mut waiting = vec![(String::new(), folder.to_owned())];
    let too_large = || Problem::from(ChartFault::TooLarge { folder: shown.to_owned() });
    while let Some((inside, place)) = waiting.pop() {
        let top = if place.is_empty() { 0 } else { place.len() + 1 };
        for (path, entry) in tree.below(&place) {
            let inside = below(&inside, path.get(top..).unwrap_or_default());
            let target = match entry {
                Entry::Link(_) => tree.resolve(path)?,
                Entry::File(_) | Entry::TooLarge(_) | Entry::Left(_) | Entry::Unreadable { .. } => {
                    path.to_owned()
                }
            };
            if files.len() + waiting.len() >= MAX_CHART_FILES {
                return Err(too_large());
            }
            if matches!(entry, Entry::Link(_)) && !tree.is_file(&target) && tree.contains(&target) {
                // A link to a folder around it has no end.
                followed += 1;
                if followed > MAX_LINKED_FOLDERS {
                    return Err(too_large());
                }
                waiting.push((inside, target));
                continue;
            }
            let read = tree.read(&target)?;
            bytes += read.len();
            if bytes > MAX_CHART_BYTES {
                return Err(too_large());
            }
            files.insert(inside, read);
        }
    }
    Ok(files)
}

impl Chart {
    /// Makes sure that every chart that it names is there. Where an archive's name does not tell what is in it, helm has the word.
    fn lacks_none(&self, says: &Value, file: &str) -> Result<(), Problem> {
        let older = self.files.get("requirements.yaml");
        let older = older.map(|bytes| yaml::read(file, bytes, DIALECT)).transpose()?.unwrap_or_default();
        let lists = [says].into_iter().chain(older.iter().map(|document| &document.value));
        let named = lists.filter_map(|says| says.get("dependencies")?.as_array()).flatten();
        let there = self.inner();
        for name in named.filter_map(|dependency| text(dependency, "name")) {
            if !there.iter().any(|inner| inner.may_be(name)) {
                return Err(ChartFault::NoDependency {
                    file: file.to_owned(),
                    name: name.to_owned(),
                    charts: format!("{}/{CHARTS}", self.shown).trim_start_matches('/').to_owned(),
                    folder: if self.shown.is_empty() { ".".to_owned() } else { self.shown.clone() },
                }
                .into());
            }
        }
        Ok(())
    }

    /// The charts in its folder for them.
    fn inner(&self) -> Vec<Inner> {
        let inside =
            |path: &str| path.strip_prefix(CHARTS).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned);
        let one = |(path, bytes): (&String, &std::sync::Arc<[u8]>)| {
            let path = inside(path)?;
            match path.split_once('/') {
                None => path.strip_suffix(".tgz").map(|name| Inner::Archive(name.to_owned())),
                Some((_, file)) if file == CHART => {
                    let says = yaml::read(CHART, bytes, DIALECT).ok()?.into_iter().next()?.value;
                    text(&says, "name").map(|name| Inner::Folder(name.to_owned()))
                }
                Some(_) => None,
            }
        };
        self.files.iter().filter_map(one).collect()
    }
}

/// A chart within a chart.
enum Inner {
    /// Its name.
    Folder(String),
    /// The name of the file, without its ending.
    Archive(String),
}

impl Inner {
    /// True unless it is certain that this is another chart.
    fn may_be(&self, name: &str) -> bool {
        match self {
            Self::Folder(own) => own == name,
            Self::Archive(file) => {
                // What helm packs is called by its name and version.
                let version = file.rsplit_once('-').filter(|(_, rest)| rest.starts_with(is_digit));
                file.starts_with(name) || version.is_none()
            }
        }
    }
}

fn is_digit(char: char) -> bool {
    char.is_ascii_digit()
}

fn text<'a>(says: &'a Value, field: &str) -> Option<&'a str> {
    says.get(field)?.as_str().filter(|text| !text.is_empty())
}
