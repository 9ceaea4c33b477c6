//! Monitors the health of the objects of one Sync.
//!
//! In: objects that were written, by any manager.
//! Out: a [`HealthSummary`], once their statuses were read.
//!
//! Watches carry metadata only, so a changed status costs a read; `crates/health/src/watchlist.rs`
//! schedules the reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use super::hook_completion::HookStatuses;
use crate::api::{FinishedObject, SpecHash, SyncName};
use crate::cluster::{ApiError, Cluster};
use crate::controller::Context;
use crate::controller::reconcile::policy_inputs::wall_clock;
use crate::controller::spec::HealthOptions;
use crate::desired::{DesiredObject, DesiredSet, Hook, REDACTED, RolloutFilter};
use crate::health::{
    self, Binding, DueReads, Health, HealthSummary, JudgementInputs, Reports, Watchlist, cause, has_reported,
    is_healthy_by_manifest, may_report,
};
use crate::object::{GroupKind, Object, ObjectId};
use crate::plan::{BackendState, backend_state};
use crate::report::board::HealthTable;
use crate::sanitize::sanitize;

/// Health of the objects of one Sync.
pub(crate) struct HealthMonitor {
    context: Arc<Context>,
    cluster: Cluster,
    owner: SyncName,
    options: HealthOptions,
    state: Mutex<MonitoredHealth>,
}

#[derive(Default)]
struct MonitoredHealth {
    list: Watchlist,
    /// The desired set.
    set: Option<Arc<DesiredSet>>,
    /// Kinds without a health rule of which an object was seen to report a status.
    reporting: BTreeSet<GroupKind>,
    /// Statuses of the hooks.
    hooks: HookStatuses,
    /// Volume binding modes of storage classes.
    classes: BTreeMap<String, Option<Binding>>,
    /// Workloads with a ready Pod.
    ready: BTreeSet<ObjectId>,
    /// Workloads that became ready since the last query.
    ready_now: BTreeSet<ObjectId>,
    /// Value of the cache loss counter at which this state was created; only tests change it.
    losses: u64,
}

impl MonitoredHealth {
    fn notes_ready(&mut self, object: &Object) {
        let is_workload = matches!(object.id.group(), "apps" | "");
        if !is_workload || backend_state(&object.id, Some(&object.body)) != BackendState::Ready {
            self.ready.remove(&object.id);
        } else if self.ready.insert(object.id.clone()) {
            self.ready_now.insert(object.id.clone());
        }
    }
}

impl HealthMonitor {
    pub(crate) fn new(
        context: Arc<Context>,
        cluster: Cluster,
        owner: SyncName,
        options: HealthOptions,
    ) -> Self {
        Self { context, cluster, owner, options, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, MonitoredHealth> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> i64 {
        i64::try_from(self.context.now().as_millis()).unwrap_or(i64::MAX)
    }

    /// Sets the desired objects, and records the objects that the Sync has just written.
    pub(crate) fn wants<'a>(&self, set: &Arc<DesiredSet>, written: impl Iterator<Item = &'a ObjectId>) {
        let now = self.now();
        let mut state = self.lock();
        let losses = self.context.losses.of_health();
        if state.losses != losses {
            *state = MonitoredHealth { losses, ..MonitoredHealth::default() };
        }
        if state.set.as_ref().is_none_or(|known| !Arc::ptr_eq(known, set)) {
            let mut known = BTreeMap::new();
            let watched = |object: &&DesiredObject| self.is_watched(object, &mut known);
            let watched: BTreeSet<&ObjectId> =
                set.objects().iter().filter(watched).map(|it| &it.id).collect();
            state.list.retain(|id| watched.contains(id));
            let is_new = |id: &&&ObjectId| !state.list.contains(id);
            let new: Vec<&ObjectId> = self.cluster.read_observed(&self.owner, |observed| {
                watched.iter().filter(is_new).filter(|id| observed.get(id).is_some()).copied().collect()
            });
            new.into_iter().for_each(|id| state.list.on_changed(id, now));
            let hooks = || set.objects().iter().filter(|it| it.annotations.hook.is_some());
            let silent = hooks().filter(|hook| !self.reports_itself(hook, &mut known));
            let silent = silent.map(|hook| hook.id.clone()).collect();
            state.hooks.are(&hooks().map(|hook| &hook.id).collect(), silent);
            state.set = Some(set.clone());
        }
        for id in written {
            if self.wanted(&state, id) {
                state.list.on_written(id, now);
            }
        }
    }

    /// Updates the results of completed objects, and adds failures that were observed here and that
    /// a later read of the object would miss.
    pub(crate) fn ends(&self, finished: &mut [FinishedObject]) {
        let mut state = self.lock();
        let mut failed = BTreeSet::new();
        for end in finished.iter_mut().filter(|end| !end.begun) {
            let Some(id) = ObjectId::parse(&end.object) else { continue };
            end.failed |= state.list.has_failed(&id);
            failed.extend(Some(id).filter(|_| end.failed));
        }
        state.list.restore_failures(&failed);
    }

    /// Returns the statuses of the hooks.
    pub(crate) fn hooks(&self) -> HookStatuses {
        self.lock().hooks.clone()
    }

    /// Forgets the statuses of hooks that run again.
    pub(crate) fn restart<'a>(&self, ids: impl Iterator<Item = &'a ObjectId>) {
        self.lock().hooks.restart(ids);
    }

