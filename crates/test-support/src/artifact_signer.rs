//! Signers of artifacts, as cosign signs: by key, or by an identity of an installation of Sigstore
//! that only this test uses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, IsCa, SanType};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::artifact_registry::{ArtifactRegistry, INDEX, MANIFEST, digest};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const STATEMENT: &str = "application/vnd.in-toto+json";

/// `SubjectPublicKeyInfo` of a key of P-256, before its point.
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3,
    1, 7, 3, 0x42, 0,
];

/// Issuer of identities in a certificate of Fulcio.
const ISSUER: [u64; 9] = [1, 3, 6, 1, 4, 1, 57264, 1, 1];

/// Time of all log entries, in seconds since 1970.
const LOGGED: i64 = 1_600_000_000;

/// A key that signs artifacts.
pub struct ArtifactSigner {
    pair: EcdsaKeyPair,
}

impl ArtifactSigner {
    pub fn new() -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        Self::of(key.as_ref())
    }

    fn of(pkcs8: &[u8]) -> Self {
        let random = SystemRandom::new();
        Self { pair: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8, &random).unwrap() }
    }

    /// The public key in DER.
    fn info(&self) -> Vec<u8> {
        [&P256, self.pair.public_key().as_ref()].concat()
    }

    /// The public key in PEM.
    pub fn pem(&self) -> String {
        pem("PUBLIC KEY", &self.info())
    }

    /// Name of the key in messages.
    pub fn fingerprint(&self) -> String {
        digest(&self.info())["sha256:".len()..].to_owned()
    }

    fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.pair.sign(&SystemRandom::new(), message).unwrap())
    }

    /// Signs an artifact as version 2 of cosign does: under a tag that its digest has.
    pub fn sign_by_tag(&self, registry: &ArtifactRegistry, repository: &str, artifact: &str) {
        let payload = simple_payload(artifact);
        let annotations = json!({"dev.cosignproject.cosign/signature": self.sign(&payload)});
        push_simple(registry, repository, artifact, &payload, &annotations);
    }

    /// Makes a bundle of an artifact, as version 3 of cosign does.
    pub fn bundle(&self, artifact: &str) -> Value {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": &artifact["sha256:".len()..]}, "annotations": {}}],
            "predicateType": "https://sigstore.dev/cosign/sign/v1", "predicate": {},
        });
        let payload = statement.to_string();
        let message = format!("DSSEv1 {} {STATEMENT} {} {payload}", STATEMENT.len(), payload.len());
        let hint = ring::digest::digest(&ring::digest::SHA256, &self.info());
        json!({
            "mediaType": BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": STANDARD.encode(hint)}},
            "dsseEnvelope": {"payload": STANDARD.encode(&payload), "payloadType": STATEMENT,
                "signatures": [{"sig": self.sign(message.as_bytes())}]},
        })
    }
}

impl Default for ArtifactSigner {
    fn default() -> Self {
        Self::new()
    }
}

impl ArtifactRegistry {
    /// Adds a referrer of a digest; from then on the registry has lists of referrers.
    pub fn refer(&self, repository: &str, digest: &str, referrer: Value) {
        let mut content = self.content.lock().unwrap();
        let key = (repository.to_owned(), digest.to_owned());
        content.referrers.get_or_insert_default().entry(key).or_default().push(referrer);
    }

    /// Removes all tags that end like this, as with the signatures of version 2 of cosign.
    pub fn remove_tags(&self, end: &str) {
        self.content.lock().unwrap().tags.retain(|(_, tag), _| !tag.ends_with(end));
    }
}

/// Stores a bundle as a referrer of an artifact: in the list of the registry, or under the tag that
/// replaces the list.
pub fn refer(registry: &ArtifactRegistry, repository: &str, artifact: &str, bundle: &Value, is_listed: bool) {
    let bytes = bundle.to_string();
    let empty = registry.blob(b"{}");
    let layer = json!({"mediaType": BUNDLE, "digest": registry.blob(bytes.as_bytes()), "size": bytes.len()});
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE, "layers": [layer],
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "size": 2, "digest": empty},
    });
    let digest = registry.manifest(repository, "bundle", MANIFEST, &manifest);
    let entry = json!({"mediaType": MANIFEST, "size": manifest.to_string().len(), "digest": digest,
        "artifactType": "application/vnd.oci.empty.v1+json"});
    if is_listed {
        registry.refer(repository, artifact, entry);
    } else {
        let list = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
        registry.manifest(repository, &artifact.replace(':', "-"), INDEX, &list);
    }
}

