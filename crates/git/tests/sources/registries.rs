//! Registries of artifacts and charts: whom we trust, as whom we log in, through which proxy, and
//! which mirrors are asked before them.

use std::sync::{Arc, Mutex};

use moorline_git::{
    Address, ChartRequest, Credentials, Digest, HostPolicy, LayerSelection, Proxy, RegistryAddress,
    RegistryMirrors, Repositories, SignaturePolicy, TrustedKeys,
};
use moorline_test_support::artifact_registry::{
    ArtifactRegistry, LOGIN, MANIFEST, RegistryFault, RegistryLogin, gzip, one_layer, tar,
};
use moorline_test_support::artifact_signer::ArtifactSigner;
use moorline_test_support::authority::Authority;
use moorline_test_support::scene::text;

use super::artifacts::{range, tag};
use super::tls::tunnel;
use moorline_test_support::git_bench::soon;

const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Adds an artifact and a chart with the same value.
fn fill(registry: &ArtifactRegistry, prefix: &str, value: &str) {
    registry.push(&format!("{prefix}shop"), "1.0.0", &[text("a.yaml", value)]);
    let archive = gzip(&tar(&[
        ("web/Chart.yaml", b'0', b"name: web\n"),
        ("web/templates/map.yaml", b'0', value.as_bytes()),
    ]));
    registry.blob(&archive);
    registry.manifest(&format!("{prefix}charts/web"), "1.0.0", MANIFEST, &one_layer(CHART, &archive));
}

/// Reads the artifact and the chart; returns the value in each, or the reason why there is none.
struct Reader {
    all: Repositories,
    #[expect(dead_code, reason = "the folder is removed when it is dropped")]
    root: tempfile::TempDir,
}

impl Reader {
    fn new(proxy: Option<Proxy>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let all = Repositories::new(&root.path().join("data"), proxy, HostPolicy::allow_all()).unwrap();
        Self { all, root }
    }

    fn with_mirrors(registry: &ArtifactRegistry, mirrors: &[String]) -> Self {
        let reader = Self::new(None);
        let mirrors = mirrors.iter().map(String::as_str);
        let mirrors = RegistryMirrors::new("registryMirrors", [(registry.host().as_str(), mirrors)]).unwrap();
        reader.all.use_mirrors(mirrors);
        reader
    }

    async fn read(&self, registry: &ArtifactRegistry, keys: &[(&str, String)]) -> [String; 2] {
        [self.artifact(registry, keys, "1.0.0").await, self.chart(registry, keys, "1.0.0").await]
    }

    async fn artifact(&self, registry: &ArtifactRegistry, keys: &[(&str, String)], version: &str) -> String {
        let address = RegistryAddress::new(&registry.url("shop"), LayerSelection::default()).unwrap();
        let address = Address::from(address);
        let keys = keys.iter().map(|(key, value)| (*key, value.as_str()));
        let credentials = Credentials::for_source(keys, &address).unwrap();
        let repository = self.all.repository(&address, "", &credentials).unwrap();
        let wanted = if version.contains('*') { range(version, None) } else { tag(version) };
        let revision = match repository.resolve(&wanted, soon()).await {
            Ok(revision) => revision,
            Err(error) => return error.reason().to_owned(),
        };
        match repository.read(&revision, &[""], soon()).await {
            Ok(snapshot) => String::from_utf8(snapshot.files.read("a.yaml").unwrap().to_vec()).unwrap(),
            Err(error) => error.reason().to_owned(),
        }
    }

    async fn chart(&self, registry: &ArtifactRegistry, keys: &[(&str, String)], version: &str) -> String {
        let wanted = ChartRequest::new(&registry.url("charts/web"), None, version, None).unwrap();
        let keys = keys.iter().map(|(key, value)| (*key, value.as_str()));
        let credentials = Credentials::for_registry(keys, &wanted.login_target()).unwrap();
        let fresh = (None, std::time::Duration::ZERO);
        let found = self.all.chart_version(&wanted, ("", "team"), &credentials, fresh, soon()).await;
        let chart = match found {
            Ok(found) => {
                self.all.chart(&wanted.at(&found).unwrap(), ("", "team"), &credentials, soon()).await
            }
            Err(error) => return error.reason().to_owned(),
        };
        match chart {
            Ok(chart) => String::from_utf8(chart.files.read("templates/map.yaml").unwrap().to_vec()).unwrap(),
            Err(error) => error.reason().to_owned(),
        }
    }
}

fn start(root: &tempfile::TempDir, authority: &Arc<Authority>) -> ArtifactRegistry {
    ArtifactRegistry::start_with(root.path(), authority.clone(), false)
}

fn ca(authority: &Authority) -> (&'static str, String) {
    ("ca.crt", authority.pem.clone())
}

