//! Writes of the server's own controllers.
//!
//! In: an object, and the change of its status.
//! Out: the stored object; no write if nothing changes.

use serde_json::Value;

use super::Target;
use crate::ownership::{self, InVersion, Writer};
use crate::refusal::Refusal;
use crate::state::State;

impl State {
    /// Writes an object in the name of a controller.
    pub(crate) fn write_as(
        &mut self,
        manager: &str,
        target: &Target,
        before: &Value,
        mut body: Value,
    ) -> Result<Value, Refusal> {
        let (now, api_version) = (self.clock.text(), target.api_version());
        let writer = Writer {
            manager,
            api_version: &api_version,
            subresource: "",
            now: &now,
            reset: &[],
            in_version: &|_, _| InVersion::Same,
        };
        ownership::update(&target.served().schema, Some(before), &mut body, &writer);
        self.store_as_kept(target, body)
    }

    /// Changes the status of an object in the name of a controller.
    pub(crate) fn write_status(&mut self, target: &Target, manager: &str, change: impl FnOnce(&mut Value)) {
        let Some(before) = self.store.get(&target.resource.home, &target.key).map(|stored| stored.body())
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
        ownership::update(&target.served().schema, Some(&before), &mut body, &writer);
        if let Value::Object(mut body) = body {
            self.put(&target.resource.home, target.key.clone(), &mut body);
        }
    }
}
