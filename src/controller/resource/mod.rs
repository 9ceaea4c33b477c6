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
mod read_watch;
mod secrets;
mod signers;
mod stand_down;
mod substitution_sources;
mod versions;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinHandle};

use super::Context;
use super::deletion::DeletionRequest;
use super::reconcile::prepare;
use super::spec;
use super::spec::{ValidatedSpec, validate_within};
use super::status::StatusRecorder;
use super::status::board_entry::set_source;
use super::status::log_lines::{LogSubject, Tone};
use super::status::notifications::set_subject;
use super::status::source_summary;
use super::status::writer::write_statuses;
use super::worker::repository_credentials::SecretPermission;
use super::worker::{ReconcileRequest, run_reconciler};
use crate::adopt::AdoptedFrom;
use crate::api::{
    ADOPTED_FROM_ANNOTATION, APPROVE_ANNOTATION, APPROVED_BY_ANNOTATION, MOVES_TO_ANNOTATION,
    REQUEST_ANNOTATION, RevisionHold, Sync, SyncName, signer_of,
};
use crate::cluster::{LatestSnapshot, jitter, version};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Address, Reference};
use decryption_secret::with_keys;
use deletion::{finalize, finalizer, orphan_if_asked};
use dependency_access::may_depend;
use instance::is_served_elsewhere;
use narrowed_request::keep_narrowed;
use secrets::{chart_credentials, credentials};
use signers::{revoke_keys, signing_keys};
use stand_down::{remove_claims, withdraw_claims};
use substitution_sources::filled;

/// First and longest back-off after a transient failure.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Longest back-off while permissions are missing.
const GRANTED: Duration = Duration::from_secs(5);

struct SyncWorker {
    context: Arc<Context>,
    name: SyncName,
    resource_recorder: StatusRecorder,
    orders: Option<watch::Sender<ReconcileRequest>>,
    following: Option<JoinHandle<()>>,
    /// The Secrets with the credentials of the repository and of the server of the chart.
    secret: Option<secrets::WatchedSecret>,
    chart_secret: Option<secrets::WatchedSecret>,
    /// The objects with the keys of those who may sign the source and the chart.
    trusted: Option<signers::WatchedSigners>,
    chart_trusted: Option<signers::WatchedSigners>,
    /// Proof that the Sync may use the credentials.
    permission: Option<Arc<SecretPermission>>,
    /// The Secret with the keys for encrypted files.
    decryption: Option<decryption_secret::WatchedKeys>,
    chart_permission: Option<Arc<SecretPermission>>,
    /// The Secrets that the mounts name.
    mounts: Vec<mounts::WatchedMount>,
    /// ConfigMaps and Secrets with the values of its variables.
    values: Vec<crate::controller::resource::substitution_sources::Source>,
    /// Syncs of other namespaces that this one may depend on, from the last access review.
    readable: Option<crate::controller::resource::dependency_access::Readable>,
    /// Longest back-off after the current failure.
    max_retry_pause: Duration,
    /// Notified when a Secret or ConfigMap has changed.
    rotated: Arc<Notify>,
    generation: u64,
    /// History of the newest snapshot.
    history: u64,
    /// True once the deletion of its objects has begun.
    deletes: bool,
    seen: watch::Receiver<LatestSnapshot>,
    /// Since then the status has named a daemon of another instance as the one that serves the
    /// Sync.
    elsewhere_since: Option<Instant>,
}

/// Next step for a Sync.
enum NextAction {
    Follow(Box<ReconcileRequest>),
    Refuse(ReconcileError),
    /// The Sync is being deleted; carries its valid spec, or the reason why there is none.
    Leave(DeletionRequest),
    /// Another live daemon serves it.
    Others,
}

