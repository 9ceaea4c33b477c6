//! Reads the resource to adopt and everything that belongs to it.
//!
//! In: a name. Out: [`AdoptionInputs`]: an Application with the ApplicationSet that generates it,
//! a Kustomization with its source and the Syncs of its dependencies, or a HelmRelease with the
//! source of its chart. Credentials are not read.

use std::collections::BTreeMap;

use anyhow::bail;
use serde_json::Value;

use super::release_inputs::{ReleaseInputs, gather_release};
use super::source_inputs::{SourceInputs, gather_source};
use crate::adopt::{AdoptionRecord, OldResource, Tool, parent_application};
use crate::api::SyncName;
use crate::cluster::{Connection, ThirdPartyKind};
use crate::grammar::with_article;

/// The resource of another tool, and the resources that belong to it.
pub(super) struct AdoptionInputs {
    pub(super) tool: Tool,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The resource in its current state.
    pub(super) live: Value,
    /// The resource before it was adopted.
    pub(super) original: Value,
    /// The record that an earlier adoption left on the resource.
    pub(super) record: Option<AdoptionRecord>,
    source: SourceInputs,
    application_set: Option<Value>,
    /// The Application that applies this one.
    parent: Option<Value>,
    pub(super) release: ReleaseInputs,
    adopted: BTreeMap<(String, String), SyncName>,
}

impl AdoptionInputs {
    /// The kind, namespace and name, for messages.
    pub(super) fn display_name(&self) -> String {
        format!("the {} {}/{}", self.tool.kind(), self.namespace, self.name)
    }

    /// Name of the ApplicationSet that generates the Application.
    pub(super) fn application_set_name(&self) -> Option<&str> {
        self.application_set.as_ref()?.pointer("/metadata/name")?.as_str()
    }

    pub(super) fn old(&self) -> OldResource<'_> {
        OldResource {
            tool: self.tool,
            body: &self.original,
            repository: self.source.repository.as_ref().or(self.release.source_of.repository.as_ref()),
            included: if self.source.repository.is_some() {
                &self.source.included
            } else {
                &self.release.source_of.included
            },
            generator: self.source.generator.as_ref().or(self.release.source_of.generator.as_ref()),
            chart: self.release.chart.as_ref(),
            chart_source: self.release.source.as_ref(),
            parent: self.parent.as_ref().or(self.release.parent.as_ref()),
            application_set: self.application_set.as_ref(),
            adopted: self.adopted.clone(),
        }
    }
}

/// The kind of a tool's own resource.
pub(super) fn kind(tool: Tool) -> ThirdPartyKind<'static> {
    ThirdPartyKind { group: tool.group(), version: tool.version(), kind: tool.kind() }
}

/// Reads the resource and everything that belongs to it.
pub(super) async fn gather(
    connection: &Connection,
    tool: Tool,
    namespace: &str,
    name: &str,
) -> anyhow::Result<AdoptionInputs> {
    let Some(live) = connection.third_party_object(kind(tool), namespace, name).await? else {
        is_served(connection, kind(tool)).await?;
        bail!(
            "there is no {} {name} in the namespace {namespace}: name its namespace with -n (kubectl get {} -A shows all)",
            tool.kind(),
            tool.resource()
        );
    };
    let former = AdoptionRecord::read_from(&live)?;
    let mut was = former.as_ref().map_or_else(|| live.clone(), |former| former.original(&live));
    let source = match tool {
        Tool::Flux => gather_source(connection, namespace, &was).await?,
        Tool::ArgoCd | Tool::FluxHelm => SourceInputs::default(),
    };
    let (maker, parent) = match tool {
        Tool::ArgoCd => {
            let maker = find_application_set(connection, namespace, &was).await?;
            (maker, find_parent(connection, namespace, &was).await?)
        }
        Tool::Flux | Tool::FluxHelm => (None, None),
    };
    let release = match tool {
        Tool::FluxHelm => gather_release(connection, namespace, &mut was).await?,
        Tool::ArgoCd | Tool::Flux => ReleaseInputs::default(),
    };
    let adopted = adopted(connection, tool, namespace, &was).await?;
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Ok(AdoptionInputs {
        tool,
        namespace,
        name,
        live,
        original: was,
        record: former,
        source,
        application_set: maker,
        parent,
        release,
        adopted,
    })
}

/// Fails unless the cluster serves the version that is read: other versions have other fields.
pub(super) async fn is_served(connection: &Connection, kind: ThirdPartyKind<'_>) -> anyhow::Result<()> {
    let ThirdPartyKind { group, version, kind } = kind;
    let versions = connection.group_versions(group).await?;
    if versions.is_empty() {
        bail!("the cluster does not serve {kind} ({group}): is it the right cluster?");
    }
    if !versions.iter().any(|served| served == version) {
        let served = versions.join(", ");
        bail!(
            "the cluster serves {group} as {served}, but {} needs {version}: update that tool first",
            with_article(kind)
        );
    }
    Ok(())
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the namespace of a reference, or that of the referring resource if it names none.
pub(super) fn namespace_or<'a>(namespace: &'a str, own: &'a str) -> &'a str {
    if namespace.is_empty() { own } else { namespace }
}

async fn find_application_set(
    connection: &Connection,
    own: &str,
    old: &Value,
) -> anyhow::Result<Option<Value>> {
    let owners = old.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let Some(owner) = owners.into_iter().flatten().find(|owner| owner["kind"] == "ApplicationSet") else {
        return Ok(None);
    };
    let kind = ThirdPartyKind { group: "argoproj.io", version: "v1alpha1", kind: "ApplicationSet" };
    Ok(connection.third_party_object(kind, own, text(owner, "/name")).await?)
}

/// Reads the Application that applies this one, if its chart comes from a chart repository: then
/// the Sync follows the repository of that Application.
async fn find_parent(connection: &Connection, own: &str, old: &Value) -> anyhow::Result<Option<Value>> {
    let sources = [old.pointer("/spec/source/chart"), old.pointer("/spec/sources/0/chart")];
    let Some(name) = parent_application(old).filter(|_| sources.iter().any(Option::is_some)) else {
        return Ok(None);
    };
    Ok(connection.third_party_object(kind(Tool::ArgoCd), own, &name).await?)
}

/// The Syncs of the resources that this one depends on, as far as those were adopted.
async fn adopted(
    connection: &Connection,
    tool: Tool,
    own: &str,
    old: &Value,
) -> anyhow::Result<BTreeMap<(String, String), SyncName>> {
    let mut found = BTreeMap::new();
    let all = old.pointer("/spec/dependsOn").and_then(Value::as_array).filter(|_| tool != Tool::ArgoCd);
    for on in all.into_iter().flatten() {
        let (namespace, name) = (namespace_or(text(on, "/namespace"), own), text(on, "/name"));
        let other = connection.third_party_object(kind(tool), namespace, name).await?;
        let former = other.map(|other| AdoptionRecord::read_from(&other)).transpose()?.flatten();
        if let Some(sync) = former.and_then(|former| former.sync_name()) {
            found.insert((namespace.to_owned(), name.to_owned()), sync);
        }
    }
    Ok(found)
}
