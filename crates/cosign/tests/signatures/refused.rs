//! Signatures that must not be accepted, each with its message.

use moorline_cosign::{Artifact, Pattern, Policy, PublicKey, verify};

use crate::vectors::{Vector, search_in, vector};

fn message(vector: &Vector) -> String {
    vector.search().expect_err(&vector.name)
}

#[test]
fn each_refusal_has_its_message() {
    let check = |name: &str, expect: &[&str]| {
        let message = message(&vector(name));
        for part in expect {
            assert!(message.contains(part), "{name}: {message}");
        }
    };
    check(
        "refused-expired",
        &["bundle 1: its certificate expired at 20", ", and the signature was made at 20"],
    );
    check(
        "refused-early",
        &["bundle 1: its certificate is valid from 20", ", and the signature was made at 20"],
    );
    check("refused-no-log-entry", &["bundle 1: it has no entry in a log of the trust root"]);
    check(
        "refused-no-promise",
        &["its certificate is in no certificate log of the trust root: it has no promise of one"],
    );
    check(
        "refused-other-artifact",
        &["it is valid, but a signature of sha256:", "copied from another artifact"],
    );
    check("refused-other-entry", &["its log entry is of another signature: the two do not belong together"]);
    check(
        "refused-other-usage",
        &["was not issued by an authority of the trust root: it is not for this usage"],
    );
    check(
        "refused-no-usage",
        &["was not issued by an authority of the trust root: it is not for this usage"],
    );
    check("refused-other-promise", &["the promise is not signed by the log for this certificate"]);
    check("refused-stranger", &["bundle 1: it has no entry in a log of the trust root"]);
    check(
        "refused-attestation",
        &["it is an attestation of type https://slsa.dev/provenance/v1, not a signature"],
    );
}

#[test]
fn another_identity_is_named_beside_the_expected_one() {
    let vector = vector("keyless-dsse");
    let check = |issuer: &str, subject: &str| {
        let policy = vector.policy_for(Pattern::text(issuer), Pattern::text(subject));
        let message = search_in(&vector.registry(), &vector.artifact(), &policy, vector.now()).0.unwrap_err();
        let expect = format!("it was made by {}; expected {subject} of {issuer}", vector.signer());
        assert!(message.ends_with(&expect), "{message}");
    };
    check("https://login.example", "https://ci.example/other");
    check("https://other.example", "https://ci.example/shop/.github/workflows/release.yaml@refs/tags/v1");
}

#[test]
fn an_authority_that_is_not_in_the_trust_root_is_named() {
    let mut vector = vector("keyless-timestamp-only");
    let stranger = crate::vectors::vector("refused-stranger");
    vector.value["policy"]["trustedRoot"]["certificateAuthorities"] =
        stranger.value["policy"]["trustedRoot"]["certificateAuthorities"].clone();
    let message = message(&vector);
    assert!(message.contains("which claims https://ci.example/shop/"), "{message}");
    assert!(message.contains("was not issued by an authority of the trust root"), "{message}");
}

#[test]
fn another_key_is_named_beside_the_expected_one() {
    let (signed, other) = (vector("key-cosign3-p256"), vector("key-cosign3-p384"));
    let Policy::Keys(keys) = other.policy() else { panic!("a policy of keys") };
    let fingerprint = keys.first().map(PublicKey::fingerprint).unwrap();
    let found =
        search_in(&signed.registry(), &signed.artifact(), &other.policy(), signed.now()).0.unwrap_err();
    let expect = format!("it was not made by the key {fingerprint}; it names the key ");
    assert!(found.contains(&expect), "{found}");
    let found = search_in(&signed.registry(), &signed.artifact(), &Policy::Keys(Vec::new()), signed.now()).0;
    assert!(found.unwrap_err().contains("it was not made by nobody: the policy is empty"));
}

#[test]
fn a_signature_by_a_key_is_of_one_artifact() {
    let other = Artifact::new(&format!("sha256:{}", "0".repeat(64))).unwrap();
    for name in ["key-cosign3-p256", "key-cosign2-p256"] {
        let vector = vector(name);
        let error =
            verify(&other, &vector.documents(), &vector.policy(), vector.now()).unwrap_err().to_string();
        let expect = format!("it is valid, but a signature of {}", vector.artifact().digest());
        assert!(error.contains(&expect), "{error}");
    }
}

#[test]
fn a_signature_that_its_key_did_not_make_is_named() {
    let message = message(&vector("key-cosign3-ed25519"));
    assert!(message.contains("bundle 1: it names the key ") && message.contains("Ed25519ph"), "{message}");
}

#[test]
fn a_signature_by_a_key_is_none_by_an_identity() {
    let (signed, keyless) = (vector("key-cosign3-p256"), vector("keyless-dsse"));
    let found =
        search_in(&signed.registry(), &signed.artifact(), &keyless.policy(), signed.now()).0.unwrap_err();
    assert!(found.contains("it has no certificate; it names the key "), "{found}");
    assert!(found.contains("; expected https://ci.example/shop/"), "{found}");
}

#[test]
fn a_time_in_the_future_is_refused() {
    let mut vector = vector("keyless-dsse");
    let signed = vector.search().unwrap().time.unwrap();
    vector.value["now"] = "2020-01-01T00:00:00Z".into();
    let message = message(&vector);
    let expect =
        format!("it was made at {signed}, which is in the future; now is 2020-01-01T00:00:00Z: compare");
    assert!(message.contains(&expect), "{message}");
}

#[test]
fn a_signature_over_the_manifest_needs_its_bytes() {
    let mut vector = vector("keyless-manifest");
    vector.value.as_object_mut().unwrap().remove("manifest");
    assert!(message(&vector).contains("it is over the bytes of the manifest, which were not read"));
}

#[test]
fn a_log_and_an_authority_count_only_in_their_period() {
    let check = |name: &str, path: &str, expect: &str| {
        let mut vector = vector(name);
        let list = vector.value.pointer_mut("/policy/trustedRoot").unwrap();
        *list.pointer_mut(path).unwrap() =
            serde_json::json!({"start": "2001-01-01T00:00:00Z", "end": "2001-01-02T00:00:00Z"});
        let message = message(&vector);
        assert!(message.contains(expect), "{path}: {message}");
    };
    check(
        "keyless-log-only",
        "/tlogs/0/publicKey/validFor",
        "the trust root does not trust the log at its time",
    );
    check("virtual-v2", "/tlogs/0/publicKey/validFor", "does not trust the log at the time of the signature");
    check("keyless-log-only", "/ctlogs/0/publicKey/validFor", "the promise is not signed by the log");
    check(
        "keyless-log-only",
        "/certificateAuthorities/0/validFor",
        "no authority of the trust root was valid",
    );
    check("keyless-timestamp-only", "/timestampAuthorities/0/validFor", "it is not signed by an authority");
}
