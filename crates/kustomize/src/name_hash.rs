//! Hash suffixes of generated names: other content gives another name.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::resource::Resource;

/// Number of digits of the hash in a name.
const DIGITS: usize = 10;

/// Appends the hash to the names of resources that request it.
pub(super) fn add_hashes(resources: &mut [Resource]) {
    for resource in resources.iter_mut().filter(|resource| resource.needs_hash) {
        let hash = hash(resource);
        resource.record_name();
        let name = format!("{}-{hash}", resource.name());
        resource.set_name(&name);
    }
}

fn hash(resource: &Resource) -> String {
    let field = |name: &str| match resource.body.get(name) {
        None => Value::String(String::new()),
        Some(Value::Null) => Value::String("null".to_owned()),
        Some(value) => value.clone(),
    };
    let mut content = Map::new();
    content.insert("kind".into(), resource.kind().into());
    // Kustomize reads the name from a place where it never is, so it is always empty.
    content.insert("name".into(), "".into());
    content.insert("data".into(), field("data"));
    let (text, optional) = match resource.kind() {
        "Secret" => (Some("type"), "stringData"),
        _ => (None, "binaryData"),
    };
    if let Some(text) = text {
        content.insert(text.into(), field(text));
    }
    if let Some(Value::Object(map)) = resource.body.get(optional) {
        content.insert(optional.into(), Value::Object(map.clone()));
    }
    let digest = Sha256::digest(go_json(&Value::Object(content)));
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]).take(DIGITS);
    // Kustomize's alphabet: no digit that looks like a letter, and no vowel.
    digits.map(|digit| char::from(b"gh2k456789mbcdtf"[usize::from(digit)])).collect()
}

/// Formats JSON as Go does, which escapes characters of HTML.
fn go_json(value: &Value) -> String {
    let text = value.to_string();
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => escaped.push(character),
        }
    }
    escaped
}
