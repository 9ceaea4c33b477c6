//! Lowers operators and calls from the parser's tree to ours.
//!
//! In: a call of the parser's tree.
//! Out: our node for it, or an error: no such function, or no overload for these operands.

use cel::common::ast::{CallExpr, Expr, IdedExpr};

use super::lower::{Lowered, Lowering};
use super::overloads;
use super::pattern::Pattern;
use super::read::{ExpressionProblem, Language};
use super::times;
use super::tree::{Arithmetic, Binary, Node, Unary};
use crate::functions;
use crate::functions::{Function, Lookup};
use crate::macros;
use crate::static_types::Kind;

/// The parser's names of operators and functions.
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
const BINARY: [(&str, Binary); 17] = [
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
    ("_[?_]", Binary::OptionalIndex),
    ("contains", Binary::Contains),
    ("startsWith", Binary::StartsWith),
    ("endsWith", Binary::EndsWith),
];
/// Operands of a call, with the kind and position of each.
struct Operands {
    operands: Vec<Node>,
    kinds: Vec<Kind>,
    places: Vec<usize>,
}

impl<'a> Lowering<'a> {
    /// Lowers a call of a function or an operator.
    pub(super) fn call(&mut self, call: &'a CallExpr, depth: usize) -> Lowered {
        let name = call.func_name.as_str();
        let target = call.target.as_deref();
        let is_rich = self.language == Language::Kubernetes;
        if let Some(Expr::Ident(space)) = target.map(|target| &target.expr)
            && is_rich
            && self.resolve_variable(space).is_none()
            && functions::is_namespace(space)
        {
            self.places.word(space);
            return self.lower_function(Some(space), name, None, &call.args, depth);
        }
        if let (Some(of), true) = (target, is_rich)
            && let Some((how, variables)) = macros::macro_of(name, call.args.len())
        {
            return self.each(how, variables, name, of, &call.args, depth);
        }
        if !is_operator(name) {
            return self.lower_function(None, name, target, &call.args, depth);
        }
        if let ("_?._", [of, field]) = (name, &*call.args) {
            return self.optional_field(of, field, depth);
        }
        self.lower_operator(name, target, &call.args, depth)
    }

    /// Lowers an operator, or one of the functions that have a node of their own.
    fn lower_operator(
        &mut self,
        name: &str,
        target: Option<&'a IdedExpr>,
        args: &'a [IdedExpr],
        depth: usize,
    ) -> Lowered {
        let symbol = symbol(name);
        let mut at = match (symbol, target) {
            (None, None) => self.places.member("", name),
            (Some(symbol), _) if name.starts_with(['!', '-']) => self.places.advance_past(symbol),
            (_, _) => 0,
        };
        let Operands { operands, kinds, places } = self.operands(target, args, depth, |this| match symbol {
            None if target.is_some() => at = this.places.member(".", name) + 1,
            Some(symbol) if name.starts_with(['_', '@']) => at = this.places.peek(symbol),
            _ => {}
        });
        if let Some((_, decisive)) = LOGIC.iter().find(|(known, _)| *known == name) {
            for (kind, at) in kinds.iter().zip(places) {
                if !matches!(kind, Kind::Bool | Kind::Any) {
                    self.refuse_as(
                        at,
                        ExpressionProblem::Kind { wanted: "bool".to_owned(), found: kind.display_name() },
                    );
                }
            }
            return Lowered {
                expression: Node::Logic { decisive: *decisive, operands },
                kind: Kind::Bool,
                at,
            };
        }
        let count = operands.len();
        if self.language == Language::Kubernetes && !overloads::operator_accepts(name, &kinds) {
            let at = if symbol.is_none() { at + name.len() } else { at };
            return self.no_overload(name, target.is_some(), &kinds, at);
        }
        let unary = UNARY.iter().find(|(known, _)| *known == name);
        let binary = BINARY.iter().find(|(known, _)| *known == name);
        let (expression, kind) = match (unary, binary) {
            (Some((_, operator)), _) => match <[Node; 1]>::try_from(operands) {
                Ok([operand]) => (Node::One(*operator, Box::new(operand)), operator.result_kind(&kinds[0])),
                Err(_) => return self.refuse(at, format!("{name} takes 1 value, not {count}")),
            },
            (None, Some((_, operator))) => match <[Node; 2]>::try_from(operands) {
                Ok(operands) => {
                    (Node::Two(*operator, Box::new(operands)), operator.result_kind(&kinds[0], &kinds[1]))
                }
                Err(_) => return self.refuse(at, format!("{name} takes 2 values, not {count}")),
            },
            (None, None) => match <[Node; 3]>::try_from(operands) {
                Ok(parts) => (Node::Choice(Box::new(parts)), kinds[1].clone().unify(kinds[2].clone())),
                Err(_) => return self.refuse(at, "a choice has three parts"),
            },
        };
        Lowered { expression, kind, at }
    }

