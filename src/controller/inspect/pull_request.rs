//! Renders a pull request of a Sync for a command, as the text of a stranger.
//!
//! In: a Sync as the API server has it, and the number of a pull request. Out: its base and its
//! proposed commit, both rendered in the same way. Nothing is written.
//!
//! Neither commit is rendered with a value that the repository does not have: no variable is
//! substituted, no file is decrypted, and no Secret is read but that with the login for Git. Only
//! the host of the repository is contacted, so there are no remote bases and no charts from
//! elsewhere. A chart sees no kinds of the cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::check_home;
use crate::api::{Scope, SyncName};
use crate::clock;
use crate::cluster::{ApiError, Cluster, live_objects};
use crate::controller::credentials::cloud_identity::{TokenClusters, source_credentials};
use crate::controller::credentials::{ChartLogin, read_credentials};
use crate::controller::peers::latest_revisions::LatestRevisions;
use crate::controller::reconcile::prepare::{PreparedRevision, prepare};
use crate::controller::reconcile::remote_bases::{RemoteBaseContext, TrackedBases};
use crate::controller::reconcile::renderer::RenderContext;
use crate::controller::reconcile_errors::{cluster_error, source_error};
use crate::controller::spec;
use crate::controller::spec::{ValidatedSpec, validate};
use crate::desired::DesiredSet;
use crate::helm::Helm;
use crate::metrics::Metrics;
use crate::object::{GroupKind, Object, ObjectId};
use crate::observed::{Observed, Ownership};
use crate::report::pull_request::LiveView;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Address, AllowList, Error, HostPolicy, Reference, Repositories, Repository, Revision};

/// Most objects of others that are looked up by name.
const MAX_LOOKED_UP: usize = 500;

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
        Some(secret) => read_credentials(cluster, &name.namespace, secret, &valid_spec.address).await?,
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
    let renderer = StrangerRender { cluster, helm, metrics, repositories, holder: "", asker: "" };
    let base_set = renderer.render(&repository, &base, &valid_spec).await?.rendered;
    let head_set = renderer.render(&repository, &head, &valid_spec).await.map(|done| done.rendered);
    Ok(InspectedPullRequest { base, base_set, head, head_set, valid_spec: valid_spec.clone() })
}

/// Renders commits as the text of a stranger.
#[derive(Clone, Copy)]
pub(in crate::controller) struct StrangerRender<'a> {
    pub(in crate::controller) cluster: &'a Cluster,
    pub(in crate::controller) helm: &'a Helm,
    pub(in crate::controller) metrics: &'a Metrics,
    pub(in crate::controller) repositories: &'a Repositories,
    /// Holder of the memory of the objects.
    pub(in crate::controller) holder: &'a str,
    /// Namespace whose share of the workers is used.
    pub(in crate::controller) asker: &'a str,
}

impl StrangerRender<'_> {
    /// Renders a commit by a spec of [`spec_for_strangers`].
    pub(in crate::controller) async fn render(
        self,
        repository: &Repository,
        revision: &Revision,
        valid_spec: &ValidatedSpec,
    ) -> Result<PreparedRevision, ReconcileError> {
        let Self { cluster, helm, metrics, repositories, holder, asker } = self;
        let (heads, followed, allowed) =
            (LatestRevisions::default(), TrackedBases::default(), AllowList::default());
        let base_context = &RemoteBaseContext {
            repositories,
            heads: &heads,
            allowed: &allowed,
            followed: &followed,
            asker,
            sync: holder.into(),
            metrics,
            pinned: true,
            fresh: valid_spec.timeout,
        };
        let login = ChartLogin::default();
        let context =
            RenderContext { cluster, helm, base_context, login: &login, mounts: &[], is_for_strangers: true };
        let by = clock::now() + valid_spec.timeout;
        prepare(repository, revision, valid_spec, context, None, by).await
    }
}

/// Reads what a plan may use: the own objects of the Sync, and the existence of others in its kinds
/// and namespaces. `kinds` are those of objects that it may own already.
///
/// # Errors
///
/// Returns the first error of a list or a read.
pub async fn read_live_view(
    (cluster, owner): (&Cluster, &SyncName),
    (base, head): (&DesiredSet, Option<&DesiredSet>),
    (valid_spec, scope): (&ValidatedSpec, &Scope),
    mut kinds: BTreeSet<GroupKind>,
) -> Result<LiveView, ApiError> {
    let is_in_scope = |id: &&ObjectId| {
        let is_kind = scope.kinds.iter().any(|kind| *kind == id.group_kind().to_string());
        is_kind && id.namespace().is_none_or(|of| scope.namespaces.iter().any(|known| known == of))
    };
    let ids = || head.into_iter().flat_map(DesiredSet::objects).map(|object| &object.id);
    let asked = ids().filter(|id| base.get(id).is_none()).filter(is_in_scope).take(MAX_LOOKED_UP);
    // The kinds of the base only: those of the proposed commit come from a stranger.
    kinds.extend(base.objects().iter().map(|object| object.id.group_kind()));
    let read = live_objects(cluster, owner, &kinds, asked).await?;
    let mut live =
        LiveView { protected: valid_spec.protected.clone(), prunes: valid_spec.prune, ..LiveView::default() };
    for object in read {
        place(&mut live, object, owner);
    }
    Ok(live)
}

/// Adds a live object to the part of the cluster that its owner decides.
fn place(live: &mut LiveView, object: Object, owner: &SyncName) {
    match Observed::from_object(&object, owner).ownership {
        Ownership::Ours => drop(live.owned.insert(object.id.clone(), object.body)),
        Ownership::OtherSync(_) => drop(live.other_syncs.insert(object.id)),
        Ownership::Copy | Ownership::Unowned => drop(live.others.insert(object.id)),
    }
}

/// Returns the newest commit of a pull request, or of a merge request.
pub(in crate::controller) async fn resolve_head(
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::ID_ANNOTATION;
    use crate::object::Origin;

    #[test]
    fn the_owner_of_an_object_decides_what_a_plan_says_of_it() {
        let place_of = |identity: Option<&str>| {
            let Value::Object(body) = json!({"metadata": {"annotations": {ID_ANNOTATION: identity}}}) else {
                unreachable!("a literal mapping")
            };
            let id = ObjectId::new("", "ConfigMap", "shop", "a").unwrap();
            let origin = Origin { file: "live".into(), document: 0, line: 1, item: None };
            let mut live = LiveView::default();
            let object = Object { id, version: "v1".into(), body, origin };
            place(&mut live, object, &SyncName::new("ops", "web"));
            (live.owned.len(), live.other_syncs.len(), live.others.len())
        };
        for (identity, expect) in [
            (Some("ops/web|/ConfigMap|shop/a"), (1, 0, 0)),
            (Some("ops/api|/ConfigMap|shop/a"), (0, 1, 0)),
            (Some("ops/web|/ConfigMap|shop/b"), (0, 0, 1)),
            (None, (0, 0, 1)),
        ] {
            assert_eq!(place_of(identity), expect, "{identity:?}");
        }
    }
}
