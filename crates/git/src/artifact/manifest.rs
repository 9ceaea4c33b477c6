//! Manifests of artifacts: the list of layers, and the list of manifests for several platforms.
//!
//! In: JSON from a registry.
//! Out: the layers with the files, or the digest of the manifest to read instead.

use serde_json::Value;

use super::super::chart::Digest;
use super::artifact_error::ArtifactError;
use super::layer_choice::{LayerEntry, choose_layers};
use super::registry_address::LayerSelection;

/// Maximum number of bytes of a layer, and of all that are read together.
pub(super) const MAX_LAYER_BYTES: u64 = 256 * 1024 * 1024;

/// Media types of manifests and indexes, as they are asked for.
pub(super) const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, \
     application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json";

/// Media type of a manifest.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Media type of the configuration of an artifact with manifests.
pub(super) const CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";

/// Media type of an archive of manifests.
pub(super) const CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

/// Annotations with the origin of an artifact, which its author claims.
pub(super) const SOURCE: &str = "org.opencontainers.image.source";
pub(super) const REVISION: &str = "org.opencontainers.image.revision";

/// Content of a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Manifest {
    /// An artifact.
    Artifact {
        /// The layers with its files.
        layers: Vec<LayerEntry>,
        /// Source and revision that its author claims, as one line; empty without them.
        claims: String,
    },
    /// A list of manifests; the one for this platform.
    Index(Digest),
}

/// Reads a manifest, and chooses the layers with the files.
pub(super) fn read_manifest(bytes: &[u8], wanted: &LayerSelection) -> Result<Manifest, ArtifactError> {
    let refuse = |problem: &'static str| ArtifactError::Manifest(problem.into());
    let manifest: Value =
        serde_json::from_slice(bytes).map_err(|_| refuse("has a manifest that is no JSON"))?;
    if let Some(listed) = manifest["manifests"].as_array() {
        return match platform(listed) {
            Some(digest) => Ok(Manifest::Index(digest)),
            None => Err(refuse("is a list of manifests, and none of them can be read")),
        };
    }
    let layers = manifest["layers"].as_array();
    let layers = layers.ok_or_else(|| refuse("has a manifest without layers"))?;
    let layers = choose_layers(layers, wanted)?;
    Ok(Manifest::Artifact { layers, claims: claims(&manifest["annotations"]) })
}

/// Returns the manifest for linux/amd64, or the first one that is no attestation.
fn platform(listed: &[Value]) -> Option<Digest> {
    let text = |entry: &Value, name: &str| entry["platform"][name].as_str().unwrap_or_default().to_owned();
    let is_ours = |entry: &&Value| text(entry, "os") == "linux" && text(entry, "architecture") == "amd64";
    let is_artifact = |entry: &&Value| text(entry, "os") != "unknown";
    let found = listed.iter().find(is_ours).or_else(|| listed.iter().find(is_artifact))?;
    Digest::parse(found["digest"].as_str()?)
}

/// Returns the origin that the author claims.
fn claims(annotations: &Value) -> String {
    let text = |name: &str| annotations[name].as_str().filter(|text| !text.is_empty());
    match (text(REVISION), text(SOURCE)) {
        (None, None) => String::new(),
        (Some(revision), None) => format!("claims to be {revision}"),
        (None, Some(source)) => format!("claims to be of {source}"),
        (Some(revision), Some(source)) => format!("claims to be {revision} of {source}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(text: &str) -> String {
        Digest::hash(text.as_bytes()).to_string()
    }

    #[test]
    fn a_manifest_without_a_list_of_layers_is_refused() {
        for wrong in ["", "[]", "{}", "{\"layers\": 1}"] {
            assert!(read_manifest(wrong.as_bytes(), &LayerSelection::default()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_leads_to_the_manifest_of_a_platform() {
        let entry = |os: &str, cpu: &str| {
            let digest = digest(&format!("{os}{cpu}"));
            json!({"digest": digest, "platform": {"os": os, "architecture": cpu}})
        };
        let found = |listed: &[Value]| match read_manifest(
            json!({"manifests": listed}).to_string().as_bytes(),
            &LayerSelection::default(),
        ) {
            Ok(Manifest::Index(digest)) => Some(digest.to_string()),
            _ => None,
        };
        let (arm, amd) = (entry("linux", "arm64"), entry("linux", "amd64"));
        let attestation = entry("unknown", "unknown");
        assert_eq!(found(&[arm.clone(), amd]), Some(digest("linuxamd64")));
        assert_eq!(found(&[attestation.clone(), arm]), Some(digest("linuxarm64")));
        assert_eq!(found(&[json!({"digest": digest("x")})]), Some(digest("x")));
        assert_eq!(found(&[attestation]), None);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn claims_are_marked_as_claims() {
        let both = json!({SOURCE: "https://host/a.git", REVISION: "main@sha1:12"});
        assert_eq!(claims(&both), "claims to be main@sha1:12 of https://host/a.git");
        assert_eq!(claims(&json!({REVISION: "x"})), "claims to be x");
        assert_eq!(claims(&json!({SOURCE: 1})), "");
    }
}
