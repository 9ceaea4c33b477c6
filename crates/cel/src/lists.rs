//! Functions of lists and sets; some of them also work on texts.
//!
//! In: lists.
//! Out: items, indexes, other lists.

use std::cmp::Ordering;
use std::rc::Rc;

use super::compare::{compare, contains, equal};
use super::evaluate::{EvaluationError, NumberError, StepBudget};
use super::value::CelValue;
use crate::macros::sorted;

/// Function of two sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetFunction {
    Contains,
    Equivalent,
    Intersects,
}

/// Function of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListFunction {
    First,
    Last,
    IsSorted,
    Sum,
    Min,
    Max,
    Reverse,
    Distinct,
    Flatten,
    Slice,
    Sort,
    Range,
    Head,
    Tail,
}

/// Maximal length of one range.
const MAX_RANGE: i64 = 100_000;

/// Evaluates a function of two sets.
pub(super) fn sets<'a>(
    set: SetFunction,
    operands: &[CelValue<'a>],
    meter: &mut StepBudget,
) -> Result<CelValue<'a>, EvaluationError> {
    let [left, right] = operands else { return Err(EvaluationError::WrongType("sets")) };
    let mut each = |of: &CelValue<'a>, all: &CelValue<'a>| -> Result<(bool, bool), EvaluationError> {
        let (mut some, mut every) = (false, true);
        for item in of.clone().into_items(meter)? {
            let is_in = contains(&item, all, meter)?;
            (some, every) = (some || is_in, every && is_in);
        }
        Ok((some, every))
    };
    Ok(CelValue::Bool(match set {
        SetFunction::Contains => each(right, left)?.1,
        SetFunction::Equivalent => each(right, left)?.1 && each(left, right)?.1,
        SetFunction::Intersects => each(left, right)?.0,
    }))
}

/// Evaluates a function of a list.
pub(super) fn look<'a>(
    look: ListFunction,
    operands: Vec<CelValue<'a>>,
    meter: &mut StepBudget,
) -> Result<CelValue<'a>, EvaluationError> {
    let number = |at: usize| match operands.get(at) {
        Some(CelValue::Int(number)) => Ok(Some(*number)),
        None => Ok(None),
        Some(_) => Err(EvaluationError::WrongType("a number")),
    };
    let first = operands.first().cloned().ok_or(EvaluationError::WrongType("a list"))?;
    match (&first, look) {
        (CelValue::Text(text), ListFunction::Reverse) => {
            meter.spend_for_text(text.len())?;
            return Ok(CelValue::Text(text.chars().rev().collect::<String>().into()));
        }
        (CelValue::Text(text), ListFunction::First | ListFunction::Last) => {
            meter.spend_for_text(text.len())?;
            return place_in_text(text, look, operands.get(1), number(2)?);
        }
        (CelValue::Int(count), ListFunction::Range) if (0..=MAX_RANGE).contains(count) => {
            meter.spend(usize::try_from(*count).unwrap_or_default())?;
            return Ok(made((0..*count).map(CelValue::Int).collect()));
        }
        _ => {}
    }
    let mut items = first.into_items(meter)?;
    Ok(match look {
        ListFunction::First | ListFunction::Last => {
            let wanted = operands.get(1).ok_or(EvaluationError::WrongType("indexOf"))?;
            let mut place = None;
            for (at, item) in items.iter().enumerate() {
                if (look == ListFunction::Last || place.is_none()) && equal(item, wanted, meter)? {
                    place = Some(at);
                }
            }
            CelValue::Int(place.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
        }
        ListFunction::IsSorted => {
            let mut sorted = true;
            for pair in items.windows(2) {
                sorted = sorted && compare(&pair[0], &pair[1], meter)?.is_some_and(Ordering::is_le);
            }
            CelValue::Bool(sorted)
        }
        ListFunction::Sum => {
            let mut items = items.into_iter();
            let start = items.next().unwrap_or(CelValue::Int(0));
            items.try_fold(start, |sum, item| sum.add(item, meter))?
        }
        ListFunction::Min | ListFunction::Max => {
            let wanted = if look == ListFunction::Min { Ordering::Less } else { Ordering::Greater };
            extreme(items, wanted, meter)?
        }
        ListFunction::Reverse => made(items.into_iter().rev().collect()),
        ListFunction::Head => CelValue::Optional(items.into_iter().next().map(Rc::new)),
        ListFunction::Tail => CelValue::Optional(items.pop().map(Rc::new)),
        ListFunction::Distinct => made(distinct(items, meter)?),
        ListFunction::Flatten => made(flat(items, number(1)?.unwrap_or(1), meter)?),
        ListFunction::Slice => {
            let (start, end) = (number(1)?.unwrap_or_default(), number(2)?.unwrap_or_default());
            let place =
                |at: i64| usize::try_from(at).map_err(|_| EvaluationError::Number(NumberError::NoIndex(at)));
            let part = items
                .get(place(start)?..place(end)?)
                .ok_or(EvaluationError::Number(NumberError::NoIndex(end)))?;
            made(part.to_vec())
        }
        ListFunction::Sort => sorted(items.clone(), items, meter)?,
        ListFunction::Range => return Err(EvaluationError::WrongType("a range")),
    })
}

