//! An expression as it is evaluated: a small tree in which every name is known.
//!
//! In: an expression in the Common Expression Language, and the tree that the crate `cel` makes of it. Out: [`Expression`], or
//! what of it means nothing here, with its place. Names are resolved once, when the Sync is read: an evaluation never looks up
//! a name, and a rule with a misspelt function is refused before it is needed.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, SelectExpr};
use cel::parser::PrattParser;

use super::scan::{TooMuch, scan};

/// The one variable that there is from the start.
const OBJECT: &str = "object";
/// How deep the tree may be. A macro such as `exists` is a few levels by itself.
const MAX_DEPTH: usize = 128;
/// How often the parser may call itself. The text was measured before; this is for what the measure does not see.
const MAX_PARSED: u16 = 96;
/// Nodes of a tree.
const MAX_NODES: usize = 2_048;

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    /// The live object.
    Object,
    /// A variable of a macro, by its position among those in force.
    Local(usize),
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    List(Vec<Expression>),
    /// `of.name`.
    Field {
        of: Box<Expression>,
        name: Box<str>,
    },
    /// `has(of.name)`.
    Has {
        of: Box<Expression>,
        name: Box<str>,
    },
    /// `condition ? yes : no`.
    Choice(Box<[Expression; 3]>),
    /// Everything with one operand.
    One(Unary, Box<Expression>),
    /// `&&` where `false` decides, `||` where `true` does.
    Logic {
        decisive: bool,
        operands: Vec<Expression>,
    },
    /// Everything else with two operands.
    Two(Binary, Box<[Expression; 2]>),
    /// A macro: the items of `range` are gone through with an accumulator and an item as the two newest variables.
    Fold(Box<Fold>),
}

/// A walk over a list, or over the keys of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fold {
    pub(super) range: Expression,
    pub(super) start: Expression,
    pub(super) go_on: Expression,
    pub(super) step: Expression,
    pub(super) result: Expression,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    /// True unless its operand is false: what an error is to `all` and `exists` while there may be a better answer.
    NotFalse,
    Size,
    Int,
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Arithmetic(Arithmetic),
    In,
    Index,
    Contains,
    StartsWith,
    EndsWith,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The names under which the parser knows operators and functions.
const UNARY: [(&str, Unary); 7] = [
    ("!_", Unary::Not),
    ("-_", Unary::Minus),
    ("@not_strictly_false", Unary::NotFalse),
    ("__not_strictly_false__", Unary::NotFalse),
    ("size", Unary::Size),
    ("int", Unary::Int),
    ("string", Unary::Text),
];
const LOGIC: [(&str, bool); 2] = [("_&&_", false), ("_||_", true)];
const BINARY: [(&str, Binary); 16] = [
    ("_==_", Binary::Equal),
    ("_!=_", Binary::NotEqual),
    ("_<_", Binary::Less),
    ("_<=_", Binary::LessOrEqual),
    ("_>_", Binary::Greater),
    ("_>=_", Binary::GreaterOrEqual),
    ("_+_", Binary::Arithmetic(Arithmetic::Add)),
    ("_-_", Binary::Arithmetic(Arithmetic::Subtract)),
    ("_*_", Binary::Arithmetic(Arithmetic::Multiply)),
    ("_/_", Binary::Arithmetic(Arithmetic::Divide)),
    ("_%_", Binary::Arithmetic(Arithmetic::Remainder)),
    ("@in", Binary::In),
    ("_[_]", Binary::Index),
    ("contains", Binary::Contains),
    ("startsWith", Binary::StartsWith),
    ("endsWith", Binary::EndsWith),
];

/// Why a text is no expression: the byte at which it goes wrong, and what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) at: usize,
    pub(super) problem: String,
}

/// The expression that a text is.
pub(super) fn expression(text: &str) -> Result<Expression, Refused> {
    scan(text).map_err(|TooMuch { at, problem }| Refused { at, problem })?;
    if text.trim().is_empty() {
        return Err(Refused { at: 0, problem: "the expression is empty".to_owned() });
    }
    let parser = PrattParser::new().max_recursion_depth(MAX_PARSED).max_expression_node_count(MAX_NODES);
    let tree = parser.parse(text).map_err(|errors| syntax(text, &errors))?;
    let mut lowering = Lowering { text, scope: Vec::new(), nodes: 0 };
    lowering.lower(&tree, 0)
}

/// The first error of the parser, with its place.
fn syntax(text: &str, errors: &cel::ParseErrors) -> Refused {
    let Some(first) = errors.errors.first() else {
        return Refused { at: 0, problem: "it is no expression".to_owned() };
    };
    let (line, column) = first.pos;
    let before = text
        .split_inclusive('\n')
        .take(usize::try_from(line).unwrap_or(1).saturating_sub(1))
        .map(str::len)
        .sum::<usize>();
    let rest = text.get(before..).unwrap_or_default();
    // The parser's columns are bytes, from 1.
    let column = usize::try_from(column).unwrap_or_default().saturating_sub(1);
    let within = rest.floor_char_boundary(column);
    Refused { at: before + within, problem: super::super::sentence::told(&first.msg) }
}

struct Lowering<'a> {
    text: &'a str,
    /// The names of the variables in force.
    scope: Vec<&'a str>,
    nodes: usize,
}

