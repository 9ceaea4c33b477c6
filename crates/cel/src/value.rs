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
use super::evaluate::{Fault, Meter, Sum};
use super::kind::{ANY, ANY_LIST, Kind, Many};
use super::times;
use super::urls::Url;

/// A value. Only this type distinguishes lists and maps of the object from computed ones.
#[derive(Debug, Clone, PartialEq)]
pub enum Val<'a> {
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
    Items(&'a [Value], &'a Many),
    /// Computed list.
    Made(Rc<Vec<Val<'a>>>),
    /// Map of the object.
    Map(&'a Map<String, Value>, &'a Kind),
    /// Computed map.
    Entries(Rc<Vec<(Val<'a>, Val<'a>)>>),
    /// Optional value.
    Optional(Option<Rc<Val<'a>>>),
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

impl<'a> Val<'a> {
    /// Creates a value from JSON and its static type.
    pub fn of(value: &'a Value, kind: &'a Kind) -> Self {
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
                Kind::List(many) => Self::Items(items, many),
                _ => Self::Items(items, &ANY_LIST),
            },
            Value::Object(map) => Self::Map(map, kind),
        }
    }

    /// Creates an optional value.
    pub fn optional(value: Option<Self>) -> Self {
        Self::Optional(value.map(Rc::new))
    }

    /// Returns the field of a map, by its name in expressions; an error for a value without fields.
    pub(super) fn field(&self, name: &str) -> Result<Option<Self>, Fault> {
        match self {
            Self::Map(map, kind) => Ok(entry(map, kind, name)),
            Self::Entries(entries) => {
                let is_it = |key: &Self| matches!(key, Self::Text(text) if text == name);
                Ok(entries.iter().find(|(key, _)| is_it(key)).map(|(_, value)| value.clone()))
            }
            _ => Err(Fault::Kinds("a field")),
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
            Self::Items(..) | Self::Made(_) => "list",
            Self::Map(..) | Self::Entries(_) => "map",
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
            Self::Items(items, _) => items.is_empty(),
            Self::Made(items) => items.is_empty(),
            Self::Map(map, _) => map.is_empty(),
            Self::Entries(entries) => entries.is_empty(),
            Self::Optional(value) => value.is_none(),
            Self::Amount(nanos) => *nanos == 0,
            Self::Time(_) | Self::Type(_) | Self::Ip(_) | Self::Cidr(..) | Self::Url(_) => false,
        }
    }

    /// Returns the boolean; for any other value an error that names `what`.
    pub fn truth(self, what: &'static str) -> Result<bool, Fault> {
        match self {
            Self::Bool(value) => Ok(value),
            _ => Err(Fault::Kinds(what)),
        }
    }

    /// Returns the range of a macro: the items of a list, or the keys of a map.
    pub(super) fn into_items(self, meter: &mut Meter) -> Result<Vec<Self>, Fault> {
        match self {
            Self::Items(items, many) => {
                meter.pay(items.len())?;
                Ok(items.iter().map(|item| Self::of(item, &many.items)).collect())
            }
            Self::Map(map, _) => {
                meter.pay(map.len())?;
                Ok(map.keys().map(|key| Self::Text(Cow::Borrowed(key))).collect())
            }
            Self::Entries(entries) => {
                meter.pay(entries.len())?;
                Ok(entries.iter().map(|(key, _)| key.clone()).collect())
            }
            Self::Made(items) => {
                pay_for(&items, meter)?;
                Ok(items.to_vec())
            }
            _ => Err(Fault::Kinds("a macro")),
        }
    }

    /// `self[key]`; `None` if there is no such item.
    pub(super) fn index(&self, key: &Self, meter: &mut Meter) -> Result<Option<Self>, Fault> {
        let place = match key {
            Self::Int(at) => usize::try_from(*at).ok(),
            Self::Uint(at) => usize::try_from(*at).ok(),
            // A double without a fraction is a valid index.
            Self::Double(at) if at.fract() == 0.0 && (0.0..1e9).contains(at) => Some(*at as usize),
            _ => None,
        };
        match (self, key) {
            (Self::Map(map, kind), Self::Text(key)) => {
                Ok(map.get(&**key).map(|value| Self::of(value, below(kind))))
            }
            (Self::Entries(entries), key) => {
                for (known, value) in entries.iter() {
                    if equal(known, key, meter)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
            (Self::Items(items, many), Self::Int(_) | Self::Uint(_) | Self::Double(_)) => {
                Ok(place.and_then(|at| items.get(at)).map(|item| Self::of(item, &many.items)))
            }
            (Self::Made(items), Self::Int(_) | Self::Uint(_) | Self::Double(_)) => {
                let Some(item) = place.and_then(|at| items.get(at)) else { return Ok(None) };
                pay_for(std::slice::from_ref(item), meter)?;
                Ok(Some(item.clone()))
            }
            (_, _) => Err(Fault::Kinds("[ ]")),
        }
    }

    /// Error for a missing item.
    pub(super) fn no_item(key: &Self) -> Fault {
        match key {
            Self::Int(at) => Fault::Number(Sum::NoIndex(*at)),
            Self::Uint(at) => Fault::Number(Sum::NoIndex(i64::try_from(*at).unwrap_or(i64::MAX))),
            Self::Text(key) => Fault::Missing((&**key).into()),
            _ => Fault::Missing("".into()),
        }
    }
}

/// Field of the object, by its name in expressions.
fn entry<'a>(map: &'a Map<String, Value>, kind: &'a Kind, name: &str) -> Option<Val<'a>> {
    match kind {
        Kind::Fields(fields) => {
            let known = fields.get(name)?;
            map.get(&*known.name).map(|value| Val::of(value, &known.kind))
        }
        kind => map.get(name).map(|value| Val::of(value, below(kind))),
    }
}

/// Static type of the values of a map.
pub(super) fn below(kind: &Kind) -> &Kind {
    match kind {
        Kind::Map(values) => values,
        _ => &ANY,
    }
}

/// Pays for a copy of items.
pub(super) fn pay_for(items: &[Val<'_>], meter: &mut Meter) -> Result<(), Fault> {
    meter.pay(items.len())?;
    items.iter().try_for_each(|item| match item {
        Val::Text(Cow::Owned(text)) => meter.pay_text(text.len()),
        _ => Ok(()),
    })
}
