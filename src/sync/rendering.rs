//! What a commit is prepared with beside its files: the cluster that it is for, and helm.
//!
//! In: files and options. Out: a render, and for a chart what it was shown of the server: when that is another one, so may be the render.

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

/// Charts that kustomizations name and that are published elsewhere. They are fetched while nobody holds memory for the render.
#[derive(Debug, Default)]
pub(crate) struct Charts {
    /// Those that have to be fetched, and where they are named.
    pub(crate) wanted: Vec<(ChartRef, Place)>,
    /// Those that were.
    fetched: Vec<ChartRef>,
}

/// What a commit is prepared with.
#[derive(Clone, Copy)]
pub(crate) struct Means<'a> {
    /// The cluster that it is for.
    pub(crate) cluster: &'a Cluster,
    /// What renders charts.
    pub(crate) helm: &'a Helm,
    /// What is fetched from elsewhere, and what is counted.
    pub(crate) ground: &'a Ground<'a>,
}

impl Means<'_> {
    /// What a folder comes to; with what a chart was shown of the server.
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
                // Nobody sees this: it is begun again when they are here.
                return Err(being_fetched());
            }
        };
        // What nobody looks at is not remembered.
        let looks = matches!(&rendered, Rendered::Complete(complete) if complete.looks_at_served());
        let shown = server.map(|server| match looks {
            true => server,
            false => Capabilities { served: Default::default(), ..server },
        });
        Ok((rendered, shown.map(Arc::new)))
    }

    /// Makes sure that a chart from elsewhere is on the disk, so that nobody waits for its server who holds memory.
    pub(crate) async fn fetch_chart(self, wish: &Wish, by: Instant) -> Result<(), Trouble> {
        match &wish.chart {
            Some(wanted) if !self.ground.repositories.has_chart(wanted, "") => self.fetch(wanted, by).await,
            Some(_) | None => Ok(()),
        }
    }

    /// The same for charts that a kustomization names.
    pub(crate) async fn fetch_charts(self, charts: &mut Charts, by: Instant) -> Result<(), Trouble> {
        for (wanted, place) in std::mem::take(&mut charts.wanted) {
            self.fetch(&wanted, by).await.map_err(|trouble| trouble.at(&place))?;
            charts.fetched.push(wanted);
        }
        Ok(())
    }

    async fn fetch(self, wanted: &ChartRef, by: Instant) -> Result<(), Trouble> {
        let room = Room::of(self.ground.repositories.memory().most_for_work());
        // A chart that finds no room is said so when there is a room of its own for it.
        match self.published(wanted, &room, by).await {
            Err(_) if room.short().is_some() => Ok(()),
            fetched => fetched.map(drop),
        }
    }

    /// The same tree with a chart that its kustomization names, or as it is where that has to be fetched first.
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

    /// A chart from where it is published, or from the disk if it was fetched before.
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

    /// True if a chart would be shown the same of the server now; true for what is no chart.
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
