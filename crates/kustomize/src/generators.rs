//! Generates ConfigMaps and Secrets from literals and files.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::error::{BuildError, ErrorClass, FieldLocation};
use super::files::{Files, Folder};
use super::kustomization::{Generator, GeneratorOptions};
use super::node::LocatedText;
use super::resource::{Behavior, Resource};
use moorline_core::object::Origin;

/// Line length of base64 that is split into lines.
const BASE64_LINE: usize = 70;

/// Number of copies of a value until its object is done: as bytes, as text or base64, and in the
/// object's text.
const TIMES: usize = 4;

/// Kinds of objects that are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GeneratedKind {
    ConfigMap,
    Secret,
}

impl GeneratedKind {
    /// Field of a kustomization for the generator.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::ConfigMap => "configMapGenerator",
            Self::Secret => "secretGenerator",
        }
    }

    /// Name of the generator in kustomize.
    pub(super) fn generator_name(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMapGenerator",
            Self::Secret => "SecretGenerator",
        }
    }
}

/// Generates the object.
pub(super) fn generate(
    files: &Files<'_>,
    folder: &Folder,
    made: GeneratedKind,
    generator: &Generator,
    global: Option<&GeneratorOptions>,
) -> Result<Resource, BuildError> {
    if generator.name.is_empty() {
        return Err(generator.at.error(ErrorClass::Generator, "a generator needs a name"));
    }
    let options = merge_options(generator.options.as_ref(), global);
    let mut metadata = json!({"name": generator.name});
    if !generator.namespace.is_empty() {
        metadata["namespace"] = generator.namespace.as_str().into();
    }
    for (field, texts) in [("labels", &options.labels), ("annotations", &options.annotations)] {
        if !texts.is_empty() {
            metadata[field] = json!(texts);
        }
    }
    let before = files.decrypted.count();
    let pairs = pairs(files, folder, generator)?;
    let contains_secret = files.decrypted.claim_since(before);
    let mut body = match made {
        GeneratedKind::ConfigMap => config_map(pairs),
        GeneratedKind::Secret => secret(generator, pairs),
    };
    body["apiVersion"] = "v1".into();
    body["metadata"] = metadata;
    if options.immutable {
        body["immutable"] = true.into();
    }
    let file = files.display_path(&generator.at.file).into();
    let mut resource = Resource::new(body, Origin { file, document: 0, line: 1, item: None });
    resource.behavior = Behavior::of(&generator.behavior);
    resource.needs_hash = !options.no_hash;
    resource.contains_secret = contains_secret;
    Ok(resource)
}

/// Merges the options of a generator with those for all: own options win, labels and annotations
/// are combined.
fn merge_options(own: Option<&GeneratorOptions>, global: Option<&GeneratorOptions>) -> GeneratorOptions {
    let mut options = own.cloned().unwrap_or_default();
    let Some(global) = global else { return options };
    for (own, global) in
        [(&mut options.labels, &global.labels), (&mut options.annotations, &global.annotations)]
    {
        for (key, value) in global {
            own.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    options.no_hash |= global.no_hash;
    options.immutable |= global.immutable;
    options
}

fn config_map(pairs: BTreeMap<String, Vec<u8>>) -> Value {
    let mut body = json!({"kind": "ConfigMap"});
    for (key, bytes) in pairs {
        let (field, text) = match String::from_utf8(bytes) {
            Ok(text) => ("data", text),
            Err(error) => ("binaryData", encoded(error.as_bytes())),
        };
        body[field][key] = text.into();
    }
    body
}

fn secret(generator: &Generator, pairs: BTreeMap<String, Vec<u8>>) -> Value {
    let data: Map<String, Value> =
        pairs.into_iter().map(|(key, bytes)| (key, encoded(&bytes).into())).collect();
    let kind = if generator.secret_type.is_empty() { "Opaque" } else { &generator.secret_type };
    json!({"kind": "Secret", "type": kind, "data": data})
}

/// Encodes as base64, in lines if it is long.
fn encoded(bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    if text.len() < BASE64_LINE {
        return text;
    }
    let mut lines = String::with_capacity(text.len() + text.len() / BASE64_LINE + 1);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, others) = rest.split_at(rest.len().min(BASE64_LINE));
        lines.push_str(line);
        lines.push('\n');
        rest = others;
    }
    lines
}

