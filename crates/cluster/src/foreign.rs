//! Resources of other tools, and the Sync that takes the place of one.
//!
//! In: a kind, a namespace and a name, or a whole Sync. Out: the resource as the API server has it, or one write of it. A write
//! names the version that it was made from, so that nothing of somebody else's is overwritten.

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::connect::Connection;
use super::operator::{OperatorError, Seen};

/// As whom the command line writes.
const MANAGER: &str = "moorline-cli";

/// A kind of another tool.
#[derive(Debug, Clone, Copy)]
pub struct Foreign<'a> {
    /// The API group.
    pub group: &'a str,
    /// The version in which it is read.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

impl Connection {
    /// A resource of another tool; none if it or its kind is not there.
    pub async fn foreign(
        &self,
        kind: Foreign<'_>,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, OperatorError> {
        match self.foreign_api(kind, namespace).get(name).await {
            Ok(found) => Ok(Some(value(&found))),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The versions in which the API server has a group; none if it does not have it.
    pub async fn versions(&self, group: &str) -> Result<Vec<String>, OperatorError> {
        let all = self.client.list_api_groups().await?;
        let found = all.groups.into_iter().find(|it| it.name == group);
        Ok(found.map_or_else(Vec::new, |it| it.versions.into_iter().map(|it| it.version).collect()))
    }

    /// Changes a resource of another tool by a merge patch, which says in which version it has to be.
    pub async fn change_foreign(
        &self,
        kind: Foreign<'_>,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), OperatorError> {
        let parameters = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
        let api = self.foreign_api(kind, namespace);
        api.patch(name, &parameters, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Creates a Sync. Nothing is written to one that is there. With `trial`, nothing is written at all, and the answer is
    /// the same.
    pub async fn create_sync(&self, sync: &Value, trial: bool) -> Result<(), OperatorError> {
        let namespace = sync.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
        let parameters = PostParams { dry_run: trial, field_manager: Some(MANAGER.into()) };
        let sync: DynamicObject = serde_json::from_value(sync.clone())
            .map_err(|error| OperatorError::Refused(error.to_string().into()))?;
        match self.foreign_api(SYNC, namespace).create(&parameters, &sync).await {
            Ok(_) => Ok(()),
            // The answer to a namespace that is missing names it.
            Err(kube::Error::Api(status)) if status.code == 404 && !status.message.contains("namespaces") => {
                Err(OperatorError::NoDefinition)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a Sync, if it is still as it was seen.
    pub async fn delete_sync(&self, sync: &Seen) -> Result<(), OperatorError> {
        let metadata = &sync.whole.metadata;
        let preconditions =
            Preconditions { uid: metadata.uid.clone(), resource_version: metadata.resource_version.clone() };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        self.foreign_api(SYNC, &sync.name.namespace).delete(&sync.name.name, &parameters).await?;
        Ok(())
    }

    fn foreign_api(&self, kind: Foreign<'_>, namespace: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
        Api::namespaced_with(self.client.clone(), namespace, &ApiResource::from_gvk(&kind))
    }
}

const SYNC: Foreign<'static> = Foreign { group: "moorline.dev", version: "v1alpha1", kind: "Sync" };

/// What can be read can be written.
fn value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
