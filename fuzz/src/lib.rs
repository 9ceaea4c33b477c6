//! Bodies of the fuzz targets: each may refuse its input, but must never panic.
//!
//! The targets call these with input from the fuzzer; `tests/render/fuzz.rs` calls them briefly with
//! damaged seeds, on any compiler.

use moorline_core::tree::FileTree;
use moorline_git::{hostile, webhook_call};
use moorline_kustomize::build;
use moorline_sops::{AgeIdentities, Format, OpenPgpKeys};
use moorline_yaml::{Dialect, Step, locate, read, write};
use serde_json::json;

/// Reads any bytes as YAML; values that are accepted are written and read again without a change.
pub fn yaml_read(bytes: &[u8]) {
    for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
        let Ok(documents) = read("fuzz.yaml", bytes, dialect) else {
            continue;
        };
        for document in documents {
            let place = locate(bytes, dialect, document.index, &[Step::Key("a"), Step::Item(0)]);
            assert!(place.is_some());
            let text = write(&document.value);
            let again = read("again.yaml", text.as_bytes(), dialect).expect("what is written is read");
            assert_eq!(again.first().map(|document| &document.value), Some(&document.value), "{text}");
        }
    }
}

/// Writes any text as a value and as a key; both dialects must read it back.
pub fn yaml_write(text: &str) {
    // Kustomize drops the key `<<`, quoted or not.
    let key = if text == "<<" { "merge" } else { text };
    let value = json!({"a": [text, [text]], "b": {key: text, "z": [{key: 1}]}});
    let written = write(&value);
    for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
        let documents = read("fuzz.yaml", written.as_bytes(), dialect).expect("what is written is read");
        assert_eq!(documents.first().map(|document| &document.value), Some(&value), "{written}");
    }
}

/// Separator between the files of an input.
pub const BETWEEN: &str = "\n===\n";

fn built<const N: usize>(text: &str, names: [&str; N], more: &[(&str, &str)]) -> bool {
    let mut parts = text.splitn(N, BETWEEN);
    let files = names.map(|name| (name, parts.next().unwrap_or_default()));
    build(&FileTree::from_texts(files.into_iter().chain(more.iter().copied())), "").is_ok()
}

/// Builds any kustomization, with a resource and a patch; true if it is not refused.
pub fn kustomize(text: &str) -> bool {
    built(text, ["kustomization.yaml", "a.yaml", "p.yaml"], &[])
}

/// Applies any patch to any object, matched by its content and by a selector; true if it is not
/// refused.
pub fn patches(text: &str) -> bool {
    let by = "resources: [a.yaml]\npatches: [{path: p.yaml}, {path: p.yaml, target: {name: .*}}]\n";
    built(text, ["a.yaml", "p.yaml"], &[("kustomization.yaml", by)])
}

/// Applies any replacements among common objects; true if they are not refused.
pub fn replacements(text: &str) -> bool {
    let by = "resources: [a.yaml]\nreplacements: [{path: r.yaml}]\n";
    built(text, ["r.yaml"], &[("kustomization.yaml", by), ("a.yaml", OBJECTS)])
}

const OBJECTS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {x/y: z}}
data:
  a: one:two
  b: |-
    three
    four
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: b}
spec:
  template:
    spec:
      containers:
      - {name: c, image: example.com/c:1, args: [x, y], env: [{name: E, value: v}]}
      - {name: d, ports: [{containerPort: 80}]}
";

/// Reads any bytes as a pack from a server.
pub fn packs(bytes: &[u8]) {
    let folder = std::env::temp_dir().join(format!("moorline-fuzz-{}", std::process::id()));
    hostile::pack(bytes, &folder);
}

/// Reads any bytes as the pkt-lines of a Git server's response.
pub fn packets(bytes: &[u8]) {
    hostile::frames(bytes);
}

/// Reads any bytes as the archive of a chart.
pub fn charts(bytes: &[u8]) {
    hostile::archive(bytes);
}

/// Reads any bytes as an artifact: its manifest, the archive of its layer, and logins.
pub fn artifacts(bytes: &[u8]) {
    hostile::artifact(bytes);
}

/// Reads any text as a known_hosts file.
pub fn known_hosts(text: &str) {
    hostile::known_hosts(text);
}

/// Identity of tests, for which the seeds are encrypted.
const IDENTITY: &str = "AGE-SECRET-KEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZ9K4CN";

/// Reads any bytes as an encrypted file of each format, and as a file of keys; true if a file is
/// decrypted.
pub fn sops(bytes: &[u8]) -> bool {
    let identities = AgeIdentities::read(IDENTITY).expect("is an identity");
    let decrypt = |format| {
        let file = moorline_sops::read("fuzz", bytes, format).ok()??;
        let key = file.data_key(&[&identities]).ok()?;
        file.decrypt(&key).ok()
    };
    let formats = [Format::Yaml, Format::Json, Format::Dotenv, Format::Ini, Format::Binary];
    let text = String::from_utf8_lossy(bytes);
    drop((AgeIdentities::read(&text), OpenPgpKeys::read(&text)));
    formats.into_iter().filter_map(decrypt).count() > 0
}

/// Reads any bytes as the body of a webhook, and any text as the URL of a repository.
pub fn webhooks(bytes: &[u8]) {
    for name in webhook_call::parse_call(bytes).into_iter().flatten() {
        assert!(name.contains('/') && *name == *name.to_lowercase(), "{name} is no host with a path");
    }
    drop(webhook_call::repository_name(&String::from_utf8_lossy(bytes)));
}

/// Reads any bytes as the documents of a signature; true if they are one of them.
pub fn signatures(bytes: &[u8]) -> bool {
    moorline_cosign::hostile::document(bytes)
}
