//! Requests of the command line about Syncs.
//!
//! In: names and changes.
//! Out: Syncs as the API server has them, and errors that say how to proceed.

mod sync_list;
mod sync_set_calls;

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::busy_server::{busy_wait, while_busy};
use super::connect::Connection;
use moorline_api::{REQUEST_ANNOTATION, SyncName, SyncStatus, WEBHOOK_REQUEST};
use moorline_core::did_you_mean::nearest_name;
pub use sync_list::SyncListEvent;

/// A Sync as read from the API server.
#[derive(Debug, Clone)]
pub struct SyncResource {
    /// Namespace and name.
    pub name: SyncName,
    /// The whole resource.
    pub resource: DynamicObject,
    /// Status; empty if there is none or it cannot be parsed.
    pub status: SyncStatus,
}

/// Error of a request about Syncs.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// There is no Sync of that name.
    #[error("there is no Sync {name} in the namespace {namespace}{}", .near.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default())]
    NoSync {
        /// The requested name.
        name: Box<str>,
        /// The requested namespace.
        namespace: Box<str>,
        /// A similar name that exists.
        near: Option<Box<str>>,
    },
    /// The cluster has no CustomResourceDefinition for Syncs.
    #[error(
        "the cluster does not serve Syncs: install the CustomResourceDefinition (moorline crd | kubectl apply --server-side -f -)"
    )]
    NoDefinition,
    /// The Sync was changed concurrently.
    #[error("the object has been modified, try again: {0}")]
    Changed(Box<str>),
    /// Any other error status.
    #[error("the API server refused the request: {0}")]
    Refused(Box<str>),
    /// There was no response.
    #[error("the API server cannot be reached: {0}")]
    Unreachable(Box<str>),
}

impl From<kube::Error> for OperatorError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 409 => Self::Changed(status.message.into()),
            kube::Error::Api(status) => Self::Refused(status.message.into()),
            other => {
                let mut cause: &dyn std::error::Error = &other;
                while let Some(inner) = cause.source() {
                    cause = inner;
                }
                Self::Unreachable(cause.to_string().into())
            }
        }
    }
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("moorline.dev", "v1alpha1", "Sync"))
}

impl SyncResource {
    pub(super) fn of(whole: DynamicObject) -> Self {
        let metadata = &whole.metadata;
        let (namespace, name) =
            (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default());
        let status = whole.data.get("status").cloned().and_then(|status| serde_json::from_value(status).ok());
        Self { name: SyncName::new(&namespace, &name), resource: whole, status: status.unwrap_or_default() }
    }
}

impl SyncResource {
    fn uid(&self) -> Option<&str> {
        self.resource.metadata.uid.as_deref()
    }
}

