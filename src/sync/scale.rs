//! Leaves the numbers of replicas to those who scale objects.
//!
//! In: a prepared commit, and the scalers of the cluster. Out: the commit without the numbers that
//! are not Git's. Which these are is decided in `desired/scale.rs`; here is asked only what that needs, and nothing
//! where Git says no number that anybody could change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::carry_out::Work;
use super::memory::Memory;
use super::pass::Subject;
use super::prepare::Prepared;
use crate::cluster::{Failure, Kinds, Scaled};
use crate::desired::{DesiredObject, DesiredSet, Replicas, Scope, left_to_scalers};
use crate::object::ObjectId;
use crate::observed::Standing;
use crate::plan::DriftMode;

/// What others may scale of the objects of a Sync.
#[derive(Debug, Default)]
pub(crate) struct Scaling {
    /// What the rest was found in.
    found_in: Option<(Arc<DesiredSet>, Arc<Kinds>)>,
    replicas: Arc<BTreeMap<ObjectId, Replicas>>,
    by_git: BTreeSet<ObjectId>,
    /// Objects whose number may be a scaler's that cannot be seen for now, and why not.
    pub(super) in_doubt: BTreeMap<ObjectId, Box<str>>,
    /// In which version an object had drifted when it was asked who scales it.
    asked: HashMap<ObjectId, Box<str>>,
}

impl Scaling {
    /// Where numbers of replicas are is to be found out anew.
    pub(super) fn forget(&mut self) {
        self.found_in = None;
    }

    fn is_of(&self, rendered: &Arc<DesiredSet>, kinds: &Arc<Kinds>) -> bool {
        let same = |(set, known): &(Arc<DesiredSet>, Arc<Kinds>)| {
            Arc::ptr_eq(set, rendered) && Arc::ptr_eq(known, kinds)
        };
        self.found_in.as_ref().is_some_and(same)
    }

    /// The numbers of replicas that Git says.
    pub(super) fn numbers(&self) -> Arc<BTreeMap<ObjectId, Replicas>> {
        self.replicas.clone()
    }

    /// Notes whose number may be a scaler's in the namespaces where none can be seen, but for those that are left to one
    /// anyway.
    fn doubt(&mut self, unseen: &BTreeMap<Box<str>, Failure>, left: &BTreeMap<ObjectId, Box<str>>) {
        let own = self.replicas.iter().filter(|(id, number)| number.set && !left.contains_key(*id));
        let why = |id: &ObjectId| Some(unseen.get(id.namespace()?)?.to_string().into());
        self.in_doubt = own.filter_map(|(id, _)| Some((id.clone(), why(id)?))).collect();
    }

    /// The namespaces in which it matters who scales what.
    fn namespaces(&self) -> BTreeSet<Box<str>> {
        let set = self.replicas.iter().filter(|(_, replicas)| replicas.set);
        set.filter_map(|(id, _)| id.namespace().map(Box::from)).collect()
    }
}

impl Work<'_> {
    /// A scaler that has come since the pass began, and may scale an object to which this pass would give Git's number.
    pub(super) fn new_scaler(&self, wanted: &DesiredObject) -> Option<ObjectId> {
        let number = self.numbers.get(&wanted.id).filter(|number| number.set)?;
        let is_left = wanted.ignored.as_ref().is_some_and(|ignored| ignored.paths.contains(&number.place));
        if is_left { None } else { self.cluster.scaler_of(&wanted.id) }
    }
}

