//! Objects of no Sync, which must stay unchanged.
//!
//! In: the path of an object, and the server. Out: true if the object was changed.

use std::cell::Cell;

use moorline::sandbox::Sandbox;
use serde_json::Value;

use super::objects::essence;

/// An object that is nobody's business.
pub(crate) struct Foreign {
    path: String,
    /// The part of it that must stay.
    essence: Value,
    /// The version in which it was as it should be.
    looked: Cell<Option<u64>>,
}

impl Foreign {
    pub(crate) fn new(path: String) -> Self {
        Self { path, essence: Value::Null, looked: Cell::new(None) }
    }

    /// As it is now it is to stay.
    pub(crate) fn know(&mut self, sandbox: &Sandbox) {
        self.essence = self.now(sandbox);
    }

    /// Returns the change of it, if it is not as it was.
    pub(crate) fn touched(&self, sandbox: &Sandbox) -> Option<String> {
        // To read it costs more than all else that is looked at after a step.
        let version = sandbox.revision(&self.path);
        if version.is_some() && version == self.looked.get() {
            return None;
        }
        self.looked.set(version);
        (self.now(sandbox) != self.essence).then(|| format!("{} was touched", self.path))
    }

    fn now(&self, sandbox: &Sandbox) -> Value {
        essence(sandbox.get(&self.path).unwrap_or_default())
    }
}
