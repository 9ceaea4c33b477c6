//! Data keys from the transit engine of Vault, asked for by the same network and workers as the
//! repositories.
//!
//! In: a data key as a file names it, and a login. Out: the data key. Servers that the operator
//! does not list are not contacted.

use std::time::Instant;

use super::super::credentials::Sensitive;
use super::super::error::Error;
use super::super::remote::heard;
use super::super::transit::{self, TransitCiphertext, TransitError, TransitLogin};
use super::Repositories;
use crate::allow_list::AllowList;
use crate::worker_pool::WorkerRequest;
use moorline_runtime::chance;

/// Asks for a data key. `asker` is the namespace whose share of the workers is used.
pub async fn transit_decrypt(
    repositories: &Repositories,
    wanted: &TransitCiphertext,
    login: &TransitLogin,
    asker: &str,
    by: Instant,
) -> Result<Sensitive<Vec<u8>>, TransitError> {
    let house = &repositories.0;
    let at = transit::judged(wanted, house.vaults.get().unwrap_or(&AllowList::default()))?;
    let server = at.server();
    let ask = || WorkerRequest { namespace: asker.into(), server: Some(server.as_str().into()) };
    let work = async {
        let mut worker = house.turns.take(ask()).await;
        let (house, wanted, login) = (house.clone(), wanted.clone(), login.clone());
        let done = chance::spawn_blocking_deterministic(move || {
            let answer = transit::decrypt(&at, &wanted, &login, &house.network, by);
            worker.heard(match &answer {
                Err(TransitError::Server(error)) => heard(Some(error)),
                Ok(_) | Err(_) => heard(None),
            });
            answer
        });
        done.await.map_err(|_| TransitError::Server(Error::Stopped))?
    };
    match tokio::time::timeout_at(by.into(), work).await {
        Ok(done) => done,
        Err(_) => {
            let server: Box<str> = server.as_str().into();
            Err(TransitError::Server(match house.turns.why(&ask()) {
                Some(why) => Error::Waiting { server, why: why.text() },
                None => Error::Timeout { server, what: "answer" },
            }))
        }
    }
}
