//! Tests which addresses and names are allowed.

use super::*;

fn hosts(entries: &[&str]) -> HostPolicy {
    HostPolicy::new("allowedHosts", entries.iter().copied()).unwrap()
}

fn address(text: &str) -> SocketAddr {
    SocketAddr::new(text.parse().unwrap(), 443)
}

/// Addresses blocked by default, in every notation.
const GUARDED_ADDRESSES: [&str; 27] = [
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "0.1.2.3",
    "169.254.169.254",
    "169.254.1.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b:1::169.254.169.254",
    "64:ff9b:1:7f00:0:100::",
    "64:ff9b:1:a9fe:a9:fe00:1234:5678",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "fe80::1",
    "fe80::5efe:127.0.0.1",
    "fd00:ec2::254",
    "ff02::1",
];

#[test]
fn by_default_all_but_the_guarded_is_reached() {
    for rules in [HostPolicy::new("allowedHosts", []).unwrap(), hosts(&["*"])] {
        for text in GUARDED_ADDRESSES {
            for host in [text, "git.example.com"] {
                assert_eq!(rules.address(host, address(text)), Err(GUARDED), "{host} at {text}");
            }
        }
        for text in ["93.184.216.34", "10.1.2.3", "192.168.1.1", "fd00::1", "2606:4700::1111", "2002:a00:1::"]
        {
            assert_eq!(rules.address("git.example.com", address(text)), Ok(()), "{text}");
            assert_eq!(rules.address(text, address(text)), Ok(()), "{text}");
        }
    }
    assert_eq!(HostPolicy::allow_all().address("localhost", address("127.0.0.1")), Ok(()));
}

#[test]
fn names_are_judged_where_a_proxy_looks_them_up() {
    let rules = hosts(&[]);
    for host in [
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "metadata.google.internal",
        "metadata.google.internal.",
        "kubernetes",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
    ] {
        assert_eq!(rules.named(host, 443), Err(GUARDED), "{host}");
    }
    for host in
        ["git.example.com", "10.0.0.1", "kubernetes.example.com", "localhost.example.com", "1e100.net"]
    {
        assert_eq!(rules.named(host, 443), Ok(()), "{host}");
    }
}

#[test]
fn a_list_of_names_allows_them_and_what_lies_below() {
    let rules = hosts(&["example.com", "*.Other.example", "git.svc"]);
    for (host, expect) in [
        ("example.com", Ok(())),
        ("git.EXAMPLE.com", Ok(())),
        ("badexample.com", Err(UNLISTED)),
        ("example.com.evil", Err(UNLISTED)),
        ("a.other.example", Ok(())),
        ("10.0.0.1", Err(UNLISTED)),
    ] {
        assert_eq!(rules.address(host, address("10.0.0.1")), expect, "{host}");
        assert_eq!(rules.named(host, 443), expect, "{host}");
    }
    assert_eq!(rules.may_look_up("evil.example"), Err(UNLISTED));
    let (host, at) = ("git.example.com", address("127.0.0.1"));
    assert_eq!(rules.address(host, at), Err(GUARDED), "an allowed name does not make an address harmless");
    assert_eq!(rules.with_loopback().address(host, at), Ok(()));
}

#[test]
fn addresses_that_are_named_are_reached_whatever_they_are() {
    let rules = hosts(&["127.0.0.0/8", "::1", "10.1.0.0/16"]);
    for (text, expect) in [
        ("127.0.0.1", Ok(())),
        ("127.200.0.1", Ok(())),
        ("::ffff:127.0.0.1", Ok(())),
        ("::1", Ok(())),
        ("10.1.255.255", Ok(())),
        ("10.2.0.1", Err(UNLISTED)),
        ("64:ff9b::127.0.0.1", Err(GUARDED)),
        ("169.254.169.254", Err(GUARDED)),
    ] {
        assert_eq!(rules.address("any.example", address(text)), expect, "{text}");
    }
    assert_eq!(rules.may_look_up("any.example"), Ok(()), "what it stands for decides");
    let open = hosts(&["0.0.0.0/0", "::/0"]);
    assert_eq!(open.address("any", address("169.254.169.254")), Ok(()));
}

#[test]
fn the_api_server_is_reached_by_no_name() {
    let rules =
        hosts(&[]).without_api_server(["10.0.0.1:443".parse().unwrap(), "[fd00::9]:6443".parse().unwrap()]);
    for (at, expect) in [
        ("10.0.0.1:443", Err(GUARDED)),
        ("[::ffff:10.0.0.1]:443", Err(GUARDED)),
        ("[64:ff9b::10.0.0.1]:443", Err(GUARDED)),
        ("[2002:a00:1::]:443", Err(GUARDED)),
        ("10.0.0.1:3000", Ok(())),
        ("[fd00::9]:6443", Err(GUARDED)),
        ("[fd00::9]:443", Ok(())),
    ] {
        assert_eq!(rules.address("git.example.com", at.parse().unwrap()), expect, "{at}");
    }
}

#[test]
fn what_is_no_entry_is_refused() {
    for entry in ["", " ", "https://host", "a b", "10.0.0.0/33", "a/b", "host:80", "127.1", "..", "a..b"] {
        let refused = HostPolicy::new("allowedHosts", [entry]);
        assert!(
            refused.is_err_and(|error| error.to_string().contains("allowedHosts has an entry")),
            "{entry}"
        );
    }
}
