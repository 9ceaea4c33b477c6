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
use crate::controller::credentials::{read_credentials, read_secret};
use crate::controller::reconcile_errors::source_error;
use crate::controller::spec::{self, ValidatedSpec};
use crate::controller::sync_sets::set_clusters::list_clusters;
use crate::controller::sync_sets::set_pull_requests::{host_of, list_once};
use crate::controller::sync_sets::set_repository::{GeneratorSource, refused, validated};
use crate::controller::sync_sets::set_sources::read_selected;
use crate::controller::sync_sets::set_tags::tag_selection;
use crate::report::ReconcileError;
use crate::source::{Credentials, OutboundClient, Repositories, Repository};
use crate::sync_set::{
    CompiledSet, ExistingSync, RemovalPolicy, SetChildren, SetOwner, SetPlan, SourceAnswers,
    cluster_generators, generate, git_generators, hold_stages, plan_children, pull_request_generators,
    tag_generators,
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
        let valid_spec = validated(disk, name, &set, GeneratorSource::Git(generator))?;
        let repository = open((cluster, repositories), name, &valid_spec).await?;
        let revision = repository.resolve(&valid_spec.reference, by).await.map_err(source_error)?;
        files.push(read_selected(&repository, generator, &revision, by).await?);
    }
    let secrets = list_clusters(cluster, name, &cluster_generators(&set.spec)).await?;
    let mut tags = Vec::new();
    for generator in tag_generators(&set.spec) {
        let valid_spec = validated(disk, name, &set, GeneratorSource::Tags(generator))?;
        let repository = open((cluster, repositories), name, &valid_spec).await?;
        tags.push(repository.tags(tag_selection(generator)?, by).await.map_err(source_error)?);
    }
    let mut pull_requests = Vec::new();
    for generator in pull_request_generators(&set.spec) {
        let (_, host) = host_of(generator)?;
        let data = read_secret(cluster, &name.namespace, &host.secret_ref.name).await?;
        let allowed = set.status.as_ref().map(|status| status.allowed_forks.as_slice());
        let client = OutboundClient::new(repositories);
        let found = list_once(client, generator, &data, allowed.unwrap_or_default(), &set).await?;
        pull_requests.push(found);
    }
    let answers = SourceAnswers { files, secrets, tags, pull_requests };
    let parameters = generate(&set.spec, &answers).map_err(refused)?;
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
    Ok(hold_stages(plan, (&children, &existing), &mut |since| clock::wall().saturating_sub(since)))
}

/// Opens the repository of a generator with the login that the person may read.
async fn open(
    (cluster, repositories): (&Cluster, &Repositories),
    name: &SyncName,
    valid_spec: &ValidatedSpec,
) -> Result<Repository, ReconcileError> {
    let credentials = match &valid_spec.secret {
        Some(secret) => read_credentials(cluster, &name.namespace, secret, &valid_spec.address).await?,
        None => Credentials::default(),
    };
    repositories.repository(&valid_spec.address, "", &credentials).map_err(source_error)
}
