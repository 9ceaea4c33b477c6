//! Calls of webhooks that a standby passes on to the leader, as an annotation on SyncSets.

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use moorline_api::{REQUEST_ANNOTATION, SyncSetSpec, WEBHOOK_REQUEST};
use serde_json::json;

use super::{OperatorError, is_missing};
use crate::connect::Connection;

impl Connection {
    /// Requests a poll of all SyncSets with such a spec; returns their number. A suspended SyncSet
    /// polls nothing.
    ///
    /// # Guarantees
    ///
    /// One merge patch of the request annotation for each SyncSet. A SyncSet that cannot be patched
    /// keeps no other from being asked.
    ///
    /// # Cancellation
    ///
    /// A drop keeps the requests that were sent already.
    ///
    /// # Errors
    ///
    /// The error of the list, or the first one of the patches, after all of them. A cluster without
    /// the definition has no SyncSets.
    pub async fn request_set_polls(
        &self,
        is_called: impl Fn(&SyncSetSpec) -> bool,
    ) -> Result<usize, OperatorError> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("moorline.dev", "v1alpha1", "SyncSet"));
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let sets = match all.list(&ListParams::default()).await {
            Ok(list) => list.items,
            Err(error) if is_missing(&error) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let (mut asked, mut failed) = (0, None);
        for set in sets.into_iter().filter(|set| is_served(set, &is_called)) {
            let metadata = set.metadata;
            let (namespace, name) =
                (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
            let request = format!("{WEBHOOK_REQUEST}{}", jiff::Timestamp::now());
            let patch = json!({"metadata": {"annotations": {REQUEST_ANNOTATION: request}}});
            let parameters =
                PatchParams { field_manager: Some("moorline-cli".into()), ..PatchParams::default() };
            let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &kind);
            match api.patch(&name, &parameters, &Patch::Merge(patch)).await {
                Ok(_) => asked += 1,
                // It was deleted meanwhile.
                Err(error) if is_missing(&error) => {}
                Err(error) => failed = failed.or(Some(error.into())),
            }
        }
        failed.map_or(Ok(asked), Err)
    }
}

/// True for a set that is not suspended and has such a spec. A spec that cannot be read is served
/// by nobody.
fn is_served(set: &DynamicObject, is_called: impl Fn(&SyncSetSpec) -> bool) -> bool {
    let spec = set.data.get("spec").cloned().and_then(|spec| serde_json::from_value(spec).ok());
    spec.is_some_and(|spec: SyncSetSpec| !spec.suspend && is_called(&spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspended_set_and_one_that_cannot_be_read_are_not_asked() {
        let spec = |suspend: bool| {
            json!({"generators": [{"list": {"elements": [{"name": "a"}]}}], "name": "'a'", "suspend": suspend,
                "template": {"spec": {"source": {}}}})
        };
        for (spec, is_called, expect) in [
            (spec(false), true, true),
            (spec(false), false, false),
            (spec(true), true, false),
            (json!({"generators": 1}), true, false),
        ] {
            let set = json!({"metadata": {"name": "apps"}, "spec": spec});
            let set: DynamicObject = serde_json::from_value(set).unwrap();
            assert_eq!(is_served(&set, |_| is_called), expect, "{set:?}");
        }
    }
}
