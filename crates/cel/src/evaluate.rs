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

use super::compare::{compare, contains, equal, size};
use super::pattern::Pattern;
use super::tree::{Arithmetic, Binary, Expression, Fold, Node, Unary};
use super::value::CelValue;
use crate::functions;
use crate::macros;
use crate::macros::MacroCall;

/// Bytes of text that one step covers.
const BYTES_A_STEP: usize = 16;

/// Reason for which an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvaluationError {
    /// A missing field.
    MissingField(Box<str>),
    /// An operator or function without an overload for its operands.
    WrongType(&'static str),
    /// A result that is no valid number.
    Number(NumberError),
    /// A function of the Kubernetes library that is not implemented here.
    Unsupported,
    /// The steps are used up.
    OutOfSteps,
}

/// Reason for which a number cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberError {
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
pub struct StepBudget(usize);

impl StepBudget {
    /// Creates a budget of so many steps.
    pub fn new(steps: usize) -> Self {
        Self(steps)
    }

    /// Returns the number of steps that are left.
    pub fn remaining(&self) -> usize {
        self.0
    }

    pub(super) fn spend(&mut self, steps: usize) -> Result<(), EvaluationError> {
        self.0 = self.0.checked_sub(steps).ok_or(EvaluationError::OutOfSteps)?;
        Ok(())
    }

    pub(super) fn spend_for_text(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        self.spend(bytes / BYTES_A_STEP)
    }
}

/// Evaluates an expression with these values of its variables. With `lenient`, a field of a missing
/// or unsuitable value is a missing field and no type error.
pub fn evaluate<'a>(
    expression: &'a Expression,
    variables: &[CelValue<'a>],
    lenient: bool,
    meter: &mut StepBudget,
) -> Result<CelValue<'a>, EvaluationError> {
    Evaluation { variables, lenient, locals: Vec::new(), meter }.value(&expression.0)
}

struct Evaluation<'a, 'v> {
    variables: &'v [CelValue<'a>],
    /// True if the field of a value without fields counts as missing.
    lenient: bool,
    /// Variables of the enclosing macros, the newest last. One may have no value: see
    /// [`Evaluation::walk`].
    locals: Vec<Result<CelValue<'a>, EvaluationError>>,
    meter: &'v mut StepBudget,
}

