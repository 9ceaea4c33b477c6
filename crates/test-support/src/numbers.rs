//! Records every number of replicas that an object had during a test, and builds autoscalers for
//! it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use kube::Client;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Values of one field that a watch has reported since the start.
pub struct Numbers {
    seen: Arc<Mutex<Vec<i64>>>,
    task: JoinHandle<()>,
}

impl Numbers {
    /// Watches the number at a JSON pointer of an object; an absent one counts as -1.
    pub fn of(api: kube::Api<DynamicObject>, name: &str, place: &'static str) -> Self {
        let seen = Arc::<Mutex<Vec<i64>>>::default();
        let (told, fields) = (seen.clone(), format!("metadata.name={name}"));
        let task = tokio::spawn(async move {
            let events = api.watch(&WatchParams::default().fields(&fields).timeout(290), "0").await;
            let mut events = std::pin::pin!(events.expect("a watch"));
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(live) | WatchEvent::Modified(live) = event {
                    let number = live.data.pointer(place).and_then(Value::as_i64).unwrap_or(-1);
                    let mut told = told.lock().expect("no panic");
                    if told.last() != Some(&number) {
                        told.push(number);
                    }
                }
            }
        });
        Self { seen, task }
    }

    /// Returns the numbers in their order, each change once. Waits a moment for events in flight.
    pub async fn all(&self) -> Vec<i64> {
        tokio::time::sleep(Duration::from_millis(300)).await;
        self.seen.lock().expect("no panic").clone()
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn api(admin: &Client, namespace: &str, group: &str, kind: &str) -> kube::Api<DynamicObject> {
    let kind = kube::core::GroupVersionKind::gvk(group, "v1", kind);
    let resource = kube::api::ApiResource::from_gvk(&kind);
    kube::Api::namespaced_with(admin.clone(), namespace, &resource)
}

pub fn scalers(namespace: &str) -> String {
    format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers")
}

/// Returns an autoscaler of an object. It never scales: there are no metrics in the control plane.
pub fn scaler(api_version: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {
            "minReplicas": 1, "maxReplicas": 20,
            "scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": name},
        },
    })
}
