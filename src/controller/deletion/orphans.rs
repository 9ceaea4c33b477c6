//! Reports the objects that stay in the cluster when their Sync is deleted.
//!
//! In: the objects that were not deleted, each with a reason.
//! Out: one Event on the Sync with as many names as it can hold, and one log line for each object.
//!
//! Once the Sync is gone, these are the only records of the objects.

use serde_json::{Value, json};

use crate::api::{EventReason, SyncName};
use crate::cluster::Cluster;
use crate::controller::Context;
use crate::controller::status::events::event;
use crate::object::ObjectId;
use crate::observed::Ownership;

/// Most bytes of names in the Event; Kubernetes allows 1,024 in all.
const MAX_NAMES: usize = 800;

/// Namespace of Events about cluster-scoped objects.
const EVENTS_OF_NAMESPACES: &str = "default";

/// Objects that stay, each with a reason in CamelCase.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    pub(crate) objects: Vec<(ObjectId, &'static str)>,
    /// Reason for deleting nothing at all.
    pub(crate) all: Option<&'static str>,
}

impl Orphans {
    /// Keeps all objects. Only cached objects are named; after a start that may be none.
    pub(crate) fn all(cluster: Option<&Cluster>, name: &SyncName, why: &'static str) -> Self {
        let known = cluster.map(|cluster| {
            cluster.read_observed(name, |observed| {
                let ours =
                    observed.iter().filter(|(_, seen)| seen.ownership == Ownership::Ours && !seen.controlled);
                ours.map(|(id, _)| (id.clone(), why)).collect()
            })
        });
        Self { objects: known.unwrap_or_default(), all: Some(why) }
    }

    /// Returns the sentence for the Event; `None` if nothing stays.
    fn note(&self) -> Option<String> {
        let mut named = String::new();
        let mut count = 0;
        for (id, why) in &self.objects {
            let one = format!("{id} ({why})");
            if count > 0 && named.len() + one.len() > MAX_NAMES {
                break;
            }
            named.push_str(if count == 0 { "" } else { ", " });
            named.push_str(&one);
            count += 1;
        }
        match (self.objects.len(), self.all) {
            (0, None) => None,
            (0, Some(why)) => Some(format!("its objects were not deleted ({why})")),
            (all, _) => {
                let more = match all - count {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let stay = if all == 1 {
                    "1 object was not deleted".to_owned()
                } else {
                    format!("{all} objects were not deleted")
                };
                Some(format!("{stay}: {named}{more}"))
            }
        }
    }

    /// Writes the log lines and the Event. An Event that cannot be written is not retried.
    pub(crate) async fn tell(&self, context: &Context, name: &SyncName, sync: &Value) {
        let Some(mut note) = self.note() else { return };
        tracing::warn!(sync = %name, "{note}");
        for (id, why) in &self.objects {
            tracing::info!(sync = %name, object = %id, reason = why, "the object was not deleted");
        }
        if !context.reporting.events.take(&name.namespace) {
            return;
        }
        let uid = sync.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
        let reason = EventReason::ObjectsOrphaned.to_string();
        let (mut place, mut regarding) = (&*name.namespace, None);
        if self.all == Some("NamespaceTerminating") {
            // No Event can be created in a terminating namespace, so an Event about it is created
            // elsewhere.
            regarding = Some(json!({"apiVersion": "v1", "kind": "Namespace", "name": place}));
            (place, note) = (EVENTS_OF_NAMESPACES, format!("Sync {name}: {note}"));
        }
        let mut event = event(name, uid, "Warning", &reason, &note);
        event["regarding"] = regarding.unwrap_or_else(|| event["regarding"].take());
        // A retried deletion reports this once: the second Event of this name is refused.
        event["metadata"] = json!({"name": format!("moorline-{uid}-orphans"), "namespace": place});
        if let Err(failure) = context.cluster.syncs().write_event(event, place).await {
            tracing::debug!(sync = %name, %failure, "an Event could not be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_names_what_it_can_hold() {
        let objects = |count: usize| {
            let id = |at| ObjectId::parse(&format!("/ConfigMap|shop/a-{at}")).unwrap();
            Orphans { objects: (0..count).map(|at| (id(at), "Protected")).collect(), all: None }
        };
        assert_eq!(objects(0).note(), None);
        assert_eq!(objects(1).note().unwrap(), "1 object was not deleted: ConfigMap shop/a-0 (Protected)");
        let many = objects(100).note().unwrap();
        assert!(many.starts_with("100 objects were not deleted: ConfigMap shop/a-0 (Protected), "), "{many}");
        assert!(many.contains("ConfigMap shop/a-20 (Protected)") && many.len() < 1024, "{many}");
        let named = many.matches("(Protected)").count();
        assert!(many.ends_with(&format!(" and {} more", 100 - named)), "{many}");
        let long = ObjectId::parse(&format!("/ConfigMap|{}/{}", "n".repeat(63), "a".repeat(253))).unwrap();
        let one = Orphans { objects: vec![(long, "Protected")], all: None };
        assert!(one.note().unwrap().len() < 1024);
        let unknown = Orphans { objects: Vec::new(), all: Some("Suspended") };
        assert_eq!(unknown.note().unwrap(), "its objects were not deleted (Suspended)");
    }
}
