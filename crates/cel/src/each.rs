//! Macros that the parser does not expand: those with two variables, and those of optional values.
//!
//! In: the name of a macro, its range, and the expressions for each item.
//! Out: the value of the macro.

use std::borrow::Cow;
use std::rc::Rc;

use super::compare::{compare, equal};
use super::evaluate::{Fault, Meter};
use super::kind::Kind;
use super::tree::Node;
use super::value::Val;

/// A call of a macro: `range.how(a, b, part, part)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Each {
    pub(super) how: How,
    pub(super) variables: usize,
    pub(super) range: Node,
    pub(super) parts: Vec<Node>,
}

/// Macro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    All,
    Exists,
    ExistsOne,
    List,
    Map,
    MapEntry,
    SortBy,
    /// Applies to an optional value.
    Optional,
    OptionalFlat,
}

/// Returns the macro of a name, and the number of its variables.
pub(super) fn macro_of(name: &str, args: usize) -> Option<(How, usize)> {
    Some(match (name, args) {
        ("all", 3) => (How::All, 2),
        ("exists", 3) => (How::Exists, 2),
        ("existsOne" | "exists_one", 3) => (How::ExistsOne, 2),
        ("transformList", 3 | 4) => (How::List, 2),
        ("transformMap", 3 | 4) => (How::Map, 2),
        ("transformMapEntry", 3 | 4) => (How::MapEntry, 2),
        ("sortBy", 2) => (How::SortBy, 1),
        ("optMap", 2) => (How::Optional, 1),
        ("optFlatMap", 2) => (How::OptionalFlat, 1),
        _ => return None,
    })
}

impl How {
    /// Kinds of the variables.
    pub(super) fn variables(self, range: &Kind) -> [Kind; 2] {
        match (self, range) {
            (Self::Optional | Self::OptionalFlat, Kind::Optional(inner)) => [(**inner).clone(), Kind::Any],
            (Self::SortBy, range) => [range.entry(), Kind::Any],
            (_, Kind::List(many)) => [Kind::Int, many.items.clone()],
            (_, Kind::Map(values)) => [Kind::Text, (**values).clone()],
            (_, _) => [Kind::Any, Kind::Any],
        }
    }

    /// Kind of the result, if the last part has this kind.
    pub(super) fn gives(self, range: &Kind, part: Kind) -> Kind {
        match self {
            Self::All | Self::Exists | Self::ExistsOne => Kind::Bool,
            Self::List => Kind::list(part),
            Self::Map => Kind::Map(part.into()),
            Self::MapEntry => part,
            Self::SortBy => range.clone(),
            Self::Optional => Kind::Optional(part.into()),
            Self::OptionalFlat => part,
        }
    }
}

