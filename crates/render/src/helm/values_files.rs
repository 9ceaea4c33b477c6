//! Reads the values files of a chart.
//!
//! In: the tree of the repository, the chart's folder, and paths. Out: the files in their order. A
//! path may lead up to the root of the repository and not out of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::error::HelmChartError;
use crate::RenderOptions;
use crate::problem::Problem;
use moorline_core::position::SourcePosition;
use moorline_core::tree::{self, FileTree, normalise};

/// A values file.
#[derive(Debug, Clone)]
pub(super) struct ValuesFile {
    /// Its path, for messages.
    pub(super) shown: String,
    /// Its content.
    pub(super) bytes: Arc<[u8]>,
    /// It was decrypted.
    pub(super) is_decrypted: bool,
}

/// Reads the files in their order.
pub(super) fn read(tree: &FileTree, folder: &str, written: &[String]) -> Result<Vec<ValuesFile>, Problem> {
    written.iter().map(|written| one(tree, folder, written)).collect()
}

fn one(tree: &FileTree, folder: &str, written: &str) -> Result<ValuesFile, Problem> {
    let Some(place) = resolve_path(folder, written) else {
        return Err(HelmChartError::ValuesOutside { written: written.to_owned() }.into());
    };
    let shown = tree.display_path(&place);
    match tree.read(&place) {
        Ok(bytes) => match metadata_line(&bytes) {
            Some(line) => Err(Problem::Encrypted { place: SourcePosition { file: shown, line, column: 1 } }),
            None => Ok(ValuesFile { shown, bytes, is_decrypted: tree.is_decrypted(&place) }),
        },
        Err(tree::TreeError::Missing { .. }) => {
            Err(HelmChartError::NoValues { written: written.to_owned(), shown }.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the line of SOPS' metadata in a file that it encrypted: the values would be applied as
/// ciphertext.
fn metadata_line(bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains("ENC[AES256_GCM,"))?;
    let is_it = |line: &str| line.starts_with("sops:") || line.trim_start().starts_with("\"sops\":");
    u32::try_from(text.lines().position(is_it)? + 1).ok()
}

/// Returns the paths of the values files, their targets, and the links on the way to them.
pub(super) fn values_paths(tree: &FileTree, folder: &str, options: &RenderOptions) -> BTreeSet<String> {
    let named = options.helm.values_files.iter().filter_map(|written| resolve_path(folder, written));
    let all = named.flat_map(|place| {
        let target = tree.resolve(&place).ok();
        tree.links(&place).into_iter().chain(target).chain([place])
    });
    all.collect()
}

/// Resolves the path of a values file; none if it leads out of the tree.
pub(super) fn resolve_path(folder: &str, written: &str) -> Option<String> {
    match written.strip_prefix('/') {
        Some(from_root) => normalise("", from_root),
        None => normalise(folder, written),
    }
}
