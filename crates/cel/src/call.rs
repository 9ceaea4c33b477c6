//! Functions that are called by name.
//!
//! In: a name and operands.
//! Out: the [`Function`] with this name, and its result. The table says if a function is written as
//! `a.f(b)` or as `f(a, b)`.

use std::borrow::Cow;
use std::rc::Rc;

use super::evaluate::{Fault, Meter, Sum};
use super::kind::Kind;
use super::lists::{self, Look, Set};
use super::networks::{self, Net};
use super::overloads;
use super::pattern::Pattern;
use super::texts::{self, Edit};
use super::things::{self, Amount, Thing};
use super::times::{self, Part};
use super::urls::{self, Piece};
use super::value::Val;

/// Function that an expression can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Bool,
    Bytes,
    Double,
    Dyn,
    Time,
    Span,
    TypeOf,
    Uint,
    Part(Part),
    Matches,
    Find,
    FindAll,
    Edit(Edit),
    Set(Set),
    List(Look),
    OptionalOf,
    OptionalOfNonZero,
    OptionalNone,
    HasValue,
    Value,
    Or,
    OrValue,
    /// True if a text can be converted.
    Is(Thing),
    /// Converts a text.
    Make(Thing),
    Amount(Amount),
    Url(Piece),
    Net(Net),
}

/// Signature of a function.
struct Form {
    /// Name, with its namespace if it has one.
    name: &'static str,
    /// True for `a.f(b)`.
    on_target: bool,
    /// Operands, the target first, one letter each; see [`overloads::kind_for_letter`].
    /// Alternatives are separated by spaces.
    takes: &'static str,
    /// Letter of the result.
    gives: char,
    function: Function,
}

const fn on(name: &'static str, takes: &'static str, gives: char, function: Function) -> Form {
    Form { name, on_target: true, takes, gives, function }
}

const fn of(name: &'static str, takes: &'static str, gives: char, function: Function) -> Form {
    Form { name, on_target: false, takes, gives, function }
}

