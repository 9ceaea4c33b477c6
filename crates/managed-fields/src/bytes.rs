//! Compact binary form of a field set: equal sets have equal bytes, compared by digest and kept
//! compressed.
//!
//! In: a [`FieldSet`].
//! Out: its digest and its compressed bytes, and the set from such bytes. The bytes stay in memory:
//! no other version of this program reads them.

use std::collections::BTreeMap;

use miniz_oxide::deflate::{CompressionLevel, compress_to_vec};
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use sha2::{Digest as _, Sha256};

use super::{Element, FieldSet, MAX_DEPTH, Node};

/// Identifies a set: the first half of the SHA-256 of its canonical bytes.
pub type Digest = [u8; 16];

/// Maximum size after decompression. An object has at most 1.5 MB, `managedFields` included.
const MAX_UNPACKED: usize = 8 << 20;

impl FieldSet {
    /// Returns the digest: equal for equal sets, in whichever order they were written.
    pub fn digest(&self) -> Digest {
        let digest = Sha256::digest(self.canonical());
        let mut half = Digest::default();
        half.copy_from_slice(&digest[..16]);
        half
    }

    /// Compresses the set.
    pub fn to_bytes(&self) -> Vec<u8> {
        compress_to_vec(&self.canonical(), CompressionLevel::BestCompression as u8)
    }

    /// Reads compressed bytes; none if they are no valid set.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let canonical = decompress_to_vec_with_limit(bytes, MAX_UNPACKED).ok()?;
        let mut rest = canonical.as_slice();
        let root = read(&mut rest, MAX_DEPTH)?;
        rest.is_empty().then_some(Self { root })
    }

    fn canonical(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write(&self.root, &mut out);
        out
    }
}

/// Writes the number of children and the ownership of the node as one number, then the children.
fn write(node: &Node, out: &mut Vec<u8>) {
    write_number(node.children.len() << 1 | usize::from(node.owned), out);
    for (element, child) in &node.children {
        let index;
        let (tag, text) = match element {
            Element::Field(text) => (b'f', &**text),
            Element::Key(text) => (b'k', &**text),
            Element::Value(text) => (b'v', &**text),
            Element::Index(at) => {
                index = at.to_string();
                (b'i', index.as_str())
            }
            Element::Other(text) => (b'?', &**text),
        };
        out.push(tag);
        write_number(text.len(), out);
        out.extend_from_slice(text.as_bytes());
        write(child, out);
    }
}

fn read(rest: &mut &[u8], depth: usize) -> Option<Node> {
    let number = read_number(rest)?;
    let mut children = BTreeMap::new();
    for _ in 0..number >> 1 {
        let depth = depth.checked_sub(1)?;
        let (tag, after) = rest.split_first()?;
        *rest = after;
        let length = read_number(rest)?;
        let (text, after) = rest.split_at_checked(length)?;
        *rest = after;
        let text = std::str::from_utf8(text).ok()?;
        let element = match tag {
            b'f' => Element::Field(text.into()),
            b'k' => Element::Key(text.into()),
            b'v' => Element::Value(text.into()),
            b'i' => Element::Index(text.parse().ok()?),
            b'?' => Element::Other(text.into()),
            _ => return None,
        };
        let child = read(rest, depth)?;
        // A node that owns nothing and has no children is never written.
        (child.owned || !child.children.is_empty()).then_some(())?;
        children.insert(element, child);
    }
    Some(Node { owned: number & 1 == 1, children })
}

/// Writes seven bits a byte, the lowest first; the eighth bit means that more follow.
fn write_number(mut number: usize, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(number as u8 & 0x7f | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_number(rest: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Managed fields of a Deployment of realistic size.
    fn deployment() -> Value {
        json!({
            "f:metadata": {
                "f:annotations": {"f:moorline.dev/id": {}, "f:moorline.dev/spec-hash": {}},
                "f:labels": {"f:app.kubernetes.io/name": {}, "f:moorline.dev/sync": {}},
            },
            "f:spec": {
                "f:replicas": {}, "f:selector": {},
                "f:template": {
                    "f:metadata": {"f:labels": {"f:app.kubernetes.io/name": {}}},
                    "f:spec": {
                        "f:serviceAccountName": {},
                        "f:containers": {"k:{\"name\":\"app\"}": {
                            ".": {}, "f:args": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {},
                            "f:env": {
                                "k:{\"name\":\"REGION\"}": {".": {}, "f:name": {}, "f:value": {}},
                                "k:{\"name\":\"SHARD\"}": {".": {}, "f:name": {}, "f:value": {}},
                            },
                            "f:ports": {"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:name": {}}},
                            "f:readinessProbe": {"f:httpGet": {"f:path": {}, "f:port": {}}, "f:periodSeconds": {}},
                            "f:resources": {"f:limits": {"f:memory": {}}, "f:requests": {"f:cpu": {}, "f:memory": {}}},
                        }},
                    },
                },
            },
        })
    }

    #[test]
    fn a_small_deployment_takes_about_four_hundred_bytes() {
        let set = FieldSet::parse(&deployment());
        let bytes = set.to_bytes();
        assert!((200..450).contains(&bytes.len()), "{} bytes", bytes.len());
        assert_eq!(FieldSet::from_bytes(&bytes), Some(set));
    }

    #[test]
    fn bytes_that_are_no_set_are_refused() {
        let packed = |canonical: &[u8]| compress_to_vec(canonical, 1);
        assert_eq!(FieldSet::from_bytes(&packed(&[0])), Some(FieldSet::default()));
        for wrong in [
            &[][..],
            &[2],
            &[2, b'f', 9, b'a'],
            &[2, b'z', 0, 1],
            &[0, 0],
            &[0xff; 12],
            &[2, b'i', 1, b'a', 1],
        ] {
            assert_eq!(FieldSet::from_bytes(&packed(wrong)), None, "{wrong:?}");
        }
        assert_eq!(FieldSet::from_bytes(b"nonsense"), None);
        let mut bytes = FieldSet::parse(&deployment()).to_bytes();
        bytes.truncate(bytes.len() / 2);
        assert_eq!(FieldSet::from_bytes(&bytes), None);
    }

    #[test]
    fn the_digest_tells_sets_apart() {
        let digest = |fields: Value| FieldSet::parse(&fields).digest();
        assert_eq!(digest(json!({"f:a": {}, "f:b": {}})), digest(json!({"f:b": {}, "f:a": {".": {}}})));
        let others = [
            json!({}),
            json!({"f:a": {}}),
            json!({"f:a": {"f:b": {}}}),
            json!({"f:a": {".": {}, "f:b": {}}}),
            json!({"v:\"a\"": {}}),
        ];
        for (at, one) in others.iter().enumerate() {
            assert!(others[..at].iter().all(|other| digest(other.clone()) != digest(one.clone())), "{one}");
        }
    }
}
