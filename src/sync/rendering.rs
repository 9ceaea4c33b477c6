//! Renders a commit with its surroundings: the target cluster, helm, and charts from elsewhere.
//!
//! In: files and options.
//! Out: a render; for a chart also the server version and kinds that it could read, because a
//! change of these may change the render.

use std::sync::Arc;
use std::time::Instant;

use super::bases::Ground;
use super::prepare::{of_failure, too_slow};
use super::wish::Wish;
use crate::cluster::Cluster;
use crate::helm::{Helm, HelmFailure};
use crate::render::helm::{Capabilities, Published};
use crate::render::{Kind, Place, PublishedChart, Rendered};
use crate::report::Trouble;
use crate::source::{ChartError, ChartRef, Credentials};
use crate::tree::{FileTree, Room};

/// Published charts that kustomizations reference. They are fetched while no memory is reserved for
/// the render.
#[derive(Debug, Default)]
pub(crate) struct Charts {
    /// Charts that have to be fetched, and the locations that name them.
    pub(crate) wanted: Vec<(ChartRef, Place)>,
    /// Charts that were fetched.
    fetched: Vec<ChartRef>,
}

/// Dependencies of a render.
#[derive(Clone, Copy)]
pub(crate) struct Means<'a> {
    /// Target cluster.
    pub(crate) cluster: &'a Cluster,
    /// Renderer of charts.
    pub(crate) helm: &'a Helm,
    /// Sources from elsewhere, and metrics.
    pub(crate) ground: &'a Ground<'a>,
}

impl Means<'_> {
    /// Renders a folder; for a chart also returns the server version and kinds that it could read.
    pub(crate) async fn rendered(
        self,
        mut files: FileTree,
        wish: &Wish,
        charts: &mut Charts,
        by: Instant,
    ) -> Result<(Rendered, Option<Arc<Capabilities>>), Trouble> {
        let mut options = wish.options.clone();
        if let Some(wanted) = &wish.chart {
            options.helm.chart = Some(self.published(wanted, files.room(), by).await?);
        }
        let server = match options.kind.chosen(&files, &options.path) {
            Kind::Helm => Some(self.server().await?),
            Kind::Auto | Kind::Plain | Kind::Kustomize => None,
        };
        let rendered = loop {
            let (asked, shown) = (options.clone(), server.clone().unwrap_or_default());
            let rendering = self.helm.rendered_for(self.ground.asker, files.clone(), asked, shown);
            let rendered = tokio::time::timeout_at(by.into(), rendering).await.map_err(|_| too_slow())?;
            let rendered = rendered.map_err(of_helm)?;
            let unfetched = match &rendered {
                Rendered::Incomplete(incomplete) if !incomplete.unfetched.is_empty() => &incomplete.unfetched,
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
        let looks = matches!(&rendered, Rendered::Complete(complete) if complete.looks_at_served());
        let shown = server.map(|server| match looks {
            true => server,
            false => Capabilities { served: Default::default(), ..server },
        });
        Ok((rendered, shown.map(Arc::new)))
    }

    /// Makes sure that the published chart is on disk, so that no render waits for its server while
    /// it holds memory.
    pub(crate) async fn fetch_chart(self, wish: &Wish, by: Instant) -> Result<(), Trouble> {
        match &wish.chart {
            Some(wanted) if !self.ground.repositories.has_chart(wanted, "") => self.fetch(wanted, by).await,
            Some(_) | None => Ok(()),
        }
    }

    /// Makes sure that the charts of a kustomization are on disk.
    pub(crate) async fn fetch_charts(self, charts: &mut Charts, by: Instant) -> Result<(), Trouble> {
        for (wanted, place) in std::mem::take(&mut charts.wanted) {
            self.fetch(&wanted, by).await.map_err(|trouble| trouble.at(&place))?;
            charts.fetched.push(wanted);
        }
        Ok(())
    }

    async fn fetch(self, wanted: &ChartRef, by: Instant) -> Result<(), Trouble> {
        let room = Room::of(self.ground.repositories.memory().most_for_work());
        // A chart that exceeds this limit is reported once it is rendered with its own limit.
        match self.published(wanted, &room, by).await {
            Err(_) if room.short().is_some() => Ok(()),
            fetched => fetched.map(drop),
        }
    }

    /// Returns the tree with a chart that its kustomization references, or unchanged if the chart
    /// has to be fetched first.
    async fn with_chart(
        self,
        files: FileTree,
        chart: &PublishedChart,
        charts: &mut Charts,
        by: Instant,
    ) -> Result<FileTree, Trouble> {
        let wanted = ChartRef::new(&chart.url, chart.name.as_deref(), &chart.version, &chart.digest);
        let wanted = wanted.map_err(|error| of_chart(&error).at(&chart.place))?;
        if !self.ground.repositories.has_chart(&wanted, "") && !charts.fetched.contains(&wanted) {
            charts.wanted.push((wanted, chart.place.clone()));
            return Ok(files);
        }
        let fetched = self.published(&wanted, files.room(), by).await;
        let fetched = fetched.map_err(|trouble| trouble.at(&chart.place))?;
        Ok(files.with_chart(&chart.digest, fetched.files))
    }

    /// Returns a chart from its registry, or from disk if it was fetched before.
    async fn published(self, wanted: &ChartRef, room: &Room, by: Instant) -> Result<Published, Trouble> {
        let (repositories, login) = (self.ground.repositories, Credentials::default());
        let fetched = repositories.chart_within(wanted, ("", self.ground.asker), &login, room, by).await;
        match fetched {
            Ok(chart) => Ok(Published {
                digest: wanted.digest.to_string().into(),
                files: chart.files.shown_below(&wanted.place.to_string()),
            }),
            Err(error) => Err(Trouble {
                reason: error.reason(),
                message: error.to_string(),
                problems: Vec::new(),
                lasting: error.needs_new_input(),
            }),
        }
    }

    /// Returns true if a chart would read the same from the server now, or if there is no chart.
    pub(crate) async fn are_as(self, shown: Option<&Capabilities>) -> Result<bool, Trouble> {
        let Some(shown) = shown else { return Ok(true) };
        let now = self.server().await?;
        Ok(shown.version == now.version && (shown.served.is_empty() || shown.served == now.served))
    }

    async fn server(self) -> Result<Capabilities, Trouble> {
        let version = self.cluster.version().await.map_err(|failure| of_failure(&failure))?;
        Ok(Capabilities { version, served: self.cluster.kinds().served() })
    }
}

fn of_chart(error: &ChartError) -> Trouble {
    Trouble { reason: error.reason(), message: error.to_string(), problems: Vec::new(), lasting: true }
}

fn being_fetched() -> Trouble {
    let message = "charts are being fetched".to_owned();
    Trouble { reason: "Stopped", message, problems: Vec::new(), lasting: false }
}

fn of_helm(failure: HelmFailure) -> Trouble {
    let (reason, lasting) = (failure.reason(), failure.is_lasting());
    Trouble { reason, message: failure.to_string(), problems: Vec::new(), lasting }
}
