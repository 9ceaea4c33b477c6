//! What is known of the types of objects: their fields, how these merge, and how they are written.
//!
//! In: Kubernetes' own kinds (`kubernetes.txt`, made by `tests/control-plane/sandbox/schema`), or the schema in the
//! definition of a custom resource. Out: [`Schema`], a tree that is walked beside a value. Whoever merges, prunes,
//! fills in or checks a value asks here what it is; nobody else knows a kind's fields by heart.

mod custom;
mod definition;
mod problems;
mod strict;
mod table;
#[cfg(test)]
mod tests;
mod times;
mod zero;

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use moorline_cel::Pattern;
pub(crate) use problems::{Problem, shown};

/// What is known of one type of value; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Schema(Arc<Node>);

/// A type.
#[derive(Debug, Clone)]
struct Node {
    shape: Shape,
    /// The name of the Go type; empty where there is none.
    name: Box<str>,
    /// What the definition of a custom resource says of this place, without what is below it.
    rules: Map<String, Value>,
    /// The pattern among the rules, when it was asked for.
    pattern: OnceLock<Option<Pattern>>,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// A single value.
    Scalar(Scalar),
    /// Fields by their names.
    Fields(Fields),
    /// Items.
    List(List),
    /// Anything: what is in it is known only from the value. Its mappings merge, its lists are replaced whole.
    Anything,
    /// Anything, and it is replaced whole.
    Opaque,
}

/// A single value in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Int32,
    Int64,
    Number,
    Boolean,
    /// An amount with a unit: a string, or a number that becomes one.
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    Duration,
    /// Base64.
    Bytes,
    /// A string of which a definition says a format.
    Formatted,
}

/// A mapping: of fields that are known, or of values by any name, or both.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    /// Sorted by name.
    known: Vec<Field>,
    /// What stands under any other name; none where no other name is allowed.
    others: Option<Link>,
    /// It is replaced whole.
    pub(crate) atomic: bool,
    /// Other names were declared, and are kept by what they are when objects are pruned.
    pub(crate) is_map: bool,
    /// Names that were not declared are kept when objects are pruned.
    pub(crate) keeps_unknown: bool,
}

/// A list.
#[derive(Debug, Clone)]
pub(crate) struct List {
    items: Link,
    pub(crate) merge: ListType,
}

/// How two lists become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListType {
    /// The list is replaced whole.
    Atomic,
    /// Every item stands once.
    Set,
    /// Items are known by the values of these fields.
    Keyed(Box<[Box<str>]>),
}

/// A field of a type.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    link: Link,
    /// It must be there.
    pub(crate) required: bool,
    /// In Go it is a pointer: zero is told apart from absent.
    pub(crate) pointer: bool,
    /// When it is written.
    pub(crate) written: Written,
    /// What is set where it is absent.
    pub(crate) default: Option<Value>,
    /// How a strategic merge patch treats it.
    pub(crate) patch: Option<PatchStrategy>,
}

/// When Go writes a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// Always, as null or empty if need be (no `omitempty`).
    Always,
    /// Not when it is empty: false, 0, an empty text, list or mapping, nothing. A type with fields is never empty (`omitempty`).
    UnlessEmpty,
    /// Not when it is zero, a type with fields included (`omitzero`).
    UnlessZero,
}

/// How a strategic merge patch treats a field. A list without `merge` is replaced, a mapping is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatchStrategy {
    pub(crate) merge: bool,
    pub(crate) retain_keys: bool,
    /// Empty for lists of single values.
    pub(crate) merge_key: Box<str>,
}

/// The way to a type: types of Kubernetes may hold themselves, so they are found by their place.
#[derive(Debug, Clone)]
enum Link {
    Own(Schema),
    Builtin(usize),
}

impl Schema {
    /// A kind of Kubernetes' own.
    pub(crate) fn builtin(group: &str, version: &str, kind: &str) -> Option<Self> {
        table::kind(group, version, kind).cloned()
    }

    /// The structural schema of a version of a custom resource. What every object has is known whatever it says.
    pub(crate) fn of_definition(open_api_v3_schema: &Value) -> Self {
        definition::read(open_api_v3_schema)
    }

    fn new(shape: Shape) -> Self {
        Self::named(shape, "")
    }

    fn named(shape: Shape, name: &str) -> Self {
        Self(Arc::new(Node { shape, name: name.into(), rules: Map::new(), pattern: OnceLock::new() }))
    }

    /// What a value of this type is.
    pub(crate) fn shape(&self) -> &Shape {
        &self.0.shape
    }

    /// The name of its Go type, such as `PodSpec`; empty where it has none.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// True for a schema that comes from a definition, and may change with it.
    pub(crate) fn is_of_definition(&self) -> bool {
        self.0.name.is_empty()
    }

    /// What the definition of a custom resource says of this value: bounds, patterns, `nullable` and so on.
    pub(crate) fn rules(&self) -> &Map<String, Value> {
        &self.0.rules
    }

    /// The type of what stands under a name, whether the name is known or any name is allowed.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match self.shape() {
            Shape::Fields(fields) => fields.of(name),
            Shape::Anything | Shape::Opaque => Some(self),
            Shape::Scalar(_) | Shape::List(_) => None,
        }
    }

    /// A field that is known by its name.
    pub(crate) fn declared(&self, name: &str) -> Option<&Field> {
        match self.shape() {
            Shape::Fields(fields) => fields.declared(name),
            Shape::Scalar(_) | Shape::List(_) | Shape::Anything | Shape::Opaque => None,
        }
    }

    /// The type of the items of a list.
    pub(crate) fn items(&self) -> Option<&Self> {
        match self.shape() {
            Shape::List(list) => Some(list.items()),
            Shape::Scalar(_) | Shape::Fields(_) | Shape::Anything | Shape::Opaque => None,
        }
    }
}

impl Fields {
    /// The fields that are known, by name.
    pub(crate) fn known(&self) -> &[Field] {
        &self.known
    }

    /// The field of this name, if it is known.
    pub(crate) fn declared(&self, name: &str) -> Option<&Field> {
        let at = self.known.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
        Some(&self.known[at])
    }

    /// The type under a name that is not known.
    pub(crate) fn others(&self) -> Option<&Schema> {
        self.others.as_ref().map(Link::follow)
    }

    /// The type of what stands under a name.
    pub(crate) fn of(&self, name: &str) -> Option<&Schema> {
        self.declared(name).map(Field::schema).or_else(|| self.others())
    }
}

impl List {
    /// The type of its items.
    pub(crate) fn items(&self) -> &Schema {
        self.items.follow()
    }
}

impl Field {
    /// Its type.
    pub(crate) fn schema(&self) -> &Schema {
        self.link.follow()
    }

    /// True if Go leaves it out where it is zero, and so cannot tell zero from absent.
    #[cfg(test)]
    pub(crate) fn is_dropped_when_zero(&self) -> bool {
        !self.pointer && !self.is_written_when_zero()
    }
}

impl Link {
    fn follow(&self) -> &Schema {
        match self {
            Self::Own(schema) => schema,
            Self::Builtin(place) => table::at(*place),
        }
    }
}
