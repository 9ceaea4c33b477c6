//! Decodes protobuf bodies: kubectl sends some objects only in this encoding.
//!
//! In: the bytes of a request.
//! Out: the object as JSON; `None` for a malformed message or an unsupported kind. Supported are
//! the kinds of `kubectl create namespace|configmap|secret|serviceaccount` and of `kubectl auth`. A
//! message with an unknown field is refused; no field is dropped.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// First bytes of every Kubernetes message.
const MAGIC: &[u8] = b"k8s\0";

/// Maximum nesting of messages; the kinds here need four levels.
const MAX_DEPTH: u8 = 16;

/// A field: number, name and type.
type FieldSpec = (u64, &'static str, FieldType);

/// Type of a field.
#[derive(Clone, Copy)]
enum FieldType {
    Text,
    Bytes,
    Integer,
    Boolean,
    Time,
    Texts,
    TextMap,
    BytesMap,
    Message(&'static [FieldSpec]),
    Messages(&'static [FieldSpec]),
    /// Skipped: only the server sets this field.
    Left,
}

const OWNER: &[FieldSpec] = &[
    (1, "kind", FieldType::Text),
    (3, "name", FieldType::Text),
    (4, "uid", FieldType::Text),
    (5, "apiVersion", FieldType::Text),
    (6, "controller", FieldType::Boolean),
    (7, "blockOwnerDeletion", FieldType::Boolean),
];

const METADATA: &[FieldSpec] = &[
    (1, "name", FieldType::Text),
    (2, "generateName", FieldType::Text),
    (3, "namespace", FieldType::Text),
    (4, "selfLink", FieldType::Left),
    (5, "uid", FieldType::Text),
    (6, "resourceVersion", FieldType::Text),
    (7, "generation", FieldType::Integer),
    (8, "creationTimestamp", FieldType::Time),
    (11, "labels", FieldType::TextMap),
    (12, "annotations", FieldType::TextMap),
    (13, "ownerReferences", FieldType::Messages(OWNER)),
    (14, "finalizers", FieldType::Texts),
    (17, "managedFields", FieldType::Left),
];

const RESOURCE: &[FieldSpec] = &[
    (1, "namespace", FieldType::Text),
    (2, "verb", FieldType::Text),
    (3, "group", FieldType::Text),
    (4, "version", FieldType::Text),
    (5, "resource", FieldType::Text),
    (6, "subresource", FieldType::Text),
    (7, "name", FieldType::Text),
    (8, "fieldSelector", FieldType::Left),
    (9, "labelSelector", FieldType::Left),
];

const ACCESS: &[FieldSpec] = &[
    (1, "resourceAttributes", FieldType::Message(RESOURCE)),
    (
        2,
        "nonResourceAttributes",
        FieldType::Message(&[(1, "path", FieldType::Text), (2, "verb", FieldType::Text)]),
    ),
];

/// Supported kinds: version, kind, fields.
const KINDS: [(&str, &str, &[FieldSpec]); 8] = [
    (
        "v1",
        "Namespace",
        &[
            (1, "metadata", FieldType::Message(METADATA)),
            (2, "spec", FieldType::Message(&[(1, "finalizers", FieldType::Texts)])),
            (3, "status", FieldType::Left),
        ],
    ),
    (
        "v1",
        "ConfigMap",
        &[
            (1, "metadata", FieldType::Message(METADATA)),
            (2, "data", FieldType::TextMap),
            (3, "binaryData", FieldType::BytesMap),
            (4, "immutable", FieldType::Boolean),
        ],
    ),
    (
        "v1",
        "Secret",
        &[
            (1, "metadata", FieldType::Message(METADATA)),
            (2, "data", FieldType::BytesMap),
            (3, "type", FieldType::Text),
            (4, "stringData", FieldType::TextMap),
            (5, "immutable", FieldType::Boolean),
        ],
    ),
    ("v1", "ServiceAccount", &[(1, "metadata", FieldType::Message(METADATA))]),
    (
        "authorization.k8s.io/v1",
        "SelfSubjectAccessReview",
        &[
            (1, "metadata", FieldType::Message(METADATA)),
            (2, "spec", FieldType::Message(ACCESS)),
            (3, "status", FieldType::Left),
        ],
    ),
    (
        "authorization.k8s.io/v1",
        "SelfSubjectRulesReview",
        &[
            (1, "metadata", FieldType::Message(METADATA)),
            (2, "spec", FieldType::Message(&[(1, "namespace", FieldType::Text)])),
            (3, "status", FieldType::Left),
        ],
    ),
    (
        "authentication.k8s.io/v1",
        "SelfSubjectReview",
        &[(1, "metadata", FieldType::Message(METADATA)), (2, "status", FieldType::Left)],
    ),
    (
        "authentication.k8s.io/v1beta1",
        "SelfSubjectReview",
        &[(1, "metadata", FieldType::Message(METADATA)), (2, "status", FieldType::Left)],
    ),
];

/// Decodes a body.
pub(crate) fn read(body: &[u8]) -> Option<Value> {
    let (mut version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    let mut envelope = Reader(body.strip_prefix(MAGIC)?);
    while let Some((number, value)) = envelope.field()? {
        match (number, value) {
            (1, WireValue::Bytes(bytes)) => {
                let mut about = Reader(bytes);
                while let Some((number, value)) = about.field()? {
                    match number {
                        1 => version = value.text()?,
                        2 => kind = value.text()?,
                        _ => return None,
                    }
                }
            }
            (2, WireValue::Bytes(bytes)) => raw = bytes,
            // Encoding and content type of the payload: empty means plain protobuf.
            (3 | 4, WireValue::Bytes([])) => {}
            (4, WireValue::Bytes(_)) => {}
            _ => return None,
        }
    }
    let (.., fields) = KINDS.iter().find(|(of, named, _)| *of == version && *named == kind)?;
    let mut object = message(raw, fields, MAX_DEPTH)?;
    object.insert("apiVersion".to_owned(), version.into());
    object.insert("kind".to_owned(), kind.into());
    Some(object.into())
}

fn message(bytes: &[u8], fields: &[FieldSpec], depth: u8) -> Option<Map<String, Value>> {
    let depth = depth.checked_sub(1)?;
    let mut object = Map::new();
    let mut reader = Reader(bytes);
    while let Some((number, part)) = reader.field()? {
        let (_, name, is) = fields.iter().find(|(known, ..)| *known == number)?;
        let name = (*name).to_owned();
        match is {
            FieldType::Left => {}
            FieldType::Text => {
                // JSON leaves out empty text.
                let text = part.text()?;
                if !text.is_empty() {
                    object.insert(name, text.into());
                }
            }
            FieldType::Bytes => drop(object.insert(name, STANDARD.encode(part.bytes()?).into())),
            FieldType::Integer => match i64::from_ne_bytes(part.number()?.to_ne_bytes()) {
                0 => {}
                number => drop(object.insert(name, number.into())),
            },
            FieldType::Boolean => drop(object.insert(name, (part.number()? != 0).into())),
            FieldType::Time => object.extend(time(part.bytes()?)?.map(|time| (name, time))),
            FieldType::Message(fields) => {
                drop(object.insert(name, message(part.bytes()?, fields, depth)?.into()));
            }
            FieldType::Texts => push(&mut object, name, part.text()?.into())?,
            FieldType::Messages(fields) => {
                push(&mut object, name, message(part.bytes()?, fields, depth)?.into())?
            }
            FieldType::TextMap | FieldType::BytesMap => {
                let of = if matches!(is, FieldType::BytesMap) { FieldType::Bytes } else { FieldType::Text };
                let mut entry =
                    message(part.bytes()?, &[(1, "key", FieldType::Text), (2, "value", of)], depth)?;
                let key = entry.remove("key").and_then(|key| key.as_str().map(str::to_owned));
                let value = entry.remove("value").unwrap_or_else(|| "".into());
                let map = object.entry(name).or_insert_with(|| json!({})).as_object_mut()?;
                map.insert(key.unwrap_or_default(), value);
            }
        }
    }
    Some(object)
}

fn push(object: &mut Map<String, Value>, name: String, value: Value) -> Option<()> {
    object.entry(name).or_insert_with(|| json!([])).as_array_mut()?.push(value);
    Some(())
}

/// Decodes a time; `Some(None)` for the zero time.
fn time(bytes: &[u8]) -> Option<Option<Value>> {
    let mut seconds = None;
    let mut reader = Reader(bytes);
    while let Some((number, part)) = reader.field()? {
        if number == 1 {
            seconds = Some(i64::from_ne_bytes(part.number()?.to_ne_bytes()));
        }
    }
    let Some(seconds) = seconds else { return Some(None) };
    Some(Some(Timestamp::from_second(seconds).ok()?.to_string().into()))
}

/// Value of a field on the wire.
#[derive(Clone, Copy)]
enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> WireValue<'a> {
    fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }

    fn text(self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Bytes(_) => None,
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads the next field; `Some(None)` at the end, `None` if the bytes are malformed.
    fn field(&mut self) -> Option<Option<(u64, WireValue<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let tag = self.number()?;
        let part = match tag & 7 {
            0 => WireValue::Number(self.number()?),
            2 => {
                let length = usize::try_from(self.number()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                WireValue::Bytes(bytes)
            }
            _ => return None,
        };
        Some(Some((tag >> 3, part)))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a field that contains bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    fn body(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let about = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC, &field(1, &about), &field(2, raw), &field(3, b""), &field(4, b"")].concat()
    }

    #[test]
    fn a_secret_is_read() {
        let label = [field(1, b"app"), field(2, b"web")].concat();
        let metadata =
            [field(1, b"s"), field(2, b""), field(8, b""), vec![7 << 3, 0], field(11, &label)].concat();
        let entry = [field(1, b"key"), field(2, b"one")].concat();
        let raw = [field(1, &metadata), field(2, &entry), field(3, b"Opaque")].concat();
        let expect = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"key": "b25l"},
            "metadata": {"name": "s", "labels": {"app": "web"}},
        });
        assert_eq!(read(&body("v1", "Secret", &raw)), Some(expect));
    }

    #[test]
    fn whatever_is_not_known_is_refused() {
        let check = |body: &[u8]| assert_eq!(read(body), None, "{body:?}");
        check(b"");
        check(b"{}");
        check(b"k8s\0\xff\xff\xff");
        check(&body("apps/v1", "Deployment", b""));
        check(&body("v1", "ConfigMap", &field(9, b"what is it")));
        check(&body("v1", "ConfigMap", &field(1, &field(1, b"\xff"))));
        let whole = body("v1", "Secret", &field(3, b"Opaque"));
        for end in 0..whole.len() - 4 {
            drop(read(&whole[..end]));
        }
    }

    #[test]
    fn a_question_about_rights_is_read() {
        let resource = [field(1, b"shop"), field(2, b"get"), field(5, b"pods")].concat();
        let raw = [field(1, b""), field(2, &field(1, &resource)), field(3, &[8, 0])].concat();
        let read = read(&body("authorization.k8s.io/v1", "SelfSubjectAccessReview", &raw)).unwrap();
        let expect = json!({"resourceAttributes": {"namespace": "shop", "verb": "get", "resource": "pods"}});
        assert_eq!(read["spec"], expect);
    }
}
