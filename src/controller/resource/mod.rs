//! Worker of one Sync: validates the resource, reads its Secrets, starts the reconciler, runs the
//! finalizer.
//!
//! In: the Sync as the API server has it, at each change. Out: a request to the reconciler
//! (`worker/`), or a refusal in the status. Secrets and ConfigMaps that the spec names are read
//! and watched here.

mod decryption_secret;
mod deletion;
mod dependency_access;
mod instance;
mod mounts;
mod narrowed_request;
mod next_action;
mod read_watch;
pub(in crate::controller) mod secrets;
mod signers;
mod stand_down;
mod substitution_sources;
mod target;
mod versions;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinHandle};

use super::Context;
use super::credentials::secret_permission::SecretPermission;
use super::notifications::pull_requests::PlanTarget;
use super::reconcile::request::ReconcileRequest;
use super::status::StatusRecorder;
use super::status::log_lines::{LogSubject, Tone};
use super::status::writer::write_statuses;
use super::worker::run_reconciler;
use crate::api::SyncName;
use crate::cluster::{LatestSnapshot, jitter};
use crate::report::ErrorCause;
use deletion::{finalize, orphan_if_asked};
use narrowed_request::keep_narrowed;
use next_action::NextAction;
use stand_down::{remove_claims, withdraw_claims};
use target::end_with_secret;

/// First and longest back-off after a transient failure.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Longest back-off while permissions are missing.
const GRANTED: Duration = Duration::from_secs(5);

struct SyncWorker {
    context: Arc<Context>,
    name: SyncName,
    resource_recorder: StatusRecorder,
    requests: Option<watch::Sender<Arc<ReconcileRequest>>>,
    reconciler: Option<JoinHandle<()>>,
    /// The Secrets with the credentials of the repository and of the server of the chart.
    secret: Option<secrets::WatchedSecret>,
    chart_secret: Option<secrets::WatchedSecret>,
    /// The Secret of the cluster in which its objects live.
    cluster_secret: Option<secrets::WatchedSecret>,
    /// The objects with the keys of those who may sign the source and the chart.
    signers: Option<signers::WatchedSigners>,
    chart_signers: Option<signers::WatchedSigners>,
    /// Proof that the Sync may use the credentials.
    permission: Option<Arc<SecretPermission>>,
    /// The Secret with the keys for encrypted files.
    decryption: Option<decryption_secret::WatchedKeys>,
    chart_permission: Option<Arc<SecretPermission>>,
    /// The Secrets that the mounts name.
    mounts: Vec<mounts::WatchedMount>,
    /// ConfigMaps and Secrets with the values of its variables.
    values: Vec<substitution_sources::Source>,
    /// Syncs of other namespaces that this one may depend on, from the last access review.
    readable: Option<dependency_access::Readable>,
    /// Longest back-off after the current failure.
    max_retry_pause: Duration,
    /// Notified when a Secret or ConfigMap has changed.
    inputs_changed: Arc<Notify>,
    generation: u64,
    /// History of the newest snapshot.
    history: u64,
    /// True once the deletion of its objects has begun.
    has_begun_deletion: bool,
    snapshots: watch::Receiver<LatestSnapshot>,
    /// Since then the status has named a daemon of another instance as the one that serves the
    /// Sync.
    elsewhere_since: Option<Instant>,
}

/// Serves a Sync until it is gone or the daemon ends.
pub(crate) async fn run_worker(
    context: Arc<Context>,
    name: SyncName,
    mut snapshots: watch::Receiver<LatestSnapshot>,
) {
    let resource_recorder = StatusRecorder::new(context.reporting.clone(), name.clone());
    let writer = resource_recorder.clone();
    // A task of its own, so that a status is written while this one waits for something else, and
    // no write is cancelled half-way.
    let _writing = Writing(tokio::spawn(async move { write_statuses(&writer).await }).abort_handle());
    let inputs_changed = Arc::<Notify>::default();
    let mut worker = SyncWorker {
        context: context.clone(),
        name,
        resource_recorder,
        requests: None,
        reconciler: None,
        secret: None,
        chart_secret: None,
        cluster_secret: None,
        signers: None,
        chart_signers: None,
        permission: None,
        decryption: None,
        chart_permission: None,
        mounts: Vec::new(),
        values: Vec::new(),
        readable: None,
        max_retry_pause: RETRY.1,
        inputs_changed: inputs_changed.clone(),
        generation: 0,
        history: 0,
        has_begun_deletion: false,
        snapshots: snapshots.clone(),
        elsewhere_since: None,
    };
    let mut retry = RETRY.0;
    loop {
        let leads = context.leads().await;
        let sync = snapshots.borrow_and_update().clone().filter(|_| leads);
        let Some(sync) = sync else { break };
        worker.history = sync.history;
        // Boxed, as all that runs rarely: an idle Sync keeps the memory of what it awaits inline.
        let again = Box::pin(async { worker.serve(&sync.sync.read()).await }).await;
        drop(sync);
        retry = if again { (retry * 2).min(worker.max_retry_pause) } else { RETRY.0 };
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { break },
            () = inputs_changed.notified() => {}
            // The settings decide, among others, whose rights the Sync may use.
            () = context.settings.replaced.notified() => {}
            () = tokio::time::sleep(jitter(retry)), if again => {}
        }
    }
    Box::pin(worker.stop()).await;
    worker.context.cluster.release_watches(&worker.name);
    worker.context.targets.release(&worker.name);
}

