//! IP addresses and CIDR ranges.
//!
//! In: texts, addresses.
//! Out: the results of the Kubernetes library. An IPv4-mapped IPv6 address is invalid.

use core::net::IpAddr;

use super::evaluate::{EvaluationError, NumberError};
use super::value::CelValue;

/// Function of addresses and ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkFunction {
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
pub(super) fn net<'a>(
    net: NetworkFunction,
    of: &CelValue<'a>,
    other: Option<&CelValue<'a>>,
) -> Result<CelValue<'a>, EvaluationError> {
    let wrong = || EvaluationError::WrongType("an address");
    let unreadable = || EvaluationError::Number(NumberError::NoNumber);
    let other_ip = || match other {
        Some(CelValue::Ip(address)) => Ok(*address),
        Some(CelValue::Text(text)) => ip(text).ok_or_else(unreadable),
        Some(_) | None => Err(wrong()),
    };
    let other_cidr = || match other {
        Some(CelValue::Cidr(address, bits)) => Ok((*address, *bits)),
        Some(CelValue::Text(text)) => cidr(text).ok_or_else(unreadable),
        Some(_) | None => Err(wrong()),
    };
    match of {
        CelValue::Text(text) if net == NetworkFunction::IsCanonical => {
            Ok(CelValue::Bool(ip(text).ok_or_else(unreadable)?.to_string() == **text))
        }
        CelValue::Ip(address) => of_address(net, *address).ok_or_else(wrong),
        CelValue::Cidr(address, bits) => Ok(match net {
            NetworkFunction::Ip => CelValue::Ip(*address),
            NetworkFunction::PrefixLength => CelValue::Int(i64::from(*bits)),
            NetworkFunction::Masked => CelValue::Cidr(masked(*address, *bits), *bits),
            NetworkFunction::ContainsIp => CelValue::Bool(is_within(other_ip()?, *address, *bits)),
            NetworkFunction::ContainsCidr => {
                let (inner, inner_bits) = other_cidr()?;
                CelValue::Bool(*bits <= inner_bits && is_within(inner, *address, *bits))
            }
            _ => return Err(wrong()),
        }),
        _ => Err(wrong()),
    }
}

fn of_address<'a>(net: NetworkFunction, address: IpAddr) -> Option<CelValue<'a>> {
    let is_link_local = match address {
        IpAddr::V4(it) => it.is_link_local(),
        IpAddr::V6(it) => it.is_unicast_link_local(),
    };
    Some(CelValue::Bool(match net {
        NetworkFunction::Family => return Some(CelValue::Int(if address.is_ipv4() { 4 } else { 6 })),
        NetworkFunction::IsUnspecified => address.is_unspecified(),
        NetworkFunction::IsLoopback => address.is_loopback(),
        NetworkFunction::IsLinkLocalMulticast => match address {
            IpAddr::V4(it) => it.octets()[..3] == [224, 0, 0],
            IpAddr::V6(it) => it.segments()[0] & 0xff0f == 0xff02,
        },
        NetworkFunction::IsLinkLocalUnicast => is_link_local,
        NetworkFunction::IsGlobalUnicast => {
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
