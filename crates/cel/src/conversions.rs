//! Conversions from texts: quantities, addresses, URLs.
//!
//! In: a text.
//! Out: its value. Functions of quantities are here as well.

use std::cmp::Ordering;
use std::rc::Rc;

use super::evaluate::{EvaluationError, NumberError};
use super::networks;
use super::urls::Url;
use super::value::CelValue;
use crate::quantity::{self, NANO};

/// Target type of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConversionTarget {
    Quantity,
    Url,
    Ip,
    Cidr,
}

/// Function of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuantityFunction {
    Add,
    Subtract,
    IsLess,
    IsGreater,
    Compare,
    Sign,
    IsInteger,
    Integer,
    Float,
}

/// Converts a text; `None` if it is invalid.
pub(super) fn read<'a>(thing: ConversionTarget, text: &str) -> Option<CelValue<'a>> {
    match thing {
        ConversionTarget::Quantity => quantity::nanos(text).map(CelValue::Amount),
        ConversionTarget::Url => Url::read(text).map(|url| CelValue::Url(Rc::new(url))),
        ConversionTarget::Ip => networks::ip(text).map(CelValue::Ip),
        ConversionTarget::Cidr => networks::cidr(text).map(|(address, bits)| CelValue::Cidr(address, bits)),
    }
}

/// Evaluates a function of a quantity.
pub(super) fn amount<'a>(
    amount: QuantityFunction,
    of: &CelValue<'a>,
    other: Option<&CelValue<'a>>,
) -> Result<CelValue<'a>, EvaluationError> {
    const TOO_LARGE: EvaluationError = EvaluationError::Number(NumberError::TooLarge);
    let wrong = || EvaluationError::WrongType("an amount");
    let CelValue::Amount(nanos) = of else { return Err(wrong()) };
    let other = match other {
        Some(CelValue::Amount(nanos)) => Ok(*nanos),
        Some(CelValue::Int(number)) => Ok(i128::from(*number) * NANO),
        Some(_) | None => Err(wrong()),
    };
    let whole = Some(nanos / NANO).filter(|_| nanos % NANO == 0).and_then(|whole| i64::try_from(whole).ok());
    let order = |order: Ordering| order as i64;
    Ok(match amount {
        QuantityFunction::Add => CelValue::Amount(nanos.checked_add(other?).ok_or(TOO_LARGE)?),
        QuantityFunction::Subtract => CelValue::Amount(nanos.checked_sub(other?).ok_or(TOO_LARGE)?),
        QuantityFunction::IsLess => CelValue::Bool(*nanos < other?),
        QuantityFunction::IsGreater => CelValue::Bool(*nanos > other?),
        QuantityFunction::Compare => CelValue::Int(order(nanos.cmp(&other?))),
        QuantityFunction::Sign => CelValue::Int(order(nanos.cmp(&0))),
        QuantityFunction::IsInteger => CelValue::Bool(whole.is_some()),
        QuantityFunction::Integer => {
            CelValue::Int(whole.ok_or(EvaluationError::Number(NumberError::NoNumber))?)
        }
        QuantityFunction::Float => CelValue::Double(*nanos as f64 / NANO as f64),
    })
}
