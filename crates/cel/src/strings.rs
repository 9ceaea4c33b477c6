//! Functions of texts.
//!
//! In: texts, numbers and lists of texts.
//! Out: other texts. Indexes count characters.

use std::borrow::Cow;
use std::rc::Rc;

use super::evaluate::{EvaluationError, NumberError, StepBudget};
use super::value::CelValue;

/// Maximal number of decimals of a formatted number.
const MAX_PRECISION: usize = 100;

/// Function of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StringFunction {
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
pub(super) fn edit<'a>(
    edit: StringFunction,
    operands: &[CelValue<'a>],
    meter: &mut StepBudget,
) -> Result<CelValue<'a>, EvaluationError> {
    let text = |at: usize| match operands.get(at) {
        Some(CelValue::Text(text)) => Ok(&**text),
        _ => Err(EvaluationError::WrongType("a text")),
    };
    let number = |at: usize| match operands.get(at) {
        Some(CelValue::Int(number)) => Ok(Some(*number)),
        None => Ok(None),
        Some(_) => Err(EvaluationError::WrongType("a number")),
    };
    for at in 0..operands.len() {
        if let Ok(text) = text(at) {
            meter.spend_for_text(text.len())?;
        }
    }
    let made = match edit {
        StringFunction::Join => join(operands, meter)?,
        StringFunction::Lower => text(0)?.to_ascii_lowercase(),
        StringFunction::Upper => text(0)?.to_ascii_uppercase(),
        StringFunction::Trim => text(0)?.trim().to_owned(),
        StringFunction::Quote => format!("{:?}", text(0)?),
        StringFunction::CharAt => {
            let at = number(1)?.unwrap_or_default();
            part(text(0)?, at, at.saturating_add(1).min(length(text(0)?)))?
        }
        StringFunction::Substring => {
            let (start, end) = (number(1)?.unwrap_or_default(), number(2)?);
            part(text(0)?, start, end.unwrap_or(length(text(0)?)))?
        }
        StringFunction::Replace => {
            let (old, new) = (text(1)?, text(2)?);
            let times = text(0)?.matches(old).count();
            meter.spend_for_text(times.saturating_mul(new.len()))?;
            match number(3)?.map(usize::try_from) {
                Some(Ok(most)) => text(0)?.replacen(old, new, most),
                Some(Err(_)) | None => text(0)?.replace(old, new),
            }
        }
        StringFunction::Format => format(text(0)?, operands.get(1), meter)?,
        StringFunction::Split => {
            let parts = split(text(0)?, text(1)?, number(2)?);
            meter.spend(parts.len())?;
            return Ok(CelValue::List(Rc::new(parts.into_iter().map(owned).collect())));
        }
    };
    Ok(owned(made))
}

fn owned<'a>(text: String) -> CelValue<'a> {
    CelValue::Text(Cow::Owned(text))
}

fn length(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn part(text: &str, start: i64, end: i64) -> Result<String, EvaluationError> {
    let wrong = |at: i64| EvaluationError::Number(NumberError::NoIndex(at));
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

fn join(operands: &[CelValue<'_>], meter: &mut StepBudget) -> Result<String, EvaluationError> {
    let items = operands.first().cloned().ok_or(EvaluationError::WrongType("join"))?.into_items(meter)?;
    let by = match operands.get(1) {
        Some(CelValue::Text(by)) => &**by,
        None => "",
        Some(_) => return Err(EvaluationError::WrongType("join")),
    };
    let mut all = String::new();
    for (at, item) in items.iter().enumerate() {
        let CelValue::Text(text) = item else { return Err(EvaluationError::WrongType("join")) };
        meter.spend_for_text(text.len() + by.len())?;
        if at > 0 {
            all.push_str(by);
        }
        all.push_str(text);
    }
    Ok(all)
}

/// Formats values. The verb `%e` is not implemented.
fn format(
    text: &str,
    values: Option<&CelValue<'_>>,
    meter: &mut StepBudget,
) -> Result<String, EvaluationError> {
    let values = values.cloned().ok_or(EvaluationError::WrongType("format"))?.into_items(meter)?;
    let mut values = values.into_iter();
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('%') {
        made.push_str(before);
        let digits = after.strip_prefix('.').map(|after| after.split_at(after.find('f').unwrap_or(0)));
        let (precision, after) = match digits {
            Some((digits, after)) => (digits.parse().ok().filter(|it| *it <= MAX_PRECISION), after),
            None => (None, after),
        };
        let verb = after.chars().next().ok_or(EvaluationError::Unsupported)?;
        rest = after.get(verb.len_utf8()..).unwrap_or_default();
        if verb == '%' {
            made.push('%');
            continue;
        }
        let value = values.next().ok_or(EvaluationError::WrongType("format"))?;
        let before = made.len();
        match (verb, &value) {
            ('s' | 'd', CelValue::Text(text)) => made.push_str(text),
            ('s' | 'd', value) => write(value, &mut made, meter)?,
            ('f', CelValue::Double(value)) => made.push_str(&format!("{value:.*}", precision.unwrap_or(6))),
            ('b', CelValue::Int(value)) => made.push_str(&format!("{value:b}")),
            ('b', CelValue::Bool(value)) => made.push(if *value { '1' } else { '0' }),
            ('o', CelValue::Int(value)) => made.push_str(&format!("{value:o}")),
            ('x', value) => made.push_str(&hexadecimal(value)?),
            ('X', value) => made.push_str(&hexadecimal(value)?.to_uppercase()),
            (_, _) => return Err(EvaluationError::Unsupported),
        }
        meter.spend_for_text(made.len() - before)?;
    }
    made.push_str(rest);
    Ok(made)
}

fn hexadecimal(value: &CelValue<'_>) -> Result<String, EvaluationError> {
    let all = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match value {
        CelValue::Int(value) => Ok(format!("{value:x}")),
        CelValue::Uint(value) => Ok(format!("{value:x}")),
        CelValue::Text(text) => Ok(all(text.as_bytes())),
        CelValue::Bytes(bytes) => Ok(all(bytes)),
        _ => Err(EvaluationError::Unsupported),
    }
}

fn write(value: &CelValue<'_>, made: &mut String, meter: &mut StepBudget) -> Result<(), EvaluationError> {
    meter.spend(1)?;
    match value {
        CelValue::JsonList(..) | CelValue::List(_) => {
            made.push('[');
            for (at, item) in value.clone().into_items(meter)?.iter().enumerate() {
                if at > 0 {
                    made.push_str(", ");
                }
                write(item, made, meter)?;
            }
            made.push(']');
        }
        CelValue::Null => made.push_str("null"),
        CelValue::Text(text) => {
            meter.spend_for_text(text.len())?;
            made.push_str(&format!("{text:?}"));
        }
        value => match value.clone().into_text() {
            Ok(CelValue::Text(text)) => {
                meter.spend_for_text(text.len())?;
                made.push_str(&text);
            }
            _ => return Err(EvaluationError::Unsupported),
        },
    }
    Ok(())
}
