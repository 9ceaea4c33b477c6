//! The order of before, while the newest spec cannot be applied.
//!
//! In: the Sync as the API server has it, and why its spec is refused. Out: the last order, narrowed by everything that the
//! newest spec stops or narrows. Its objects are kept; nothing is taken up and nothing is deleted for it.

use std::sync::Arc;

use serde_json::Value;

use super::super::farewell::FINALIZER;
use super::super::follow::Order;
use super::Keeper;
use crate::report::Trouble;

impl Keeper {
    /// Keeps the objects of the last order; false if there is none, or if nothing may be written with its identity.
    pub(super) fn keep_narrowed(&mut self, sync: &Value, refused: Option<Trouble>) -> bool {
        let Some(last) = self.orders.as_ref().map(|orders| orders.borrow().clone()) else { return false };
        let spec = sync.get("spec").unwrap_or(&Value::Null);
        let Some(wish) = last.wish.narrowed_by_unsound(spec) else { return false };
        if (&wish, &refused) == (&*last.wish, &last.refused) {
            return true;
        }
        self.generation += 1;
        self.context.neighbours.asks(&self.name, self.generation);
        self.follow(Order { wish: Arc::new(wish), generation: self.generation, refused, ..last });
        true
    }

    /// Takes the finalizer away where a refused spec asks to leave the objects when the Sync is deleted.
    pub(super) async fn orphan_if_asked(&self, sync: &Value) {
        let policy = sync.pointer("/spec/deletionPolicy").and_then(Value::as_str);
        let finalizers = sync.pointer("/metadata/finalizers").and_then(Value::as_array);
        let texts = finalizers.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let (own, others): (Vec<String>, Vec<String>) = texts.partition(|one| one == FINALIZER);
        if policy == Some("Delete") || own.is_empty() {
            return;
        }
        let version = sync.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        if let Err(failure) = self.context.cluster.write_finalizers(&self.name, version, &others).await {
            tracing::debug!(sync = %self.name, %failure, "the finalizer could not be taken away");
        }
    }
}
