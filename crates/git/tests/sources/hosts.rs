//! The hosts that may be asked: by default none of this machine, in whatever way it is named.

use moorline_git::{
    Address, ChartRef, Credentials, Digest, Error, HostPolicy, Proxy, Reference, Repositories,
};
use moorline_test_support::git_bench::soon;
use moorline_test_support::git_server::{GitServer, Reply, Work};

/// A server on this machine, which all that is refused would reach.
struct AllowedHosts {
    server: GitServer,
    all: Repositories,
    _root: tempfile::TempDir,
}

const REFUSED: &str = "HostNotAllowed";

impl AllowedHosts {
    fn new(entries: &[&str], behind: impl FnOnce(u16) -> Option<Proxy>) -> Self {
        let root = tempfile::tempdir().unwrap();
        Work::new(root.path()).push(&[("a", "1")]);
        let server = GitServer::start(root.path());
        let hosts = HostPolicy::new("allowedHosts", entries.iter().copied()).unwrap();
        let all = Repositories::new(&root.path().join("data"), behind(server.port), hosts).unwrap();
        Self { server, all, _root: root }
    }

    async fn look(&self, url: &str) -> Result<(), Error> {
        let address = Address::remote(url).unwrap();
        let repository = self.all.repository(&address, "", &Credentials::default()).unwrap();
        repository.resolve(&Reference::Head, soon()).await.map(drop)
    }

    /// The reason why a repository on a host is not looked at, at the port of the server.
    async fn reason(&self, host: &str) -> &'static str {
        let looked = self.look(&format!("http://{host}:{}/repository.git", self.server.port)).await;
        looked.err().map_or("", |error| error.reason())
    }

    async fn chart(&self, url: &str) -> &'static str {
        let name = if url.starts_with("oci:") { None } else { Some("web") };
        let wanted = ChartRef::new(url, name, "1.0.0", &Digest::hash(b"x").to_string()).unwrap();
        let fetched = self.all.chart(&wanted, ("", "team"), &Credentials::default(), soon()).await;
        fetched.err().map_or("", |error| error.reason())
    }
}

/// Names and addresses of this machine, of its link and of what clouds have there.
const OWN: [&str; 14] = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "0.0.0.0",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::1]",
    "[fe80::1]",
    "169.254.169.254",
    "metadata.google.internal",
    "localhost",
    "a.localhost",
];

#[tokio::test]
async fn by_default_nothing_of_this_machine_is_asked() {
    let bench = AllowedHosts::new(&[], |_| None);
    for host in OWN {
        assert_eq!(bench.reason(host).await, REFUSED, "{host}");
        assert_eq!(
            bench.chart(&format!("http://{host}:{}/charts", bench.server.port)).await,
            REFUSED,
            "{host}"
        );
    }
    assert_eq!(bench.chart(&format!("oci://127.0.0.1:{}/web", bench.server.port)).await, REFUSED);
    let told = bench.look("http://127.0.0.1:1/a").await.unwrap_err();
    assert!(told.to_string().contains("allowedHosts") && !told.needs_new_input(), "{told}");
    assert!(bench.server.requests().is_empty());
}

#[tokio::test]
async fn what_a_name_stands_for_is_judged_after_it_was_looked_up() {
    // Because a network is allowed, every name is looked up.
    let bench = AllowedHosts::new(&["10.0.0.0/8"], |_| None);
    assert_eq!(bench.reason("localhost").await, REFUSED);
    assert!(bench.server.requests().is_empty());
    let bench = AllowedHosts::new(&["127.0.0.0/8"], |_| None);
    assert_eq!(bench.reason("localhost").await, "");
    assert_eq!(bench.reason("127.0.0.1").await, "");
    assert_eq!(bench.reason("[::1]").await, REFUSED);
    let only = AllowedHosts::new(&["git.example.com"], |_| None);
    assert_eq!(only.look("https://elsewhere.example/a").await.unwrap_err().reason(), REFUSED);
}

#[tokio::test]
async fn a_redirect_is_judged_again() {
    let bench = AllowedHosts::new(&["127.0.0.1"], |_| None);
    for to in
        ["http://127.0.0.2:1/x", "http://[::1]:1/x", "http://169.254.169.254/latest", "http://localhost.:1/x"]
    {
        bench.server.rule(move |request| match request.path.as_str() {
            "/charts/index.yaml" => {
                let head = format!("Location: {to}\r\n").leak();
                Reply::Raw(302, head, Vec::new())
            }
            _ => Reply::Raw(404, "", Vec::new()),
        });
        // The last one is this machine under a name that nobody has listed, so nobody but the
        // public net is asked.
        let expect = if to.contains("localhost") { "RepositoryUnreachable" } else { REFUSED };
        assert_eq!(bench.chart(&bench.server.url("charts")).await, expect, "{to}");
    }
}

#[tokio::test]
async fn behind_a_proxy_names_and_written_addresses_are_judged() {
    // The proxy is on this machine, where the operator of the daemon says that it is.
    let behind = |port| Some(Proxy::new(&format!("http://127.0.0.1:{port}"), &[]).unwrap());
    let bench = AllowedHosts::new(&[], behind);
    for host in OWN {
        assert_eq!(bench.reason(host).await, REFUSED, "{host}");
    }
    assert!(bench.server.requests().is_empty());
    assert_ne!(bench.reason("git.example.com").await, REFUSED);
    assert!(!bench.server.requests().is_empty());
    let only = AllowedHosts::new(&["example.com"], behind);
    assert_eq!(only.reason("git.elsewhere.example").await, REFUSED);
    assert_ne!(only.reason("git.example.com").await, REFUSED);
}

#[tokio::test]
async fn ssh_is_judged_as_https_is() {
    let bench = AllowedHosts::new(&[], |_| None);
    let key =
        russh::keys::PrivateKey::random(&mut russh::keys::key::safe_rng(), russh::keys::Algorithm::Ed25519);
    let key = key.unwrap();
    let known = key.public_key().to_openssh().unwrap();
    let pem = key.to_openssh(russh::keys::ssh_key::LineEnding::LF).unwrap().to_string();
    let secret = [("ssh-privatekey", pem), ("known_hosts", format!("host {known}"))];
    let credentials = Credentials::from_secret(secret).unwrap();
    for host in OWN {
        let address = Address::remote(&format!("ssh://git@{host}:{}/a", bench.server.port)).unwrap();
        let opened = bench.all.repository(&address, "ns/secret", &credentials).unwrap();
        let error = opened.resolve(&Reference::Head, soon()).await.unwrap_err();
        assert_eq!(error.reason(), REFUSED, "{host}: {error}");
    }
}
