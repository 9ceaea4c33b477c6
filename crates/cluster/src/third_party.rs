//! Reads and writes resources of other tools (Argo CD, Flux), and the Sync that replaces one.
//!
//! In: a kind, a namespace and a name, or a complete Sync.
//! Out: the resource as the API server has it, or one write of it. A write carries the
//! resourceVersion that it is based on, so it never overwrites a concurrent change.

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::busy_server::{busy_wait, while_busy};
use super::connect::Connection;
use crate::sync_client::{OperatorError, SyncResource};

/// Field manager of the command line.
const MANAGER: &str = "moorline-cli";

/// A kind of another tool.
#[derive(Debug, Clone, Copy)]
pub struct ThirdPartyKind<'a> {
    /// The API group.
    pub group: &'a str,
    /// The version in which it is read.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

impl Connection {
    /// Reads a resource of another tool; none if the resource or its kind does not exist.
    pub async fn third_party_object(
        &self,
        kind: ThirdPartyKind<'_>,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, OperatorError> {
        let api = self.foreign_api(kind, namespace);
        match while_busy(busy_wait, async || api.get(name).await).await {
            Ok(found) => Ok(Some(value(&found))),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the served versions of an API group; empty if it is not served.
    pub async fn group_versions(&self, group: &str) -> Result<Vec<String>, OperatorError> {
        let all = while_busy(busy_wait, async || self.client.list_api_groups().await).await?;
        let found = all.groups.into_iter().find(|it| it.name == group);
        Ok(found.map_or_else(Vec::new, |it| it.versions.into_iter().map(|it| it.version).collect()))
    }

    /// Patches a resource of another tool by a merge patch.
    ///
    /// # Guarantees
    ///
    /// The patch carries the expected resourceVersion; a resource that changed since is left alone.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the patch was applied.
    ///
    /// # Errors
    ///
    /// [`OperatorError::Changed`] on a conflict, otherwise as the API server answers.
    pub async fn patch_third_party(
        &self,
        kind: ThirdPartyKind<'_>,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), OperatorError> {
        let parameters = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
        let api = self.foreign_api(kind, namespace);
        while_busy(busy_wait, async || api.patch(name, &parameters, &Patch::Merge(patch)).await).await?;
        Ok(())
    }

    /// Creates a Sync.
    ///
    /// # Guarantees
    ///
    /// An existing Sync is not changed. With `trial` it is a dry run: nothing is written, and the
    /// result is the same.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the Sync was created.
    ///
    /// # Errors
    ///
    /// [`OperatorError::NoDefinition`] if the cluster does not serve Syncs.
    pub async fn create_sync(&self, sync: &Value, trial: bool) -> Result<(), OperatorError> {
        let namespace = sync.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
        let parameters = PostParams { dry_run: trial, field_manager: Some(MANAGER.into()) };
        let sync: DynamicObject = serde_json::from_value(sync.clone())
            .map_err(|error| OperatorError::Refused(error.to_string().into()))?;
        let api = self.foreign_api(SYNC, namespace);
        match while_busy(busy_wait, async || api.create(&parameters, &sync).await).await {
            Ok(_) => Ok(()),
            // The message about a missing namespace names it.
            Err(kube::Error::Api(status)) if status.code == 404 && !status.message.contains("namespaces") => {
                Err(OperatorError::NoDefinition)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a Sync.
    ///
    /// # Guarantees
    ///
    /// Only the uid and resourceVersion that were read are deleted.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the Sync was deleted.
    ///
    /// # Errors
    ///
    /// [`OperatorError::Changed`] if the Sync has changed since.
    pub async fn delete_sync(&self, sync: &SyncResource) -> Result<(), OperatorError> {
        let metadata = &sync.resource.metadata;
        let preconditions =
            Preconditions { uid: metadata.uid.clone(), resource_version: metadata.resource_version.clone() };
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        self.foreign_api(SYNC, &sync.name.namespace).delete(&sync.name.name, &parameters).await?;
        Ok(())
    }

    fn foreign_api(&self, kind: ThirdPartyKind<'_>, namespace: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
        Api::namespaced_with(self.client.clone(), namespace, &ApiResource::from_gvk(&kind))
    }
}

const SYNC: ThirdPartyKind<'static> =
    ThirdPartyKind { group: "moorline.dev", version: "v1alpha1", kind: "Sync" };

/// A value that was deserialized can be serialized.
fn value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
