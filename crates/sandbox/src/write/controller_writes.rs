//! Writes of the server's own controllers.
//!
//! In: an object, and the change of its status.
//! Out: the stored object; no write if nothing changes.

use serde_json::Value;

use super::RequestTarget;
use crate::managed_fields;
use crate::managed_fields::{InVersion, Writer};
use crate::state::ServerState;
use crate::status_error::StatusError;

impl ServerState {
    /// Writes an object in the name of a controller.
    pub(crate) fn write_as(
        &mut self,
        manager: &str,
        target: &RequestTarget,
        before: &Value,
        mut body: Value,
    ) -> Result<Value, StatusError> {
        let (now, api_version) = (self.clock.text(), target.api_version());
        let writer = Writer {
            manager,
            api_version: &api_version,
            subresource: "",
            now: &now,
            reset: &[],
            in_version: &|_, _| InVersion::Same,
        };
        managed_fields::update(&target.served().schema, Some(before), &mut body, &writer);
        self.store_or_remove(target, body)
    }

    /// Changes the status of an object in the name of a controller.
    pub(crate) fn write_status(
        &mut self,
        target: &RequestTarget,
        manager: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let Some(before) =
            self.store.get(&target.resource.storage_key, &target.key).map(|stored| stored.body())
        else {
            return;
        };
        let mut body = before.clone();
        if !body["status"].is_object() {
            body["status"] = Value::Object(Default::default());
        }
        change(&mut body["status"]);
        if body == before {
            return;
        }
        let (now, api_version) = (self.clock.text(), target.api_version());
        let writer = Writer {
            manager,
            api_version: &api_version,
            subresource: "status",
            now: &now,
            reset: &[&["spec"]],
            in_version: &|_, _| InVersion::Same,
        };
        managed_fields::update(&target.served().schema, Some(&before), &mut body, &writer);
        if let Value::Object(mut body) = body {
            self.put(&target.resource.storage_key, target.key.clone(), &mut body);
        }
    }
}