fn login() -> [(&'static str, String); 2] {
    [("username", LOGIN.0.to_owned()), ("password", LOGIN.1.to_owned())]
}

fn both(value: &str) -> [String; 2] {
    [value.to_owned(), value.to_owned()]
}

#[tokio::test]
async fn a_registry_is_trusted_by_its_authority_and_trusts_a_client_certificate() {
    let (root, authority, other) =
        (tempfile::tempdir().unwrap(), Arc::new(Authority::new()), Authority::new());
    let open = start(&root, &authority);
    fill(&open, "", "value");
    let untrusted = both("RepositoryUntrusted");
    assert_eq!(Reader::new(None).read(&open, &[ca(&authority)]).await, both("value"));
    assert_eq!(Reader::new(None).read(&open, &[ca(&other)]).await, untrusted);

    let closed = ArtifactRegistry::start_with(root.path(), authority.clone(), true);
    fill(&closed, "", "value");
    let pair = |of: &Authority| {
        let (certificate, key) = of.issue("client");
        [("tls.crt", certificate.pem()), ("tls.key", key.serialize_pem())]
    };
    let with = |of: &Authority| [&pair(of)[..], &[ca(&authority)]].concat();
    assert_eq!(Reader::new(None).read(&closed, &with(&authority)).await, both("value"));
    for keys in [vec![ca(&authority)], with(&other)] {
        for reason in Reader::new(None).read(&closed, &keys).await {
            assert!(["RepositoryUntrusted", "RepositoryUnreachable"].contains(&&*reason), "{reason}");
        }
    }
    // A certificate and a login.
    closed.login(RegistryLogin::Bearer);
    let keys = [with(&authority), login().to_vec()].concat();
    assert_eq!(Reader::new(None).read(&closed, &keys).await, both("value"));
}

#[tokio::test]
async fn a_registry_is_reached_through_the_proxy() {
    let (root, authority) = (tempfile::tempdir().unwrap(), Arc::new(Authority::new()));
    let registry = start(&root, &authority);
    fill(&registry, "", "value");
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://me:word@127.0.0.1:{}", listener.local_addr().unwrap().port());
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = heads.clone();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| tunnel(stream, &log)));
    let proxied = Reader::new(Some(Proxy::new(&url, &[]).unwrap()));
    assert_eq!(proxied.artifact(&registry, &[ca(&authority)], "1.0.0").await, "value");
    let tunnels = |log: &Mutex<Vec<String>>| std::mem::take(&mut *log.lock().unwrap());
    let expect = format!("CONNECT {} ", registry.host());
    assert!(tunnels(&heads).iter().all(|head| head.starts_with(&expect)));
    assert_eq!(proxied.chart(&registry, &[ca(&authority)], "1.0.0").await, "value");
    let asked = tunnels(&heads);
    assert!(!asked.is_empty() && asked.iter().all(|head| head.starts_with(&expect)), "{asked:?}");
    let direct = Reader::new(Some(Proxy::new(&url, &["localhost"]).unwrap()));
    assert_eq!(direct.read(&registry, &[ca(&authority)]).await, both("value"));
    assert!(tunnels(&heads).is_empty());
}

#[tokio::test]
async fn mirrors_are_asked_first_in_order_and_without_the_login() {
    let (root, authority) = (tempfile::tempdir().unwrap(), Arc::new(Authority::new()));
    let (registry, empty, mirror) =
        (start(&root, &authority), start(&root, &authority), start(&root, &authority));
    fill(&registry, "", "value");
    fill(&mirror, "hub/", "value");
    registry.login(RegistryLogin::Bearer);
    mirror.login(RegistryLogin::Anonymous);
    let listed = [empty.host(), format!("{}/hub", mirror.host())];
    let keys = [&login()[..], &[ca(&authority)]].concat();
    for version in ["1.0.0", "*"] {
        let reader = Reader::with_mirrors(&registry, &listed);
        assert_eq!(reader.artifact(&registry, &keys, version).await, "value");
        assert_eq!(reader.chart(&registry, &keys, version).await, "value");
        assert_eq!(registry.requests(), [""; 0], "the registry is not asked");
        let asked = empty.requests();
        assert!(asked.iter().any(|one| one == "HEAD shop/manifests/1.0.0"), "{asked:?}");
        let sent = mirror.server.requests();
        assert!(sent.iter().any(|one| one.path.starts_with("/v2/hub/charts/web/blobs/")));
        for request in sent {
            let given = request.header("authorization").unwrap_or("none");
            assert!(["none", "Bearer token-of-a-test"].contains(&given), "{request:?}");
        }
        // An unchanged tag is one look at each mirror, beside the token of a client that begins.
        assert_eq!(reader.artifact(&registry, &keys, "1.0.0").await, "value");
        assert_eq!(empty.requests(), ["HEAD shop/manifests/1.0.0"]);
        let looks = ["HEAD hub/shop/manifests/1.0.0", "GET /token", "HEAD hub/shop/manifests/1.0.0"];
        assert_eq!(mirror.requests(), looks);
    }
}

