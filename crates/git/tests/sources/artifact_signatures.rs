//! Signatures of artifacts, as cosign and the libraries of Sigstore made them (the vectors of the
//! crate cosign), served by a registry.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use moorline_git::{Error, HostPolicy, Repositories, Repository, SignaturePolicy, TrustedKeys};
use moorline_test_support::artifact_signer::ArtifactSigner;
use moorline_test_support::git_server::Reply;
use serde_json::Value;

use crate::artifacts::{Ground, tag};
use moorline_test_support::git_bench::soon;

/// A recorded artifact: what the registry serves below the repository, and those who are trusted.
struct Recorded {
    name: String,
    artifact: String,
    served: BTreeMap<String, Vec<u8>>,
    keys: Arc<TrustedKeys>,
}

fn recorded() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cosign/tests/vectors");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 37, "{} vectors", files.len());
    let read = |file: std::path::PathBuf| {
        let vector: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let text = |pointer: &str| vector.pointer(pointer).and_then(Value::as_str);
        let artifact = text("/artifact").unwrap().to_owned();
        let all = vector["registry"].as_object().unwrap().iter();
        let mut served: BTreeMap<_, _> =
            all.map(|(path, body)| (path.clone(), body.as_str().unwrap().as_bytes().to_vec())).collect();
        if let Some(manifest) = text("/manifest") {
            served.insert(format!("manifests/{artifact}"), manifest.as_bytes().to_vec());
        }
        let keys = match text("/policy/keys/0") {
            Some(key) => TrustedKeys::of_artifacts([("signer.pub", key.as_bytes())]),
            None => {
                let identity = (text("/policy/issuer").unwrap(), text("/policy/subject").unwrap());
                TrustedKeys::of_identities([identity], vector["policy"]["trustedRoot"].to_string().as_bytes())
            }
        };
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        Recorded { name, artifact, served, keys: Arc::new(keys.unwrap()) }
    };
    files.into_iter().map(read).collect()
}

/// Serves an artifact; the registry answers everything else, also the HEAD of the tag, with 404.
fn serve(ground: &Ground, one: &Recorded) {
    let (served, artifact) = (one.served.clone(), one.artifact.clone());
    ground.registry.server.rule(move |request| {
        let path = request.path.trim_start_matches("/v2/shop/");
        if request.method == "HEAD" && path == "manifests/v1" {
            let headers: &'static str = format!("Docker-Content-Digest: {artifact}\r\n").leak();
            return Reply::Raw(200, headers, Vec::new());
        }
        served
            .get(path)
            .map_or(Reply::Raw(404, "", b"planted".to_vec()), |body| Reply::Raw(200, "", body.clone()))
    });
}

async fn verify(repository: &Repository, keys: &Arc<TrustedKeys>) -> Result<(), Error> {
    let revision = repository.resolve(&tag("v1"), soon()).await.unwrap();
    repository.verify(&revision, SignaturePolicy::Artifact, keys, soon()).await
}

#[tokio::test]
async fn what_cosign_signed_is_accepted_and_what_was_made_wrong_is_refused_by_its_reason() {
    let refusals = [
        ("refused-attestation", "it is an attestation of type"),
        ("refused-early", "its certificate is valid from"),
        ("refused-expired", "its certificate expired at"),
        ("refused-no-log-entry", "it has no entry in a log"),
        ("refused-no-promise", "its certificate is in no certificate log"),
        ("refused-no-usage", "was not issued by an authority"),
        ("refused-other-artifact", "it was copied from another artifact"),
        ("refused-other-entry", "its log entry is of another"),
        ("refused-other-promise", "its certificate is in no certificate log"),
        ("refused-other-usage", "was not issued by an authority"),
        ("refused-stranger", "it has no entry in a log of the trust root"),
    ];
    let mut accepted = 0;
    for one in recorded() {
        let ground = Ground::new();
        serve(&ground, &one);
        let found = verify(&ground.repository(), &one.keys).await;
        // Cosign makes signatures of Ed25519ph, and does not verify them either.
        let is_prehashed = one.name.starts_with("key-cosign") && one.name.contains("ed25519");
        let part = refusals.iter().find(|(name, _)| *name == one.name).map(|(_, part)| *part);
        assert_eq!(part.is_some(), one.name.starts_with("refused-"), "{}", one.name);
        match (found, part) {
            (Ok(()), None) if !is_prehashed => accepted += 1,
            (Err(error), None) if is_prehashed => assert!(error.is_distrust(), "{error}"),
            (Err(error), Some(part)) => {
                let text = error.to_string();
                assert!(error.is_distrust() && !error.needs_new_input(), "{}: {text}", one.name);
                assert!(text.contains(part), "{}: {text}", one.name);
                assert!(text.starts_with(&format!("artifact {}", one.artifact)), "{text}");
            }
            (found, _) => panic!("{}: {found:?}", one.name),
        }
        let others = TrustedKeys::of_artifacts([("eve.pub", ArtifactSigner::new().pem().as_bytes())]);
        let error = verify(&ground.repository(), &Arc::new(others.unwrap())).await.unwrap_err();
        assert!(error.is_distrust(), "{}: {error}", one.name);
        assert!(!error.to_string().contains("planted"), "{error}");
    }
    assert!(accepted >= 20, "{accepted} are accepted");
}

