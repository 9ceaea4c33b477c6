//! Cost of the in-process API server: small objects applied, applied again and read, in clusters of
//! three sizes. `cargo bench --bench sandbox` prints a line for each size; the requests go through
//! the same service as those of a client in the process.
//!
//! Limits: 10,000 applies a second on one core, 100,000 objects in less than 1 GB, and a cost for
//! each object that does not grow with their number.

use std::time::{Duration, Instant};

use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use moorline::sandbox::{Options, Sandbox};
use serde_json::json;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// Limit of the time for one apply.
const BAR: Duration = Duration::from_micros(100);
/// Limit of the memory for 100,000 objects, in kB.
const MEMORY: u64 = 1_000_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut slowest = Duration::ZERO;
    println!("  objects      create    no change      change        read       peak");
    for size in SIZES {
        let times = runtime.block_on(measure(size));
        let [create, same, change, read] = times.map(|time| time / u32::try_from(size).unwrap_or(u32::MAX));
        println!(
            "{size:>9} {create:>11.1?} {same:>12.1?} {change:>11.1?} {read:>11.1?} {:>7} MB",
            peak() / 1024
        );
        slowest = slowest.max(create);
    }
    println!("bars: {BAR:?} for an apply, {} MB", MEMORY / 1000);
    // Without optimisation the times are meaningless.
    if !cfg!(debug_assertions) {
        assert!(slowest < BAR && peak() < MEMORY, "over a bar");
    }
}

/// Times to create so many objects, to apply them without a change, to change them, and to read
/// them.
async fn measure(size: usize) -> [Duration; 4] {
    let sandbox = Sandbox::new(&Options::default());
    let client = sandbox.client();
    let start = Instant::now();
    apply_all(&client, size, "one").await;
    let create = start.elapsed();
    apply_all(&client, size, "one").await;
    let same = start.elapsed() - create;
    apply_all(&client, size, "two").await;
    let change = start.elapsed() - create - same;
    let start = Instant::now();
    for number in 0..size {
        send(&client, "GET", &path(number), Vec::new(), 200).await;
    }
    [create, same, change, start.elapsed()]
}

async fn apply_all(client: &Client, size: usize, value: &str) {
    for number in 0..size {
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("c{number}"), "labels": {"app.kubernetes.io/name": "shop"}},
            "data": {"key": value, "number": number.to_string()},
        });
        let place = format!("{}?fieldManager=bench&force=true", path(number));
        send(client, "PATCH", &place, body.to_string().into_bytes(), 0).await;
    }
}

fn path(number: usize) -> String {
    format!("/api/v1/namespaces/default/configmaps/c{number}")
}

async fn send(client: &Client, method: &str, place: &str, body: Vec<u8>, expect: u16) {
    let request = Request::builder()
        .method(method)
        .uri(place)
        .header("Content-Type", "application/apply-patch+yaml")
        .body(Body::from(body))
        .expect("a request");
    let response = client.send(request).await.expect("an answer");
    let code = response.status().as_u16();
    assert!(code == expect || expect == 0 && matches!(code, 200 | 201), "{method} {place}: {code}");
    response.into_body().collect().await.expect("a body");
}

/// Peak memory of this process, in kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
