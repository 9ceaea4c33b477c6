//! The values of an evaluation.
//!
//! In: JSON, and what is made of it. Out: [`Val`], and what can be done with it: comparing, adding, looking into it. What
//! comes from the object is borrowed; whatever takes more than one step is paid for.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::evaluate::{Fault, Meter};
use super::expression::Arithmetic;

/// A value. Lists of the object and lists that were made are told apart only here.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Cow<'a, str>),
    Items(&'a [Value]),
    Made(Rc<Vec<Val<'a>>>),
    Map(&'a Map<String, Value>),
}

/// How deep two values are compared; deeper ones are not what a rule is about.
const MAX_COMPARED: usize = 64;
const TOO_LARGE: Fault = Fault::Number("a number is too large");

impl<'a> Val<'a> {
    pub(super) fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), _, _) => Self::Int(value),
                (None, Some(value), _) => Self::Uint(value),
                (None, None, value) => Self::Double(value.unwrap_or_default()),
            },
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Array(items) => Self::Items(items),
            Value::Object(map) => Self::Map(map),
        }
    }

    pub(super) fn truth(self, what: &'static str) -> Result<bool, Fault> {
        match self {
            Self::Bool(value) => Ok(value),
            _ => Err(Fault::Kinds(what)),
        }
    }

    /// What a macro goes through: items, or the keys of a mapping.
    pub(super) fn into_items(self, meter: &mut Meter) -> Result<Vec<Self>, Fault> {
        match self {
            Self::Items(items) => {
                meter.pay(items.len())?;
                Ok(items.iter().map(Self::of).collect())
            }
            Self::Map(map) => {
                meter.pay(map.len())?;
                Ok(map.keys().map(|key| Self::Text(Cow::Borrowed(key))).collect())
            }
            Self::Made(items) => {
                pay_for(&items, meter)?;
                Ok(items.to_vec())
            }
            _ => Err(Fault::Kinds("a macro")),
        }
    }

    /// `self[key]`.
    pub(super) fn index(self, key: &Self, meter: &mut Meter) -> Result<Self, Fault> {
        let place = match key {
            Self::Int(at) => usize::try_from(*at).ok(),
            Self::Uint(at) => usize::try_from(*at).ok(),
            _ => None,
        };
        let none = Fault::Number("an index is none of the list's");
        match (self, key, place) {
            (Self::Map(map), Self::Text(key), _) => {
                map.get(&**key).map(Self::of).ok_or_else(|| Fault::Missing((&**key).into()))
            }
            (Self::Items(items), Self::Int(_) | Self::Uint(_), at) => {
                at.and_then(|at| items.get(at)).map(Self::of).ok_or(none)
            }
            (Self::Made(items), Self::Int(_) | Self::Uint(_), at) => {
                let item = at.and_then(|at| items.get(at)).ok_or(none)?;
                pay_for(std::slice::from_ref(item), meter)?;
                Ok(item.clone())
            }
            (_, _, _) => Err(Fault::Kinds("[ ]")),
        }
    }

    pub(super) fn add(self, other: Self, meter: &mut Meter) -> Result<Self, Fault> {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => {
                meter.pay_text(left.len() + right.len())?;
                Ok(Self::Text(left + right))
            }
            (left @ (Self::Items(_) | Self::Made(_)), right @ (Self::Items(_) | Self::Made(_))) => {
                let mut items = left.into_items(meter)?;
                items.extend(right.into_items(meter)?);
                Ok(Self::Made(Rc::new(items)))
            }
            (left, right) => left.arithmetic(Arithmetic::Add, &right),
        }
    }

    /// Numbers of one kind, as in CEL: what is an int and what is a double is not guessed.
    pub(super) fn arithmetic(self, operator: Arithmetic, other: &Self) -> Result<Self, Fault> {
        const ZERO: Fault = Fault::Number("a number is divided by zero");
        Ok(match (self, other) {
            (Self::Int(left), Self::Int(right)) => Self::Int(match operator {
                Arithmetic::Add => left.checked_add(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Subtract => left.checked_sub(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Multiply => left.checked_mul(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Divide => left.checked_div(*right).ok_or(ZERO)?,
                Arithmetic::Remainder => left.checked_rem(*right).ok_or(ZERO)?,
            }),
            (Self::Uint(left), Self::Uint(right)) => Self::Uint(match operator {
                Arithmetic::Add => left.checked_add(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Subtract => left.checked_sub(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Multiply => left.checked_mul(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Divide => left.checked_div(*right).ok_or(ZERO)?,
                Arithmetic::Remainder => left.checked_rem(*right).ok_or(ZERO)?,
            }),
            (Self::Double(left), Self::Double(right)) => Self::Double(match operator {
                Arithmetic::Add => left + right,
                Arithmetic::Subtract => left - right,
                Arithmetic::Multiply => left * right,
                Arithmetic::Divide => left / right,
                Arithmetic::Remainder => return Err(Fault::Kinds("%")),
            }),
            (_, _) => return Err(Fault::Kinds("arithmetic")),
        })
    }

    /// `int(self)`.
    pub(super) fn to_int(&self) -> Result<Self, Fault> {
        Ok(Self::Int(match self {
            Self::Int(value) => *value,
            Self::Uint(value) => i64::try_from(*value).map_err(|_| TOO_LARGE)?,
            // Both bounds are exact as doubles; the upper one is the first that is too large.
            Self::Double(value) if (-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(value) => {
                *value as i64
            }
            Self::Double(_) => return Err(TOO_LARGE),
            Self::Text(text) => text.parse().map_err(|_| Fault::Number("a text is no number"))?,
            _ => return Err(Fault::Kinds("int")),
        }))
    }

    /// `string(self)`.
    pub(super) fn into_text(self) -> Result<Self, Fault> {
        Ok(Self::Text(match self {
            Self::Text(text) => text,
            Self::Int(value) => value.to_string().into(),
            Self::Uint(value) => value.to_string().into(),
            Self::Double(value) => value.to_string().into(),
            Self::Bool(value) => value.to_string().into(),
            _ => return Err(Fault::Kinds("string")),
        }))
    }
}

/// Pays for copying items.
fn pay_for(items: &[Val<'_>], meter: &mut Meter) -> Result<(), Fault> {
    meter.pay(items.len())?;
    items.iter().try_for_each(|item| match item {
        Val::Text(Cow::Owned(text)) => meter.pay_text(text.len()),
        _ => Ok(()),
    })
}

/// `size(value)`: characters, items or entries.
pub(super) fn size(value: &Val<'_>, meter: &mut Meter) -> Result<i64, Fault> {
    let size = match value {
        Val::Text(text) => {
            meter.pay_text(text.len())?;
            text.chars().count()
        }
        Val::Items(items) => items.len(),
        Val::Made(items) => items.len(),
        Val::Map(map) => map.len(),
        _ => return Err(Fault::Kinds("size")),
    };
    i64::try_from(size).map_err(|_| TOO_LARGE)
}

/// `item in all`: an item of a list, a key of a mapping.
pub(super) fn within(item: &Val<'_>, all: &Val<'_>, meter: &mut Meter) -> Result<bool, Fault> {
    match (all, item) {
        (Val::Map(map), Val::Text(key)) => Ok(map.contains_key(&**key)),
        (Val::Map(_), _) => Ok(false),
        (Val::Items(items), _) => {
            for other in *items {
                if equal(&Val::of(other), item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Val::Made(items), _) => {
            for other in items.iter() {
                if equal(other, item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (_, _) => Err(Fault::Kinds("in")),
    }
}

/// Whether two values are the same. Values of different kinds are not, and numbers are compared as numbers.
pub(super) fn equal(left: &Val<'_>, right: &Val<'_>, meter: &mut Meter) -> Result<bool, Fault> {
    equal_within(left, right, meter, MAX_COMPARED)
}

fn equal_within(left: &Val<'_>, right: &Val<'_>, meter: &mut Meter, depth: usize) -> Result<bool, Fault> {
    meter.pay(1)?;
    let depth = depth.checked_sub(1).ok_or(Fault::TooMuch)?;
    match (left, right) {
        (Val::Null, Val::Null) => Ok(true),
        (Val::Bool(left), Val::Bool(right)) => Ok(left == right),
        (Val::Text(left), Val::Text(right)) => {
            meter.pay_text(left.len().min(right.len()))?;
            Ok(left == right)
        }
        (Val::Map(left), Val::Map(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for ((left_key, left), (right_key, right)) in left.iter().zip(right.iter()) {
                meter.pay_text(left_key.len())?;
                if left_key != right_key || !equal_within(&Val::of(left), &Val::of(right), meter, depth)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Val::Items(_) | Val::Made(_), Val::Items(_) | Val::Made(_)) => {
            if size(left, meter)? != size(right, meter)? {
                return Ok(false);
            }
            let (left, right) = (left.clone().into_items(meter)?, right.clone().into_items(meter)?);
            for (left, right) in left.iter().zip(&right) {
                if !equal_within(left, right, meter, depth)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (_, _) => Ok(number_order(left, right) == Some(Ordering::Equal)),
    }
}

/// The order of two values of one kind; none for a number that is none.
pub(super) fn compare(left: &Val<'_>, right: &Val<'_>, meter: &mut Meter) -> Result<Option<Ordering>, Fault> {
    match (left, right) {
        (Val::Text(left), Val::Text(right)) => {
            meter.pay_text(left.len().min(right.len()))?;
            Ok(Some(left.cmp(right)))
        }
        (Val::Bool(left), Val::Bool(right)) => Ok(Some(left.cmp(right))),
        (Val::Int(_) | Val::Uint(_) | Val::Double(_), Val::Int(_) | Val::Uint(_) | Val::Double(_)) => {
            Ok(number_order(left, right))
        }
        (_, _) => Err(Fault::Kinds("a comparison")),
    }
}

/// The order of two numbers of any kinds; none where one is no number.
fn number_order(left: &Val<'_>, right: &Val<'_>) -> Option<Ordering> {
    // Every int and uint fits, so no two of them are the same by rounding.
    let whole = |value: &Val<'_>| match value {
        Val::Int(value) => Some(i128::from(*value)),
        Val::Uint(value) => Some(i128::from(*value)),
        _ => None,
    };
    let double = |value: &Val<'_>| match value {
        Val::Int(value) => Some(*value as f64),
        Val::Uint(value) => Some(*value as f64),
        Val::Double(value) => Some(*value),
        _ => None,
    };
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => double(left)?.partial_cmp(&double(right)?),
    }
}
