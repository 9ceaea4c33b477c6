//! Plans of the open pull requests of repositories, as comments and checks on their host.
//!
//! In: Notifiers with `pullRequests`, the Syncs that this daemon serves, and calls of webhooks.
//! Out: one task for each repository of a Notifier (`repository_task.rs`): it lists the pull
//! requests (`visit.rs`), plans those that touch a Sync (`sync_plan.rs`), and writes what is new,
//! as one comment of all Syncs (`plan_writer.rs`). No worker calls this module, so no sync waits
//! for it.

pub(in crate::controller) mod host_client;
pub(in crate::controller) mod open_list;
mod pacing;
mod plan_target;
mod plan_writer;
mod repository_state;
mod repository_task;
mod sync_plan;
mod visit;
mod visit_budget;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;

use super::super::Context;
use crate::api::SyncName;
use crate::notifications::{CompiledNotifier, HostedRepository};
use crate::source::webhook_call::RepositoryNames;
pub(crate) use plan_target::PlanTarget;
use repository_task::keep_repository;

/// Most repositories that are asked at the same time.
const MAX_VISITS: usize = 4;

/// The Syncs that may have plans of pull requests, and the way to the tasks that make them.
#[derive(Default)]
pub(crate) struct PullRequestCenter {
    /// The Syncs that may have plans.
    targets: Mutex<BTreeMap<SyncName, Arc<PlanTarget>>>,
    /// Notified when a Sync comes, goes, or has other facts that select it.
    changed: Notify,
    /// The calls for each repository that is served, by the name that webhooks have for it.
    called: Mutex<BTreeMap<Arc<RepositoryKey>, Arc<Notify>>>,
}

/// A repository of a Notifier, as the Notifier is now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RepositoryKey {
    /// The Notifier, as namespace/name.
    notifier: Box<str>,
    uid: Box<str>,
    generation: Option<i64>,
    host: Box<str>,
    path: Box<str>,
}

/// Turns of all repositories.
struct Turns {
    visits: Semaphore,
    /// One commit of a stranger is rendered at a time.
    render: Semaphore,
}

/// The task of a repository; ends when it is dropped.
struct RunningTask(AbortHandle);

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl PullRequestCenter {
    /// Adds a Sync that is served. A webhook that another daemon has passed on is heeded here.
    pub(crate) fn note(&self, name: &SyncName, target: PlanTarget) {
        let (called, target) = (target.webhook_request().map(Box::<str>::from), Arc::new(target));
        let last = lock(&self.targets).insert(name.clone(), target.clone());
        let is_same = last.as_ref().is_some_and(|last| last.is_selected_as(&target));
        if !is_same {
            self.changed.notify_one();
        }
        // The repository of a Sync that is new here is asked anyway.
        let is_called = last.is_some_and(|last| called.as_deref() != last.webhook_request());
        let repository = target.subject.repository.as_ref().filter(|_| called.is_some() && is_called);
        if let Some(HostedRepository { host, path }) = repository {
            self.call(&RepositoryNames::from([webhook_name(host, path).into()]));
        }
    }

    /// Removes a Sync that is no longer served.
    pub(crate) fn forget(&self, name: &SyncName) {
        if lock(&self.targets).remove(name).is_some() {
            self.changed.notify_one();
        }
    }

    /// Asks for the pull requests of these repositories now.
    pub(crate) fn call(&self, names: &RepositoryNames) {
        let called = lock(&self.called);
        called.iter().filter(|(key, _)| names.contains(&*key.webhook_name())).for_each(|(_, called)| {
            called.notify_one();
        });
    }

    /// Returns the calls for these repositories, and forgets the others.
    fn calls_of(&self, wanted: BTreeSet<Arc<RepositoryKey>>) -> Vec<(Arc<RepositoryKey>, Arc<Notify>)> {
        let mut called = lock(&self.called);
        called.retain(|key, _| wanted.contains(key));
        let call = |key: Arc<RepositoryKey>| (key.clone(), called.entry(key).or_default().clone());
        wanted.into_iter().map(call).collect()
    }

    /// Returns the Syncs of each repository. A Sync has plans by one Notifier, the first by name.
    fn assigned(
        &self,
        notifiers: &[Arc<CompiledNotifier>],
    ) -> BTreeMap<RepositoryKey, BTreeMap<SyncName, Arc<PlanTarget>>> {
        let mut assigned = BTreeMap::<_, BTreeMap<_, _>>::new();
        let planners: Vec<_> = notifiers.iter().filter(|it| it.pull_requests().is_some()).collect();
        if planners.is_empty() {
            return assigned;
        }
        for (name, target) in lock(&self.targets).iter().filter(|(_, target)| !target.is_suspended) {
            let first = planners.iter().find(|notifier| notifier.selects(&target.subject));
            let key = first.zip(target.subject.repository.as_ref());
            if let Some(key) = key.map(|(notifier, repository)| RepositoryKey::new(notifier, repository)) {
                assigned.entry(key).or_default().insert(name.clone(), target.clone());
            }
        }
        assigned
    }
}

impl RepositoryKey {
    fn new(notifier: &CompiledNotifier, repository: &HostedRepository) -> Self {
        Self {
            notifier: notifier.key().into(),
            uid: notifier.uid.clone(),
            generation: notifier.generation,
            host: repository.host.clone(),
            path: repository.path.clone(),
        }
    }

    /// Returns the name that calls of webhooks have for it.
    fn webhook_name(&self) -> String {
        webhook_name(&self.host, &self.path)
    }
}

