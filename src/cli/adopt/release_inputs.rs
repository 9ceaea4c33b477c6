//! Reads everything that belongs to a HelmRelease.
//!
//! In: the HelmRelease. Out: [`ReleaseInputs`]: the source of its chart, the repository that
//! applies it, and, where its status has no inventory, the objects of the release that helm stored.
//! Of the stored release only the ids of its objects are kept.

use serde_json::Value;

use super::inputs::{kind, namespace_or, text};
use super::source_inputs::{SourceInputs, gather_source, included, read_source};
use crate::adopt::{Tool, storage_name, stored_inventory};
use crate::cluster::{Connection, ThirdPartyKind};

/// Resources that belong to a HelmRelease.
#[derive(Debug, Default)]
pub(super) struct ReleaseInputs {
    /// The HelmChart that it names.
    pub(super) chart: Option<Value>,
    /// The HelmRepository or OCIRepository of its chart.
    pub(super) source: Option<Value>,
    /// The repository of its chart, or of the Kustomization that applies it.
    pub(super) source_of: SourceInputs,
    /// The Kustomization that applies it.
    pub(super) parent: Option<Value>,
    /// Namespace and name of the newest release, as helm stored it.
    pub(super) stored: Option<(String, String)>,
}

/// Reads the resources, and completes the inventory of the HelmRelease.
pub(super) async fn gather_release(
    connection: &Connection,
    own: &str,
    release: &mut Value,
) -> anyhow::Result<ReleaseInputs> {
    let mut found = ReleaseInputs::default();
    let place = text(release, "/spec/chartRef/namespace");
    let (kind, namespace) = (text(release, "/spec/chartRef/kind"), namespace_or(place, own));
    let (chart, space) = match kind {
        "HelmChart" => {
            found.chart =
                read_source(connection, kind, namespace, text(release, "/spec/chartRef/name")).await?;
            (found.chart.clone().unwrap_or_default(), namespace)
        }
        _ => (release.pointer("/spec/chart").cloned().unwrap_or_default(), own),
    };
    let (kind, namespace, name) = match kind {
        "OCIRepository" => (kind, namespace, text(release, "/spec/chartRef/name")),
        _ => {
            let place = text(&chart, "/spec/sourceRef/namespace");
            let kind = text(&chart, "/spec/sourceRef/kind");
            (kind, namespace_or(place, space), text(&chart, "/spec/sourceRef/name"))
        }
    };
    match kind {
        "GitRepository" => {
            let repository = read_source(connection, kind, namespace, name).await?;
            found.source_of.included = included(connection, repository.as_ref()).await?;
            found.source_of.repository = repository;
        }
        kind => found.source = read_source(connection, kind, namespace, name).await?,
    }
    let labels = |name: &str| text(release, &format!("/metadata/labels/kustomize.toolkit.fluxcd.io~1{name}"));
    let (space, name) = (labels("namespace").to_owned(), labels("name").to_owned());
    if found.source_of.repository.is_none() && !name.is_empty() {
        found.parent = connection.third_party_object(self::kind(Tool::Flux), &space, &name).await?;
        if let Some(parent) = &found.parent {
            found.source_of = gather_source(connection, &space, parent).await?;
        }
    }
    found.stored = stored(own, release);
    if let (Some((namespace, name)), None) = (&found.stored, release.pointer("/status/inventory/entries")) {
        let kind = ThirdPartyKind { group: "", version: "v1", kind: "Secret" };
        let secret = connection.third_party_object(kind, namespace, name).await?;
        if let Some(inventory) = secret.as_ref().and_then(stored_inventory) {
            release["status"]["inventory"] = inventory;
        }
    }
    Ok(found)
}

/// Returns namespace and name of the Secret with the newest release.
fn stored(own: &str, release: &Value) -> Option<(String, String)> {
    let newest = release.pointer("/status/history/0")?;
    let named = [text(release, "/status/storageNamespace"), text(release, "/spec/storageNamespace")];
    let namespace = named.into_iter().find(|name| !name.is_empty()).unwrap_or(own);
    let (name, revision) = (text(newest, "/name"), newest.get("version")?.as_i64()?);
    Some((namespace.to_owned(), storage_name(name, revision)))
}
