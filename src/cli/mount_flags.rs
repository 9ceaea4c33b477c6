//! `--mount PATH=DIR`: folders of the local disk in place of the mounts of a Sync.
//!
//! In: the flags, and the files of a repository. Out: the same files with those of the folders, as
//! the daemon has them with `spec.source.mounts`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use crate::api::MAX_MOUNTS;
use crate::source::directory;
use crate::tree::FileTree;

/// Folders in place of mounts.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct MountFlags {
    /// Put the files of DIR into the folder PATH of the root, as a mount of the Sync does
    /// (spec.source.mounts); repeatable
    #[arg(long = "mount", value_name = "PATH=DIR", value_parser = local_mount)]
    mounts: Vec<LocalMount>,
}

/// A folder of the local disk, and the folder of the root that holds its files.
#[derive(Debug, Clone)]
struct LocalMount {
    path: Box<str>,
    folder: PathBuf,
}

fn local_mount(text: &str) -> Result<LocalMount, &'static str> {
    const FORM: &str =
        "write PATH=DIR, such as vendor/base=../base: the folder of the mount, and a folder on disk";
    let (path, folder) = text.split_once('=').ok_or(FORM)?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    match path.starts_with('/') || parts.is_empty() || parts.contains(&"..") || folder.is_empty() {
        true => Err(FORM),
        false => Ok(LocalMount { path: parts.join("/").into(), folder: folder.into() }),
    }
}

impl MountFlags {
    /// True without a flag.
    pub(super) fn is_empty(&self) -> bool {
        self.mounts.is_empty()
    }

    /// True if there is a folder for the mount at this path.
    pub(super) fn has(&self, path: &str) -> bool {
        self.mounts.iter().any(|mount| *mount.path == *path)
    }

    /// Returns the files of `root` with those of the folders.
    pub(super) fn place(&self, files: FileTree, root: &Path) -> anyhow::Result<FileTree> {
        if self.mounts.len() > MAX_MOUNTS {
            bail!("--mount: a Sync has at most {MAX_MOUNTS} mounts");
        }
        let mut placed = files;
        for LocalMount { path, folder } in &self.mounts {
            if root.join(&**path).symlink_metadata().is_ok() || placed.contains(path) {
                bail!(
                    "--mount {path}={}: {path} exists already, and a mount hides nothing",
                    folder.display()
                );
            }
            let (mounted, file) = directory::read(folder, |_| true)?;
            if !file.is_empty() {
                bail!("--mount {path}={}: name a folder", folder.display());
            }
            placed = placed.with_tree_at(path, &mounted);
        }
        Ok(placed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_takes_the_place_of_a_mount_and_hides_nothing() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(root.path().join("own")).unwrap();
        std::fs::write(other.path().join("a.yaml"), "a: 1\n").unwrap();
        let placed = |path: &str| {
            let text = format!("{path}={}", other.path().display());
            let flags = MountFlags { mounts: vec![local_mount(&text).unwrap()] };
            flags.place(FileTree::from_texts([("b.yaml", "b: 1\n")]), root.path())
        };
        let tree = placed("./vendor/base/").unwrap();
        assert_eq!(&*tree.read("vendor/base/a.yaml").unwrap(), b"a: 1\n");
        for path in ["own", "b.yaml"] {
            assert!(placed(path).unwrap_err().to_string().contains("exists already"));
        }
        for wrong in ["a", "=b", "/a=b", "../a=b", "a="] {
            assert!(local_mount(wrong).is_err(), "{wrong}");
        }
    }
}
