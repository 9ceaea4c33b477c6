//! Writes the Syncs of a set, as its plan says.
//!
//! In: a plan, and the cluster with the identity of the set. Out: what was written, and the first
//! failures. Nothing is removed after a failure, and the removals come last. Nothing further is
//! written once the set has another spec: it may be suspended, or the template taken back.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

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

/// A change of the set since the pass has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetChange {
    None,
    /// Its spec is the same, but not its annotations or its status.
    Other,
    Spec,
}

impl SetChange {
    /// Returns the change since a set was as in a pass.
    pub(super) fn since(set: &Value, newest: &watch::Receiver<Arc<Value>>) -> Self {
        let generation = |set: &Value| set.pointer("/metadata/generation").cloned();
        match newest.has_changed() {
            Ok(false) => Self::None,
            Ok(true) if generation(&newest.borrow()) == generation(set) => Self::Other,
            Ok(true) | Err(_) => Self::Spec,
        }
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
    change: &(dyn Fn() -> SetChange + Send + Sync),
) -> WriteReport {
    let mut report = WriteReport::default();
    for step in &plan.steps {
        if matches!(step, SetStep::Create(_) | SetStep::Update { .. }) && change() == SetChange::Spec {
            return report;
        }
        match step {
            SetStep::Create(child) => apply(cluster, owner, (child, None), accepted, &mut report).await,
            SetStep::Update { child, uid } => {
                apply(cluster, owner, (child, Some(uid)), accepted, &mut report).await;
            }
            SetStep::Conflict(name) => report.conflicts.push(name.clone()),
            SetStep::Keep(_) | SetStep::Await(_) | SetStep::Hold(_) => {}
        }
        if report.failures.len() == MAX_FAILURES {
            return report;
        }
    }
    if let PlannedRemoval::Remove(gone) = &plan.removal
        && report.failures.is_empty()
    {
        remove(cluster, owner, gone, (&mut report, &|| change() != SetChange::None)).await;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::Connection;
    use crate::cluster::lease::WritePermit;
    use crate::metrics::Metrics;
    use crate::sandbox::{Options, Sandbox};
    use crate::settings::Settings;

    fn gone() -> PlannedRemoval {
        PlannedRemoval::Remove(vec![("apps-a".to_owned(), "1".to_owned(), "7".to_owned())])
    }

    #[test]
    fn a_removal_goes_on_for_its_own_answer_and_approval_only() {
        let (key, yes, no) = ((Some(1), 1), Some("5c7d".to_owned()), Some("5c7e".to_owned()));
        let hold = || PlannedRemoval::Hold { hash: "5c7d".to_owned(), syncs: vec!["apps-a".to_owned()] };
        for (what, planned, asked, by, expect) in [
            ("the same", gone(), key, &yes, 1),
            ("another answer", gone(), (Some(1), 2), &yes, 0),
            ("another spec", gone(), (Some(2), 1), &yes, 0),
            ("another approval", gone(), key, &no, 0),
            ("no approval", gone(), key, &None, 0),
            ("nothing that has begun", hold(), key, &yes, 0),
        ] {
            let mut begun = BegunRemoval::default();
            begun.note(key, yes.clone(), &planned);
            assert_eq!(begun.uids(asked, by.as_ref()).len(), expect, "{what}");
        }
    }

    #[test]
    fn a_form_is_accepted_for_the_child_that_was_applied() {
        let owner = SetOwner::of(&json!({"metadata": {"namespace": "team", "name": "apps", "uid": "u1"}}));
        let live = |path: &str| {
            let sync = json!({"metadata": {"name": "apps-a"}, "spec": {"path": path}});
            ExistingSync::of(&sync, &owner)
        };
        let child = |name: &str, hash: &str| SetChild {
            name: name.to_owned(),
            manifest: json!({}),
            hash: hash.to_owned(),
        };
        let known = [("apps-a".to_owned(), ("h1".to_owned(), live("a").digest()))].into();
        let forms = AcceptedForms(known);
        for (name, hash, path, expect) in [
            ("apps-a", "h1", "a", true),
            ("apps-a", "h2", "a", false),
            ("apps-a", "h1", "b", false),
            ("apps-b", "h1", "a", false),
        ] {
            assert_eq!(forms.is_accepted(&child(name, hash), &live(path)), expect, "{name} {hash} {path}");
        }
    }

    #[test]
    fn only_another_generation_is_another_spec() {
        let set = |generation: i64| Arc::new(json!({"metadata": {"generation": generation}}));
        let (newest, mut seen) = watch::channel(set(1));
        seen.mark_unchanged();
        assert_eq!(SetChange::since(&set(1), &seen), SetChange::None);
        newest.send_replace(set(1));
        assert_eq!(SetChange::since(&set(1), &seen), SetChange::Other);
        newest.send_replace(set(2));
        assert_eq!(SetChange::since(&set(1), &seen), SetChange::Spec);
        drop(newest);
        assert_eq!(SetChange::since(&set(2), &seen), SetChange::Spec, "nobody serves it any more");
    }

    #[tokio::test]
    async fn nothing_is_removed_after_a_failure_or_for_an_outdated_set() {
        let sandbox = Sandbox::new(&Options { record_requests: true, ..Options::default() });
        let connection = Connection::from_client(sandbox.client(), "moorline");
        let (metrics, settings) = (Metrics::new().unwrap(), Settings::default());
        let cluster = Cluster::new(connection, metrics, WritePermit::unlimited(), &settings);
        let owner = SetOwner::of(&json!({"metadata": {"namespace": "team", "name": "apps", "uid": "u1"}}));
        // The server serves no Syncs, so each write fails.
        let child = SetChild { name: "apps-b".to_owned(), manifest: json!({}), hash: "h".to_owned() };
        let create = || vec![SetStep::Create(child.clone())];
        for (steps, change, expect) in [
            (vec![], SetChange::None, (0, 1)),
            (vec![], SetChange::Other, (0, 0)),
            (vec![], SetChange::Spec, (0, 0)),
            (create(), SetChange::None, (1, 0)),
            (create(), SetChange::Other, (1, 0)),
            (create(), SetChange::Spec, (0, 0)),
        ] {
            let plan = SetPlan { steps, removal: gone(), rollout: None };
            let _ = sandbox.take_requests();
            write_children(&cluster, &owner, &plan, &mut AcceptedForms::default(), &|| change).await;
            let asked = sandbox.take_requests();
            let count = |method: &str| asked.iter().filter(|request| request.method == method).count();
            assert_eq!((count("PATCH"), count("DELETE")), expect, "{change:?} {asked:?}");
        }
    }
}
