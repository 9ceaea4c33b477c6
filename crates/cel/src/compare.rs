//! Comparison of values.
//!
//! In: two values.
//! Out: equality, order, or membership of one in the other. Lists of type `set` and `map` are equal
//! in any order.

use std::cmp::Ordering;

use serde_json::Value;

use super::evaluate::{EvaluationError, StepBudget};
use super::value::{CelValue, map_value_kind};
use crate::static_types::{ANY, ANY_LIST, Kind, ListType};

/// Maximal depth of a comparison; rules do not need deeper values.
const MAX_COMPARED: usize = 64;

/// Compares two values for equality. Values of different kinds are not equal; all numbers compare
/// as numbers.
pub(super) fn equal(
    left: &CelValue<'_>,
    right: &CelValue<'_>,
    meter: &mut StepBudget,
) -> Result<bool, EvaluationError> {
    equal_within(left, right, meter, MAX_COMPARED)
}

fn equal_within(
    left: &CelValue<'_>,
    right: &CelValue<'_>,
    meter: &mut StepBudget,
    depth: usize,
) -> Result<bool, EvaluationError> {
    meter.spend(1)?;
    let depth = depth.checked_sub(1).ok_or(EvaluationError::OutOfSteps)?;
    match (left, right) {
        (CelValue::Null, CelValue::Null) => Ok(true),
        (CelValue::Bool(left), CelValue::Bool(right)) => Ok(left == right),
        (CelValue::Text(left), CelValue::Text(right)) => {
            meter.spend_for_text(left.len().min(right.len()))?;
            Ok(left == right)
        }
        (CelValue::Bytes(left), CelValue::Bytes(right)) => {
            meter.spend_for_text(left.len().min(right.len()))?;
            Ok(left == right)
        }
        (CelValue::Time(left), CelValue::Time(right)) => Ok(left == right),
        (CelValue::Span(left), CelValue::Span(right)) => Ok(left == right),
        (CelValue::Type(left), CelValue::Type(right)) => Ok(left == right),
        (CelValue::Amount(left), CelValue::Amount(right)) => Ok(left == right),
        (CelValue::Ip(left), CelValue::Ip(right)) => Ok(left == right),
        (CelValue::Cidr(left, bits), CelValue::Cidr(right, other)) => Ok(left == right && bits == other),
        (CelValue::Url(left), CelValue::Url(right)) => Ok(left == right),
        (CelValue::Optional(left), CelValue::Optional(right)) => match (left, right) {
            (Some(left), Some(right)) => equal_within(left, right, meter, depth),
            (left, right) => Ok(left.is_none() && right.is_none()),
        },
        (CelValue::JsonMap(left, left_kind), CelValue::JsonMap(right, right_kind)) => {
            Ok(left.len() == right.len() && {
                let mut same = true;
                for ((left_key, left), (right_key, right)) in left.iter().zip(right.iter()) {
                    meter.spend_for_text(left_key.len())?;
                    let left = CelValue::from_json(left, value_kind(left_kind, left_key));
                    let right = CelValue::from_json(right, value_kind(right_kind, right_key));
                    same = same && left_key == right_key && equal_within(&left, &right, meter, depth)?;
                }
                same
            })
        }
        (CelValue::Entries(entries), map @ (CelValue::JsonMap(..) | CelValue::Entries(_)))
        | (map @ CelValue::JsonMap(..), CelValue::Entries(entries)) => {
            if size(map, meter)? != size(&CelValue::Entries(entries.clone()), meter)? {
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
        (CelValue::JsonList(..) | CelValue::List(_), CelValue::JsonList(..) | CelValue::List(_)) => {
            if size(left, meter)? != size(right, meter)? {
                return Ok(false);
            }
            let in_order = *list_type_of(left) == ListType::Atomic;
            let (left, right) = (left.clone().into_items(meter)?, right.clone().into_items(meter)?);
            equal_items(&left, &right, in_order, meter, depth)
        }
        (_, _) => Ok(number_order(left, right) == Some(Ordering::Equal)),
    }
}

fn equal_items(
    left: &[CelValue<'_>],
    right: &[CelValue<'_>],
    in_order: bool,
    meter: &mut StepBudget,
    depth: usize,
) -> Result<bool, EvaluationError> {
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
        kind => map_value_kind(kind),
    }
}

/// Compares two values of one kind; `None` if one of them is NaN.
pub(super) fn compare(
    left: &CelValue<'_>,
    right: &CelValue<'_>,
    meter: &mut StepBudget,
) -> Result<Option<Ordering>, EvaluationError> {
    match (left, right) {
        (CelValue::Text(left), CelValue::Text(right)) => {
            meter.spend_for_text(left.len().min(right.len()))?;
            Ok(Some(left.cmp(right)))
        }
        (CelValue::Bool(left), CelValue::Bool(right)) => Ok(Some(left.cmp(right))),
        (CelValue::Time(left), CelValue::Time(right)) => Ok(Some(left.cmp(right))),
        (CelValue::Span(left), CelValue::Span(right)) => Ok(Some(left.cmp(right))),
        (CelValue::Bytes(left), CelValue::Bytes(right)) => Ok(Some(left.cmp(right))),
        (
            CelValue::Int(_) | CelValue::Uint(_) | CelValue::Double(_),
            CelValue::Int(_) | CelValue::Uint(_) | CelValue::Double(_),
        ) => Ok(number_order(left, right)),
        (_, _) => Err(EvaluationError::WrongType("a comparison")),
    }
}

/// Compares two numbers of any kinds; `None` if one of them is NaN.
fn number_order(left: &CelValue<'_>, right: &CelValue<'_>) -> Option<Ordering> {
    // Every int and uint fits, so rounding cannot make two of them equal.
    let whole = |value: &CelValue<'_>| match value {
        CelValue::Int(value) => Some(i128::from(*value)),
        CelValue::Uint(value) => Some(i128::from(*value)),
        _ => None,
    };
    let double = |value: &CelValue<'_>| match value {
        CelValue::Int(value) => Some(*value as f64),
        CelValue::Uint(value) => Some(*value as f64),
        CelValue::Double(value) => Some(*value),
        _ => None,
    };
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => double(left)?.partial_cmp(&double(right)?),
    }
}

