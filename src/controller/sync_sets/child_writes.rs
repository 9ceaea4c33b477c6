//! Writes the Syncs of a set, as its plan says.
//!
//! In: a plan, and the cluster with the identity of the set. Out: what was written, and the first
//! failures. Nothing is removed after a failure, and the removals come last.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::api::SyncName;
use crate::cluster::{ApiError, Cluster, SyncSetRequests};
use crate::sync_set::{ExistingSync, PlannedRemoval, SetChild, SetOwner, SetPlan, SetStep};

/// A generation of the spec, and the number of an answer.
pub(super) type AnswerKey = (Option<i64>, u64);

/// Maximum number of failures that are reported.
const MAX_FAILURES: usize = 3;

/// The forms in which the API server stored Syncs when they were applied, by name: the hash of the
/// child, and that of the stored form.
#[derive(Debug, Default)]
pub(super) struct AcceptedForms(HashMap<String, (String, String)>);

impl AcceptedForms {
    /// True if the Sync was stored in this form when the child was applied.
    pub(super) fn is_accepted(&self, child: &SetChild, live: &ExistingSync) -> bool {
        let known = self.0.get(&child.name);
        known.is_some_and(|(hash, form)| *hash == child.hash && *form == live.digest())
    }
}

/// A removal that was decided: the rest of it is removed as long as the answer and the approval
/// are the same.
#[derive(Debug, Default)]
pub(super) struct BegunRemoval {
    of: Option<(AnswerKey, Option<String>)>,
    uids: BTreeSet<String>,
}

impl BegunRemoval {
    /// Returns the uids of the Syncs that it removes.
    pub(super) fn uids(&self, key: AnswerKey, approval: Option<&String>) -> BTreeSet<String> {
        let is_same = self.of.as_ref().is_some_and(|(of, by)| *of == key && by.as_ref() == approval);
        if is_same { self.uids.clone() } else { BTreeSet::new() }
    }

    /// Notes a decision.
    pub(super) fn note(&mut self, key: AnswerKey, approval: Option<String>, removal: &PlannedRemoval) {
        self.of = Some((key, approval));
        self.uids = match removal {
            PlannedRemoval::Remove(gone) => gone.iter().map(|(_, uid, _)| uid.clone()).collect(),
            PlannedRemoval::Hold { .. } | PlannedRemoval::Wait { .. } | PlannedRemoval::Keep(_) => {
                BTreeSet::new()
            }
        };
    }
}

/// Result of the writes.
#[derive(Debug, Default)]
pub(super) struct WriteReport {
    /// The names of created Syncs.
    pub(super) created: Vec<String>,
    /// The names of changed Syncs.
    pub(super) changed: Vec<String>,
    /// The names of removed Syncs.
    pub(super) removed: Vec<String>,
    /// Names of Syncs that exist and are not the set's own.
    pub(super) conflicts: Vec<String>,
    /// The first failures, with the Sync.
    pub(super) failures: Vec<(String, ApiError)>,
    /// The written Syncs with the form that is stored; none if it is deleted.
    pub(super) stored: Vec<(String, Option<String>)>,
}

impl WriteReport {
    fn fail(&mut self, name: &str, failure: ApiError) {
        if self.failures.len() < MAX_FAILURES {
            self.failures.push((name.to_owned(), failure));
        }
    }
}

/// Executes a plan.
pub(super) async fn write_children(
    cluster: &Cluster,
    owner: &SetOwner,
    plan: &SetPlan,
    accepted: &mut AcceptedForms,
    is_outdated: &(dyn Fn() -> bool + Send + Sync),
) -> WriteReport {
    let mut report = WriteReport::default();
    for step in &plan.steps {
        match step {
            SetStep::Create(child) => apply(cluster, owner, (child, None), accepted, &mut report).await,
            SetStep::Update { child, uid } => {
                apply(cluster, owner, (child, Some(uid)), accepted, &mut report).await;
            }
            SetStep::Conflict(name) => report.conflicts.push(name.clone()),
            SetStep::Keep(_) | SetStep::Await(_) => {}
        }
        if report.failures.len() == MAX_FAILURES {
            return report;
        }
    }
    if let PlannedRemoval::Remove(gone) = &plan.removal
        && report.failures.is_empty()
    {
        remove(cluster, owner, gone, (&mut report, is_outdated)).await;
    }
    report
}

/// Deletes Syncs of a set, until the set has changed: it may be suspended, or keep them.
pub(super) async fn remove(
    cluster: &Cluster,
    owner: &SetOwner,
    gone: &[(String, String, String)],
    (report, is_outdated): (&mut WriteReport, &(dyn Fn() -> bool + Send + Sync)),
) {
    for (name, uid, version) in gone {
        if is_outdated() {
            return;
        }
        let sync = SyncName::new(&owner.namespace, name);
        match SyncSetRequests::new(cluster).delete_child(&sync, uid, version).await {
            Ok(()) => {
                report.removed.push(name.clone());
                report.stored.push((name.clone(), None));
            }
            Err(failure) if failure.code() == Some(404) => {}
            // Its status was written meanwhile: the next pass has the newer version.
            Err(failure) => report.fail(name, failure),
        }
        if report.failures.len() == MAX_FAILURES {
            return;
        }
    }
}

async fn apply(
    cluster: &Cluster,
    owner: &SetOwner,
    (child, uid): (&SetChild, Option<&String>),
    accepted: &mut AcceptedForms,
    report: &mut WriteReport,
) {
    let sync = SyncName::new(&owner.namespace, &child.name);
    let requests = SyncSetRequests::new(cluster);
    let uid = uid.map(String::as_str);
    match requests.apply_child(&sync, &child.manifest, &owner.manager(), uid).await {
        Ok(stored) => {
            let form = digest(&stored, owner);
            accepted.0.insert(child.name.clone(), (child.hash.clone(), form.clone()));
            report.stored.push((child.name.clone(), Some(form)));
            match uid {
                None => report.created.push(child.name.clone()),
                Some(_) => report.changed.push(child.name.clone()),
            }
        }
        Err(failure) if failure.code() == Some(409) && uid.is_none() => {
            report.conflicts.push(child.name.clone());
        }
        Err(failure) => report.fail(&child.name, failure),
    }
}

fn digest(stored: &Value, owner: &SetOwner) -> String {
    ExistingSync::of(stored, owner).digest()
}
