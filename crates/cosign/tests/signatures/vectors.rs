//! Recorded vectors: what a registry serves, a policy, the time, and the signer.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use moorline_cosign::{
    Artifact, Document, Identity, Pattern, Policy, PublicKey, Request, SearchError, TrustRoot, Verified,
    search,
};
use serde_json::Value;

/// One vector.
#[derive(Debug, Clone)]
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) value: Value,
    /// The policy, once a document was verified.
    read_policy: OnceLock<Policy>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

/// Reads the vectors whose names begin like this.
pub(crate) fn vectors(prefix: &str) -> Vec<Vector> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let names = files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    assert!(!names.is_empty(), "no vector begins with {prefix}");
    names.iter().map(|name| vector(name)).collect()
}

/// Reads one vector.
pub(crate) fn vector(name: &str) -> Vector {
    let text =
        fs::read(folder().join(format!("{name}.json"))).unwrap_or_else(|error| panic!("{name}: {error}"));
    Vector {
        name: name.to_owned(),
        value: serde_json::from_slice(&text).unwrap(),
        read_policy: OnceLock::new(),
    }
}

impl Vector {
    fn text(&self, path: &str) -> Option<&str> {
        self.value.pointer(path).and_then(Value::as_str)
    }

    /// True for a signature of Ed25519ph, which cosign makes but does not verify.
    pub(crate) fn is_prehashed(&self) -> bool {
        self.name.starts_with("key-cosign") && self.name.contains("ed25519")
    }

    pub(crate) fn signer(&self) -> &str {
        self.text("/signer").unwrap()
    }

    pub(crate) fn artifact(&self) -> Artifact {
        let artifact = Artifact::new(self.text("/artifact").unwrap()).unwrap();
        match self.text("/manifest") {
            Some(manifest) => artifact.with_manifest(manifest.as_bytes()).unwrap(),
            None => artifact,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.text("/now").unwrap().parse().unwrap()
    }

    pub(crate) fn trust_root(&self) -> TrustRoot {
        TrustRoot::read(self.value["policy"]["trustedRoot"].to_string().as_bytes()).unwrap()
    }

    pub(crate) fn policy(&self) -> Policy {
        match self.text("/policy/keys/0") {
            Some(key) => Policy::Keys(vec![PublicKey::from_pem(key.as_bytes()).unwrap()]),
            None => self.policy_for(
                Pattern::text(self.text("/policy/issuer").unwrap()),
                Pattern::text(self.text("/policy/subject").unwrap()),
            ),
        }
    }

    pub(crate) fn policy_for(&self, issuer: Pattern, subject: Pattern) -> Policy {
        Policy::Keyless { identities: vec![Identity { issuer, subject }], trust_root: self.trust_root() }
    }

    /// The documents that the registry serves, by path.
    pub(crate) fn registry(&self) -> BTreeMap<String, Vec<u8>> {
        let served = self.value["registry"].as_object().unwrap().iter();
        served.map(|(path, body)| (path.clone(), body.as_str().unwrap().as_bytes().to_vec())).collect()
    }

    /// Searches the recorded registry.
    pub(crate) fn search(&self) -> Result<Verified, String> {
        search_in(&self.registry(), &self.artifact(), &self.policy(), self.now()).0
    }

    /// The documents of the registry.
    pub(crate) fn documents(&self) -> Vec<Document> {
        let registry = self.registry();
        let manifests = registry.iter().filter(|(path, _)| path.starts_with("manifests/"));
        let mut documents = Vec::new();
        for manifest in manifests.map(|(_, body)| serde_json::from_slice::<Value>(body).unwrap()) {
            for layer in manifest["layers"].as_array().into_iter().flatten() {
                let blob = registry[&format!("blobs/{}", layer["digest"].as_str().unwrap())].clone();
                if layer["mediaType"].as_str().unwrap().contains("bundle") {
                    documents.push(Document::Bundle(blob));
                } else {
                    let annotations = layer["annotations"].as_object().unwrap().iter();
                    let annotations =
                        annotations.map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned()));
                    documents
                        .push(Document::SimpleSigning { payload: blob, annotations: annotations.collect() });
                }
            }
        }
        assert!(!documents.is_empty(), "{} has documents", self.name);
        documents
    }

    /// The only document of the registry, which is a bundle.
    pub(crate) fn bundle(&self) -> Value {
        match &self.documents()[..] {
            [Document::Bundle(bundle)] => serde_json::from_slice(bundle).unwrap(),
            _ => panic!("{} has one bundle", self.name),
        }
    }

    /// Verifies one document in place of the recorded ones.
    pub(crate) fn verify(&self, document: Document) -> Result<Verified, String> {
        let policy = self.read_policy.get_or_init(|| self.policy());
        let result = moorline_cosign::verify(&self.artifact(), &[document], policy, self.now());
        result.map_err(|error| error.to_string())
    }
}

/// Searches a registry, and returns the paths that were asked for.
pub(crate) fn search_in(
    registry: &BTreeMap<String, Vec<u8>>,
    artifact: &Artifact,
    policy: &Policy,
    now: Timestamp,
) -> (Result<Verified, String>, Vec<String>) {
    let mut asked = Vec::new();
    let mut fetch = |request: &Request| {
        asked.push(request.path());
        let found = registry.get(&request.path()).cloned();
        Ok::<_, Infallible>(found)
    };
    let result = search(artifact, policy, now, &mut fetch).map_err(|error| match error {
        SearchError::Verify(error) => error.to_string(),
        SearchError::Fetch(error) => match error {},
    });
    (result, asked)
}

/// Returns the bytes of a field in base64.
pub(crate) fn bytes(value: &Value, path: &str) -> Vec<u8> {
    STANDARD.decode(value.pointer(path).unwrap().as_str().unwrap()).unwrap()
}

/// Replaces a field by bytes in base64.
pub(crate) fn with_bytes(value: &Value, path: &str, bytes: &[u8]) -> Value {
    with(value, path, STANDARD.encode(bytes).into())
}

/// Replaces a field.
pub(crate) fn with(value: &Value, path: &str, field: Value) -> Value {
    let mut value = value.clone();
    *value.pointer_mut(path).unwrap_or_else(|| panic!("has {path}")) = field;
    value
}
