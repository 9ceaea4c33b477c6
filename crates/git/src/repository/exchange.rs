//! Exchanges with servers that the operator names, by the same network and workers as the
//! repositories.
//!
//! In: a request. Out: the status and the body of the answer. No redirect is followed, and the host
//! passes the rules of the operator.

use std::time::Instant;

use moorline_identity::ExchangeRequest;
use moorline_runtime::chance;

use super::super::cloud;
use super::super::credentials::Sensitive;
use super::super::error::Error;
use super::super::remote::heard;
use super::Repositories;
use crate::worker_pool::WorkerRequest;

/// Sends a request, and returns status and body of the answer. `asker` is the namespace whose share
/// of the workers is used.
pub async fn send_exchange(
    repositories: &Repositories,
    request: ExchangeRequest,
    asker: &str,
    by: Instant,
) -> Result<(u16, Sensitive<Vec<u8>>), Error> {
    let house = repositories.0.clone();
    let server: Box<str> = request.url.split('/').nth(2).unwrap_or_default().into();
    let ask = WorkerRequest { namespace: asker.into(), server: Some((*server).into()) };
    let work = async {
        let mut worker = house.turns.take(ask).await;
        let network = house.network.clone();
        let done = chance::spawn_blocking_deterministic(move || {
            let answer = cloud::send(&network, &request, by);
            worker.heard(heard(answer.as_ref().err()));
            answer
        });
        done.await.map_err(|_| Error::Stopped)?
    };
    match tokio::time::timeout_at(by.into(), work).await {
        Ok(done) => done.map(|(answer, _)| (answer.status, answer.body)),
        Err(_) => Err(Error::Timeout { server, what: "answer" }),
    }
}
