//! Works out what an adoption would do.
//!
//! In: the inputs that were read, and the requested Sync. Out: [`Proposal`]: the Sync, its plan
//! against the cluster, and the state of each object that the old tool owns. Nothing is written.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::operate::look_by;
use super::super::plan::{decide, live};
use super::gather::Gathered;
use crate::adopt::{
    Adoption, Mark, Remark, Wanted, adopt, displaced, is_ending, leftovers, mark, owned, untouched,
};
use crate::api::{ADOPTED_FROM_ANNOTATION, PRUNE_ANNOTATION, SyncName, SyncSpec};
use crate::cluster::{Cluster, Connection, OperatorError, Seen};
use crate::desired::DesiredObject;
use crate::metrics::Metrics;
use crate::object::{Object, ObjectId};
use crate::plan::{Action, Plan, Preview, Step};
use crate::report::Trouble;
use crate::source::AllowList;
use crate::sync::inspect::Inspected;

/// The result of an adoption, before anything is written.
pub(super) struct Proposal<'a> {
    pub(super) gathered: &'a Gathered,
    pub(super) sync: SyncName,
    pub(super) adoption: Adoption,
    /// True if the Sync exists already.
    pub(super) stands: bool,
    /// The revision that the plan is for.
    pub(super) revision: Option<String>,
    planned: Option<(Plan, Preview)>,
    /// The objects that the old tool owns, each with its state.
    pub(super) owned: Vec<(ObjectId, Standing)>,
    /// The fields that the old tool has set and Git does not have.
    pub(super) left: Vec<(ObjectId, Vec<String>)>,
    /// Number of status entries that name no object.
    pub(super) unread: usize,
}

/// State of an object of the old tool, compared with Git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
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
    gathered: &'a Gathered,
    wanted: &Wanted,
) -> anyhow::Result<Proposal<'a>> {
    let old = gathered.old();
    let (sync, found) = (wanted.sync.clone(), owned(gathered.tool, &gathered.was));
    let mut adoption = adopt(&old, wanted);
    let mut proposal = Proposal {
        gathered,
        sync: sync.clone(),
        stands: false,
        revision: None,
        planned: None,
        owned: Vec::new(),
        left: Vec::new(),
        unread: found.unread,
        adoption: adoption.clone(),
    };
    if adoption.refused.is_empty() {
        match look(cluster, metrics, &sync, &mut adoption).await? {
            Err(trouble) => adoption.refused.push(of_trouble(&trouble, wanted)),
            Ok(inspected) => {
                let desired = &inspected.desired;
                adoption.refused.extend(displaced(&old, desired.objects().iter().map(|object| &object.id)));
                if desired.objects().is_empty() && !found.ids.is_empty() {
                    let why = "Git has no object there; look at the path and the revision";
                    adoption.refused.push(Remark { field: "spec.path".into(), why: why.into() });
                }
                let live = live(cluster, &sync, desired, &found.ids).await?;
                adoption.refused.extend(left_alone(gathered, &inspected, &live));
                proposal.left = left(gathered, &inspected, &live);
                proposal.owned = standings(gathered, &found.ids, &inspected, &live);
                let ours: Vec<Object> =
                    live.into_iter().filter(|it| is_about(it, &inspected, &found.ids)).collect();
                proposal.planned = Some(decide(desired, &ours, &sync, inspected.wish.policy(None), &[]));
                proposal.revision = Some(inspected.revision.to_string());
            }
        }
    }
    proposal.stands = stands(connection, &sync, &mut adoption).await?;
    if let Some(plan) = proposal.plan().filter(|_| !proposal.stands) {
        adoption.refused.extend(deletes(plan, &sync));
    }
    if is_ending(&gathered.live) {
        let why = "it is being deleted: wait until it is gone, and see what went with it";
        adoption.refused.push(Remark { field: "metadata.deletionTimestamp".into(), why: why.into() });
    }
    proposal.adoption = adoption;
    Ok(proposal)
}

/// Renders and inspects the Sync. Argo CD does not say if a revision is a branch or a tag, so the
/// other kind is tried when the first is not found.
async fn look(
    cluster: &Cluster,
    metrics: &Metrics,
    sync: &SyncName,
    adoption: &mut Adoption,
) -> anyhow::Result<Result<Inspected, Trouble>> {
    let allowed = AllowList::default();
    let first = look_by(cluster, metrics, sync, adoption.sync.clone(), None, &allowed).await?;
    let reference = adoption.sync.pointer("/spec/source/git/ref").cloned().unwrap_or_default();
    let (from, to) = if reference["branch"].is_string() { ("branch", "tag") } else { ("tag", "branch") };
    let is_missing = first.as_ref().is_err_and(|trouble| trouble.reason == "ReferenceNotFound");
    let is_flux = adoption.sync.pointer("/spec/drift").is_none();
    if !is_missing || is_flux || !reference[from].is_string() {
        return Ok(first);
    }
    let mut other = adoption.sync.clone();
    other["spec"]["source"]["git"]["ref"] = json!({to: reference[from]});
    let second = look_by(cluster, metrics, sync, other.clone(), None, &allowed).await?;
    if second.is_err() {
        return Ok(first);
    }
    adoption.sync = other;
    Ok(second)
}

