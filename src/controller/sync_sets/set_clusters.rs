//! The Secrets of clusters that a set selects.
//!
//! In: generators, and the cluster with the identity of the set. Out: for each, the metadata of
//! every Secret that the labels select, or an error: half a list is no answer, and neither are
//! lists of different times. The content is not asked for.

use crate::api::{ClusterGenerator, SyncName};
use crate::cluster::{Cluster, SyncSetRequests};
use crate::controller::reconcile_errors::cluster_error;
use crate::report::{ErrorCause, ReconcileError};
use crate::sync_set::{ListedSecret, MAX_SETS, label_selector};

/// Maximum number of times that all lists are repeated.
const REPEATS: usize = 3;

/// Lists the Secrets that each generator selects in the namespace of its set.
///
/// A Secret whose labels change between two lists may be in neither of them, as if it were gone.
/// Therefore several lists are repeated until they have not changed.
pub(in crate::controller) async fn list_clusters(
    cluster: &Cluster,
    name: &SyncName,
    generators: &[&ClusterGenerator],
) -> Result<Vec<Vec<ListedSecret>>, ReconcileError> {
    let mut before = list_each(cluster, name, generators).await?;
    if generators.len() < 2 {
        return Ok(before);
    }
    for _ in 0..REPEATS {
        let now = list_each(cluster, name, generators).await?;
        if now == before {
            return Ok(now);
        }
        before = now;
    }
    let message = format!("the Secrets of clusters in {} change while they are listed", name.namespace);
    Err(ReconcileError { cause: ErrorCause::Progressing, message, problems: Vec::new(), permanent: false })
}

async fn list_each(
    cluster: &Cluster,
    name: &SyncName,
    generators: &[&ClusterGenerator],
) -> Result<Vec<Vec<ListedSecret>>, ReconcileError> {
    let mut all = Vec::new();
    for generator in generators {
        all.push(list_one(cluster, name, generator).await?);
    }
    Ok(all)
}

async fn list_one(
    cluster: &Cluster,
    name: &SyncName,
    generator: &ClusterGenerator,
) -> Result<Vec<ListedSecret>, ReconcileError> {
    let selector = label_selector(&generator.selector).map_err(|message| ReconcileError {
        cause: ErrorCause::SpecInvalid,
        message: format!("spec.generators: {message}"),
        problems: Vec::new(),
        permanent: true,
    })?;
    let listed = SyncSetRequests::new(cluster).list_secrets(&name.namespace, &selector, MAX_SETS).await;
    let items = listed.map_err(|failure| {
        let error = cluster_error(&failure);
        let message = format!(
            "the Secrets of clusters in {} cannot be listed with the labels {selector}: {}",
            name.namespace, error.message
        );
        ReconcileError { message, ..error }
    })?;
    items.iter().map(|item| ListedSecret::of(item).ok_or_else(unreadable)).collect()
}

fn unreadable() -> ReconcileError {
    let message = "a Secret in the list of clusters has no name".to_owned();
    ReconcileError { cause: ErrorCause::ClusterUnreachable, message, problems: Vec::new(), permanent: false }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::Connection;
    use crate::cluster::lease::WritePermit;
    use crate::metrics::Metrics;
    use crate::settings::Settings;

    /// The value of the label `env` of each Secret.
    type Labels = BTreeMap<&'static str, &'static str>;

    /// Lists the Secrets of two generators, `dev` and `prod`, while `change` is called with the
    /// number of each request, after its answer was made; also returns the number of requests.
    async fn list(change: fn(usize, &mut Labels)) -> (Result<Vec<Vec<String>>, String>, usize) {
        let labels = Mutex::new(Labels::from([("east", "prod"), ("west", "prod")]));
        let (asked, count) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let counted = count.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let mut labels = labels.lock().unwrap();
            let env =
                ["dev", "prod"].into_iter().find(|env| request.uri().to_string().contains(env)).unwrap();
            let fitting = labels.iter().filter(|(_, value)| **value == env);
            let item = |name: &str| json!({"metadata": {"name": name, "labels": {"env": env}}});
            let items: Vec<Value> = fitting.map(|(name, _)| item(name)).collect();
            let list = json!({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items});
            change(asked.fetch_add(1, Ordering::Relaxed), &mut labels);
            counted.fetch_add(1, Ordering::Relaxed);
            let response = http::Response::new(Body::from(list.to_string().into_bytes()));
            std::future::ready(Ok::<_, std::convert::Infallible>(response))
        });
        let connection = Connection::from_client(kube::Client::new(service, "team"), "team");
        let (metrics, permit) = (Metrics::new().unwrap(), WritePermit::unlimited());
        let cluster = Cluster::new(connection, metrics, permit, &Settings::default());
        let [dev, prod] = ["dev", "prod"].map(|env| -> ClusterGenerator {
            serde_json::from_value(json!({"selector": {"matchLabels": {"env": env}}})).unwrap()
        });
        let found = list_clusters(&cluster, &SyncName::new("team", "apps"), &[&dev, &prod]).await;
        let names = |all: Vec<Vec<ListedSecret>>| {
            all.iter().map(|list| list.iter().map(|it| it.name().to_owned()).collect()).collect()
        };
        (found.map(names).map_err(|error| error.message), count.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_secret_that_changes_its_label_between_two_lists_is_not_lost() {
        let (found, count) = list(|_, _| {}).await;
        assert_eq!((found, count), (Ok(vec![vec![], vec!["east".to_owned(), "west".to_owned()]]), 4));
        // After the list of dev and before that of prod it is moved from prod to dev.
        let (found, count) = list(|nth, labels| {
            if nth == 0 {
                labels.insert("east", "dev");
            }
        })
        .await;
        assert_eq!((found, count), (Ok(vec![vec!["east".to_owned()], vec!["west".to_owned()]]), 6));
        // It is moved back and forth without end.
        let (found, count) = list(|nth, labels| {
            labels.insert("east", if nth % 4 == 0 { "dev" } else { "prod" });
        })
        .await;
        assert!(found.is_err_and(|error| error.contains("change while")), "that is no answer");
        assert_eq!(count, 8);
    }
}
