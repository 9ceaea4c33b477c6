//! Decides the next step for a Sync.
//!
//! In: the Sync as the API server has it. Out: [`NextAction`]: a request to the reconciler, a
//! refusal, or the deletion. Secrets and ConfigMaps that the spec names are read on the way.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::SyncWorker;
use super::decryption_secret::with_keys;
use super::deletion::finalizer;
use super::dependency_access::may_depend;
use super::instance::is_served_elsewhere;
use super::mounts;
use super::secrets::{chart_credentials, credentials};
use super::signers::{revoke_keys, signing_keys};
use super::substitution_sources::filled;
use super::target::target;
use crate::adopt::AdoptedFrom;
use crate::api::{
    ADOPTED_FROM_ANNOTATION, APPROVE_ANNOTATION, APPROVED_BY_ANNOTATION, MOVES_TO_ANNOTATION,
    REQUEST_ANNOTATION, RevisionHold, Sync, SyncName, SyncStatus, WindowOverride, signer_of,
};
use crate::cluster::version;
use crate::controller::deletion::DeletionRequest;
use crate::controller::reconcile::request::ReconcileRequest;
use crate::controller::reconcile_errors::{cluster_error, source_error};
use crate::controller::spec;
use crate::controller::spec::{ValidatedSpec, validate_within};
use crate::controller::status::board_entry::set_source;
use crate::controller::status::notifications::set_subject;
use crate::controller::status::source_summary;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Address, Reference};

/// Next step for a Sync.
pub(super) enum NextAction {
    Reconcile(Box<ReconcileRequest>),
    Refuse(ReconcileError),
    /// The Sync is being deleted; carries its valid spec, or the reason why there is none.
    Finalize(DeletionRequest),
    /// Another live daemon serves it.
    LeaveToPeer,
}

