//! Manifests of artifacts: the list of layers, and the list of manifests for several platforms.
//!
//! In: JSON from a registry.
//! Out: the layer with the files, or the digest of the manifest to read instead.

use serde_json::Value;

use super::super::chart::Digest;
use super::artifact_error::ArtifactError;
use super::registry_address::LayerSelection;
use moorline_core::sanitize::sanitize;

/// Maximum number of bytes of a layer.
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

/// Annotation of a layer with the name of its file.
const TITLE: &str = "org.opencontainers.image.title";

/// Maximum number of media types in a message, and of characters of each.
const MAX_SHOWN: usize = 5;
const MAX_SHOWN_CHARACTERS: usize = 100;

/// Content of a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Manifest {
    /// An artifact.
    Artifact {
        /// The layer with its files.
        layer: LayerEntry,
        /// Source and revision that its author claims, as one line; empty without them.
        claims: String,
    },
    /// A list of manifests; the one for this platform.
    Index(Digest),
}

/// A layer in a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LayerEntry {
    pub(super) digest: Digest,
    pub(super) size: u64,
    pub(super) media_type: Box<str>,
    title: Option<Box<str>>,
}

impl LayerEntry {
    /// Returns the name of the file, if the layer is one: its title, or one by its media type.
    pub(super) fn file_name(&self) -> String {
        let is_plain = |title: &str| {
            !title.is_empty()
                && title.len() <= 255
                && ![".", ".."].contains(&title)
                && title.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte))
        };
        match &self.title {
            Some(title) if is_plain(title) => title.to_string(),
            _ if self.media_type.contains("json") => "layer.json".to_owned(),
            _ => "layer.yaml".to_owned(),
        }
    }
}

/// Reads a manifest, and chooses a layer.
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
    let found = choose(layers, wanted.media_type.as_deref())?;
    let digest = found["digest"].as_str().and_then(Digest::parse);
    let digest = digest.ok_or_else(|| refuse("has a layer without a SHA-256"))?;
    let size = found["size"].as_u64().ok_or_else(|| refuse("has a layer without a size"))?;
    if size > MAX_LAYER_BYTES {
        let limit = MAX_LAYER_BYTES;
        return Err(ArtifactError::Manifest(
            format!("has a layer of {size} bytes; {limit} are allowed").into(),
        ));
    }
    let layer = LayerEntry {
        digest,
        size,
        media_type: media_type(found).into(),
        title: found["annotations"][TITLE].as_str().map(Into::into),
    };
    Ok(Manifest::Artifact { layer, claims: claims(&manifest["annotations"]) })
}

/// Returns the layer with a media type, or the only one.
fn choose<'a>(layers: &'a [Value], wanted: Option<&str>) -> Result<&'a Value, ArtifactError> {
    let is_of = |media: &str| layers.iter().filter(|layer| media_type(layer) == media).collect::<Vec<_>>();
    let has = || {
        let shown = layers
            .iter()
            .take(MAX_SHOWN)
            .map(|layer| sanitize(&media_type(layer).chars().take(MAX_SHOWN_CHARACTERS).collect::<String>()));
        shown.collect::<Vec<_>>().join(", ")
    };
    let problem = match (wanted, layers) {
        (None, [only]) => return Ok(only),
        (_, []) => "has no layer".to_owned(),
        (Some(wanted), _) => match is_of(wanted).as_slice() {
            [only] => return Ok(only),
            [] => format!("has no layer of the media type in layer.mediaType; its layers are of {}", has()),
            _ => "has several layers of the media type in layer.mediaType".to_owned(),
        },
        (None, _) => match is_of(CONTENT).as_slice() {
            [only] => return Ok(only),
            _ => format!("has {} layers; choose one by layer.mediaType: {}", layers.len(), has()),
        },
    };
    Err(ArtifactError::Manifest(problem.into()))
}

fn media_type(layer: &Value) -> &str {
    layer["mediaType"].as_str().unwrap_or_default()
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

    fn layer(media: &str, name: &str) -> Value {
        json!({"mediaType": media, "digest": digest(name), "size": 3})
    }

    fn chosen(layers: &[Value], wanted: Option<&str>) -> Result<String, String> {
        let wanted = LayerSelection { media_type: wanted.map(Into::into), copies: false };
        match read_manifest(json!({"layers": layers}).to_string().as_bytes(), &wanted) {
            Ok(Manifest::Artifact { layer, .. }) => Ok(layer.digest.to_string()),
            Ok(Manifest::Index(_)) => Err("an index".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn one_layer_is_chosen_or_a_person_is_asked() {
        let (one, two, content) = (layer("a/one", "1"), layer("a/two", "2"), layer(CONTENT, "3"));
        assert_eq!(chosen(std::slice::from_ref(&one), None), Ok(digest("1")));
        assert_eq!(chosen(&[one.clone(), two.clone()], Some("a/two")), Ok(digest("2")));
        assert_eq!(chosen(&[one.clone(), content.clone()], None), Ok(digest("3")));
        for (layers, wanted, part) in [
            (vec![], None, "no layer"),
            (vec![one.clone()], Some("a/two"), "its layers are of a/one"),
            (vec![one.clone(), two], None, "choose one by layer.mediaType: a/one, a/two"),
            (vec![one.clone(), one], Some("a/one"), "several layers"),
            (vec![content.clone(), content], None, "has 2 layers"),
            (vec![json!({"mediaType": "a/b", "digest": "sha512:1", "size": 1})], None, "SHA-256"),
            (vec![json!({"mediaType": "a/b", "digest": digest("1")})], None, "without a size"),
            (vec![json!({"mediaType": "a/b", "digest": digest("1"), "size": -1})], None, "without a size"),
            (
                vec![json!({"mediaType": "a/b", "digest": digest("1"), "size": 1u64 << 40})],
                None,
                "are allowed",
            ),
        ] {
            let problem = chosen(&layers, wanted).unwrap_err();
            assert!(problem.contains(part), "{part}: {problem}");
        }
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
    fn a_file_has_a_safe_name_and_claims_are_marked_as_claims() {
        let named = |title: &str, media: &str| {
            let entry = LayerEntry {
                digest: Digest::hash(b""),
                size: 0,
                media_type: media.into(),
                title: Some(title.into()),
            };
            entry.file_name()
        };
        assert_eq!(named("deploy.yaml", "text/yaml"), "deploy.yaml");
        for title in ["", "..", "a/b", "/etc/passwd", "a\nb", &"a".repeat(256)] {
            assert_eq!(named(title, "text/yaml"), "layer.yaml", "{title}");
        }
        assert_eq!(named("", "application/json"), "layer.json");
        let both = json!({SOURCE: "https://host/a.git", REVISION: "main@sha1:12"});
        assert_eq!(claims(&both), "claims to be main@sha1:12 of https://host/a.git");
        assert_eq!(claims(&json!({REVISION: "x"})), "claims to be x");
        assert_eq!(claims(&json!({SOURCE: 1})), "");
    }
}