#[rustfmt::skip]
const FORMS: &[Form] = &[
    of("bool",                "b s",       'b', Function::Bool),
    of("bytes",               "y s",       'y', Function::Bytes),
    of("double",              "d i u s",   'd', Function::Double),
    of("dyn",                 "*",         '*', Function::Dyn),
    of("timestamp",           "t s i",     't', Function::Time),
    of("duration",            "p s i",     'p', Function::Span),
    of("type",                "*",         '*', Function::TypeOf),
    of("uint",                "u i d s",   'u', Function::Uint),
    on("getFullYear",         "t ts",      'i', Function::Part(Part::Year)),
    on("getMonth",            "t ts",      'i', Function::Part(Part::Month)),
    on("getDayOfMonth",       "t ts",      'i', Function::Part(Part::DayOfMonth)),
    on("getDate",             "t ts",      'i', Function::Part(Part::Date)),
    on("getDayOfWeek",        "t ts",      'i', Function::Part(Part::DayOfWeek)),
    on("getDayOfYear",        "t ts",      'i', Function::Part(Part::DayOfYear)),
    on("getHours",            "t ts p",    'i', Function::Part(Part::Hours)),
    on("getMinutes",          "t ts p",    'i', Function::Part(Part::Minutes)),
    on("getSeconds",          "t ts p",    'i', Function::Part(Part::Seconds)),
    on("getMilliseconds",     "t ts p",    'i', Function::Part(Part::Milliseconds)),
    on("matches",             "ss",        'b', Function::Matches),
    of("matches",             "ss",        'b', Function::Matches),
    on("find",                "ss",        's', Function::Find),
    on("findAll",             "ss ssi",    'S', Function::FindAll),
    on("charAt",              "si",        's', Function::Edit(Edit::CharAt)),
    on("join",                "S Ss",      's', Function::Edit(Edit::Join)),
    on("lowerAscii",          "s",         's', Function::Edit(Edit::Lower)),
    on("upperAscii",          "s",         's', Function::Edit(Edit::Upper)),
    on("replace",             "sss sssi",  's', Function::Edit(Edit::Replace)),
    on("split",               "ss ssi",    'S', Function::Edit(Edit::Split)),
    on("substring",           "si sii",    's', Function::Edit(Edit::Substring)),
    on("trim",                "s",         's', Function::Edit(Edit::Trim)),
    on("format",              "sl",        's', Function::Edit(Edit::Format)),
    of("strings.quote",       "s",         's', Function::Edit(Edit::Quote)),
    on("indexOf",             "ss ssi l*", 'i', Function::List(Look::First)),
    on("lastIndexOf",         "ss ssi l*", 'i', Function::List(Look::Last)),
    on("isSorted",            "l",         'b', Function::List(Look::IsSorted)),
    on("sum",                 "l",         '*', Function::List(Look::Sum)),
    on("min",                 "l",         '*', Function::List(Look::Min)),
    on("max",                 "l",         '*', Function::List(Look::Max)),
    on("reverse",             "l",         '*', Function::List(Look::Reverse)),
    on("distinct",            "l",         '*', Function::List(Look::Distinct)),
    on("flatten",             "l li",      '*', Function::List(Look::Flatten)),
    on("slice",               "lii",       '*', Function::List(Look::Slice)),
    on("sort",                "l",         '*', Function::List(Look::Sort)),
    of("lists.range",         "i",         'I', Function::List(Look::Range)),
    on("first",               "l",         '*', Function::List(Look::Head)),
    on("last",                "l",         '*', Function::List(Look::Tail)),
    of("sets.contains",       "ll",        'b', Function::Set(Set::Contains)),
    of("sets.equivalent",     "ll",        'b', Function::Set(Set::Equivalent)),
    of("sets.intersects",     "ll",        'b', Function::Set(Set::Intersects)),
    of("optional.of",         "*",         '*', Function::OptionalOf),
    of("optional.ofNonZeroValue", "*",     '*', Function::OptionalOfNonZero),
    of("optional.none",       "",          '*', Function::OptionalNone),
    on("hasValue",            "o",         'b', Function::HasValue),
    on("value",               "o",         '*', Function::Value),
    on("or",                  "oo",        '*', Function::Or),
    on("orValue",             "o*",        '*', Function::OrValue),
    of("isQuantity",          "s",         'b', Function::Is(Thing::Quantity)),
    of("quantity",            "s",         'q', Function::Make(Thing::Quantity)),
    on("add",                 "qq qi",     'q', Function::Amount(Amount::Add)),
    on("sub",                 "qq qi",     'q', Function::Amount(Amount::Subtract)),
    on("isLessThan",          "qq",        'b', Function::Amount(Amount::IsLess)),
    on("isGreaterThan",       "qq",        'b', Function::Amount(Amount::IsGreater)),
    on("compareTo",           "qq",        'i', Function::Amount(Amount::Compare)),
    of("sign",                "q",         'i', Function::Amount(Amount::Sign)),
    on("isInteger",           "q",         'b', Function::Amount(Amount::IsInteger)),
    on("asInteger",           "q",         'i', Function::Amount(Amount::Integer)),
    on("asApproximateFloat",  "q",         'd', Function::Amount(Amount::Float)),
    of("isURL",               "s",         'b', Function::Is(Thing::Url)),
    of("url",                 "s",         'r', Function::Make(Thing::Url)),
    on("getScheme",           "r",         's', Function::Url(Piece::Scheme)),
    on("getHost",             "r",         's', Function::Url(Piece::Host)),
    on("getHostname",         "r",         's', Function::Url(Piece::Hostname)),
    on("getPort",             "r",         's', Function::Url(Piece::Port)),
    on("getEscapedPath",      "r",         's', Function::Url(Piece::Path)),
    on("getQuery",            "r",         'M', Function::Url(Piece::Query)),
    of("isIP",                "s",         'b', Function::Is(Thing::Ip)),
    of("ip",                  "s",         'a', Function::Make(Thing::Ip)),
    on("ip",                  "c",         'a', Function::Net(Net::Ip)),
    of("ip.isCanonical",      "s",         'b', Function::Net(Net::IsCanonical)),
    on("family",              "a",         'i', Function::Net(Net::Family)),
    on("isUnspecified",       "a",         'b', Function::Net(Net::IsUnspecified)),
    on("isLoopback",          "a",         'b', Function::Net(Net::IsLoopback)),
    on("isLinkLocalMulticast", "a",        'b', Function::Net(Net::IsLinkLocalMulticast)),
    on("isLinkLocalUnicast",  "a",         'b', Function::Net(Net::IsLinkLocalUnicast)),
    on("isGlobalUnicast",     "a",         'b', Function::Net(Net::IsGlobalUnicast)),
    of("isCIDR",              "s",         'b', Function::Is(Thing::Cidr)),
    of("cidr",                "s",         'c', Function::Make(Thing::Cidr)),
    on("containsIP",          "cs ca",     'b', Function::Net(Net::ContainsIp)),
    on("containsCIDR",        "cs cc",     'b', Function::Net(Net::ContainsCidr)),
    on("masked",              "c",         'c', Function::Net(Net::Masked)),
    on("prefixLength",        "c",         'i', Function::Net(Net::PrefixLength)),
];

