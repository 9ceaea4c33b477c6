//! Checks the header of a manifest (`apiVersion`, `kind`, `metadata`) and makes an [`Object`] of
//! it. The contents of `spec` are left to the API server.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::documents::{MAX_PROBLEMS_PER_FILE, Manifest, position_in};
use super::problem::Problem;
use crate::secret_data;
use crate::top_level_fields;
use moorline_api::{ARGO_HOOK_ANNOTATIONS, HELM_HOOK_ANNOTATIONS, HOOK_ANNOTATION};
use moorline_core::did_you_mean::nearest_name;
use moorline_core::name_rules;
use moorline_core::object::{Object, ObjectId, Origin};
use moorline_core::position::SourcePosition;
use moorline_core::tree::MemoryLimit;
use moorline_yaml::{Step, type_name};

/// Fields of `metadata`, including those that only the API server writes.
const METADATA_FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Checks the header of a manifest. Reports every problem, up to a limit, because each costs
/// another reading of the file.
pub(super) fn check_manifest(
    manifest: Manifest,
    source: (&[u8], &MemoryLimit),
) -> Result<Object, Vec<Problem>> {
    let Manifest { mut body, origin } = manifest;
    name_hook(&mut body);
    let mut head = ManifestHeader { body: &body, source, origin: &origin, problems: Vec::new() };
    let parts = head.check();
    let problems = head.problems;
    match (parts, problems.is_empty()) {
        (Some((id, version)), true) => Ok(Object { id, version, body, origin }),
        _ => Err(problems),
    }
}

/// Gives a hook with `generateName` a name made of its content, so that equal content is the same
/// object.
fn name_hook(body: &mut Map<String, Value>) {
    let Some(Value::Object(metadata)) = body.get("metadata") else { return };
    let annotation = |key: &str| metadata.get("annotations").and_then(|all| all.get(key));
    let is_hook = HOOKS.into_iter().any(|key| annotation(key).is_some());
    let prefix = metadata.get("generateName").and_then(Value::as_str).filter(|prefix| !prefix.is_empty());
    let (Some(prefix), true, None) = (prefix, is_hook, metadata.get("name")) else { return };
    // A mapping is written with sorted keys, so the spelling of the file does not matter.
    let digest = Sha256::digest(Value::Object(body.clone()).to_string());
    let name = digest[..NAME].iter().fold(prefix.to_owned(), |name, byte| name + &format!("{byte:02x}"));
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        metadata.remove("generateName");
        metadata.insert("name".into(), name.into());
    }
}

/// Annotations that make an object a hook.
const HOOKS: [&str; 3] = [HOOK_ANNOTATION, ARGO_HOOK_ANNOTATIONS[0], HELM_HOOK_ANNOTATIONS[0]];
/// Number of hash bytes in a hook's name.
const NAME: usize = 5;
/// Number of hex digits at the end of a hook's name.
pub const HOOK_NAME_DIGITS: usize = 2 * NAME;

struct ManifestHeader<'a> {
    body: &'a Map<String, Value>,
    /// Bytes of its file.
    source: (&'a [u8], &'a MemoryLimit),
    origin: &'a Origin,
    problems: Vec<Problem>,
}

impl<'a> ManifestHeader<'a> {
    fn check(&mut self) -> Option<(ObjectId, Box<str>)> {
        let (group, version, kind) = self.type_of_object()?;
        // A SopsSecret custom resource is meant to be applied encrypted.
        if self.body.contains_key("sops") && kind != "SopsSecret" {
            let place = self.place(&["sops"]);
            self.problems.push(Problem::Encrypted { place });
            return None;
        }
        let metadata = self.metadata(kind)?;
        self.known_top_fields(group, kind);
        self.known_fields(metadata);
        self.text_maps(metadata);
        self.refuse_owners(metadata);
        let name = self.name(metadata, group, kind);
        let namespace = self.namespace(metadata);
        if (group, kind) == ("", "Secret") {
            let (source, origin) = (self.source, self.origin);
            self.problems.extend(secret_data::check(self.body, |path| position_in(source, origin, path)));
        }
        let id = ObjectId::new(group, kind, namespace?, name?);
        match id {
            Ok(id) => Some((id, version.into())),
            Err(error) => {
                let place = self.place(&[]);
                let (field, rule) = (error.part.to_owned(), error.problem);
                self.problems.push(Problem::BadText { place, field, text: error.text, rule });
                None
            }
        }
    }

    fn type_of_object(&mut self) -> Option<(&'a str, &'a str, &'a str)> {
        let (has, lacks) = match (self.body.get("apiVersion"), self.body.get("kind")) {
            (Some(_), Some(_)) => {
                let api_version = self.string(self.body, &["apiVersion"])?;
                let kind = self.string(self.body, &["kind"])?;
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                self.text_rule(&["kind"], kind, name_rules::kind(kind));
                self.text_rule(&["apiVersion"], api_version, name_rules::api_version(api_version));
                return self.problems.is_empty().then_some((group, version, kind));
            }
            (Some(_), None) => (Some("apiVersion"), "kind"),
            (None, Some(_)) => (Some("kind"), "apiVersion"),
            (None, None) => (None, "both"),
        };
        let place = self.place(&[]);
        self.problems.push(Problem::IncompleteType { place, has, lacks });
        None
    }

