//! Artifacts from a registry: what is asked of it, what is believed, and what a hostile one can do.

use std::time::{Duration, Instant};

use moorline_git::{
    Address, ArtifactReference, Credentials, Digest, Error, HostPolicy, LayerSelection, Memory, ObjectIds,
    ReadLimits, Reference, RegistryAddress, Repositories, Repository, Revision, TagFilter,
};
use moorline_test_support::artifact_registry::{
    ArtifactRegistry, CONTENT, INDEX, LOGIN, MANIFEST, RegistryFault, RegistryLogin, digest, gzip, one_layer,
    tar,
};
use moorline_test_support::scene::text;
use serde_json::json;

struct Ground {
    registry: ArtifactRegistry,
    repositories: Repositories,
    root: tempfile::TempDir,
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn tag(name: &str) -> Reference {
    Reference::Artifact(ArtifactReference::tag(name).unwrap())
}

fn range(range: &str, filter: Option<&str>) -> Reference {
    let filter = filter.map(|filter| TagFilter::new(filter).unwrap());
    Reference::Artifact(ArtifactReference::Semver(range.parse().unwrap(), filter))
}

impl Ground {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let hosts = HostPolicy::new("allowedHosts", ["*"]).unwrap().with_loopback();
        let repositories = Repositories::new(&root.path().join("data"), None, hosts).unwrap();
        Self { registry: ArtifactRegistry::start(root.path()), repositories, root }
    }

    fn credentials(&self, keys: &[(&str, &str)]) -> Credentials {
        let keys = keys.iter().copied().chain([("ca.crt", self.registry.authority.pem.as_str())]);
        Credentials::for_source(keys, &self.address(LayerSelection::default())).unwrap()
    }

    fn address(&self, layer: LayerSelection) -> Address {
        RegistryAddress::new(&self.registry.url("shop"), layer).unwrap().into()
    }

    fn repository_as(&self, credentials: &Credentials) -> Repository {
        self.repositories.repository(&self.address(LayerSelection::default()), "", credentials).unwrap()
    }

    fn repository(&self) -> Repository {
        self.repository_as(&self.credentials(&[]))
    }

    fn layered(&self, media: Option<&str>, copies: bool) -> Repository {
        let layer = LayerSelection { media_type: media.map(Into::into), copies };
        self.repositories.repository(&self.address(layer), "", &self.credentials(&[])).unwrap()
    }

    /// Returns the files of a revision, as `path=text`.
    async fn files(&self, repository: &Repository, revision: &Revision) -> Result<Vec<String>, String> {
        let snapshot = repository.read(revision, &[""], soon()).await.map_err(|error| {
            let text = error.to_string();
            assert!(!text.contains("planted"), "{text}");
            format!("{}: {text}", error.reason())
        })?;
        let shown = |(path, entry): (&str, _)| match entry {
            &moorline_core::tree::TreeEntry::File(ref bytes) => {
                format!("{path}={}", String::from_utf8_lossy(bytes))
            }
            other => format!("{path}: {other:?}"),
        };
        Ok(snapshot.files.entries().map(|(path, entry)| shown((path, entry))).collect())
    }

