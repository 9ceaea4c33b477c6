//! Evaluates an expression.
//!
//! In: an [`Expression`], and the values of its variables.
//! Out: its value, or an [`EvaluationError`]. Every evaluated node, every compared or copied item
//! and every few bytes of a text cost a step of a [`StepBudget`]: for any expression and any
//! values, the evaluation ends after that many steps. Memory is bounded as well, because every
//! created value costs steps. The evaluator of the crate `cel` has no such limit, so that crate
//! only parses.

use std::borrow::Cow;
use std::rc::Rc;

use super::call;
use super::compare::{compare, equal, size, within};
use super::each::{self, Each};
use super::pattern::Pattern;
use super::tree::{Arithmetic, Binary, Expression, Fold, Node, Unary};
use super::value::Val;

/// Bytes of text that one step covers.
const BYTES_A_STEP: usize = 16;

/// Reason for which an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A missing field.
    Missing(Box<str>),
    /// An operator or function without an overload for its operands.
    Kinds(&'static str),
    /// A result that is no valid number.
    Number(Sum),
    /// A function of the Kubernetes library that is not implemented here.
    Unknown,
    /// The steps are used up.
    TooMuch,
}

/// Reason for which a number cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// Overflow.
    TooLarge,
    /// Division by zero.
    ByZero,
    /// Remainder of a division by zero.
    RestOfZero,
    /// An index outside of the list.
    NoIndex(i64),
    /// A text that is no number.
    NoNumber,
}

/// Steps that are left for an evaluation.
#[derive(Debug)]
pub struct Meter(usize);

impl Meter {
    /// Creates a budget of so many steps.
    pub fn new(steps: usize) -> Self {
        Self(steps)
    }

    /// Returns the number of steps that are left.
    pub fn left(&self) -> usize {
        self.0
    }

    pub(super) fn pay(&mut self, steps: usize) -> Result<(), Fault> {
        self.0 = self.0.checked_sub(steps).ok_or(Fault::TooMuch)?;
        Ok(())
    }

    pub(super) fn pay_text(&mut self, bytes: usize) -> Result<(), Fault> {
        self.pay(bytes / BYTES_A_STEP)
    }
}

/// Evaluates an expression with these values of its variables. With `lenient`, a field of a missing
/// or unsuitable value is a missing field and no type error.
pub fn evaluate<'a>(
    expression: &'a Expression,
    variables: &[Val<'a>],
    lenient: bool,
    meter: &mut Meter,
) -> Result<Val<'a>, Fault> {
    Evaluation { variables, lenient, locals: Vec::new(), meter }.value(&expression.0)
}

struct Evaluation<'a, 'v> {
    variables: &'v [Val<'a>],
    /// True if the field of a value without fields counts as missing.
    lenient: bool,
    /// Variables of the enclosing macros, the newest last. One may have no value: see
    /// [`Evaluation::walk`].
    locals: Vec<Result<Val<'a>, Fault>>,
    meter: &'v mut Meter,
}

