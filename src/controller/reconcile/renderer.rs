//! Renders a commit with its surroundings: the target cluster, helm, and charts from elsewhere.
//!
//! In: files and options.
//! Out: a render; for a chart also the server version and kinds that it could read, because a
//! change of these may change the render.

use std::sync::Arc;
use std::time::Instant;

use super::decryption_keys::DataKeyFetches;
use super::prepare::{cluster_error, too_slow};
use super::remote_bases::RemoteBaseContext;
use crate::cluster::Cluster;
use crate::controller::spec::ValidatedSpec;
use crate::helm::{Helm, HelmError};
use crate::kustomize::PublishedChart;
use crate::position::SourcePosition;
use crate::render::helm::{Capabilities, FetchedChart};
use crate::render::{Rendered, SourceType};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{ArtifactError, ChartError, ChartRef, Credentials, Error};
use crate::tree::{FileTree, MemoryLimit};

/// Published charts that kustomizations reference. They are fetched while no memory is reserved for
/// the render.
#[derive(Debug, Default)]
pub(crate) struct ChartFetches {
    /// Charts that have to be fetched, and the locations that name them.
    pub(crate) wanted: Vec<(ChartRef, SourcePosition)>,
    /// Charts that were fetched.
    fetched: Vec<ChartRef>,
    /// Data keys of encrypted files, which are fetched in the same way.
    pub(super) data_keys: DataKeyFetches,
}

/// Dependencies of a render.
#[derive(Clone, Copy)]
pub(crate) struct RenderContext<'a> {
    /// Target cluster.
    pub(crate) cluster: &'a Cluster,
    /// Renderer of charts.
    pub(crate) helm: &'a Helm,
    /// Sources from elsewhere, and metrics.
    pub(crate) ground: &'a RemoteBaseContext<'a>,
}

impl RenderContext<'_> {
    /// Renders a folder; for a chart also returns the server version and kinds that it could read.
    pub(crate) async fn rendered(
        self,
        mut files: FileTree,
        valid_spec: &ValidatedSpec,
        charts: &mut ChartFetches,
        by: Instant,
    ) -> Result<(Rendered, Option<Arc<Capabilities>>), ReconcileError> {
        let mut options = valid_spec.options.clone();
        if let Some(wanted) = &valid_spec.chart {
            options.helm.chart = Some(self.published(wanted, files.memory_limit(), by).await?);
        }
        let server = match options.source_type(&files) {
            SourceType::Helm => Some(self.server().await?),
            SourceType::Auto | SourceType::Plain | SourceType::Kustomize => None,
        };
        let rendered = loop {
            let (asked, shown) = (options.clone(), server.clone().unwrap_or_default());
            let rendering = self.helm.render_for(self.ground.asker, files.clone(), asked, shown);
            let rendered = tokio::time::timeout_at(by.into(), rendering).await.map_err(|_| too_slow())?;
            let rendered = rendered.map_err(of_helm)?;
            let unfetched = match &rendered {
                Rendered::Incomplete(incomplete) if !incomplete.missing_charts.is_empty() => {
                    &incomplete.missing_charts
                }
                Rendered::Incomplete(_) | Rendered::Complete(_) => break rendered,
            };
            for chart in unfetched {
                files = self.with_chart(files, chart, charts, by).await?;
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

    /// Makes sure that the published chart is on disk, so that no render waits for its server while
    /// it holds memory.
    pub(crate) async fn fetch_chart(
        self,
        valid_spec: &ValidatedSpec,
        by: Instant,
    ) -> Result<(), ReconcileError> {
        match &valid_spec.chart {
            Some(wanted) if !self.ground.repositories.has_chart(wanted, "") => self.fetch(wanted, by).await,
            Some(_) | None => Ok(()),
        }
    }

    /// Makes sure that the charts of a kustomization are on disk.
    pub(crate) async fn fetch_charts(
        self,
        charts: &mut ChartFetches,
        by: Instant,
    ) -> Result<(), ReconcileError> {
        for (wanted, place) in std::mem::take(&mut charts.wanted) {
            self.fetch(&wanted, by).await.map_err(|reconcile_error| reconcile_error.with_place(&place))?;
            charts.fetched.push(wanted);
        }
        Ok(())
    }

    async fn fetch(self, wanted: &ChartRef, by: Instant) -> Result<(), ReconcileError> {
        let memory_limit = MemoryLimit::with_bytes(self.ground.repositories.memory().most_for_work());
        // A chart that exceeds this limit is reported once it is rendered with its own limit.
        match self.published(wanted, &memory_limit, by).await {
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
        if !self.ground.repositories.has_chart(&wanted, "") && !charts.fetched.contains(&wanted) {
            charts.wanted.push((wanted, chart.place.clone()));
            return Ok(files);
        }
        let fetched = self.published(&wanted, files.memory_limit(), by).await;
        let fetched = fetched.map_err(|reconcile_error| reconcile_error.with_place(&chart.place))?;
        Ok(files.with_chart(&chart.digest, fetched.files))
    }

    /// Returns a chart from its registry, or from disk if it was fetched before.
    async fn published(
        self,
        wanted: &ChartRef,
        memory_limit: &MemoryLimit,
        by: Instant,
    ) -> Result<FetchedChart, ReconcileError> {
        let (repositories, login) = (self.ground.repositories, Credentials::default());
        let fetched =
            repositories.chart_within(wanted, ("", self.ground.asker), &login, memory_limit, by).await;
        match fetched {
            Ok(chart) => Ok(FetchedChart {
                digest: wanted.digest.to_string().into(),
                files: chart.files.with_display_prefix(&wanted.place.to_string()),
            }),
            Err(error) => Err(ReconcileError { permanent: error.needs_new_input(), ..of_chart(&error) }),
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
        Ok(Capabilities { version, api_versions: self.cluster.kinds().api_versions() })
    }
}

fn of_chart(error: &ChartError) -> ReconcileError {
    ReconcileError {
        cause: match error {
            ChartError::Server(error) => source_cause(error),
            error => ErrorCause::Input(error.reason()),
        },
        message: error.to_string(),
        problems: Vec::new(),
        permanent: true,
    }
}

fn being_fetched() -> ReconcileError {
    let message = "charts are being fetched".to_owned();
    ReconcileError { cause: ErrorCause::Stopped, message, problems: Vec::new(), permanent: false }
}

fn of_helm(failure: HelmError) -> ReconcileError {
    let cause = match &failure {
        HelmError::Stopped => ErrorCause::Stopped,
        failure => ErrorCause::Input(failure.reason()),
    };
    let lasting = failure.is_permanent();
    ReconcileError { cause, message: failure.to_string(), problems: Vec::new(), permanent: lasting }
}

/// Returns the cause of an error of a repository; where nothing depends on it, its reason.
pub(super) fn source_cause(error: &Error) -> ErrorCause {
    match error {
        Error::Denied { .. } | Error::KeyRefused { .. } => ErrorCause::RepositoryAccessDenied,
        Error::NoRepository { .. } | Error::Artifact(ArtifactError::Missing { .. }) => {
            ErrorCause::RepositoryNotFound
        }
        Error::Untrusted { .. } => ErrorCause::RepositoryUntrusted,
        Error::NoReference { .. } => ErrorCause::ReferenceNotFound,
        Error::NoPath { .. } => ErrorCause::PathNotFound,
        Error::Stopped => ErrorCause::Stopped,
        Error::Module { cause, .. } => source_cause(cause),
        error => ErrorCause::Input(error.reason()),
    }
}
