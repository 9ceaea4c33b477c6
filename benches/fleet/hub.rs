//! A home cluster with Syncs whose objects are in other clusters, a Git server, and the daemon.
//!
//! In: the manner of each cluster, and the number of Syncs of each.
//! Out: [`Hub`], with functions that start the daemon, commit, wait, and check each object.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use moorline_test_support::daemon::Daemon;
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::reaper::Reaper;
use serde_json::json;

use super::clusters::{Certificates, Cluster, Manner};
use super::requests::{Counts, DAEMON, Requests};
use crate::usage;

/// Namespace of the daemon, the Syncs and the Secrets.
const SYSTEM: &str = "moorline";
/// Collection of the Syncs.
const SYNCS: &str = "/apis/moorline.dev/v1alpha1/namespaces/moorline/syncs";
/// Collection of the objects in each cluster.
pub(crate) const OBJECTS: &str = "/api/v1/namespaces/default/configmaps";
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// Time without a request after which the daemon is at rest.
const REST: Duration = Duration::from_secs(3);
/// Time limit until the daemon is at rest.
const RESTLESS: Duration = Duration::from_secs(120);
/// Environment of the images.
const PURGE_DELAY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "10");

/// One home cluster with everything around it. The daemon is dropped first.
pub(crate) struct Hub {
    daemon: Option<Daemon>,
    reaper: Arc<Reaper>,
    home: Cluster,
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) certificates: Certificates,
    pub(crate) requests: Requests,
    work: Work,
    _git: GitServer,
    /// Number of Syncs of each cluster.
    pub(crate) syncs: usize,
    root: tempfile::TempDir,
}

/// CPU time of the daemon and requests during a time.
pub(crate) struct Used {
    pub(crate) wall: Duration,
    pub(crate) cpu: f64,
    pub(crate) requests: Counts,
}