/// Serves a Sync until it is gone or the daemon ends.
pub(crate) async fn run_worker(
    context: Arc<Context>,
    name: SyncName,
    mut seen: watch::Receiver<LatestSnapshot>,
) {
    let resource_recorder = StatusRecorder::new(context.reporting.clone(), name.clone());
    let writer = resource_recorder.clone();
    // A task of its own, so that a status is written while this one waits for something else, and
    // no write is cancelled half-way.
    let _writing = Writing(tokio::spawn(async move { write_statuses(&writer).await }).abort_handle());
    let rotated = Arc::<Notify>::default();
    let mut worker = SyncWorker {
        context: context.clone(),
        name,
        resource_recorder,
        orders: None,
        following: None,
        secret: None,
        chart_secret: None,
        trusted: None,
        chart_trusted: None,
        permission: None,
        decryption: None,
        chart_permission: None,
        mounts: Vec::new(),
        values: Vec::new(),
        readable: None,
        max_retry_pause: RETRY.1,
        rotated: rotated.clone(),
        generation: 0,
        history: 0,
        deletes: false,
        seen: seen.clone(),
        elsewhere_since: None,
    };
    let mut retry = RETRY.0;
    loop {
        let leads = context.leads().await;
        let sync = seen.borrow_and_update().clone().filter(|_| leads);
        let Some(sync) = sync else { break };
        worker.history = sync.history;
        let again = worker.serve(&sync.sync).await;
        retry = if again { (retry * 2).min(worker.max_retry_pause) } else { RETRY.0 };
        tokio::select! {
            changed = seen.changed() => if changed.is_err() { break },
            () = rotated.notified() => {}
            // The settings decide, among others, whose rights the Sync may use.
            () = context.settings.reset.notified() => {}
            () = tokio::time::sleep(jitter(retry)), if again => {}
        }
    }
    worker.stop().await;
    worker.context.cluster.release_watches(&worker.name);
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
        let task = self.task(sync).await;
        self.logs(&task);
        match task {
            // On a transient error keep running with the previous spec.
            NextAction::Refuse(reconcile_error) if !reconcile_error.permanent => {
                // A person who grants the missing permission waits for this.
                let lacks_rights =
                    matches!(reconcile_error.cause, ErrorCause::RightsMissing | ErrorCause::SecretNotAllowed);
                self.max_retry_pause = if lacks_rights { GRANTED } else { RETRY.1 };
                self.resource_recorder.refuse(Some(reconcile_error.clone()));
                let is_refused = match reconcile_error.cause {
                    ErrorCause::ClusterUnreachable | ErrorCause::Progressing => false,
                    // Without permissions the Sync cannot adopt anything, so no peer may wait for
                    // it.
                    _ if lacks_rights => true,
                    // The missing object may appear at any moment, and the previous request still
                    // says which files it may claim.
                    _ => self.orders.is_none(),
                };
                self.context.peers.set_refused(&self.name, is_refused);
                // A cluster that does not answer, or asks to wait, says nothing about the spec.
                let refused = Some(reconcile_error).filter(|it| {
                    !matches!(it.cause, ErrorCause::ClusterUnreachable | ErrorCause::Progressing)
                });
                if !keep_narrowed(self, sync, refused) && self.orders.is_some() {
                    withdraw_claims(self).await;
                }
                true
            }
            NextAction::Refuse(reconcile_error) => {
                self.resource_recorder.refuse(Some(reconcile_error.clone()));
                self.context.peers.set_refused(&self.name, true);
                let is_without_identity = reconcile_error.cause == ErrorCause::ServiceAccountRequired;
                if is_without_identity || !keep_narrowed(self, sync, Some(reconcile_error)) {
                    withdraw_claims(self).await;
                    remove_claims(self).await;
                } else {
                    orphan_if_asked(self, sync).await;
                }
                false
            }
            NextAction::Follow(order) => {
                self.resource_recorder.refuse(None);
                self.context.peers.set_refused(&self.name, false);
                self.follow(*order);
                false
            }
            NextAction::Others => {
                withdraw_claims(self).await;
                remove_claims(self).await;
                self.context.reporting.board.remove(&self.name);
                // The other daemon reports metrics for it.
                self.context.reporting.metrics.remove_sync(&self.name.to_string());
                true
            }
            NextAction::Leave(leaving) => finalize(self, sync, &leaving).await,
        }
    }

    /// Logs that the spec is refused, or accepted again. An unreachable API server is logged once
    /// for all Syncs, elsewhere.
    fn logs(&self, task: &NextAction) {
        match task {
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
            NextAction::Follow(_) => self.context.reporting.lines.end_condition(&self.name, LogSubject::Spec),
            NextAction::Refuse(_) | NextAction::Leave(_) | NextAction::Others => {}
        }
    }

    fn follow(&mut self, order: ReconcileRequest) {
        self.resource_recorder.set_request(order.spec_revision, order.moves_to.clone());
        if let Some(orders) = &self.orders {
            // Each status that we write returns as a watch event, and must not start a reconcile.
            orders.send_if_modified(|last| {
                let is_news = (last.spec_revision, &last.request) != (order.spec_revision, &order.request);
                if is_news {
                    *last = order;
                }
                is_news
            });
            return;
        }
        let (send, receive) = watch::channel(order);
        self.orders = Some(send);
        let (context, name, resource_recorder) =
            (self.context.clone(), self.name.clone(), self.resource_recorder.clone());
        self.following = Some(tokio::spawn(run_reconciler(context, name, receive, Some(resource_recorder))));
    }

    /// Closes the request channel and waits until the reconciler has finished the work in progress.
    async fn stop(&mut self) {
        self.orders = None;
        if let Some(following) = self.following.take() {
            // It ends within the grace period of the context; a panic in it must not reach this
            // task.
            let _ = following.await;
        }
    }

    /// Decides the next step for the Sync.
    async fn task(&mut self, value: &Value) -> NextAction {
        let refuse = |cause: ErrorCause, message: String| {
            NextAction::Refuse(ReconcileError { cause, message, problems: Vec::new(), permanent: true })
        };
        // Publish the source before the first request, so that Syncs of other repositories do not
        // wait for this one.
        match followed(&self.name, value, self.context.installation.disk.as_deref()) {
            Some((address, reference, suspended)) => {
                self.context.peers.set_source(&self.name, &address, &reference, suspended);
            }
            None => self.context.peers.mark_unreadable(&self.name),
        }
        let sync = match spec::read(value.clone()) {
            Ok(sync) => sync,
            Err(_) if is_going(value) => {
                let status = value.get("status").and_then(|it| serde_json::from_value(it.clone()).ok());
                return match is_served_elsewhere(self, status.as_ref()).await {
                    true => NextAction::Others,
                    false => NextAction::Leave(Err("SpecInvalid")),
                };
            }
            Err(refusal) => {
                self.update_status_recorder(value, None, false);
                return refuse(ErrorCause::SpecInvalid, refusal.to_string());
            }
        };
        if is_served_elsewhere(self, sync.status.as_ref()).await {
            return NextAction::Others;
        }
        self.update_status_recorder(value, sync.status.clone(), sync.spec.suspend);
        let disk = self.context.installation.disk.as_deref();
        let valid_spec = spec::check_fields(value, &sync.spec);
        let valid_spec = match valid_spec.and_then(|()| validate_within(&self.name, &sync.spec, disk)) {
            Ok(valid_spec) => valid_spec,
            Err(_) if is_going(value) => return NextAction::Leave(Err("SpecInvalid")),
            Err(refusal) => return refuse(ErrorCause::SpecInvalid, refusal.to_string()),
        };
        let mounted = valid_spec.mounts.iter().map(|mount| mount.source.address.clone());
        self.context.peers.set_mounts(&self.name, mounted.collect());
        let trusted = self.orders.as_ref().map(|orders| {
            let before = &orders.borrow().valid_spec;
            (before.verify.clone(), before.chart_verify.clone())
        });
        let asked = (valid_spec.verify.clone(), valid_spec.chart_verify.clone());
        if asked != (None, None) && trusted.is_some_and(|trusted| trusted != asked) {
            // Before other steps can fail: until the new keys are read, no commit may be accepted
            // with the old ones.
            revoke_keys(self, &valid_spec);
        }
        match self.context.may_act_as_itself(&self.name, &valid_spec) {
            Ok(()) if is_going(value) => return NextAction::Leave(Ok(Box::new(valid_spec))),
            Ok(()) => {}
            Err(_) if is_going(value) => return NextAction::Leave(Err("ServiceAccountRequired")),
            Err(message) => return refuse(ErrorCause::ServiceAccountRequired, message),
        }
        if let Some(failure) = finalizer(self, &sync).await {
            return NextAction::Refuse(prepare::cluster_error(&failure));
        }
        match self.order(&sync, valid_spec).await {
            Ok(order) => NextAction::Follow(Box::new(order)),
            Err(reconcile_error) => NextAction::Refuse(reconcile_error),
        }
    }

    fn update_status_recorder(&self, value: &Value, status: Option<crate::api::SyncStatus>, suspended: bool) {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let generation = value.pointer("/metadata/generation").and_then(Value::as_i64);
        self.resource_recorder.in_history(self.history);
        set_subject(&self.resource_recorder, value);
        self.resource_recorder.observe_resource(
            text("/metadata/uid"),
            generation,
            suspended,
            version(value),
            status.unwrap_or_default(),
        );
        set_source(&self.resource_recorder, source_summary::of_resource(&self.name, value));
    }

    async fn order(
        &mut self,
        sync: &Sync,
        valid_spec: ValidatedSpec,
    ) -> Result<ReconcileRequest, ReconcileError> {
        let cluster = self.context.cluster_of(&self.name, &valid_spec).await?;
        let credentials = credentials(self, &valid_spec, &cluster).await?;
        let chart_login = chart_credentials(self, &valid_spec, &cluster).await?;
        let keys = signing_keys(self, &valid_spec, &cluster).await?;
        let mounts = mounts::mounts(self, &valid_spec, &cluster).await?;
        let owner = spec::identity::login_owner(&valid_spec, &self.name.namespace);
        let repository = self
            .context
            .sources
            .repositories
            .repository(&valid_spec.address, &owner, &credentials)
            .map_err(prepare::source_error)?
            .on_behalf_of(&self.name.namespace);
        may_depend(self, &valid_spec, &cluster).await?;
        let valid_spec = filled(self, valid_spec, &cluster).await?;
        let valid_spec = with_keys(self, valid_spec, &cluster).await?;
        let annotation = |key| sync.metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned();
        let mut order = ReconcileRequest {
            valid_spec: Arc::new(valid_spec),
            repository,
            credentials,
            permission: self.permission.clone(),
            chart_login,
            chart_permission: self.chart_permission.clone(),
            mounts,
            keys: keys.source,
            chart_keys: keys.chart,
            namespace: self.name.namespace.clone(),
            cluster,
            approver: signer_of(
                &annotation(APPROVED_BY_ANNOTATION).unwrap_or_default(),
                &annotation(APPROVE_ANNOTATION).unwrap_or_default(),
            ),
            approved: annotation(APPROVE_ANNOTATION),
            hold: RevisionHold::of_annotations(|key| {
                Some(sync.metadata.annotations.as_ref()?.get(key)?.as_str())
            }),
            moves_to: annotation(MOVES_TO_ANNOTATION).map(Box::from),
            predecessor: predecessor(sync),
            request: annotation(REQUEST_ANNOTATION),
            spec_revision: self.generation,
            render_spec: spec::render_spec(&sync.spec),
            refused: None,
        };
        let last = self.orders.as_ref().map(|orders| orders.borrow().clone());
        if last.is_none_or(|last| !last.asks_the_same(&order)) {
            self.generation += 1;
            order.spec_revision = self.generation;
            self.context.peers.set_request(&self.name, self.generation);
        }
        Ok(order)
    }
}

