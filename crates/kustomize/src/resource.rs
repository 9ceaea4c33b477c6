//! An object during a build, with its history: former names, prefixes and suffixes, and the options
//! of its generator.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::build_trace::ObjectTrace;
use super::charts::HELM_MARK;
use super::error::{BuildError, ErrorClass};
use super::field_path::PathStep;
use super::field_spec::scalar_text;
use super::id::{Gvk, ResourceId};
use super::provenance::WrittenAnnotations;
use super::resource_files;
use super::scalar_style::Spelling;
use super::shared_labels::Sharing;
use moorline_core::object::Origin;

/// An object that is being built.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    /// The whole object; a mapping.
    pub(super) body: Value,
    /// Position of the object in its file.
    pub(super) origin: Origin,
    /// Spelling of values, as far as it matters.
    pub(super) spelling: Spelling,
    pub(super) sharing: Sharing,
    pub(super) trail: ObjectTrace,
    pub(super) marks: WrittenAnnotations,
    /// Former names, oldest first.
    former_names: Vec<FormerName>,
    pub(super) prefixes: Vec<String>,
    pub(super) suffixes: Vec<String>,
    /// Behavior of the generator towards an existing object of this name.
    pub(super) behavior: Behavior,
    pub(super) needs_hash: bool,
    /// Variables that take their value from this object.
    pub(super) vars: Vec<String>,
    /// For a patch: it may change the name of its target.
    pub(super) allows_name: bool,
    pub(super) allows_kind: bool,
    /// It has values of a decrypted file.
    pub(super) contains_secret: bool,
}

#[derive(Debug, Clone)]
struct FormerName {
    name: String,
    namespace: String,
    kind: String,
}

/// Behavior of a generator if the object exists already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Behavior {
    #[default]
    Unspecified,
    Create,
    Replace,
    Merge,
}

impl Behavior {
    pub(super) fn of(word: &str) -> Self {
        match word {
            "create" => Self::Create,
            "replace" => Self::Replace,
            "merge" => Self::Merge,
            _ => Self::Unspecified,
        }
    }
}

impl Resource {
    pub(super) fn new(body: Value, origin: Origin) -> Self {
        Self {
            body,
            origin,
            spelling: Spelling::default(),
            sharing: Sharing::default(),
            trail: ObjectTrace::default(),
            marks: WrittenAnnotations::default(),
            former_names: Vec::new(),
            prefixes: Vec::new(),
            suffixes: Vec::new(),
            behavior: Behavior::Unspecified,
            needs_hash: false,
            vars: Vec::new(),
            allows_name: false,
            allows_kind: false,
            contains_secret: false,
        }
    }

    fn text(&self, field: &str) -> &str {
        self.body.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn metadata(&self, field: &str) -> &str {
        self.body.get("metadata").and_then(|it| it.get(field)).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn kind(&self) -> &str {
        self.text("kind")
    }

    pub(super) fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    pub(super) fn name(&self) -> &str {
        self.metadata("name")
    }

    /// To kustomize the namespace is a text, no matter how it is written.
    pub(super) fn namespace(&self) -> Cow<'_, str> {
        let written = self.body.get("metadata").and_then(|it| it.get("namespace"));
        match written {
            Some(Value::Bool(_) | Value::Number(_)) => {
                written.and_then(scalar_text).unwrap_or_default().into()
            }
            _ => self.metadata("namespace").into(),
        }
    }

    /// True if a null namespace was kept while a namespace was set: to kustomize it is a text from
    /// then on.
    pub(super) fn has_null_namespace(&self) -> bool {
        let is_null = self.body.pointer("/metadata/namespace").is_some_and(Value::is_null);
        is_null && !self.former_names.is_empty() && self.spelling.null_text() != Some("")
    }

    /// True if the namespace is not a text.
    pub(super) fn has_non_text_namespace(&self) -> bool {
        let namespace = self.body.get("metadata").and_then(|it| it.get("namespace"));
        namespace.is_some_and(|it| !it.is_string() && !it.is_null())
    }

    /// True if helm made it, or an annotation says so.
    pub(super) fn is_from_helm(&self) -> bool {
        self.texts("annotations").is_some_and(|texts| texts.get(HELM_MARK).is_some_and(|it| it == "true"))
    }

    pub(super) fn gvk(&self) -> Gvk {
        Gvk::new(self.api_version(), self.kind())
    }

    /// Current id.
    pub(super) fn id(&self) -> ResourceId {
        ResourceId { gvk: self.gvk(), name: self.name().to_owned(), namespace: self.namespace().into_owned() }
    }

    /// Former ids, oldest first.
    pub(super) fn former_ids(&self) -> impl Iterator<Item = ResourceId> + '_ {
        let gvk = self.gvk();
        self.former_names.iter().map(move |earlier| ResourceId {
            gvk: Gvk { kind: earlier.kind.clone(), ..gvk.clone() },
            name: earlier.name.clone(),
            namespace: earlier.namespace.clone(),
        })
    }

