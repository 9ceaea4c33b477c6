//! Artifacts from a registry: what is asked of it, what is believed, and what a hostile one can do.

use moorline_git::{
    Address, ArtifactReference, Credentials, Digest, Error, HostPolicy, LayerSelection, ObjectIds,
    ReadLimits, Reference, RegistryAddress, Repositories, Repository, Revision, TagFilter,
};
use moorline_test_support::artifact_registry::{
    ArtifactRegistry, CONTENT, INDEX, LOGIN, MANIFEST, RegistryFault, RegistryLogin, digest, gzip, tar,
};
use moorline_test_support::git_bench::soon;
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::scene::text;
use serde_json::json;

pub(crate) struct Ground {
    pub(crate) registry: ArtifactRegistry,
    pub(crate) repositories: Repositories,
    pub(crate) root: tempfile::TempDir,
}

pub(crate) fn tag(name: &str) -> Reference {
    Reference::Artifact(ArtifactReference::tag(name).unwrap())
}

pub(crate) fn range(range: &str, filter: Option<&str>) -> Reference {
    let filter = filter.map(|filter| TagFilter::new(filter).unwrap());
    Reference::Artifact(ArtifactReference::Semver(range.parse().unwrap(), filter))
}

impl Ground {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let hosts = HostPolicy::new("allowedHosts", ["*"]).unwrap().with_loopback();
        let repositories = Repositories::new(&root.path().join("data"), None, hosts).unwrap();
        Self { registry: ArtifactRegistry::start(root.path()), repositories, root }
    }

    pub(crate) fn credentials(&self, keys: &[(&str, &str)]) -> Credentials {
        let keys = keys.iter().copied().chain([("ca.crt", self.registry.authority.pem.as_str())]);
        Credentials::for_source(keys, &self.address(LayerSelection::default())).unwrap()
    }

    pub(crate) fn address(&self, layer: LayerSelection) -> Address {
        RegistryAddress::new(&self.registry.url("shop"), layer).unwrap().into()
    }

    pub(crate) fn repository_as(&self, credentials: &Credentials) -> Repository {
        self.repositories.repository(&self.address(LayerSelection::default()), "", credentials).unwrap()
    }

    pub(crate) fn repository(&self) -> Repository {
        self.repository_as(&self.credentials(&[]))
    }

    pub(crate) fn layered(&self, media: Option<&str>, copies: bool) -> Repository {
        let layer = LayerSelection { media_type: media.map(Into::into), copies };
        self.repositories.repository(&self.address(layer), "", &self.credentials(&[])).unwrap()
    }

    /// Returns the files of a revision, as `path=text`.
    pub(crate) async fn files(
        &self,
        repository: &Repository,
        revision: &Revision,
    ) -> Result<Vec<String>, String> {
        let snapshot = repository.read(revision, &[""], soon()).await.map_err(|error| {
            let text = error.to_string();
            assert!(!text.contains("planted"), "{text}");
            format!("{}: {text}", error.reason())
        })?;
        let shown = |(path, entry): (&str, &moorline_core::tree::TreeEntry)| match entry {
            moorline_core::tree::TreeEntry::File(bytes) => {
                format!("{path}={}", String::from_utf8_lossy(bytes))
            }
            other => format!("{path}: {other:?}"),
        };
        Ok(snapshot.files.entries().map(|(path, entry)| shown((path, entry))).collect())
    }

    /// Returns the files of a tag.
    pub(crate) async fn at(&self, name: &str) -> Result<Vec<String>, String> {
        let repository = self.repository();
        let found = repository.resolve(&tag(name), soon()).await;
        self.files(&repository, &found.map_err(|error| format!("{}: {error}", error.reason()))?).await
    }
}