impl Connection {
    /// Lists the Syncs of a namespace, or all, ordered by name.
    pub async fn syncs(&self, namespace: Option<&str>) -> Result<Vec<SyncResource>, OperatorError> {
        let api = self.api(namespace);
        let list = while_busy(busy_wait, async || api.list(&ListParams::default()).await).await;
        let list = list
            .map_err(|error| if is_missing(&error) { OperatorError::NoDefinition } else { error.into() })?;
        let mut all: Vec<SyncResource> = list.items.into_iter().map(SyncResource::of).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Reads one Sync.
    pub async fn sync(&self, name: &SyncName) -> Result<SyncResource, OperatorError> {
        let api = self.api(Some(&name.namespace));
        match while_busy(busy_wait, async || api.get(&name.name).await).await {
            Ok(whole) => Ok(SyncResource::of(whole)),
            Err(error) if is_missing(&error) => Err(self.missing(name).await),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes a Sync by a merge patch.
    ///
    /// # Guarantees
    ///
    /// One patch; it is conditional only if `patch` carries a resourceVersion.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the patch was applied.
    ///
    /// # Errors
    ///
    /// [`OperatorError::NoSync`] or [`OperatorError::NoDefinition`] if it does not exist, otherwise
    /// as the API server answers.
    pub async fn change_sync(&self, name: &SyncName, patch: Value) -> Result<SyncResource, OperatorError> {
        let parameters = PatchParams { field_manager: Some("moorline-cli".into()), ..PatchParams::default() };
        match self.api(Some(&name.namespace)).patch(&name.name, &parameters, &Patch::Merge(patch)).await {
            Ok(whole) => Ok(SyncResource::of(whole)),
            Err(error) if is_missing(&error) => Err(self.missing(name).await),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a Sync again; none once it is gone, even if another one has its name.
    pub async fn current_sync(&self, sync: &SyncResource) -> Result<Option<SyncResource>, OperatorError> {
        match self.api(Some(&sync.name.namespace)).get(&sync.name.name).await {
            Ok(whole) => Ok(Some(SyncResource::of(whole)).filter(|now| now.uid() == sync.uid())),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Requests a poll of all Syncs with a matching repository URL; returns their number. Suspended
    /// Syncs are left out, because they poll only at the request of a person.
    ///
    /// # Guarantees
    ///
    /// One merge patch of the request annotation for each Sync. A Sync that cannot be patched keeps
    /// no other from being asked.
    ///
    /// # Cancellation
    ///
    /// A drop keeps the requests that were sent already.
    ///
    /// # Errors
    ///
    /// The error of the list, or the first one of the patches, after all of them.
    pub async fn request_polls(&self, is_called: impl Fn(&str) -> bool) -> Result<usize, OperatorError> {
        let all = self.syncs(None).await?;
        let called = all.iter().filter(|sync| follows(&sync.resource.data, &is_called));
        let (mut asked, mut failed) = (0, None);
        for sync in called {
            let patch = json!({"metadata": {"annotations": {REQUEST_ANNOTATION: format!("{WEBHOOK_REQUEST}{}", jiff::Timestamp::now())}}});
            match self.change_sync(&sync.name, patch).await {
                Ok(_) => asked += 1,
                // It was deleted meanwhile.
                Err(OperatorError::NoSync { .. }) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(asked), Err)
    }

    /// Returns the Events of a Sync, oldest first.
    pub async fn sync_events(&self, sync: &SyncResource) -> Result<Vec<Value>, OperatorError> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("events.k8s.io", "v1", "Event"));
        let events: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &sync.name.namespace, &kind);
        let uid = sync.resource.metadata.uid.as_deref();
        let events = events.list(&ListParams::default()).await?.items.into_iter().map(|event| event.data);
        let mut events: Vec<Value> =
            events.filter(|event| event["regarding"]["uid"].as_str() == uid).collect();
        // Times have one format, so they compare as strings.
        events.sort_by(|a, b| a["eventTime"].as_str().cmp(&b["eventTime"].as_str()));
        Ok(events)
    }

    pub(super) fn api(&self, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource()),
            None => Api::all_with(self.client.clone(), &resource()),
        }
    }

    async fn missing(&self, name: &SyncName) -> OperatorError {
        match self.syncs(Some(&name.namespace)).await {
            Ok(all) => OperatorError::NoSync {
                name: name.name.clone(),
                namespace: name.namespace.clone(),
                near: nearest_name(&name.name, all.iter().map(|it| &*it.name.name)).map(Into::into),
            },
            Err(error) => error,
        }
    }
}

/// True if a Sync that is not suspended has a source or a mount with a matching URL.
fn follows(sync: &Value, is_called: impl Fn(&str) -> bool) -> bool {
    let source = sync.pointer("/spec/source");
    let mounts = source.and_then(|source| source["mounts"].as_array()).into_iter().flatten();
    let mut urls = source.into_iter().chain(mounts).flat_map(|source| {
        ["/git/url", "/oci/url"].map(|place| source.pointer(place).and_then(Value::as_str))
    });
    let is_suspended = sync.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or_default();
    !is_suspended && urls.any(|url| url.is_some_and(&is_called))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_for_every_source_and_mount_of_a_sync_that_is_not_suspended() {
        let is_called = |url: &str| url == "it";
        for (spec, expect) in [
            (json!({"source": {"git": {"url": "it"}}}), true),
            (json!({"source": {"oci": {"url": "it"}}}), true),
            (
                json!({"source": {"git": {"url": "a"}, "mounts": [{"git": {"url": "b"}}, {"oci": {"url": "it"}}]}}),
                true,
            ),
            (json!({"source": {"git": {"url": "other"}}}), false),
            (json!({"source": {"git": {"url": "it"}}, "suspend": false}), true),
            (json!({"source": {"git": {"url": "it"}}, "suspend": true}), false),
            (json!({}), false),
        ] {
            assert_eq!(follows(&json!({"spec": spec}), is_called), expect, "{spec}");
        }
    }
}