/// Evaluates a part with these values of the variables.
type Part<'p, 'a> = &'p mut dyn FnMut(&'a Node, &[Val<'a>], &mut Meter) -> Result<Val<'a>, Fault>;

/// Evaluates a macro; `part` evaluates one of its parts with these values of the variables.
pub(super) fn each<'a>(
    each: &'a Each,
    range: Val<'a>,
    meter: &mut Meter,
    part: Part<'_, 'a>,
) -> Result<Val<'a>, Fault> {
    if let Val::Optional(value) = &range {
        let (Some(value), [made]) = (value, &*each.parts) else { return Ok(Val::Optional(None)) };
        let made = part(made, &[(**value).clone()], meter)?;
        return Ok(if each.how == How::OptionalFlat { made } else { Val::optional(Some(made)) });
    }
    let (filter, last) = match &*each.parts {
        [last] => (None, last),
        [filter, last] => (Some(filter), last),
        _ => return Err(Fault::Kinds("a macro")),
    };
    let keyed = matches!(range, Val::Map(..) | Val::Entries(_));
    let items = range.clone().into_items(meter)?;
    let (mut said, mut made) = (Vec::with_capacity(items.len()), Vec::new());
    for (at, item) in items.into_iter().enumerate() {
        let place = Val::Int(i64::try_from(at).unwrap_or(i64::MAX));
        let variables = match (each.variables, keyed) {
            (1, _) => [item.clone(), Val::Null],
            (_, true) => [item.clone(), range.index(&item, meter)?.unwrap_or(Val::Null)],
            (_, false) => [place, item.clone()],
        };
        if let Some(filter) = filter
            && !part(filter, &variables[..each.variables], meter)?.truth("a macro")?
        {
            continue;
        }
        said.push(part(last, &variables[..each.variables], meter));
        made.push(item);
    }
    match each.how {
        How::All | How::Exists => decided(said, each.how == How::Exists),
        How::ExistsOne => {
            let mut count = 0;
            for one in said {
                count += usize::from(one?.truth("existsOne")?);
            }
            Ok(Val::Bool(count == 1))
        }
        How::List => Ok(Val::Made(Rc::new(said.into_iter().collect::<Result<_, _>>()?))),
        How::Map => {
            let values = said.into_iter().collect::<Result<Vec<_>, _>>()?;
            let keys = made.into_iter().enumerate().map(|(at, item)| match keyed {
                true => item,
                false => Val::Int(i64::try_from(at).unwrap_or(i64::MAX)),
            });
            Ok(Val::Entries(Rc::new(keys.zip(values).collect())))
        }
        How::MapEntry => entries(said, meter),
        How::SortBy => sorted(said.into_iter().collect::<Result<_, _>>()?, made, meter),
        How::Optional | How::OptionalFlat => Err(Fault::Kinds("an optional value")),
    }
}

/// An item that decides the result does so even if another item has no value.
fn decided<'a>(said: Vec<Result<Val<'a>, Fault>>, decisive: bool) -> Result<Val<'a>, Fault> {
    let mut without = None;
    for one in said {
        match one.and_then(|one| one.truth("a macro")) {
            Ok(value) if value == decisive => return Ok(Val::Bool(decisive)),
            Ok(_) => {}
            Err(fault) => without = without.or(Some(fault)),
        }
    }
    without.map_or(Ok(Val::Bool(!decisive)), Err)
}

/// Merges the entries of many maps; a repeated key is an error.
fn entries<'a>(said: Vec<Result<Val<'a>, Fault>>, meter: &mut Meter) -> Result<Val<'a>, Fault> {
    let mut all: Vec<(Val<'a>, Val<'a>)> = Vec::new();
    for one in said {
        let Val::Entries(some) = one? else { return Err(Fault::Kinds("transformMapEntry")) };
        for (key, value) in some.iter() {
            for (known, _) in &all {
                if equal(known, key, meter)? {
                    return Err(Fault::Missing(Cow::from("insert failed: key already exists").into()));
                }
            }
            all.push((key.clone(), value.clone()));
        }
    }
    Ok(Val::Entries(Rc::new(all)))
}

/// Sorts items by their keys.
pub(super) fn sorted<'a>(
    keys: Vec<Val<'a>>,
    items: Vec<Val<'a>>,
    meter: &mut Meter,
) -> Result<Val<'a>, Fault> {
    let mut pairs: Vec<(Val<'a>, Val<'a>)> = keys.into_iter().zip(items).collect();
    for two in pairs.windows(2) {
        compare(&two[0].0, &two[1].0, meter)?;
    }
    meter.pay(pairs.len().saturating_mul(pairs.len().max(2).ilog2() as usize))?;
    // The loop above has shown that the types of all keys are comparable.
    let mut free = Meter::new(usize::MAX);
    // NaN is not equal to itself, and sorts last: without a total order `sort_by` may panic.
    let mut order = |one: &Val<'a>, other: &Val<'a>| compare(one, other, &mut free).ok().flatten();
    pairs.sort_by(|(one, _), (other, _)| {
        order(one, other).unwrap_or_else(|| order(one, one).is_none().cmp(&order(other, other).is_none()))
    });
    Ok(Val::Made(Rc::new(pairs.into_iter().map(|(_, item)| item).collect())))
}
