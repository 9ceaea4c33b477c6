//! The floor: the time in which this API server accepts the objects from a client that does nothing
//! else.
//!
//! In: requests, rendered beforehand.
//! Out: the wall time of a bare loop of server-side applies with the client that Moorline uses, at
//! several concurrencies, each on a new control plane.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use kube::Client;
use kube::client::Body;

use super::ground;
use super::workload;
use moorline_test_support::credentials::MOORLINE;

/// Numbers of concurrent requests; the best time is the floor.
const CONCURRENCIES: [usize; 4] = [1, 8, 16, 32];

/// `Accept` header, as Moorline sends it.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Measures the seconds at each concurrency.
pub(crate) async fn floor(applications: usize) -> Vec<(usize, f64)> {
    let requests = Arc::new(workload::requests(applications, "floor"));
    let mut times = Vec::new();
    for concurrency in CONCURRENCIES {
        let plane = ground::plane().await;
        ground::create_namespaces(&plane).await;
        let client = plane.client(MOORLINE).await;
        let begun = Instant::now();
        apply_all(&client, &requests, concurrency).await;
        times.push((concurrency, begun.elapsed().as_secs_f64()));
    }
    times
}

/// Returns the best time.
pub(crate) fn best(times: &[(usize, f64)]) -> f64 {
    times.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min)
}

async fn apply_all(client: &Client, requests: &Arc<Vec<(String, Vec<u8>)>>, concurrency: usize) {
    let next = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..concurrency)
        .map(|_| {
            let (client, requests, next) = (client.clone(), requests.clone(), next.clone());
            tokio::spawn(async move {
                while let Some((uri, body)) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    apply(&client, uri, body.clone()).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("a worker ends");
    }
}

async fn apply(client: &Client, uri: &str, body: Vec<u8>) {
    use http_body_util::BodyExt as _;
    let request = http::Request::patch(uri)
        .header(http::header::ACCEPT, METADATA)
        .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
        .body(Body::from(body))
        .expect("a sound request");
    let response = client.send(request).await.expect("an answer");
    let status = response.status();
    let body = response.into_body().collect().await.expect("a whole answer").to_bytes();
    assert_eq!(status, http::StatusCode::CREATED, "{uri}: {}", String::from_utf8_lossy(&body));
}
