//! Static types of values.
//!
//! In: nothing; a caller with a schema describes its values with these types.
//! Out: [`Kind`], which accompanies a value: it says how a text in JSON is read, which names fields
//! have in expressions, and how two lists are compared.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Type of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Any type: known only at evaluation.
    Any,
    /// Boolean.
    Bool,
    /// Integer.
    Int,
    /// Floating-point number.
    Double,
    /// String.
    Text,
    /// Bytes; Base64 in JSON.
    Bytes,
    /// Timestamp; a string in JSON.
    Time,
    /// Duration; a string in JSON.
    Span,
    /// List.
    List(Arc<ListKind>),
    /// Map from any name to values of one type.
    Map(Arc<Kind>),
    /// Object with known fields, by their names in expressions.
    Fields(Arc<BTreeMap<Box<str>, FieldKind>>),
    /// Optional value.
    Optional(Arc<Kind>),
    /// Other scalar type, by its name.
    Other(&'static str),
}

/// Field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldKind {
    /// Name in JSON; its name in expressions may be escaped.
    pub name: Box<str>,
    /// Type of its value.
    pub kind: Kind,
}

/// List type.
#[derive(Debug, Clone, PartialEq)]
pub struct ListKind {
    /// Type of the items.
    pub items: Kind,
    /// Identity of the items, for comparing and merging lists.
    pub list_type: ListType,
}

/// Identity of list items: `x-kubernetes-list-type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListType {
    /// By position.
    Atomic,
    /// By value; the order has no meaning.
    Set,
    /// By the values of these fields; the order has no meaning.
    Keyed(Box<[Box<str>]>),
}

/// Unknown type.
pub(super) static ANY: Kind = Kind::Any;
/// List of items of unknown type.
pub(super) static ANY_LIST: ListKind = ListKind { items: Kind::Any, list_type: ListType::Atomic };

impl Kind {
    /// Creates a list type with identity by position.
    pub(super) fn list(items: Self) -> Self {
        Self::List(Arc::new(ListKind { items, list_type: ListType::Atomic }))
    }

    /// Name of the type in messages.
    pub(super) fn display_name(&self) -> String {
        match self {
            Self::Any => "dyn".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Int => "int".to_owned(),
            Self::Double => "double".to_owned(),
            Self::Text => "string".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Time => "timestamp".to_owned(),
            Self::Span => "duration".to_owned(),
            Self::List(many) => format!("list({})", many.items.display_name()),
            Self::Map(values) => format!("map(string, {})", values.display_name()),
            Self::Fields(_) => "object".to_owned(),
            Self::Optional(inner) => format!("optional_type({})", inner.display_name()),
            Self::Other(name) => (*name).to_owned(),
        }
    }

    /// Type of the element under an index or key.
    pub(super) fn element_kind(&self) -> Self {
        match self {
            Self::List(many) => many.items.clone(),
            Self::Map(values) => (**values).clone(),
            Self::Optional(inner) => Self::Optional(inner.element_kind().into()),
            Self::Any
            | Self::Bool
            | Self::Int
            | Self::Double
            | Self::Text
            | Self::Bytes
            | Self::Time
            | Self::Span
            | Self::Fields(_)
            | Self::Other(_) => Self::Any,
        }
    }

    /// Type of the variable of a macro over this range.
    pub(super) fn loop_variable_kind(&self) -> Self {
        match self {
            Self::List(many) => many.items.clone(),
            Self::Map(_) => Self::Text,
            Self::Any
            | Self::Bool
            | Self::Int
            | Self::Double
            | Self::Text
            | Self::Bytes
            | Self::Time
            | Self::Span
            | Self::Fields(_)
            | Self::Optional(_)
            | Self::Other(_) => Self::Any,
        }
    }

    /// Common type of two values, such as the branches of `? :`.
    pub(super) fn unify(self, other: Self) -> Self {
        let is_open = |kind: &Self| matches!(kind, Self::List(many) if many.items == Self::Any);
        match (self, other) {
            (one, other) if one == other => one,
            (one, other @ Self::List(_)) if is_open(&one) => other,
            (one @ Self::List(_), other) if is_open(&other) => one,
            (_, _) => Self::Any,
        }
    }
}