#[tokio::test]
async fn an_artifact_is_read_once_and_an_unchanged_tag_costs_one_head() {
    let ground = Ground::new();
    let digest = ground.registry.push("shop", "v1", &[text("a/b.yaml", "one"), text("c.yaml", "two")]);
    let repository = ground.repository();
    let first = repository.resolve(&tag("v1"), soon()).await.unwrap();
    assert_eq!(first.to_string(), format!("v1@{digest}"));
    assert_eq!(ground.registry.requests(), ["HEAD shop/manifests/v1"]);
    assert_eq!(ground.files(&repository, &first).await.unwrap(), ["a/b.yaml=one", "c.yaml=two"]);
    let asked = ground.registry.requests();
    assert!(
        matches!(&asked[..], [manifest, layer] if *manifest == format!("GET shop/manifests/{digest}")
        && layer.starts_with("GET shop/blobs/sha256:")),
        "{asked:?}"
    );
    // From here on each look is one request, and nothing is read again.
    for _ in 0..3 {
        assert_eq!(repository.resolve(&tag("v1"), soon()).await.unwrap(), first);
        ground.files(&repository, &first).await.unwrap();
    }
    assert_eq!(ground.registry.requests(), ["HEAD shop/manifests/v1"; 3]);
    let summary = repository.commit_summary(&first, soon()).await.unwrap();
    assert_eq!(summary.subject, "claims to be main@sha1:0123456789 of https://git.example.com/shop.git");
}

#[tokio::test]
async fn a_moved_tag_is_another_revision_that_shares_what_is_equal() {
    let ground = Ground::new();
    let files = |value: &str| [text("a/same.yaml", "same"), text("b/other.yaml", value)];
    ground.registry.push("shop", "v1", &files("one"));
    let repository = ground.repository();
    let first = repository.resolve(&tag("v1"), soon()).await.unwrap();
    let limits = ReadLimits::default();
    let read = async |revision: &Revision, earlier: &ObjectIds| {
        repository.read_changed(revision, (&["a"], &[]), earlier, &limits, soon()).await.unwrap().snapshot
    };
    let snapshot = read(&first, &ObjectIds::new()).await.unwrap();
    ground.registry.push("shop", "v1", &files("two"));
    let second = repository.resolve(&tag("v1"), soon()).await.unwrap();
    assert_ne!(second.commit, first.commit);
    assert!(read(&second, &snapshot.ids).await.is_none(), "the folder is the same");
    // The previous revision can be read without the registry.
    ground.registry.requests();
    assert_eq!(ground.files(&repository, &first).await.unwrap()[1], "b/other.yaml=one");
    assert_eq!(ground.files(&repository, &second).await.unwrap()[1], "b/other.yaml=two");
    assert_eq!(ground.registry.requests(), [""; 0]);
    // So it can after a restart, and its text is all that is needed.
    drop(repository);
    let parsed = Revision::parse(&first.to_string(), None, &tag("v1")).unwrap();
    assert_eq!(parsed, first);
    assert_eq!(ground.files(&ground.repository(), &parsed).await.unwrap()[1], "b/other.yaml=one");
    assert_eq!(ground.registry.requests(), [""; 0]);
    // A mirror that was removed is filled again by the digest.
    let data = ground.root.path().join("data");
    for entry in std::fs::read_dir(data).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        std::fs::remove_dir_all(entry.path()).unwrap();
    }
    assert_eq!(ground.files(&ground.repository(), &first).await.unwrap()[1], "b/other.yaml=one");
}

#[tokio::test]
async fn the_highest_version_is_found_over_all_pages() {
    let ground = Ground::new();
    ground.registry.page(2);
    for version in ["1.0.0", "1.9.0", "1.10.0", "1.11.0-rc.1", "2.0.0", "latest", "nightly"] {
        ground.registry.push("shop", version, &[text("a.yaml", version)]);
    }
    let repository = ground.repository();
    for (reference, expect) in [
        (range("1.x", None), "1.10.0@"),
        (range(">=1.0.0-0", Some("-rc[.]")), "1.11.0-rc.1@"),
        (range("*", None), "2.0.0@"),
    ] {
        let found = repository.resolve(&reference, soon()).await.unwrap().to_string();
        assert!(found.starts_with(expect), "{reference}: {found}");
    }
    let none = repository.resolve(&range(">=3", None), soon()).await.unwrap_err();
    assert_eq!(none.reason(), "ReferenceNotFound");
    ground.registry.fault(RegistryFault::EndlessTags);
    let endless = repository.resolve(&range("1.x", None), soon()).await.unwrap_err();
    assert!(endless.to_string().contains("more tags than are read"), "{endless}");
    assert!(ground.registry.requests().len() < 120);
}

