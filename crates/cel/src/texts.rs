//! Functions of texts.
//!
//! In: texts, numbers and lists of texts.
//! Out: other texts. Indexes count characters.

use std::borrow::Cow;
use std::rc::Rc;

use super::evaluate::{Fault, Meter, Sum};
use super::value::Val;

/// Maximal number of decimals of a formatted number.
const MAX_PRECISION: usize = 100;

/// Function of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    CharAt,
    Join,
    Lower,
    Upper,
    Replace,
    Split,
    Substring,
    Trim,
    Format,
    Quote,
}

/// Evaluates a function of a text.
pub(super) fn edit<'a>(edit: Edit, operands: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Fault> {
    let text = |at: usize| match operands.get(at) {
        Some(Val::Text(text)) => Ok(&**text),
        _ => Err(Fault::Kinds("a text")),
    };
    let number = |at: usize| match operands.get(at) {
        Some(Val::Int(number)) => Ok(Some(*number)),
        None => Ok(None),
        Some(_) => Err(Fault::Kinds("a number")),
    };
    for at in 0..operands.len() {
        if let Ok(text) = text(at) {
            meter.pay_text(text.len())?;
        }
    }
    let made = match edit {
        Edit::Join => join(operands, meter)?,
        Edit::Lower => text(0)?.to_ascii_lowercase(),
        Edit::Upper => text(0)?.to_ascii_uppercase(),
        Edit::Trim => text(0)?.trim().to_owned(),
        Edit::Quote => format!("{:?}", text(0)?),
        Edit::CharAt => {
            let at = number(1)?.unwrap_or_default();
            part(text(0)?, at, at.saturating_add(1).min(length(text(0)?)))?
        }
        Edit::Substring => {
            let (start, end) = (number(1)?.unwrap_or_default(), number(2)?);
            part(text(0)?, start, end.unwrap_or(length(text(0)?)))?
        }
        Edit::Replace => {
            let (old, new) = (text(1)?, text(2)?);
            let times = text(0)?.matches(old).count();
            meter.pay_text(times.saturating_mul(new.len()))?;
            match number(3)?.map(usize::try_from) {
                Some(Ok(most)) => text(0)?.replacen(old, new, most),
                Some(Err(_)) | None => text(0)?.replace(old, new),
            }
        }
        Edit::Format => format(text(0)?, operands.get(1), meter)?,
        Edit::Split => {
            let parts = split(text(0)?, text(1)?, number(2)?);
            meter.pay(parts.len())?;
            return Ok(Val::Made(Rc::new(parts.into_iter().map(owned).collect())));
        }
    };
    Ok(owned(made))
}

fn owned<'a>(text: String) -> Val<'a> {
    Val::Text(Cow::Owned(text))
}

fn length(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn part(text: &str, start: i64, end: i64) -> Result<String, Fault> {
    let wrong = |at: i64| Fault::Number(Sum::NoIndex(at));
    let from = usize::try_from(start).map_err(|_| wrong(start))?;
    let count = usize::try_from(end - start).map_err(|_| wrong(end))?;
    if end > length(text) {
        return Err(wrong(end));
    }
    Ok(text.chars().skip(from).take(count).collect())
}

/// Splits into at most so many parts; into all if the number is missing or negative.
fn split(text: &str, by: &str, most: Option<i64>) -> Vec<String> {
    // Splits between all characters, but not at the ends.
    if by.is_empty() {
        return text.chars().map(String::from).collect();
    }
    match most.map(usize::try_from) {
        Some(Ok(most)) => text.splitn(most, by).map(str::to_owned).collect(),
        Some(Err(_)) | None => text.split(by).map(str::to_owned).collect(),
    }
}

fn join(operands: &[Val<'_>], meter: &mut Meter) -> Result<String, Fault> {
    let items = operands.first().cloned().ok_or(Fault::Kinds("join"))?.into_items(meter)?;
    let by = match operands.get(1) {
        Some(Val::Text(by)) => &**by,
        None => "",
        Some(_) => return Err(Fault::Kinds("join")),
    };
    let mut all = String::new();
    for (at, item) in items.iter().enumerate() {
        let Val::Text(text) = item else { return Err(Fault::Kinds("join")) };
        meter.pay_text(text.len() + by.len())?;
        if at > 0 {
            all.push_str(by);
        }
        all.push_str(text);
    }
    Ok(all)
}

/// Formats values. The verb `%e` is not implemented.
fn format(text: &str, values: Option<&Val<'_>>, meter: &mut Meter) -> Result<String, Fault> {
    let values = values.cloned().ok_or(Fault::Kinds("format"))?.into_items(meter)?;
    let mut values = values.into_iter();
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('%') {
        made.push_str(before);
        let digits = after.strip_prefix('.').map(|after| after.split_at(after.find('f').unwrap_or(0)));
        let (precision, after) = match digits {
            Some((digits, after)) => (digits.parse().ok().filter(|it| *it <= MAX_PRECISION), after),
            None => (None, after),
        };
        let verb = after.chars().next().ok_or(Fault::Unknown)?;
        rest = after.get(verb.len_utf8()..).unwrap_or_default();
        if verb == '%' {
            made.push('%');
            continue;
        }
        let value = values.next().ok_or(Fault::Kinds("format"))?;
        let before = made.len();
        match (verb, &value) {
            ('s' | 'd', Val::Text(text)) => made.push_str(text),
            ('s' | 'd', value) => write(value, &mut made, meter)?,
            ('f', Val::Double(value)) => made.push_str(&format!("{value:.*}", precision.unwrap_or(6))),
            ('b', Val::Int(value)) => made.push_str(&format!("{value:b}")),
            ('b', Val::Bool(value)) => made.push(if *value { '1' } else { '0' }),
            ('o', Val::Int(value)) => made.push_str(&format!("{value:o}")),
            ('x', value) => made.push_str(&hexadecimal(value)?),
            ('X', value) => made.push_str(&hexadecimal(value)?.to_uppercase()),
            (_, _) => return Err(Fault::Unknown),
        }
        meter.pay_text(made.len() - before)?;
    }
    made.push_str(rest);
    Ok(made)
}

fn hexadecimal(value: &Val<'_>) -> Result<String, Fault> {
    let all = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match value {
        Val::Int(value) => Ok(format!("{value:x}")),
        Val::Uint(value) => Ok(format!("{value:x}")),
        Val::Text(text) => Ok(all(text.as_bytes())),
        Val::Bytes(bytes) => Ok(all(bytes)),
        _ => Err(Fault::Unknown),
    }
}

fn write(value: &Val<'_>, made: &mut String, meter: &mut Meter) -> Result<(), Fault> {
    meter.pay(1)?;
    match value {
        Val::Items(..) | Val::Made(_) => {
            made.push('[');
            for (at, item) in value.clone().into_items(meter)?.iter().enumerate() {
                if at > 0 {
                    made.push_str(", ");
                }
                write(item, made, meter)?;
            }
            made.push(']');
        }
        Val::Null => made.push_str("null"),
        Val::Text(text) => {
            meter.pay_text(text.len())?;
            made.push_str(&format!("{text:?}"));
        }
        value => match value.clone().into_text() {
            Ok(Val::Text(text)) => {
                meter.pay_text(text.len())?;
                made.push_str(&text);
            }
            _ => return Err(Fault::Unknown),
        },
    }
    Ok(())
}
