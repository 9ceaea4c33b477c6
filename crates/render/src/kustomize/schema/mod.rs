//! Which lists of a kind merge by keys, and whether a kind has namespaces.
//!
//! In: Kubernetes' own kinds (`kubernetes.txt`, made by `tests/kustomize/schema`), or the definitions that a
//! kustomization brings under `openapi`. Out: [`Schemas`], and from it the [`Schema`] of a kind, of its fields and of
//! their items. The version of Kubernetes is the one that kustomize carries and no newer one: the keys of a list
//! decide what a merge comes to, and they have changed since.

mod document;
mod table;

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde_json::Value;

pub(crate) use document::Fault;

static BUILTIN: LazyLock<Schemas> = LazyLock::new(|| table::read(include_str!("kubernetes.txt")));

/// The schemas of kinds.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    definitions: Vec<Shape>,
    kinds: HashMap<String, Shape>,
    scopes: HashMap<String, Scope>,
}

/// The scope of a kind: its objects live in a namespace, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Each object is in a namespace.
    Namespaced,
    /// No object is in a namespace.
    Cluster,
}

/// The schema of one value: of an object, a field, or the items of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema<'a> {
    schemas: &'a Schemas,
    shape: &'a Shape,
}

/// Facts about a value that a merge needs.
#[derive(Debug, PartialEq)]
enum Shape {
    /// Nothing, because it refers to a definition that is not there.
    Unknown,
    /// It is known, and nothing below it is: a text, a number, a list that is replaced whole.
    Leaf,
    /// A definition, by its place among them.
    Defined(usize),
    /// Fields by name, and what all others are.
    Map { fields: BTreeMap<String, Shape>, others: Option<Box<Shape>> },
    /// A list that merges: by the values of keys, or without keys by the values themselves.
    List { keys: Vec<String>, items: Option<Box<Shape>> },
}

impl Schemas {
    /// Kubernetes' own kinds.
    pub(crate) fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// The kinds of an OpenAPI document, and no others: kustomize takes such a document in place of its own.
    pub(crate) fn with(document: &Value) -> Result<Self, Fault> {
        document::read(document)
    }

    /// The schema of a kind.
    pub(crate) fn of(&self, api_version: &str, kind: &str) -> Option<Schema<'_>> {
        self.resolve(self.kinds.get(&key(api_version, kind))?)
    }

    /// The scope of a kind; none for a kind that is not known. What Kubernetes says of its own kinds holds whatever
    /// a document says.
    pub(crate) fn scope_of(&self, api_version: &str, kind: &str) -> Option<Scope> {
        let key = key(api_version, kind);
        BUILTIN.scopes.get(&key).or_else(|| self.scopes.get(&key)).copied()
    }

    /// The shape behind names. Definitions that are only each other's names come to nothing.
    fn resolve<'a>(&'a self, mut shape: &'a Shape) -> Option<Schema<'a>> {
        for _ in 0..=self.definitions.len() {
            match shape {
                Shape::Unknown => return None,
                Shape::Defined(place) => shape = self.definitions.get(*place)?,
                Shape::Leaf | Shape::Map { .. } | Shape::List { .. } => {
                    return Some(Schema { schemas: self, shape });
                }
            }
        }
        None
    }
}

impl<'a> Schema<'a> {
    /// The schema of a field.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        let Shape::Map { fields, others } = self.shape else { return None };
        self.schemas.resolve(fields.get(name).or(others.as_deref())?)
    }

    /// The schema of the items of a list that merges.
    pub(crate) fn items(&self) -> Option<Self> {
        let Shape::List { items, .. } = self.shape else { return None };
        self.schemas.resolve(items.as_deref()?)
    }

    /// True if it is a list that merges; all others are replaced whole.
    pub(crate) fn is_keyed_list(&self) -> bool {
        matches!(self.shape, Shape::List { .. })
    }

    /// The fields by which the items of a list that merges are told apart; none if they are by themselves.
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