#[tokio::test]
async fn a_digest_is_read_without_a_look() {
    let ground = Ground::new();
    let pushed = ground.registry.push("shop", "v1", &[text("a.yaml", "one")]);
    let repository = ground.repository();
    let reference = Reference::Artifact(ArtifactReference::Digest(Digest::parse(&pushed).unwrap()));
    let revision = repository.resolve(&reference, soon()).await.unwrap();
    assert_eq!((revision.to_string(), ground.registry.requests()), (pushed, Vec::new()));
    assert_eq!(ground.files(&repository, &revision).await.unwrap(), ["a.yaml=one"]);
}

#[tokio::test]
async fn a_login_is_answered_to_a_challenge_and_kept() {
    let ground = Ground::new();
    ground.registry.push("shop", "v1", &[text("a.yaml", "one")]);
    let logins = json!({"auths": {ground.registry.host(): {"username": LOGIN.0, "password": LOGIN.1}}});
    let docker = logins.to_string();
    let basic = [("username", LOGIN.0), ("password", LOGIN.1)];
    let secrets: [&[(&str, &str)]; 2] = [&[(".dockerconfigjson", &docker)], &basic];
    for login in [RegistryLogin::Basic, RegistryLogin::Bearer] {
        for secret in secrets {
            ground.registry.login(login);
            let repository = ground
                .repositories
                .repository(
                    &ground.address(LayerSelection::default()),
                    &format!("{login:?}{secret:?}"),
                    &ground.credentials(secret),
                )
                .unwrap();
            ground.registry.requests();
            for _ in 0..3 {
                let revision = repository.resolve(&tag("v1"), soon()).await.unwrap();
                assert_eq!(ground.files(&repository, &revision).await.unwrap(), ["a.yaml=one"]);
            }
            let asked = ground.registry.requests();
            let heads = asked.iter().filter(|one| one.starts_with("HEAD")).count();
            let tokens = asked.iter().filter(|one| one.contains("token")).count();
            assert_eq!((heads, tokens), (4, usize::from(login == RegistryLogin::Bearer)), "{asked:?}");
        }
    }
    ground.registry.login(RegistryLogin::Anonymous);
    let anonymous = ground.repository().resolve(&tag("v1"), soon()).await;
    assert!(anonymous.is_ok(), "{anonymous:?}");
    ground.registry.login(RegistryLogin::Basic);
    let wrong = ground.credentials(&[("username", "me"), ("password", "wrong")]);
    for credentials in [ground.credentials(&[]), wrong] {
        let refused = ground.repository_as(&credentials).resolve(&tag("v1"), soon()).await.unwrap_err();
        assert!(matches!(refused, Error::Denied { status: 401, .. }), "{refused}");
    }
}

#[tokio::test]
async fn what_a_registry_says_is_not_believed() {
    let ground = Ground::new();
    ground.registry.push("shop", "v1", &[text("a.yaml", "one")]);
    for (fault, part) in [
        (RegistryFault::OtherManifest, "ArtifactDigestDiffers: the registry https://localhost"),
        (RegistryFault::OtherLayer, "sends a layer of the digest sha256:"),
        (RegistryFault::LongLayer, "sends a layer of more bytes"),
        (RegistryFault::ShortLayer, "sends a layer of"),
        (RegistryFault::ChallengeLoop, "RepositoryAccessDenied"),
        (RegistryFault::RedirectLoop, "redirects again and again"),
        (RegistryFault::StrangeDigest, "announces a digest that is no SHA-256"),
        (RegistryFault::RedirectLayers("http://localhost:1/x".into()), "redirects from https to http"),
        (RegistryFault::RedirectLayers("https://169.254.169.254/x".into()), "HostNotAllowed"),
    ] {
        ground.registry.fault(fault.clone());
        let refused = ground.at("v1").await.unwrap_err();
        assert!(refused.contains(part), "{fault:?}: {refused}");
    }
    assert!(ground.registry.requests().len() < 60, "loops end");
    // A registry without the announcement, or without HEAD, is asked for the manifest.
    for fault in [RegistryFault::NoDigest, RegistryFault::NoHead, RegistryFault::None] {
        ground.registry.fault(fault.clone());
        assert_eq!(ground.at("v1").await.unwrap(), ["a.yaml=one"], "{fault:?}");
    }
    let missing = ground.at("v2").await.unwrap_err();
    assert!(missing.contains("has no tag v2 in the repository shop"), "{missing}");
}

