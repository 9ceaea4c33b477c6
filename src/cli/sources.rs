//! Opens the daemon's store of repositories and charts, as the settings say.
//!
//! In: settings, and true if the user refers to this machine. Out: the store, and the list of
//! repositories that may be read besides those that Syncs name.

use crate::cluster::Connection;
use crate::settings::{Settings, parse_bytes};
use crate::source::{
    AllowList, CloudEndpoints, Error, HostPolicy, Memory, Proxy, RegistryMirrors, Repositories, set_clouds,
};

/// Opens the store. With `means_own` servers on the loopback interface are allowed: the user named
/// one repository, or runs an API server in this process.
pub(super) async fn sources(
    settings: &Settings,
    means_own: bool,
    connection: &Connection,
) -> anyhow::Result<(Repositories, AllowList)> {
    let hosts = HostPolicy::new("allowedHosts", settings.allowed_hosts.iter().map(|entry| &**entry))?;
    let hosts = hosts.without_api_server(connection.addresses().await);
    let hosts = if means_own { hosts.with_loopback() } else { hosts };
    let direct: Vec<&str> = settings.proxy_direct.iter().map(|host| &**host).collect();
    let proxy = settings.proxy.as_ref().map(|url| Proxy::new(url.reveal(), &direct)).transpose()?;
    let allowed = AllowList::new("remoteBases", settings.remote_bases.iter().map(|prefix| &**prefix))?;
    let memory = Memory::new(settings.memory.as_deref().and_then(parse_bytes));
    let quota = parse_bytes(&settings.data_quota).unwrap_or(u64::MAX);
    let repositories = Repositories::with_limits(&settings.data_dir, proxy, hosts, (memory, quota))?;
    let vaults = settings.vault_addresses.iter().map(|address| &**address);
    repositories.allow_vaults(AllowList::new("vaultAddresses", vaults)?);
    let mirrors = settings.registry_mirrors.iter();
    let mirrors = mirrors.map(|(registry, mirrors)| (&**registry, mirrors.iter().map(|mirror| &**mirror)));
    repositories.use_mirrors(RegistryMirrors::new("registryMirrors", mirrors)?);
    let problem = "has an entry that is not a known name and its value; write for example aws-sts=https://sts.example.com";
    let clouds = CloudEndpoints::new(settings.cloud_endpoints.iter().map(|entry| &**entry));
    set_clouds(&repositories, clouds.ok_or(Error::Setting { setting: "cloudEndpoints", problem })?);
    Ok((repositories, allowed))
}
