//! Comparison of values.
//!
//! In: two values.
//! Out: equality, order, or membership of one in the other. Lists of type `set` and `map` are equal
//! in any order.

use std::cmp::Ordering;

use serde_json::Value;

use super::evaluate::{Fault, Meter};
use super::kind::{ANY, ANY_LIST, Kind, Merge};
use super::value::{Val, below};

/// Maximal depth of a comparison; rules do not need deeper values.
const MAX_COMPARED: usize = 64;

/// Compares two values for equality. Values of different kinds are not equal; all numbers compare
/// as numbers.
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
        (Val::Bytes(left), Val::Bytes(right)) => {
            meter.pay_text(left.len().min(right.len()))?;
            Ok(left == right)
        }
        (Val::Time(left), Val::Time(right)) => Ok(left == right),
        (Val::Span(left), Val::Span(right)) => Ok(left == right),
        (Val::Type(left), Val::Type(right)) => Ok(left == right),
        (Val::Amount(left), Val::Amount(right)) => Ok(left == right),
        (Val::Ip(left), Val::Ip(right)) => Ok(left == right),
        (Val::Cidr(left, bits), Val::Cidr(right, other)) => Ok(left == right && bits == other),
        (Val::Url(left), Val::Url(right)) => Ok(left == right),
        (Val::Optional(left), Val::Optional(right)) => match (left, right) {
            (Some(left), Some(right)) => equal_within(left, right, meter, depth),
            (left, right) => Ok(left.is_none() && right.is_none()),
        },
        (Val::Map(left, left_kind), Val::Map(right, right_kind)) => Ok(left.len() == right.len() && {
            let mut same = true;
            for ((left_key, left), (right_key, right)) in left.iter().zip(right.iter()) {
                meter.pay_text(left_key.len())?;
                let left = Val::of(left, value_kind(left_kind, left_key));
                let right = Val::of(right, value_kind(right_kind, right_key));
                same = same && left_key == right_key && equal_within(&left, &right, meter, depth)?;
            }
            same
        }),
        (Val::Entries(entries), map @ (Val::Map(..) | Val::Entries(_)))
        | (map @ Val::Map(..), Val::Entries(entries)) => {
            if size(map, meter)? != size(&Val::Entries(entries.clone()), meter)? {
                return Ok(false);
            }
            for (key, value) in entries.iter() {
                match map.index(key, meter)? {
                    Some(other) if equal_within(value, &other, meter, depth)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Val::Items(..) | Val::Made(_), Val::Items(..) | Val::Made(_)) => {
            if size(left, meter)? != size(right, meter)? {
                return Ok(false);
            }
            let in_order = *merge_of(left) == Merge::Atomic;
            let (left, right) = (left.clone().into_items(meter)?, right.clone().into_items(meter)?);
            equal_items(&left, &right, in_order, meter, depth)
        }
        (_, _) => Ok(number_order(left, right) == Some(Ordering::Equal)),
    }
}

fn equal_items(
    left: &[Val<'_>],
    right: &[Val<'_>],
    in_order: bool,
    meter: &mut Meter,
    depth: usize,
) -> Result<bool, Fault> {
    for (at, item) in left.iter().enumerate() {
        let mut found = false;
        for other in if in_order { &right[at..=at] } else { right } {
            found = found || equal_within(item, other, meter, depth)?;
        }
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Kind of the value under a JSON name.
fn value_kind<'a>(kind: &'a Kind, name: &str) -> &'a Kind {
    match kind {
        Kind::Fields(fields) => {
            let own = fields.get(name).filter(|known| *known.name == *name);
            own.or_else(|| fields.values().find(|known| *known.name == *name)).map_or(&ANY, |it| &it.kind)
        }
        kind => below(kind),
    }
}

/// Compares two values of one kind; `None` if one of them is NaN.
pub(super) fn compare(left: &Val<'_>, right: &Val<'_>, meter: &mut Meter) -> Result<Option<Ordering>, Fault> {
    match (left, right) {
        (Val::Text(left), Val::Text(right)) => {
            meter.pay_text(left.len().min(right.len()))?;
            Ok(Some(left.cmp(right)))
        }
        (Val::Bool(left), Val::Bool(right)) => Ok(Some(left.cmp(right))),
        (Val::Time(left), Val::Time(right)) => Ok(Some(left.cmp(right))),
        (Val::Span(left), Val::Span(right)) => Ok(Some(left.cmp(right))),
        (Val::Bytes(left), Val::Bytes(right)) => Ok(Some(left.cmp(right))),
        (Val::Int(_) | Val::Uint(_) | Val::Double(_), Val::Int(_) | Val::Uint(_) | Val::Double(_)) => {
            Ok(number_order(left, right))
        }
        (_, _) => Err(Fault::Kinds("a comparison")),
    }
}

/// Compares two numbers of any kinds; `None` if one of them is NaN.
fn number_order(left: &Val<'_>, right: &Val<'_>) -> Option<Ordering> {
    // Every int and uint fits, so rounding cannot make two of them equal.
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

/// `size(value)`: number of characters, items or entries.
pub(super) fn size(value: &Val<'_>, meter: &mut Meter) -> Result<i64, Fault> {
    let size = match value {
        Val::Text(text) => {
            meter.pay_text(text.len())?;
            text.chars().count()
        }
        Val::Bytes(bytes) => bytes.len(),
        Val::Items(items, _) => items.len(),
        Val::Made(items) => items.len(),
        Val::Map(map, _) => map.len(),
        Val::Entries(entries) => entries.len(),
        _ => return Err(Fault::Kinds("size")),
    };
    i64::try_from(size).map_err(|_| Fault::TooMuch)
}

/// `item in all`: an item of a list, or a key of a map.
pub(super) fn within(item: &Val<'_>, all: &Val<'_>, meter: &mut Meter) -> Result<bool, Fault> {
    match (all, item) {
        (Val::Map(map, _), Val::Text(key)) => Ok(map.contains_key(&**key)),
        (Val::Map(..), _) => Ok(false),
        (Val::Entries(entries), _) => {
            for (key, _) in entries.iter() {
                if equal(key, item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Val::Items(items, many), _) => {
            for other in *items {
                if equal(&Val::of(other, &many.items), item, meter)? {
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

/// List type, which says how items of the list are identified.
pub(super) fn merge_of<'a>(list: &Val<'a>) -> &'a Merge {
    match list {
        Val::Items(_, many) => &many.merge,
        _ => &ANY_LIST.merge,
    }
}

/// True if two items have the same identity, so that a list cannot contain both.
pub(super) fn is_same(
    merge: &Merge,
    one: &Val<'_>,
    other: &Val<'_>,
    meter: &mut Meter,
) -> Result<bool, Fault> {
    match merge {
        Merge::Atomic => Ok(false),
        Merge::Set => equal(one, other, meter),
        Merge::Keyed(keys) => {
            for key in keys {
                let (one, other) = (json(one, key), json(other, key));
                meter.pay(1)?;
                if one != other {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Field of a borrowed object, in JSON.
fn json<'a>(value: &Val<'a>, name: &str) -> Option<&'a Value> {
    match value {
        Val::Map(map, _) => map.get(name),
        _ => None,
    }
}