/// Further functions of the Kubernetes library, which are not implemented here.
const ELSEWHERE: [&str; 27] = [
    "semver",
    "isSemver",
    "major",
    "minor",
    "patch",
    "validate",
    "format.named",
    "format.dns1123Label",
    "format.dns1123Subdomain",
    "format.dns1035Label",
    "format.qualifiedName",
    "format.dns1123LabelPrefix",
    "format.dns1123SubdomainPrefix",
    "format.dns1035LabelPrefix",
    "format.labelValue",
    "format.uri",
    "format.uuid",
    "format.byte",
    "format.date",
    "format.datetime",
    "authorizer",
    "serviceAccount",
    "resource",
    "group",
    "path",
    "check",
    "allowed",
];

/// Result of looking up a function.
pub(super) enum Named {
    /// A function, and the kind of its result.
    Is(Function, Kind),
    /// A function of the Kubernetes library that is not implemented.
    Elsewhere,
    /// A known function, but with no overload for these operands.
    Otherwise,
    /// An unknown name.
    None,
}

/// Looks up a function by name and operands.
pub(super) fn named(name: &str, on_target: bool, operands: &[Kind]) -> Named {
    let mut forms = FORMS.iter().filter(|form| form.name == name).peekable();
    let is_known = forms.peek().is_some();
    match forms.find(|form| form.on_target == on_target && overloads::fit(form.takes, operands)) {
        Some(form) => Named::Is(form.function, overloads::kind(form.gives)),
        None if ELSEWHERE.contains(&name) => Named::Elsewhere,
        None if is_known => Named::Otherwise,
        None => Named::None,
    }
}

/// True if some function has this namespace.
pub(super) fn is_space(name: &str) -> bool {
    let names = FORMS.iter().map(|form| form.name).chain(ELSEWHERE);
    names.filter_map(|known| known.split_once('.')).any(|(space, _)| space == name)
}

/// Kind of the result, if it depends on the operands.
pub(super) fn kind_of(function: Function, operands: &[Kind]) -> Option<Kind> {
    let first = operands.first()?;
    Some(match function {
        Function::List(look) => match look {
            Look::First | Look::Last | Look::IsSorted => return None,
            Look::Sum | Look::Min | Look::Max => first.entry(),
            Look::Reverse | Look::Distinct | Look::Slice | Look::Sort => first.clone(),
            Look::Head | Look::Tail => Kind::Optional(first.entry().into()),
            Look::Range => Kind::list(Kind::Int),
            Look::Flatten => Kind::list(Kind::Any),
        },
        Function::OptionalOf | Function::OptionalOfNonZero => Kind::Optional(first.clone().into()),
        Function::Or => first.clone(),
        Function::Value | Function::OrValue => match first {
            Kind::Optional(inner) => (**inner).clone(),
            _ => Kind::Any,
        },
        _ => return None,
    })
}

const NO_NUMBER: Fault = Fault::Number(Sum::NoNumber);

