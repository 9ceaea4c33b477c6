//! Macros that the parser does not expand: those with two variables, and those of optional values.
//!
//! In: the name of a macro, its range, and the expressions for each item.
//! Out: the value of the macro.

use std::borrow::Cow;
use std::rc::Rc;

use super::compare::{compare, equal};
use super::evaluate::{EvaluationError, StepBudget};
use super::tree::Node;
use super::value::CelValue;
use crate::static_types::Kind;

/// A call of a macro: `range.how(a, b, part, part)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MacroCall {
    pub(super) how: Macro,
    pub(super) variables: usize,
    pub(super) range: Node,
    pub(super) parts: Vec<Node>,
}

/// Macro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Macro {
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
pub(super) fn macro_of(name: &str, args: usize) -> Option<(Macro, usize)> {
    Some(match (name, args) {
        ("all", 3) => (Macro::All, 2),
        ("exists", 3) => (Macro::Exists, 2),
        ("existsOne" | "exists_one", 3) => (Macro::ExistsOne, 2),
        ("transformList", 3 | 4) => (Macro::List, 2),
        ("transformMap", 3 | 4) => (Macro::Map, 2),
        ("transformMapEntry", 3 | 4) => (Macro::MapEntry, 2),
        ("sortBy", 2) => (Macro::SortBy, 1),
        ("optMap", 2) => (Macro::Optional, 1),
        ("optFlatMap", 2) => (Macro::OptionalFlat, 1),
        _ => return None,
    })
}

impl Macro {
    /// Kinds of the variables.
    pub(super) fn variables(self, range: &Kind) -> [Kind; 2] {
        match (self, range) {
            (Self::Optional | Self::OptionalFlat, Kind::Optional(inner)) => [(**inner).clone(), Kind::Any],
            (Self::SortBy, range) => [range.element_kind(), Kind::Any],
            (_, Kind::List(many)) => [Kind::Int, many.items.clone()],
            (_, Kind::Map(values)) => [Kind::Text, (**values).clone()],
            (_, _) => [Kind::Any, Kind::Any],
        }
    }

