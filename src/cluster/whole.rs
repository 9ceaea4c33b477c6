//! Whole objects: the only place where more than metadata is asked for.
//!
//! In: an object's id, or what it should be. Out: its body as it is, as an apply would make it, or as it is without some
//! of its fields. Everything here is for a few objects at a time: who asks keeps to a rate.

use serde_json::{Map, Value};

use super::apply::{APPLY, body, read, unknown};
use super::kinds::Served;
use super::store::object;
use super::wire::{Call, Failure, METADATA, Reply};
use super::{Cluster, query};
use crate::api::SyncName;
use crate::desired::DesiredObject;
use crate::metrics::Class;
use crate::object::{Object, ObjectId};
use crate::observed::{Observed, Standing};

impl Cluster {
    /// The whole object as it is, in a version of its kind or else the one that the server prefers; none if it is not
    /// there.
    pub async fn whole(&self, id: &ObjectId, version: Option<&str>) -> Result<Option<Object>, Failure> {
        let kinds = self.kinds();
        let preferred = kinds.get(&id.group_kind()).map(Served::preferred);
        let version = version.or(preferred).unwrap_or("v1");
        let path = kinds.path(id, version).ok_or_else(|| unknown(id))?;
        match self.0.wire.send(Call::new(Class::Verify, "get", path)).await {
            Ok(reply) => read_whole(id, &reply).map(Some),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The whole object as a forced apply would make it. Nothing is written.
    pub async fn would_be(&self, wanted: &DesiredObject, owner: &SyncName) -> Result<Object, Failure> {
        let path = self.kinds().path(&wanted.id, &wanted.version).ok_or_else(|| unknown(&wanted.id))?;
        let manager = query(&owner.manager());
        let uri = format!("{path}?fieldManager={manager}&fieldValidation=Strict&force=true&dryRun=All");
        let call = Call::new(Class::Verify, "patch", uri).content(APPLY, body(wanted, owner, &[])?);
        let _turn = self.0.gate.enter().await.ok_or(Failure::NotLeading)?;
        let reply = self.0.wire.send(call).await?;
        read_whole(&wanted.id, &reply)
    }

    /// Records what a comparison of the live object found, and gives what is known of the object then.
    pub fn compared(&self, owner: &SyncName, live: &Object, fields: Vec<String>) -> Option<Observed> {
        self.0.store.compared(owner, live, fields)
    }

    /// Objects of a Sync that are gone although we did not delete them, as they were known last. Each is told once.
    pub fn lost(&self, owner: &SyncName) -> Vec<(ObjectId, Observed)> {
        self.0.store.lost(owner)
    }

    /// Changes an object by a JSON patch that removes what is not ours.
    pub async fn remove_fields(&self, id: &ObjectId, owner: &SyncName, patch: &Value) -> Result<(), Failure> {
        let kinds = self.kinds();
        let version = kinds.get(&id.group_kind()).map_or("v1", Served::preferred);
        let path = kinds.path(id, version).ok_or_else(|| unknown(id))?;
        let uri = format!("{path}?fieldManager={}", query(&owner.manager()));
        let content =
            serde_json::to_vec(patch).map_err(|error| Failure::BadAnswer(error.to_string().into()))?;
        // The patch was made for one version; if that is the one that is known, what is ours is as it was.
        let guard = patch.pointer("/0/value").and_then(Value::as_str).unwrap_or_default().to_owned();
        let verified = self.observed(owner, |set| {
            set.get(id).is_some_and(|it| it.standing == Standing::Verified && *it.resource_version == *guard)
        });
        let writing = self.0.store.writing(owner, id);
        let call = Call::new(Class::Object, "patch", uri)
            .accept(METADATA)
            .content("application/json-patch+json", content);
        let removed = self.write(call, writing, |reply, writing| {
            let object = read(id, &reply.body)?;
            match verified {
                true => writing.applied(&object),
                false => writing.refused(),
            }
            Ok(())
        });
        removed.await.map(drop)
    }
}

fn read_whole(id: &ObjectId, reply: &Reply) -> Result<Object, Failure> {
    let body: Map<String, Value> =
        serde_json::from_slice(&reply.body).map_err(|error| Failure::BadAnswer(error.to_string().into()))?;
    object(&id.group_kind(), "", body).ok_or_else(|| Failure::BadAnswer("no metadata".into()))
}