    /// Returns the workloads that became ready since the last call.
    pub(crate) fn ready_now(&self) -> BTreeSet<ObjectId> {
        std::mem::take(&mut self.lock().ready_now)
    }

    /// Processes the objects that were written or deleted since the last call.
    pub(crate) fn process_written(&self) {
        let (stirred, now) = (self.cluster.take_written(&self.owner), self.now());
        let mut state = self.lock();
        let (there, gone): (Vec<ObjectId>, Vec<ObjectId>) =
            self.cluster.read_observed(&self.owner, |observed| {
                stirred.into_iter().partition(|id| observed.get(id).is_some())
            });
        gone.iter().for_each(|id| {
            state.list.on_deleted(id);
            state.ready.remove(id);
        });
        for id in there {
            if state.list.contains(&id) || self.wanted(&state, &id) {
                state.list.on_changed(&id, now);
            }
        }
    }

    fn wanted(&self, state: &MonitoredHealth, id: &ObjectId) -> bool {
        let wanted = state.set.as_ref().and_then(|set| set.get(id));
        wanted.is_some_and(|wanted| self.is_watched(&wanted, &mut BTreeMap::new()))
    }

    /// Returns true for objects whose status has to be read; `known` caches the answer by kind.
    fn is_watched(&self, wanted: &&DesiredObject, known: &mut BTreeMap<GroupKind, bool>) -> bool {
        if wanted.annotations.hook.is_some_and(|hook| !self.is_current(wanted, hook)) {
            return false;
        }
        self.reports_itself(wanted, known)
    }

    /// Returns true for objects that report their health in a status.
    fn reports_itself(&self, wanted: &DesiredObject, known: &mut BTreeMap<GroupKind, bool>) -> bool {
        let kind = wanted.id.group_kind();
        let covered = self.options.rules.cover(&kind);
        let is_known_by_manifest = || !covered && is_healthy_by_manifest(&kind, &wanted.canonical);
        let watched = *known.entry(kind.clone()).or_insert_with(|| covered || may_report(&kind));
        watched && !is_known_by_manifest()
    }

    /// Returns true for a hook whose current run belongs to its current manifest, or is waited for.
    fn is_current(&self, wanted: &DesiredObject, hook: Hook) -> bool {
        let recorded = self
            .cluster
            .read_observed(&self.owner, |seen| seen.get(&wanted.id).map(|seen| seen.recorded_hash));
        let Some(Some(recorded)) = recorded else { return hook.phase.is_some() };
        let is_waited_for = hook.phase.is_some() && hook.rollouts == RolloutFilter::All;
        wanted.is_recorded_as(&recorded) || is_waited_for && wanted.is_same_hook(&recorded)
    }

    /// Returns the time of the next read, if nothing happens before.
    pub(crate) fn next(&self) -> Option<i64> {
        self.lock().list.next_due_at()
    }

