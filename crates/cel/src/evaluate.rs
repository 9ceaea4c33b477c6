//! What an expression is.
//!
//! In: an [`Expression`], and the values of its variables. Out: its value, or a [`Fault`]. Every node that is evaluated, every item that is compared
//! or copied and every few bytes of a text cost a step, and the steps are counted: whatever the expression and whatever the
//! values, the evaluation ends after as many as it was given. That is also a bound on memory, because whatever is made is paid
//! for. The evaluator of the crate `cel` has no such count, so the crate only parses.

use std::borrow::Cow;
use std::rc::Rc;

use super::call;
use super::compare::{compare, equal, size, within};
use super::each::{self, Each};
use super::pattern::Pattern;
use super::tree::{Arithmetic, Binary, Expression, Fold, Node, Unary};
use super::value::Val;

/// Bytes of text that are looked at in one step.
const BYTES_A_STEP: usize = 16;

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A field that is not there.
    Missing(Box<str>),
    /// An operator or function on what it is not made for.
    Kinds(&'static str),
    /// A number that is none.
    Number(Sum),
    /// What the library of Kubernetes has, and this evaluator has not.
    Unknown,
    /// More steps than an evaluation has.
    TooMuch,
}

/// Why there is no such number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// It does not fit.
    TooLarge,
    /// Something is divided by zero.
    ByZero,
    /// What would be left of a division by zero.
    RestOfZero,
    /// An index that is none of its list's.
    NoIndex(i64),
    /// A text that says no number.
    NoNumber,
}

/// The steps that are left.
#[derive(Debug)]
pub struct Meter(usize);

impl Meter {
    /// So many steps.
    pub fn new(steps: usize) -> Self {
        Self(steps)
    }

    /// How many are left.
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

/// What an expression is for these values of its variables. To the lenient, what has no mapping has no field.
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
    /// Where a mapping is missing, so is the field that is asked for.
    lenient: bool,
    /// The variables of macros in force, the newest last. One may have no value: see [`Evaluation::walk`].
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
                // A text that was made is copied.
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

    /// `&&` and `||`: the operand that decides, decides, also where another one has no value.
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
