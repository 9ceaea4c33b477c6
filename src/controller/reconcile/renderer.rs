//! Renders a commit with its surroundings: the target cluster, helm, and charts from elsewhere.
//!
//! In: files and options.
//! Out: a render; for a chart also the server version and kinds that it could read, because a
//! change of these may change the render.

use std::sync::Arc;
use std::time::Instant;

use super::decryption_keys::DataKeyFetches;
use super::lfs_files::LfsFetches;
use super::mounts::MountSource;
use super::remote_bases::RemoteBaseContext;
use crate::cluster::Cluster;
use crate::controller::credentials::ChartLogin;
use crate::controller::reconcile_errors::{
    being_fetched, check_signed, cluster_error, comes_from_elsewhere, of_chart, of_dependency, of_helm,
    too_slow,
};
use crate::controller::spec::ValidatedSpec;
use crate::decryption::mask_files;
use crate::helm::Helm;
use crate::kustomize::PublishedChart;
use crate::position::SourcePosition;
use crate::render::helm::{Capabilities, FetchedChart, FetchedDependency, LockedDependency};
use crate::render::{Rendered, SourceType};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{ChartRef, ChartRequest, Revision};
use crate::tree::{FileTree, MemoryLimit};

/// Published charts that kustomizations and charts reference. They are fetched while no memory is
/// reserved for the render.
#[derive(Debug, Default)]
pub(crate) struct ChartFetches {
    /// Charts that have to be fetched.
    pub(crate) wanted: Vec<WantedChart>,
    /// Charts that were fetched.
    fetched: Vec<WantedChart>,
    /// Data keys of encrypted files, which are fetched in the same way.
    pub(super) data_keys: DataKeyFetches,
    /// Files of Git LFS, which are fetched in the same way.
    pub(super) lfs: LfsFetches,
}

/// A published chart that a kustomization or a chart references.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WantedChart {
    /// A chart of a kustomization, and the location that names it.
    Published(ChartRef, SourcePosition),
    /// A dependency of a chart.
    Dependency(LockedDependency),
}

/// Dependencies of a render.
#[derive(Clone, Copy)]
pub(crate) struct RenderContext<'a> {
    /// Target cluster.
    pub(crate) cluster: &'a Cluster,
    /// Renderer of charts.
    pub(crate) helm: &'a Helm,
    /// Sources from elsewhere, and metrics.
    pub(crate) base_context: &'a RemoteBaseContext<'a>,
    /// Login for the server of the chart that the spec names.
    pub(crate) login: &'a ChartLogin,
    /// Sources of the mounts.
    pub(crate) mounts: &'a [MountSource],
    /// The commit is the text of a stranger, who learns nothing of the cluster.
    pub(crate) is_for_strangers: bool,
}