impl<'a> Lowering<'a> {
    fn lower(&mut self, node: &'a IdedExpr, depth: usize) -> Result<Expression, Refused> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(Refused { at: 0, problem: "the expression is too large".to_owned() });
        }
        let depth = depth + 1;
        match &node.expr {
            Expr::Ident(name) => self.variable(name),
            Expr::Literal(literal) => self.literal(literal),
            Expr::Select(select) => self.select(select, depth),
            Expr::Call(call) => self.call(call, depth),
            Expr::Comprehension(fold) => self.fold(fold, depth),
            Expr::List(list) => {
                let items = list.elements.iter().map(|item| self.lower(item, depth));
                Ok(Expression::List(items.collect::<Result<_, _>>()?))
            }
            Expr::Map(_) | Expr::Struct(_) => self.refuse("{", "mappings cannot be made"),
            Expr::Unspecified => self.refuse("", "it is no expression"),
        }
    }

    fn variable(&self, name: &str) -> Result<Expression, Refused> {
        match self.scope.iter().rposition(|local| *local == name) {
            Some(place) => Ok(Expression::Local(place)),
            None if name == OBJECT => Ok(Expression::Object),
            None => self.refuse(name, format!("there is no variable {name:?}, only \"object\"")),
        }
    }

    fn literal(&self, literal: &LiteralValue) -> Result<Expression, Refused> {
        Ok(match literal {
            LiteralValue::Null => Expression::Null,
            LiteralValue::Boolean(value) => Expression::Bool(**value),
            LiteralValue::Int(value) => Expression::Int(**value),
            LiteralValue::UInt(value) => Expression::Uint(**value),
            LiteralValue::Double(value) => Expression::Double(**value),
            LiteralValue::String(text) => Expression::Text(text.inner().into()),
            LiteralValue::Bytes(_) => return self.refuse("b", "bytes are not known here"),
        })
    }

    fn select(&mut self, select: &'a SelectExpr, depth: usize) -> Result<Expression, Refused> {
        let of = Box::new(self.lower(&select.operand, depth)?);
        let name = select.field.as_str().into();
        Ok(if select.test { Expression::Has { of, name } } else { Expression::Field { of, name } })
    }

    fn call(&mut self, call: &'a CallExpr, depth: usize) -> Result<Expression, Refused> {
        let name = call.func_name.as_str();
        // `a.contains(b)` and `contains(a, b)` are the same.
        let operands =
            call.target.as_deref().into_iter().chain(&call.args).map(|node| self.lower(node, depth));
        let operands: Vec<Expression> = operands.collect::<Result<_, _>>()?;
        if let Some((_, decisive)) = LOGIC.iter().find(|(known, _)| *known == name) {
            return Ok(Expression::Logic { decisive: *decisive, operands });
        }
        if name == "_?_:_" {
            return match <[Expression; 3]>::try_from(operands) {
                Ok(parts) => Ok(Expression::Choice(Box::new(parts))),
                Err(_) => self.refuse("?", "a choice has three parts"),
            };
        }
        if name == "matches" {
            return self.refuse(name, "patterns are not known here: use contains, startsWith or endsWith");
        }
        let unary = UNARY.iter().find(|(known, _)| *known == name);
        let binary = BINARY.iter().find(|(known, _)| *known == name);
        let count = operands.len();
        match (unary, binary) {
            (None, None) => self.refuse(name, format!("there is no function {name:?}")),
            (Some((_, operator)), _) => match <[Expression; 1]>::try_from(operands) {
                Ok([operand]) => Ok(Expression::One(*operator, Box::new(operand))),
                Err(_) => self.refuse(name, format!("{name} takes 1 value, not {count}")),
            },
            (None, Some((_, operator))) => match <[Expression; 2]>::try_from(operands) {
                Ok(operands) => Ok(Expression::Two(*operator, Box::new(operands))),
                Err(_) => self.refuse(name, format!("{name} takes 2 values, not {count}")),
            },
        }
    }

    fn fold(&mut self, fold: &'a ComprehensionExpr, depth: usize) -> Result<Expression, Refused> {
        if fold.iter_var2.is_some() {
            return self.refuse(&fold.iter_var, "macros have one variable here");
        }
        if fold.iter_var == OBJECT {
            return self.refuse(OBJECT, "the variable of a macro cannot be named \"object\"");
        }
        let range = self.lower(&fold.iter_range, depth)?;
        let start = self.lower(&fold.accu_init, depth)?;
        self.scope.extend([fold.accu_var.as_str(), fold.iter_var.as_str()]);
        let go_on = self.lower(&fold.loop_cond, depth)?;
        let step = self.lower(&fold.loop_step, depth)?;
        self.scope.pop();
        let result = self.lower(&fold.result, depth)?;
        self.scope.pop();
        Ok(Expression::Fold(Box::new(Fold { range, start, go_on, step, result })))
    }

    /// A refusal at the first place where a word stands. A word that is refused is refused wherever it
    /// stands, so the first one is as good as any.
    fn refuse<T>(&self, word: &str, problem: impl Into<String>) -> Result<T, Refused> {
        let letter = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let whole = |at: &usize| {
            !self.text[..*at].ends_with(letter) && !self.text[at + word.len()..].starts_with(letter)
        };
        let places = self.text.match_indices(word).map(|(at, _)| at);
        let at = places.clone().find(whole).or_else(|| places.clone().next()).unwrap_or_default();
        Err(Refused { at, problem: problem.into() })
    }
}
