//! Nothing panics, whatever the bytes; and no change makes another signer.

use moorline_cosign::{Artifact, Document, Policy, PublicKey, Request, TrustRoot, search, verify};
use proptest::prelude::*;

use crate::vectors::{vector, vectors};

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Bytes that look like a document here and there.
fn odd() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        r#"[\[\]{}:,"a-z0-9=/]{0,200}"#.prop_map(String::into_bytes),
    ]
}

/// Places and bytes to write there.
fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)
}

fn edit(bytes: &[u8], edits: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (place, byte) in edits {
        let place = place.index(bytes.len());
        bytes[place] = *byte;
    }
    bytes
}

proptest! {
    #[test]
    fn any_bytes_are_refused(bytes in odd(), text in ".{0,60}") {
        prop_assert!(PublicKey::from_pem(&bytes).is_err());
        prop_assert!(TrustRoot::read(&bytes).is_err());
        drop(Artifact::new(&text));
        let artifact = Artifact::new(DIGEST).unwrap().with_manifest(b"").unwrap();
        let annotations = ["signature", "certificate", "bundle", "rfc3161timestamp"];
        let annotations = annotations.iter().flat_map(|name| {
            ["dev.cosignproject.cosign", "dev.sigstore.cosign"].map(|domain| (format!("{domain}/{name}"), text.clone()))
        });
        let documents = [
            Document::Bundle(bytes.clone()),
            Document::SimpleSigning { payload: bytes.clone(), annotations: annotations.collect() },
        ];
        let vector = vector("keyless-dsse");
        for policy in [Policy::Keys(Vec::new()), vector.policy()] {
            prop_assert!(verify(&artifact, &documents, &policy, vector.now()).is_err());
            let mut fetch = |_: &Request| Ok::<_, ()>(Some(bytes.clone()));
            prop_assert!(search(&artifact, &policy, vector.now(), &mut fetch).is_err());
        }
    }

    #[test]
    fn an_edited_bundle_has_the_same_signer_or_none(edits in edits(), which: prop::sample::Index) {
        let all = [vectors("keyless-"), vectors("virtual-"), vectors("key-cosign3-p"), vectors("key-library")].concat();
        let vector = which.get(&all);
        for document in vector.documents() {
            if let Document::Bundle(bundle) = document {
                let recorded = vector.verify(Document::Bundle(bundle.clone())).unwrap();
                if let Ok(verified) = vector.verify(Document::Bundle(edit(&bundle, &edits))) {
                    prop_assert_eq!(verified.signer, recorded.signer);
                }
            }
        }
    }

    #[test]
    fn an_edited_trust_root_is_read_or_refused(edits in edits()) {
        let vector = vector("keyless-dsse");
        let file = vector.value["policy"]["trustedRoot"].to_string();
        drop(TrustRoot::read(&edit(file.as_bytes(), &edits)));
    }
}