    /// Returns the files of a tag.
    async fn at(&self, name: &str) -> Result<Vec<String>, String> {
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
    // The revision of before can be read without the registry.
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
    let plain = moorline_test_support::git_server::GitServer::start(root.path());
    plain.rule(|_| moorline_test_support::git_server::Reply::Raw(200, "", b"{\"token\": \"x\"}".to_vec()));
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

#[tokio::test]
async fn a_layer_is_an_archive_or_one_file() {
    let ground = Ground::new();
    let archive = tar(&[("./sub/", b'5', b""), ("./sub/a.yaml", b'0', b"one")]);
    ground.registry.layer("shop", "gzip", "application/vnd.oci.image.layer.v1.tar+gzip", &gzip(&archive));
    ground.registry.layer("shop", "tar", "application/vnd.oci.image.layer.v1.tar", &archive);
    ground.registry.layer("shop", "lies", "text/yaml", &gzip(&archive));
    for name in ["gzip", "tar", "lies"] {
        assert_eq!(ground.at(name).await.unwrap(), ["sub/a.yaml=one"], "{name}");
    }
    let file = b"kind: ConfigMap";
    ground.registry.blob(file);
    let mut titled = one_layer("text/yaml", file);
    titled["layers"][0]["annotations"] = json!({"org.opencontainers.image.title": "deploy.yaml"});
    ground.registry.manifest("shop", "file", MANIFEST, &titled);
    assert_eq!(ground.at("file").await.unwrap(), ["deploy.yaml=kind: ConfigMap"]);
    ground.registry.layer("shop", "untitled", "application/json", b"{}");
    assert_eq!(ground.at("untitled").await.unwrap(), ["layer.json={}"]);
    // The same tag, read in two ways.
    let copied = ground.layered(None, true);
    let revision = copied.resolve(&tag("tar"), soon()).await.unwrap();
    let files = ground.files(&copied, &revision).await.unwrap();
    assert!(files.len() == 1 && files[0].starts_with("layer.yaml="), "{files:?}");
    // Two layers: a person chooses.
    let mut two = one_layer(CONTENT, &gzip(&archive));
    two["layers"] = json!([one_layer("a/b", file)["layers"][0], one_layer("c/d", b"{}")["layers"][0]]);
    ground.registry.manifest("shop", "two", MANIFEST, &two);
    assert!(ground.at("two").await.unwrap_err().contains("choose one by layer.mediaType: a/b, c/d"));
    let chosen = ground.layered(Some("a/b"), false);
    let revision = chosen.resolve(&tag("two"), soon()).await.unwrap();
    assert_eq!(ground.files(&chosen, &revision).await.unwrap(), ["layer.yaml=kind: ConfigMap"]);
}

#[tokio::test]
async fn a_hostile_archive_is_refused_by_name_and_leaves_nothing() {
    let ground = Ground::new();
    let zeros = vec![b' '; 8 << 20];
    let many: Vec<_> = (0..4).map(|at| format!("{at}.yaml")).collect();
    let bomb: Vec<_> = many.iter().map(|path| (path.as_str(), b'0', zeros.as_slice())).collect();
    let table: [(&str, Vec<(&str, u8, &[u8])>); 7] = [
        ("has the link a.yaml", vec![("a.yaml", b'2', b"")]),
        ("leads elsewhere", vec![("../a.yaml", b'0', b"one")]),
        ("leads elsewhere", vec![("/a.yaml", b'0', b"one")]),
        ("which is no file", vec![("a.yaml", b'3', b"")]),
        ("has a.yaml twice", vec![("a.yaml", b'0', b"one"), ("a.yaml", b'0', b"two")]),
        ("where a folder of a/b is", vec![("a", b'0', b"one"), ("a/b", b'0', b"two")]),
        ("unpacks to more", bomb),
    ];
    for (number, (part, entries)) in table.iter().enumerate() {
        let name = format!("t{number}");
        ground.registry.layer("shop", &name, CONTENT, &gzip(&tar(entries)));
        let refused = ground.at(&name).await.unwrap_err();
        assert!(refused.starts_with("ArtifactArchiveInvalid") && refused.contains(part), "{part}: {refused}");
    }
    ground.registry.layer("shop", "v1", CONTENT, &gzip(b"no archive at all"));
    let repository = ground.repository();
    let revision = repository.resolve(&tag("v1"), soon()).await.unwrap();
    ground.registry.requests();
    for asked in [2, 0, 0] {
        let refused = ground.files(&repository, &revision).await.unwrap_err();
        assert!(refused.contains("ArtifactArchiveInvalid"), "{refused}");
        assert_eq!(ground.registry.requests().len(), asked, "it is fetched once");
    }
    ground.registry.push("shop", "good", &[text("a.yaml", "one")]);
    assert_eq!(ground.at("good").await.unwrap(), ["a.yaml=one"]);
    let rest = walk(&ground.root.path().join("data"));
    assert!(!rest.iter().any(|path| path.ends_with("unfinished")), "{rest:?}");
}

fn walk(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries
        .flat_map(|entry| match entry.path().is_dir() {
            true => walk(&entry.path()),
            false => vec![entry.path().display().to_string()],
        })
        .collect()
}

/// The smallest daemon has 9 MiB for packs: what is fetched is not held in memory.
#[tokio::test]
async fn ten_thousand_files_are_fetched_with_little_memory() {
    let ground = Ground::new();
    let memory = Memory::new(Some(64 << 20));
    let hosts = HostPolicy::new("allowedHosts", ["*"]).unwrap().with_loopback();
    let data = ground.root.path().join("small");
    let repositories = Repositories::with_limits(&data, None, hosts, (memory, 1 << 30)).unwrap();
    let mut number = 1_u64;
    let mut line = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{number:016x}")
    };
    let files: Vec<(String, String)> = (0..10_000)
        .map(|at| text(&format!("{}/{at}.yaml", at % 100), &(0..312).map(|_| line()).collect::<String>()))
        .collect();
    assert!(files.iter().map(|(_, text)| text.len()).sum::<usize>() > 49_000_000);
    ground.registry.push("shop", "v1", &files);
    let address = ground.address(LayerSelection::default());
    let repository = repositories.repository(&address, "", &ground.credentials(&[])).unwrap();
    let by = Instant::now() + Duration::from_secs(120);
    let revision = repository.resolve(&tag("v1"), by).await.unwrap();
    let begun = Instant::now();
    let bytes = repository.fetch(&revision, by).await.unwrap();
    println!("{bytes} bytes fetched in {:?}", begun.elapsed());
    let snapshot = repository.read(&revision, &["7"], by).await.unwrap();
    assert_eq!(snapshot.files.entries().count(), 100);
}
