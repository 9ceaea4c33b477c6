//! Leaves the number of replicas to autoscalers.
//!
//! In: a prepared commit, and the autoscalers of the cluster.
//! Out: the commit without the numbers that autoscalers set.
//!
//! `crates/engine/src/desired/autoscaling.rs` decides which numbers these are. This file only sends
//! the requests that the decision needs, and none if Git sets no number that an autoscaler could
//! change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::ReconcileContext;
use super::prepare::PreparedRevision;
use crate::cluster::{ApiError, AutoscaledObjects, Kinds};
use crate::controller::apply::ApplyContext;
use crate::controller::memory::SyncMemory;
use crate::desired::{DesiredObject, DesiredSet, ReplicaCount, Scope, select_autoscaled};
use crate::object::ObjectId;
use crate::observed::Verification;
use crate::plan::DriftMode;

/// Objects of a Sync that autoscalers may scale.
#[derive(Debug, Default)]
pub(crate) struct AutoscaledReplicas {
    /// Inputs from which the other fields were computed.
    found_in: Option<(Arc<DesiredSet>, Arc<Kinds>)>,
    replicas: Arc<BTreeMap<ObjectId, ReplicaCount>>,
    by_git: BTreeSet<ObjectId>,
    /// Objects whose number may belong to an autoscaler that cannot be seen for now, each with the
    /// reason.
    pub(crate) uncertain_replicas: BTreeMap<ObjectId, Box<str>>,
    /// Version of each drifted object for which autoscalers were listed.
    asked: HashMap<ObjectId, Box<str>>,
}

impl AutoscaledReplicas {
    /// Forces the paths of replica numbers to be computed again.
    pub(crate) fn forget(&mut self) {
        self.found_in = None;
    }

    fn is_of(&self, rendered: &Arc<DesiredSet>, kinds: &Arc<Kinds>) -> bool {
        let same = |(set, known): &(Arc<DesiredSet>, Arc<Kinds>)| {
            Arc::ptr_eq(set, rendered) && Arc::ptr_eq(known, kinds)
        };
        self.found_in.as_ref().is_some_and(same)
    }

    /// Returns the numbers of replicas that Git sets.
    pub(crate) fn numbers(&self) -> Arc<BTreeMap<ObjectId, ReplicaCount>> {
        self.replicas.clone()
    }

    /// Records the objects whose autoscalers cannot be seen, except for those that are left to one
    /// already.
    fn doubt(&mut self, unseen: &BTreeMap<Box<str>, ApiError>, left: &BTreeMap<ObjectId, Box<str>>) {
        let own = self.replicas.iter().filter(|(id, number)| number.is_set && !left.contains_key(*id));
        let why = |id: &ObjectId| Some(unseen.get(id.namespace()?)?.to_string().into());
        self.uncertain_replicas = own.filter_map(|(id, _)| Some((id.clone(), why(id)?))).collect();
    }

    /// Returns the namespaces in which autoscalers matter.
    fn namespaces(&self) -> BTreeSet<Box<str>> {
        let set = self.replicas.iter().filter(|(_, replicas)| replicas.is_set);
        set.filter_map(|(id, _)| id.namespace().map(Box::from)).collect()
    }
}

/// Returns an autoscaler that was created since the reconcile began, and that may scale an
/// object to which this reconcile would give Git's number.
pub(crate) fn new_scaler(work: &ApplyContext<'_>, wanted: &DesiredObject) -> Option<ObjectId> {
    let number = work.numbers.get(&wanted.id).filter(|number| number.is_set)?;
    let is_left = wanted.ignored.as_ref().is_some_and(|ignored| ignored.paths.contains(&number.pointer));
    if is_left { None } else { work.cluster.autoscalers().of(&wanted.id) }
}

/// Returns the scaled objects of the cluster, as far as they matter to a commit.
pub(crate) async fn scaled(
    inputs: &ReconcileContext,
    scaling: &mut AutoscaledReplicas,
    rendered: &Arc<DesiredSet>,
) -> Result<AutoscaledObjects, ApiError> {
    find(inputs, scaling, rendered).await?;
    Ok(inputs.cluster().autoscaled_objects(&inputs.owner, &scaling.namespaces()).await)
}

