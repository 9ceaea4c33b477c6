//! A cluster in this process whose answers a test chooses.
//!
//! In: a function from a request to a status and a body.
//! Out: a [`Cluster`] that asks it.

use std::convert::Infallible;

use kube::client::Body;
use moorline_metrics::Metrics;
use moorline_settings::Settings;

use crate::lease::WritePermit;
use crate::{Cluster, Connection};

/// Returns a cluster with these answers.
pub(crate) fn scripted_cluster(
    answer: impl Fn(&http::Request<Body>) -> (u16, String) + Send + 'static,
) -> Cluster {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (code, text) = answer(&request);
        let body = Body::from(text.into_bytes());
        std::future::ready(Ok::<_, Infallible>(http::Response::builder().status(code).body(body).unwrap()))
    });
    let connection = Connection::from_client(kube::Client::new(service, "default"), "default");
    Cluster::new(connection, Metrics::new().unwrap(), WritePermit::unlimited(), &Settings::default())
}
