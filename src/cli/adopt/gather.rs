//! Reads the resource to adopt and everything that belongs to it.
//!
//! In: a name. Out: [`AdoptionInputs`]: an Application with the ApplicationSet that generates it,
//! or a Kustomization with its GitRepository and the Syncs of its dependencies. Credentials are not
//! read.

use std::collections::BTreeMap;

use anyhow::bail;
use serde_json::Value;

use crate::adopt::{Former, Old, Tool};
use crate::api::SyncName;
use crate::cluster::{Connection, Foreign};
use crate::grammar::with_article;

/// An Application or a Kustomization, and the resources that belong to it.
pub(super) struct Gathered {
    pub(super) tool: Tool,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The resource in its current state.
    pub(super) live: Value,
    /// The resource before it was adopted.
    pub(super) was: Value,
    /// The record that an earlier adoption left on the resource.
    pub(super) former: Option<Former>,
    repository: Option<Value>,
    maker: Option<Value>,
    adopted: BTreeMap<(String, String), SyncName>,
}

impl Gathered {
    /// The kind, namespace and name, for messages.
    pub(super) fn called(&self) -> String {
        format!("the {} {}/{}", self.tool.kind(), self.namespace, self.name)
    }

    /// Name of the ApplicationSet that generates the Application.
    pub(super) fn maker(&self) -> Option<&str> {
        self.maker.as_ref()?.pointer("/metadata/name")?.as_str()
    }

    pub(super) fn old(&self) -> Old<'_> {
        Old {
            tool: self.tool,
            body: &self.was,
            repository: self.repository.as_ref(),
            maker: self.maker.as_ref(),
            adopted: self.adopted.clone(),
        }
    }
}

/// The kind of a tool's own resource.
pub(super) fn kind(tool: Tool) -> Foreign<'static> {
    Foreign { group: tool.group(), version: tool.version(), kind: tool.kind() }
}

/// Reads the resource and everything that belongs to it.
pub(super) async fn gather(
    connection: &Connection,
    tool: Tool,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Gathered> {
    let Some(live) = connection.foreign(kind(tool), namespace, name).await? else {
        is_served(connection, kind(tool)).await?;
        bail!(
            "there is no {} {name} in the namespace {namespace}: name its namespace with -n (kubectl get {} -A shows all)",
            tool.kind(),
            tool.resource()
        );
    };
    let former = Former::of(&live)?;
    let was = former.as_ref().map_or_else(|| live.clone(), |former| former.as_it_was(&live));
    let (repository, maker) = match tool {
        Tool::Flux => (repository(connection, namespace, &was).await?, None),
        Tool::ArgoCd => (None, maker(connection, namespace, &was).await?),
    };
    let adopted = adopted(connection, tool, namespace, &was).await?;
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Ok(Gathered { tool, namespace, name, live, was, former, repository, maker, adopted })
}

/// Fails unless the cluster serves the version that is read: other versions have other fields.
async fn is_served(connection: &Connection, kind: Foreign<'_>) -> anyhow::Result<()> {
    let Foreign { group, version, kind } = kind;
    let versions = connection.versions(group).await?;
    if versions.is_empty() {
        bail!("the cluster has no {kind} ({group}): is it the right one?");
    }
    if !versions.iter().any(|served| served == version) {
        let served = versions.join(", ");
        bail!(
            "the cluster serves {group} as {served}, and {} is read as {version}: update the tool that has it first",
            with_article(kind)
        );
    }
    Ok(())
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the namespace of a reference, or that of the referring resource if it names none.
fn or<'a>(namespace: &'a str, own: &'a str) -> &'a str {
    if namespace.is_empty() { own } else { namespace }
}

async fn repository(connection: &Connection, own: &str, old: &Value) -> anyhow::Result<Option<Value>> {
    if text(old, "/spec/sourceRef/kind") != "GitRepository" {
        return Ok(None);
    }
    let kind = Foreign { group: "source.toolkit.fluxcd.io", version: "v1", kind: "GitRepository" };
    let namespace = or(text(old, "/spec/sourceRef/namespace"), own);
    let found = connection.foreign(kind, namespace, text(old, "/spec/sourceRef/name")).await?;
    if found.is_none() {
        is_served(connection, kind).await?;
    }
    Ok(found)
}

async fn maker(connection: &Connection, own: &str, old: &Value) -> anyhow::Result<Option<Value>> {
    let owners = old.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let Some(owner) = owners.into_iter().flatten().find(|owner| owner["kind"] == "ApplicationSet") else {
        return Ok(None);
    };
    let kind = Foreign { group: "argoproj.io", version: "v1alpha1", kind: "ApplicationSet" };
    Ok(connection.foreign(kind, own, text(owner, "/name")).await?)
}

/// The Syncs of the Kustomizations that this one depends on, as far as those were adopted.
async fn adopted(
    connection: &Connection,
    tool: Tool,
    own: &str,
    old: &Value,
) -> anyhow::Result<BTreeMap<(String, String), SyncName>> {
    let mut found = BTreeMap::new();
    let all = old.pointer("/spec/dependsOn").and_then(Value::as_array).filter(|_| tool == Tool::Flux);
    for on in all.into_iter().flatten() {
        let (namespace, name) = (or(text(on, "/namespace"), own), text(on, "/name"));
        let other = connection.foreign(kind(tool), namespace, name).await?;
        let former = other.map(|other| Former::of(&other)).transpose()?.flatten();
        if let Some(sync) = former.and_then(|former| former.sync_name()) {
            found.insert((namespace.to_owned(), name.to_owned()), sync);
        }
    }
    Ok(found)
}
