//! Functions of lists and sets; some of them also work on texts.
//!
//! In: lists.
//! Out: items, indexes, other lists.

use std::cmp::Ordering;
use std::rc::Rc;

use super::compare::{compare, equal, within};
use super::each::sorted;
use super::evaluate::{Fault, Meter, Sum};
use super::value::Val;

/// Function of two sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    Contains,
    Equivalent,
    Intersects,
}

/// Function of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
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
pub(super) fn sets<'a>(set: Set, operands: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Fault> {
    let [left, right] = operands else { return Err(Fault::Kinds("sets")) };
    let mut each = |of: &Val<'a>, all: &Val<'a>| -> Result<(bool, bool), Fault> {
        let (mut some, mut every) = (false, true);
        for item in of.clone().into_items(meter)? {
            let is_in = within(&item, all, meter)?;
            (some, every) = (some || is_in, every && is_in);
        }
        Ok((some, every))
    };
    Ok(Val::Bool(match set {
        Set::Contains => each(right, left)?.1,
        Set::Equivalent => each(right, left)?.1 && each(left, right)?.1,
        Set::Intersects => each(left, right)?.0,
    }))
}

/// Evaluates a function of a list.
pub(super) fn look<'a>(look: Look, operands: Vec<Val<'a>>, meter: &mut Meter) -> Result<Val<'a>, Fault> {
    let number = |at: usize| match operands.get(at) {
        Some(Val::Int(number)) => Ok(Some(*number)),
        None => Ok(None),
        Some(_) => Err(Fault::Kinds("a number")),
    };
    let first = operands.first().cloned().ok_or(Fault::Kinds("a list"))?;
    match (&first, look) {
        (Val::Text(text), Look::Reverse) => {
            meter.pay_text(text.len())?;
            return Ok(Val::Text(text.chars().rev().collect::<String>().into()));
        }
        (Val::Text(text), Look::First | Look::Last) => {
            meter.pay_text(text.len())?;
            return place_in_text(text, look, operands.get(1), number(2)?);
        }
        (Val::Int(count), Look::Range) if (0..=MAX_RANGE).contains(count) => {
            meter.pay(usize::try_from(*count).unwrap_or_default())?;
            return Ok(made((0..*count).map(Val::Int).collect()));
        }
        _ => {}
    }
    let mut items = first.into_items(meter)?;
    Ok(match look {
        Look::First | Look::Last => {
            let wanted = operands.get(1).ok_or(Fault::Kinds("indexOf"))?;
            let mut place = None;
            for (at, item) in items.iter().enumerate() {
                if (look == Look::Last || place.is_none()) && equal(item, wanted, meter)? {
                    place = Some(at);
                }
            }
            Val::Int(place.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
        }
        Look::IsSorted => {
            let mut sorted = true;
            for pair in items.windows(2) {
                sorted = sorted && compare(&pair[0], &pair[1], meter)?.is_some_and(Ordering::is_le);
            }
            Val::Bool(sorted)
        }
        Look::Sum => {
            let mut items = items.into_iter();
            let start = items.next().unwrap_or(Val::Int(0));
            items.try_fold(start, |sum, item| sum.add(item, meter))?
        }
        Look::Min | Look::Max => {
            let wanted = if look == Look::Min { Ordering::Less } else { Ordering::Greater };
            extreme(items, wanted, meter)?
        }
        Look::Reverse => made(items.into_iter().rev().collect()),
        Look::Head => Val::Optional(items.into_iter().next().map(Rc::new)),
        Look::Tail => Val::Optional(items.pop().map(Rc::new)),
        Look::Distinct => made(distinct(items, meter)?),
        Look::Flatten => made(flat(items, number(1)?.unwrap_or(1), meter)?),
        Look::Slice => {
            let (start, end) = (number(1)?.unwrap_or_default(), number(2)?.unwrap_or_default());
            let place = |at: i64| usize::try_from(at).map_err(|_| Fault::Number(Sum::NoIndex(at)));
            let part = items.get(place(start)?..place(end)?).ok_or(Fault::Number(Sum::NoIndex(end)))?;
            made(part.to_vec())
        }
        Look::Sort => sorted(items.clone(), items, meter)?,
        Look::Range => return Err(Fault::Kinds("a range")),
    })
}

fn made(items: Vec<Val<'_>>) -> Val<'_> {
    Val::Made(Rc::new(items))
}

fn extreme<'a>(items: Vec<Val<'a>>, wanted: Ordering, meter: &mut Meter) -> Result<Val<'a>, Fault> {
    let mut items = items.into_iter();
    let mut best = items.next().ok_or(Fault::Number(Sum::NoNumber))?;
    for item in items {
        if compare(&item, &best, meter)? == Some(wanted) {
            best = item;
        }
    }
    Ok(best)
}

fn distinct<'a>(items: Vec<Val<'a>>, meter: &mut Meter) -> Result<Vec<Val<'a>>, Fault> {
    let mut once: Vec<Val<'a>> = Vec::new();
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

fn flat<'a>(items: Vec<Val<'a>>, depth: i64, meter: &mut Meter) -> Result<Vec<Val<'a>>, Fault> {
    let mut all = Vec::new();
    for item in items {
        match item {
            Val::Items(..) | Val::Made(_) if depth > 0 => {
                let inner = item.into_items(meter)?;
                all.extend(flat(inner, depth - 1, meter)?);
            }
            item => all.push(item),
        }
    }
    meter.pay(all.len())?;
    Ok(all)
}

/// Finds a text in another; the index counts characters.
fn place_in_text<'a>(
    text: &str,
    look: Look,
    wanted: Option<&Val<'a>>,
    from: Option<i64>,
) -> Result<Val<'a>, Fault> {
    let Some(Val::Text(wanted)) = wanted else { return Err(Fault::Kinds("indexOf")) };
    let byte = |place: i64| {
        let wrong = Fault::Number(Sum::NoIndex(place));
        let at = usize::try_from(place).map_err(|_| wrong.clone())?;
        let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        ends.into_iter().nth(at).ok_or(wrong)
    };
    let found = match (look, from) {
        (Look::Last, Some(from)) => {
            let end = (byte(from)? + wanted.len()).min(text.len());
            text.get(..end).unwrap_or(text).rfind(&**wanted)
        }
        (Look::Last, None) => text.rfind(&**wanted),
        (_, from) => {
            let start = byte(from.unwrap_or_default())?;
            text.get(start..).and_then(|rest| rest.find(&**wanted)).map(|at| at + start)
        }
    };
    let place = found.and_then(|at| text.get(..at)).map(|before| before.chars().count());
    Ok(Val::Int(place.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)))
}