impl RenderContext<'_> {
    /// Renders a folder; for a chart also returns the server version and kinds that it could read.
    pub(crate) async fn rendered(
        self,
        mut files: FileTree,
        (valid_spec, revision): (&ValidatedSpec, &Revision),
        charts: &mut ChartFetches,
        by: Instant,
    ) -> Result<(Rendered, Option<Arc<Capabilities>>), ReconcileError> {
        let mut options = valid_spec.options.clone();
        if let Some(wanted) = chart_of(valid_spec, revision)? {
            options.helm.chart = Some(self.published(&wanted, self.login, files.memory_limit(), by).await?);
        }
        let server = match options.source_type(&files) {
            SourceType::Helm => Some(self.server().await?),
            SourceType::Auto | SourceType::Plain | SourceType::Kustomize => None,
        };
        let rendered = loop {
            let (asked, shown) = (options.clone(), server.clone().unwrap_or_default());
            let rendering = self.helm.render_for(self.base_context.asker, files.clone(), asked, shown);
            let rendered = tokio::time::timeout_at(by.into(), rendering).await.map_err(|_| too_slow())?;
            let rendered = rendered.map_err(of_helm)?;
            let Rendered::Incomplete(incomplete) = &rendered else { break rendered };
            if incomplete.missing_charts.is_empty() && incomplete.missing_dependencies.is_empty() {
                break rendered;
            }
            if self.is_for_strangers {
                return Err(comes_from_elsewhere("a chart that comes from elsewhere"));
            }
            for chart in &incomplete.missing_charts {
                files = self.with_chart(files, chart, charts, by).await?;
            }
            for dependency in &incomplete.missing_dependencies {
                let memory_limit = files.memory_limit();
                let fetched = self.dependency(valid_spec, dependency, memory_limit, charts, by).await?;
                options.helm.dependencies.extend(fetched);
            }
            if !charts.wanted.is_empty() {
                // This error is never shown: the render starts again once the charts are fetched.
                return Err(being_fetched());
            }
        };
        // A chart that does not read the served kinds does not depend on them.
        let looks = matches!(&rendered, Rendered::Complete(complete) if complete.uses_api_versions());
        let shown = server.map(|server| match looks {
            true => server,
            false => Capabilities { api_versions: Default::default(), ..server },
        });
        Ok((rendered, shown.map(Arc::new)))
    }

    /// Decrypts the encrypted files of a tree, or masks them for a stranger.
    pub(super) async fn decrypted(
        self,
        files: FileTree,
        valid_spec: &ValidatedSpec,
        charts: &mut ChartFetches,
        by: Instant,
    ) -> Result<FileTree, ReconcileError> {
        match self.is_for_strangers {
            true => Ok(mask_files(&files)),
            false => charts.data_keys.decrypted(files, valid_spec, by).await,
        }
    }

    /// Makes sure that the published chart is on disk, so that no render waits for its server while
    /// it holds memory.
    pub(crate) async fn fetch_chart(
        self,
        valid_spec: &ValidatedSpec,
        revision: &Revision,
        by: Instant,
    ) -> Result<(), ReconcileError> {
        match chart_of(valid_spec, revision)? {
            Some(wanted) if !self.base_context.repositories.has_chart(&wanted, &self.login.owner) => {
                self.fetch(&wanted, self.login, by).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Makes sure that the charts of a kustomization, and the dependencies of a chart, are on disk.
    pub(crate) async fn fetch_charts(
        self,
        valid_spec: &ValidatedSpec,
        charts: &mut ChartFetches,
        by: Instant,
    ) -> Result<(), ReconcileError> {
        for wanted in std::mem::take(&mut charts.wanted) {
            match &wanted {
                WantedChart::Published(chart, place) => {
                    let fetched = self.fetch(chart, &ChartLogin::default(), by).await;
                    fetched.map_err(|reconcile_error| reconcile_error.with_place(place))?;
                }
                WantedChart::Dependency(dependency) => {
                    let memory_limit =
                        MemoryLimit::with_bytes(self.base_context.repositories.memory().most_for_work());
                    let fetched = self.fetched_dependency(valid_spec, dependency, &memory_limit, by).await;
                    // One that exceeds this limit is reported once it is rendered.
                    fetched
                        .map(drop)
                        .or_else(|error| memory_limit.required_bytes().map(drop).ok_or(error))?;
                }
            }
            charts.fetched.push(wanted);
        }
        Ok(())
    }

    /// Returns a dependency of a chart; none if it has to be fetched first.
    async fn dependency(
        self,
        valid_spec: &ValidatedSpec,
        dependency: &LockedDependency,
        memory_limit: &MemoryLimit,
        charts: &mut ChartFetches,
        by: Instant,
    ) -> Result<Option<FetchedDependency>, ReconcileError> {
        let (request, login) = self.request_of(valid_spec, dependency)?;
        let wanted = WantedChart::Dependency(dependency.clone());
        if !self.base_context.repositories.has_dependency(&request, &login.owner)
            && !charts.fetched.contains(&wanted)
        {
            charts.wanted.push(wanted);
            return Ok(None);
        }
        self.fetched_dependency(valid_spec, dependency, memory_limit, by).await.map(Some)
    }

    async fn fetched_dependency(
        self,
        valid_spec: &ValidatedSpec,
        dependency: &LockedDependency,
        memory_limit: &MemoryLimit,
        by: Instant,
    ) -> Result<FetchedDependency, ReconcileError> {
        let (request, login) = self.request_of(valid_spec, dependency)?;
        let asked = (&*login.owner, self.base_context.asker);
        let repositories = self.base_context.repositories;
        let fetched = repositories.dependency(&request, asked, &login.credentials, memory_limit, by).await;
        let fetched = fetched.map_err(|error| of_dependency(dependency, &error))?;
        Ok(FetchedDependency { locked: dependency.clone(), archive: fetched.archive.into() })
    }

    /// Returns the request for a dependency, and its login: that of the chart, if both are on the
    /// same server.
    fn request_of(
        self,
        valid_spec: &ValidatedSpec,
        dependency: &LockedDependency,
    ) -> Result<(ChartRequest, ChartLogin), ReconcileError> {
        check_signed(valid_spec.chart_verify.is_some(), dependency)?;
        let LockedDependency { name, version, repository } = dependency;
        let request = ChartRequest::locked(repository, name, version);
        let request = request.map_err(|error| of_dependency(dependency, &error))?;
        let is_beside = valid_spec.chart.as_ref().is_some_and(|chart| chart.is_beside(&request));
        let login = if is_beside { self.login.clone() } else { ChartLogin::default() };
        Ok((request, login))
    }

    async fn fetch(self, wanted: &ChartRef, login: &ChartLogin, by: Instant) -> Result<(), ReconcileError> {
        let memory_limit = MemoryLimit::with_bytes(self.base_context.repositories.memory().most_for_work());
        // A chart that exceeds this limit is reported once it is rendered with its own limit.
        match self.published(wanted, login, &memory_limit, by).await {
            Err(_) if memory_limit.required_bytes().is_some() => Ok(()),
            fetched => fetched.map(drop),
        }
    }

    /// Returns the tree with a chart that its kustomization references, or unchanged if the chart
    /// has to be fetched first.
    async fn with_chart(
        self,
        files: FileTree,
        chart: &PublishedChart,
        charts: &mut ChartFetches,
        by: Instant,
    ) -> Result<FileTree, ReconcileError> {
        let wanted = ChartRef::new(&chart.url, chart.name.as_deref(), &chart.version, &chart.digest);
        let wanted = wanted.map_err(|error| of_chart(&error).with_place(&chart.place))?;
        let named = WantedChart::Published(wanted.clone(), chart.place.clone());
        if !self.base_context.repositories.has_chart(&wanted, "") && !charts.fetched.contains(&named) {
            charts.wanted.push(named);
            return Ok(files);
        }
        let fetched = self.published(&wanted, &ChartLogin::default(), files.memory_limit(), by).await;
        let fetched = fetched.map_err(|reconcile_error| reconcile_error.with_place(&chart.place))?;
        Ok(files.with_chart(&chart.digest, fetched.files))
    }

    /// Returns a chart from its registry, or from disk if it was fetched before.
    async fn published(
        self,
        wanted: &ChartRef,
        login: &ChartLogin,
        memory_limit: &MemoryLimit,
        by: Instant,
    ) -> Result<FetchedChart, ReconcileError> {
        let (repositories, asked) =
            (self.base_context.repositories, (&*login.owner, self.base_context.asker));
        let fetched = repositories.chart_within(wanted, asked, &login.credentials, memory_limit, by).await;
        match fetched {
            Ok(chart) => Ok(FetchedChart {
                digest: wanted.digest.to_string().into(),
                files: chart.files.with_display_prefix(&wanted.place.to_string()),
            }),
            Err(error) => Err(of_chart(&error)),
        }
    }

    /// Returns true if a chart would read the same from the server now, or if there is no chart.
    pub(crate) async fn is_server_unchanged(
        self,
        shown: Option<&Capabilities>,
    ) -> Result<bool, ReconcileError> {
        let Some(shown) = shown else { return Ok(true) };
        let now = self.server().await?;
        Ok(shown.version == now.version
            && (shown.api_versions.is_empty() || shown.api_versions == now.api_versions))
    }

    async fn server(self) -> Result<Capabilities, ReconcileError> {
        let version =
            self.cluster.discovery().server_version().await.map_err(|failure| cluster_error(&failure))?;
        let api_versions = match self.is_for_strangers {
            true => Default::default(),
            false => self.cluster.kinds().api_versions(),
        };
        Ok(Capabilities { version, api_versions })
    }
}

/// Returns the published chart of a spec, at the version that the revision has.
fn chart_of(valid_spec: &ValidatedSpec, revision: &Revision) -> Result<Option<ChartRef>, ReconcileError> {
    let Some(request) = &valid_spec.chart else { return Ok(None) };
    let taken = || revision.chart.as_ref().and_then(|taken| request.at(taken));
    let Some(chart) = request.pinned().cloned().or_else(taken) else {
        let message = format!("the version of the chart {} is not known yet", request.place());
        let (cause, problems) = (ErrorCause::Progressing, Vec::new());
        return Err(ReconcileError { cause, message, problems, permanent: false });
    };
    Ok(Some(chart))
}
