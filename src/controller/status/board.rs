//! Data of the status page, as this daemon publishes it.
//!
//! In: the card of each Sync, whenever it changes. Out: a channel with the newest [`StatusBoard`],
//! for the page. Without a page nothing is collected.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::watch;

use crate::api::SyncName;
use crate::cluster::{Cluster, ServerFacts, WatchGuard, follow_server};
use crate::report::board::{ClusterFacts, DaemonRole, StatusBoard, SyncCard};

/// Handle to the data of the status page; cheap to clone.
#[derive(Debug, Clone)]
pub struct Board {
    newest: watch::Sender<Arc<StatusBoard>>,
    is_read: bool,
}

impl Board {
    /// Creates an empty board. If it is not read, it stays empty.
    pub fn new(is_read: bool) -> Self {
        Self { newest: watch::Sender::default(), is_read }
    }

    /// Returns a receiver of the board.
    pub fn watch(&self) -> watch::Receiver<Arc<StatusBoard>> {
        self.newest.subscribe()
    }

    /// Sets the role of the daemon.
    pub fn stand(&self, stance: DaemonRole) {
        self.change(|board| board.set_role(stance));
    }

    /// Records that a term of this daemon begins. Another daemon may have led before it.
    pub fn begin_term(&self) {
        self.change(|board| board.term_began = jiff::Timestamp::now().as_millisecond());
    }

    /// True if there is a page that reads it.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read
    }

    pub(crate) fn put(&self, card: SyncCard) {
        self.change(|board| board.update_card(card));
    }

    /// Removes a Sync that is gone, or that another daemon serves.
    pub(crate) fn remove(&self, name: &SyncName) {
        self.change(|board| board.remove(name));
    }

    /// Publishes version and outage of a cluster under this name, until the guard is dropped.
    /// Without a page nothing is asked.
    pub(crate) fn follow_cluster(&self, name: &str, cluster: &Cluster) -> Option<FollowedCluster> {
        let (board, place) = (self.clone(), Box::<str>::from(name));
        let tell = move |facts: ServerFacts| {
            let (release, silent_since) = (facts.release, facts.silent_since.map(Time));
            board.change(|board| {
                board.set_cluster(&place, ClusterFacts { release, silent_since, version: 0 });
            });
        };
        let board = self.clone();
        self.is_read.then(|| FollowedCluster {
            guard: Some(follow_server(cluster, tell)),
            board,
            name: name.into(),
        })
    }

    fn change(&self, change: impl FnOnce(&mut StatusBoard)) {
        if !self.is_read {
            return;
        }
        // Copied only while a reader has the previous board.
        self.newest.send_if_modified(|board| {
            let before = board.version;
            change(Arc::make_mut(board));
            board.version != before
        });
    }
}

/// A cluster whose version and outage are published.
pub(crate) struct FollowedCluster {
    guard: Option<WatchGuard>,
    board: Board,
    name: Box<str>,
}

impl Drop for FollowedCluster {
    fn drop(&mut self) {
        drop(self.guard.take());
        self.board.change(|board| board.remove_cluster(&self.name));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cluster::Connection;
    use crate::cluster::lease::WritePermit;
    use crate::metrics::Metrics;
    use crate::sandbox::{Options, Sandbox};

    #[test]
    fn the_page_knows_the_begin_of_the_term() {
        let board = Board::new(true);
        let newest = board.watch();
        assert_eq!(newest.borrow().term_began, 0);
        let before = jiff::Timestamp::now().as_millisecond();
        board.begin_term();
        let began = newest.borrow().term_began;
        assert!((before..=jiff::Timestamp::now().as_millisecond()).contains(&began), "{began}");
        // No row of the page has changed.
        assert!(!newest.has_changed().unwrap());
    }
    use crate::settings::Settings;

    #[tokio::test(start_paused = true)]
    async fn version_and_outage_of_a_cluster_are_published_and_end_with_it() {
        let sandbox = Sandbox::new(&Options { record_requests: true, ..Options::default() });
        let (client, link) = sandbox.named_client("east");
        let settings = Settings { request_timeout: Duration::from_secs(1), ..Settings::default() };
        let connection = Connection::from_client(client, "default");
        let cluster = Cluster::new(connection, Metrics::new().unwrap(), WritePermit::unlimited(), &settings);
        assert!(Board::new(false).follow_cluster("ops/east", &cluster).is_none(), "nobody reads it");
        let board = Board::new(true);
        let mut seen = board.watch();
        let mut wait = async |fits: &dyn Fn(Option<&ClusterFacts>) -> bool| {
            let found = seen.wait_for(|board| fits(board.clusters.get("ops/east")));
            tokio::time::timeout(Duration::from_secs(60), found).await.expect("in time").unwrap().clone()
        };
        let row = board.follow_cluster("ops/east", &cluster);
        let is_up = |facts: &ClusterFacts| facts.silent_since.is_none() && facts.release.is_some();
        wait(&|facts| facts.is_some_and(is_up)).await;
        link.set_held(true);
        cluster.discovery().ensure().await.unwrap_err();
        wait(&|facts| facts.is_some_and(|facts| facts.silent_since.is_some())).await;
        link.set_held(false);
        cluster.discovery().ensure().await.unwrap();
        wait(&|facts| facts.is_some_and(is_up)).await;
        tokio::time::advance(Duration::from_secs(3600)).await;
        let asked = sandbox.take_requests().iter().filter(|it| it.uri == "/version").count();
        assert_eq!(asked, 2, "once at the start, and once after the outage");
        drop(row);
        wait(&|facts| facts.is_none()).await;
    }
}