    /// Lowers the operands; those of `a.contains(b)` and `contains(a, b)` are the same. `go_on`
    /// runs after the first operand, to find the name of the function in the text.
    fn operands(
        &mut self,
        target: Option<&'a IdedExpr>,
        args: &'a [IdedExpr],
        depth: usize,
        go_on: impl FnOnce(&mut Self),
    ) -> Operands {
        let mut go_on = Some(go_on);
        let mut all = Operands { operands: Vec::new(), kinds: Vec::new(), places: Vec::new() };
        for node in target.into_iter().chain(args) {
            let operand = self.lower(node, depth);
            all.operands.push(operand.expression);
            all.kinds.push(operand.kind);
            all.places.push(operand.at);
            if let Some(go_on) = go_on.take() {
                go_on(self);
            }
        }
        all
    }

    /// Lowers a call of a function by its name and namespace, such as `sets.contains`.
    fn lower_function(
        &mut self,
        space: Option<&str>,
        name: &str,
        target: Option<&'a IdedExpr>,
        args: &'a [IdedExpr],
        depth: usize,
    ) -> Lowered {
        let mut at = if target.is_none() {
            self.places.member(if space.is_some() { "." } else { "" }, name)
        } else {
            0
        };
        let Operands { operands, kinds, places } = self.operands(target, args, depth, |this| {
            if target.is_some() {
                at = this.places.member(".", name);
                this.mixed = name == "format";
            }
        });
        self.mixed = false;
        if self.language == Language::Small {
            if name == "matches" {
                return self.refuse(
                    at + usize::from(target.is_some()),
                    "regular expressions are not supported here: use contains, startsWith or endsWith",
                );
            }
            return self
                .refuse_as(at + usize::from(target.is_some()), ExpressionProblem::Function(name.to_owned()));
        }
        let at = at + usize::from(target.is_some() || space.is_some());
        let full = space.map_or(name.to_owned(), |space| format!("{space}.{name}"));
        match functions::look_up(&full, target.is_some(), &kinds) {
            Lookup::Found(function, kind) => {
                let kind = functions::result_kind(function, &kinds).unwrap_or(kind);
                let argument = places.last().copied().unwrap_or(at);
                let expression = self.convert_constant(function, operands, argument);
                Lowered { expression, kind, at: at + name.len() }
            }
            Lookup::Elsewhere => self.refuse_as(at, ExpressionProblem::Unsupported(full)),
            Lookup::NoOverload => self.no_overload(&full, target.is_some(), &kinds, at + name.len()),
            Lookup::None => self.refuse_as(at + name.len(), ExpressionProblem::Function(full)),
        }
    }

    /// Converts a constant text now instead of in each evaluation, and reports an invalid one.
    fn convert_constant(&mut self, function: Function, mut operands: Vec<Node>, at: usize) -> Node {
        let (what, is_one) = match (function, operands.last()) {
            (Function::Matches, Some(Node::Text(pattern))) => match Pattern::new(pattern) {
                Some(pattern) => return Node::Matches(Box::new(operands.swap_remove(0)), pattern),
                None => ("matches", false),
            },
            (Function::Time, Some(Node::Text(text))) => ("timestamp", times::time(text).is_some()),
            (Function::Span, Some(Node::Text(text))) => ("duration", times::span(text).is_some()),
            (_, _) => return Node::Call(function, operands),
        };
        if !is_one {
            self.refuse(at, format!("invalid {what} argument"));
        }
        Node::Call(function, operands)
    }

    fn no_overload(&mut self, name: &str, on_target: bool, kinds: &[Kind], at: usize) -> Lowered {
        let names: Vec<String> = kinds.iter().map(Kind::display_name).collect();
        let given = match names.split_first() {
            Some((target, rest)) if on_target => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", names.join(", ")),
        };
        self.refuse_as(at, ExpressionProblem::Overload { name: name.to_owned(), given })
    }
}

/// True for operators and functions with a node of their own.
fn is_operator(name: &str) -> bool {
    name.starts_with(['_', '@', '!', '-'])
        || UNARY.iter().any(|(known, _)| *known == name)
        || BINARY.iter().any(|(known, _)| *known == name)
}

/// Symbol of an operator; `None` for a function.
fn symbol(name: &str) -> Option<&str> {
    match name {
        "_?_:_" => Some("?"),
        "_[_]" | "_[?_]" => Some("["),
        "@in" => Some("in"),
        _ if name.starts_with(['_', '@', '!', '-']) => Some(name.trim_matches('_')),
        _ => None,
    }
}
