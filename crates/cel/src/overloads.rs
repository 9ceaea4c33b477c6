//! Overloads of operators and functions.
//!
//! In: letters for the accepted kinds, and the kinds of the operands.
//! Out: if they fit. An operand of unknown kind fits everywhere: the evaluation checks its value.

use crate::static_types::Kind;

/// Overloads of the operators that do not accept all kinds; functions have their own.
#[rustfmt::skip]
const OPERATORS: [(&str, &str); 22] = [
    ("!_",         "b"),
    ("-_",         "i d"),
    ("size",       "s y l m"),
    ("int",        "i u d s t"),
    ("string",     "s i u d b y t p a c"),
    ("contains",   "ss"),
    ("startsWith", "ss"),
    ("endsWith",   "ss"),
    ("_?_:_",      "b**"),
    ("_+_",        "ii uu dd ss yy ll pp tp pt"),
    ("_-_",        "ii uu dd pp tp tt"),
    ("_*_",        "ii uu dd"),
    ("_/_",        "ii uu dd"),
    ("_%_",        "ii uu"),
    ("_<_",        ORDERED),
    ("_<=_",       ORDERED),
    ("_>_",        ORDERED),
    ("_>=_",       ORDERED),
    ("_[_]",       "li ms oi os"),
    ("_[?_]",      "li ms oi os"),
    ("@in",        "*l *m"),
    ("_?._",       "**"),
];
const ORDERED: &str = "ii iu id ui uu ud di du dd ss yy bb tt pp";

/// True if an operator accepts these operands.
pub(super) fn operator_accepts(name: &str, operands: &[Kind]) -> bool {
    match (name, operands) {
        ("_==_" | "_!=_", [left, right]) => may_be_equal(left, right),
        ("@in", [item, Kind::List(all)]) => may_be_equal(item, &all.items),
        ("_?_:_", [Kind::Bool | Kind::Any, yes, no]) => may_be_equal(yes, no),
        _ => match OPERATORS.iter().find(|(known, _)| *known == name) {
            Some((_, takes)) => fit(takes, operands),
            None => true,
        },
    }
}

/// True if one of the alternatives fits.
pub(super) fn fit(takes: &str, operands: &[Kind]) -> bool {
    takes.split(' ').any(|way| {
        way.chars().count() == operands.len()
            && way.chars().zip(operands).all(|(letter, kind)| is(letter, kind))
    })
}

/// Kind for a letter.
pub(super) fn kind_for_letter(letter: char) -> Kind {
    match letter {
        'b' => Kind::Bool,
        'i' => Kind::Int,
        'd' => Kind::Double,
        's' => Kind::Text,
        'y' => Kind::Bytes,
        't' => Kind::Time,
        'p' => Kind::Span,
        'u' => Kind::Other("uint"),
        'q' => Kind::Other("kubernetes.Quantity"),
        'r' => Kind::Other("kubernetes.URL"),
        'a' => Kind::Other("net.IP"),
        'c' => Kind::Other("net.CIDR"),
        'S' => Kind::list(Kind::Text),
        'I' => Kind::list(Kind::Int),
        'M' => Kind::Map(Kind::list(Kind::Text).into()),
        _ => Kind::Any,
    }
}

fn is(letter: char, given: &Kind) -> bool {
    match (letter, given) {
        ('*', _) | (_, Kind::Any) => true,
        ('l', given) => matches!(given, Kind::List(_)),
        ('m', given) => matches!(given, Kind::Map(_)),
        ('o', given) => matches!(given, Kind::Optional(_)),
        (letter, given) => may_be_equal(&kind_for_letter(letter), given),
    }
}

/// True if values of these kinds may be equal.
pub(super) fn may_be_equal(one: &Kind, other: &Kind) -> bool {
    let is_single = |kind: &Kind| {
        matches!(
            kind,
            Kind::Bool | Kind::Int | Kind::Double | Kind::Text | Kind::Bytes | Kind::List(_) | Kind::Map(_)
        )
    };
    match (one, other) {
        (Kind::Any, _) | (_, Kind::Any) => true,
        (Kind::List(one), Kind::List(other)) => may_be_equal(&one.items, &other.items),
        (Kind::Map(one), Kind::Map(other)) | (Kind::Optional(one), Kind::Optional(other)) => {
            may_be_equal(one, other)
        }
        (Kind::Fields(one), Kind::Fields(other)) => one == other,
        (Kind::Other("null"), kind) | (kind, Kind::Other("null")) => !is_single(kind),
        (one, other) => one == other,
    }
}
