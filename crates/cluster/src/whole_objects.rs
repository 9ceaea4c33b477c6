//! Requests for whole objects; all others use metadata only.
//!
//! In: an object's id, or its desired state.
//! Out: its body as it is, as an apply would make it, or after a patch of some fields. Callers
//! limit their rate: all of this is for few objects at a time.

use serde_json::Value;

use super::apply::{APPLY, read, unknown};
use super::kinds::ServedKind;
use super::object_requests::ObjectRequests;
use super::query;
use super::store::object;
use crate::api_client::{ApiRequest, ApiResponse, METADATA};
use crate::api_error::ApiError;
use crate::change_log::{Target, WriteKind};
use moorline_api::SyncName;
use moorline_core::object::{Object, ObjectId};
use moorline_engine::desired::DesiredObject;
use moorline_engine::observed::{Observed, Verification};
use moorline_metrics::RequestClass;

impl ObjectRequests<'_> {
    /// Reads a whole object, in a given version of its kind or else the preferred one; none if it
    /// does not exist.
    pub async fn read_whole(&self, id: &ObjectId, version: Option<&str>) -> Result<Option<Object>, ApiError> {
        match self
            .0
            .0
            .wire
            .send(ApiRequest::new(RequestClass::Verify, "get", self.path_to(id, version)?))
            .await
        {
            Ok(reply) => read_whole(id, &reply).map(Some),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads a whole object at this resourceVersion or a later one, for its status. The server
    /// answers from its cache, without a read from etcd.
    pub(super) async fn since(&self, id: &ObjectId, version: &str) -> Result<Option<Object>, ApiError> {
        let path = format!("{}?resourceVersion={}", self.path_to(id, None)?, query(version));
        match self.0.0.wire.send(ApiRequest::new(RequestClass::Verify, "get", path)).await {
            Ok(reply) => read_whole(id, &reply).map(Some),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the whole object as a forced apply without some paths would make it. A dry run:
    /// nothing is written.
    pub async fn dry_run_apply(
        &self,
        wanted: &DesiredObject,
        owner: &SyncName,
        less: &[Box<str>],
    ) -> Result<Object, ApiError> {
        let path = self.path_to(&wanted.id, Some(&wanted.version))?;
        let manager = query(&owner.manager());
        let uri = format!("{path}?fieldManager={manager}&fieldValidation=Strict&force=true&dryRun=All");
        let call = ApiRequest::new(RequestClass::Verify, "patch", uri)
            .content(APPLY, self.0.body(wanted, owner, less).to_string().into_bytes());
        let reply = self.0.send_unlisted(call).await?;
        read_whole(&wanted.id, &reply)
    }

    /// Records the result of a comparison of the live object, and returns its new entry.
    pub fn record_comparison(
        &self,
        owner: &SyncName,
        live: &Object,
        fields: Vec<String>,
    ) -> Option<Observed> {
        self.0.0.store.compared(owner, live, fields)
    }

    /// Takes the objects of a Sync that were deleted by another manager, with their last entries.
    pub fn take_lost(&self, owner: &SyncName) -> Vec<(ObjectId, Observed)> {
        self.0.0.store.lost(owner)
    }

    /// Changes an object by a JSON patch.
    ///
    /// # Guarantees
    ///
    /// The first step tests the resourceVersion that the patch was made for, so a changed object is
    /// left alone.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the object was patched; it is verified again.
    ///
    /// # Errors
    ///
    /// Any [`ApiError`].
    pub async fn patch(
        &self,
        id: &ObjectId,
        version: Option<&str>,
        owner: &SyncName,
        steps: &Value,
    ) -> Result<(), ApiError> {
        self.patch_as(id, version, (owner, &owner.manager()), steps).await
    }

    /// Changes an object by a JSON patch under another field manager, which then owns the fields
    /// that are set. See [`Self::patch`].
    pub async fn patch_as(
        &self,
        id: &ObjectId,
        version: Option<&str>,
        (owner, manager): (&SyncName, &str),
        steps: &Value,
    ) -> Result<(), ApiError> {
        let uri = format!("{}?fieldManager={}", self.path_to(id, version)?, query(manager));
        // If the tested version is the verified one, our fields are unchanged, and the response is
        // as good as that of an apply.
        let guard = steps.pointer("/0/value").and_then(Value::as_str).unwrap_or_default();
        let is_known = self.0.read_observed(owner, |set| {
            set.get(id)
                .is_some_and(|it| it.verification == Verification::Verified && *it.resource_version == *guard)
        });
        let writing = self.0.0.store.writing(owner, id);
        let call = ApiRequest::new(RequestClass::Object, "patch", uri)
            .accept(METADATA)
            .content("application/json-patch+json", steps.to_string().into_bytes());
        let target = Target { id, owner: Some(owner), kind: WriteKind::Patch };
        let done = self.0.write((call, target), writing, |reply, writing| {
            match is_known {
                true => writing.finish_applied(&read(id, &reply.body)?),
                false => writing.finish_refused(),
            }
            Ok(())
        });
        done.await.map(drop)
    }

    /// Path of an object in a given version of its kind, or else in the preferred one.
    fn path_to(&self, id: &ObjectId, version: Option<&str>) -> Result<String, ApiError> {
        let kinds = self.0.kinds();
        let preferred = kinds.get(&id.group_kind()).map(ServedKind::preferred);
        kinds.path(id, version.or(preferred).unwrap_or("v1")).ok_or_else(|| unknown(id))
    }
}

fn read_whole(id: &ObjectId, reply: &ApiResponse) -> Result<Object, ApiError> {
    object(&id.group_kind(), "", reply.json()?).ok_or_else(|| ApiError::InvalidResponse("no metadata".into()))
}
