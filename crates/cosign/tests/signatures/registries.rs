//! Registries: where signatures are looked for, and what a registry may not do.

use std::collections::BTreeMap;

use moorline_cosign::{Artifact, MAX_DOCUMENT_BYTES, MAX_SIGNATURES, Policy, Request, SearchError, search};
use serde_json::json;

use crate::vectors::{Vector, search_in, vector};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Returns the kinds of requests that a search makes.
fn kinds(vector: &Vector, registry: &BTreeMap<String, Vec<u8>>) -> (bool, Vec<String>) {
    let (found, asked) = search_in(registry, &vector.artifact(), &vector.policy(), vector.now());
    let kind = |path: &String| match path {
        path if path.ends_with(".sig") => ".sig".to_owned(),
        path if path.starts_with("manifests/sha256-") => "tag".to_owned(),
        path => path.split('/').next().unwrap().to_owned(),
    };
    (found.is_ok(), asked.iter().map(kind).collect())
}

#[test]
fn a_search_asks_in_the_order_of_cosign_and_no_more_than_needed() {
    let check = |name: &str, expect: &[&str]| {
        let vector = vector(name);
        let (found, asked) = kinds(&vector, &vector.registry());
        assert!(found, "{name}");
        assert_eq!(asked, expect, "{name}");
    };
    check("key-cosign3-p256", &["referrers", "manifests", "blobs"]);
    check("key-cosign3-p256-tag", &["referrers", "tag", "manifests", "blobs"]);
    check("key-cosign3-p256-v2", &["referrers", ".sig", "blobs"]);
    check("key-cosign2-p256", &["referrers", ".sig", "blobs"]);
    check("keyless-dsse", &["referrers", "manifests", "blobs"]);
}

#[test]
fn a_registry_without_signatures_is_asked_three_times() {
    let vector = vector("keyless-dsse");
    let (found, asked) = search_in(&BTreeMap::new(), &vector.artifact(), &vector.policy(), vector.now());
    let digest = vector.artifact().digest().to_owned();
    let tag = digest.replace(':', "-");
    assert_eq!(
        asked,
        [format!("referrers/{digest}"), format!("manifests/{tag}"), format!("manifests/{tag}.sig")]
    );
    assert_eq!(found.unwrap_err(), format!("{digest} is not signed: no signature was found"));
}

#[test]
fn a_signature_of_version_2_counts_beside_a_refused_bundle() {
    let (bundle, old) = (vector("refused-attestation"), vector("keyless-v2"));
    assert_eq!(bundle.artifact().digest(), old.artifact().digest());
    let mut registry = bundle.registry();
    registry.extend(old.registry());
    let (found, asked) = kinds(&old, &registry);
    assert!(found);
    assert_eq!(asked, ["referrers", "manifests", "blobs", ".sig", "blobs"]);
}

#[test]
fn bytes_with_another_digest_are_refused() {
    for kind in ["blobs/", "manifests/"] {
        let vector = vector("keyless-dsse");
        let mut registry = vector.registry();
        let body = registry.iter_mut().find(|(path, _)| path.starts_with(kind)).unwrap().1;
        body.push(b' ');
        let found = search_in(&registry, &vector.artifact(), &vector.policy(), vector.now()).0;
        let message = found.unwrap_err();
        assert!(message.contains("the registry sent other bytes for sha256:"), "{message}");
        registry.retain(|path, _| !path.starts_with(kind));
        let found = search_in(&registry, &vector.artifact(), &vector.policy(), vector.now()).0;
        let message = found.unwrap_err();
        assert!(message.contains("the registry does not have sha256:"), "{message}");
    }
}

/// Returns the SHA-256 of bytes in hex digits.
fn hex(bytes: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, bytes);
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn serve(pages: &[(&str, serde_json::Value)]) -> BTreeMap<String, Vec<u8>> {
    let mut served = BTreeMap::from([(format!("blobs/{EMPTY}"), Vec::new())]);
    for (path, body) in pages {
        served.insert((*path).to_owned(), body.to_string().into_bytes());
    }
    served
}

/// Searches a made-up registry for signatures of the empty artifact.
fn search_empty(pages: &[(&str, serde_json::Value)]) -> (String, usize) {
    let artifact = Artifact::new(EMPTY).unwrap();
    let (found, asked) = search_in(
        &serve(pages),
        &artifact,
        &Policy::Keys(Vec::new()),
        "2026-01-01T00:00:00Z".parse().unwrap(),
    );
    (found.unwrap_err(), asked.len())
}