fn made(items: Vec<CelValue<'_>>) -> CelValue<'_> {
    CelValue::List(Rc::new(items))
}

fn extreme<'a>(
    items: Vec<CelValue<'a>>,
    wanted: Ordering,
    meter: &mut StepBudget,
) -> Result<CelValue<'a>, EvaluationError> {
    let mut items = items.into_iter();
    let mut best = items.next().ok_or(EvaluationError::Number(NumberError::NoNumber))?;
    for item in items {
        if compare(&item, &best, meter)? == Some(wanted) {
            best = item;
        }
    }
    Ok(best)
}

fn distinct<'a>(
    items: Vec<CelValue<'a>>,
    meter: &mut StepBudget,
) -> Result<Vec<CelValue<'a>>, EvaluationError> {
    let mut once: Vec<CelValue<'a>> = Vec::new();
    for item in items {
        let mut known = false;
        for other in &once {
            known = known || equal(other, &item, meter)?;
        }
        if !known {
            once.push(item);
        }
    }
    Ok(once)
}

fn flat<'a>(
    items: Vec<CelValue<'a>>,
    depth: i64,
    meter: &mut StepBudget,
) -> Result<Vec<CelValue<'a>>, EvaluationError> {
    let mut all = Vec::new();
    for item in items {
        match item {
            CelValue::JsonList(..) | CelValue::List(_) if depth > 0 => {
                let inner = item.into_items(meter)?;
                all.extend(flat(inner, depth - 1, meter)?);
            }
            item => all.push(item),
        }
    }
    meter.spend(all.len())?;
    Ok(all)
}

/// Finds a text in another; the index counts characters.
fn place_in_text<'a>(
    text: &str,
    look: ListFunction,
    wanted: Option<&CelValue<'a>>,
    from: Option<i64>,
) -> Result<CelValue<'a>, EvaluationError> {
    let Some(CelValue::Text(wanted)) = wanted else { return Err(EvaluationError::WrongType("indexOf")) };
    let byte = |place: i64| {
        let wrong = EvaluationError::Number(NumberError::NoIndex(place));
        let at = usize::try_from(place).map_err(|_| wrong.clone())?;
        let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        ends.into_iter().nth(at).ok_or(wrong)
    };
    let found = match (look, from) {
        (ListFunction::Last, Some(from)) => {
            let end = (byte(from)? + wanted.len()).min(text.len());
            text.get(..end).unwrap_or(text).rfind(&**wanted)
        }
        (ListFunction::Last, None) => text.rfind(&**wanted),
        (_, from) => {
            let start = byte(from.unwrap_or_default())?;
            text.get(start..).and_then(|rest| rest.find(&**wanted)).map(|at| at + start)
        }
    };
    let place = found.and_then(|at| text.get(..at)).map(|before| before.chars().count());
    Ok(CelValue::Int(place.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)))
}
