//! Request of a Sync to the reconciler: its spec, and the content of everything that the spec
//! names.
//!
//! In: the objects that the worker has read. Out: [`ReconcileRequest`], valid until the next one
//! comes.

use std::sync::Arc;

use super::mounts::MountSource;
use crate::adopt::AdoptedFrom;
use crate::api::{RevisionHold, WindowOverride};
use crate::cluster::Cluster;
use crate::cluster::remote::is_same_cluster;
use crate::controller::credentials::ChartLogin;
use crate::controller::credentials::secret_permission::SecretPermission;
use crate::controller::peers::latest_revisions::{SourceKey, source_key};
use crate::controller::spec::identity::{login_owner, mount_owner};
use crate::controller::spec::{ValidatedSource, ValidatedSpec};
use crate::report::ReconcileError;
use crate::source::{Credentials, Repository, TrustedKeys};

/// The newest spec of a Sync, with the content of everything that it names.
#[derive(Clone)]
pub(crate) struct ReconcileRequest {
    pub(crate) valid_spec: Arc<ValidatedSpec>,
    pub(crate) repository: Repository,
    /// The value of the approval annotation.
    pub(crate) approved: Option<String>,
    /// The person who gave it, where the console recorded that.
    pub(crate) approver: Option<String>,
    /// The override of a closed window, as the annotations have it.
    pub(crate) window_override: Option<WindowOverride>,
    /// The revision that a person holds the Sync at.
    pub(crate) hold: Option<RevisionHold>,
    /// The Sync to which this one moves its objects, as the annotation names it.
    pub(crate) moves_to: Option<Box<str>>,
    /// Previous owner of the objects in another tool.
    pub(crate) predecessor: Option<AdoptedFrom>,
    pub(crate) credentials: Credentials,
    /// Permission to send the credentials, where the Secret itself does not allow it.
    pub(crate) permission: Option<Arc<SecretPermission>>,
    /// Login for the server of the chart, and the permission to send it.
    pub(crate) chart_login: ChartLogin,
    pub(crate) chart_permission: Option<Arc<SecretPermission>>,
    /// The mounts of the source, each with its own login and its own keys.
    pub(crate) mounts: Arc<[MountSource]>,
    /// The trusted signing keys, where signatures are verified.
    pub(crate) keys: Option<Arc<TrustedKeys>>,
    /// Those who may sign the chart, where its signatures are verified.
    pub(crate) chart_keys: Option<Arc<TrustedKeys>>,
    /// The namespace of the Sync, in which its Secret is.
    pub(crate) namespace: Box<str>,
    /// The home cluster as the Sync's identity sees it: everything that the spec names is there.
    pub(crate) home: Cluster,
    /// The cluster in which the objects of the Sync live.
    pub(crate) cluster: Cluster,
    /// The value of the request annotation, which changes with each request to poll now.
    pub(crate) request: Option<String>,
    /// Revision of the spec: changes with everything else in the request.
    pub(crate) spec_revision: u64,
    /// Hash of the fields of the spec that decide what is rendered.
    pub(crate) render_spec: Box<str>,
    /// The reason why the newest spec cannot be applied: this request has the previous one,
    /// narrowed.
    pub(crate) refused: Option<ReconcileError>,
}

impl ReconcileRequest {
    /// Returns the key of the repository and the ref.
    pub(crate) fn head(&self) -> SourceKey {
        let ValidatedSpec { address, reference, .. } = &*self.valid_spec;
        source_key((address, reference), &login_owner(&self.valid_spec, &self.namespace))
    }

    /// True if the other request differs at most in the poll that it asks for.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        (&self.valid_spec, &self.approved, &self.predecessor)
            == (&other.valid_spec, &other.approved, &other.predecessor)
            && (&self.credentials, &self.keys) == (&other.credentials, &other.keys)
            && self.permission.is_some() == other.permission.is_some()
            && (&self.chart_login, &self.chart_keys) == (&other.chart_login, &other.chart_keys)
            && self.chart_permission.is_some() == other.chart_permission.is_some()
            && !are_other(&self.mounts, &other.mounts)
            && (&self.refused, &self.moves_to) == (&other.refused, &other.moves_to)
            && (&self.hold, &self.window_override) == (&other.hold, &other.window_override)
            && is_same_cluster(&self.cluster, &other.cluster)
    }
}

/// Returns the key of the source of a mount.
pub(crate) fn head_key(namespace: &str, valid_spec: &ValidatedSpec, source: &ValidatedSource) -> SourceKey {
    let owner = mount_owner(valid_spec, namespace, source);
    source_key((&source.address, &source.reference), &owner)
}

/// True if two requests differ in a mount, its login or its keys.
pub(crate) fn are_other(old: &[MountSource], new: &[MountSource]) -> bool {
    old.len() != new.len() || !old.iter().zip(new).all(|(old, new)| old.asks_the_same(new))
}