    /// Returns the reads that are due now.
    pub(crate) fn due(&self) -> DueReads {
        let now = self.now();
        self.lock().list.take_due(now)
    }

    /// Returns the summary of all objects, once the desired set is known.
    pub(crate) fn summary(&self) -> Option<HealthSummary> {
        let (mut summary, set) = {
            let state = self.lock();
            (state.list.summary(), state.set.clone()?)
        };
        let worst = std::mem::take(&mut summary.worst).into_iter();
        summary.worst = worst.map(|(id, health)| (id.clone(), shown(&set, &id, health))).collect();
        Some(summary)
    }

    /// Returns the health of each object, for the status page.
    pub(crate) fn healths(&self) -> Arc<HealthTable> {
        let state = self.lock();
        let Some(set) = &state.set else { return Arc::default() };
        let healths = HealthTable::new(
            set,
            state.list.objects_with_health().map(|(id, health)| (id, health.map(|it| shown(set, id, it)))),
        );
        Arc::new(healths)
    }

    /// Returns the objects that are not known to be healthy, and those of them that have failed.
    pub(crate) fn unwell(&self) -> (BTreeSet<ObjectId>, BTreeSet<ObjectId>) {
        let state = self.lock();
        // A suspended hook has not run.
        let is_hook = |id: &ObjectId| {
            let wanted = state.set.as_ref().and_then(|set| set.get(id));
            wanted.is_some_and(|wanted| wanted.annotations.hook.is_some())
        };
        state.list.unhealthy_objects(is_hook)
    }

    /// Returns the first object, other than `but`, that failed with its current manifest, with the
    /// reason.
    pub(crate) fn failed(&self, but: &BTreeSet<ObjectId>) -> Option<String> {
        let state = self.lock();
        let (_, degraded) = state.list.unhealthy_objects(|_| false);
        let set = state.set.as_ref()?;
        let is_new = |id: &&ObjectId| {
            let recorded =
                self.cluster.read_observed(&self.owner, |seen| seen.get(id).map(|seen| seen.recorded_hash));
            // An object that is gone has failed for good.
            let is_wanted = |recorded: &SpecHash| set.get(id).is_some_and(|it| it.is_recorded_as(recorded));
            !but.contains(*id) && recorded.is_none_or(|recorded| recorded.as_ref().is_some_and(is_wanted))
        };
        let first = degraded.iter().find(is_new)?;
        let why = state.list.message_of(first).unwrap_or_default();
        let why = if set.is_tainted(first) { REDACTED.to_owned() } else { sanitize(&why) };
        Some(format!("{first}: {why}"))
    }

    /// Reads the statuses that are due, and evaluates them.
    pub(crate) async fn read(self: Arc<Self>, due: DueReads) {
        // The Syncs of a daemon share a few concurrent reads, with turns by namespace.
        let _turn = self.context.targets.reads_of(&self.owner).acquire(&self.owner.namespace).await;
        let (claims, others) =
            due.objects.into_iter().partition(|id: &ObjectId| id.is_kind("", "PersistentVolumeClaim"));
        for place in due.lists {
            self.cluster.status_reads().list(&self.owner, place, |id, read| self.take(id, read, None)).await;
        }
        self.cluster
            .status_reads()
            .read_each(&self.owner, others, |id, read| self.take(id, read, None))
            .await;
        let claims: Vec<ObjectId> = claims;
        for id in claims {
            let read = self.cluster.status_reads().read(&self.owner, &id).await;
            if let Ok(Some(claim)) = &read {
                self.learn_class(&claim.body).await;
            }
            self.take(&id, read, None);
        }
        for id in due.with_pods {
            let read = self.cluster.status_reads().read(&self.owner, &id).await;
            let cause = match &read {
                Ok(Some(workload)) => Some(self.cause(workload).await),
                Ok(None) | Err(_) => None,
            };
            self.take(&id, read, cause);
        }
    }