impl<'a> Evaluation<'a, '_> {
    fn value(&mut self, expression: &'a Node) -> Result<CelValue<'a>, EvaluationError> {
        self.meter.spend(1)?;
        match expression {
            Node::Variable(place) => Ok(self.variables.get(*place).cloned().unwrap_or(CelValue::Null)),
            Node::Local(place) => {
                let local = self.locals.get(*place).cloned().unwrap_or(Ok(CelValue::Null))?;
                // An owned text is copied, and the copy costs steps.
                if let CelValue::Text(Cow::Owned(text)) = &local {
                    self.meter.spend_for_text(text.len())?;
                }
                Ok(local)
            }
            Node::Null => Ok(CelValue::Null),
            Node::Bool(value) => Ok(CelValue::Bool(*value)),
            Node::Int(value) => Ok(CelValue::Int(*value)),
            Node::Uint(value) => Ok(CelValue::Uint(*value)),
            Node::Double(value) => Ok(CelValue::Double(*value)),
            Node::Text(text) => Ok(CelValue::Text(Cow::Borrowed(text))),
            Node::Bytes(bytes) => Ok(CelValue::Bytes((**bytes).into())),
            Node::Type(name) => Ok(CelValue::Type(name)),
            Node::List(items) => Ok(CelValue::List(Rc::new(self.values(items)?))),
            Node::Map(entries) => {
                let mut made = Vec::with_capacity(entries.len());
                for [key, value] in entries {
                    made.push((self.value(key)?, self.value(value)?));
                }
                Ok(CelValue::Entries(Rc::new(made)))
            }
            Node::Field { of, name, optional } => self.field(of, name, *optional),
            Node::Has { of, name } => self.has(of, name),
            Node::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                let taken = if self.value(condition)?.into_bool("? :")? { yes } else { no };
                self.value(taken)
            }
            Node::One(operator, operand) => self.unary(*operator, operand),
            Node::Logic { decisive, operands } => self.logic(operands, *decisive),
            Node::Two(operator, operands) => {
                let [left, right] = &**operands;
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.binary(*operator, left, right)
            }
            Node::Matches(of, pattern) => {
                let text = self.value(of)?;
                self.matches(&text, pattern)
            }
            Node::Call(function, operands) => {
                let operands = self.values(operands)?;
                functions::call(*function, operands, self.meter)
            }
            Node::Fold(fold) => self.fold(fold),
            Node::Each(each) => self.each(each),
        }
    }

    fn values(&mut self, expressions: &'a [Node]) -> Result<Vec<CelValue<'a>>, EvaluationError> {
        expressions.iter().map(|expression| self.value(expression)).collect()
    }

    fn matches(&mut self, text: &CelValue<'a>, pattern: &Pattern) -> Result<CelValue<'a>, EvaluationError> {
        let CelValue::Text(text) = text else { return Err(EvaluationError::WrongType("matches")) };
        self.meter.spend_for_text(text.len())?;
        Ok(CelValue::Bool(pattern.is_match(text.as_bytes())))
    }

    fn has(&mut self, of: &'a Node, name: &str) -> Result<CelValue<'a>, EvaluationError> {
        match self.value(of) {
            Ok(CelValue::Null) | Err(EvaluationError::MissingField(_)) if self.lenient => {
                Ok(CelValue::Bool(false))
            }
            Ok(CelValue::Optional(of)) => match of {
                Some(of) => Ok(CelValue::Bool(of.field(name)?.is_some())),
                None => Ok(CelValue::Bool(false)),
            },
            Ok(of @ (CelValue::JsonMap(..) | CelValue::Entries(_))) => {
                Ok(CelValue::Bool(of.field(name)?.is_some()))
            }
            Ok(_) => Err(EvaluationError::WrongType("has")),
            Err(fault) => Err(fault),
        }
    }

    fn each(&mut self, of: &'a MacroCall) -> Result<CelValue<'a>, EvaluationError> {
        let range = self.value(&of.range)?;
        let Self { variables, lenient, locals, meter } = self;
        macros::evaluate_macro(of, range, meter, &mut |part, given, meter| {
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

    fn field(&mut self, of: &'a Node, name: &str, optional: bool) -> Result<CelValue<'a>, EvaluationError> {
        let of = self.value(of)?;
        let optionally = |found: Option<CelValue<'a>>| CelValue::Optional(found.map(Rc::new));
        match of {
            CelValue::Optional(None) => Ok(CelValue::Optional(None)),
            CelValue::Optional(Some(of)) => of.field(name).map(optionally),
            of if optional => of.field(name).map(optionally),
            CelValue::Null => Err(if self.lenient {
                EvaluationError::MissingField(name.into())
            } else {
                EvaluationError::WrongType("a field")
            }),
            of => of.field(name)?.ok_or_else(|| EvaluationError::MissingField(name.into())),
        }
    }

    /// `&&` and `||`: an operand that decides the result does so even if another has no value.
    fn logic(&mut self, operands: &'a [Node], decisive: bool) -> Result<CelValue<'a>, EvaluationError> {
        let mut without = None;
        for operand in operands {
            match self.value(operand).and_then(|value| value.into_bool(if decisive { "||" } else { "&&" })) {
                Ok(value) if value == decisive => return Ok(CelValue::Bool(decisive)),
                Ok(_) => {}
                Err(EvaluationError::OutOfSteps) => return Err(EvaluationError::OutOfSteps),
                Err(
                    fault @ (EvaluationError::MissingField(_)
                    | EvaluationError::WrongType(_)
                    | EvaluationError::Number(_)
                    | EvaluationError::Unsupported),
                ) => without = without.or(Some(fault)),
            }
        }
        without.map_or(Ok(CelValue::Bool(!decisive)), Err)
    }

    fn unary(&mut self, operator: Unary, operand: &'a Node) -> Result<CelValue<'a>, EvaluationError> {
        let value = self.value(operand);
        Ok(match operator {
            Unary::NotFalse => match value {
                Err(EvaluationError::OutOfSteps) => return Err(EvaluationError::OutOfSteps),
                Ok(CelValue::Bool(value)) => CelValue::Bool(value),
                Ok(_)
                | Err(
                    EvaluationError::MissingField(_)
                    | EvaluationError::WrongType(_)
                    | EvaluationError::Number(_)
                    | EvaluationError::Unsupported,
                ) => CelValue::Bool(true),
            },
            Unary::Not => CelValue::Bool(!value?.into_bool("!")?),
            Unary::Minus => match value? {
                CelValue::Int(value) => {
                    CelValue::Int(value.checked_neg().ok_or(EvaluationError::Number(NumberError::TooLarge))?)
                }
                CelValue::Double(value) => CelValue::Double(-value),
                _ => return Err(EvaluationError::WrongType("-")),
            },
            Unary::Size => CelValue::Int(size(&value?, self.meter)?),
            Unary::Int => value?.to_int()?,
            Unary::Text => value?.into_text()?,
        })
    }

    fn binary(
        &mut self,
        operator: Binary,
        left: CelValue<'a>,
        right: CelValue<'a>,
    ) -> Result<CelValue<'a>, EvaluationError> {
        let meter = &mut *self.meter;
        let texts = |name: &'static str, meter: &mut StepBudget| match (&left, &right) {
            (CelValue::Text(left), CelValue::Text(right)) => {
                meter.spend_for_text(left.len() + right.len())?;
                Ok((left.clone(), right.clone()))
            }
            _ => Err(EvaluationError::WrongType(name)),
        };
        let ordered = |meter: &mut StepBudget| compare(&left, &right, meter);
        Ok(match operator {
            Binary::Equal => CelValue::Bool(equal(&left, &right, meter)?),
            Binary::NotEqual => CelValue::Bool(!equal(&left, &right, meter)?),
            Binary::Less => CelValue::Bool(ordered(meter)?.is_some_and(|order| order.is_lt())),
            Binary::LessOrEqual => CelValue::Bool(ordered(meter)?.is_some_and(|order| order.is_le())),
            Binary::Greater => CelValue::Bool(ordered(meter)?.is_some_and(|order| order.is_gt())),
            Binary::GreaterOrEqual => CelValue::Bool(ordered(meter)?.is_some_and(|order| order.is_ge())),
            Binary::In => CelValue::Bool(contains(&left, &right, meter)?),
            Binary::Contains => {
                texts("contains", meter).map(|(all, part)| CelValue::Bool(all.contains(&*part)))?
            }
            Binary::StartsWith => {
                texts("startsWith", meter).map(|(all, part)| CelValue::Bool(all.starts_with(&*part)))?
            }
            Binary::EndsWith => {
                texts("endsWith", meter).map(|(all, part)| CelValue::Bool(all.ends_with(&*part)))?
            }
            Binary::Index => match &left {
                CelValue::Optional(None) => CelValue::Optional(None),
                CelValue::Optional(Some(of)) => CelValue::Optional(of.index(&right, meter)?.map(Rc::new)),
                of => of.index(&right, meter)?.ok_or_else(|| CelValue::no_item(&right))?,
            },
            Binary::OptionalIndex => match &left {
                CelValue::Optional(None) => CelValue::Optional(None),
                CelValue::Optional(Some(of)) => CelValue::Optional(of.index(&right, meter)?.map(Rc::new)),
                of => CelValue::Optional(of.index(&right, meter)?.map(Rc::new)),
            },
            Binary::Arithmetic(Arithmetic::Add) => left.add(right, meter)?,
            Binary::Arithmetic(operator) => left.arithmetic(operator, &right)?,
        })
    }

    fn fold(&mut self, fold: &'a Fold) -> Result<CelValue<'a>, EvaluationError> {
        let items = self.value(&fold.range)?.into_items(self.meter)?;
        let depth = self.locals.len();
        let start = self.value(&fold.start);
        self.locals.push(start);
        let walked = self.walk(fold, items, depth);
        let result = walked.and_then(|()| self.value(&fold.result));
        self.locals.truncate(depth);
        result
    }

    fn walk(
        &mut self,
        fold: &'a Fold,
        items: Vec<CelValue<'a>>,
        depth: usize,
    ) -> Result<(), EvaluationError> {
        for item in items {
            self.locals.push(Ok(item));
            if !self.value(&fold.go_on)?.into_bool("a macro")? {
                break;
            }
            // The accumulator of `all` and `exists` may have no value so far: a later item may
            // still decide.
            let step = self.value(&fold.step);
            if step == Err(EvaluationError::OutOfSteps) {
                return Err(EvaluationError::OutOfSteps);
            }
            self.locals.truncate(depth);
            self.locals.push(step);
        }
        self.locals.truncate(depth + 1);
        Ok(())
    }
}
