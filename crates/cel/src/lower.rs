//! Lowers the parser's tree to ours, in which every name is resolved.
//!
//! In: the tree that the crate `cel` parses, and the variables.
//! Out: a [`Node`] and its [`Kind`], if it is known; or all errors. The parser's tree has no
//! positions. Its parts come in the order of the text, so each is searched in the text behind the
//! previous one (`spans.rs`).

use cel::common::ast::{
    ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
};

use super::overloads;
use super::read::{ExpressionError, ExpressionProblem, Language, MAX_NODES, Variable};
use super::tree::{Fold, Node};
use crate::macros;
use crate::macros::MacroCall;
use crate::spans::SpanFinder;
use crate::static_types::Kind;

/// Maximal depth of the tree. One macro such as `exists` takes a few levels.
const MAX_DEPTH: usize = 128;

/// Types that expressions can name.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "uint", "string", "list", "map", "null_type", "type"];

/// A lowered node, the kind of its value, and its position in the text.
pub(super) struct Lowered {
    pub(super) expression: Node,
    pub(super) kind: Kind,
    pub(super) at: usize,
}

/// State of the traversal.
pub(super) struct Lowering<'a> {
    pub(super) places: SpanFinder<'a>,
    pub(super) language: Language,
    variables: &'a [Variable],
    /// Variables of the enclosing macros, and their kinds.
    pub(super) scope: Vec<(&'a str, Kind)>,
    nodes: usize,
    /// True inside of arguments of `format`: their list may mix kinds.
    pub(super) mixed: bool,
    pub(super) problems: Vec<ExpressionError>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(text: &'a str, language: Language, variables: &'a [Variable]) -> Self {
        let places = SpanFinder::new(text);
        Self { places, language, variables, scope: Vec::new(), nodes: 0, mixed: false, problems: Vec::new() }
    }

    /// Lowers a node and everything below it.
    pub(super) fn lower(&mut self, node: &'a IdedExpr, depth: usize) -> Lowered {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return self.refuse(0, "the expression is too large");
        }
        let depth = depth + 1;
        match &node.expr {
            Expr::Ident(name) => self.variable(name),
            Expr::Literal(literal) => self.literal(literal),
            Expr::Select(select) => self.select(select, depth),
            Expr::Call(call) => self.call(call, depth),
            Expr::Comprehension(fold) => self.fold(fold, depth),
            Expr::List(list) => self.list(list, depth),
            Expr::Map(map) if self.language == Language::Kubernetes => self.map(map, depth),
            Expr::Map(_) | Expr::Struct(_) => {
                let at = self.places.advance_past("{");
                self.refuse(at, "map literals are not supported")
            }
            Expr::Unspecified => self.refuse(0, "it is not an expression"),
        }
    }

    fn found(name: &str) -> impl Fn(&(&str, Kind)) -> bool {
        move |(local, _)| *local == name
    }

    /// Resolves the name of a variable.
    pub(super) fn resolve_variable(&self, name: &str) -> Option<(Node, Kind)> {
        if let Some(place) = self.scope.iter().rposition(Self::found(name)) {
            return Some((Node::Local(place), self.scope[place].1.clone()));
        }
        if let Some(place) = self.variables.iter().position(|variable| variable.name == name) {
            return Some((Node::Variable(place), self.variables[place].kind.clone()));
        }
        let known = TYPES.iter().find(|known| **known == name && self.language == Language::Kubernetes)?;
        Some((Node::Type(known), Kind::Any))
    }

    fn variable(&mut self, name: &str) -> Lowered {
        let at = self.places.word(name);
        match self.resolve_variable(name) {
            Some((expression, kind)) => Lowered { expression, kind, at },
            None => {
                let others: Vec<_> = self.variables.iter().map(|it| format!("{:?}", it.name)).collect();
                let others = others.join(", ");
                self.refuse_as(at, ExpressionProblem::Variable { name: name.to_owned(), others })
            }
        }
    }

    fn literal(&mut self, literal: &LiteralValue) -> Lowered {
        let at = self.places.literal();
        let (expression, kind) = match literal {
            LiteralValue::Null => (Node::Null, Kind::Other("null")),
            LiteralValue::Boolean(value) => (Node::Bool(**value), Kind::Bool),
            LiteralValue::Int(value) => (Node::Int(**value), Kind::Int),
            LiteralValue::UInt(value) => (Node::Uint(**value), Kind::Other("uint")),
            LiteralValue::Double(value) => (Node::Double(**value), Kind::Double),
            LiteralValue::String(text) => (Node::Text(text.inner().into()), Kind::Text),
            LiteralValue::Bytes(bytes) if self.language == Language::Kubernetes => {
                (Node::Bytes(bytes.inner().into()), Kind::Bytes)
            }
            LiteralValue::Bytes(_) => return self.refuse(at, "bytes literals are not supported"),
        };
        Lowered { expression, kind, at }
    }

    fn list(&mut self, list: &'a ListExpr, depth: usize) -> Lowered {
        // A macro creates lists that are not in the text.
        let at = self.places.peek("[");
        if !list.optional_indices.is_empty() {
            return self.refuse(at, "optional list items are not supported");
        }
        let (mut items, mut kind) = (Vec::with_capacity(list.elements.len()), None);
        for item in &list.elements {
            let item = self.lower(item, depth);
            items.push(item.expression);
            kind = Some(self.require_one_kind(kind, item.kind, item.at));
        }
        Lowered { expression: Node::List(items), kind: Kind::list(kind.unwrap_or(Kind::Any)), at }
    }

    /// Requires that the items of a list, or the values of a map, have one kind.
    fn require_one_kind(&mut self, known: Option<Kind>, kind: Kind, at: usize) -> Kind {
        match known {
            None => kind,
            Some(known) if self.mixed || self.language == Language::Small => known.unify(kind),
            Some(known) => {
                if !overloads::may_be_equal(&known, &kind) {
                    self.refuse_as(
                        at,
                        ExpressionProblem::Kind { wanted: known.display_name(), found: kind.display_name() },
                    );
                }
                known.unify(kind)
            }
        }
    }

    fn map(&mut self, map: &'a MapExpr, depth: usize) -> Lowered {
        let at = self.places.advance_past("{");
        let (mut entries, mut kind) = (Vec::with_capacity(map.entries.len()), None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return self.refuse(at, "it is not a map") };
            if entry.optional {
                return self.refuse(at, "optional map entries are not supported");
            }
            let (key, value) = (self.lower(&entry.key, depth), self.lower(&entry.value, depth));
            entries.push([key.expression, value.expression]);
            kind = Some(self.require_one_kind(kind, value.kind, value.at));
        }
        Lowered { expression: Node::Map(entries), kind: Kind::Map(kind.unwrap_or(Kind::Any).into()), at }
    }

    fn select(&mut self, select: &'a SelectExpr, depth: usize) -> Lowered {
        if let Some(name) = well_known(select) {
            return Lowered {
                expression: Node::Type(name),
                kind: Kind::Any,
                at: self.places.advance_past(name),
            };
        }
        let has = select.test.then(|| self.places.advance_past("has") + "has".len());
        let of = self.lower(&select.operand, depth);
        let at = self.places.member(".", &select.field);
        let kind = self.field(&of.kind, &select.field, has.unwrap_or(at));
        let (of, name) = (Box::new(of.expression), select.field.as_str().into());
        match has {
            Some(at) => Lowered { expression: Node::Has { of, name }, kind: Kind::Bool, at },
            None => Lowered { expression: Node::Field { of, name, optional: false }, kind, at },
        }
    }

    /// Kind of a field.
    fn field(&mut self, of: &Kind, name: &str, at: usize) -> Kind {
        let problem = match of {
            Kind::Any => return Kind::Any,
            Kind::Map(values) => return (**values).clone(),
            Kind::Fields(fields) => match fields.get(name) {
                Some(known) => return known.kind.clone(),
                None => ExpressionProblem::Field(name.to_owned()),
            },
            Kind::Optional(inner) => return Kind::Optional(self.field(inner, name, at).into()),
            Kind::List(_)
            | Kind::Bool
            | Kind::Int
            | Kind::Double
            | Kind::Text
            | Kind::Bytes
            | Kind::Time
            | Kind::Span
            | Kind::Other(_) => ExpressionProblem::Other(format!(
                "type '{}' does not support field selection",
                of.display_name()
            )),
        };
        self.refuse_as(at, problem).kind
    }

    pub(super) fn optional_field(&mut self, of: &'a IdedExpr, name: &'a IdedExpr, depth: usize) -> Lowered {
        let Expr::Literal(LiteralValue::String(name)) = &name.expr else {
            return self.refuse(0, "it is not a field");
        };
        let of = self.lower(of, depth);
        let at = self.places.member(".?", name.inner());
        let kind = match self.field(&of.kind, name.inner(), at) {
            kind @ Kind::Optional(_) => kind,
            kind => Kind::Optional(kind.into()),
        };
        let (of, name) = (Box::new(of.expression), name.inner().into());
        Lowered { expression: Node::Field { of, name, optional: true }, kind, at }
    }

    pub(super) fn each(
        &mut self,
        how: macros::Macro,
        variables: usize,
        name: &str,
        of: &'a IdedExpr,
        args: &'a [IdedExpr],
        depth: usize,
    ) -> Lowered {
        let range = self.lower(of, depth);
        let at = self.places.member(".", name);
        let kinds = how.variables(&range.kind);
        let before = self.scope.len();
        for (variable, kind) in args.iter().zip(kinds).take(variables) {
            let Expr::Ident(variable) = &variable.expr else {
                self.scope.truncate(before);
                return self.refuse(at, "the variable of a macro must be a name");
            };
            self.places.word(variable);
            self.scope.push((variable, kind));
        }
        let (mut parts, mut kind) = (Vec::new(), Kind::Any);
        for part in args.iter().skip(variables) {
            let part = self.lower(part, depth);
            parts.push(part.expression);
            kind = part.kind;
        }
        self.scope.truncate(before);
        let kind = how.result_kind(&range.kind, kind);
        let each = MacroCall { how, variables, range: range.expression, parts };
        Lowered { expression: Node::Each(Box::new(each)), kind, at }
    }

    fn fold(&mut self, fold: &'a ComprehensionExpr, depth: usize) -> Lowered {
        let range = self.lower(&fold.iter_range, depth);
        let at = self.places.word(&fold.iter_var);
        if self.language == Language::Small && self.variables.iter().any(|it| it.name == fold.iter_var) {
            return self.refuse(at, format!("the variable of a macro cannot be named {:?}", fold.iter_var));
        }
        let here = self.places.position();
        let start = self.lower(&fold.accu_init, depth);
        self.scope.extend([
            (fold.accu_var.as_str(), start.kind.clone()),
            (fold.iter_var.as_str(), range.kind.loop_variable_kind()),
        ]);
        let go_on = self.lower(&fold.loop_cond, depth);
        self.places.reset(here);
        let step = self.lower(&fold.loop_step, depth);
        let end = self.places.position();
        self.scope.truncate(self.scope.len().saturating_sub(2));
        self.scope.push((fold.accu_var.as_str(), start.kind.unify(step.kind)));
        let result = self.lower(&fold.result, depth);
        self.scope.pop();
        self.places.reset(end);
        let fold = Fold {
            range: range.expression,
            start: start.expression,
            go_on: go_on.expression,
            step: step.expression,
            result: result.expression,
        };
        Lowered { expression: Node::Fold(Box::new(fold)), kind: result.kind, at }
    }

    pub(super) fn refuse(&mut self, at: usize, problem: impl Into<String>) -> Lowered {
        self.refuse_as(at, ExpressionProblem::Other(problem.into()))
    }

    /// Records an error and returns a placeholder, so that the rest is checked as well.
    pub(super) fn refuse_as(&mut self, at: usize, problem: ExpressionProblem) -> Lowered {
        self.problems.push(ExpressionError { offset: at, problem });
        Lowered { expression: Node::Null, kind: Kind::Any, at }
    }
}

/// Full names of the timestamp and duration types.
fn well_known(select: &SelectExpr) -> Option<&'static str> {
    let Expr::Select(protobuf) = &select.operand.expr else { return None };
    let Expr::Ident(google) = &protobuf.operand.expr else { return None };
    match (google.as_str(), protobuf.field.as_str(), select.field.as_str()) {
        ("google", "protobuf", "Timestamp") => Some("google.protobuf.Timestamp"),
        ("google", "protobuf", "Duration") => Some("google.protobuf.Duration"),
        _ => None,
    }
}
