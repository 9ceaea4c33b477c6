//! Works out what an adoption would do.
//!
//! In: the inputs that were read, and the requested Sync. Out: [`Proposal`]: the Sync, its plan
//! against the cluster, and the state of each object that the old tool owns. Nothing is written.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::operate::inspect_manifest;
use super::super::plan::{decide, read_live_objects};
use super::inputs::AdoptionInputs;
use crate::adopt::{
    Adoption, FieldRemark, OwnerMark, RequestedSync, Tool, adopt, is_being_deleted, leftovers, mark,
    missing_switch, read_inventory,
};
use crate::api::{ADOPTED_FROM_ANNOTATION, PRUNE_ANNOTATION, SyncName, SyncSpec, SyncStatus};
use crate::cluster::{Cluster, Connection, OperatorError, SyncResource};
use crate::controller::inspect::Inspected;
use crate::desired::{DesiredObject, Scope, Scopes};
use crate::metrics::Metrics;
use crate::object::{Object, ObjectId};
use crate::plan::{Action, Plan, Preview, Step};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::AllowList;

/// The result of an adoption, before anything is written.
pub(super) struct Proposal<'a> {
    pub(super) gathered: &'a AdoptionInputs,
    pub(super) sync: SyncName,
    pub(super) adoption: Adoption,
    /// True if the Sync exists already.
    pub(super) sync_exists: bool,
    /// The revision that the plan is for.
    pub(super) revision: Option<String>,
    planned: Option<(Plan, Preview)>,
    /// The objects that the old tool owns, each with its state.
    pub(super) owned: Vec<(ObjectId, OwnedState)>,
    /// The fields that the old tool has set and Git does not have.
    pub(super) leftovers: Vec<(ObjectId, Vec<String>)>,
    /// Number of status entries that name no object.
    pub(super) unparsed_entries: usize,
}

/// State of an object of the old tool, compared with Git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OwnedState {
    /// Git has it.
    InGit,
    /// Git has it, and another resource of the old tool owns it as well.
    Shared(Box<str>),
    /// Git does not have it.
    NotInGit,
    /// Neither the cluster nor Git has it.
    Gone,
}

impl Proposal<'_> {
    /// The plan, if one could be made.
    pub(super) fn plan(&self) -> Option<&Plan> {
        self.planned.as_ref().map(|(plan, _)| plan)
    }

    /// The plan, and the fields that differ.
    pub(super) fn planned(&self) -> Option<&(Plan, Preview)> {
        self.planned.as_ref()
    }
}

/// Builds the proposal; reads only.
pub(super) async fn propose<'a>(
    connection: &Connection,
    cluster: &Cluster,
    metrics: &Metrics,
    gathered: &'a AdoptionInputs,
    wanted: &RequestedSync,
) -> anyhow::Result<Proposal<'a>> {
    let old = gathered.old();
    let (sync, mut found) = (wanted.sync.clone(), read_inventory(gathered.tool, &gathered.original));
    if gathered.tool == Tool::FluxHelm {
        // A stored release has no namespace where its objects have the one of the release.
        cluster.discovery().ensure().await?;
        let scopes = cluster.kinds().scopes();
        found.ids = found.ids.into_iter().map(|id| in_its_scope(id, &scopes)).collect();
    }
    let mut adoption = adopt(&old, wanted);
    let mut proposal = Proposal {
        gathered,
        sync: sync.clone(),
        sync_exists: false,
        revision: None,
        planned: None,
        owned: Vec::new(),
        leftovers: Vec::new(),
        unparsed_entries: found.unparsed,
        adoption: adoption.clone(),
    };
    if adoption.refused.is_empty() {
        match look(cluster, metrics, (&sync, gathered.tool), &mut adoption).await? {
            Err(reconcile_error) => adoption.refused.push(source_remark(&reconcile_error, wanted)),
            Ok(inspected) => {
                let desired = &inspected.desired;
                if desired.objects().is_empty() && !found.ids.is_empty() {
                    let why = "there are no objects at that path and revision in Git; check both";
                    adoption.refused.push(FieldRemark { field: "spec.path".into(), why: why.into() });
                }
                let live = read_live_objects(cluster, &sync, desired, &found.ids).await?;
                adoption.refused.extend(flux_exclusions(gathered, &inspected, &live));
                proposal.leftovers = leftover_fields(gathered, &inspected, &live);
                proposal.owned = standings(gathered, &found.ids, &inspected, &live);
                let ours: Vec<Object> =
                    live.into_iter().filter(|it| is_about(it, &inspected, &found.ids)).collect();
                // A chart that was upgraded before runs no hooks of its installation.
                let policy = match gathered.tool {
                    Tool::FluxHelm => inspected.policy(None, &SyncStatus::default()),
                    Tool::ArgoCd | Tool::Flux => inspected.valid_spec.policy(None),
                };
                proposal.planned = Some(decide(desired, &ours, &sync, policy, &[]));
                proposal.revision = Some(inspected.revision.to_string());
            }
        }
    }
    proposal.sync_exists = find_existing_sync(connection, &sync, &mut adoption).await?;
    if let Some(plan) = proposal.plan().filter(|_| !proposal.sync_exists) {
        adoption.refused.extend(refused_deletions(plan, &sync));
    }
    if is_being_deleted(&gathered.live) {
        let why = "it is being deleted: wait until it is gone, and check which objects were deleted with it";
        adoption.refused.push(FieldRemark { field: "metadata.deletionTimestamp".into(), why: why.into() });
    }
    proposal.adoption = adoption;
    Ok(proposal)
}

