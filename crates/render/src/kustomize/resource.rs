//! An object on its way through a build, with what is remembered of it: what it was called before, what was put before and
//! behind its name, and what its generator wanted.

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
    /// Where it was written.
    pub(super) origin: Origin,
    /// How it is written, where that matters.
    pub(super) spelling: Spelling,
    pub(super) sharing: Sharing,
    pub(super) trail: Trail,
    pub(super) marks: Marks,
    /// Its names before, oldest first.
    earlier: Vec<Earlier>,
    pub(super) prefixes: Vec<String>,
    pub(super) suffixes: Vec<String>,
    /// The intent of a generator for an object of that name.
    pub(super) behavior: Behavior,
    pub(super) needs_hash: bool,
    /// Variables that take a value from it.
    pub(super) vars: Vec<String>,
    /// Of a patch: what it may change of its target.
    pub(super) allows_name: bool,
    pub(super) allows_kind: bool,
}

#[derive(Debug, Clone)]
struct Earlier {
    name: String,
    namespace: String,
    kind: String,
}

/// The behaviour of a generator where the object is there.
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

    /// For the tool it is a text, whatever is written.
    pub(super) fn namespace(&self) -> Cow<'_, str> {
        let written = self.body.get("metadata").and_then(|it| it.get("namespace"));
        match written {
            Some(Value::Bool(_) | Value::Number(_)) => {
                written.and_then(scalar_text).unwrap_or_default().into()
            }
            _ => self.metadata("namespace").into(),
        }
    }

    /// True if a null namespace was passed over where one was to be set: for the tool it is a text from then on.
    pub(super) fn has_null_namespace(&self) -> bool {
        let is_null = self.body.pointer("/metadata/namespace").is_some_and(Value::is_null);
        is_null && !self.earlier.is_empty() && self.spelling.null_text() != Some("")
    }

    /// True if its namespace is written as something else than a text.
    pub(super) fn has_odd_namespace(&self) -> bool {
        let namespace = self.body.get("metadata").and_then(|it| it.get("namespace"));
        namespace.is_some_and(|it| !it.is_string() && !it.is_null())
    }

    /// True if helm has made it, or somebody says so.
    pub(super) fn is_by_helm(&self) -> bool {
        self.texts("annotations").is_some_and(|texts| texts.get(MARK).is_some_and(|it| it == "true"))
    }

    pub(super) fn gvk(&self) -> Gvk {
        Gvk::new(self.api_version(), self.kind())
    }

    /// Its name now.
    pub(super) fn id(&self) -> Id {
        Id { gvk: self.gvk(), name: self.name().to_owned(), namespace: self.namespace().into_owned() }
    }

    /// Its names before, oldest first.
    pub(super) fn earlier_ids(&self) -> impl Iterator<Item = Id> + '_ {
        let gvk = self.gvk();
        self.earlier.iter().map(move |earlier| Id {
            gvk: Gvk { kind: earlier.kind.clone(), ..gvk.clone() },
            name: earlier.name.clone(),
            namespace: earlier.namespace.clone(),
        })
    }

    /// Its first name.
    pub(super) fn first_id(&self) -> Id {
        self.earlier_ids().next().unwrap_or_else(|| self.id())
    }

    /// Every id that it had and has.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        self.earlier_ids().chain(std::iter::once(self.id()))
    }

    /// True if it is this one, or was.
    pub(super) fn is_or_was(&self, id: &Id) -> bool {
        self.has_name(&id.name) && self.ids().any(|own| own.is_same(id))
    }

    /// True if it has or had this name, in whatever namespace; cheaper to say than by its ids.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.name() == name || self.earlier.iter().any(|earlier| earlier.name == name)
    }

    /// Keeps what it is called now, because that is about to change.
    pub(super) fn remember(&mut self) {
        let id = self.id();
        let namespace = id.namespace().to_owned();
        self.earlier.push(Earlier { name: id.name, namespace, kind: id.gvk.kind });
    }

    /// Takes over what is remembered of the object in whose place it comes.
    pub(super) fn inherit(&mut self, other: &Self) {
        self.earlier = other.earlier.clone();
        self.prefixes = other.prefixes.clone();
        self.suffixes = other.suffixes.clone();
        self.vars = other.vars.clone();
        self.trail = other.trail.clone();
    }

    /// True if the tool keeps notes of it, which it writes among its annotations.
    pub(super) fn has_notes(&self) -> bool {
        let has_affixes = !self.prefixes.is_empty() || !self.suffixes.is_empty();
        has_affixes || !self.earlier.is_empty() || self.needs_hash || self.behavior != Behavior::Unspecified
    }

    /// Forgets all that the tool writes among the annotations, because these were deleted or replaced.
    pub(super) fn lose_notes(&mut self) {
        self.earlier.clear();
        self.prefixes.clear();
        self.suffixes.clear();
        self.needs_hash = false;
        self.behavior = Behavior::Unspecified;
    }

    /// A field of `metadata`, which is made if it is not there.
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

    /// An empty namespace is none.
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

    /// The texts of `metadata.<field>`, as a selection sees them.
    pub(super) fn texts(&self, field: &str) -> Option<&Map<String, Value>> {
        self.body.get("metadata")?.get(field)?.as_object()
    }

    /// The text of a label or an annotation.
    pub(super) fn text_of(&self, field: &str, key: &str) -> Option<String> {
        let value = self.texts(field)?.get(key)?;
        self.spelling.text(&format!("{field}/{key}"), value)
    }

    /// Makes all labels or annotations texts, as the tool does when it writes all of them. None at all are no field.
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

    /// Makes all values of its data texts, as the tool does when a generator merges into it.
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

    /// True if nothing is left of it.
    pub(super) fn is_empty(&self) -> bool {
        self.body.as_object().is_none_or(Map::is_empty)
    }
}
