//! Which addresses belong to the public net.
//!
//! In: an address that a name stands for. Out: whether anybody could reach it. What is private, local or reserved is a neighbour of the
//! daemon, with whom no server may make it talk.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// True for an address of the public net.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_reserved = match (first, second, third) {
        // This network, shared by providers, reserved for protocols, for measurements, and for later.
        (0, ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18..=19, _) | (240..=255, ..) => true,
        _ => address.is_multicast() || address.is_documentation(),
    };
    !(is_reserved || address.is_private() || address.is_loopback() || address.is_link_local())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, .., before, last] = address.segments();
    let inner = || Ipv4Addr::from((u32::from(before) << 16) | u32::from(last));
    match (first, second) {
        // An address of the older kind inside, as it is or for a translator.
        (0, 0) if address.to_ipv4_mapped().is_some() => is_public_v4(inner()),
        (0x64, 0xff9b) => is_public_v4(inner()),
        // Addresses that may lead anywhere by way of a tunnel, and those for documentation.
        (0x2001, 0 | 0xdb8) | (0x2002, _) => false,
        // All that is given out today.
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
