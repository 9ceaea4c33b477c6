//! Verbs on Syncs that a Sync with other Syncs in its repository needs.
//!
//! The policy of the chart allows some changes of a Sync only with a verb of their own, so `patch`
//! is not enough for manifests that make them.

use serde_json::{Map, Value};

use super::{Permissions, PolicyRule};
use crate::desired::DesiredSet;
use moorline_core::object::ObjectId;

const GROUP: &str = "moorline.dev";

/// Annotations that take a verb, in the order of the policy.
const ANNOTATIONS: [(&str, &str); 8] = [
    ("requested-at", "sync"),
    ("approve", "approve"),
    ("override", "override"),
    ("override-by", "override"),
    ("override-reason", "override"),
    ("hold-revision", "rollback"),
    ("hold-by", "rollback"),
    ("hold-reason", "rollback"),
];

/// Adds the verbs for the Syncs among the objects.
pub(super) fn add_sync_verbs(rights: &mut Permissions, desired: &DesiredSet) {
    let is_sync = |id: &ObjectId| (id.group(), id.kind()) == (GROUP, "Sync");
    for object in desired.objects().iter().filter(|object| is_sync(&object.id)) {
        let verbs = verbs(&object.body());
        if !verbs.is_empty() {
            let rule = PolicyRule::for_resource(GROUP, "syncs", &verbs).with_names([object.id.name()]);
            rights.add(&object.id, object.scope, rule);
        }
    }
}

/// Returns the verbs for the fields and annotations that a manifest sets.
fn verbs(body: &Map<String, Value>) -> Vec<&'static str> {
    let annotations = body.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let is_annotated =
        |name: &str| annotations.is_some_and(|all| all.get(format!("{GROUP}/{name}")).is_some());
    let annotated = ANNOTATIONS.iter().filter(|(name, _)| is_annotated(name)).map(|(_, verb)| *verb);
    let suspends = body.get("spec").is_some_and(|spec| spec.get("suspend").is_some());
    annotated.chain(suspends.then_some("suspend")).collect()
}
