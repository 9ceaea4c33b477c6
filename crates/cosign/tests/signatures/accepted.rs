//! Every recorded signature is accepted, and the signer is named.

use moorline_cosign::{Document, Pattern, Signer};

use crate::vectors::{search_in, vector, vectors};

#[test]
fn signatures_by_identities_are_accepted() {
    for vector in [vectors("keyless-"), vectors("virtual-")].concat() {
        let verified = vector.search().unwrap_or_else(|error| panic!("{}: {error}", vector.name));
        assert_eq!(verified.signer.to_string(), vector.signer(), "{}", vector.name);
        assert!(verified.time.is_some_and(|time| time < vector.now()), "{}", vector.name);
    }
}

#[test]
fn signatures_by_keys_are_accepted() {
    for vector in vectors("key-").iter().filter(|vector| !vector.is_prehashed()) {
        let verified = vector.search().unwrap_or_else(|error| panic!("{}: {error}", vector.name));
        assert!(matches!(verified.signer, Signer::Key { .. }), "{}", vector.name);
        assert_eq!(verified.time, None);
    }
}

#[test]
fn an_identity_may_be_an_expression() {
    let vector = vector("keyless-dsse");
    let check = |issuer: &str, subject: &str| {
        let pattern = |text: &str| Pattern::expression(text).unwrap();
        let policy = vector.policy_for(pattern(issuer), pattern(subject));
        search_in(&vector.registry(), &vector.artifact(), &policy, vector.now()).0.is_ok()
    };
    assert!(check(r"https://login\.example", r"https://ci\.example/shop/.*"));
    assert!(!check(r"https://login\.exampl", r"https://ci\.example/shop/.*"));
    assert!(!check(r"https://login\.example", r"ci\.example/shop/.*"));
}

#[test]
fn a_log_entry_beside_a_signature_by_a_key_is_not_read() {
    let vector = vector("key-cosign2-p256");
    let [Document::SimpleSigning { payload, annotations }] = &vector.documents()[..] else {
        panic!("one signature")
    };
    let mut annotations = annotations.clone();
    for name in ["bundle", "certificate", "rfc3161timestamp"] {
        annotations.insert(format!("dev.sigstore.cosign/{name}"), "nothing".to_owned());
    }
    assert!(vector.verify(Document::SimpleSigning { payload: payload.clone(), annotations }).is_ok());
}