fn pairs(
    files: &Files<'_>,
    folder: &Folder,
    generator: &Generator,
) -> Result<BTreeMap<String, Vec<u8>>, BuildError> {
    let mut pairs = BTreeMap::new();
    let mut add = |key: String, value: &[u8], at: &FieldLocation| {
        files.reserve((TIMES * (key.len() + value.len() + BASE64_LINE)) as u64, at)?;
        match pairs.contains_key(&key) {
            true => Err(at.error(ErrorClass::Generator, format!("the key {key} is there twice"))),
            false => {
                pairs.insert(key, value.to_vec());
                Ok(())
            }
        }
    };
    for env in &generator.envs {
        let (_, bytes) = files.file(folder, &env.text, &env.at)?;
        for (key, value) in lines(&bytes, env)? {
            add(key, &value, &env.at)?;
        }
    }
    for literal in &generator.literals {
        let (key, value) =
            literal.text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                literal.at.error(ErrorClass::Generator, "a literal has to be written as key=value")
            })?;
        add(key.to_owned(), unquoted(value).as_bytes(), &literal.at)?;
    }
    for file in &generator.files {
        let (key, path) = source(file)?;
        let (_, bytes) = files.file(folder, path, &file.at)?;
        add(key.to_owned(), &bytes, &file.at)?;
    }
    Ok(pairs)
}

/// Splits an entry of `files` into key and path.
fn source(file: &LocatedText) -> Result<(&str, &str), BuildError> {
    let text = file.text.as_str();
    let refuse = |words: &str| Err(file.at.error(ErrorClass::Generator, format!("{text}: {words}")));
    match text.split_once('=') {
        None => Ok((text.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/"), text)),
        Some((_, path)) if path.contains('=') => refuse("there is more than one equals sign in it"),
        Some(("", _)) => refuse("there is no key before the equals sign"),
        Some((_, "")) => refuse("there is no path after the equals sign"),
        Some(found) => Ok(found),
    }
}

/// Returns a literal's value without one pair of quotes around it.
fn unquoted(text: &str) -> &str {
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text)
}

/// Longest line of an env file, as kustomize reads lines.
const MAX_LINE: usize = 64 * 1024;

fn lines(bytes: &[u8], env: &LocatedText) -> Result<Vec<(String, Vec<u8>)>, BuildError> {
    let mut found = Vec::new();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let refuse = |words: &str| {
            env.at.error(ErrorClass::Generator, format!("{}:{}: {words}", env.text, number + 1))
        };
        if line.len() >= MAX_LINE {
            return Err(refuse("the line is too long"));
        }
        let line = std::str::from_utf8(line).map_err(|_| refuse("the line is not UTF-8"))?;
        let line = if number == 0 { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line };
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if !key.is_empty() {
            found.push((key.to_owned(), value.as_bytes().to_vec()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_base64_has_lines() {
        assert_eq!(encoded(b"abc"), "YWJj");
        let long = encoded(&[b'a'; 60]);
        assert_eq!(long.lines().map(str::len).collect::<Vec<_>>(), [70, 10]);
        assert!(long.ends_with('\n'));
    }

    #[test]
    fn one_pair_of_quotes_is_taken_away() {
        assert_eq!(unquoted("\"a\""), "a");
        assert_eq!(unquoted("'\"a\"'"), "\"a\"");
        assert_eq!(unquoted("\""), "\"");
        assert_eq!(unquoted("\"a'"), "\"a'");
    }
}
