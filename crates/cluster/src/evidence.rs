//! Judges the evidence about listed objects, so that a restart costs what changed.
//!
//! In: the desired objects of a Sync, and the store with the first lists after a start.
//! Out: in the store, the objects that are believed without a request. All others keep their
//! suspicion, by which they are ordered for verification.

use std::sync::Arc;

use serde_json::Value;

use super::Cluster;
use crate::cancellation::CancelFlag;
use moorline_api::SyncName;
use moorline_core::object::ObjectId;
use moorline_engine::desired::DesiredSet;
use moorline_engine::observed::{Evidence, ObservedSet, Ownership, Suspicion, Verification};

/// Maximum number of objects that are judged before a pause for other work of the process.
const AT_A_TIME: usize = 256;

/// Evidence about an object, judged.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) id: ObjectId,
    pub(super) evidence: Arc<Evidence>,
    pub(super) suspicion: Option<Suspicion>,
}

/// Judges all evidence that was not judged yet.
pub async fn judge_evidence(cluster: &Cluster, owner: &SyncName, desired: &DesiredSet, stop: &CancelFlag) {
    let open = cluster.read_observed(owner, |set| unjudged(desired, set));
    let mut believed = 0;
    for some in open.chunks(AT_A_TIME) {
        if stop.is_cancelled() {
            break;
        }
        let judged = some.iter().filter_map(|(id, evidence)| {
            let Value::Object(applied) = cluster.applied_object(desired.get(id)?, owner) else { return None };
            let suspicion = evidence.suspicion(id, &applied);
            Some(Judgement { id: id.clone(), evidence: evidence.clone(), suspicion })
        });
        believed += cluster.0.store.record_judgements(owner, judged.collect()).len();
        tokio::task::yield_now().await;
    }
    if !open.is_empty() {
        let suspects = open.len() - believed;
        tracing::info!(sync = %owner, believed, suspects, "judged the objects by their managedFields");
    }
}

/// Returns the unjudged evidence about objects that were applied in their desired form.
fn unjudged(desired: &DesiredSet, observed: &ObservedSet) -> Vec<(ObjectId, Arc<Evidence>)> {
    let found = observed.iter().filter_map(|(id, seen)| {
        let is_open = seen.verification == Verification::Unverified && seen.suspicion().is_none();
        let evidence = seen.evidence.as_ref().filter(|_| is_open)?;
        let is_ours = seen.ownership == Ownership::Ours && seen.proven && !seen.deleting;
        let wanted = desired.get(id).filter(|_| is_ours)?;
        let is_recorded = seen.recorded_hash.as_ref().is_some_and(|hash| wanted.is_recorded_as(hash));
        is_recorded.then(|| (id.clone(), evidence.clone()))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::store::{Store, object};
    use moorline_core::object::GroupKind;

    #[test]
    fn only_a_list_is_evidence_and_only_until_the_object_changes() {
        let owner = SyncName::new("ops", "web");
        let map = |name: &str, version: u64| {
            let entry =
                json!({"manager": owner.manager(), "operation": "Apply", "time": "2026-01-01T00:00:00Z"});
            let metadata = json!({"namespace": "shop", "name": name, "uid": name, "resourceVersion": version.to_string(),
                "labels": {"moorline.dev/sync": owner.label()}, "managedFields": [entry],
                "annotations": {"moorline.dev/id": format!("ops/web|/ConfigMap|shop/{name}")}});
            let Value::Object(body) = json!({"metadata": metadata}) else { unreachable!("a mapping") };
            object(&GroupKind::new("", "ConfigMap"), "v1", body).unwrap()
        };
        let store = Store::default();
        let evidence = |name: &str| store.known(&owner, &map(name, 0).id).unwrap().evidence;
        let judge = |name: &str, evidence: Option<Arc<Evidence>>| {
            let id = map(name, 0).id;
            let judgement = evidence.map(|evidence| Judgement { id, evidence, suspicion: None });
            store.record_judgements(&owner, judgement.into_iter().collect()).len()
        };
        for name in ["listed", "changed", "doubted", "written"] {
            store.on_listed(map(name, 1));
        }
        store.on_seen(map("seen", 1));
        assert!(evidence("seen").is_none());
        assert_eq!(judge("listed", evidence("listed")), 1);
        let before = evidence("changed");
        store.on_seen(map("changed", 2));
        assert_eq!(judge("changed", before), 0, "an event came between");
        let before = evidence("doubted");
        store.mark_unverified(&owner, &[map("doubted", 0).id]);
        assert_eq!(judge("doubted", before), 0, "it was doubted");
        let before = evidence("written");
        drop(store.writing(&owner, &map("written", 0).id));
        assert_eq!(judge("written", before), 0, "the reply to a write was lost");
        store.on_listed(map("changed", 3));
        assert!(evidence("changed").is_none(), "it is known already");
        let believed = store.read(&owner, BTreeSet::new(), |set| {
            set.iter().filter(|(_, seen)| seen.verification == Verification::Believed).count()
        });
        assert_eq!(believed, 1);
    }
}
