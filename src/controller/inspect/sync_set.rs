//! Plans a SyncSet for a command that does not serve it.
//!
//! In: a SyncSet and the Syncs of its namespace, as the API server has them. Out: the desired
//! Syncs, and the step of the daemon for each. Nothing is written.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::api::{APPROVE_ANNOTATION, SyncName, SyncSet};
use crate::clock;
use crate::cluster::Cluster;
use crate::controller::credentials::read_credentials;
use crate::controller::reconcile_errors::source_error;
use crate::controller::spec;
use crate::controller::sync_sets::set_clusters::list_clusters;
use crate::controller::sync_sets::set_sources::{read_selected, validated};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Credentials, Repositories};
use crate::sync_set::{
    CompiledSet, ExistingSync, RemovalPolicy, SetChildren, SetOwner, SetPlan, cluster_generators, generate,
    git_generators, hold_stages, plan_children,
};

/// Longest time of the polls and reads.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Plans a SyncSet.
///
/// # Errors
///
/// Returns the first error of the spec, a Secret, a repository or the parameters.
pub async fn plan_sync_set(
    (cluster, repositories): (&Cluster, &Repositories),
    name: &SyncName,
    raw: &Value,
    syncs: &[Value],
) -> Result<SetPlan, ReconcileError> {
    let set: SyncSet = serde_json::from_value(raw.clone())
        .map_err(|_| refused("this version of Moorline cannot read the spec".to_owned()))?;
    let disk = cluster.discovery().is_sandbox().await.then_some(Path::new("/"));
    let compiled = CompiledSet::compile(&set, raw).map_err(|errors| refused(errors.join("; ")))?;
    let by = clock::now() + TIMEOUT;
    let mut files = Vec::new();
    for generator in git_generators(&set.spec) {
        let valid_spec = validated(disk, name, &set, Some(generator))?;
        let credentials = match &valid_spec.secret {
            Some(secret) => read_credentials(cluster, &name.namespace, secret, &valid_spec.address).await?,
            None => Credentials::default(),
        };
        let repository =
            repositories.repository(&valid_spec.address, "", &credentials).map_err(source_error)?;
        let revision = repository.resolve(&valid_spec.reference, by).await.map_err(source_error)?;
        files.push(read_selected(&repository, generator, &revision, by).await?);
    }
    let mut secrets = Vec::new();
    for generator in cluster_generators(&set.spec) {
        secrets.push(list_clusters(cluster, name, generator).await?);
    }
    let parameters = generate(&set.spec, &files, &secrets).map_err(refused)?;
    let owner = SetOwner::of(raw);
    let children = SetChildren::build(&compiled, &owner, &parameters, |child, manifest| {
        let sync = spec::read(manifest.clone()).map_err(|refusal| refusal.to_string())?;
        spec::check_fields(manifest, &sync.spec).map_err(|refusal| refusal.to_string())?;
        let child = SyncName::new(&owner.namespace, child);
        spec::validate_within(&child, &sync.spec, disk).map(drop).map_err(|refusal| refusal.to_string())
    })
    .map_err(|errors| refused(errors.join("; ")))?;
    let approved = set.metadata.annotations.as_ref().and_then(|all| all.get(APPROVE_ANNOTATION));
    let policy = RemovalPolicy::of(set.spec.prune.as_ref(), approved.map(String::as_str));
    let existing: Vec<ExistingSync> = syncs.iter().map(|sync| ExistingSync::of(sync, &owner)).collect();
    let plan = plan_children(&children, &existing, &policy, |_, _| false);
    Ok(hold_stages(plan, (&children, &existing), clock::wall()))
}

fn refused(message: String) -> ReconcileError {
    ReconcileError { cause: ErrorCause::SpecInvalid, message, problems: Vec::new(), permanent: true }
}
