//! Classifies IP addresses: public ones, and ones that are blocked by default.
//!
//! In: a resolved address.
//! Out: true if it is public, or if it is blocked. Private, local and reserved addresses belong to
//! the daemon's own network, which no server may make it contact. An IPv6 address may embed an IPv4
//! address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// True for a public address.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// True for loopback, link-local and metadata addresses, and for addresses that name no single
/// host.
pub(super) fn is_guarded(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_guarded_v4(address),
        IpAddr::V6(address) => {
            let [first, ..] = address.segments();
            let is_link = first & 0xffc0 == 0xfe80 || first & 0xffc0 == 0xfec0;
            let is_none = address.is_unspecified() || address.is_loopback() || address.is_multicast();
            is_link || is_none || METADATA_V6.contains(&address) || embedded_v4(address).any(is_guarded_v4)
        }
    }
}

/// True if both are the same host, even if one is an IPv6 form of an IPv4 address.
pub(super) fn same(one: IpAddr, other: IpAddr) -> bool {
    let inner = |address: IpAddr| match address {
        IpAddr::V4(address) => vec![address],
        IpAddr::V6(address) => embedded_v4(address).collect(),
    };
    one == other || inner(one).iter().any(|address| inner(other).contains(address))
}

/// Parses an IPv4 address as the system's library does: one to four parts, each decimal, octal or
/// hexadecimal.
pub(super) fn number(host: &str) -> Option<Ipv4Addr> {
    let part = |text: &str| match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some("") => Some(0),
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if text.starts_with('0') && text.len() > 1 => u32::from_str_radix(&text[1..], 8).ok(),
        None => text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?,
    };
    let parts: Vec<u32> = host.split('.').map(part).collect::<Option<_>>()?;
    let (last, front) = parts.split_last()?;
    let room = 32_usize.checked_sub(8 * front.len()).filter(|room| *room > 0)?;
    let fits = front.iter().all(|part| *part < 256) && u64::from(*last) < 1 << room;
    let whole = front.iter().enumerate().fold(0, |whole, (at, part)| whole | part << (24 - 8 * at));
    fits.then(|| Ipv4Addr::from(whole | last))
}

/// Metadata services of clouds outside of 169.254.0.0/16.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

fn is_guarded_v4(address: Ipv4Addr) -> bool {
    let is_none = address.octets()[0] == 0 || address.is_multicast() || address.octets()[0] >= 240;
    is_none || address.is_loopback() || address.is_link_local() || METADATA_V4.contains(&address)
}

/// Returns the IPv4 addresses embedded in an IPv6 address: mapped, compatible, translated, or
/// tunnelled.
fn embedded_v4(address: Ipv6Addr) -> impl Iterator<Item = Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let pair = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    let last = matches!(
        [a, b, c, d, e, f],
        [0, 0, 0, 0, 0, 0 | 0xffff]
            | [0, 0, 0, 0, 0xffff, 0]
            | [0x64, 0xff9b, ..]
            | [_, _, _, _, 0 | 0x200, 0x5efe]
    );
    let tunnel = (a == 0x2002).then(|| pair(b, c));
    // The address of the client is stored inverted.
    let teredo = (a == 0x2001 && b == 0).then(|| [pair(c, d), pair(!g, !h)]);
    // The prefix of a translator may be shorter; then the address surrounds a zero byte.
    let local =
        ([a, b, c] == [0x64, 0xff9b, 1] && (d, e, f) != (0, 0, 0)).then(|| pair(d, (e << 8) | (f >> 8)));
    let last = last.then(|| pair(g, h)).into_iter();
    last.chain(local).chain(tunnel).chain(teredo.into_iter().flatten())
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_reserved = match (first, second, third) {
        // This network, carrier-grade NAT, protocol assignments, benchmarking, and reserved.
        (0, ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18..=19, _) | (240..=255, ..) => true,
        _ => address.is_multicast() || address.is_documentation(),
    };
    !(is_reserved || address.is_private() || address.is_loopback() || address.is_link_local())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, .., before, last] = address.segments();
    let inner = || Ipv4Addr::from((u32::from(before) << 16) | u32::from(last));
    match (first, second) {
        // An embedded IPv4 address, mapped or for a translator.
        (0, 0) if address.to_ipv4_mapped().is_some() => is_public_v4(inner()),
        (0x64, 0xff9b) => is_public_v4(inner()),
        // Tunnels, which may lead anywhere, and documentation.
        (0x2001, 0 | 0xdb8) | (0x2002, _) => false,
        // All addresses assigned today.
        (0x2000..=0x3fff, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_not_public() {
        let table = [
            ("93.184.216.34", true),
            ("2606:4700::1111", true),
            ("64:ff9b::5db8:d822", true),
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("::1", false),
            ("::", false),
            ("::ffff:10.0.0.1", false),
            ("64:ff9b::a00:1", false),
            ("fd00::1", false),
            ("fe80::1", false),
            ("2002:a00:1::", false),
            ("2001:db8::1", false),
        ];
        for (text, expect) in table {
            assert_eq!(is_public(text.parse().unwrap()), expect, "{text}");
        }
    }
}