    fn take(&self, id: &ObjectId, read: Result<Option<Object>, ApiError>, cause: Option<Option<String>>) {
        let now = self.now();
        let kind = id.group_kind();
        let mut state = self.lock();
        match read {
            Ok(Some(object)) => {
                state.notes_ready(&object);
                if has_reported(&object.body)
                    && state.reporting.insert(kind.clone())
                    && !health::always_reports(&kind)
                {
                    // An object of a kind that seemed never to report may only have been slow to do
                    // so.
                    state.list.on_first_report(id, now);
                }
                let context = health::Context {
                    reports: self.reports(&state, &kind),
                    binding: class(&object.body).and_then(|class| *state.classes.get(class)?),
                };
                let timeout = self
                    .options
                    .timeout
                    .map(|timeout| i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX));
                let runs = state
                    .set
                    .as_ref()
                    .and_then(|set| set.get(id))
                    .is_some_and(|it| it.annotations.hook.is_some());
                let of = JudgementInputs {
                    rules: &self.options.rules,
                    timeout,
                    context,
                    unix_millis: wall_clock(),
                    runs_to_completion: runs,
                };
                state.list.on_read(id, &object.body, cause, &of, now);
                if runs {
                    let end = state.list.completion(id);
                    state.hooks.read(&object, end);
                }
            }
            // The status was requested before the object was created again.
            Ok(None) if self.cluster.read_observed(&self.owner, |observed| observed.get(id).is_some()) => {
                state.list.on_not_found(id, now);
            }
            Ok(None) => state.list.on_deleted(id),
            Err(failure) => state.list.on_read_failed(id, &failure.to_string(), now),
        }
    }

    fn reports(&self, state: &MonitoredHealth, kind: &GroupKind) -> Reports {
        let may = self.cluster.kinds().get(kind).is_some_and(|served| served.has_status);
        match (state.reporting.contains(kind), may) {
            (true, _) => Reports::Yes,
            (false, true) => Reports::Perhaps,
            (false, false) => Reports::No,
        }
    }

    /// Reads the volume binding mode of a claim's storage class, once per class: it is immutable.
    async fn learn_class(&self, claim: &Map<String, Value>) {
        let Some(name) = class(claim).filter(|name| !self.lock().classes.contains_key(*name)) else { return };
        let Ok(id) = ObjectId::new("storage.k8s.io", "StorageClass", "", name) else { return };
        // Without the permission to read classes, the status of the claim has to suffice.
        let Ok(read) = self.cluster.objects().read_whole(&id, None).await else { return };
        let mode =
            read.as_ref().and_then(|class| class.body.get("volumeBindingMode")).and_then(Value::as_str);
        let binding = match mode {
            Some("WaitForFirstConsumer") => Some(Binding::WaitForFirstConsumer),
            Some("Immediate") => Some(Binding::Immediate),
            _ => None,
        };
        self.lock().classes.insert(name.to_owned(), binding);
    }

    /// Describes the failing Pods and ReplicaSets of a workload in one sentence.
    async fn cause(&self, workload: &Object) -> Option<String> {
        // Without the permission to read Pods, the status of the workload has to suffice.
        let beneath = self.cluster.status_reads().workload_children(workload).await.ok()?;
        let (sets, pods): (Vec<_>, Vec<_>) =
            (beneath.replica_sets.iter().collect(), beneath.pods.iter().collect());
        let found = cause(&workload.id.group_kind(), &workload.body, &sets, &pods)?;
        let more =
            if found.pods > 1 { format!(" (and {} more like it)", found.pods - 1) } else { String::new() };
        Some(format!("{} {}: {}{more}", found.kind, found.name, found.why))
    }
}

/// Returns the health of an object with secret values redacted.
fn shown(set: &DesiredSet, id: &ObjectId, mut health: Health) -> Health {
    match &mut health {
        Health::Progressing { why } | Health::Degraded { why } | Health::Unknown { why } => {
            *why = if set.is_tainted(id) { REDACTED.to_owned() } else { sanitize(why) };
        }
        Health::Healthy | Health::Suspended => {}
    }
    health
}

/// Returns the storage class of a volume claim.
fn class(claim: &Map<String, Value>) -> Option<&str> {
    claim.get("spec")?.get("storageClassName")?.as_str()
}