/// Returns the name that calls of webhooks have for a repository.
fn webhook_name(host: &str, path: &str) -> String {
    format!("{}/{path}", host.strip_prefix("ssh.").unwrap_or(host)).to_lowercase()
}

/// Keeps a task for each repository, without end.
pub(super) async fn keep_pull_requests(context: &Arc<Context>) {
    let center = &context.reporting.notifications;
    let turns = Arc::new(Turns { visits: Semaphore::new(MAX_VISITS), render: Semaphore::new(1) });
    let mut known = center.known.subscribe();
    let mut tasks = BTreeMap::<Arc<RepositoryKey>, RunningTask>::new();
    loop {
        let notifiers = center.notifiers().unwrap_or_default();
        let wanted: BTreeSet<_> =
            center.pull_requests.assigned(&notifiers).into_keys().map(Arc::new).collect();
        tasks.retain(|key, _| wanted.contains(key));
        for (key, call) in center.pull_requests.calls_of(wanted) {
            tasks.entry(key.clone()).or_insert_with(|| {
                let keeping = keep_repository(context.clone(), key, call, turns.clone());
                RunningTask(tokio::spawn(keeping).abort_handle())
            });
        }
        tokio::select! {
            changed = known.changed() => if changed.is_err() { return std::future::pending().await },
            () = center.pull_requests.changed.notified() => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use serde_json::json;

    use super::*;
    use crate::api::REQUEST_ANNOTATION;
    use crate::cluster::SyncText;
    use crate::controller::targets::tests::{Hub, SYNCS};
    use crate::source::{Address, Credentials};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_webhook_that_another_daemon_has_passed_on_calls_the_repository_once() {
        let hub = Hub::new();
        let (name, center) = (SyncName::new("moorline", "shop"), PullRequestCenter::default());
        let url = "https://git.example.com/Team/shop.git";
        let address = Address::remote(url).unwrap();
        let repositories = &hub.context.sources.repositories;
        let repository = repositories.repository(&address, "", &Credentials::default()).unwrap();
        let spec = json!({"gitlab": {"url": "https://git.example.com"}, "transitions": ["Failed"], "pullRequests": {}});
        let notifier = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Notifier",
            "metadata": {"namespace": "moorline", "name": "a"}, "spec": spec,
        });
        let notifier =
            CompiledNotifier::compile(&serde_json::from_value(notifier).unwrap(), "moorline").unwrap();
        let note = |request: Option<&str>| {
            let annotations = request.map(|it| json!({REQUEST_ANNOTATION: it}));
            let sync =
                json!({"metadata": {"annotations": annotations}, "spec": {"source": {"git": {"url": url}}}});
            let of = (&repository, &hub.context.cluster);
            let sync = Arc::new(SyncText::of(sync));
            center.note(&name, PlanTarget::new(("prod", None), &name, sync, of).unwrap());
        };
        note(Some("webhook 0"));
        let wanted = center.assigned(&[Arc::new(notifier)]).into_keys().map(Arc::new).collect();
        let (_, call) = center.calls_of(wanted).pop().expect("a repository");
        let is_called = async || {
            let waited = tokio::time::timeout(std::time::Duration::from_millis(50), call.notified());
            waited.await.is_ok()
        };
        for (request, expect) in [
            (Some("webhook 0"), false),
            (Some("webhook 1"), true),
            // The status of the Sync was written.
            (Some("webhook 1"), false),
            (Some("2026-11-28T00:00:00Z"), false),
            (Some("webhook 2"), true),
            (None, false),
        ] {
            note(request);
            assert_eq!(is_called().await, expect, "{request:?}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_sync_that_is_refused_or_served_elsewhere_has_no_plans() {
        let hub = Hub::new();
        let name = SyncName::new("moorline", "home");
        let center = &hub.context.reporting.notifications.pull_requests;
        let url = "https://git.example.com/team/shop.git";
        let address = Address::remote(url).unwrap();
        let repositories = &hub.context.sources.repositories;
        let repository = repositories.repository(&address, "", &Credentials::default()).unwrap();
        let note = || {
            let sync = json!({"spec": {"source": {"git": {"url": url}}}});
            let sync = Arc::new(SyncText::of(sync));
            let of = (&repository, &hub.context.cluster);
            center.note(&name, PlanTarget::new(("prod", None), &name, sync, of).unwrap());
            hub.look("home");
        };
        let is_forgotten = |_: &Hub| lock(&center.targets).is_empty();
        hub.sync("home", &json!({}));
        hub.until("it is served", |hub| hub.ready("home").0 == "Applied").await;
        // The worker of a refused Sync goes on with the last valid spec.
        let spec = json!({"spec": {"source": {"git": {"url": "nonsense"}}}});
        hub.home.merge(&format!("{SYNCS}/home"), &spec, "test").unwrap();
        hub.until("the spec is refused", |hub| hub.ready("home").0 == "SpecInvalid").await;
        note();
        hub.until("the refused one is forgotten", is_forgotten).await;

        let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap();
        let spec = json!({
            "holderIdentity": "a", "leaseDurationSeconds": 600, "renewTime": format!("{now:.6}"),
        });
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "other", "namespace": "moorline"}, "spec": spec,
        });
        hub.home.apply("/apis/coordination.k8s.io/v1/namespaces/moorline/leases", &lease, "test").unwrap();
        let held = json!({"status": {"heldBy": "moorline/other"}});
        hub.home.merge(&format!("{SYNCS}/home/status"), &held, "test").unwrap();
        note();
        hub.until("the one of another daemon is forgotten", is_forgotten).await;
    }
}