    fn metadata(&mut self, kind: &str) -> Option<&'a Map<String, Value>> {
        match self.body.get("metadata") {
            Some(Value::Object(metadata)) => Some(metadata),
            Some(Value::Null) | None => {
                let others = self.body.keys().map(String::as_str);
                let near = nearest_name("metadata", others.filter(|field| *field != "metadata"));
                self.missing(kind, "metadata", near);
                None
            }
            Some(other) => {
                self.wrong_type(&["metadata"], "a mapping", other);
                None
            }
        }
    }

    fn known_fields(&mut self, metadata: &'a Map<String, Value>) {
        let unknown = metadata.keys().filter(|field| !METADATA_FIELDS.contains(&field.as_str()));
        for field in unknown.take(MAX_PROBLEMS_PER_FILE) {
            let place = self.place(&["metadata", field]);
            let nearest = nearest_name(field, METADATA_FIELDS).map(str::to_owned);
            let (of, field) = ("metadata".to_owned(), field.clone());
            self.problems.push(Problem::UnknownField { place, of, field, nearest });
        }
    }

    /// Checks the top-level fields of the kinds whose fields are known.
    fn known_top_fields(&mut self, group: &str, kind: &str) {
        let Some(known) = top_level_fields::fields_of_kind(group, kind) else { return };
        for field in self.body.keys().filter(|field| !known.contains(field)).take(MAX_PROBLEMS_PER_FILE) {
            let place = self.place(&[field]);
            let nearest = nearest_name(field, known.iter()).map(str::to_owned);
            let (of, field) = (format!("the {kind}"), field.clone());
            self.problems.push(Problem::UnknownField { place, of, field, nearest });
        }
    }

    /// Labels and annotations must be strings; `1.20` and `yes` are not, unless they are quoted.
    fn text_maps(&mut self, metadata: &'a Map<String, Value>) {
        for field in ["labels", "annotations"] {
            match metadata.get(field) {
                None | Some(Value::Null) => {}
                Some(Value::Object(texts)) => {
                    for (key, value) in texts {
                        if self.problems.len() >= MAX_PROBLEMS_PER_FILE {
                            return;
                        }
                        let path = ["metadata", field, key];
                        let broken = match field {
                            "labels" => name_rules::qualified_name(key),
                            _ => name_rules::annotation_key(key),
                        };
                        self.text_rule(&path, key, broken);
                        match value {
                            Value::String(text) if field == "labels" => {
                                self.text_rule(&path, text, name_rules::label_value(text));
                            }
                            Value::String(_) => {}
                            other => self.wrong_type(&path, "a string", other),
                        }
                    }
                }
                Some(other) => self.wrong_type(&["metadata", field], "a mapping", other),
            }
        }
    }

    fn refuse_owners(&mut self, metadata: &Map<String, Value>) {
        match metadata.get("ownerReferences") {
            None | Some(Value::Null) => {}
            Some(Value::Array(owners)) if owners.is_empty() => {}
            Some(_) => {
                let place = self.place(&["metadata", "ownerReferences"]);
                self.problems.push(Problem::OwnerReferences { place });
            }
        }
    }

    fn name(&mut self, metadata: &'a Map<String, Value>, group: &str, kind: &str) -> Option<&'a str> {
        let is_named = metadata.get("name").is_some_and(|name| !name.is_null());
        // Beside a name, generateName has no effect.
        if !is_named && metadata.get("generateName").is_some_and(|prefix| prefix.as_str() != Some("")) {
            let place = self.place(&["metadata", "generateName"]);
            self.problems.push(Problem::GenerateName { place });
            return None;
        }
        match metadata.get("name") {
            None | Some(Value::Null) => {
                let others = metadata.keys().map(String::as_str);
                let others = others.filter(|field| !METADATA_FIELDS.contains(field));
                let near = nearest_name("name", others);
                self.missing(kind, "metadata.name", near);
                None
            }
            Some(Value::String(name)) => {
                self.text_rule(&["metadata", "name"], name, name_rules::name(group, kind, name));
                Some(name)
            }
            Some(other) => {
                self.wrong_type(&["metadata", "name"], "a string", other);
                None
            }
        }
    }

    /// Returns the namespace as written, empty if there is none.
    fn namespace(&mut self, metadata: &'a Map<String, Value>) -> Option<&'a str> {
        match metadata.get("namespace") {
            None | Some(Value::Null) => Some(""),
            Some(Value::String(namespace)) => {
                if !namespace.is_empty() {
                    self.text_rule(&["metadata", "namespace"], namespace, name_rules::namespace(namespace));
                }
                Some(namespace)
            }
            Some(other) => {
                self.wrong_type(&["metadata", "namespace"], "a string", other);
                None
            }
        }
    }

    fn string(&mut self, body: &'a Map<String, Value>, path: &[&str; 1]) -> Option<&'a str> {
        match body.get(path[0]) {
            Some(Value::String(text)) => Some(text),
            other => {
                self.wrong_type(path, "a string", other.unwrap_or(&Value::Null));
                None
            }
        }
    }

    fn text_rule(&mut self, path: &[&str], text: &str, broken: Option<&'static str>) {
        if let Some(rule) = broken {
            let (place, field, text) = (self.place(path), path.join("."), text.to_owned());
            self.problems.push(Problem::BadText { place, field, text, rule });
        }
    }

    fn wrong_type(&mut self, path: &[&str], expected: &'static str, found: &Value) {
        let (place, field) = (self.place(path), path.join("."));
        self.problems.push(Problem::WrongType { place, field, expected, found: type_name(found) });
    }

    fn missing(&mut self, kind: &str, field: &'static str, nearest: Option<&str>) {
        let (place, kind) = (self.place(&["metadata"]), kind.to_owned());
        let nearest = nearest.map(|name| format!("{name} to be {field}"));
        self.problems.push(Problem::MissingField { place, kind, field, nearest });
    }

    fn place(&self, path: &[&str]) -> SourcePosition {
        let steps: Vec<Step<'_>> = path.iter().map(|key| Step::Key(key)).collect();
        position_in(self.source, self.origin, &steps)
    }
}