#[tokio::test]
async fn a_mirror_that_fails_or_lies_is_passed_over() {
    let (root, authority) = (tempfile::tempdir().unwrap(), Arc::new(Authority::new()));
    let (registry, mirror) = (start(&root, &authority), start(&root, &authority));
    fill(&registry, "", "value");
    fill(&mirror, "", "value");
    let keys = [ca(&authority)];
    for fault in [
        RegistryFault::OtherManifest,
        RegistryFault::OtherLayer,
        RegistryFault::LongLayer,
        RegistryFault::ShortLayer,
        RegistryFault::RedirectLoop,
        RegistryFault::ChallengeLoop,
        RegistryFault::RedirectLayers("http://169.254.169.254/".to_owned()),
    ] {
        mirror.fault(fault.clone());
        let reader = Reader::with_mirrors(&registry, &[mirror.host()]);
        assert_eq!(reader.read(&registry, &keys).await, both("value"), "{fault:?}");
        assert!(!registry.requests().is_empty() && !mirror.requests().is_empty(), "{fault:?}");
    }
    // Nobody is there, the host is not allowed, and a mirror of another registry.
    let gone = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let reader = Reader::with_mirrors(&registry, &[format!("localhost:{gone}")]);
    assert_eq!(reader.read(&registry, &keys).await, both("value"));
    mirror.fault(RegistryFault::None);
    mirror.requests();
    let reader = Reader::with_mirrors(&mirror, &[format!("localhost:{gone}")]);
    assert_eq!(reader.read(&registry, &keys).await, both("value"));
    assert_eq!(mirror.requests(), [""; 0]);
    // The error is the one of the registry.
    mirror.fault(RegistryFault::RedirectLoop);
    registry.login(RegistryLogin::Bearer);
    let reader = Reader::with_mirrors(&registry, &[mirror.host()]);
    assert_eq!(reader.read(&registry, &keys).await, both("RepositoryAccessDenied"));
}

#[tokio::test]
async fn a_mirror_may_say_which_digest_a_tag_has_and_never_what_a_digest_is() {
    let (root, authority) = (tempfile::tempdir().unwrap(), Arc::new(Authority::new()));
    let (registry, mirror) = (start(&root, &authority), start(&root, &authority));
    fill(&registry, "", "new");
    fill(&mirror, "", "old");
    let reader = Reader::with_mirrors(&registry, &[mirror.host()]);
    assert_eq!(reader.read(&registry, &[ca(&authority)]).await, both("old"));
    // A digest that only the registry has comes from there.
    let address = RegistryAddress::new(&registry.url("shop"), LayerSelection::default()).unwrap().into();
    let pem = authority.pem.as_str();
    let credentials = Credentials::for_source([("ca.crt", pem)], &address).unwrap();
    let repository = reader.all.repository(&address, "", &credentials).unwrap();
    let digest = registry.push("shop", "2.0.0", &[text("a.yaml", "newest")]);
    let wanted = moorline_git::ArtifactReference::Digest(Digest::parse(&digest).unwrap());
    let revision = repository.resolve(&moorline_git::Reference::Artifact(wanted), soon()).await.unwrap();
    let snapshot = repository.read(&revision, &[""], soon()).await.unwrap();
    assert_eq!(&*snapshot.files.read("a.yaml").unwrap(), b"newest");
}

#[tokio::test]
async fn a_signature_is_searched_at_the_mirrors_and_at_the_registry() {
    let signer = ArtifactSigner::new();
    let keys = TrustedKeys::of_artifacts([("signer.pub", signer.pem().as_bytes())]).map(Arc::new).unwrap();
    // Signed at the mirror, at the registry, and nowhere.
    for (at_mirror, at_registry, expect) in
        [(true, false, None), (false, true, None), (false, false, Some("SignatureMissing"))]
    {
        let (root, authority) = (tempfile::tempdir().unwrap(), Arc::new(Authority::new()));
        let (registry, mirror) = (start(&root, &authority), start(&root, &authority));
        for (place, is_signed) in [(&mirror, at_mirror), (&registry, at_registry)] {
            let digest = place.push("shop", "1.0.0", &[text("a.yaml", "value")]);
            if is_signed {
                signer.sign_by_tag(place, "shop", &digest);
            }
        }
        let reader = Reader::with_mirrors(&registry, &[mirror.host()]);
        let address = RegistryAddress::new(&registry.url("shop"), LayerSelection::default()).unwrap().into();
        let credentials = Credentials::for_source([("ca.crt", &authority.pem)], &address).unwrap();
        let repository = reader.all.repository(&address, "", &credentials).unwrap();
        let revision = repository.resolve(&tag("1.0.0"), soon()).await.unwrap();
        let found = repository.verify(&revision, SignaturePolicy::Artifact, &keys, soon()).await;
        assert_eq!(found.as_ref().err().map(moorline_git::Error::reason), expect, "{found:?}");
        assert_eq!(registry.requests().is_empty(), at_mirror);
    }
}