fn of_trouble(trouble: &Trouble, wanted: &Wanted) -> Remark {
    let mut why = trouble.message.clone();
    for more in trouble.problems.iter().skip(1) {
        why.push_str("; ");
        why.push_str(more);
    }
    let of_source = ["RepositoryAccessDenied", "RepositoryNotFound"].contains(&trouble.reason);
    if wanted.secret.is_none() && of_source {
        let namespace = &wanted.sync.namespace;
        why.push_str(&format!(
            "; if it takes a login, make a Secret in {namespace} with the keys username and password, or bearerToken, and name it with --secret"
        ));
    }
    Remark { field: "the repository".into(), why: why.into() }
}

/// The state of each object that the old tool owns.
fn standings(
    gathered: &Gathered,
    ids: &[ObjectId],
    inspected: &Inspected,
    live: &[Object],
) -> Vec<(ObjectId, Standing)> {
    let live: BTreeMap<&ObjectId, &Object> = live.iter().map(|object| (&object.id, object)).collect();
    let standing = |id: &ObjectId| {
        let found = live.get(id).map(|live| holder(gathered, live));
        match (inspected.desired.get(id).is_some(), found) {
            (true, Some(Mark::Other(other))) => Standing::Shared(other),
            (true, _) => Standing::InGit,
            (false, None) => Standing::Gone,
            (false, Some(_)) => Standing::NotInGit,
        }
    };
    ids.iter().map(|id| (id.clone(), standing(id))).collect()
}

/// The owner by an object's marks: another resource of the same tool, or one of the other tool.
fn holder(gathered: &Gathered, live: &Object) -> Mark {
    let (tool, own) = (gathered.tool, mark(gathered.tool, &gathered.namespace, &gathered.name, live));
    match (own, mark(tool.other(), "", "", live)) {
        (Mark::Other(name), _) => Mark::Other(name),
        (_, Mark::Other(name)) => Mark::Other(format!("{} ({name})", tool.other().name()).into()),
        (own, Mark::This | Mark::None) => own,
    }
}

/// The fields that the old tool leaves on each object that Git has.
fn left(gathered: &Gathered, inspected: &Inspected, live: &[Object]) -> Vec<(ObjectId, Vec<String>)> {
    let of = |live: &Object| {
        let wanted = Value::Object(inspected.desired.get(&live.id)?.body());
        let left = leftovers(gathered.tool, live, &wanted);
        (!left.is_empty()).then(|| (live.id.clone(), left.iter().map(ToString::to_string).collect()))
    };
    live.iter().filter_map(of).collect()
}

/// Refuses objects that Flux is configured to leave alone and that a Sync would write.
fn left_alone(gathered: &Gathered, inspected: &Inspected, live: &[Object]) -> Vec<Remark> {
    let live: BTreeMap<&ObjectId, &Object> = live.iter().map(|object| (&object.id, object)).collect();
    let of = |object: &DesiredObject| {
        let body = Value::Object(object.body());
        let (theirs, ours) = untouched(gathered.tool, &body, live.get(&object.id).copied())?;
        let why = format!("Flux leaves it alone ({theirs}): annotate it in Git with {ours} as well");
        Some(Remark { field: object.id.to_string().into(), why: why.into() })
    };
    inspected.desired.objects().iter().filter_map(of).collect()
}

/// Refuses deletions of objects that carry the identity of an earlier Sync of the same name.
fn deletes(plan: &Plan, sync: &SyncName) -> Vec<Remark> {
    let of = |step: &Step| match &step.action {
        Action::Prune { .. } => {
            let why = format!(
                "it is of an earlier Sync {sync}, Git does not have it, and so it would be deleted: annotate it with {PRUNE_ANNOTATION}: disabled, or name the Sync otherwise with --sync"
            );
            Some(Remark { field: step.id.to_string().into(), why: why.into() })
        }
        Action::Follow { runs } => {
            let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
            let why = format!(
                "earlier runs of it would be deleted first: {}; name the Sync otherwise with --sync",
                runs.join(", ")
            );
            Some(Remark { field: step.id.to_string().into(), why: why.into() })
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
async fn stands(connection: &Connection, sync: &SyncName, adoption: &mut Adoption) -> anyhow::Result<bool> {
    let seen = match connection.sync(sync).await {
        Ok(seen) => seen,
        Err(OperatorError::NoSync { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let from =
        adoption.sync.pointer("/metadata/annotations").and_then(|all| all[ADOPTED_FROM_ANNOTATION].as_str());
    let mut refuse =
        |why: String| adoption.refused.push(Remark { field: "the Sync".into(), why: why.into() });
    if adopted_from(&seen) != from {
        refuse(format!("there is another Sync {sync}: choose a name with --sync"));
        return Ok(false);
    }
    let fields = differing(&seen.whole.data["spec"], &adoption.sync["spec"]);
    if !fields.is_empty() && adoption.refused.is_empty() {
        let fields = fields.join(", ");
        adoption.refused.push(Remark {
            field: "the Sync".into(),
            why: format!("{sync} is there already with another {fields}, and is not overwritten: it goes on as it is; to begin anew, use --undo first").into(),
        });
    }
    Ok(true)
}

/// The resource from which a Sync was adopted.
pub(super) fn adopted_from(sync: &Seen) -> Option<&str> {
    sync.whole.metadata.annotations.as_ref()?.get(ADOPTED_FROM_ANNOTATION).map(String::as_str)
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