/// Removes numbers that are left to autoscalers from a commit. The objects themselves are
/// observed by now.
pub(crate) async fn leave_to_scalers(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    prepared: &mut PreparedRevision,
    mut live: AutoscaledObjects,
) {
    let scaling = &mut memory.autoscaled_replicas;
    let doubtful = doubtful(inputs, scaling, &live.targets);
    let mut unseen = BTreeMap::new();
    for namespace in &doubtful {
        if let Err(failure) = inputs.cluster().autoscalers().refresh(namespace).await {
            unseen.insert(namespace.clone(), failure);
        }
    }
    if !doubtful.is_empty() {
        // KEDA may have been installed since the last discovery, and no watch reports that.
        if !inputs.cluster().kinds().has_all_autoscalers()
            && let Err(failure) = inputs.cluster().discovery().refresh().await
        {
            tracing::debug!(sync = %inputs.owner, %failure, "could not discover further kinds of autoscalers");
        }
        live = inputs.cluster().autoscaled_objects(&inputs.owner, &scaling.namespaces()).await;
    }
    unseen.extend(live.unknown_namespaces);
    let left = select_autoscaled(&scaling.replicas, &scaling.by_git, &live.targets);
    scaling.doubt(&unseen, &left);
    if prepared.unmanaged_replicas != left {
        log(inputs, &prepared.unmanaged_replicas, &left);
        prepared.desired = match left.is_empty() {
            true => prepared.rendered.clone(),
            false => Arc::new(prepared.rendered.without_replica_counts(&left)),
        };
        prepared.unmanaged_replicas = left;
    }
}

/// Computes the paths at which Git sets numbers of replicas.
async fn find(
    inputs: &ReconcileContext,
    scaling: &mut AutoscaledReplicas,
    rendered: &Arc<DesiredSet>,
) -> Result<(), ApiError> {
    let kinds = inputs.cluster().kinds();
    if scaling.is_of(rendered, &kinds) {
        return Ok(());
    }
    let namespaced = rendered.objects().iter().filter(|it| it.scope == Some(Scope::Namespaced));
    let wanted = namespaced.map(|object| (object.id.group_kind(), object.version.clone())).collect();
    let paths = inputs.cluster().discovery().replica_paths(wanted).await?;
    scaling.replicas = Arc::new(rendered.replica_counts(&paths));
    scaling.by_git =
        if scaling.replicas.is_empty() { BTreeSet::new() } else { rendered.autoscaler_targets() };
    let replicas = &scaling.replicas;
    scaling.asked.retain(|id, _| replicas.contains_key(id));
    scaling.found_in = Some((rendered.clone(), kinds));
    Ok(())
}

/// Returns the namespaces of objects whose number was changed although no autoscaler is known:
/// the watch of autoscalers may lag behind the watch of the objects.
fn doubtful(
    inputs: &ReconcileContext,
    scaling: &mut AutoscaledReplicas,
    live: &BTreeSet<ObjectId>,
) -> BTreeSet<Box<str>> {
    if inputs.valid_spec().drift != DriftMode::Repair
        || inputs.valid_spec().suspend
        || scaling.replicas.is_empty()
    {
        return BTreeSet::new();
    }
    let AutoscaledReplicas { replicas, asked, .. } = scaling;
    inputs.cluster().read_observed(&inputs.owner, |observed| {
        let own = replicas.iter().filter(|(id, replicas)| replicas.is_set && !live.contains(*id));
        let drifted = own.filter_map(|(id, replicas)| {
            let seen = observed.get(id)?;
            let Verification::Drifted(drift) = &seen.verification else { return None };
            let field = replicas.pointer.trim_start_matches('/').replace('/', ".");
            let version = &seen.resource_version;
            let is_new = drift.fields.contains(&field) && asked.get(id) != Some(version);
            is_new.then(|| (id, version.clone()))
        });
        let drifted: Vec<_> = drifted.map(|(id, version)| (id.clone(), version)).collect();
        let places = drifted.iter().filter_map(|(id, _)| id.namespace().map(Box::from)).collect();
        asked.extend(drifted);
        places
    })
}

fn log(
    inputs: &ReconcileContext,
    before: &BTreeMap<ObjectId, Box<str>>,
    after: &BTreeMap<ObjectId, Box<str>>,
) {
    let text = |place: &str| place.trim_start_matches('/').replace('/', ".");
    for (object, place) in after.iter().filter(|(id, _)| !before.contains_key(*id)) {
        tracing::info!(sync = %inputs.owner, %object, field = text(place), "left to an autoscaler");
    }
    for (object, place) in before.iter().filter(|(id, _)| !after.contains_key(*id)) {
        tracing::info!(sync = %inputs.owner, %object, field = text(place), "no longer left to an autoscaler");
    }
}
