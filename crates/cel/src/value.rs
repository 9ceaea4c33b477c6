//! Values of an evaluation.
//!
//! In: JSON with its static type, and computed values.
//! Out: [`CelValue`], and access to its contents; `compare.rs` compares values, and `arithmetic.rs`
//! adds them. Values of the object are borrowed; an operation of more than one step is paid for
//! from the budget.

use core::net::IpAddr;
use std::borrow::Cow;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::compare::equal;
use super::evaluate::{EvaluationError, NumberError, StepBudget};
use super::times;
use super::urls::Url;
use crate::static_types::{ANY, ANY_LIST, Kind, ListKind};

/// A value. Only this type distinguishes lists and maps of the object from computed ones.
#[derive(Debug, Clone, PartialEq)]
pub enum CelValue<'a> {
    /// Null.
    Null,
    /// Boolean.
    Bool(bool),
    /// Signed integer.
    Int(i64),
    /// Unsigned integer.
    Uint(u64),
    /// Floating-point number.
    Double(f64),
    /// String.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Rc<[u8]>),
    /// Timestamp.
    Time(Timestamp),
    /// Duration, in nanoseconds.
    Span(i128),
    /// List of the object.
    JsonList(&'a [Value], &'a ListKind),
    /// Computed list.
    List(Rc<Vec<CelValue<'a>>>),
    /// Map of the object.
    JsonMap(&'a Map<String, Value>, &'a Kind),
    /// Computed map.
    Entries(Rc<Vec<(CelValue<'a>, CelValue<'a>)>>),
    /// Optional value.
    Optional(Option<Rc<CelValue<'a>>>),
    /// Type, by its name.
    Type(&'static str),
    /// Quantity, in billionths.
    Amount(i128),
    /// IP address.
    Ip(IpAddr),
    /// CIDR range: its address as written, and the length of its prefix.
    Cidr(IpAddr, u8),
    /// URL.
    Url(Rc<Url>),
}

impl<'a> CelValue<'a> {
    /// Creates a value from JSON and its static type.
    pub fn from_json(value: &'a Value, kind: &'a Kind) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) if *kind == Kind::Double => {
                Self::Double(number.as_f64().unwrap_or_default())
            }
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), _, _) => Self::Int(value),
                (None, Some(value), _) => Self::Uint(value),
                (None, None, value) => Self::Double(value.unwrap_or_default()),
            },
            Value::String(text) => {
                let read = match kind {
                    Kind::Bytes => STANDARD.decode(text).ok().map(|bytes| Self::Bytes(bytes.into())),
                    Kind::Time => times::time(text).map(Self::Time),
                    Kind::Span => times::span(text).map(Self::Span),
                    _ => None,
                };
                read.unwrap_or(Self::Text(Cow::Borrowed(text)))
            }
            Value::Array(items) => match kind {
                Kind::List(many) => Self::JsonList(items, many),
                _ => Self::JsonList(items, &ANY_LIST),
            },
            Value::Object(map) => Self::JsonMap(map, kind),
        }
    }

    /// Creates an optional value.
    pub fn optional(value: Option<Self>) -> Self {
        Self::Optional(value.map(Rc::new))
    }

    /// Returns the field of a map, by its name in expressions; an error for a value without fields.
    pub(super) fn field(&self, name: &str) -> Result<Option<Self>, EvaluationError> {
        match self {
            Self::JsonMap(map, kind) => Ok(entry(map, kind, name)),
            Self::Entries(entries) => {
                let is_it = |key: &Self| matches!(key, Self::Text(text) if text == name);
                Ok(entries.iter().find(|(key, _)| is_it(key)).map(|(_, value)| value.clone()))
            }
            _ => Err(EvaluationError::WrongType("a field")),
        }
    }

    /// Name of the type, as `type(value)` returns it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Time(_) => "google.protobuf.Timestamp",
            Self::Span(_) => "google.protobuf.Duration",
            Self::JsonList(..) | Self::List(_) => "list",
            Self::JsonMap(..) | Self::Entries(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Amount(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(..) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
        }
    }

    /// True for the zero value of its type.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::Text(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Span(span) => *span == 0,
            Self::JsonList(items, _) => items.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::JsonMap(map, _) => map.is_empty(),
            Self::Entries(entries) => entries.is_empty(),
            Self::Optional(value) => value.is_none(),
            Self::Amount(nanos) => *nanos == 0,
            Self::Time(_) | Self::Type(_) | Self::Ip(_) | Self::Cidr(..) | Self::Url(_) => false,
        }
    }

    /// Returns the boolean; for any other value an error that names `what`.
    pub fn into_bool(self, what: &'static str) -> Result<bool, EvaluationError> {
        match self {
            Self::Bool(value) => Ok(value),
            _ => Err(EvaluationError::WrongType(what)),
        }
    }

    /// Returns the range of a macro: the items of a list, or the keys of a map.
    pub(super) fn into_items(self, meter: &mut StepBudget) -> Result<Vec<Self>, EvaluationError> {
        match self {
            Self::JsonList(items, many) => {
                meter.spend(items.len())?;
                Ok(items.iter().map(|item| Self::from_json(item, &many.items)).collect())
            }
            Self::JsonMap(map, _) => {
                meter.spend(map.len())?;
                Ok(map.keys().map(|key| Self::Text(Cow::Borrowed(key))).collect())
            }
            Self::Entries(entries) => {
                meter.spend(entries.len())?;
                Ok(entries.iter().map(|(key, _)| key.clone()).collect())
            }
            Self::List(items) => {
                pay_for(&items, meter)?;
                Ok(items.to_vec())
            }
            _ => Err(EvaluationError::WrongType("a macro")),
        }
    }

    /// `self[key]`; `None` if there is no such item.
    pub(super) fn index(&self, key: &Self, meter: &mut StepBudget) -> Result<Option<Self>, EvaluationError> {
        let place = match key {
            Self::Int(at) => usize::try_from(*at).ok(),
            Self::Uint(at) => usize::try_from(*at).ok(),
            // A double without a fraction is a valid index.
            Self::Double(at) if at.fract() == 0.0 && (0.0..1e9).contains(at) => Some(*at as usize),
            _ => None,
        };
        match (self, key) {
            (Self::JsonMap(map, kind), Self::Text(key)) => {
                Ok(map.get(&**key).map(|value| Self::from_json(value, map_value_kind(kind))))
            }
            (Self::Entries(entries), key) => {
                for (known, value) in entries.iter() {
                    if equal(known, key, meter)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
            (Self::JsonList(items, many), Self::Int(_) | Self::Uint(_) | Self::Double(_)) => {
                Ok(place.and_then(|at| items.get(at)).map(|item| Self::from_json(item, &many.items)))
            }
            (Self::List(items), Self::Int(_) | Self::Uint(_) | Self::Double(_)) => {
                let Some(item) = place.and_then(|at| items.get(at)) else { return Ok(None) };
                pay_for(std::slice::from_ref(item), meter)?;
                Ok(Some(item.clone()))
            }
            (_, _) => Err(EvaluationError::WrongType("[ ]")),
        }
    }

    /// Error for a missing item.
    pub(super) fn no_item(key: &Self) -> EvaluationError {
        match key {
            Self::Int(at) => EvaluationError::Number(NumberError::NoIndex(*at)),
            Self::Uint(at) => {
                EvaluationError::Number(NumberError::NoIndex(i64::try_from(*at).unwrap_or(i64::MAX)))
            }
            Self::Text(key) => EvaluationError::MissingField((&**key).into()),
            _ => EvaluationError::MissingField("".into()),
        }
    }
}

/// Field of the object, by its name in expressions.
fn entry<'a>(map: &'a Map<String, Value>, kind: &'a Kind, name: &str) -> Option<CelValue<'a>> {
    match kind {
        Kind::Fields(fields) => {
            let known = fields.get(name)?;
            map.get(&*known.name).map(|value| CelValue::from_json(value, &known.kind))
        }
        kind => map.get(name).map(|value| CelValue::from_json(value, map_value_kind(kind))),
    }
}

/// Static type of the values of a map.
pub(super) fn map_value_kind(kind: &Kind) -> &Kind {
    match kind {
        Kind::Map(values) => values,
        _ => &ANY,
    }
}

/// Pays for a copy of items.
pub(super) fn pay_for(items: &[CelValue<'_>], meter: &mut StepBudget) -> Result<(), EvaluationError> {
    meter.spend(items.len())?;
    items.iter().try_for_each(|item| match item {
        CelValue::Text(Cow::Owned(text)) => meter.spend_for_text(text.len()),
        _ => Ok(()),
    })
}
