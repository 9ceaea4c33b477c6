//! What is known of values before there are any.
//!
//! In: nothing; whoever has a schema says it with these. Out: [`Kind`], which is walked beside a value: it says how a text in JSON
//! is read, under which names fields stand, and what two lists have to do with each other.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Anything: it is seen when there is a value.
    Any,
    /// True or false.
    Bool,
    /// A whole number.
    Int,
    /// A number with a fraction.
    Double,
    /// A text.
    Text,
    /// Base64 in JSON.
    Bytes,
    /// A text in JSON.
    Time,
    /// A text in JSON.
    Span,
    /// A list.
    List(Arc<Many>),
    /// Values of one kind by any name.
    Map(Arc<Kind>),
    /// Fields by the names under which expressions know them.
    Fields(Arc<BTreeMap<Box<str>, Known>>),
    /// A value that may be missing.
    Optional(Arc<Kind>),
    /// A single value of another type, by its name.
    Other(&'static str),
}

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Its name in JSON.
    pub name: Box<str>,
    /// The kind of its value.
    pub kind: Kind,
}

/// A list.
#[derive(Debug, Clone, PartialEq)]
pub struct Many {
    /// The kind of its items.
    pub items: Kind,
    /// How two lists of it are merged.
    pub merge: Merge,
}

/// How items are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// By their places.
    Atomic,
    /// By what they are; their order says nothing.
    Set,
    /// By the values of these fields; their order says nothing.
    Keyed(Box<[Box<str>]>),
}

/// Of what nothing is known.
pub(super) static ANY: Kind = Kind::Any;
/// A list of anything.
pub(super) static ANY_LIST: Many = Many { items: Kind::Any, merge: Merge::Atomic };

impl Kind {
    /// A list whose items are told apart by their places.
    pub(super) fn list(items: Self) -> Self {
        Self::List(Arc::new(Many { items, merge: Merge::Atomic }))
    }

    /// What it is called in messages.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Any => "dyn".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Int => "int".to_owned(),
            Self::Double => "double".to_owned(),
            Self::Text => "string".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Time => "timestamp".to_owned(),
            Self::Span => "duration".to_owned(),
            Self::List(many) => format!("list({})", many.items.told()),
            Self::Map(values) => format!("map(string, {})", values.told()),
            Self::Fields(_) => "object".to_owned(),
            Self::Optional(inner) => format!("optional_type({})", inner.told()),
            Self::Other(name) => (*name).to_owned(),
        }
    }

    /// What stands under an index or a key.
    pub(super) fn entry(&self) -> Self {
        match self {
            Self::List(many) => many.items.clone(),
            Self::Map(values) => (**values).clone(),
            Self::Optional(inner) => Self::Optional(inner.entry().into()),
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

    /// What a macro's variable is that goes through it.
    pub(super) fn item(&self) -> Self {
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

    /// What is one of two kinds.
    pub(super) fn or(self, other: Self) -> Self {
        let is_open = |kind: &Self| matches!(kind, Self::List(many) if many.items == Self::Any);
        match (self, other) {
            (one, other) if one == other => one,
            (one, other @ Self::List(_)) if is_open(&one) => other,
            (one @ Self::List(_), other) if is_open(&other) => one,
            (_, _) => Self::Any,
        }
    }
}