/// Calls a function.
pub(super) fn call<'a>(
    function: Function,
    operands: Vec<Val<'a>>,
    meter: &mut Meter,
) -> Result<Val<'a>, Fault> {
    let first = || operands.first().ok_or(Fault::Kinds("a function"));
    let text = |at: usize| match operands.get(at) {
        Some(Val::Text(text)) => Ok(&**text),
        _ => Err(Fault::Kinds("a text")),
    };
    Ok(match function {
        Function::Bool
        | Function::Bytes
        | Function::Double
        | Function::Dyn
        | Function::Uint
        | Function::TypeOf
        | Function::Time
        | Function::Span => converted(function, first()?)?,
        Function::Part(part) => times::part(part, first()?, operands.get(1))?,
        Function::Matches | Function::Find | Function::FindAll => {
            meter.pay_text(text(0)?.len() + text(1)?.len())?;
            let most = match operands.get(2) {
                Some(Val::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            let pattern = Pattern::new(text(1)?).ok_or(Fault::Kinds("a pattern"))?;
            searched(function, &pattern, text(0)?, most, meter)?
        }
        Function::Edit(edit) => texts::edit(edit, &operands, meter)?,
        Function::Set(set) => lists::sets(set, &operands, meter)?,
        Function::List(look) => lists::look(look, operands, meter)?,
        Function::OptionalOf => Val::optional(Some(first()?.clone())),
        Function::OptionalOfNonZero => Val::optional(Some(first()?.clone()).filter(|it| !it.is_zero())),
        Function::OptionalNone => Val::optional(None),
        Function::Is(thing) => Val::Bool(things::read(thing, text(0)?).is_some()),
        Function::Make(thing) => things::read(thing, text(0)?).ok_or(NO_NUMBER)?,
        Function::Amount(amount) => things::amount(amount, first()?, operands.get(1))?,
        Function::Url(piece) => urls::piece(piece, first()?)?,
        Function::Net(net) => networks::net(net, first()?, operands.get(1))?,
        Function::HasValue | Function::Value | Function::Or | Function::OrValue => {
            return of_optional(function, operands);
        }
    })
}

/// Converts a value to another type.
fn converted<'a>(function: Function, value: &Val<'a>) -> Result<Val<'a>, Fault> {
    Ok(match (function, value) {
        (Function::TypeOf, value) => Val::Type(value.type_name()),
        (Function::Double, value) => value.to_double()?,
        (Function::Uint, value) => value.to_uint()?,
        (Function::Bool, Val::Text(text)) => match &**text {
            "1" | "t" | "true" | "True" | "TRUE" => Val::Bool(true),
            "0" | "f" | "false" | "False" | "FALSE" => Val::Bool(false),
            _ => return Err(NO_NUMBER),
        },
        (Function::Bytes, Val::Text(text)) => Val::Bytes(text.as_bytes().into()),
        (Function::Time, Val::Text(text)) => Val::Time(times::time(text).ok_or(NO_NUMBER)?),
        (Function::Time, Val::Int(seconds)) => Val::Time(times::at(*seconds).ok_or(NO_NUMBER)?),
        (Function::Span, Val::Text(text)) => Val::Span(times::span(text).ok_or(NO_NUMBER)?),
        (Function::Span, Val::Int(seconds)) => Val::Span(times::seconds(*seconds)),
        (Function::Dyn, value)
        | (Function::Bool, value @ Val::Bool(_))
        | (Function::Bytes, value @ Val::Bytes(_))
        | (Function::Time, value @ Val::Time(_))
        | (Function::Span, value @ Val::Span(_)) => value.clone(),
        (_, _) => return Err(Fault::Kinds("a conversion")),
    })
}

/// Finds matches of a pattern in a text.
fn searched<'a>(
    function: Function,
    pattern: &Pattern,
    text: &str,
    most: usize,
    meter: &mut Meter,
) -> Result<Val<'a>, Fault> {
    let owned = |found: &str| Val::Text(Cow::Owned(found.to_owned()));
    Ok(match function {
        Function::Matches => Val::Bool(pattern.is_match(text.as_bytes())),
        Function::Find => owned(pattern.all(text).next().unwrap_or_default()),
        _ => {
            let found: Vec<_> = pattern.all(text).take(most).map(owned).collect();
            meter.pay(found.len())?;
            Val::Made(Rc::new(found))
        }
    })
}

fn of_optional(function: Function, operands: Vec<Val<'_>>) -> Result<Val<'_>, Fault> {
    let mut operands = operands.into_iter();
    let (Some(Val::Optional(value)), other) = (operands.next(), operands.next()) else {
        return Err(Fault::Kinds("an optional value"));
    };
    let inner = value.as_ref().map(|value| (**value).clone());
    Ok(match function {
        Function::HasValue => Val::Bool(value.is_some()),
        Function::OrValue => inner.or(other).ok_or(Fault::Kinds("orValue"))?,
        Function::Or => match value {
            Some(value) => Val::Optional(Some(value)),
            None => other.ok_or(Fault::Kinds("or"))?,
        },
        _ => inner.ok_or(Fault::Missing("optional.none() dereference".into()))?,
    })
}