/// An installation of Sigstore: an authority and a log, for one issuer.
pub struct Sigstore {
    authority: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
    log: ArtifactSigner,
}

/// A signature by an identity, and what is wrong with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeylessFault {
    #[default]
    None,
    /// Its certificate had expired when it was made.
    Expired,
    /// Its log entry is of another payload.
    OtherEntry,
}

impl Sigstore {
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::<String>::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let authority = rcgen::CertifiedIssuer::self_signed(parameters, key).unwrap();
        Self { authority, log: ArtifactSigner::new() }
    }

    /// The file `trusted_root.json`.
    pub fn trusted_root(&self) -> String {
        let certificate = STANDARD.encode(self.authority.der());
        let since = json!({"start": "2020-01-01T00:00:00Z"});
        let log = json!({
            "baseUrl": "https://rekor.example", "hashAlgorithm": "SHA2_256",
            "publicKey": {"rawBytes": STANDARD.encode(self.log.info()), "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "validFor": since},
        });
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "certificateAuthorities": [{"uri": "https://fulcio.example",
                "certChain": {"certificates": [{"rawBytes": certificate}]}, "validFor": since}],
            "tlogs": [log],
        })
        .to_string()
    }

    /// Signs an artifact as somebody, as version 2 of cosign does.
    pub fn sign(
        &self,
        (registry, repository, artifact): (&ArtifactRegistry, &str, &str),
        (issuer, subject): (&str, &str),
        fault: KeylessFault,
    ) {
        let mut parameters = CertificateParams::new(Vec::<String>::new()).unwrap();
        parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
        let last_year = if fault == KeylessFault::Expired { 2020 } else { 2021 };
        parameters.not_after = rcgen::date_time_ymd(last_year, 2, 1);
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        parameters.subject_alt_names = vec![SanType::URI(subject.try_into().unwrap())];
        let by = CustomExtension::from_oid_content(&ISSUER, issuer.as_bytes().to_vec());
        parameters.custom_extensions = vec![by];
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = pem("CERTIFICATE", parameters.signed_by(&key, &self.authority).unwrap().der());
        let payload = simple_payload(artifact);
        let signature = ArtifactSigner::of(&key.serialize_der()).sign(&payload);
        let logged = if fault == KeylessFault::OtherEntry { &b"other"[..] } else { &payload };
        let body = json!({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {
            "data": {"hash": {"algorithm": "sha256", "value": &digest(logged)["sha256:".len()..]}},
            "signature": {"content": signature, "publicKey": {"content": STANDARD.encode(&certificate)}},
        }});
        let body = STANDARD.encode(body.to_string());
        let log = self.log.fingerprint();
        let entry = format!(r#"{{"body":"{body}","integratedTime":{LOGGED},"logID":"{log}","logIndex":7}}"#);
        let promise = self.log.sign(entry.as_bytes());
        let annotations = json!({
            "dev.cosignproject.cosign/signature": signature,
            "dev.sigstore.cosign/certificate": certificate,
            "dev.sigstore.cosign/bundle": format!(r#"{{"SignedEntryTimestamp":"{promise}","Payload":{entry}}}"#),
        });
        push_simple(registry, repository, artifact, &payload, &annotations);
    }
}

impl Default for Sigstore {
    fn default() -> Self {
        Self::new()
    }
}

/// The text that version 2 of cosign signs.
fn simple_payload(artifact: &str) -> Vec<u8> {
    json!({"critical": {"identity": {"docker-reference": ""}, "image": {"docker-manifest-digest": artifact},
        "type": "cosign container image signature"}, "optional": null})
    .to_string()
    .into_bytes()
}

fn push_simple(
    registry: &ArtifactRegistry,
    repository: &str,
    artifact: &str,
    payload: &[u8],
    annotations: &Value,
) {
    let layer = json!({"mediaType": SIMPLE_SIGNING, "digest": registry.blob(payload), "size": payload.len(),
        "annotations": annotations});
    let empty = registry.blob(b"{}");
    let config = json!({"mediaType": "application/vnd.oci.image.config.v1+json", "size": 2, "digest": empty});
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
    registry.manifest(repository, &format!("{}.sig", artifact.replace(':', "-")), MANIFEST, &manifest);
}

fn pem(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines: Vec<_> =
        text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
