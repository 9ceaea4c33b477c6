//! Reads the options over a kustomization from a file of the command line.
//!
//! In: a file with a Sync, or with the mapping of its `spec.render.kustomize`.
//! Out: the options for the renderer, validated as the daemon validates them.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::api::RenderSpec;
use crate::controller::spec::{UnknownField, find_unknown_field, kustomize_options};
use crate::kustomize::KustomizeOptions;
use crate::yaml::{self, Dialect};

/// Largest file: more does not fit into a Sync.
const MAX_BYTES: u64 = 2 * 1024 * 1024;

/// Reads the options; none if the Sync in the file has none.
pub(super) fn read_kustomize_options(path: &Path) -> anyhow::Result<Option<Arc<KustomizeOptions>>> {
    let shown = path.display().to_string();
    let size = std::fs::metadata(path).with_context(|| format!("{shown}: cannot be read"))?.len();
    if size > MAX_BYTES {
        bail!("{shown}: larger than {MAX_BYTES} bytes, which is more than a Sync may have");
    }
    let bytes = std::fs::read(path).with_context(|| format!("{shown}: cannot be read"))?;
    let mut documents = yaml::read(&shown, &bytes, Dialect::Kubectl)?.into_iter();
    let (Some(document), None) = (documents.next(), documents.next()) else {
        bail!("{shown}: write one document, a Sync or its spec.render.kustomize");
    };
    let is_sync = document.value.get("kind").and_then(Value::as_str) == Some("Sync");
    let options = match is_sync {
        true => document.value.pointer("/spec/render/kustomize").cloned(),
        false => Some(document.value),
    };
    let Some(options) = options else { return Ok(None) };
    let render = json!({"kustomize": options});
    if let Some(UnknownField { path, meant }) = find_unknown_field(&json!({"render": render})) {
        let meant = meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        bail!("{shown}: there is no field {path}{meant}");
    }
    let render: RenderSpec = serde_json::from_value(render).with_context(|| format!("{shown}: not valid"))?;
    kustomize_options(&render).with_context(|| shown)
}
