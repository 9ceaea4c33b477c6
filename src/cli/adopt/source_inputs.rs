//! Reads the source of a Kustomization.
//!
//! In: the Kustomization. Out: [`SourceInputs`]: its repository or artifact, and for a generated
//! artifact the ArtifactGenerator that makes it, with the repository that it copies from.

use serde_json::Value;

use super::inputs::{is_served, namespace_or, text};
use crate::adopt::{generator_name, generator_source};
use crate::cluster::{Connection, ThirdPartyKind};

/// The source of a Kustomization.
#[derive(Debug, Default)]
pub(super) struct SourceInputs {
    /// The GitRepository or OCIRepository.
    pub(super) repository: Option<Value>,
    /// The GitRepositories that it includes.
    pub(super) included: Vec<Value>,
    /// The ArtifactGenerator that copies from it.
    pub(super) generator: Option<Value>,
}

/// Kinds of sources, all in one group and version.
const SOURCES: [&str; 5] =
    ["ExternalArtifact", "GitRepository", "HelmChart", "HelmRepository", "OCIRepository"];

/// Kinds of sources with files that a Sync can follow.
const FOLLOWED: [&str; 2] = ["GitRepository", "OCIRepository"];

/// The kind that makes an ExternalArtifact.
const GENERATOR: ThirdPartyKind<'static> =
    ThirdPartyKind { group: "source.extensions.fluxcd.io", version: "v1beta1", kind: "ArtifactGenerator" };

/// Reads the source of a Kustomization in this namespace.
pub(super) async fn gather_source(
    connection: &Connection,
    own: &str,
    by: &Value,
) -> anyhow::Result<SourceInputs> {
    let reference = by.pointer("/spec/sourceRef").cloned().unwrap_or_default();
    let (kind, name) = (text(&reference, "/kind"), text(&reference, "/name"));
    let namespace = namespace_or(text(&reference, "/namespace"), own);
    if kind != "ExternalArtifact" {
        let repository = followed(connection, &reference, namespace).await?;
        let included = included(connection, repository.as_ref()).await?;
        return Ok(SourceInputs { repository, included, generator: None });
    }
    let artifact = read_source(connection, kind, namespace, name).await?;
    let Some((space, maker)) = artifact.as_ref().and_then(generator_name) else {
        return Ok(SourceInputs::default());
    };
    let generator = connection.third_party_object(GENERATOR, &space, &maker).await?;
    let source = generator.as_ref().and_then(|generator| generator_source(generator, name));
    let repository = match source {
        Some(source) => {
            followed(connection, source, namespace_or(text(source, "/namespace"), &space)).await?
        }
        None => None,
    };
    let included = included(connection, repository.as_ref()).await?;
    Ok(SourceInputs { repository, included, generator })
}

/// Reads the GitRepositories that a repository includes; one that does not exist is left out.
pub(super) async fn included(
    connection: &Connection,
    repository: Option<&Value>,
) -> anyhow::Result<Vec<Value>> {
    let Some(repository) = repository else { return Ok(Vec::new()) };
    let includes = repository.pointer("/spec/include").and_then(Value::as_array);
    let (namespace, mut found) = (text(repository, "/metadata/namespace"), Vec::new());
    for include in includes.into_iter().flatten() {
        let name = text(include, "/repository/name");
        found.extend(read_source(connection, "GitRepository", namespace, name).await?);
    }
    Ok(found)
}

/// Reads the source of a reference, if a Sync can follow its kind.
async fn followed(
    connection: &Connection,
    reference: &Value,
    namespace: &str,
) -> anyhow::Result<Option<Value>> {
    let kind = text(reference, "/kind");
    if !FOLLOWED.contains(&kind) {
        return Ok(None);
    }
    read_source(connection, kind, namespace, text(reference, "/name")).await
}

/// Reads a source of Flux; none if it does not exist, or is of another kind.
pub(super) async fn read_source(
    connection: &Connection,
    kind: &str,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Option<Value>> {
    let Some(kind) = SOURCES.into_iter().find(|known| *known == kind) else { return Ok(None) };
    let kind = ThirdPartyKind { group: "source.toolkit.fluxcd.io", version: "v1", kind };
    let found = connection.third_party_object(kind, namespace, name).await?;
    if found.is_none() {
        is_served(connection, kind).await?;
    }
    Ok(found)
}
