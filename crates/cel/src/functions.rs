//! Functions that are called by name.
//!
//! In: a name and operands.
//! Out: the [`Function`] with this name, and its result. The table says if a function is written as
//! `a.f(b)` or as `f(a, b)`.

use std::borrow::Cow;
use std::rc::Rc;

use super::evaluate::{EvaluationError, NumberError, StepBudget};
use super::lists::{self, ListFunction, SetFunction};
use super::networks::{self, NetworkFunction};
use super::overloads;
use super::pattern::Pattern;
use super::times::{self, TimePart};
use super::urls::{self, UrlPart};
use super::value::CelValue;
use crate::conversions;
use crate::conversions::{ConversionTarget, QuantityFunction};
use crate::static_types::Kind;
use crate::strings;
use crate::strings::StringFunction;

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
    Part(TimePart),
    Matches,
    Find,
    FindAll,
    Edit(StringFunction),
    Set(SetFunction),
    List(ListFunction),
    OptionalOf,
    OptionalOfNonZero,
    OptionalNone,
    HasValue,
    Value,
    Or,
    OrValue,
    /// True if a text can be converted.
    Is(ConversionTarget),
    /// Converts a text.
    Make(ConversionTarget),
    Amount(QuantityFunction),
    Url(UrlPart),
    Net(NetworkFunction),
}

/// Signature of a function.
struct Signature {
    /// Name, with its namespace if it has one.
    name: &'static str,
    /// True for `a.f(b)`.
    on_target: bool,
    /// Operands, the target first, one letter each; see [`overloads::kind_for_letter`].
    /// Alternatives are separated by spaces.
    takes: &'static str,
    /// Letter of the result.
    result: char,
    function: Function,
}

const fn method_signature(
    name: &'static str,
    takes: &'static str,
    result: char,
    function: Function,
) -> Signature {
    Signature { name, on_target: true, takes, result, function }
}

const fn function_signature(
    name: &'static str,
    takes: &'static str,
    result: char,
    function: Function,
) -> Signature {
    Signature { name, on_target: false, takes, result, function }
}

