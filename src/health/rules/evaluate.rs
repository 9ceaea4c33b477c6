//! What an expression is, of one object.
//!
//! In: an [`Expression`] and a body. Out: its value, or a [`Fault`]. Every node that is evaluated, every item that is compared
//! or copied and every few bytes of a text cost a step, and the steps are counted: whatever the expression and whatever the
//! object, the evaluation ends after `MAX_STEPS` of them. That is also a bound on memory, because whatever is made is paid
//! for. The evaluator of the crate `cel` has no such count, so the crate only parses.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::expression::{Arithmetic, Binary, Expression, Fold, Unary};
use super::value::{Val, compare, equal, size, within};

/// Steps of one evaluation; milliseconds at most.
pub(super) const MAX_STEPS: usize = 100_000;
/// Bytes of text that are looked at in one step.
const BYTES_A_STEP: usize = 16;

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// A field that is not there.
    Missing(Box<str>),
    /// An operator or function on what it is not made for.
    Kinds(&'static str),
    /// A number that is too large, a division by zero, an index that is none.
    Number(&'static str),
    /// More steps than an evaluation has.
    TooMuch,
}

/// The steps that are left.
#[derive(Debug)]
pub(super) struct Meter(usize);

impl Meter {
    pub(super) fn new() -> Self {
        Self(MAX_STEPS)
    }

    pub(super) fn pay(&mut self, steps: usize) -> Result<(), Fault> {
        self.0 = self.0.checked_sub(steps).ok_or(Fault::TooMuch)?;
        Ok(())
    }

    pub(super) fn pay_text(&mut self, bytes: usize) -> Result<(), Fault> {
        self.pay(bytes / BYTES_A_STEP)
    }
}

/// What an expression is, of one object: true or false.
pub(super) fn holds(expression: &Expression, object: &Map<String, Value>) -> Result<bool, Fault> {
    let mut evaluation = Evaluation { object, locals: Vec::new(), meter: Meter::new() };
    evaluation.value(expression)?.truth("the whole expression")
}

struct Evaluation<'a> {
    object: &'a Map<String, Value>,
    /// The variables in force, the newest last. One may have no value: see [`Evaluation::walk`].
    locals: Vec<Result<Val<'a>, Fault>>,
    meter: Meter,
}

impl<'a> Evaluation<'a> {
    fn value(&mut self, expression: &'a Expression) -> Result<Val<'a>, Fault> {
        self.meter.pay(1)?;
        match expression {
            Expression::Object => Ok(Val::Map(self.object)),
            Expression::Local(place) => {
                let local = self.locals.get(*place).cloned().unwrap_or(Ok(Val::Null))?;
                // A text that was made is copied.
                if let Val::Text(Cow::Owned(text)) = &local {
                    self.meter.pay_text(text.len())?;
                }
                Ok(local)
            }
            Expression::Null => Ok(Val::Null),
            Expression::Bool(value) => Ok(Val::Bool(*value)),
            Expression::Int(value) => Ok(Val::Int(*value)),
            Expression::Uint(value) => Ok(Val::Uint(*value)),
            Expression::Double(value) => Ok(Val::Double(*value)),
            Expression::Text(text) => Ok(Val::Text(Cow::Borrowed(text))),
            Expression::List(items) => {
                let items = items.iter().map(|item| self.value(item));
                Ok(Val::Made(Rc::new(items.collect::<Result<_, _>>()?)))
            }
            Expression::Field { of, name } => self.field(of, name),
            Expression::Has { of, name } => match self.value(of) {
                Ok(Val::Map(map)) => Ok(Val::Bool(map.contains_key(&**name))),
                // Where the mapping itself is missing, so is the field.
                Ok(Val::Null) | Err(Fault::Missing(_)) => Ok(Val::Bool(false)),
                Ok(_) => Err(Fault::Kinds("has")),
                Err(fault) => Err(fault),
            },
            Expression::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                let taken = if self.value(condition)?.truth("? :")? { yes } else { no };
                self.value(taken)
            }
            Expression::One(operator, operand) => self.one(*operator, operand),
            Expression::Logic { decisive, operands } => self.logic(operands, *decisive),
            Expression::Two(operator, operands) => {
                let [left, right] = &**operands;
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.two(*operator, left, right)
            }
            Expression::Fold(fold) => self.fold(fold),
        }
    }

