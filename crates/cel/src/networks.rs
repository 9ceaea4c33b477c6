//! IP addresses and CIDR ranges.
//!
//! In: texts, addresses.
//! Out: the results of the Kubernetes library. An IPv4-mapped IPv6 address is invalid.

use core::net::IpAddr;

use super::evaluate::{Fault, Sum};
use super::value::Val;

/// Function of addresses and ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Net {
    Ip,
    IsCanonical,
    Family,
    IsUnspecified,
    IsLoopback,
    IsLinkLocalMulticast,
    IsLinkLocalUnicast,
    IsGlobalUnicast,
    ContainsIp,
    ContainsCidr,
    Masked,
    PrefixLength,
}

/// Parses an IP address.
pub(super) fn ip(text: &str) -> Option<IpAddr> {
    text.parse().ok().filter(|address| !matches!(address, IpAddr::V6(it) if it.to_ipv4_mapped().is_some()))
}

/// Parses a range: its address as written, and the length of its prefix.
pub(super) fn cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.rsplit_once('/')?;
    let address = ip(address)?;
    let is_number = bits == "0" || bits.starts_with(|char: char| ('1'..='9').contains(&char));
    let bits: u8 = bits.parse().ok().filter(|_| is_number)?;
    (bits <= width(address)).then_some((address, bits))
}

/// Evaluates a function of an address or a range.
pub(super) fn net<'a>(net: Net, of: &Val<'a>, other: Option<&Val<'a>>) -> Result<Val<'a>, Fault> {
    let wrong = || Fault::Kinds("an address");
    let unreadable = || Fault::Number(Sum::NoNumber);
    let other_ip = || match other {
        Some(Val::Ip(address)) => Ok(*address),
        Some(Val::Text(text)) => ip(text).ok_or_else(unreadable),
        Some(_) | None => Err(wrong()),
    };
    let other_cidr = || match other {
        Some(Val::Cidr(address, bits)) => Ok((*address, *bits)),
        Some(Val::Text(text)) => cidr(text).ok_or_else(unreadable),
        Some(_) | None => Err(wrong()),
    };
    match of {
        Val::Text(text) if net == Net::IsCanonical => {
            Ok(Val::Bool(ip(text).ok_or_else(unreadable)?.to_string() == **text))
        }
        Val::Ip(address) => of_address(net, *address).ok_or_else(wrong),
        Val::Cidr(address, bits) => Ok(match net {
            Net::Ip => Val::Ip(*address),
            Net::PrefixLength => Val::Int(i64::from(*bits)),
            Net::Masked => Val::Cidr(masked(*address, *bits), *bits),
            Net::ContainsIp => Val::Bool(is_within(other_ip()?, *address, *bits)),
            Net::ContainsCidr => {
                let (inner, inner_bits) = other_cidr()?;
                Val::Bool(*bits <= inner_bits && is_within(inner, *address, *bits))
            }
            _ => return Err(wrong()),
        }),
        _ => Err(wrong()),
    }
}

fn of_address<'a>(net: Net, address: IpAddr) -> Option<Val<'a>> {
    let is_link_local = match address {
        IpAddr::V4(it) => it.is_link_local(),
        IpAddr::V6(it) => it.is_unicast_link_local(),
    };
    Some(Val::Bool(match net {
        Net::Family => return Some(Val::Int(if address.is_ipv4() { 4 } else { 6 })),
        Net::IsUnspecified => address.is_unspecified(),
        Net::IsLoopback => address.is_loopback(),
        Net::IsLinkLocalMulticast => match address {
            IpAddr::V4(it) => it.octets()[..3] == [224, 0, 0],
            IpAddr::V6(it) => it.segments()[0] & 0xff0f == 0xff02,
        },
        Net::IsLinkLocalUnicast => is_link_local,
        Net::IsGlobalUnicast => {
            let is_broadcast = matches!(address, IpAddr::V4(it) if it.is_broadcast());
            !(address.is_unspecified()
                || address.is_loopback()
                || address.is_multicast()
                || is_link_local
                || is_broadcast)
        }
        _ => return None,
    }))
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Clears all bits of the address after this prefix.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    let without = u32::from(width(address) - bits);
    match address {
        IpAddr::V4(it) => {
            let mask = u32::MAX.checked_shl(without).unwrap_or(0);
            IpAddr::V4((u32::from(it) & mask).into())
        }
        IpAddr::V6(it) => {
            let mask = u128::MAX.checked_shl(without).unwrap_or(0);
            IpAddr::V6((u128::from(it) & mask).into())
        }
    }
}

fn is_within(address: IpAddr, range: IpAddr, bits: u8) -> bool {
    address.is_ipv4() == range.is_ipv4() && masked(address, bits) == masked(range, bits)
}
