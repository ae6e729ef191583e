//! Decides which IP addresses are public, by a table of the networks that are not.
//!
//! The standard library offers this only on nightly Rust.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks that are not public, with their prefix lengths.
const CLOSED_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The only IPv6 network with public addresses (global unicast), with its prefix length.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Networks inside [`GLOBAL_V6`] that are not public: protocol assignments (including Teredo) and documentation.
const CLOSED_V6: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// IPv6 networks whose addresses contain an IPv4 address: mapped addresses, NAT64 and 6to4. Each has its prefix length and the bit at
/// which the IPv4 address starts. Such an address is public if its IPv4 address is.
const EMBEDDED_V4: [(Ipv6Addr, u32, u32); 3] = [
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, 96),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, 96),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 16),
];

/// Returns whether an address belongs to the public internet.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(inner) => is_public_v4(inner),
            None => in_v6(address, GLOBAL_V6) && !CLOSED_V6.iter().any(|network| in_v6(address, *network)),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(network, length): &(Ipv4Addr, u32)| (address.to_bits() ^ network.to_bits()) >> (32 - length) == 0;
    !CLOSED_V4.iter().any(within)
}

fn in_v6(address: Ipv6Addr, (network, length): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ network.to_bits()) >> (128 - length) == 0
}

fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (.., start) = EMBEDDED_V4.iter().find(|(network, length, _)| in_v6(address, (*network, *length)))?;
    let inner = (address.to_bits() >> (96 - start)) & u128::from(u32::MAX);
    u32::try_from(inner).ok().map(Ipv4Addr::from_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_every_network() {
        for (text, public) in [
            ("0.255.255.255", false),
            ("1.0.0.0", true),
            ("8.8.8.8", true),
            ("9.255.255.255", true),
            ("10.0.0.0", false),
            ("10.255.255.255", false),
            ("11.0.0.0", true),
            ("100.63.255.255", true),
            ("100.64.0.0", false),
            ("100.127.255.255", false),
            ("100.128.0.0", true),
            ("127.0.0.1", false),
            ("128.0.0.1", true),
            ("169.254.169.254", false),
            ("172.15.255.255", true),
            ("172.16.0.0", false),
            ("172.31.255.255", false),
            ("172.32.0.0", true),
            ("192.0.0.8", false),
            ("192.0.1.0", true),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.0.1", false),
            ("192.169.0.0", true),
            ("198.17.255.255", true),
            ("198.18.0.0", false),
            ("198.19.255.255", false),
            ("198.51.100.7", false),
            ("203.0.113.7", false),
            ("223.255.255.255", true),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::7f00:1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:8.8.8.8", true),
            ("::ffff:0:8.8.8.8", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::8.8.8.8", true),
            ("64:ff9b:1::8.8.8.8", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("2001:200::1", true),
            ("2002:7f00:1::", false),
            ("2002:808:808::1", true),
            ("2606:4700::1111", true),
            ("3fff::1", false),
            ("5f00::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            let address: IpAddr = text.parse().expect("an address");
            assert_eq!(is_public(address), public, "{text}");
        }
    }
}
