//! Conversions from texts: quantities, addresses, URLs.
//!
//! In: a text.
//! Out: its value. Functions of quantities are here as well.

use std::cmp::Ordering;
use std::rc::Rc;

use super::evaluate::{Fault, Sum};
use super::networks;
use super::urls::Url;
use super::value::Val;
use crate::quantity::{self, NANO};

/// Target type of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thing {
    Quantity,
    Url,
    Ip,
    Cidr,
}

/// Function of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
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
pub(super) fn read<'a>(thing: Thing, text: &str) -> Option<Val<'a>> {
    match thing {
        Thing::Quantity => quantity::nanos(text).map(Val::Amount),
        Thing::Url => Url::read(text).map(|url| Val::Url(Rc::new(url))),
        Thing::Ip => networks::ip(text).map(Val::Ip),
        Thing::Cidr => networks::cidr(text).map(|(address, bits)| Val::Cidr(address, bits)),
    }
}

/// Evaluates a function of a quantity.
pub(super) fn amount<'a>(amount: Amount, of: &Val<'a>, other: Option<&Val<'a>>) -> Result<Val<'a>, Fault> {
    const TOO_LARGE: Fault = Fault::Number(Sum::TooLarge);
    let wrong = || Fault::Kinds("an amount");
    let Val::Amount(nanos) = of else { return Err(wrong()) };
    let other = match other {
        Some(Val::Amount(nanos)) => Ok(*nanos),
        Some(Val::Int(number)) => Ok(i128::from(*number) * NANO),
        Some(_) | None => Err(wrong()),
    };
    let whole = Some(nanos / NANO).filter(|_| nanos % NANO == 0).and_then(|whole| i64::try_from(whole).ok());
    let order = |order: Ordering| order as i64;
    Ok(match amount {
        Amount::Add => Val::Amount(nanos.checked_add(other?).ok_or(TOO_LARGE)?),
        Amount::Subtract => Val::Amount(nanos.checked_sub(other?).ok_or(TOO_LARGE)?),
        Amount::IsLess => Val::Bool(*nanos < other?),
        Amount::IsGreater => Val::Bool(*nanos > other?),
        Amount::Compare => Val::Int(order(nanos.cmp(&other?))),
        Amount::Sign => Val::Int(order(nanos.cmp(&0))),
        Amount::IsInteger => Val::Bool(whole.is_some()),
        Amount::Integer => Val::Int(whole.ok_or(Fault::Number(Sum::NoNumber))?),
        Amount::Float => Val::Double(*nanos as f64 / NANO as f64),
    })
}
