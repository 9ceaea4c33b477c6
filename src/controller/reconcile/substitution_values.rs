//! Reads values of a Sync from ConfigMaps and Secrets (`spec.render.substitute.from` and
//! `spec.render.helm.valuesFrom`).
//!
//! In: the names in the spec, and the cluster as the ServiceAccount of the Sync sees it: the author
//! of a Sync must not read through it what the ServiceAccount may not.
//! Out: the spec with all of its variables and values, or the reason for missing ones.

use std::sync::Arc;

use crate::api::{SyncName, ValuesKind};
use crate::cluster::{Cluster, SubstitutionValues};
use crate::controller::credentials::daemon_secret_error;
use crate::controller::reconcile_errors::cluster_error;
use crate::controller::spec::{ValidatedSpec, ValuesSource};
use crate::render::helm::ExternalValues;
use crate::render::{Variables, Visibility};
use crate::report::{ErrorCause, ReconcileError};

/// Reads all named objects once, and returns the spec with their values.
pub(crate) async fn filled(
    cluster: &Cluster,
    name: &SyncName,
    valid_spec: ValidatedSpec,
) -> Result<ValidatedSpec, ReconcileError> {
    let mut all = Vec::new();
    for values in valid_spec.values_sources() {
        all.push(texts(cluster, name, values).await?);
    }
    with(valid_spec, all.iter().map(Option::as_ref))
}

/// Reads one of the objects; `None` if it is optional and does not exist.
pub(crate) async fn texts(
    cluster: &Cluster,
    name: &SyncName,
    values: &ValuesSource,
) -> Result<Option<SubstitutionValues>, ReconcileError> {
    if values.kind == ValuesKind::Secret && cluster.notary().is_key_secret(&name.namespace, &values.name) {
        return Err(daemon_secret_error(&values.name));
    }
    let found = cluster.substitution_sources().read(values.kind, &name.namespace, &values.name).await;
    let found = found.map_err(|failure| {
        let mut reconcile_error = cluster_error(&failure);
        if reconcile_error.cause == ErrorCause::RightsMissing {
            let grant = grant(name);
            reconcile_error.message = format!(
                "{} names the {} {}, which may not be read: {}; {grant} grants the permission",
                values.field,
                values.kind.as_str(),
                values.name,
                reconcile_error.message
            );
        }
        reconcile_error
    })?;
    match found {
        Some(found) if found.holds_keys => Err(daemon_secret_error(&values.name)),
        None if !values.optional => Err(ReconcileError {
            cause: ErrorCause::ValuesMissing,
            message: format!(
                "there is no {} {} in the namespace {}, which {} references; create it, or set optional: true",
                values.kind.as_str(),
                values.name,
                name.namespace,
                values.field
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
        "{} names the {kind} {}, which may not be watched, so changes of it would go unnoticed; {grant} grants the permission",
        values.field, values.name
    );
    ReconcileError { cause: ErrorCause::RightsMissing, message, problems: Vec::new(), permanent: false }
}

/// Returns the command that grants the permissions of the Sync.
pub(super) fn grant(name: &SyncName) -> String {
    format!("`moorline rbac --sync {} -n {} | kubectl apply -f -`", name.name, name.namespace)
}

/// Returns the spec with these texts, in the order of its sources, as variables and values.
pub(crate) fn with<'a>(
    valid_spec: ValidatedSpec,
    all: impl Iterator<Item = Option<&'a SubstitutionValues>>,
) -> Result<ValidatedSpec, ReconcileError> {
    let all: Vec<_> = all.collect();
    let (variables, values) = all.split_at(valid_spec.values.len().min(all.len()));
    let mut valid_spec = with_variables(valid_spec, variables.iter().copied());
    valid_spec.options.helm.external = chart_values(&valid_spec, values)?;
    Ok(valid_spec)
}

/// Merges the values of a chart: later objects override earlier ones.
fn chart_values(
    valid_spec: &ValidatedSpec,
    all: &[Option<&SubstitutionValues>],
) -> Result<ExternalValues, ReconcileError> {
    let mut merged = ExternalValues::default();
    for (named, found) in valid_spec.chart_values.iter().zip(all) {
        let Some(found) = found else { continue };
        let invalid = |problem: String| ReconcileError {
            cause: ErrorCause::Input("ValuesInvalid"),
            message: format!(
                "the key {} of the {} {} that spec.render.helm.valuesFrom references {problem}",
                named.key,
                named.source.kind.as_str(),
                named.source.name
            ),
            problems: Vec::new(),
            permanent: false,
        };
        let text = found.values.iter().find(|(key, _)| **key == *named.key);
        let Some((_, text)) = text else { return Err(invalid("does not exist, or is not text".to_owned())) };
        let seen = visibility(named.source.kind);
        merged =
            merged.with(text, named.path.as_ref(), seen).map_err(|problem| invalid(problem.to_string()))?;
    }
    Ok(merged)
}

fn visibility(kind: ValuesKind) -> Visibility {
    match kind {
        ValuesKind::ConfigMap => Visibility::Public,
        ValuesKind::Secret => Visibility::Secret,
    }
}

/// Returns the spec with these texts as variables: later objects override earlier ones, and the
/// spec overrides all.
fn with_variables<'a>(
    mut valid_spec: ValidatedSpec,
    all: impl Iterator<Item = Option<&'a SubstitutionValues>>,
) -> ValidatedSpec {
    let Some(own) = valid_spec.options.variables.clone() else { return valid_spec };
    let mut variables = Variables::default();
    for (values, texts) in valid_spec.values.iter().zip(all) {
        let seen = visibility(values.kind);
        let texts = texts.map(|found| found.values.as_slice()).unwrap_or_default();
        variables = variables.with_values(texts.iter().map(|(key, text)| (key, text)), seen);
    }
    valid_spec.options.variables = Some(Arc::new(variables.overridden_by(&own)));
    valid_spec
}
