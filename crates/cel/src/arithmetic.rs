//! Arithmetic, and conversions between types.
//!
//! In: values.
//! Out: sums, products and so on, if they exist; the same values as numbers or texts.

use std::rc::Rc;

use super::compare::{is_same, list_type_of};
use super::evaluate::{EvaluationError, NumberError, StepBudget};
use super::times;
use super::tree::Arithmetic;
use super::value::CelValue;
use crate::static_types::ListType;

const NO_NUMBER: EvaluationError = EvaluationError::Number(NumberError::NoNumber);
const TOO_LARGE: EvaluationError = EvaluationError::Number(NumberError::TooLarge);

impl CelValue<'_> {
    pub(super) fn add(self, other: Self, meter: &mut StepBudget) -> Result<Self, EvaluationError> {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => {
                meter.spend_for_text(left.len() + right.len())?;
                Ok(Self::Text(left + right))
            }
            (Self::Bytes(left), Self::Bytes(right)) => {
                meter.spend_for_text(left.len() + right.len())?;
                Ok(Self::Bytes([&*left, &*right].concat().into()))
            }
            (left @ (Self::JsonList(..) | Self::List(_)), right @ (Self::JsonList(..) | Self::List(_))) => {
                let merge = list_type_of(&left).clone();
                let mut items = left.into_items(meter)?;
                for item in right.into_items(meter)? {
                    let mut known = None;
                    if merge != ListType::Atomic {
                        for (at, one) in items.iter().enumerate() {
                            if is_same(&merge, one, &item, meter)? {
                                known = Some(at);
                                break;
                            }
                        }
                    }
                    match known {
                        Some(at) => items[at] = item,
                        None => items.push(item),
                    }
                }
                Ok(Self::List(Rc::new(items)))
            }
            (left, right) => left.arithmetic(Arithmetic::Add, &right),
        }
    }

    /// Computes with two numbers of one kind. CEL does not convert between int and double
    /// implicitly.
    pub(super) fn arithmetic(self, operator: Arithmetic, other: &Self) -> Result<Self, EvaluationError> {
        const ZERO: EvaluationError = EvaluationError::Number(NumberError::ByZero);
        const NO_REST: EvaluationError = EvaluationError::Number(NumberError::RestOfZero);
        Ok(match (self, other) {
            (Self::Int(left), Self::Int(right)) => Self::Int(match operator {
                Arithmetic::Add => left.checked_add(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Subtract => left.checked_sub(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Multiply => left.checked_mul(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Divide => left.checked_div(*right).ok_or(ZERO)?,
                Arithmetic::Remainder => left.checked_rem(*right).ok_or(NO_REST)?,
            }),
            (Self::Uint(left), Self::Uint(right)) => Self::Uint(match operator {
                Arithmetic::Add => left.checked_add(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Subtract => left.checked_sub(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Multiply => left.checked_mul(*right).ok_or(TOO_LARGE)?,
                Arithmetic::Divide => left.checked_div(*right).ok_or(ZERO)?,
                Arithmetic::Remainder => left.checked_rem(*right).ok_or(NO_REST)?,
            }),
            (Self::Double(left), Self::Double(right)) => Self::Double(match operator {
                Arithmetic::Add => left + right,
                Arithmetic::Subtract => left - right,
                Arithmetic::Multiply => left * right,
                Arithmetic::Divide => left / right,
                Arithmetic::Remainder => return Err(EvaluationError::WrongType("%")),
            }),
            (left, right) => return times::arithmetic(operator, &left, right),
        })
    }

    /// `int(self)`.
    pub(super) fn to_int(&self) -> Result<Self, EvaluationError> {
        Ok(Self::Int(match self {
            Self::Int(value) => *value,
            Self::Uint(value) => i64::try_from(*value).map_err(|_| TOO_LARGE)?,
            // Both bounds are exact as doubles; the upper one is the first that does not fit.
            Self::Double(value) if (-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(value) => {
                *value as i64
            }
            Self::Double(_) => return Err(TOO_LARGE),
            Self::Text(text) => text.parse().map_err(|_| NO_NUMBER)?,
            Self::Time(time) => time.as_second(),
            _ => return Err(EvaluationError::WrongType("int")),
        }))
    }

    /// `uint(self)`.
    pub(super) fn to_uint(&self) -> Result<Self, EvaluationError> {
        Ok(Self::Uint(match self {
            Self::Uint(value) => *value,
            Self::Text(text) => text.parse().map_err(|_| NO_NUMBER)?,
            other => match other.to_int()? {
                Self::Int(value) => u64::try_from(value).map_err(|_| TOO_LARGE)?,
                _ => return Err(EvaluationError::WrongType("uint")),
            },
        }))
    }

    /// `double(self)`.
    pub(super) fn to_double(&self) -> Result<Self, EvaluationError> {
        Ok(Self::Double(match self {
            Self::Double(value) => *value,
            Self::Int(value) => *value as f64,
            Self::Uint(value) => *value as f64,
            Self::Text(text) => text.parse().map_err(|_| NO_NUMBER)?,
            _ => return Err(EvaluationError::WrongType("double")),
        }))
    }

    /// `string(self)`.
    pub(super) fn into_text(self) -> Result<Self, EvaluationError> {
        Ok(Self::Text(match self {
            Self::Text(text) => text,
            Self::Int(value) => value.to_string().into(),
            Self::Uint(value) => value.to_string().into(),
            Self::Double(value) => format_number(value).into(),
            Self::Bool(value) => value.to_string().into(),
            Self::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
            Self::Time(time) => time.to_string().into(),
            Self::Span(span) => times::format_duration(span).into(),
            Self::Ip(address) => address.to_string().into(),
            Self::Cidr(address, bits) => format!("{address}/{bits}").into(),
            _ => return Err(EvaluationError::WrongType("string")),
        }))
    }
}

/// Formats a number like Go: with an exponent if it is very large or very small.
pub fn format_number(number: f64) -> String {
    let exponent = if number == 0.0 { 0.0 } else { number.abs().log10().floor() };
    if (-4.0..21.0).contains(&exponent) {
        return format!("{number}");
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |rest| ("-", rest));
    format!("{digits}e{sign}{exponent:0>2}")
}
