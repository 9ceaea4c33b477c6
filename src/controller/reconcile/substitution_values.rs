//! Reads substitution values of a Sync from ConfigMaps and Secrets (`spec.render.substitute.from`).
//!
//! In: the names in the spec, and the cluster as the ServiceAccount of the Sync sees it: the author
//! of a Sync must not read through it what the ServiceAccount may not.
//! Out: the spec with all of its variables, or the reason for missing ones.

use std::sync::Arc;

use super::prepare::cluster_error;
use crate::api::{SyncName, ValuesKind};
use crate::cluster::{Cluster, SubstitutionValues};
use crate::controller::spec::{ValidatedSpec, ValuesSource};
use crate::render::{Variables, Visibility};
use crate::report::{ErrorCause, ReconcileError};

/// Reads all named objects once, and returns the spec with their values.
pub(crate) async fn filled(
    cluster: &Cluster,
    name: &SyncName,
    valid_spec: ValidatedSpec,
) -> Result<ValidatedSpec, ReconcileError> {
    let mut all = Vec::with_capacity(valid_spec.values.len());
    for values in &valid_spec.values {
        all.push(texts(cluster, name, values).await?);
    }
    Ok(with(valid_spec, all.iter().map(Option::as_ref)))
}

/// Reads one of the objects; `None` if it is optional and does not exist.
pub(crate) async fn texts(
    cluster: &Cluster,
    name: &SyncName,
    values: &ValuesSource,
) -> Result<Option<SubstitutionValues>, ReconcileError> {
    if values.kind == ValuesKind::Secret && cluster.notary().is_key_secret(&name.namespace, &values.name) {
        return Err(is_of_the_daemon(&values.name));
    }
    let found = cluster.substitution_sources().read(values.kind, &name.namespace, &values.name).await;
    let found = found.map_err(|failure| {
        let mut reconcile_error = cluster_error(&failure);
        if reconcile_error.cause == ErrorCause::RightsMissing {
            let grant = grant(name);
            reconcile_error.message = format!(
                "spec.render.substitute.from names the {} {}, which may not be read: {}; {grant} grants the permission",
                values.kind.as_str(),
                values.name,
                reconcile_error.message
            );
        }
        reconcile_error
    })?;
    match found {
        Some(found) if found.holds_keys => Err(is_of_the_daemon(&values.name)),
        None if !values.optional => Err(ReconcileError {
            cause: ErrorCause::ValuesMissing,
            message: format!(
                "there is no {} {} in the namespace {}, which spec.render.substitute.from references; create it, or set optional: true",
                values.kind.as_str(),
                values.name,
                name.namespace
            ),
            problems: Vec::new(),
            permanent: false,
        }),
        found => Ok(found),
    }
}

/// Returns the error for an object that may be read but not watched: a change of it would go
/// unnoticed.
pub(crate) fn unwatched(name: &SyncName, values: &ValuesSource) -> ReconcileError {
    let (kind, grant) = (values.kind.as_str(), grant(name));
    let message = format!(
        "spec.render.substitute.from names the {kind} {}, which may not be watched, so changes of it would go unnoticed; {grant} grants the permission",
        values.name
    );
    ReconcileError { cause: ErrorCause::RightsMissing, message, problems: Vec::new(), permanent: false }
}

/// Error for a Secret with the keys of the daemon, by which objects are proven: no Sync may read
/// them.
pub(in crate::controller) fn is_of_the_daemon(name: &str) -> ReconcileError {
    ReconcileError {
        cause: ErrorCause::SpecInvalid,
        message: format!(
            "the Secret {name} holds the keys of the daemon, which no Sync may use; name another Secret"
        ),
        problems: Vec::new(),
        permanent: true,
    }
}

/// Returns the command that grants the permissions of the Sync.
pub(super) fn grant(name: &SyncName) -> String {
    format!("`moorline rbac --sync {} -n {} | kubectl apply -f -`", name.name, name.namespace)
}

/// Returns the spec with these texts as variables: later objects override earlier ones, and the
/// spec overrides all.
pub(crate) fn with<'a>(
    mut valid_spec: ValidatedSpec,
    all: impl Iterator<Item = Option<&'a SubstitutionValues>>,
) -> ValidatedSpec {
    let Some(own) = valid_spec.options.variables.clone() else { return valid_spec };
    let mut variables = Variables::default();
    for (values, texts) in valid_spec.values.iter().zip(all) {
        let seen = match values.kind {
            ValuesKind::ConfigMap => Visibility::Public,
            ValuesKind::Secret => Visibility::Secret,
        };
        let texts = texts.map(|found| found.values.as_slice()).unwrap_or_default();
        variables = variables.with_values(texts.iter().map(|(key, text)| (key, text)), seen);
    }
    valid_spec.options.variables = Some(Arc::new(variables.overridden_by(&own)));
    valid_spec
}
