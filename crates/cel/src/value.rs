//! The values of an evaluation.
//!
//! In: JSON with what is known of it, and what is made of it. Out: [`Val`], and what is in it; `compare.rs` compares values, and
//! `numbers.rs` adds them. What comes from the object is borrowed; whatever takes more than one step is paid for.

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

/// A value. Lists and mappings of the object and those that were made are told apart only here.
#[derive(Debug, Clone, PartialEq)]
pub enum Val<'a> {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number without a sign.
    Uint(u64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Rc<[u8]>),
    /// A point in time.
    Time(Timestamp),
    /// Billionths of a second.
    Span(i128),
    /// A list of the object.
    Items(&'a [Value], &'a Many),
    /// A list that was made.
    Made(Rc<Vec<Val<'a>>>),
    /// A mapping of the object.
    Map(&'a Map<String, Value>, &'a Kind),
    /// A mapping that was made.
    Entries(Rc<Vec<(Val<'a>, Val<'a>)>>),
    /// A value that may be missing.
    Optional(Option<Rc<Val<'a>>>),
    /// A type, by its name.
    Type(&'static str),
    /// An amount with a unit, in billionths of one.
    Amount(i128),
    /// An address.
    Ip(IpAddr),
    /// A range of addresses: one as it is written, and the bits that count.
    Cidr(IpAddr, u8),
    /// An address of the web.
    Url(Rc<Url>),
}

impl<'a> Val<'a> {
    /// A value in JSON, of which this much is known.
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

    /// A value that may be missing.
    pub fn optional(value: Option<Self>) -> Self {
        Self::Optional(value.map(Rc::new))
    }

    /// The field of a mapping, by the name that expressions have for it; an error where there are no fields.
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

    /// What `type` says of it.
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

    /// True for what a value of its type is before anybody sets it.
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

    /// True or false; an error that names `what` for any other value.
    pub fn truth(self, what: &'static str) -> Result<bool, Fault> {
        match self {
            Self::Bool(value) => Ok(value),
            _ => Err(Fault::Kinds(what)),
        }
    }

    /// What a macro goes through: items, or the keys of a mapping.
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

    /// `self[key]`; none where there is no such item.
    pub(super) fn index(&self, key: &Self, meter: &mut Meter) -> Result<Option<Self>, Fault> {
        let place = match key {
            Self::Int(at) => usize::try_from(*at).ok(),
            Self::Uint(at) => usize::try_from(*at).ok(),
            // A number without a fraction is as good.
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

    /// Why there is no item by this key.
    pub(super) fn no_item(key: &Self) -> Fault {
        match key {
            Self::Int(at) => Fault::Number(Sum::NoIndex(*at)),
            Self::Uint(at) => Fault::Number(Sum::NoIndex(i64::try_from(*at).unwrap_or(i64::MAX))),
            Self::Text(key) => Fault::Missing((&**key).into()),
            _ => Fault::Missing("".into()),
        }
    }
}

/// A field of the object, by the name that expressions have for it.
fn entry<'a>(map: &'a Map<String, Value>, kind: &'a Kind, name: &str) -> Option<Val<'a>> {
    match kind {
        Kind::Fields(fields) => {
            let known = fields.get(name)?;
            map.get(&*known.name).map(|value| Val::of(value, &known.kind))
        }
        kind => map.get(name).map(|value| Val::of(value, below(kind))),
    }
}

/// What is known of the values of a mapping.
pub(super) fn below(kind: &Kind) -> &Kind {
    match kind {
        Kind::Map(values) => values,
        _ => &ANY,
    }
}

/// Pays for copying items.
pub(super) fn pay_for(items: &[Val<'_>], meter: &mut Meter) -> Result<(), Fault> {
    meter.pay(items.len())?;
    items.iter().try_for_each(|item| match item {
        Val::Text(Cow::Owned(text)) => meter.pay_text(text.len()),
        _ => Ok(()),
    })
}