    /// Kind of the result, if the last part has this kind.
    pub(super) fn result_kind(self, range: &Kind, part: Kind) -> Kind {
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
type EvaluatePart<'p, 'a> =
    &'p mut dyn FnMut(&'a Node, &[CelValue<'a>], &mut StepBudget) -> Result<CelValue<'a>, EvaluationError>;

/// Evaluates a macro; `part` evaluates one of its parts with these values of the variables.
pub(super) fn evaluate_macro<'a>(
    each: &'a MacroCall,
    range: CelValue<'a>,
    meter: &mut StepBudget,
    part: EvaluatePart<'_, 'a>,
) -> Result<CelValue<'a>, EvaluationError> {
    if let CelValue::Optional(value) = &range {
        let (Some(value), [made]) = (value, &*each.parts) else { return Ok(CelValue::Optional(None)) };
        let made = part(made, &[(**value).clone()], meter)?;
        return Ok(if each.how == Macro::OptionalFlat { made } else { CelValue::optional(Some(made)) });
    }
    let (filter, last) = match &*each.parts {
        [last] => (None, last),
        [filter, last] => (Some(filter), last),
        _ => return Err(EvaluationError::WrongType("a macro")),
    };
    let keyed = matches!(range, CelValue::JsonMap(..) | CelValue::Entries(_));
    let items = range.clone().into_items(meter)?;
    let (mut said, mut made) = (Vec::with_capacity(items.len()), Vec::new());
    for (at, item) in items.into_iter().enumerate() {
        let place = CelValue::Int(i64::try_from(at).unwrap_or(i64::MAX));
        let variables = match (each.variables, keyed) {
            (1, _) => [item.clone(), CelValue::Null],
            (_, true) => [item.clone(), range.index(&item, meter)?.unwrap_or(CelValue::Null)],
            (_, false) => [place, item.clone()],
        };
        if let Some(filter) = filter
            && !part(filter, &variables[..each.variables], meter)?.into_bool("a macro")?
        {
            continue;
        }
        said.push(part(last, &variables[..each.variables], meter));
        made.push(item);
    }
    match each.how {
        Macro::All | Macro::Exists => decided(said, each.how == Macro::Exists),
        Macro::ExistsOne => {
            let mut count = 0;
            for one in said {
                count += usize::from(one?.into_bool("existsOne")?);
            }
            Ok(CelValue::Bool(count == 1))
        }
        Macro::List => Ok(CelValue::List(Rc::new(said.into_iter().collect::<Result<_, _>>()?))),
        Macro::Map => {
            let values = said.into_iter().collect::<Result<Vec<_>, _>>()?;
            let keys = made.into_iter().enumerate().map(|(at, item)| match keyed {
                true => item,
                false => CelValue::Int(i64::try_from(at).unwrap_or(i64::MAX)),
            });
            Ok(CelValue::Entries(Rc::new(keys.zip(values).collect())))
        }
        Macro::MapEntry => entries(said, meter),
        Macro::SortBy => sorted(said.into_iter().collect::<Result<_, _>>()?, made, meter),
        Macro::Optional | Macro::OptionalFlat => Err(EvaluationError::WrongType("an optional value")),
    }
}

/// An item that decides the result does so even if another item has no value.
fn decided<'a>(
    said: Vec<Result<CelValue<'a>, EvaluationError>>,
    decisive: bool,
) -> Result<CelValue<'a>, EvaluationError> {
    let mut without = None;
    for one in said {
        match one.and_then(|one| one.into_bool("a macro")) {
            Ok(value) if value == decisive => return Ok(CelValue::Bool(decisive)),
            Ok(_) => {}
            Err(fault) => without = without.or(Some(fault)),
        }
    }
    without.map_or(Ok(CelValue::Bool(!decisive)), Err)
}

/// Merges the entries of many maps; a repeated key is an error.
fn entries<'a>(
    said: Vec<Result<CelValue<'a>, EvaluationError>>,
    meter: &mut StepBudget,
) -> Result<CelValue<'a>, EvaluationError> {
    let mut all: Vec<(CelValue<'a>, CelValue<'a>)> = Vec::new();
    for one in said {
        let CelValue::Entries(some) = one? else {
            return Err(EvaluationError::WrongType("transformMapEntry"));
        };
        for (key, value) in some.iter() {
            for (known, _) in &all {
                if equal(known, key, meter)? {
                    return Err(EvaluationError::MissingField(
                        Cow::from("insert failed: key already exists").into(),
                    ));
                }
            }
            all.push((key.clone(), value.clone()));
        }
    }
    Ok(CelValue::Entries(Rc::new(all)))
}

/// Sorts items by their keys.
pub(super) fn sorted<'a>(
    keys: Vec<CelValue<'a>>,
    items: Vec<CelValue<'a>>,
    meter: &mut StepBudget,
) -> Result<CelValue<'a>, EvaluationError> {
    let mut pairs: Vec<(CelValue<'a>, CelValue<'a>)> = keys.into_iter().zip(items).collect();
    for two in pairs.windows(2) {
        compare(&two[0].0, &two[1].0, meter)?;
    }
    meter.spend(pairs.len().saturating_mul(pairs.len().max(2).ilog2() as usize))?;
    // The loop above has shown that the types of all keys are comparable.
    let mut free = StepBudget::new(usize::MAX);
    // NaN is not equal to itself, and sorts last: without a total order `sort_by` may panic.
    let mut order = |one: &CelValue<'a>, other: &CelValue<'a>| compare(one, other, &mut free).ok().flatten();
    pairs.sort_by(|(one, _), (other, _)| {
        order(one, other).unwrap_or_else(|| order(one, one).is_none().cmp(&order(other, other).is_none()))
    });
    Ok(CelValue::List(Rc::new(pairs.into_iter().map(|(_, item)| item).collect())))
}
