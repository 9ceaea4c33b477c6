//! Runner of the Pods of operators, where no node does.
//!
//! In: a client that may do everything. Out: every Pod of the cluster runs, as its status says.

use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use moorline_test_support::rest::send_request;

/// Between two looks for new Pods.
const LOOK: Duration = Duration::from_millis(200);

/// Runs Pods until it is dropped.
pub(crate) struct Kubelet(JoinHandle<()>);

impl Kubelet {
    pub(crate) fn start(admin: &Client) -> Self {
        let admin = admin.clone();
        Self(tokio::spawn(async move {
            loop {
                let pods = send_request(&admin, "GET", "/api/v1/pods", Value::Null).await.unwrap_or_default();
                for pod in pods["items"].as_array().into_iter().flatten() {
                    if pod["status"]["phase"] != "Running" {
                        run(&admin, pod).await;
                    }
                }
                tokio::time::sleep(LOOK).await;
            }
        }))
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Says of a Pod that it runs. One that is gone meanwhile is nobody's loss.
async fn run(admin: &Client, pod: &Value) {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let running = containers.map(|container| {
        json!({"name": container["name"], "image": "", "imageID": "", "ready": true, "restartCount": 0, "started": true,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}})
    });
    let up = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let status =
        json!({"phase": "Running", "conditions": up, "containerStatuses": running.collect::<Vec<_>>()});
    let uri = format!("/api/v1/namespaces/{}/pods/{}/status", text("namespace"), text("name"));
    let _ = send_request(admin, "PATCH", &uri, json!({"status": status})).await;
}