    /// First id.
    pub(super) fn first_id(&self) -> ResourceId {
        self.former_ids().next().unwrap_or_else(|| self.id())
    }

    /// All former ids and the current one.
    pub(super) fn ids(&self) -> impl Iterator<Item = ResourceId> + '_ {
        self.former_ids().chain(std::iter::once(self.id()))
    }

    /// True if this id is, or was, the resource's.
    pub(super) fn is_or_was(&self, id: &ResourceId) -> bool {
        self.has_name(&id.name) && self.ids().any(|own| own.is_same(id))
    }

    /// True if it has or had this name in any namespace; cheaper than comparing ids.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.name() == name || self.former_names.iter().any(|earlier| earlier.name == name)
    }

    /// Records the current name, before a change.
    pub(super) fn record_name(&mut self) {
        let id = self.id();
        let namespace = id.namespace().to_owned();
        self.former_names.push(FormerName { name: id.name, namespace, kind: id.gvk.kind });
    }

    /// Takes over the history of the object that it replaces.
    pub(super) fn take_over_history(&mut self, other: &Self) {
        self.former_names = other.former_names.clone();
        self.prefixes = other.prefixes.clone();
        self.suffixes = other.suffixes.clone();
        self.vars = other.vars.clone();
        self.trail = other.trail.clone();
    }

    /// True if kustomize has internal annotations on it.
    pub(super) fn has_internal_annotations(&self) -> bool {
        let has_affixes = !self.prefixes.is_empty() || !self.suffixes.is_empty();
        has_affixes
            || !self.former_names.is_empty()
            || self.needs_hash
            || self.behavior != Behavior::Unspecified
    }

    /// Drops everything that kustomize keeps in annotations, because they were deleted or replaced.
    pub(super) fn clear_internal_annotations(&mut self) {
        self.former_names.clear();
        self.prefixes.clear();
        self.suffixes.clear();
        self.needs_hash = false;
        self.behavior = Behavior::Unspecified;
    }

    /// Returns `metadata`, created if it is missing.
    pub(super) fn metadata_mut(&mut self) -> Option<&mut Map<String, Value>> {
        let body = self.body.as_object_mut()?;
        let metadata = body.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
        metadata.as_object_mut()
    }

    pub(super) fn set_name(&mut self, name: &str) {
        if let Some(metadata) = self.metadata_mut() {
            metadata.insert("name".into(), name.into());
        }
    }

    /// Returns the namespace after a merge with `patch`, if it is a number or a truth value now.
    /// Each merge writes the namespace again in its style, but without a type, and the next merge
    /// makes a text of a field without a type, unless the patch gives it one.
    pub(super) fn plain_namespace(&mut self, patch: &Value) -> Option<Value> {
        let was_untyped = self.spelling.take_untyped(&namespace_path());
        let plain = self.body.pointer("/metadata/namespace").filter(|_| self.has_non_text_namespace())?;
        let metadata = patch.get("metadata").and_then(Value::as_object);
        if metadata.is_some_and(|metadata| metadata.contains_key("$patch")) {
            return None;
        }
        let is_typed =
            metadata.is_none_or(|metadata| metadata.get("namespace").is_some_and(|it| !it.is_null()));
        let becomes_text = was_untyped && !is_typed;
        Some(if becomes_text { self.namespace().into() } else { plain.clone() })
    }

    /// Sets the namespace after a merge, as [`Resource::plain_namespace`] says.
    pub(super) fn restore_namespace(&mut self, namespace: &str, plain: Option<Value>) {
        match (plain, self.metadata_mut()) {
            (Some(plain), Some(metadata)) => {
                let is_plain = !plain.is_string();
                metadata.insert("namespace".into(), plain);
                if is_plain {
                    self.spelling.record_untyped(&namespace_path(), namespace);
                }
            }
            _ => self.set_namespace(namespace),
        }
    }

    /// Sets the namespace; an empty one is removed.
    pub(super) fn set_namespace(&mut self, namespace: &str) {
        if self.has_non_text_namespace() && self.namespace() == namespace {
            return;
        }
        match (self.metadata_mut(), namespace) {
            (Some(metadata), "") => {
                metadata.remove("namespace");
            }
            (Some(metadata), namespace) => {
                metadata.insert("namespace".into(), namespace.into());
            }
            (None, _) => {}
        }
    }

    pub(super) fn set(&mut self, field: &str, value: &str) {
        if let Some(body) = self.body.as_object_mut() {
            body.insert(field.to_owned(), value.into());
        }
    }

    /// Returns the map `metadata.<field>`, as selectors see it.
    pub(super) fn texts(&self, field: &str) -> Option<&Map<String, Value>> {
        self.body.get("metadata")?.get(field)?.as_object()
    }

    /// Returns the text of a label or annotation.
    pub(super) fn text_of(&self, field: &str, key: &str) -> Option<String> {
        let value = self.texts(field)?.get(key)?;
        self.spelling.text(&format!("{field}/{key}"), value)
    }

    /// Sets folded annotations to their original texts. A folded text with an indented line gets a
    /// line break more when it goes through JSON, which its value contains already.
    pub(super) fn unfold_annotations(&mut self) {
        let Self { body, spelling, .. } = self;
        let annotations = body.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        for (key, value) in annotations.into_iter().flatten().filter(|(_, value)| value.is_string()) {
            if let Some(text) = spelling.text(&format!("annotations/{key}"), value) {
                *value = text.into();
            }
        }
    }

    /// Converts all labels or annotations to texts, as kustomize does when it writes all of them.
    /// An empty map is removed.
    pub(super) fn convert_to_texts(&mut self, field: &str) -> Result<(), BuildError> {
        if field == "annotations" {
            self.spelling.record_written_annotations();
        }
        let Some(found) = self.body.get("metadata").and_then(|it| it.get(field)) else { return Ok(()) };
        let mut texts = Map::new();
        for (key, value) in found.as_object().into_iter().flatten() {
            let place = format!("{field}/{key}");
            let text = self.spelling.text(&place, value).ok_or_else(|| {
                let text = format!("{field}: the text of {key} is not known; put it in quotes");
                resource_files::resource_error(&self.origin, text).with_class(ErrorClass::Unsupported)
            })?;
            self.spelling.set_text(&place, &text);
            texts.insert(key.clone(), text.into());
        }
        match self.metadata_mut() {
            Some(metadata) if texts.is_empty() => drop(metadata.remove(field)),
            Some(metadata) => drop(metadata.insert(field.to_owned(), Value::Object(texts))),
            None => {}
        }
        Ok(())
    }

    /// Converts all values of the data to texts, as kustomize does when a generator merges into it.
    pub(super) fn convert_data_to_texts(&mut self) -> Result<(), BuildError> {
        for field in ["data", "binaryData"] {
            let Some(values) = self.body.get_mut(field).and_then(Value::as_object_mut) else { continue };
            for (key, value) in values {
                let way = [PathStep::Key(field.to_owned()), PathStep::Key(key.clone())];
                let text = match self.spelling.untyped(&way, value) {
                    Some(text) => text.to_owned(),
                    None if value.is_null() || self.spelling.is_rewritten(value) => {
                        let text = format!("{field}: the text of {key} is not known; put it in quotes");
                        return Err(resource_files::resource_error(&self.origin, text)
                            .with_class(ErrorClass::Unsupported));
                    }
                    None => scalar_text(value).unwrap_or_default(),
                };
                *value = text.into();
            }
        }
        Ok(())
    }

    /// True if the object is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.body.as_object().is_none_or(Map::is_empty)
    }
}
/// Returns the path of the namespace in an object.
fn namespace_path() -> [PathStep; 2] {
    ["metadata", "namespace"].map(|key| PathStep::Key(key.to_owned()))
}
