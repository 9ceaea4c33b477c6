//! Every bit of a signature and of what proves it counts: no change is accepted.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moorline_cosign::Document;
use serde_json::Value;

use crate::vectors::{Vector, bytes, vector, vectors, with, with_bytes};

const CERTIFICATE: &str = "/verificationMaterial/certificate/rawBytes";
/// Most bits of a signed timestamp that are not signed, and least bytes of its signature.
const MAX_UNSIGNED_BITS: usize = 20;
const SIGNATURE_BYTES: usize = 96;
const ENTRY: &str = "/verificationMaterial/tlogEntries/0";

/// Returns copies of some bytes, each with another bit flipped.
fn flips(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        changed
    })
}

fn document(bundle: &Value) -> Document {
    Document::Bundle(bundle.to_string().into_bytes())
}

fn assert_flips_are_refused(vector: &Vector, paths: &[&str]) {
    let bundle = vector.bundle();
    assert!(vector.verify(document(&bundle)).is_ok(), "{}", vector.name);
    for path in paths {
        for (bit, changed) in flips(&bytes(&bundle, path)).enumerate() {
            let changed = with_bytes(&bundle, path, &changed);
            assert!(vector.verify(document(&changed)).is_err(), "{}: bit {bit} of {path}", vector.name);
        }
    }
}

#[test]
fn every_bit_of_a_bundle_by_a_key_counts() {
    let is_bundle = |vector: &&Vector| !vector.name.ends_with("-v2") && !vector.is_prehashed();
    for vector in [vectors("key-cosign3-"), vectors("key-library-")].concat().iter().filter(is_bundle) {
        assert_flips_are_refused(vector, &["/dsseEnvelope/payload", "/dsseEnvelope/signatures/0/sig"]);
    }
}

#[test]
fn every_bit_of_a_signature_of_version_2_counts() {
    for vector in vectors("key-cosign2-").iter().filter(|vector| !vector.is_prehashed()) {
        let [Document::SimpleSigning { payload, annotations }] = &vector.documents()[..] else {
            panic!("{} has one signature", vector.name)
        };
        let verify = |payload: &[u8], annotations: &BTreeMap<String, String>| {
            let (payload, annotations) = (payload.to_vec(), annotations.clone());
            vector.verify(Document::SimpleSigning { payload, annotations })
        };
        assert!(verify(payload, annotations).is_ok());
        for changed in flips(payload) {
            assert!(verify(&changed, annotations).is_err(), "{}", vector.name);
        }
        let name = "dev.cosignproject.cosign/signature";
        for changed in flips(&STANDARD.decode(&annotations[name]).unwrap()) {
            let mut annotations = annotations.clone();
            annotations.insert(name.to_owned(), STANDARD.encode(changed));
            assert!(verify(payload, &annotations).is_err(), "{}", vector.name);
        }
    }
}

#[test]
fn every_bit_of_a_bundle_by_an_identity_counts() {
    let entry = |field: &str| format!("{ENTRY}{field}");
    let paths = [
        "/dsseEnvelope/payload".to_owned(),
        "/dsseEnvelope/signatures/0/sig".to_owned(),
        CERTIFICATE.to_owned(),
        entry("/logId/keyId"),
        entry("/canonicalizedBody"),
        entry("/inclusionPromise/signedEntryTimestamp"),
        entry("/inclusionProof/rootHash"),
        entry("/inclusionProof/hashes/0"),
        entry("/inclusionProof/hashes/1"),
        entry("/inclusionProof/hashes/2"),
    ];
    let paths: Vec<_> = paths.iter().map(String::as_str).collect();
    assert_flips_are_refused(&vector("keyless-log-only"), &paths);
}

#[test]
fn every_bit_counts_without_a_log() {
    let paths = ["/dsseEnvelope/payload", "/dsseEnvelope/signatures/0/sig", CERTIFICATE];
    assert_flips_are_refused(&vector("keyless-timestamp-only"), &paths);
}

#[test]
fn every_bit_of_a_signature_over_a_manifest_counts() {
    let paths = ["/messageSignature/messageDigest/digest", "/messageSignature/signature"];
    assert_flips_are_refused(&vector("keyless-manifest"), &paths);
}

#[test]
fn every_bit_of_a_checkpoint_counts() {
    for name in ["keyless-log-only", "virtual-v2"] {
        let vector = vector(name);
        let bundle = vector.bundle();
        let path = format!("{ENTRY}/inclusionProof/checkpoint/envelope");
        let text = bundle.pointer(&path).unwrap().as_str().unwrap();
        for changed in flips(text.as_bytes()).filter_map(|changed| String::from_utf8(changed).ok()) {
            let changed = with(&bundle, &path, changed.into());
            assert!(vector.verify(document(&changed)).is_err(), "{name}: {changed}");
        }
    }
}