impl Subject<'_> {
    /// What is scaled in the cluster, as far as it matters to a commit.
    pub(super) async fn scaled(
        &self,
        scaling: &mut Scaling,
        rendered: &Arc<DesiredSet>,
    ) -> Result<Scaled, Failure> {
        self.find(scaling, rendered).await?;
        Ok(self.cluster.scaled(self.owner, &scaling.namespaces()).await)
    }

    /// Takes out of a commit what is left to scalers. The objects themselves have been seen by now.
    pub(super) async fn leave_to_scalers(
        &self,
        memory: &mut Memory,
        prepared: &mut Prepared,
        mut live: Scaled,
    ) {
        let scaling = &mut memory.scaling;
        let doubtful = self.doubtful(scaling, &live.targets);
        let mut unseen = BTreeMap::new();
        for namespace in &doubtful {
            if let Err(failure) = self.cluster.look_for_scalers(namespace).await {
                unseen.insert(namespace.clone(), failure);
            }
        }
        if !doubtful.is_empty() {
            // KEDA may have been installed since the server was asked for its kinds, and nothing else tells of that.
            if !self.cluster.knows_all_scalers()
                && let Err(failure) = self.cluster.discover().await
            {
                tracing::debug!(sync = %self.owner, %failure, "whether there are more kinds of scalers is not known");
            }
            live = self.cluster.scaled(self.owner, &scaling.namespaces()).await;
        }
        unseen.extend(live.unseen);
        let left = left_to_scalers(&scaling.replicas, &scaling.by_git, &live.targets);
        scaling.doubt(&unseen, &left);
        if prepared.left != left {
            self.log(&prepared.left, &left);
            prepared.desired = match left.is_empty() {
                true => prepared.rendered.clone(),
                false => Arc::new(prepared.rendered.leaving(&left)),
            };
            prepared.left = left;
        }
    }

    /// Finds out where Git says numbers of replicas.
    async fn find(&self, scaling: &mut Scaling, rendered: &Arc<DesiredSet>) -> Result<(), Failure> {
        let kinds = self.cluster.kinds();
        if scaling.is_of(rendered, &kinds) {
            return Ok(());
        }
        let namespaced = rendered.objects().iter().filter(|it| it.scope == Some(Scope::Namespaced));
        let wanted = namespaced.map(|object| (object.id.group_kind(), object.version.clone())).collect();
        let paths = self.cluster.replicas_paths(wanted).await?;
        scaling.replicas = Arc::new(rendered.replicas(&paths));
        scaling.by_git = if scaling.replicas.is_empty() { BTreeSet::new() } else { rendered.scaled() };
        let replicas = &scaling.replicas;
        scaling.asked.retain(|id, _| replicas.contains_key(id));
        scaling.found_in = Some((rendered.clone(), kinds));
        Ok(())
    }

    /// The namespaces of objects whose number somebody has changed, although nobody is known to scale them: the watch
    /// that tells of scalers may be behind the one that tells of objects.
    fn doubtful(&self, scaling: &mut Scaling, live: &BTreeSet<ObjectId>) -> BTreeSet<Box<str>> {
        if self.wish.drift != DriftMode::Repair || self.wish.suspend || scaling.replicas.is_empty() {
            return BTreeSet::new();
        }
        let Scaling { replicas, asked, .. } = scaling;
        self.cluster.observed(self.owner, |observed| {
            let own = replicas.iter().filter(|(id, replicas)| replicas.set && !live.contains(*id));
            let drifted = own.filter_map(|(id, replicas)| {
                let seen = observed.get(id)?;
                let Standing::Drifted(drift) = &seen.standing else { return None };
                let field = replicas.place.trim_start_matches('/').replace('/', ".");
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

    fn log(&self, before: &BTreeMap<ObjectId, Box<str>>, after: &BTreeMap<ObjectId, Box<str>>) {
        let text = |place: &str| place.trim_start_matches('/').replace('/', ".");
        for (object, place) in after.iter().filter(|(id, _)| !before.contains_key(*id)) {
            tracing::info!(sync = %self.owner, %object, field = text(place), "left to an autoscaler");
        }
        for (object, place) in before.iter().filter(|(id, _)| !after.contains_key(*id)) {
            tracing::info!(sync = %self.owner, %object, field = text(place), "no longer left to an autoscaler");
        }
    }
}