/// Renders and inspects the Sync. Argo CD does not say if a revision is a branch or a tag, so the
/// other kind is tried when the first is not found.
async fn look(
    cluster: &Cluster,
    metrics: &Metrics,
    (sync, tool): (&SyncName, Tool),
    adoption: &mut Adoption,
) -> anyhow::Result<Result<Inspected, ReconcileError>> {
    let allowed = AllowList::default();
    let first = inspect_manifest(cluster, metrics, sync, adoption.sync.clone(), None, &allowed).await?;
    let reference = adoption.sync.pointer("/spec/source/git/ref").cloned().unwrap_or_default();
    let (from, to) = if reference["branch"].is_string() { ("branch", "tag") } else { ("tag", "branch") };
    let is_missing =
        first.as_ref().is_err_and(|reconcile_error| reconcile_error.cause == ErrorCause::ReferenceNotFound);
    if !is_missing || tool != Tool::ArgoCd || !reference[from].is_string() {
        return Ok(first);
    }
    let mut other = adoption.sync.clone();
    other["spec"]["source"]["git"]["ref"] = json!({to: reference[from]});
    let second = inspect_manifest(cluster, metrics, sync, other.clone(), None, &allowed).await?;
    if second.is_err() {
        return Ok(first);
    }
    adoption.sync = other;
    Ok(second)
}

fn source_remark(reconcile_error: &ReconcileError, wanted: &RequestedSync) -> FieldRemark {
    let mut why = reconcile_error.message.clone();
    for more in reconcile_error.problems.iter().skip(1) {
        why.push_str("; ");
        why.push_str(more);
    }
    let of_source =
        matches!(reconcile_error.cause, ErrorCause::RepositoryAccessDenied | ErrorCause::RepositoryNotFound);
    if wanted.secret.is_none() && of_source {
        let namespace = &wanted.sync.namespace;
        why.push_str(&format!(
            "; if it needs credentials, create a Secret in {namespace} with the keys username and password, or bearerToken, and pass its name with --secret"
        ));
    }
    FieldRemark { field: "the repository".into(), why: why.into() }
}

/// The state of each object that the old tool owns.
fn standings(
    gathered: &AdoptionInputs,
    ids: &[ObjectId],
    inspected: &Inspected,
    live: &[Object],
) -> Vec<(ObjectId, OwnedState)> {
    let live: BTreeMap<&ObjectId, &Object> = live.iter().map(|object| (&object.id, object)).collect();
    let standing = |id: &ObjectId| {
        let found = live.get(id).map(|live| owner_by_marks(gathered, live));
        match (inspected.desired.get(id).is_some(), found) {
            (true, Some(OwnerMark::Other(other))) => OwnedState::Shared(other),
            (true, _) => OwnedState::InGit,
            (false, None) => OwnedState::Gone,
            (false, Some(_)) => OwnedState::NotInGit,
        }
    };
    ids.iter().map(|id| (id.clone(), standing(id))).collect()
}

/// The id without a namespace, if the kind is cluster-scoped.
fn in_its_scope(id: ObjectId, scopes: &Scopes) -> ObjectId {
    match scopes.get(id.group(), id.kind()) {
        Some(Scope::Cluster) => ObjectId::new(id.group(), id.kind(), "", id.name()).unwrap_or(id),
        Some(Scope::Namespaced) | None => id,
    }
}

/// The owner by an object's marks: another resource of the same tool, or one of the other tool.
fn owner_by_marks(gathered: &AdoptionInputs, live: &Object) -> OwnerMark {
    let (tool, own) = (gathered.tool, mark(gathered.tool, &gathered.namespace, &gathered.name, live));
    let of_others = tool.others().find_map(|other| match mark(other, "", "", live) {
        OwnerMark::Other(name) => Some(format!("{} ({name})", other.name())),
        OwnerMark::This | OwnerMark::None => None,
    });
    match (own, of_others) {
        (OwnerMark::Other(name), _) => OwnerMark::Other(name),
        (_, Some(name)) => OwnerMark::Other(name.into()),
        (own, None) => own,
    }
}