#[rustfmt::skip]
const FORMS: &[Signature] = &[
    function_signature("bool",                "b s",       'b', Function::Bool),
    function_signature("bytes",               "y s",       'y', Function::Bytes),
    function_signature("double",              "d i u s",   'd', Function::Double),
    function_signature("dyn",                 "*",         '*', Function::Dyn),
    function_signature("timestamp",           "t s i",     't', Function::Time),
    function_signature("duration",            "p s i",     'p', Function::Span),
    function_signature("type",                "*",         '*', Function::TypeOf),
    function_signature("uint",                "u i d s",   'u', Function::Uint),
    method_signature("getFullYear",         "t ts",      'i', Function::Part(TimePart::Year)),
    method_signature("getMonth",            "t ts",      'i', Function::Part(TimePart::Month)),
    method_signature("getDayOfMonth",       "t ts",      'i', Function::Part(TimePart::DayOfMonth)),
    method_signature("getDate",             "t ts",      'i', Function::Part(TimePart::Date)),
    method_signature("getDayOfWeek",        "t ts",      'i', Function::Part(TimePart::DayOfWeek)),
    method_signature("getDayOfYear",        "t ts",      'i', Function::Part(TimePart::DayOfYear)),
    method_signature("getHours",            "t ts p",    'i', Function::Part(TimePart::Hours)),
    method_signature("getMinutes",          "t ts p",    'i', Function::Part(TimePart::Minutes)),
    method_signature("getSeconds",          "t ts p",    'i', Function::Part(TimePart::Seconds)),
    method_signature("getMilliseconds",     "t ts p",    'i', Function::Part(TimePart::Milliseconds)),
    method_signature("matches",             "ss",        'b', Function::Matches),
    function_signature("matches",             "ss",        'b', Function::Matches),
    method_signature("find",                "ss",        's', Function::Find),
    method_signature("findAll",             "ss ssi",    'S', Function::FindAll),
    method_signature("charAt",              "si",        's', Function::Edit(StringFunction::CharAt)),
    method_signature("join",                "S Ss",      's', Function::Edit(StringFunction::Join)),
    method_signature("lowerAscii",          "s",         's', Function::Edit(StringFunction::Lower)),
    method_signature("upperAscii",          "s",         's', Function::Edit(StringFunction::Upper)),
    method_signature("replace",             "sss sssi",  's', Function::Edit(StringFunction::Replace)),
    method_signature("split",               "ss ssi",    'S', Function::Edit(StringFunction::Split)),
    method_signature("substring",           "si sii",    's', Function::Edit(StringFunction::Substring)),
    method_signature("trim",                "s",         's', Function::Edit(StringFunction::Trim)),
    method_signature("format",              "sl",        's', Function::Edit(StringFunction::Format)),
    function_signature("strings.quote",       "s",         's', Function::Edit(StringFunction::Quote)),
    method_signature("indexOf",             "ss ssi l*", 'i', Function::List(ListFunction::First)),
    method_signature("lastIndexOf",         "ss ssi l*", 'i', Function::List(ListFunction::Last)),
    method_signature("isSorted",            "l",         'b', Function::List(ListFunction::IsSorted)),
    method_signature("sum",                 "l",         '*', Function::List(ListFunction::Sum)),
    method_signature("min",                 "l",         '*', Function::List(ListFunction::Min)),
    method_signature("max",                 "l",         '*', Function::List(ListFunction::Max)),
    method_signature("reverse",             "l",         '*', Function::List(ListFunction::Reverse)),
    method_signature("distinct",            "l",         '*', Function::List(ListFunction::Distinct)),
    method_signature("flatten",             "l li",      '*', Function::List(ListFunction::Flatten)),
    method_signature("slice",               "lii",       '*', Function::List(ListFunction::Slice)),
    method_signature("sort",                "l",         '*', Function::List(ListFunction::Sort)),
    function_signature("lists.range",         "i",         'I', Function::List(ListFunction::Range)),
    method_signature("first",               "l",         '*', Function::List(ListFunction::Head)),
    method_signature("last",                "l",         '*', Function::List(ListFunction::Tail)),
    function_signature("sets.contains",       "ll",        'b', Function::Set(SetFunction::Contains)),
    function_signature("sets.equivalent",     "ll",        'b', Function::Set(SetFunction::Equivalent)),
    function_signature("sets.intersects",     "ll",        'b', Function::Set(SetFunction::Intersects)),
    function_signature("optional.of",         "*",         '*', Function::OptionalOf),
    function_signature("optional.ofNonZeroValue", "*",     '*', Function::OptionalOfNonZero),
    function_signature("optional.none",       "",          '*', Function::OptionalNone),
    method_signature("hasValue",            "o",         'b', Function::HasValue),
    method_signature("value",               "o",         '*', Function::Value),
    method_signature("or",                  "oo",        '*', Function::Or),
    method_signature("orValue",             "o*",        '*', Function::OrValue),
    function_signature("isQuantity",          "s",         'b', Function::Is(ConversionTarget::Quantity)),
    function_signature("quantity",            "s",         'q', Function::Make(ConversionTarget::Quantity)),
    method_signature("add",                 "qq qi",     'q', Function::Amount(QuantityFunction::Add)),
    method_signature("sub",                 "qq qi",     'q', Function::Amount(QuantityFunction::Subtract)),
    method_signature("isLessThan",          "qq",        'b', Function::Amount(QuantityFunction::IsLess)),
    method_signature("isGreaterThan",       "qq",        'b', Function::Amount(QuantityFunction::IsGreater)),
    method_signature("compareTo",           "qq",        'i', Function::Amount(QuantityFunction::Compare)),
    function_signature("sign",                "q",         'i', Function::Amount(QuantityFunction::Sign)),
    method_signature("isInteger",           "q",         'b', Function::Amount(QuantityFunction::IsInteger)),
    method_signature("asInteger",           "q",         'i', Function::Amount(QuantityFunction::Integer)),
    method_signature("asApproximateFloat",  "q",         'd', Function::Amount(QuantityFunction::Float)),
    function_signature("isURL",               "s",         'b', Function::Is(ConversionTarget::Url)),
    function_signature("url",                 "s",         'r', Function::Make(ConversionTarget::Url)),
    method_signature("getScheme",           "r",         's', Function::Url(UrlPart::Scheme)),
    method_signature("getHost",             "r",         's', Function::Url(UrlPart::Host)),
    method_signature("getHostname",         "r",         's', Function::Url(UrlPart::Hostname)),
    method_signature("getPort",             "r",         's', Function::Url(UrlPart::Port)),
    method_signature("getEscapedPath",      "r",         's', Function::Url(UrlPart::Path)),
    method_signature("getQuery",            "r",         'M', Function::Url(UrlPart::Query)),
    function_signature("isIP",                "s",         'b', Function::Is(ConversionTarget::Ip)),
    function_signature("ip",                  "s",         'a', Function::Make(ConversionTarget::Ip)),
    method_signature("ip",                  "c",         'a', Function::Net(NetworkFunction::Ip)),
    function_signature("ip.isCanonical",      "s",         'b', Function::Net(NetworkFunction::IsCanonical)),
    method_signature("family",              "a",         'i', Function::Net(NetworkFunction::Family)),
    method_signature("isUnspecified",       "a",         'b', Function::Net(NetworkFunction::IsUnspecified)),
    method_signature("isLoopback",          "a",         'b', Function::Net(NetworkFunction::IsLoopback)),
    method_signature("isLinkLocalMulticast", "a",        'b', Function::Net(NetworkFunction::IsLinkLocalMulticast)),
    method_signature("isLinkLocalUnicast",  "a",         'b', Function::Net(NetworkFunction::IsLinkLocalUnicast)),
    method_signature("isGlobalUnicast",     "a",         'b', Function::Net(NetworkFunction::IsGlobalUnicast)),
    function_signature("isCIDR",              "s",         'b', Function::Is(ConversionTarget::Cidr)),
    function_signature("cidr",                "s",         'c', Function::Make(ConversionTarget::Cidr)),
    method_signature("containsIP",          "cs ca",     'b', Function::Net(NetworkFunction::ContainsIp)),
    method_signature("containsCIDR",        "cs cc",     'b', Function::Net(NetworkFunction::ContainsCidr)),
    method_signature("masked",              "c",         'c', Function::Net(NetworkFunction::Masked)),
    method_signature("prefixLength",        "c",         'i', Function::Net(NetworkFunction::PrefixLength)),
];