impl<'a> Evaluation<'a, '_> {
    fn value(&mut self, expression: &'a Node) -> Result<Val<'a>, Fault> {
        self.meter.pay(1)?;
        match expression {
            Node::Variable(place) => Ok(self.variables.get(*place).cloned().unwrap_or(Val::Null)),
            Node::Local(place) => {
                let local = self.locals.get(*place).cloned().unwrap_or(Ok(Val::Null))?;
                // An owned text is copied, and the copy costs steps.
                if let Val::Text(Cow::Owned(text)) = &local {
                    self.meter.pay_text(text.len())?;
                }
                Ok(local)
            }
            Node::Null => Ok(Val::Null),
            Node::Bool(value) => Ok(Val::Bool(*value)),
            Node::Int(value) => Ok(Val::Int(*value)),
            Node::Uint(value) => Ok(Val::Uint(*value)),
            Node::Double(value) => Ok(Val::Double(*value)),
            Node::Text(text) => Ok(Val::Text(Cow::Borrowed(text))),
            Node::Bytes(bytes) => Ok(Val::Bytes((**bytes).into())),
            Node::Type(name) => Ok(Val::Type(name)),
            Node::List(items) => Ok(Val::Made(Rc::new(self.values(items)?))),
            Node::Map(entries) => {
                let mut made = Vec::with_capacity(entries.len());
                for [key, value] in entries {
                    made.push((self.value(key)?, self.value(value)?));
                }
                Ok(Val::Entries(Rc::new(made)))
            }
            Node::Field { of, name, optional } => self.field(of, name, *optional),
            Node::Has { of, name } => self.has(of, name),
            Node::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                let taken = if self.value(condition)?.truth("? :")? { yes } else { no };
                self.value(taken)
            }
            Node::One(operator, operand) => self.one(*operator, operand),
            Node::Logic { decisive, operands } => self.logic(operands, *decisive),
            Node::Two(operator, operands) => {
                let [left, right] = &**operands;
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.two(*operator, left, right)
            }
            Node::Matches(of, pattern) => {
                let text = self.value(of)?;
                self.matches(&text, pattern)
            }
            Node::Call(function, operands) => {
                let operands = self.values(operands)?;
                call::call(*function, operands, self.meter)
            }
            Node::Fold(fold) => self.fold(fold),
            Node::Each(each) => self.each(each),
        }
    }

    fn values(&mut self, expressions: &'a [Node]) -> Result<Vec<Val<'a>>, Fault> {
        expressions.iter().map(|expression| self.value(expression)).collect()
    }

    fn matches(&mut self, text: &Val<'a>, pattern: &Pattern) -> Result<Val<'a>, Fault> {
        let Val::Text(text) = text else { return Err(Fault::Kinds("matches")) };
        self.meter.pay_text(text.len())?;
        Ok(Val::Bool(pattern.is_match(text.as_bytes())))
    }

    fn has(&mut self, of: &'a Node, name: &str) -> Result<Val<'a>, Fault> {
        match self.value(of) {
            Ok(Val::Null) | Err(Fault::Missing(_)) if self.lenient => Ok(Val::Bool(false)),
            Ok(Val::Optional(of)) => match of {
                Some(of) => Ok(Val::Bool(of.field(name)?.is_some())),
                None => Ok(Val::Bool(false)),
            },
            Ok(of @ (Val::Map(..) | Val::Entries(_))) => Ok(Val::Bool(of.field(name)?.is_some())),
            Ok(_) => Err(Fault::Kinds("has")),
            Err(fault) => Err(fault),
        }
    }

    fn each(&mut self, of: &'a Each) -> Result<Val<'a>, Fault> {
        let range = self.value(&of.range)?;
        let Self { variables, lenient, locals, meter } = self;
        each::each(of, range, meter, &mut |part, given, meter| {
            let depth = locals.len();
            locals.extend(given.iter().cloned().map(Ok));
            let locals_now = std::mem::take(locals);
            let mut inner = Evaluation { variables, lenient: *lenient, locals: locals_now, meter };
            let value = inner.value(part);
            *locals = inner.locals;
            locals.truncate(depth);
            value
        })
    }

    fn field(&mut self, of: &'a Node, name: &str, optional: bool) -> Result<Val<'a>, Fault> {
        let of = self.value(of)?;
        let optionally = |found: Option<Val<'a>>| Val::Optional(found.map(Rc::new));
        match of {
            Val::Optional(None) => Ok(Val::Optional(None)),
            Val::Optional(Some(of)) => of.field(name).map(optionally),
            of if optional => of.field(name).map(optionally),
            Val::Null => {
                Err(if self.lenient { Fault::Missing(name.into()) } else { Fault::Kinds("a field") })
            }
            of => of.field(name)?.ok_or_else(|| Fault::Missing(name.into())),
        }
    }

    /// `&&` and `||`: an operand that decides the result does so even if another has no value.
    fn logic(&mut self, operands: &'a [Node], decisive: bool) -> Result<Val<'a>, Fault> {
        let mut without = None;
        for operand in operands {
            match self.value(operand).and_then(|value| value.truth(if decisive { "||" } else { "&&" })) {
                Ok(value) if value == decisive => return Ok(Val::Bool(decisive)),
                Ok(_) => {}
                Err(Fault::TooMuch) => return Err(Fault::TooMuch),
                Err(fault @ (Fault::Missing(_) | Fault::Kinds(_) | Fault::Number(_) | Fault::Unknown)) => {
                    without = without.or(Some(fault))
                }
            }
        }
        without.map_or(Ok(Val::Bool(!decisive)), Err)
    }

    fn one(&mut self, operator: Unary, operand: &'a Node) -> Result<Val<'a>, Fault> {
        let value = self.value(operand);
        Ok(match operator {
            Unary::NotFalse => match value {
                Err(Fault::TooMuch) => return Err(Fault::TooMuch),
                Ok(Val::Bool(value)) => Val::Bool(value),
                Ok(_) | Err(Fault::Missing(_) | Fault::Kinds(_) | Fault::Number(_) | Fault::Unknown) => {
                    Val::Bool(true)
                }
            },
            Unary::Not => Val::Bool(!value?.truth("!")?),
            Unary::Minus => match value? {
                Val::Int(value) => Val::Int(value.checked_neg().ok_or(Fault::Number(Sum::TooLarge))?),
                Val::Double(value) => Val::Double(-value),
                _ => return Err(Fault::Kinds("-")),
            },
            Unary::Size => Val::Int(size(&value?, self.meter)?),
            Unary::Int => value?.to_int()?,
            Unary::Text => value?.into_text()?,
        })
    }

    fn two(&mut self, operator: Binary, left: Val<'a>, right: Val<'a>) -> Result<Val<'a>, Fault> {
        let meter = &mut *self.meter;
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
            Binary::Index => match &left {
                Val::Optional(None) => Val::Optional(None),
                Val::Optional(Some(of)) => Val::Optional(of.index(&right, meter)?.map(Rc::new)),
                of => of.index(&right, meter)?.ok_or_else(|| Val::no_item(&right))?,
            },
            Binary::OptionalIndex => match &left {
                Val::Optional(None) => Val::Optional(None),
                Val::Optional(Some(of)) => Val::Optional(of.index(&right, meter)?.map(Rc::new)),
                of => Val::Optional(of.index(&right, meter)?.map(Rc::new)),
            },
            Binary::Arithmetic(Arithmetic::Add) => left.add(right, meter)?,
            Binary::Arithmetic(operator) => left.arithmetic(operator, &right)?,
        })
    }

    fn fold(&mut self, fold: &'a Fold) -> Result<Val<'a>, Fault> {
        let items = self.value(&fold.range)?.into_items(self.meter)?;
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
            // The accumulator of `all` and `exists` may have no value so far: a later item may
            // still decide.
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
