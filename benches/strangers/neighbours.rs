//! A team alone, and beside a demanding neighbour.
//!
//! In: the neighbour.
//! Out: a row with the median latency of the team's commits in alternating rounds.

use futures::StreamExt as _;
use serde_json::json;

use super::place::{OTHERS, SharedDaemon, TEAM, map};
use super::row::{Check, Row, percentile, rounded};
use moorline_test_support::git_server::Work;

/// Number of the team's commits in one round.
const COMMITS: usize = 10;
/// Number of concurrent requests of the benchmark itself.
const SIDE_BY_SIDE: usize = 16;

/// A demanding neighbour.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Neighbour {
    /// A Sync with objects that are all refused; a retry is triggered before each commit.
    Failing { objects: usize },
    /// Syncs of one repository that all fetch a new commit.
    Crowd { syncs: usize },
    /// One Sync with objects that all change.
    Large { objects: usize },
}

/// Measures alternating rounds on two control planes.
pub(crate) async fn row(name: &'static str, neighbour: Neighbour, rounds: usize) -> Row {
    let mut alone = team().await;
    let mut beside = team().await;
    let noise = Noise::new(&beside, neighbour).await;
    let (mut quiet, mut loud) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        quiet.push(measured(&mut alone, None).await);
        noise.begin(&beside, round).await;
        loud.push(measured(&mut beside, Some(&noise)).await);
        noise.rest(&beside).await;
        eprintln!(
            "{name}, round {round}: {} s alone, {} s beside",
            rounded(quiet[round]),
            rounded(loud[round])
        );
    }
    let (base, found) = (percentile(&quiet, 50), percentile(&loud, 50));
    // A fifth more or 0.1 s more, the larger of the two.
    let most = (base * 1.2).max(base + 0.1);
    let check = Check { what: "median of a commit beside it, s", measured: found, most };
    let shown = |times: &[f64]| times.iter().copied().map(rounded).collect::<Vec<_>>();
    let more = json!({"alone": shown(&quiet), "beside": shown(&loud), "neighbour": format!("{neighbour:?}")});
    Row { name, checks: vec![check], more }
}

/// Creates an environment with the team in sync.
async fn team() -> SharedDaemon {
    let mut place = SharedDaemon::new(&[], &[]).await;
    place.work.push(&[("shop/map.json", &map("shop", "v0"))]);
    place.sync(TEAM, "shop", &place.git.url("repository.git"), json!({"path": "shop"})).await;
    place.commit("shop").await;
    place
}

/// Median of a round.
async fn measured(place: &mut SharedDaemon, noise: Option<&Noise>) -> f64 {
    let mut times = Vec::new();
    for _ in 0..COMMITS {
        if let Some(noise) = noise {
            noise.again(place).await;
        }
        times.push(place.commit("shop").await);
    }
    percentile(&times, 50)
}

/// A neighbour at work.
struct Noise {
    neighbour: Neighbour,
    work: Work,
}

impl Noise {
    async fn new(place: &SharedDaemon, neighbour: Neighbour) -> Self {
        let noise = Self { neighbour, work: place.repository("noise") };
        noise.push(0);
        let url = place.git.url("noise/repository.git");
        let whole = json!({"suspend": true, "prune": {"budget": {"count": 1_000_000}}});
        match neighbour {
            Neighbour::Failing { .. } => place.sync(OTHERS, "noise", &url, whole).await,
            Neighbour::Large { .. } => {
                place.sync(OTHERS, "noise", &url, whole).await;
                place.patch(OTHERS, "noise", json!({"spec": {"suspend": false}})).await;
                noise.until_applied(place).await;
                noise.rest(place).await;
            }
            Neighbour::Crowd { syncs } => {
                let all = futures::stream::iter(0..syncs).map(|at| {
                    let (name, url) = (format!("noise-{at}"), &url);
                    async move { place.sync(OTHERS, &name, url, json!({"path": format!("{at}")})).await }
                });
                all.buffer_unordered(SIDE_BY_SIDE).collect::<Vec<_>>().await;
                noise.until_applied(place).await;
            }
        }
        noise
    }

    /// Pushes a commit that changes everything of the neighbour.
    fn push(&self, round: usize) {
        let value = format!("r{round}");
        let files: Vec<(String, String)> = match self.neighbour {
            // The API server refuses such a name.
            Neighbour::Failing { objects } => (0..objects)
                .map(|at| {
                    (format!("{at}.json"), map(&format!("n{at}"), &value).replace(r#""key""#, r#""a key""#))
                })
                .collect(),
            Neighbour::Crowd { syncs } => {
                (0..syncs).map(|at| (format!("{at}/map.json"), map(&format!("n{at}"), &value))).collect()
            }
            Neighbour::Large { objects } => {
                let lists = (0..objects).collect::<Vec<_>>();
                let file = |part: &[usize]| {
                    // A file that begins with a brace would be read as JSON.
                    let documents =
                        part.iter().map(|at| format!("---\n{}\n", map(&format!("n{at}"), &value)));
                    documents.collect::<String>()
                };
                lists
                    .chunks(500)
                    .enumerate()
                    .map(|(at, part)| (format!("part-{at}.yaml"), file(part)))
                    .collect()
            }
        };
        self.work.push(&files.iter().map(|(path, text)| (&**path, &**text)).collect::<Vec<_>>());
    }

    /// Waits until all of the neighbour's objects are applied.
    async fn until_applied(&self, place: &SharedDaemon) {
        let names: Vec<String> = match self.neighbour {
            Neighbour::Crowd { syncs } => (0..syncs).map(|at| format!("noise-{at}")).collect(),
            _ => vec!["noise".to_owned()],
        };
        for name in names {
            while place.status(OTHERS, &name, "/conditions/0/status").await != "True" {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
        }
    }

    async fn begin(&self, place: &SharedDaemon, round: usize) {
        self.push(round + 1);
        match self.neighbour {
            Neighbour::Crowd { .. } => self.again(place).await,
            _ => place.patch(OTHERS, "noise", json!({"spec": {"suspend": false}})).await,
        }
        // The neighbour is already at work when the team starts.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }

    /// Triggers more work of the neighbour.
    async fn again(&self, place: &SharedDaemon) {
        match self.neighbour {
            Neighbour::Failing { .. } => place.trigger_poll(OTHERS, "noise").await,
            Neighbour::Large { .. } => {}
            Neighbour::Crowd { syncs } => {
                // A commit that changes none of the Syncs' folders changes their revisions
                // nevertheless.
                self.work.push(&[("README", &format!("{:?}", std::time::SystemTime::now()))]);
                place.trigger_poll(OTHERS, &format!("noise-{}", syncs / 2)).await;
            }
        }
    }

    async fn rest(&self, place: &SharedDaemon) {
        match self.neighbour {
            Neighbour::Crowd { .. } => tokio::time::sleep(std::time::Duration::from_secs(5)).await,
            _ => {
                place.patch(OTHERS, "noise", json!({"spec": {"suspend": true}})).await;
                tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            }
        }
    }
}
