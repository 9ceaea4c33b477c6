//! Reads the release that helm stored in the cluster.
//!
//! In: the Secret of a release. Out: the objects of its manifest, as the entries of a status.
//! Values in the manifest are dropped at once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use serde_json::{Value, json};

use super::sync_builder::text;
use crate::yaml::{self, Dialect};

/// Maximum number of bytes of a release, unpacked.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// First bytes of a gzip stream without optional fields, and the number of bytes around its
/// content.
const GZIP: ([u8; 4], usize, usize) = ([0x1f, 0x8b, 8, 0], 10, 8);

/// Returns the name of the Secret of a release.
pub fn storage_name(release: &str, revision: i64) -> String {
    format!("sh.helm.release.v1.{release}.v{revision}")
}

/// Returns the objects of a stored release as inventory entries; none if it cannot be read. The
/// namespace of the release is that of objects without one.
pub fn stored_inventory(secret: &Value) -> Option<Value> {
    let stored = STANDARD.decode(text(secret, "/data/release")).ok()?;
    let packed = STANDARD.decode(stored).ok()?;
    let (magic, head, tail) = GZIP;
    let end = packed.len().checked_sub(tail).filter(|_| packed.starts_with(&magic))?;
    let release = decompress_to_vec_with_limit(packed.get(head..end)?, MAX_BYTES).ok()?;
    let release: Value = serde_json::from_slice(&release).ok()?;
    let namespace = text(&release, "/namespace");
    let documents = yaml::read("release", text(&release, "/manifest").as_bytes(), Dialect::Kubectl).ok()?;
    let entry = |object: &Value| {
        let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let own = text(object, "/metadata/namespace");
        let place = if own.is_empty() { namespace } else { own };
        let name = text(object, "/metadata/name").replace(':', "__");
        (!kind.is_empty()).then(|| json!({"id": format!("{place}_{name}_{group}_{kind}"), "v": version}))
    };
    let entries: Vec<Value> = documents.iter().filter_map(|document| entry(&document.value)).collect();
    Some(json!({"entries": entries}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_release_names_its_objects() {
        let manifest = "---\n# Source: a\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: cGxhbnRlZA==}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: other}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"a:b\"}\n";
        let release = json!({"name": "shop", "namespace": "team", "manifest": manifest}).to_string();
        let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
        gzip.extend(miniz_oxide::deflate::compress_to_vec(release.as_bytes(), 6));
        gzip.extend([0; 8]);
        let data = STANDARD.encode(STANDARD.encode(gzip));
        let found = stored_inventory(&json!({"data": {"release": data}})).unwrap();
        let ids: Vec<&str> =
            found["entries"].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap()).collect();
        assert_eq!(
            ids,
            [
                "team_a__Secret",
                "other_web_apps_Deployment",
                "team_a__b_rbac.authorization.k8s.io_ClusterRole"
            ]
        );
        for wrong in ["", "planted", "cGxhbnRlZA=="] {
            assert_eq!(stored_inventory(&json!({"data": {"release": wrong}})), None);
        }
    }
}