impl Hub {
    /// Creates clusters, Secrets and Syncs, and commits the first objects. No daemon runs yet.
    pub(crate) async fn new(manners: &[Manner], syncs: usize) -> (Self, String) {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (work, git) = (Work::new(root.path()), GitServer::start(root.path()));
        let (certificates, requests) = (Certificates::new(), Requests::default());
        let home = Cluster::start(1, Manner::Serves, &certificates).await;
        let definition = moorline::api::definition().expect("the definition");
        home.sandbox.define(&definition).expect("Syncs are defined");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}});
        home.sandbox.apply("/api/v1/namespaces", &namespace, "bench").expect("a namespace");
        requests.count("home", &home.sandbox);
        let mut clusters = Vec::new();
        for (number, manner) in manners.iter().enumerate() {
            let cluster = Cluster::start(number as u64 + 2, *manner, &certificates).await;
            requests.count("clusters", &cluster.sandbox);
            clusters.push(cluster);
        }
        let reaper = Arc::new(Reaper::for_directory(root.path()).expect("a reaper"));
        let url = git.url("repository.git");
        let (daemon, _git) = (None, git);
        let hub = Self { daemon, reaper, home, clusters, certificates, requests, work, _git, syncs, root };
        let commit = hub.commit("one");
        hub.create_syncs(&url);
        (hub, commit)
    }

    /// Commits one object for each Sync of a cluster, with this value.
    pub(crate) fn commit(&self, value: &str) -> String {
        let files: Vec<(String, String)> = (0..self.syncs)
            .map(|sync| (format!("{}/object.yaml", folder(sync)), text(sync, value)))
            .collect();
        self.work.push(&files.iter().map(|(path, text)| (&**path, &**text)).collect::<Vec<_>>())
    }

    fn create_syncs(&self, url: &str) {
        let encode = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
        for (number, cluster) in self.clusters.iter().enumerate() {
            let name = format!("c{number}");
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": &name}, "type": "Opaque",
                "data": {"kubeconfig": encode(self.certificates.kubeconfig(cluster, DAEMON))},
            });
            let secrets = format!("/api/v1/namespaces/{SYSTEM}/secrets");
            self.home.sandbox.apply(&secrets, &secret, "bench").expect("a Secret");
            for sync in 0..self.syncs {
                let body = json!({
                    "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
                    "metadata": {"name": sync_name(number, sync)},
                    "spec": {
                        "source": {"git": {"url": url}}, "path": format!("./{}", folder(sync)),
                        "cluster": {"secretRef": {"name": &name}}, "targetNamespace": "default",
                        // The benchmark itself triggers polls.
                        "interval": "1h",
                    },
                });
                self.home.sandbox.apply(SYNCS, &body, "bench").expect("a Sync");
            }
        }
    }

    /// Starts the daemon.
    pub(crate) fn start_daemon(&mut self) {
        let config = self.certificates.kubeconfig(&self.home, DAEMON);
        let variables = [(PURGE_DELAY.0, Path::new(PURGE_DELAY.1))];
        let arguments = ["--namespace", SYSTEM];
        let daemon =
            Daemon::with_environment(&self.reaper, &config, self.root.path(), &arguments, &variables);
        self.daemon = Some(daemon);
    }

    /// Asks for a poll of the repository, by one Sync of a cluster that serves.
    pub(crate) fn nudge(&self, value: &str) {
        let serves = self.clusters.iter().position(|cluster| cluster.manner == Manner::Serves);
        let name = sync_name(serves.expect("one cluster serves"), 0);
        let patch = json!({"metadata": {"annotations": {"moorline.dev/requested-at": value}}});
        self.home.sandbox.merge(&format!("{SYNCS}/{name}"), &patch, "bench").expect("the Sync is there");
    }

    /// Number of Syncs of clusters that serve.
    pub(crate) fn expected(&self) -> usize {
        self.clusters.iter().filter(|cluster| cluster.manner == Manner::Serves).count() * self.syncs
    }

    /// Measures until all Syncs of clusters that serve are on a commit.
    pub(crate) async fn until_applied(&self, commit: &str, within: Duration) -> Used {
        let (begun, cpu) = (Instant::now(), self.cpu());
        loop {
            let count = self.requests.on(commit);
            if count >= self.expected() {
                break;
            }
            assert!(begun.elapsed() < within, "{count} of {} Syncs:\n{}", self.expected(), self.log());
            tokio::time::sleep(LOOK).await;
        }
        let wall = begun.elapsed();
        Used { wall, cpu: self.cpu() - cpu, requests: self.requests.take() }
    }

    /// Waits until the daemon sends only watches and Leases; returns the requests until then.
    pub(crate) async fn rest(&self) -> Counts {
        let begun = Instant::now();
        let mut last = (self.requests.notable(), Instant::now());
        while last.1.elapsed() < REST {
            assert!(begun.elapsed() < RESTLESS, "no rest: {:?}", self.requests.take());
            tokio::time::sleep(LOOK).await;
            let total = self.requests.notable();
            if total != last.0 {
                last = (total, Instant::now());
            }
        }
        self.requests.take()
    }

    /// Measures for a time.
    pub(crate) async fn during(&self, time: Duration) -> Used {
        let (begun, cpu) = (Instant::now(), self.cpu());
        self.requests.take();
        tokio::time::sleep(time).await;
        Used { wall: begun.elapsed(), cpu: self.cpu() - cpu, requests: self.requests.take() }
    }

    /// Checks each object in each cluster that serves, and its Sync.
    pub(crate) fn check(&self, value: &str) {
        for (number, cluster) in self.clusters.iter().enumerate() {
            if cluster.manner != Manner::Serves {
                continue;
            }
            for sync in 0..self.syncs {
                let live = cluster.sandbox.get(&format!("{OBJECTS}/{}", object_name(sync)));
                let live = live.unwrap_or_else(|| panic!("cluster {number} has no {}", object_name(sync)));
                assert_eq!(live["data"]["value"], value, "{} of cluster {number}", object_name(sync));
                let name = sync_name(number, sync);
                let owner = live["metadata"]["labels"]["moorline.dev/sync"].as_str().unwrap_or_default();
                assert!(owner.ends_with(&format!(".{name}")), "{owner} owns the object of {name}");
                let sync = self.home.sandbox.get(&format!("{SYNCS}/{name}")).expect("the Sync is there");
                let ready = sync["status"]["conditions"].as_array().into_iter().flatten();
                let ready = ready.filter(|it| it["type"] == "Ready").all(|it| it["status"] == "True");
                assert!(ready, "{name}: {}", sync["status"]["conditions"]);
            }
        }
    }

    fn process(&self) -> u32 {
        self.daemon.as_ref().map_or(0, |daemon| daemon.running.child.id())
    }

    fn cpu(&self) -> f64 {
        usage::cpu_seconds(self.process())
    }

    /// Resident memory of the daemon now, and at most, in millions of bytes.
    pub(crate) fn memory(&self) -> (f64, f64) {
        (usage::resident_megabytes(self.process()), usage::peak_megabytes(self.process()))
    }

    fn log(&self) -> String {
        let log = self.daemon.as_ref().map(Daemon::log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

fn sync_name(cluster: usize, sync: usize) -> String {
    format!("c{cluster}-s{sync}")
}

fn folder(sync: usize) -> String {
    format!("apps/s{sync}")
}

pub(crate) fn object_name(sync: usize) -> String {
    format!("settings-{sync}")
}

/// The one object of a Sync.
fn text(sync: usize, value: &str) -> String {
    let name = object_name(sync);
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  value: {value}\n")
}