#[tokio::test]
async fn a_login_goes_to_the_registry_and_not_along_with_a_redirect() {
    let ground = Ground::new();
    ground.registry.push("shop", "v1", &[text("a.yaml", "one")]);
    let root = tempfile::tempdir().unwrap();
    let other = ArtifactRegistry::start(root.path());
    let basic = ground.credentials(&[("username", LOGIN.0), ("password", LOGIN.1)]);
    ground.registry.login(RegistryLogin::Basic);
    let layer = format!("https://localhost:{}/v2/shop/blobs/x", other.server.port);
    ground.registry.fault(RegistryFault::RedirectLayers(layer));
    let repository = ground.repository_as(&basic);
    let revision = repository.resolve(&tag("v1"), soon()).await.unwrap();
    // The other server shows a certificate of another authority.
    assert!(ground.files(&repository, &revision).await.unwrap_err().contains("RepositoryUntrusted"));
    // A server that is trusted gets the request for the layer, and no login with it.
    let trusted = GitServer::start_with(root.path(), Some(ground.registry.authority.server(None)));
    trusted.rule(|_| Reply::Raw(404, "", Vec::new()));
    let layer = format!("https://localhost:{}/layer", trusted.port);
    ground.registry.fault(RegistryFault::RedirectLayers(layer));
    ground.files(&repository, &revision).await.unwrap_err();
    let asked = trusted.requests();
    assert!(asked.len() == 1 && asked[0].header("authorization").is_none(), "{asked:?}");
    let plain = GitServer::start(root.path());
    plain.rule(|_| Reply::Raw(200, "", b"{\"token\": \"x\"}".to_vec()));
    ground.registry.login(RegistryLogin::Bearer);
    ground.registry.fault(RegistryFault::Realm(format!("http://localhost:{}/token", plain.port)));
    let refused = ground.repository_as(&basic).resolve(&tag("v1"), soon()).await.unwrap_err();
    assert!(refused.to_string().contains("tokens on a server without https"), "{refused}");
    assert!(plain.requests().is_empty());
}

#[tokio::test]
async fn a_list_of_manifests_is_followed_once() {
    let ground = Ground::new();
    let layer = gzip(&tar(&[("a.yaml", b'0', b"one")]));
    let inner = ground.registry.layer("shop", "inner", CONTENT, &layer);
    let entry = |digest: &str, cpu: &str| json!({"mediaType": MANIFEST, "digest": digest, "size": 1, "platform": {"os": "linux", "architecture": cpu}});
    let list =
        |entries: &[serde_json::Value]| json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
    let outer = list(&[entry(&digest(b"none"), "arm64"), entry(&inner, "amd64")]);
    let outer = ground.registry.manifest("shop", "v1", INDEX, &outer);
    let found = ground.repository().resolve(&tag("v1"), soon()).await.unwrap();
    assert_eq!(found.to_string(), format!("v1@{outer}"));
    assert_eq!(ground.at("v1").await.unwrap(), ["a.yaml=one"]);
    ground.registry.manifest("shop", "nested", INDEX, &list(&[entry(&outer, "amd64")]));
    assert!(ground.at("nested").await.unwrap_err().contains("leads to another list"));
    ground.registry.manifest("shop", "empty", INDEX, &list(&[]));
    assert!(ground.at("empty").await.unwrap_err().contains("ArtifactUnreadable"));
    // No list can name its own digest; a registry that serves itself for another one is found out.
    let own = ground.registry.manifest("shop", "own", INDEX, &list(&[entry(&digest(b"own"), "amd64")]));
    ground.registry.tag("shop", &digest(b"own"), &own);
    assert!(ground.at("own").await.unwrap_err().contains("ArtifactDigestDiffers"));
}
