//! Logins and data keys of clouds, by the same network and workers as the repositories.
//!
//! In: a ServiceAccount and a source, or a data key as a file names it. Out: credentials that are
//! exchanged as they are needed; the data key.

use std::time::Instant;

use moorline_identity::{CloudEndpoints, SecretBytes};
use moorline_runtime::chance;

use super::super::address::{Address, Kind};
use super::super::cloud::{self, Cloud, CloudAccount, CloudLogin, KmsCiphertext, KmsError, KmsLogin};
use super::super::credentials::Credentials;
use super::super::error::Error;
use super::super::remote::heard;
use super::Repositories;
use crate::worker_pool::WorkerRequest;

/// Sets addresses and names in clouds. The first call counts.
pub fn set_clouds(repositories: &Repositories, endpoints: CloudEndpoints) {
    repositories.0.network.clouds().set(endpoints);
}

/// Returns the credentials of a ServiceAccount for a registry: host, and port unless it is that of
/// https.
pub fn registry_identity(
    repositories: &Repositories,
    (cloud, account): (Cloud, CloudAccount),
    server: &str,
) -> Result<Credentials, Error> {
    CloudLogin::of_registry((cloud, account), server, &repositories.0.network).map(Credentials::of_cloud)
}

/// Returns the credentials of a ServiceAccount for an artifact, or a repository of Azure DevOps.
pub fn source_identity(
    repositories: &Repositories,
    (cloud, account): (Cloud, CloudAccount),
    address: &Address,
) -> Result<Credentials, Error> {
    let network = &repositories.0.network;
    match address.kind() {
        Kind::Registry(at) => registry_identity(repositories, (cloud, account), &at.host_and_port()),
        Kind::Http(at) => {
            CloudLogin::of_repository(account, &at.host_and_port(), network).map(Credentials::of_cloud)
        }
        Kind::Ssh(_) | Kind::Local(_) => Err(Error::Stopped),
    }
}

/// Asks for a data key. `asker` is the namespace whose share of the workers is used.
pub async fn kms_decrypt(
    repositories: &Repositories,
    wanted: &KmsCiphertext,
    login: &KmsLogin,
    asker: &str,
    by: Instant,
) -> Result<SecretBytes, KmsError> {
    let house = &repositories.0;
    let server = cloud::server(wanted);
    let ask = || WorkerRequest { namespace: asker.into(), server: Some(server.clone()) };
    let work = async {
        let mut worker = house.turns.take(ask()).await;
        let (house, wanted, login) = (house.clone(), wanted.clone(), login.clone());
        let done = chance::spawn_blocking_deterministic(move || {
            let answer = cloud::decrypt(&wanted, &login, &house.network, by);
            worker.heard(match &answer {
                Err(KmsError::Server(error)) => heard(Some(error)),
                Ok(_) | Err(_) => heard(None),
            });
            answer
        });
        done.await.map_err(|_| KmsError::Server(Error::Stopped))?
    };
    match tokio::time::timeout_at(by.into(), work).await {
        Ok(done) => done,
        Err(_) => Err(KmsError::Server(match house.turns.why(&ask()) {
            Some(why) => Error::Waiting { server: (&*server).into(), why: why.text() },
            None => Error::Timeout { server: (&*server).into(), what: "answer" },
        })),
    }
}