/// True if the Sync is being deleted.
fn is_going(sync: &Value) -> bool {
    sync.pointer("/metadata/deletionTimestamp").is_some()
}

/// Returns the source of a Sync and whether it is suspended, if the source is valid. Other fields
/// may be invalid.
fn followed(name: &SyncName, sync: &Value, disk: Option<&Path>) -> Option<(Address, Reference, bool)> {
    let source = serde_json::json!({"source": sync.pointer("/spec/source")?});
    let valid_spec = validate_within(name, &serde_json::from_value(source).ok()?, disk).ok()?;
    let suspended = sync.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or_default();
    Some((valid_spec.address, valid_spec.reference, suspended))
}

/// Returns the owner that the objects had in another tool, if the Sync was made from such a tool's
/// resource.
fn predecessor(sync: &Sync) -> Option<AdoptedFrom> {
    let from = sync.metadata.annotations.as_ref()?.get(ADOPTED_FROM_ANNOTATION)?;
    AdoptedFrom::from_annotation(from, &sync.metadata.creation_timestamp.as_ref()?.0.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_sync_follows_is_known_whatever_else_is_wrong_with_it() {
        let follows = |spec: Value| followed(&SyncName::new("ops", "shop"), &json!({"spec": spec}), None);
        let address = Address::remote("https://host/path").unwrap();
        let source = |url: &str| json!({"git": {"url": url, "ref": {"branch": "main"}, "secretRef": {"name": "gone"}}});
        let main = Reference::branch("main").unwrap();
        let spec = json!({"source": source("https://host/path"), "path": "/", "suspend": true, "drift": 1});
        assert_eq!(follows(spec), Some((address, main, true)));
        assert_eq!(follows(json!({"source": source("host:path")})), None);
        assert_eq!(follows(json!({"suspend": true})), None);
    }
}