#[test]
fn every_number_of_an_entry_counts() {
    let vector = vector("keyless-log-only");
    let bundle = vector.bundle();
    for field in ["/logIndex", "/integratedTime", "/inclusionProof/logIndex", "/inclusionProof/treeSize"] {
        let path = format!("{ENTRY}{field}");
        let number: i64 = bundle.pointer(&path).unwrap().as_str().unwrap().parse().unwrap();
        for other in [0, number - 1, number + 1, number * 2, i64::MAX] {
            let changed = with(&bundle, &path, other.to_string().into());
            assert!(vector.verify(document(&changed)).is_err(), "{path}: {other}");
        }
    }
}

#[test]
fn every_signed_bit_of_a_timestamp_counts() {
    let vector = vector("keyless-timestamp-only");
    let bundle = vector.bundle();
    let path = "/verificationMaterial/timestampVerificationData/rfc3161Timestamps/0/signedTimestamp";
    let recorded = vector.verify(document(&bundle)).unwrap();
    let answer = bytes(&bundle, path);
    let mut accepted = Vec::new();
    for (bit, changed) in flips(&answer).enumerate() {
        // Not signed: versions, status, names of algorithms, and that a certificate is there.
        if let Ok(verified) = vector.verify(document(&with_bytes(&bundle, path, &changed))) {
            assert_eq!(verified, recorded);
            accepted.push(bit);
        }
    }
    println!("not signed: {accepted:?}");
    assert!(accepted.len() <= MAX_UNSIGNED_BITS, "{accepted:?}");
    // The signature of the authority is at the end.
    assert!(accepted.iter().all(|bit| bit / 8 < answer.len() - SIGNATURE_BYTES), "{accepted:?}");
}

#[test]
fn every_bit_of_version_2_by_an_identity_counts() {
    let vector = vector("keyless-v2");
    let [Document::SimpleSigning { payload, annotations }] = &vector.documents()[..] else {
        panic!("one signature")
    };
    let refused = |name: &str, text: String| {
        let mut annotations = annotations.clone();
        annotations.insert(name.to_owned(), text);
        let document = Document::SimpleSigning { payload: payload.clone(), annotations };
        vector.verify(document).is_err()
    };
    for changed in flips(payload) {
        let document = Document::SimpleSigning { payload: changed, annotations: annotations.clone() };
        assert!(vector.verify(document).is_err());
    }
    let name = "dev.cosignproject.cosign/signature";
    for changed in flips(&STANDARD.decode(&annotations[name]).unwrap()) {
        assert!(refused(name, STANDARD.encode(changed)));
    }
    let name = "dev.sigstore.cosign/certificate";
    let lines: String = annotations[name].lines().filter(|line| !line.starts_with("---")).collect();
    for changed in flips(&STANDARD.decode(lines).unwrap()) {
        let text = STANDARD.encode(changed);
        assert!(refused(name, format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")));
    }
    let name = "dev.sigstore.cosign/bundle";
    let entry: Value = serde_json::from_str(&annotations[name]).unwrap();
    for path in ["/SignedEntryTimestamp", "/Payload/body"] {
        for changed in flips(&bytes(&entry, path)) {
            assert!(refused(name, with_bytes(&entry, path, &changed).to_string()), "{path}");
        }
    }
    for path in ["/Payload/integratedTime", "/Payload/logIndex"] {
        let number = entry.pointer(path).unwrap().as_u64().unwrap();
        assert!(refused(name, with(&entry, path, (number + 1).into()).to_string()), "{path}");
    }
    let mut without = annotations.clone();
    without.remove(name);
    let document = Document::SimpleSigning { payload: payload.clone(), annotations: without };
    assert!(vector.verify(document).unwrap_err().contains("it has no entry in a log"));
}

#[test]
fn a_timestamp_of_another_signature_is_refused() {
    let (vector, other) = (vector("keyless-timestamp-only"), vector("keyless-dsse").bundle());
    let path = "/verificationMaterial/timestampVerificationData";
    let mixed = with(&vector.bundle(), path, other.pointer(path).unwrap().clone());
    let error = vector.verify(document(&mixed)).unwrap_err();
    assert!(error.ends_with("its signed timestamp is not valid: it is of another signature"), "{error}");
}

#[test]
fn parts_of_two_signatures_do_not_make_one() {
    let names =
        ["keyless-dsse", "keyless-intoto", "keyless-mail", "refused-other-artifact", "refused-expired"];
    let parts = ["/dsseEnvelope", "/dsseEnvelope/payload", "/dsseEnvelope/signatures", CERTIFICATE, ENTRY];
    for name in names {
        let vector = vector(name);
        let bundle = vector.bundle();
        for other in names.iter().filter(|other| **other != name) {
            let other = crate::vectors::vector(other).bundle();
            for part in parts {
                let piece = other.pointer(part).unwrap();
                if bundle.pointer(part) != Some(piece) {
                    let mixed = with(&bundle, part, piece.clone());
                    assert!(vector.verify(document(&mixed)).is_err(), "{name}: {part}");
                }
            }
        }
    }
}
