//! Memory limits for turning a commit into objects.
//!
//! In: the spec of a Sync, and the memory that its last commit took.
//! Out: [`MemoryLimits`], which returns one limit after the other, each larger than the last, and
//! an error if no larger one is possible.
//!
//! A commit that exceeds its limit is read again from the beginning with a larger one: no render
//! waits for memory while it holds some.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::controller::spec::ValidatedSpec;
use crate::desired::DesiredSet;
use crate::render::{SourceType, is_read};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{FileFilter, FileSelection, Memory, MemoryShare};
use crate::tree::{FileTree, MemoryLimit, TreeEntry};

/// First limit of a Sync whose last commit is not known; most commits need no more.
pub(crate) const FIRST: u64 = 16 * 1024 * 1024;

/// Memory of an object beside its text, for as long as the Sync exists.
const OBJECT: u64 = 512;

/// Submodules are fetched from arbitrary servers while memory is held, so they get only this
/// fraction of it.
const PART_FOR_MODULES: u64 = 4;

/// Memory limits for one commit.
pub(crate) struct MemoryLimits {
    bytes: u64,
    most: u64,
}

impl MemoryLimits {
    /// Starts with the limit of the last commit.
    pub(crate) fn of(memory: &Memory, valid_spec: &ValidatedSpec, last: Option<u64>) -> Self {
        let has_modules = valid_spec.submodules || valid_spec.mounts.iter().any(|it| it.source.submodules);
        let part = if has_modules { PART_FOR_MODULES } else { 1 };
        let most = memory.most_for_work() / part;
        Self { bytes: last.unwrap_or(FIRST).min(most), most }
    }

    /// Returns the current limit.
    pub(crate) fn current(&self) -> MemoryLimit {
        MemoryLimit::with_bytes(self.bytes)
    }

    /// Raises the limit above the size that exceeded it; fails if no larger one is possible.
    pub(crate) fn grow(&mut self, short: u64) -> Result<(), ReconcileError> {
        if self.bytes >= self.most {
            return Err(never(short, self.most, "reading and rendering the source takes"));
        }
        self.bytes = (short.saturating_add(short / 4)).max(2 * self.bytes).min(self.most);
        Ok(())
    }
}

/// Returns the memory that objects take for as long as they are kept.
pub(crate) fn bytes(objects: &DesiredSet) -> u64 {
    objects.objects().iter().map(|object| OBJECT + object.canonical.len() as u64).sum()
}

/// Reserves memory for the objects of a Sync until the returned share is dropped.
pub(crate) fn kept(
    memory: &Memory,
    sync: &str,
    objects: &DesiredSet,
) -> Result<Arc<MemoryShare>, ReconcileError> {
    let bytes = bytes(objects);
    match memory.take_kept(sync, bytes) {
        Some(share) => Ok(share),
        None if bytes > memory.most_kept() => {
            Err(never(bytes, memory.most_kept(), "keeping its objects takes"))
        }
        None => Err(ReconcileError {
            cause: ErrorCause::MemoryBusy,
            message: format!(
                "its objects take {} MiB of memory, which other Syncs occupy now; raise the daemon's memory (the setting \
                 memory, and the limit of its Pod), or wait until other Syncs need less",
                mib(bytes)
            ),
            problems: Vec::new(),
            permanent: false,
        }),
    }
}

fn never(bytes: u64, most: u64, what: &str) -> ReconcileError {
    ReconcileError {
        cause: ErrorCause::MemoryExceeded,
        message: format!(
            "{what} at least {} MiB of memory, but at most {} MiB are available; raise the daemon's memory (the setting memory, and the \
             limit of its Pod), or choose a path with fewer files",
            mib(bytes),
            mib(most)
        ),
        problems: Vec::new(),
        permanent: true,
    }
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1024 * 1024)
}

/// Selects the files to read for a Sync: in a plain folder the manifests, and the targets of links.
pub(crate) fn choose(valid_spec: &ValidatedSpec) -> FileFilter {
    let options = valid_spec.options.clone();
    // The files that a submodule, a mount or a published chart needs are not known from this tree.
    let is_open = valid_spec.submodules || valid_spec.chart.is_some() || !valid_spec.mounts.is_empty();
    Arc::new(move |tree| match options.source_type(tree) {
        SourceType::Auto | SourceType::Plain if !is_open => {
            FileSelection::Only(manifests(tree, &options.path))
        }
        SourceType::Auto | SourceType::Plain | SourceType::Kustomize | SourceType::Helm => FileSelection::All,
    })
}

fn manifests(tree: &FileTree, path: &str) -> BTreeSet<String> {
    let mut chosen: BTreeSet<String> = tree.resolve(path).into_iter().collect();
    for (path, entry) in tree.entries().filter(|(path, _)| is_read(path)) {
        match entry {
            TreeEntry::NotFetched(_) => drop(chosen.insert(path.to_owned())),
            TreeEntry::Link(_) => chosen.extend(tree.resolve(path)),
            TreeEntry::File(_)
            | TreeEntry::Decrypted(_)
            | TreeEntry::Encrypted { .. }
            | TreeEntry::TooLarge(_)
            | TreeEntry::Unreadable { .. } => {}
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_plain_folder_manifests_are_read_and_what_links_lead_to() {
        let left = TreeEntry::NotFetched(1);
        let tree: FileTree = [
            ("a/x.yaml", left.clone()),
            ("a/notes.txt", left.clone()),
            ("a/y.yaml", TreeEntry::Link("../b/y.tpl".into())),
            ("b/y.tpl", left.clone()),
            ("b/z.tpl", left),
        ]
        .into_iter()
        .collect();
        let expect = ["a", "a/x.yaml", "b/y.tpl"].map(str::to_owned);
        assert_eq!(manifests(&tree, "a"), BTreeSet::from(expect));
        assert!(manifests(&tree, "a/notes.txt").contains("a/notes.txt"), "a file that is named is read");
    }

    #[test]
    fn limits_grow_until_there_is_no_larger_one() {
        let mut limits = MemoryLimits { bytes: 10, most: 100 };
        limits.grow(40).unwrap();
        assert_eq!(limits.bytes, 50);
        limits.grow(51).unwrap();
        assert_eq!(limits.bytes, 100);
        let told = limits.grow(5 << 20).unwrap_err();
        assert_eq!(told.cause, ErrorCause::MemoryExceeded);
        assert!(told.message.contains("at least 5 MiB of memory, but at most 1 MiB"), "{}", told.message);
    }
}
