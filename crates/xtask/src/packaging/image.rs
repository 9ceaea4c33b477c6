//! Images as OCI layouts, made without a base image.
//!
//! In: the program for each architecture, and helm for the second image. Out: a folder in the
//! format of the OCI image layout: its blobs, one index over all architectures, and the same digest
//! each time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::archive::{Archive, gzip, sha256};
use super::checkout::Checkout;
use super::root_files;
use super::targets::Target;

/// The allocator returns freed memory to the kernel after 10 ms, not after a second: a Pod has a
/// limit, and under hostile input the difference is 100 MiB.
const PURGE_DELAY: &str = "MIMALLOC_PURGE_DELAY=10";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// User and group that run the program.
const USER: &str = "65532:65532";

/// Programs of one architecture.
pub(crate) struct Programs {
    pub(crate) target: &'static Target,
    pub(crate) moorline: Vec<u8>,
    /// Helm, in the image that has it.
    pub(crate) helm: Option<Vec<u8>>,
}

/// Image layout that is being made.
struct Layout {
    blobs: BTreeMap<String, Vec<u8>>,
}

/// Writes an image for some architectures into a folder, and returns the digest of its index.
pub(crate) fn write(
    folder: &Path,
    checkout: &Checkout,
    name: &str,
    programs: &[Programs],
) -> Result<String, String> {
    let mut layout = Layout { blobs: BTreeMap::new() };
    let mut manifests = Vec::new();
    for programs in programs {
        programs.target.check(&programs.moorline)?;
        if let Some(helm) = &programs.helm {
            programs.target.check(helm).map_err(|reason| format!("helm: {reason}"))?;
        }
        let mut manifest = layout.manifest(checkout, programs)?;
        manifest["platform"] =
            json!({"architecture": programs.target.architecture, "os": programs.target.system});
        manifests.push(manifest);
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": manifests,
        "annotations": labels(checkout),
    });
    let mut index = layout.add_json(INDEX, &index)?;
    let digest = index["digest"].as_str().unwrap_or_default().to_owned();
    index["annotations"] = json!({"org.opencontainers.image.ref.name": name});
    let entry = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [index]});
    layout.write(folder, &entry)?;
    Ok(digest)
}

/// Labels of an image, by which a registry shows where it comes from.
fn labels(checkout: &Checkout) -> Value {
    let mut labels = json!({
        "org.opencontainers.image.title": "moorline",
        "org.opencontainers.image.description": "Keeps a Kubernetes cluster in sync with Git.",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": checkout.version,
        "org.opencontainers.image.revision": checkout.revision,
        "org.opencontainers.image.created": checkout.date(),
    });
    if let Some(source) = &checkout.source {
        labels["org.opencontainers.image.source"] = json!(source);
    }
    labels
}

impl Layout {
    /// Adds the image of one architecture, and returns its descriptor.
    fn manifest(&mut self, checkout: &Checkout, programs: &Programs) -> Result<Value, String> {
        let mut layers = vec![root_layer(checkout, &programs.moorline)?];
        if let Some(helm) = &programs.helm {
            layers.push(helm_layer(checkout, helm)?);
        }
        let ids: Vec<String> = layers.iter().map(|layer| format!("sha256:{}", sha256(layer))).collect();
        let history: Vec<Value> = layers
            .iter()
            .map(|_| json!({"created": checkout.date(), "created_by": "cargo xtask image"}))
            .collect();
        let config = json!({
            "created": checkout.date(),
            "architecture": programs.target.architecture,
            "os": programs.target.system,
            "config": {
                "User": USER,
                "Env": ["PATH=/usr/bin", PURGE_DELAY],
                "Entrypoint": ["/moorline"],
                "WorkingDir": "/",
                "Labels": labels(checkout),
            },
            "rootfs": {"type": "layers", "diff_ids": ids},
            "history": history,
        });
        let config = self.add_json(CONFIG, &config)?;
        let mut descriptors = Vec::new();
        for layer in &layers {
            descriptors.push(self.add(LAYER, gzip(layer)?));
        }
        let manifest =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": descriptors});
        self.add_json(MANIFEST, &manifest)
    }

    fn add_json(&mut self, kind: &str, value: &Value) -> Result<Value, String> {
        let bytes = serde_json::to_vec(value).map_err(|error| format!("{kind}: {error}"))?;
        Ok(self.add(kind, bytes))
    }

    /// Adds a blob, and returns its descriptor.
    fn add(&mut self, kind: &str, bytes: Vec<u8>) -> Value {
        let (hash, size) = (sha256(&bytes), bytes.len());
        let descriptor = json!({"mediaType": kind, "digest": format!("sha256:{hash}"), "size": size});
        self.blobs.insert(hash, bytes);
        descriptor
    }

    /// Writes the layout in place of what the folder held.
    fn write(&self, folder: &Path, index: &Value) -> Result<(), String> {
        let shown = |error: std::io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(shown)?;
        }
        let blobs = folder.join("blobs/sha256");
        fs::create_dir_all(&blobs).map_err(shown)?;
        for (hash, bytes) in &self.blobs {
            fs::write(blobs.join(hash), bytes).map_err(shown)?;
        }
        fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).map_err(shown)?;
        fs::write(folder.join("index.json"), index.to_string()).map_err(shown)
    }
}

/// The layer with the program and the files that it expects in a root.
fn root_layer(checkout: &Checkout, program: &[u8]) -> Result<Vec<u8>, String> {
    let mut archive = Archive::new(checkout.time);
    root_files::add(&mut archive)?;
    archive.file("moorline", 0o755, program)?;
    archive.finish()
}

fn helm_layer(checkout: &Checkout, helm: &[u8]) -> Result<Vec<u8>, String> {
    let mut archive = Archive::new(checkout.time);
    archive.folder("usr")?;
    archive.folder("usr/bin")?;
    archive.file("usr/bin/helm", 0o755, helm)?;
    archive.finish()
}

/// Packs a layout into one file, as registries' clients take it.
pub(crate) fn pack(folder: &Path, checkout: &Checkout) -> Result<Vec<u8>, String> {
    let mut archive = Archive::new(checkout.time);
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    for name in ["index.json", "oci-layout"] {
        archive.file(name, 0o644, &read(&folder.join(name))?)?;
    }
    archive.folder("blobs")?;
    archive.folder("blobs/sha256")?;
    let blobs = folder.join("blobs/sha256");
    let entries = fs::read_dir(&blobs).map_err(|error| format!("{}: {error}", blobs.display()))?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
    names.sort();
    for name in names {
        let bytes = read(&blobs.join(&name))?;
        if sha256(&bytes) != name {
            return Err(format!(
                "{}: the blob {name} does not have the digest of its name",
                folder.display()
            ));
        }
        archive.file(&format!("blobs/sha256/{name}"), 0o644, &bytes)?;
    }
    archive.finish()
}