#[tokio::test]
async fn an_accepted_signature_costs_no_request_again_also_after_a_restart() {
    let ground = Ground::new();
    let one = recorded().into_iter().find(|one| one.name == "key-cosign3-p256").unwrap();
    serve(&ground, &one);
    let credentials = ground.credentials(&[]);
    let requests = |ground: &Ground| ground.registry.requests().len();
    let (repository, address) = (ground.repository(), ground.address(Default::default()));
    verify(&repository, &one.keys).await.unwrap();
    // The HEAD, the list of referrers, a manifest and a bundle.
    assert_eq!(requests(&ground), 4);
    verify(&repository, &one.keys).await.unwrap();
    assert_eq!(requests(&ground), 1, "the HEAD alone");
    let Ground { registry, repositories, root } = ground;
    drop((repository, repositories));
    let hosts = HostPolicy::new("allowedHosts", ["*"]).unwrap().with_loopback();
    let repositories = Repositories::new(&root.path().join("data"), None, hosts).unwrap();
    repositories.remove_unused();
    let repository = repositories.repository(&address, "", &credentials).unwrap();
    verify(&repository, &one.keys).await.unwrap();
    assert_eq!(registry.requests().len(), 1);
    // It is trusted because of its key, and not because it is here.
    let eve = TrustedKeys::of_artifacts([("eve.pub", ArtifactSigner::new().pem().as_bytes())]).unwrap();
    assert_eq!(verify(&repository, &Arc::new(eve)).await.unwrap_err().reason(), "SignerUnknown");
    let nobody = verify(&repository, &Arc::default()).await.unwrap_err();
    assert_eq!(nobody.reason(), "KeysMissing");
    // Another Secret has its own.
    let other = repositories.repository(&address, "team/other", &credentials).unwrap();
    registry.requests();
    verify(&other, &one.keys).await.unwrap();
    assert_eq!(registry.requests().len(), 4);
}

#[tokio::test]
async fn a_registry_that_fails_is_no_refusal_and_an_old_one_is_asked_for_the_tags() {
    let one = recorded().into_iter().find(|one| one.name == "key-cosign2-p256").unwrap();
    for (status, reason) in [
        (400, None),
        (405, None),
        (406, None),
        (500, Some("RepositoryUnavailable")),
        (403, Some("RepositoryAccessDenied")),
    ] {
        let ground = Ground::new();
        serve(&ground, &one);
        let repository = ground.repository();
        let revision = repository.resolve(&tag("v1"), soon()).await.unwrap();
        let served = one.served.clone();
        ground.registry.server.rule(move |request| {
            let path = request.path.trim_start_matches("/v2/shop/");
            match served.get(path) {
                _ if path.starts_with("referrers/") => Reply::Raw(status, "", b"planted".to_vec()),
                Some(body) => Reply::Raw(200, "", body.clone()),
                None => Reply::Raw(404, "", Vec::new()),
            }
        });
        let found = repository.verify(&revision, SignaturePolicy::Artifact, &one.keys, soon()).await;
        assert_eq!(found.as_ref().err().map(Error::reason), reason, "{status}");
    }
}

#[tokio::test]
async fn bytes_without_their_digest_and_documents_without_an_end_are_not_used() {
    let ground = Ground::new();
    let mut one = recorded().into_iter().find(|one| one.name == "key-cosign3-p256").unwrap();
    let bundle = one.served.iter_mut().find(|(path, body)| path.starts_with("blobs/") && body.len() > 2);
    bundle.unwrap().1.push(b' ');
    serve(&ground, &one);
    let error = verify(&ground.repository(), &one.keys).await.unwrap_err();
    assert_eq!(error.reason(), "SignatureInvalid");
    assert!(error.to_string().contains("the registry sent other bytes for sha256:"), "{error}");
    one.served.insert(format!("referrers/{}", one.artifact), vec![b' '; 2 * 1024 * 1024]);
    serve(&ground, &one);
    let error = verify(&ground.repository(), &one.keys).await.unwrap_err();
    assert!(error.to_string().contains("sends more than 1048576 bytes of a signature"), "{error}");
    assert!(!error.is_distrust(), "{error}");
}
