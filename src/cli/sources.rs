//! Where the daemon has its repositories and charts from, as the settings say.
//!
//! In: settings, and whether a person means this machine. Out: where repositories are kept, and which ones may be read besides those
//! that Syncs name.

use crate::cluster::Connection;
use crate::settings::{Settings, bytes};
use crate::source::{AllowList, Hosts, Memory, Proxy, Repositories};

/// `means_own`: who names one repository, or has an API server of their own, may mean a server of this machine.
pub(super) async fn sources(
    settings: &Settings,
    means_own: bool,
    connection: &Connection,
) -> anyhow::Result<(Repositories, AllowList)> {
    let hosts = Hosts::new("allowedHosts", settings.allowed_hosts.iter().map(|entry| &**entry))?;
    let hosts = hosts.without(connection.addresses().await);
    let hosts = if means_own { hosts.with_loopback() } else { hosts };
    let direct: Vec<&str> = settings.proxy_direct.iter().map(|host| &**host).collect();
    let proxy = settings.proxy.as_ref().map(|url| Proxy::new(url.reveal(), &direct)).transpose()?;
    let allowed = AllowList::new("remoteBases", settings.remote_bases.iter().map(|prefix| &**prefix))?;
    let memory = Memory::new(settings.memory.as_deref().and_then(bytes));
    let quota = bytes(&settings.data_quota).unwrap_or(u64::MAX);
    let repositories = Repositories::bounded(&settings.data_dir, proxy, hosts, (memory, quota))?;
    Ok((repositories, allowed))
}