#[test]
fn a_list_that_points_to_itself_ends() {
    let referrers = format!("referrers/{EMPTY}");
    let itself = json!({"manifests": [{"artifactType": BUNDLE, "digest": EMPTY}]});
    let (message, asked) = search_empty(&[(&referrers, itself)]);
    assert!(message.contains("the registry does not have"), "{message}");
    assert_eq!(asked, 3);
}

#[test]
fn only_digests_are_asked_for() {
    let referrers = format!("referrers/{EMPTY}");
    for odd in ["../../other/manifests/latest", "sha256:../../../other", "latest", "sha512:00", ""] {
        let list = json!({"manifests": [{"artifactType": BUNDLE, "digest": odd}]});
        let (message, asked) = search_empty(&[(&referrers, list)]);
        assert!(message.contains("bundle 1: it cannot be read: a digest must be `sha256:`"), "{message}");
        assert_eq!(asked, 2);
    }
}

#[test]
fn the_number_of_signatures_is_bounded() {
    let referrers = format!("referrers/{EMPTY}");
    let many =
        |count: usize| json!({"manifests": vec![json!({"artifactType": BUNDLE, "digest": EMPTY}); count]});
    let (message, asked) = search_empty(&[(&referrers, many(200))]);
    assert_eq!(asked, MAX_SIGNATURES + 2);
    assert!(message.ends_with(&format!("and {} more", MAX_SIGNATURES + 1 - 5)), "{message}");
    let (message, asked) = search_empty(&[(&referrers, many(10_000))]);
    assert_eq!(asked, 2);
    assert!(message.contains("the list of referrers: it cannot be read: it has 1"), "{message}");
    let config = json!({"layers": [{"mediaType": "application/vnd.oci.empty.v1+json"}]});
    let digest = format!("sha256:{}", hex(config.to_string().as_bytes()));
    let other = json!({"manifests": vec![json!({"digest": digest}); 200]});
    let pages = [(&*referrers, other), (&format!("manifests/{digest}"), config)];
    let (message, asked) = search_empty(&pages);
    assert_eq!(asked, MAX_SIGNATURES + 2);
    assert!(message.contains("further signatures: it cannot be read: at most 50 are read"), "{message}");
}

#[test]
fn attestations_hide_no_signature() {
    let vector = vector("keyless-dsse");
    let mut registry = vector.registry();
    let list = registry.get_mut(&format!("referrers/{}", vector.artifact().digest())).unwrap();
    let mut index: serde_json::Value = serde_json::from_slice(list).unwrap();
    let attestation = json!({
        "artifactType": BUNDLE,
        "digest": EMPTY,
        "annotations": {"dev.sigstore.bundle.predicateType": "https://slsa.dev/provenance/v1"},
    });
    let manifests = index["manifests"].as_array_mut().unwrap();
    manifests.splice(0..0, vec![attestation; 100]);
    *list = index.to_string().into_bytes();
    assert_eq!(
        kinds(&vector, &registry),
        (true, vec!["referrers".into(), "manifests".into(), "blobs".into()])
    );
}

#[test]
fn a_layer_that_is_too_large_is_not_fetched() {
    let tag = format!("manifests/{}.sig", EMPTY.replace(':', "-"));
    let layer = json!({
        "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json",
        "digest": EMPTY,
        "size": MAX_DOCUMENT_BYTES + 1,
        "annotations": {"dev.cosignproject.cosign/signature": "aGk="},
    });
    let (message, asked) = search_empty(&[(&tag, json!({"layers": [layer]}))]);
    assert!(
        message.contains("the manifest of signatures: it cannot be read: it has 1048577 bytes"),
        "{message}"
    );
    assert_eq!(asked, 3);
}

#[test]
fn an_error_of_the_registry_is_no_missing_signature() {
    let vector = vector("keyless-dsse");
    for failing in 0..3 {
        let mut count = 0;
        let registry = vector.registry();
        let mut fetch = |request: &Request| {
            count += 1;
            if count > failing { Err("timed out") } else { Ok(registry.get(&request.path()).cloned()) }
        };
        let (artifact, policy) = (vector.artifact(), vector.policy());
        let found = search(&artifact, &policy, vector.now(), &mut fetch);
        assert!(matches!(found, Err(SearchError::Fetch("timed out"))));
    }
}
