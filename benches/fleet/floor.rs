//! The floor: the time in which the same servers accept as many objects from a client that does
//! nothing else.
//!
//! In: clusters without a daemon.
//! Out: the time of one apply of each object, many at once. The objects have other names, and no
//! label that the daemon watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use super::clusters::{Cluster, Manner};
use super::hub::{Hub, OBJECTS};

/// Number of applies at the same time.
const CONCURRENCY: usize = 32;
/// Token of this client.
const TOKEN: &str = "floor";

/// Applies one object for each Sync of the clusters that serve.
pub(crate) async fn floor(hub: &Hub) -> Duration {
    let serving = hub.clusters.iter().filter(|cluster| cluster.manner == Manner::Serves);
    let clients = Arc::new(join_all(serving.map(|cluster| client(hub, cluster))).await);
    let (syncs, next) = (hub.syncs, Arc::new(AtomicUsize::new(0)));
    let begun = Instant::now();
    let workers: Vec<_> = (0..CONCURRENCY)
        .map(|_| {
            let (clients, next) = (clients.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // Neighbours in time are in different clusters, as with the daemon.
                    let (cluster, sync) = (number % clients.len(), number / clients.len());
                    if sync >= syncs {
                        return;
                    }
                    apply(&clients[cluster], sync).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("a worker ends");
    }
    begun.elapsed()
}

async fn client(hub: &Hub, cluster: &Cluster) -> Client {
    let config = hub.certificates.kubeconfig(cluster, TOKEN);
    let config = Kubeconfig::from_yaml(&config).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

async fn apply(client: &Client, sync: usize) {
    let name = format!("floor-{sync}");
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": &name}, "data": {"value": "one"},
    });
    let request = http::Request::patch(format!("{OBJECTS}/{name}?fieldManager=floor&force=true"))
        .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
        .body(Body::from(body.to_string().into_bytes()))
        .expect("a sound request");
    let response = client.send(request).await.expect("an answer");
    let status = response.status();
    response.into_body().collect().await.expect("a whole answer");
    assert_eq!(status, http::StatusCode::CREATED);
}