/// Task that writes statuses; aborted when the worker ends.
struct Writing(AbortHandle);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SyncWorker {
    /// Takes the next step for the Sync; true if it must be repeated after a back-off.
    async fn serve(&mut self, sync: &Value) -> bool {
        let action = self.next_action(sync).await;
        self.log_refusal(&action);
        match action {
            // On a transient error keep running with the previous spec.
            NextAction::Refuse(reconcile_error) if !reconcile_error.permanent => {
                // A person who grants the missing permission waits for this.
                let lacks_rights =
                    matches!(reconcile_error.cause, ErrorCause::RightsMissing | ErrorCause::SecretNotAllowed);
                self.max_retry_pause = if lacks_rights { GRANTED } else { RETRY.1 };
                self.resource_recorder.refuse(Some(reconcile_error.clone()));
                end_with_secret(self).await;
                let is_refused = match reconcile_error.cause {
                    ErrorCause::ClusterUnreachable | ErrorCause::Progressing => false,
                    // Without permissions the Sync cannot adopt anything, so no peer may wait for
                    // it.
                    _ if lacks_rights => true,
                    // The missing object may appear at any moment, and the previous request still
                    // says which files it may claim.
                    _ => self.requests.is_none(),
                };
                self.context.peers.set_refused(&self.name, is_refused);
                if lacks_rights {
                    self.forget_plan_target();
                }
                // A cluster that does not answer, or asks to wait, says nothing about the spec.
                let refused = Some(reconcile_error).filter(|it| {
                    !matches!(it.cause, ErrorCause::ClusterUnreachable | ErrorCause::Progressing)
                });
                if !keep_narrowed(self, sync, refused) && self.requests.is_some() {
                    withdraw_claims(self).await;
                }
                true
            }
            NextAction::Refuse(reconcile_error) => {
                self.resource_recorder.refuse(Some(reconcile_error.clone()));
                self.context.peers.set_refused(&self.name, true);
                self.forget_plan_target();
                end_with_secret(self).await;
                let is_without_identity = reconcile_error.cause == ErrorCause::ServiceAccountRequired;
                if is_without_identity || !keep_narrowed(self, sync, Some(reconcile_error)) {
                    withdraw_claims(self).await;
                    remove_claims(self).await;
                } else {
                    orphan_if_asked(self, sync).await;
                }
                false
            }
            NextAction::Reconcile(request) => {
                self.resource_recorder.refuse(None);
                self.context.peers.set_refused(&self.name, false);
                self.note_plan_target(&request);
                self.send_request(*request);
                false
            }
            NextAction::LeaveToPeer => {
                self.forget_plan_target();
                withdraw_claims(self).await;
                remove_claims(self).await;
                self.context.reporting.board.remove(&self.name);
                // The other daemon reports metrics for it.
                self.context.reporting.metrics.remove_sync(&self.name.to_string());
                true
            }
            NextAction::Finalize(request) => finalize(self, sync, &request).await,
        }
    }

    /// Logs that the spec is refused, or accepted again. An unreachable API server is logged once
    /// for all Syncs, elsewhere.
    fn log_refusal(&self, action: &NextAction) {
        match action {
            NextAction::Refuse(reconcile_error)
                if reconcile_error.cause != ErrorCause::ClusterUnreachable =>
            {
                let (reason, message) = (reconcile_error.reason(), &reconcile_error.message);
                self.context.reporting.lines.log_condition(
                    &self.name,
                    LogSubject::Spec,
                    Tone::Warning,
                    reason,
                    message,
                );
            }
            NextAction::Reconcile(_) => {
                self.context.reporting.lines.end_condition(&self.name, LogSubject::Spec)
            }
            NextAction::Refuse(_) | NextAction::Finalize(_) | NextAction::LeaveToPeer => {}
        }
    }

    /// Notes the Sync for plans of pull requests, and for viewers of its plan.
    fn note_plan_target(&self, request: &ReconcileRequest) {
        if self.context.reporting.board.is_read() {
            self.context.reporting.held_back.note(&self.name, request);
        }
        let Some(sync) = self.snapshots.borrow().as_ref().map(|seen| seen.sync.clone()) else { return };
        let (center, settings) = (&self.context.reporting.notifications, self.context.settings());
        let place = (&*center.cluster_name, settings.console.get("url"));
        let target = PlanTarget::new(place, &self.name, sync, (&request.repository, &request.cluster));
        match target {
            Some(target) => center.pull_requests.note(&self.name, target),
            None => center.pull_requests.forget(&self.name),
        }
    }

    /// Ends plans with a login and an identity that the Sync may not use any more.
    fn forget_plan_target(&self) {
        self.context.reporting.held_back.forget(&self.name);
        self.context.reporting.notifications.pull_requests.forget(&self.name);
    }

    fn send_request(&mut self, request: ReconcileRequest) {
        self.resource_recorder.set_request(request.spec_revision, request.moves_to.clone());
        if let Some(requests) = &self.requests {
            // Each status that we write returns as a watch event, and must not start a reconcile.
            requests.send_if_modified(|last| {
                let is_news =
                    (last.spec_revision, &last.request) != (request.spec_revision, &request.request);
                if is_news {
                    *last = Arc::new(request);
                }
                is_news
            });
            return;
        }
        let (send, receive) = watch::channel(Arc::new(request));
        self.requests = Some(send);
        let (context, name, resource_recorder) =
            (self.context.clone(), self.name.clone(), self.resource_recorder.clone());
        self.reconciler = Some(tokio::spawn(run_reconciler(context, name, receive, Some(resource_recorder))));
    }

    /// Closes the request channel and waits until the reconciler has finished the work in progress.
    async fn stop(&mut self) {
        self.requests = None;
        self.forget_plan_target();
        if let Some(reconciler) = self.reconciler.take() {
            // It ends within the grace period of the context; a panic in it must not reach this
            // task.
            let _ = reconciler.await;
        }
    }
}
