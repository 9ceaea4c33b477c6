//! Whole objects: the only place where more than metadata is asked for.
//!
//! In: an object's id, or what it should be. Out: its body as it is, as an apply would make it, or as it is after a
//! patch of some fields. Everything here is for a few objects at a time: who asks keeps to a rate.

use serde_json::Value;

use super::apply::{APPLY, read, unknown};
use super::kinds::Served;
use super::store::object;
use super::wire::{Call, Failure, METADATA, Reply};
use super::{Cluster, query};
use moorline_api::SyncName;
use moorline_core::object::{Object, ObjectId};
use moorline_engine::desired::DesiredObject;
use moorline_engine::observed::{Observed, Standing};
use moorline_metrics::Class;

impl Cluster {
    /// The whole object as it is, in a version of its kind or else the one that the server prefers; none if it is not
    /// there.
    pub async fn whole(&self, id: &ObjectId, version: Option<&str>) -> Result<Option<Object>, Failure> {
        match self.0.wire.send(Call::new(Class::Verify, "get", self.path_to(id, version)?)).await {
            Ok(reply) => read_whole(id, &reply).map(Some),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The whole object as it is in this version or a later one, for its status. The server has that at hand, and asks its
    /// store nothing.
    pub(super) async fn since(&self, id: &ObjectId, version: &str) -> Result<Option<Object>, Failure> {
        let path = format!("{}?resourceVersion={}", self.path_to(id, None)?, query(version));
        match self.0.wire.send(Call::new(Class::Verify, "get", path)).await {
            Ok(reply) => read_whole(id, &reply).map(Some),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The whole object as a forced apply without these places would make it. Nothing is written.
    pub async fn would_be(
        &self,
        wanted: &DesiredObject,
        owner: &SyncName,
        less: &[Box<str>],
    ) -> Result<Object, Failure> {
        let path = self.path_to(&wanted.id, Some(&wanted.version))?;
        let manager = query(&owner.manager());
        let uri = format!("{path}?fieldManager={manager}&fieldValidation=Strict&force=true&dryRun=All");
        let call = Call::new(Class::Verify, "patch", uri).content(APPLY, self.body(wanted, owner, less)?);
        let reply = self.send(call).await?;
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

    /// Changes an object by a JSON patch, whose first step tests the resourceVersion that it was made for.
    pub async fn patch(
        &self,
        id: &ObjectId,
        version: Option<&str>,
        owner: &SyncName,
        steps: &Value,
    ) -> Result<(), Failure> {
        self.patch_as(id, version, (owner, &owner.manager()), steps).await
    }

    /// The same under the name of another field manager, who owns then what is set.
    pub async fn patch_as(
        &self,
        id: &ObjectId,
        version: Option<&str>,
        (owner, manager): (&SyncName, &str),
        steps: &Value,
    ) -> Result<(), Failure> {
        let uri = format!("{}?fieldManager={}", self.path_to(id, version)?, query(manager));
        // If that is the version that is known, what is ours is as it was, and the reply is as good as an apply's.
        let guard = steps.pointer("/0/value").and_then(Value::as_str).unwrap_or_default();
        let is_known = self.observed(owner, |set| {
            set.get(id).is_some_and(|it| it.standing == Standing::Verified && *it.resource_version == *guard)
        });
        let writing = self.0.store.writing(owner, id);
        let call = Call::new(Class::Object, "patch", uri)
            .accept(METADATA)
            .content("application/json-patch+json", steps.to_string().into_bytes());
        let done = self.write(call, writing, |reply, writing| {
            match is_known {
                true => writing.applied(&read(id, &reply.body)?),
                false => writing.refused(),
            }
            Ok(())
        });
        done.await.map(drop)
    }

    /// The path of an object in a version of its kind, or else in the one that the server prefers.
    fn path_to(&self, id: &ObjectId, version: Option<&str>) -> Result<String, Failure> {
        let kinds = self.kinds();
        let preferred = kinds.get(&id.group_kind()).map(Served::preferred);
        kinds.path(id, version.or(preferred).unwrap_or("v1")).ok_or_else(|| unknown(id))
    }
}

fn read_whole(id: &ObjectId, reply: &Reply) -> Result<Object, Failure> {
    object(&id.group_kind(), "", reply.json()?).ok_or_else(|| Failure::BadAnswer("no metadata".into()))
}