/// `size(value)`: number of characters, items or entries.
pub(super) fn size(value: &CelValue<'_>, meter: &mut StepBudget) -> Result<i64, EvaluationError> {
    let size = match value {
        CelValue::Text(text) => {
            meter.spend_for_text(text.len())?;
            text.chars().count()
        }
        CelValue::Bytes(bytes) => bytes.len(),
        CelValue::JsonList(items, _) => items.len(),
        CelValue::List(items) => items.len(),
        CelValue::JsonMap(map, _) => map.len(),
        CelValue::Entries(entries) => entries.len(),
        _ => return Err(EvaluationError::WrongType("size")),
    };
    i64::try_from(size).map_err(|_| EvaluationError::OutOfSteps)
}

/// `item in all`: an item of a list, or a key of a map.
pub(super) fn contains(
    item: &CelValue<'_>,
    all: &CelValue<'_>,
    meter: &mut StepBudget,
) -> Result<bool, EvaluationError> {
    match (all, item) {
        (CelValue::JsonMap(map, _), CelValue::Text(key)) => Ok(map.contains_key(&**key)),
        (CelValue::JsonMap(..), _) => Ok(false),
        (CelValue::Entries(entries), _) => {
            for (key, _) in entries.iter() {
                if equal(key, item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (CelValue::JsonList(items, many), _) => {
            for other in *items {
                if equal(&CelValue::from_json(other, &many.items), item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (CelValue::List(items), _) => {
            for other in items.iter() {
                if equal(other, item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (_, _) => Err(EvaluationError::WrongType("in")),
    }
}

/// List type, which says how items of the list are identified.
pub(super) fn list_type_of<'a>(list: &CelValue<'a>) -> &'a ListType {
    match list {
        CelValue::JsonList(_, many) => &many.list_type,
        _ => &ANY_LIST.list_type,
    }
}

/// True if two items have the same identity, so that a list cannot contain both.
pub(super) fn is_same(
    merge: &ListType,
    one: &CelValue<'_>,
    other: &CelValue<'_>,
    meter: &mut StepBudget,
) -> Result<bool, EvaluationError> {
    match merge {
        ListType::Atomic => Ok(false),
        ListType::Set => equal(one, other, meter),
        ListType::Keyed(keys) => {
            for key in keys {
                let (one, other) = (json(one, key), json(other, key));
                meter.spend(1)?;
                if one != other {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Field of a borrowed object, in JSON.
fn json<'a>(value: &CelValue<'a>, name: &str) -> Option<&'a Value> {
    match value {
        CelValue::JsonMap(map, _) => map.get(name),
        _ => None,
    }
}
