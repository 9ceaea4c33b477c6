//! Server of a mirror: a Git server, or a registry.
//!
//! In: an address and credentials.
//! Out: an [`Origin`]; none for a repository on the local disk.

use sha2::{Digest as _, Sha256};

use super::super::address::{Address, Kind};
use super::super::artifact::RegistryClient;
use super::super::credentials::Credentials;
use super::super::error::Error;
use super::super::remote::{HttpTransport, Remote};
use super::MirrorFolder;
use crate::ssh_transport::SshTransport;

/// Server of a mirror.
#[derive(Debug)]
pub(super) enum Origin {
    Git(Remote),
    Registry(Box<RegistryClient>),
}

impl MirrorFolder {
    /// Returns the server at an address.
    pub(super) fn origin(
        &self,
        address: &Address,
        credentials: &Credentials,
    ) -> Result<Option<Origin>, Error> {
        Ok(match address.kind() {
            Kind::Http(http) => {
                let web = HttpTransport::new(http, credentials, &self.network)?;
                Some(Origin::Git(Remote::new(web)))
            }
            Kind::Ssh(ssh) => {
                let ssh = SshTransport::new(ssh, credentials, self.network.hosts())?;
                Some(Origin::Git(Remote::new(ssh)))
            }
            Kind::Registry(registry) => {
                let client = RegistryClient::new(registry, credentials, &self.network)?;
                Some(Origin::Registry(Box::new(client)))
            }
            Kind::Local(_) => None,
        })
    }
}

/// Returns the folder name of a mirror. It hides the URL, which may be private.
pub(super) fn key(address: &Address, owner: &str) -> Box<str> {
    let hash = Sha256::digest(format!("{address}\0{owner}"));
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