    fn field(&mut self, of: &'a Expression, name: &str) -> Result<Val<'a>, Fault> {
        match self.value(of)? {
            Val::Map(map) => map.get(name).map(Val::of).ok_or_else(|| Fault::Missing(name.into())),
            Val::Null => Err(Fault::Missing(name.into())),
            _ => Err(Fault::Kinds("a field")),
        }
    }

    /// `&&` and `||`: the operand that decides, decides, also where another one has no value.
    fn logic(&mut self, operands: &'a [Expression], decisive: bool) -> Result<Val<'a>, Fault> {
        let mut without = None;
        for operand in operands {
            match self.value(operand).and_then(|value| value.truth(if decisive { "||" } else { "&&" })) {
                Ok(value) if value == decisive => return Ok(Val::Bool(decisive)),
                Ok(_) => {}
                Err(Fault::TooMuch) => return Err(Fault::TooMuch),
                Err(fault @ (Fault::Missing(_) | Fault::Kinds(_) | Fault::Number(_))) => {
                    without = without.or(Some(fault))
                }
            }
        }
        without.map_or(Ok(Val::Bool(!decisive)), Err)
    }

    fn one(&mut self, operator: Unary, operand: &'a Expression) -> Result<Val<'a>, Fault> {
        let value = self.value(operand);
        Ok(match operator {
            Unary::NotFalse => match value {
                Err(Fault::TooMuch) => return Err(Fault::TooMuch),
                Ok(Val::Bool(value)) => Val::Bool(value),
                Ok(_) | Err(Fault::Missing(_) | Fault::Kinds(_) | Fault::Number(_)) => Val::Bool(true),
            },
            Unary::Not => Val::Bool(!value?.truth("!")?),
            Unary::Minus => match value? {
                Val::Int(value) => {
                    Val::Int(value.checked_neg().ok_or(Fault::Number("a number is too large"))?)
                }
                Val::Double(value) => Val::Double(-value),
                _ => return Err(Fault::Kinds("-")),
            },
            Unary::Size => Val::Int(size(&value?, &mut self.meter)?),
            Unary::Int => value?.to_int()?,
            Unary::Text => value?.into_text()?,
        })
    }

    fn two(&mut self, operator: Binary, left: Val<'a>, right: Val<'a>) -> Result<Val<'a>, Fault> {
        let meter = &mut self.meter;
        let texts = |name: &'static str, meter: &mut Meter| match (&left, &right) {
            (Val::Text(left), Val::Text(right)) => {
                meter.pay_text(left.len() + right.len())?;
                Ok((left.clone(), right.clone()))
            }
            _ => Err(Fault::Kinds(name)),
        };
        let ordered = |meter: &mut Meter| compare(&left, &right, meter);
        Ok(match operator {
            Binary::Equal => Val::Bool(equal(&left, &right, meter)?),
            Binary::NotEqual => Val::Bool(!equal(&left, &right, meter)?),
            Binary::Less => Val::Bool(ordered(meter)?.is_some_and(|order| order.is_lt())),
            Binary::LessOrEqual => Val::Bool(ordered(meter)?.is_some_and(|order| order.is_le())),
            Binary::Greater => Val::Bool(ordered(meter)?.is_some_and(|order| order.is_gt())),
            Binary::GreaterOrEqual => Val::Bool(ordered(meter)?.is_some_and(|order| order.is_ge())),
            Binary::In => Val::Bool(within(&left, &right, meter)?),
            Binary::Contains => {
                texts("contains", meter).map(|(all, part)| Val::Bool(all.contains(&*part)))?
            }
            Binary::StartsWith => {
                texts("startsWith", meter).map(|(all, part)| Val::Bool(all.starts_with(&*part)))?
            }
            Binary::EndsWith => {
                texts("endsWith", meter).map(|(all, part)| Val::Bool(all.ends_with(&*part)))?
            }
            Binary::Index => left.index(&right, meter)?,
            Binary::Arithmetic(Arithmetic::Add) => left.add(right, meter)?,
            Binary::Arithmetic(operator) => left.arithmetic(operator, &right)?,
        })
    }

    fn fold(&mut self, fold: &'a Fold) -> Result<Val<'a>, Fault> {
        let items = self.value(&fold.range)?.into_items(&mut self.meter)?;
        let depth = self.locals.len();
        let start = self.value(&fold.start);
        self.locals.push(start);
        let walked = self.walk(fold, items, depth);
        let result = walked.and_then(|()| self.value(&fold.result));
        self.locals.truncate(depth);
        result
    }

    fn walk(&mut self, fold: &'a Fold, items: Vec<Val<'a>>, depth: usize) -> Result<(), Fault> {
        for item in items {
            self.locals.push(Ok(item));
            if !self.value(&fold.go_on)?.truth("a macro")? {
                break;
            }
            // What `all` and `exists` have so far may be without a value: a later item may decide.
            let step = self.value(&fold.step);
            if step == Err(Fault::TooMuch) {
                return Err(Fault::TooMuch);
            }
            self.locals.truncate(depth);
            self.locals.push(step);
        }
        self.locals.truncate(depth + 1);
        Ok(())
    }
}
