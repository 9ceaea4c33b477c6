//! An object during a build, with its history: former names, prefixes and suffixes, and the options
//! of its generator.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::charts::MARK;
use super::fault::{Class, Refusal};
use super::field_path::Step;
use super::field_spec::scalar_text;
use super::id::{Gvk, Id};
use super::parse;
use super::provenance::Marks;
use super::sharing::Sharing;
use super::spelling::Spelling;
use super::trail::Trail;
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
    pub(super) trail: Trail,
    pub(super) marks: Marks,
    /// Former names, oldest first.
    earlier: Vec<Earlier>,
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
}

#[derive(Debug, Clone)]
struct Earlier {
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
            trail: Trail::default(),
            marks: Marks::default(),
            earlier: Vec::new(),
            prefixes: Vec::new(),
            suffixes: Vec::new(),
            behavior: Behavior::Unspecified,
            needs_hash: false,
            vars: Vec::new(),
            allows_name: false,
            allows_kind: false,
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
        is_null && !self.earlier.is_empty() && self.spelling.null_text() != Some("")
    }

    /// True if the namespace is not a text.
    pub(super) fn has_odd_namespace(&self) -> bool {
        let namespace = self.body.get("metadata").and_then(|it| it.get("namespace"));
        namespace.is_some_and(|it| !it.is_string() && !it.is_null())
    }

    /// True if helm made it, or an annotation says so.
    pub(super) fn is_by_helm(&self) -> bool {
        self.texts("annotations").is_some_and(|texts| texts.get(MARK).is_some_and(|it| it == "true"))
    }

    pub(super) fn gvk(&self) -> Gvk {
        Gvk::new(self.api_version(), self.kind())
    }

    /// Current id.
    pub(super) fn id(&self) -> Id {
        Id { gvk: self.gvk(), name: self.name().to_owned(), namespace: self.namespace().into_owned() }
    }

    /// Former ids, oldest first.
    pub(super) fn earlier_ids(&self) -> impl Iterator<Item = Id> + '_ {
        let gvk = self.gvk();
        self.earlier.iter().map(move |earlier| Id {
            gvk: Gvk { kind: earlier.kind.clone(), ..gvk.clone() },
            name: earlier.name.clone(),
            namespace: earlier.namespace.clone(),
        })
    }

    /// First id.
    pub(super) fn first_id(&self) -> Id {
        self.earlier_ids().next().unwrap_or_else(|| self.id())
    }

    /// All former ids and the current one.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        self.earlier_ids().chain(std::iter::once(self.id()))
    }

    /// True if this id is, or was, the resource's.
    pub(super) fn is_or_was(&self, id: &Id) -> bool {
        self.has_name(&id.name) && self.ids().any(|own| own.is_same(id))
    }

    /// True if it has or had this name in any namespace; cheaper than comparing ids.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.name() == name || self.earlier.iter().any(|earlier| earlier.name == name)
    }

    /// Records the current name, before a change.
    pub(super) fn remember(&mut self) {
        let id = self.id();
        let namespace = id.namespace().to_owned();
        self.earlier.push(Earlier { name: id.name, namespace, kind: id.gvk.kind });
    }

    /// Takes over the history of the object that it replaces.
    pub(super) fn inherit(&mut self, other: &Self) {
        self.earlier = other.earlier.clone();
        self.prefixes = other.prefixes.clone();
        self.suffixes = other.suffixes.clone();
        self.vars = other.vars.clone();
        self.trail = other.trail.clone();
    }

    /// True if kustomize has internal annotations on it.
    pub(super) fn has_notes(&self) -> bool {
        let has_affixes = !self.prefixes.is_empty() || !self.suffixes.is_empty();
        has_affixes || !self.earlier.is_empty() || self.needs_hash || self.behavior != Behavior::Unspecified
    }

    /// Drops everything that kustomize keeps in annotations, because they were deleted or replaced.
    pub(super) fn lose_notes(&mut self) {
        self.earlier.clear();
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

    /// Sets the namespace; an empty one is removed.
    pub(super) fn set_namespace(&mut self, namespace: &str) {
        if self.has_odd_namespace() && self.namespace() == namespace {
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

    /// Converts all labels or annotations to texts, as kustomize does when it writes all of them.
    /// An empty map is removed.
    pub(super) fn make_texts(&mut self, field: &str) -> Result<(), Refusal> {
        let Some(found) = self.body.get("metadata").and_then(|it| it.get(field)) else { return Ok(()) };
        let mut texts = Map::new();
        for (key, value) in found.as_object().into_iter().flatten() {
            let place = format!("{field}/{key}");
            let text = self.spelling.text(&place, value).ok_or_else(|| {
                let text = format!("{field}: the text of {key} is not known; put it in quotes");
                parse::refuse(&self.origin, text).of(Class::Unsupported)
            })?;
            self.spelling.is_text_now(&place, &text);
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
    pub(super) fn make_data_texts(&mut self) -> Result<(), Refusal> {
        for field in ["data", "binaryData"] {
            let Some(values) = self.body.get_mut(field).and_then(Value::as_object_mut) else { continue };
            for (key, value) in values {
                let way = [Step::Key(field.to_owned()), Step::Key(key.clone())];
                let text = match self.spelling.untyped(&way, value) {
                    Some(text) => text.to_owned(),
                    None if value.is_null() || self.spelling.is_odd(value) => {
                        let text = format!("{field}: the text of {key} is not known; put it in quotes");
                        return Err(parse::refuse(&self.origin, text).of(Class::Unsupported));
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
