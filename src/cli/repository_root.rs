//! Limits the files that a render on the command line may read: to the repository around a path.
//!
//! In: a path, and optionally a root folder. Out: the files of the path, of the folders that its
//! kustomizations name, and of values, as far as they lie below the root. Nothing outside is read,
//! no matter what a kustomization says, except remote bases that the user allows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::remote_bases::RemoteBases;
use crate::kustomize;
use crate::render::{self, RenderOptions};
use crate::source::directory;
use crate::tree::FileTree;

/// The most rounds in which folders are read that other folders name.
const MAX_ROUNDS: usize = 64;

/// Reads the files that a kustomization or a chart may need; sets its path and those of the value
/// files in the options.
pub(super) fn read_tree(
    path: &Path,
    (root, values): (Option<&Path>, &[PathBuf]),
    options: &mut RenderOptions,
    bases: &mut RemoteBases,
) -> anyhow::Result<FileTree> {
    let (inner, here) = (canonical(path)?, std::env::current_dir()?);
    let wall = find_root(path, root)?;
    let Ok(inside) = inner.strip_prefix(&wall) else {
        bail!("{} is not inside {}; choose a --root that contains it", path.display(), wall.display());
    };
    let Some(inside) = inside.to_str() else { bail!("{}: the path is not UTF-8", path.display()) };
    let shown = display_root(&wall, &here);
    let mut parts = BTreeSet::from([inside.to_owned()]);
    options.path = inside.to_owned();
    for file in values {
        let place = canonical(file)?;
        let Some(place) = place.strip_prefix(&wall).ok().and_then(Path::to_str) else {
            bail!("{} is not inside {}; choose a --root that contains it", file.display(), wall.display());
        };
        options.helm.values_files.push(format!("/{place}"));
    }
    for _ in 0..MAX_ROUNDS {
        let own = bases.mounts().place(directory::read_parts(&wall, &parts, &shown)?, &wall)?;
        let tree = bases.mount(own)?;
        let missing = render::missing_inputs(&tree, options);
        let before = parts.len();
        let (more, grown) = bases.fetch_missing(missing, &tree)?;
        parts.extend(more.into_iter().map(String::from));
        if parts.len() == before && !grown {
            return Ok(tree);
        }
    }
    bail!("{}: kustomizations reference each other more than {MAX_ROUNDS} levels deep", path.display())
}

/// The root folder that a render of a path must not leave.
pub(super) fn find_root(path: &Path, root: Option<&Path>) -> anyhow::Result<PathBuf> {
    match root {
        Some(root) => canonical(root),
        None => Ok(around(&canonical(path)?, &std::env::current_dir()?)),
    }
}

fn canonical(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize().with_context(|| format!("{}: cannot be read", path.display()))
}

/// True if a folder is a chart.
pub(super) fn is_chart(path: &Path) -> bool {
    path.join(render::helm::CHART).is_file()
}

/// True if a folder holds a kustomization.
pub(super) fn holds_kustomization(path: &Path) -> bool {
    kustomize::FILE_NAMES.iter().any(|name| path.join(name).is_file())
}

/// The Git work tree around a path, else the current folder if the path lies in it, else the path.
fn around(path: &Path, here: &Path) -> PathBuf {
    let repository = path.ancestors().find(|folder| folder.join(".git").exists());
    match repository {
        Some(repository) => repository.to_owned(),
        None if path.starts_with(here) => here.to_owned(),
        None => path.to_owned(),
    }
}

/// The root relative to the current folder.
pub(super) fn display_root(wall: &Path, here: &Path) -> String {
    match (wall.strip_prefix(here), here.strip_prefix(wall)) {
        (Ok(below), _) => below.to_string_lossy().into_owned(),
        (Err(_), Ok(above)) => vec![".."; above.components().count()].join("/"),
        (Err(_), Err(_)) => wall.to_string_lossy().into_owned(),
    }
}
