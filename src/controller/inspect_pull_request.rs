//! Renders a pull request of a Sync for a command, as the text of a stranger.
//!
//! In: a Sync as the API server has it, and the number of a pull request. Out: its base and its
//! proposed commit, both rendered in the same way. Nothing is written.
//!
//! Neither commit is rendered with a value that the repository does not have: no variable is
//! substituted, no file is decrypted, and no Secret is read but that with the login for Git. Only
//! the host of the repository is contacted, so there are no remote bases and no charts from
//! elsewhere. A chart sees no kinds of the cluster.

use std::sync::Arc;

use serde_json::Value;

use super::cloud_identity::{TokenClusters, source_credentials};
use super::inspect::{check_home, credentials};
use super::peers::latest_revisions::LatestRevisions;
use super::reconcile::prepare::{cluster_error, prepare, source_error};
use super::reconcile::remote_bases::{RemoteBaseContext, TrackedBases};
use super::reconcile::renderer::{ChartLogin, RenderContext};
use super::spec;
use super::spec::{ValidatedSpec, validate};
use crate::api::SyncName;
use crate::clock;
use crate::cluster::Cluster;
use crate::desired::DesiredSet;
use crate::helm::Helm;
use crate::metrics::Metrics;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Address, AllowList, Error, HostPolicy, Reference, Repositories, Repository, Revision};

/// A rendered pull request.
#[derive(Debug)]
pub struct InspectedPullRequest {
    /// The valid spec, narrowed for strangers.
    pub valid_spec: ValidatedSpec,
    /// The base: the revision that is applied, or else the newest one.
    pub base: Revision,
    /// Its desired set.
    pub base_set: Arc<DesiredSet>,
    /// The proposed commit.
    pub head: Revision,
    /// Its desired set, or the reason why it cannot be rendered.
    pub head_set: Result<Arc<DesiredSet>, ReconcileError>,
}

/// Returns the spec of a Sync for the text of a stranger.
///
/// # Errors
///
/// Returns the reason why a Sync has no plans of pull requests.
pub fn spec_for_strangers(name: &SyncName, sync: &Value) -> Result<ValidatedSpec, ReconcileError> {
    let refused = |error: spec::SpecError| refuse(&error.to_string());
    let spec = spec::read(sync.clone()).map_err(refused)?.spec;
    let valid_spec = validate(name, &spec).map_err(refused)?;
    check_home(&valid_spec).map_err(refused)?;
    if valid_spec.address.registry().is_some() {
        return Err(refuse("its source is a registry, which has no pull requests"));
    }
    if valid_spec.chart.is_some() || !valid_spec.mounts.is_empty() {
        return Err(refuse(
            "its chart or its mounts come from elsewhere, and nothing is fetched for a pull request",
        ));
    }
    let mut options = valid_spec.options.clone();
    options.variables = None;
    Ok(ValidatedSpec {
        options,
        values: Vec::new(),
        chart_values: Vec::new(),
        decryption: None,
        submodules: false,
        verify: None,
        ..valid_spec
    })
}

/// True if live objects of a Sync may hold values that are left out of the plan of a stranger:
/// decrypted ones, and values of Secrets for a chart.
pub fn has_hidden_values(sync: &Value) -> bool {
    let from = sync.pointer("/spec/render/helm/valuesFrom").and_then(Value::as_array);
    sync.pointer("/spec/decryption").is_some() || from.is_some_and(|from| !from.is_empty())
}

/// Returns the hosts that may be contacted for a Sync: that of its repository.
pub fn hosts_of(address: &Address) -> Result<HostPolicy, Error> {
    HostPolicy::new("allowedHosts", address.host())
}

/// Renders the base and the proposed commit of a pull request. `base` is the applied revision, as
/// the status has it. `repositories` may contact the hosts of [`hosts_of`] alone.
///
/// # Errors
///
/// Returns the first error of the spec, the login, the repository or the base.
pub async fn render_pull_request(
    cluster: &Cluster,
    (repositories, helm, metrics): (&Repositories, &Helm, &Metrics),
    name: &SyncName,
    (valid_spec, base): (ValidatedSpec, Option<&str>),
    number: u64,
) -> Result<InspectedPullRequest, ReconcileError> {
    cluster.discovery().ensure().await.map_err(|failure| cluster_error(&failure))?;
    let credentials = match &valid_spec.secret {
        Some(secret) => credentials(cluster, &name.namespace, secret, &valid_spec.address).await?,
        None => {
            let clusters = TokenClusters { daemon: cluster, asker: cluster };
            source_credentials(repositories, clusters, name, &valid_spec)?
        }
    };
    let repository = repositories.repository(&valid_spec.address, "", &credentials).map_err(source_error)?;
    let by = clock::now() + valid_spec.timeout;
    let applied = base.and_then(|text| Revision::parse(text, None, &valid_spec.reference));
    let base = match applied {
        Some(revision) => revision.of_repository(),
        None => repository.resolve(&valid_spec.reference, by).await.map_err(source_error)?,
    };
    let head = resolve_head(&repository, number, by).await?;
    let render = async |revision: &Revision| {
        let (heads, followed, allowed) =
            (LatestRevisions::default(), TrackedBases::default(), AllowList::default());
        let base_context = &RemoteBaseContext {
            repositories,
            heads: &heads,
            allowed: &allowed,
            followed: &followed,
            asker: "",
            sync: Box::default(),
            metrics,
            pinned: true,
            fresh: valid_spec.timeout,
        };
        let login = ChartLogin::default();
        let context =
            RenderContext { cluster, helm, base_context, login: &login, mounts: &[], is_for_strangers: true };
        let by = clock::now() + valid_spec.timeout;
        prepare(&repository, revision, &valid_spec, context, None, by).await.map(|done| done.rendered)
    };
    let base_set = render(&base).await?;
    let head_set = render(&head).await;
    Ok(InspectedPullRequest { base, base_set, head, head_set, valid_spec: valid_spec.clone() })
}

/// Returns the newest commit of a pull request, or of a merge request.
async fn resolve_head(
    repository: &Repository,
    number: u64,
    by: std::time::Instant,
) -> Result<Revision, ReconcileError> {
    let mut missing = None;
    for name in [format!("refs/pull/{number}/head"), format!("refs/merge-requests/{number}/head")] {
        let reference = Reference::named(&name).map_err(|error| refuse(&error.to_string()))?;
        match repository.resolve(&reference, by).await {
            Err(error @ Error::NoReference { .. }) => missing = Some(error),
            found => return found.map_err(source_error),
        }
    }
    Err(missing.map_or_else(|| refuse("there is no such pull request"), source_error))
}

fn refuse(message: &str) -> ReconcileError {
    let (cause, message, problems) = (ErrorCause::SpecInvalid, message.to_owned(), Vec::new());
    ReconcileError { cause, message, problems, permanent: true }
}