impl SyncWorker {
    /// Decides the next step for the Sync.
    pub(super) async fn next_action(&mut self, value: &Value) -> NextAction {
        let refuse = |cause: ErrorCause, message: String| {
            NextAction::Refuse(ReconcileError { cause, message, problems: Vec::new(), permanent: true })
        };
        // Publish the source before the first request, so that Syncs of other repositories do not
        // wait for this one.
        match source_of(&self.name, value, self.context.process.disk()) {
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
                    true => NextAction::LeaveToPeer,
                    false => NextAction::Finalize(Err("SpecInvalid")),
                };
            }
            Err(refusal) => {
                self.update_status_recorder(value, None, false);
                return refuse(ErrorCause::SpecInvalid, refusal.to_string());
            }
        };
        if is_served_elsewhere(self, sync.status.as_ref()).await {
            return NextAction::LeaveToPeer;
        }
        self.update_status_recorder(value, sync.status.clone(), sync.spec.suspend);
        let disk = self.context.process.disk();
        let valid_spec = spec::check_fields(value, &sync.spec);
        let valid_spec = match valid_spec.and_then(|()| validate_within(&self.name, &sync.spec, disk)) {
            Ok(valid_spec) => valid_spec,
            Err(_) if is_going(value) => return NextAction::Finalize(Err("SpecInvalid")),
            Err(refusal) => return refuse(ErrorCause::SpecInvalid, refusal.to_string()),
        };
        let mounted = valid_spec.mounts.iter().map(|mount| mount.source.address.clone());
        self.context.peers.set_mounts(&self.name, mounted.collect());
        let trusted = self.requests.as_ref().map(|requests| {
            let before = &requests.borrow().valid_spec;
            (before.verify.clone(), before.chart_verify.clone())
        });
        let asked = (valid_spec.verify.clone(), valid_spec.chart_verify.clone());
        if asked != (None, None) && trusted.is_some_and(|trusted| trusted != asked) {
            // Before other steps can fail: until the new keys are read, no commit may be accepted
            // with the old ones.
            revoke_keys(self, &valid_spec);
        }
        match self.context.may_act_as_itself(&self.name, &valid_spec) {
            Ok(()) if is_going(value) => return NextAction::Finalize(Ok(Box::new(valid_spec))),
            Ok(()) => {}
            Err(_) if is_going(value) => return NextAction::Finalize(Err("ServiceAccountRequired")),
            Err(message) => return refuse(ErrorCause::ServiceAccountRequired, message),
        }
        if let Some(failure) = finalizer(self, &sync).await {
            return NextAction::Refuse(cluster_error(&failure));
        }
        match self.build_request(&sync, valid_spec).await {
            Ok(request) => NextAction::Reconcile(Box::new(request)),
            Err(reconcile_error) => NextAction::Refuse(reconcile_error),
        }
    }

    fn update_status_recorder(&self, value: &Value, status: Option<SyncStatus>, suspended: bool) {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let generation = value.pointer("/metadata/generation").and_then(Value::as_i64);
        self.resource_recorder.in_history(self.history);
        if set_subject(&self.resource_recorder, value) {
            // Other windows may select it now.
            self.context.windows.call_sync(&self.name);
        }
        self.resource_recorder.observe_resource(
            text("/metadata/uid"),
            generation,
            suspended,
            version(value),
            status.unwrap_or_default(),
        );
        set_source(&self.resource_recorder, source_summary::of_resource(&self.name, value));
    }

    async fn build_request(
        &mut self,
        sync: &Sync,
        valid_spec: ValidatedSpec,
    ) -> Result<ReconcileRequest, ReconcileError> {
        let home = self.context.home_of(&self.name, &valid_spec).await?;
        let cluster = target(self, &valid_spec, &home).await?;
        let credentials = credentials(self, &valid_spec, &home).await?;
        let chart_login = chart_credentials(self, &valid_spec, &home).await?;
        let keys = signing_keys(self, &valid_spec, &home).await?;
        let mounts = mounts::mounts(self, &valid_spec, &home).await?;
        let owner = spec::identity::login_owner(&valid_spec, &self.name.namespace);
        let repository = self
            .context
            .sources
            .repositories
            .repository(&valid_spec.address, &owner, &credentials)
            .map_err(source_error)?
            .on_behalf_of(&self.name.namespace);
        may_depend(self, &valid_spec, &home).await?;
        let valid_spec = filled(self, valid_spec, &home).await?;
        let valid_spec = with_keys(self, valid_spec, &home).await?;
        let annotation = |key| sync.metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned();
        let mut request = ReconcileRequest {
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
            home,
            cluster,
            approver: signer_of(
                &annotation(APPROVED_BY_ANNOTATION).unwrap_or_default(),
                &annotation(APPROVE_ANNOTATION).unwrap_or_default(),
            ),
            approved: annotation(APPROVE_ANNOTATION),
            window_override: WindowOverride::of_annotations(|key| {
                Some(sync.metadata.annotations.as_ref()?.get(key)?.as_str())
            }),
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
        let last = self.requests.as_ref().map(|requests| requests.borrow().clone());
        if last.is_none_or(|last| !last.asks_the_same(&request)) {
            self.generation += 1;
            request.spec_revision = self.generation;
            self.context.peers.set_request(&self.name, self.generation);
        }
        Ok(request)
    }
}

/// True if the Sync is being deleted.
fn is_going(sync: &Value) -> bool {
    sync.pointer("/metadata/deletionTimestamp").is_some()
}

/// Returns the source of a Sync and whether it is suspended, if the source is valid. Other fields
/// may be invalid.
fn source_of(name: &SyncName, sync: &Value, disk: Option<&Path>) -> Option<(Address, Reference, bool)> {
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
        let follows = |spec: Value| source_of(&SyncName::new("ops", "shop"), &json!({"spec": spec}), None);
        let address = Address::remote("https://host/path").unwrap();
        let source = |url: &str| json!({"git": {"url": url, "ref": {"branch": "main"}, "secretRef": {"name": "gone"}}});
        let main = Reference::branch("main").unwrap();
        let spec = json!({"source": source("https://host/path"), "path": "/", "suspend": true, "drift": 1});
        assert_eq!(follows(spec), Some((address, main, true)));
        assert_eq!(follows(json!({"source": source("host:path")})), None);
        assert_eq!(follows(json!({"suspend": true})), None);
    }
}
