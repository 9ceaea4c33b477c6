//! Schemas for merging: lists that merge by keys, and scopes of kinds.
//!
//! In: Kubernetes' own kinds (`kubernetes.txt`, made by `tests/kustomize/schema`), or the
//! definitions of a kustomization's `openapi`. Out: [`Schemas`] with the [`MergeSchema`] of a
//! kind, its fields and their items. The version of Kubernetes is the one built into kustomize
//! and not a newer one: keys of lists decide the result of a merge, and have changed since.

mod document;
mod table;

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde_json::Value;

pub(crate) use document::OpenApiError;

static BUILTIN: LazyLock<Schemas> = LazyLock::new(|| table::read(include_str!("kubernetes.txt")));

/// Schemas of kinds.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    definitions: Vec<Shape>,
    kinds: HashMap<String, Shape>,
    scopes: HashMap<String, Scope>,
}

/// Scope of a kind: namespaced or cluster-scoped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Each object is in a namespace.
    Namespaced,
    /// No object is in a namespace.
    Cluster,
}

/// Schema of one value: an object, a field, or the items of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergeSchema<'a> {
    schemas: &'a Schemas,
    shape: &'a Shape,
}

/// Facts about a value that a merge needs.
#[derive(Debug, PartialEq)]
enum Shape {
    /// Unknown: a reference to a missing definition.
    Unknown,
    /// A value without structure: a text, a number, or a list that is replaced as a whole.
    Leaf,
    /// A definition, by its index.
    Defined(usize),
    /// A map: the schemas of named fields, and of all others.
    Map { fields: BTreeMap<String, Shape>, others: Option<Box<Shape>> },
    /// A list that merges by the values of its keys, or without keys by its items.
    List { keys: Vec<String>, items: Option<Box<Shape>> },
}

impl Schemas {
    /// Schemas of Kubernetes' own kinds.
    pub(crate) fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// Reads the kinds of an OpenAPI document, and no others: in kustomize such a document replaces
    /// the built-in one.
    pub(crate) fn from_document(document: &Value) -> Result<Self, OpenApiError> {
        document::read(document)
    }

    /// Returns the schema of a kind.
    pub(crate) fn schema_of(&self, api_version: &str, kind: &str) -> Option<MergeSchema<'_>> {
        self.resolve(self.kinds.get(&key(api_version, kind))?)
    }

    /// Returns the scope of a kind; none for an unknown kind. The scopes of Kubernetes' own kinds
    /// win over those of a document.
    pub(crate) fn scope_of(&self, api_version: &str, kind: &str) -> Option<Scope> {
        let key = key(api_version, kind);
        BUILTIN.scopes.get(&key).or_else(|| self.scopes.get(&key)).copied()
    }

    /// Follows references between definitions; none for a cycle.
    fn resolve<'a>(&'a self, mut shape: &'a Shape) -> Option<MergeSchema<'a>> {
        for _ in 0..=self.definitions.len() {
            match shape {
                Shape::Unknown => return None,
                Shape::Defined(place) => shape = self.definitions.get(*place)?,
                Shape::Leaf | Shape::Map { .. } | Shape::List { .. } => {
                    return Some(MergeSchema { schemas: self, shape });
                }
            }
        }
        None
    }
}

impl<'a> MergeSchema<'a> {
    /// Returns the schema of a field.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        let Shape::Map { fields, others } = self.shape else { return None };
        self.schemas.resolve(fields.get(name).or(others.as_deref())?)
    }

    /// Returns the schema of the items of a list that merges.
    pub(crate) fn items(&self) -> Option<Self> {
        let Shape::List { items, .. } = self.shape else { return None };
        self.schemas.resolve(items.as_deref()?)
    }

    /// True for a list that merges; other lists are replaced as a whole.
    pub(crate) fn is_keyed_list(&self) -> bool {
        matches!(self.shape, Shape::List { .. })
    }

    /// Returns the fields that identify the items of a merging list; empty if items are compared as
    /// a whole.
    pub(crate) fn merge_keys(&self) -> &'a [String] {
        match self.shape {
            Shape::List { keys, .. } => keys,
            Shape::Unknown | Shape::Leaf | Shape::Defined(_) | Shape::Map { .. } => &[],
        }
    }
}

fn key(api_version: &str, kind: &str) -> String {
    format!("{api_version} {kind}")
}

#[cfg(test)]
mod tests;
