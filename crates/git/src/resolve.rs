//! Looks names up, and judges what they stand for.
//!
//! In: a host. Out: its addresses that may be connected to; whoever connects to these connects to what was judged. It is looked up
//! on the thread that asks.

use std::net::{SocketAddr, ToSocketAddrs};

use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use super::hosts::{Hosts, Refused};
use super::reach;

/// The most addresses of one host that are tried.
pub(super) const MAX_ADDRESSES: usize = 16;

/// Which addresses a name may stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// All: a person has named the host.
    Anywhere,
    /// Those of the public net: a server has named the host, and must not make the daemon talk to its neighbours.
    Public,
}

impl Reach {
    /// Whether a proxy is asked for an address that is written as such.
    pub(super) fn of_literal(self, host: &str) -> Result<(), Refused> {
        let is_inner = host.parse().is_ok_and(|address| !reach::is_public(address));
        match self == Self::Public && is_inner {
            true => Err(Refused("a server names it, and it is not of the public net")),
            false => Ok(()),
        }
    }
}

/// Looks names up on the asking thread. The usual resolver starts a thread for each lookup and forgets it when
/// the time is over; the system's own lookup ends by itself.
#[derive(Debug)]
pub(super) struct SameThread(pub(super) Reach, pub(super) Hosts);

impl Resolver for SameThread {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let (host, port) = host_and_port(uri).ok_or(ureq::Error::HostNotFound)?;
        let found = resolved(&self.1, host, port).map_err(|error| match error {
            Unresolved::Unknown => ureq::Error::HostNotFound,
            Unresolved::Refused(refused) => ureq::Error::Other(Box::new(refused)),
        })?;
        let found =
            found.into_iter().filter(|found| self.0 == Reach::Anywhere || reach::is_public(found.ip()));
        let mut addresses = self.empty();
        config.ip_family().keep_wanted(found).take(MAX_ADDRESSES).for_each(|address| addresses.push(address));
        match addresses.is_empty() {
            true => Err(ureq::Error::HostNotFound),
            false => Ok(addresses),
        }
    }
}

/// Without the brackets of an address.
pub(super) fn host_and_port(uri: &Uri) -> Option<(&str, u16)> {
    let authority = uri.authority()?;
    let port = authority.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    Some((authority.host().trim_start_matches('[').trim_end_matches(']'), port))
}

/// Why a name stands for nothing.
pub(super) enum Unresolved {
    /// Nobody knows it.
    Unknown,
    /// It is not to be asked.
    Refused(Refused),
}

/// The addresses of a host that may be connected to, looked up on this thread. Who connects to these connects to what was judged.
pub(super) fn resolved(hosts: &Hosts, host: &str, port: u16) -> Result<Vec<SocketAddr>, Unresolved> {
    hosts.may_look_up(host).map_err(Unresolved::Refused)?;
    let found = (host, port).to_socket_addrs().map_err(|_| Unresolved::Unknown)?;
    let (mut allowed, mut refused) = (Vec::new(), None);
    for address in found {
        match hosts.address(host, address) {
            Ok(()) => allowed.push(address),
            Err(why) => refused = Some(why),
        }
    }
    match (allowed.is_empty(), refused) {
        (true, Some(why)) => Err(Unresolved::Refused(why)),
        (true, None) => Err(Unresolved::Unknown),
        (false, _) => Ok(allowed),
    }
}