/// The fields that the old tool leaves on each object that Git has.
fn leftover_fields(
    gathered: &AdoptionInputs,
    inspected: &Inspected,
    live: &[Object],
) -> Vec<(ObjectId, Vec<String>)> {
    let of = |live: &Object| {
        let wanted = Value::Object(inspected.desired.get(&live.id)?.body());
        let left = leftovers(gathered.tool, live, &wanted);
        (!left.is_empty()).then(|| (live.id.clone(), left.iter().map(ToString::to_string).collect()))
    };
    live.iter().filter_map(of).collect()
}

/// Refuses objects that Flux is configured to leave alone and that a Sync would write.
fn flux_exclusions(gathered: &AdoptionInputs, inspected: &Inspected, live: &[Object]) -> Vec<FieldRemark> {
    let live: BTreeMap<&ObjectId, &Object> = live.iter().map(|object| (&object.id, object)).collect();
    let of = |object: &DesiredObject| {
        let body = Value::Object(object.body());
        let (theirs, ours) = missing_switch(gathered.tool, &body, live.get(&object.id).copied())?;
        let why = format!("Flux ignores it ({theirs}): add the annotation {ours} in Git as well");
        Some(FieldRemark { field: object.id.to_string().into(), why: why.into() })
    };
    inspected.desired.objects().iter().filter_map(of).collect()
}

/// Refuses deletions of objects that carry the identity of an earlier Sync of the same name.
fn refused_deletions(plan: &Plan, sync: &SyncName) -> Vec<FieldRemark> {
    let of = |step: &Step| match &step.action {
        Action::Prune { .. } => {
            let why = format!(
                "it belongs to an earlier Sync {sync} and is not in Git, so it would be deleted: add the annotation {PRUNE_ANNOTATION}: disabled, or choose another name with --sync"
            );
            Some(FieldRemark { field: step.id.to_string().into(), why: why.into() })
        }
        Action::ReplaceHookRuns { runs } => {
            let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
            let why = format!(
                "earlier runs of it would be deleted first: {}; choose another name with --sync",
                runs.join(", ")
            );
            Some(FieldRemark { field: step.id.to_string().into(), why: why.into() })
        }
        Action::Create | Action::Adopt { .. } | Action::Update(_) | Action::HandOver { .. } => None,
    };
    plan.steps().filter_map(of).collect()
}

/// True if the plan covers the object: Git has it, or it has the label of the Sync. Objects that
/// only the old tool owns are left alone.
fn is_about(object: &Object, inspected: &Inspected, owned: &[ObjectId]) -> bool {
    inspected.desired.get(&object.id).is_some()
        || object.label(crate::api::SYNC_LABEL).is_some()
        || !owned.contains(&object.id)
}

/// True if the Sync exists already. Another Sync of that name is never overwritten.
async fn find_existing_sync(
    connection: &Connection,
    sync: &SyncName,
    adoption: &mut Adoption,
) -> anyhow::Result<bool> {
    let seen = match connection.sync(sync).await {
        Ok(seen) => seen,
        Err(OperatorError::NoSync { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let from =
        adoption.sync.pointer("/metadata/annotations").and_then(|all| all[ADOPTED_FROM_ANNOTATION].as_str());
    let mut refuse =
        |why: String| adoption.refused.push(FieldRemark { field: "the Sync".into(), why: why.into() });
    if adopted_from(&seen) != from {
        refuse(format!("another Sync {sync} exists: choose another name with --sync"));
        return Ok(false);
    }
    let fields = differing(&seen.resource.data["spec"], &adoption.sync["spec"]);
    if !fields.is_empty() && adoption.refused.is_empty() {
        let fields = fields.join(", ");
        adoption.refused.push(FieldRemark {
            field: "the Sync".into(),
            why: format!("{sync} already exists with a different {fields} and is not overwritten; to start over, use --undo first").into(),
        });
    }
    Ok(true)
}

/// The resource from which a Sync was adopted.
pub(super) fn adopted_from(sync: &SyncResource) -> Option<&str> {
    sync.resource.metadata.annotations.as_ref()?.get(ADOPTED_FROM_ANNOTATION).map(String::as_str)
}

/// The fields of two specs that differ, with the defaults filled in.
fn differing(one: &Value, other: &Value) -> Vec<String> {
    let read = |spec: &Value| serde_json::from_value::<SyncSpec>(spec.clone()).ok();
    let write = |spec: Option<SyncSpec>| serde_json::to_value(spec).unwrap_or_default();
    let (one, other) = (write(read(one)), write(read(other)));
    let names = [&one, &other].into_iter().filter_map(Value::as_object).flat_map(|fields| fields.keys());
    let mut names: Vec<String> = names.filter(|name| one[*name] != other[*name]).cloned().collect();
    names.sort();
    names.dedup();
    names
}