/// Further functions of the Kubernetes library, which are not implemented here.
const UNSUPPORTED_FUNCTIONS: [&str; 27] = [
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
pub(super) enum Lookup {
    /// A function, and the kind of its result.
    Found(Function, Kind),
    /// A function of the Kubernetes library that is not implemented.
    Elsewhere,
    /// A known function, but with no overload for these operands.
    NoOverload,
    /// An unknown name.
    None,
}

/// Looks up a function by name and operands.
pub(super) fn look_up(name: &str, on_target: bool, operands: &[Kind]) -> Lookup {
    let mut forms = FORMS.iter().filter(|form| form.name == name).peekable();
    let is_known = forms.peek().is_some();
    match forms.find(|form| form.on_target == on_target && overloads::fit(form.takes, operands)) {
        Some(form) => Lookup::Found(form.function, overloads::kind_for_letter(form.result)),
        None if UNSUPPORTED_FUNCTIONS.contains(&name) => Lookup::Elsewhere,
        None if is_known => Lookup::NoOverload,
        None => Lookup::None,
    }
}

/// True if some function has this namespace.
pub(super) fn is_namespace(name: &str) -> bool {
    let names = FORMS.iter().map(|form| form.name).chain(UNSUPPORTED_FUNCTIONS);
    names.filter_map(|known| known.split_once('.')).any(|(space, _)| space == name)
}

/// Kind of the result, if it depends on the operands.
pub(super) fn result_kind(function: Function, operands: &[Kind]) -> Option<Kind> {
    let first = operands.first()?;
    Some(match function {
        Function::List(look) => match look {
            ListFunction::First | ListFunction::Last | ListFunction::IsSorted => return None,
            ListFunction::Sum | ListFunction::Min | ListFunction::Max => first.element_kind(),
            ListFunction::Reverse | ListFunction::Distinct | ListFunction::Slice | ListFunction::Sort => {
                first.clone()
            }
            ListFunction::Head | ListFunction::Tail => Kind::Optional(first.element_kind().into()),
            ListFunction::Range => Kind::list(Kind::Int),
            ListFunction::Flatten => Kind::list(Kind::Any),
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

const NO_NUMBER: EvaluationError = EvaluationError::Number(NumberError::NoNumber);

/// Calls a function.
pub(super) fn call<'a>(
    function: Function,
    operands: Vec<CelValue<'a>>,
    meter: &mut StepBudget,
) -> Result<CelValue<'a>, EvaluationError> {
    let first = || operands.first().ok_or(EvaluationError::WrongType("a function"));
    let text = |at: usize| match operands.get(at) {
        Some(CelValue::Text(text)) => Ok(&**text),
        _ => Err(EvaluationError::WrongType("a text")),
    };
    Ok(match function {
        Function::Bool
        | Function::Bytes
        | Function::Double
        | Function::Dyn
        | Function::Uint
        | Function::TypeOf
        | Function::Time
        | Function::Span => convert(function, first()?)?,
        Function::Part(part) => times::part(part, first()?, operands.get(1))?,
        Function::Matches | Function::Find | Function::FindAll => {
            meter.spend_for_text(text(0)?.len() + text(1)?.len())?;
            let most = match operands.get(2) {
                Some(CelValue::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            let pattern = Pattern::new(text(1)?).ok_or(EvaluationError::WrongType("a pattern"))?;
            find_matches(function, &pattern, text(0)?, most, meter)?
        }
        Function::Edit(edit) => strings::edit(edit, &operands, meter)?,
        Function::Set(set) => lists::sets(set, &operands, meter)?,
        Function::List(look) => lists::look(look, operands, meter)?,
        Function::OptionalOf => CelValue::optional(Some(first()?.clone())),
        Function::OptionalOfNonZero => CelValue::optional(Some(first()?.clone()).filter(|it| !it.is_zero())),
        Function::OptionalNone => CelValue::optional(None),
        Function::Is(thing) => CelValue::Bool(conversions::read(thing, text(0)?).is_some()),
        Function::Make(thing) => conversions::read(thing, text(0)?).ok_or(NO_NUMBER)?,
        Function::Amount(amount) => conversions::amount(amount, first()?, operands.get(1))?,
        Function::Url(piece) => urls::piece(piece, first()?)?,
        Function::Net(net) => networks::net(net, first()?, operands.get(1))?,
        Function::HasValue | Function::Value | Function::Or | Function::OrValue => {
            return call_optional(function, operands);
        }
    })
}

/// Converts a value to another type.
fn convert<'a>(function: Function, value: &CelValue<'a>) -> Result<CelValue<'a>, EvaluationError> {
    Ok(match (function, value) {
        (Function::TypeOf, value) => CelValue::Type(value.type_name()),
        (Function::Double, value) => value.to_double()?,
        (Function::Uint, value) => value.to_uint()?,
        (Function::Bool, CelValue::Text(text)) => match &**text {
            "1" | "t" | "true" | "True" | "TRUE" => CelValue::Bool(true),
            "0" | "f" | "false" | "False" | "FALSE" => CelValue::Bool(false),
            _ => return Err(NO_NUMBER),
        },
        (Function::Bytes, CelValue::Text(text)) => CelValue::Bytes(text.as_bytes().into()),
        (Function::Time, CelValue::Text(text)) => CelValue::Time(times::time(text).ok_or(NO_NUMBER)?),
        (Function::Time, CelValue::Int(seconds)) => {
            CelValue::Time(times::from_unix_seconds(*seconds).ok_or(NO_NUMBER)?)
        }
        (Function::Span, CelValue::Text(text)) => CelValue::Span(times::span(text).ok_or(NO_NUMBER)?),
        (Function::Span, CelValue::Int(seconds)) => CelValue::Span(times::seconds(*seconds)),
        (Function::Dyn, value)
        | (Function::Bool, value @ CelValue::Bool(_))
        | (Function::Bytes, value @ CelValue::Bytes(_))
        | (Function::Time, value @ CelValue::Time(_))
        | (Function::Span, value @ CelValue::Span(_)) => value.clone(),
        (_, _) => return Err(EvaluationError::WrongType("a conversion")),
    })
}

/// Finds matches of a pattern in a text.
fn find_matches<'a>(
    function: Function,
    pattern: &Pattern,
    text: &str,
    most: usize,
    meter: &mut StepBudget,
) -> Result<CelValue<'a>, EvaluationError> {
    let owned = |found: &str| CelValue::Text(Cow::Owned(found.to_owned()));
    Ok(match function {
        Function::Matches => CelValue::Bool(pattern.is_match(text.as_bytes())),
        Function::Find => owned(pattern.all(text).next().unwrap_or_default()),
        _ => {
            let found: Vec<_> = pattern.all(text).take(most).map(owned).collect();
            meter.spend(found.len())?;
            CelValue::List(Rc::new(found))
        }
    })
}

fn call_optional(function: Function, operands: Vec<CelValue<'_>>) -> Result<CelValue<'_>, EvaluationError> {
    let mut operands = operands.into_iter();
    let (Some(CelValue::Optional(value)), other) = (operands.next(), operands.next()) else {
        return Err(EvaluationError::WrongType("an optional value"));
    };
    let inner = value.as_ref().map(|value| (**value).clone());
    Ok(match function {
        Function::HasValue => CelValue::Bool(value.is_some()),
        Function::OrValue => inner.or(other).ok_or(EvaluationError::WrongType("orValue"))?,
        Function::Or => match value {
            Some(value) => CelValue::Optional(Some(value)),
            None => other.ok_or(EvaluationError::WrongType("or"))?,
        },
        _ => inner.ok_or(EvaluationError::MissingField("optional.none() dereference".into()))?,
    })
}
