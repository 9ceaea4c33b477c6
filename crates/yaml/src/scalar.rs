//! Resolves scalars to values.
//!
//! In: a scalar's text, tag and style. Out: a JSON value, or its text as a key. The rules are those
//! of the two YAML readers that Kubernetes users meet: kubectl reads YAML 1.1, with old octals and
//! `yes`; Kustomize reads a newer dialect, with dates and without `yes`. Numbers are returned as
//! the API server stores them: a 64-bit integer if one fits, else a float.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Number, Value};

use super::Dialect;
use super::error::ErrorKind;
use super::parser::{Scalar, Style};
use super::timestamp;

/// Bound of the whole floats that fit a signed 64-bit integer.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Resolved type of a plain scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Resolved {
    /// Text.
    Text,
    /// `null` and its other spellings.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed 64-bit integer.
    Int(i64),
    /// An integer above [`i64::MAX`] that fits 64 bits.
    Unsigned(u64),
    /// Any other number, infinities and not-a-number included.
    Float(f64),
    /// A date or time.
    Time,
}

/// Returns the value of a scalar.
pub(super) fn scalar_value(scalar: &Scalar<'_>, flow: bool, dialect: Dialect) -> Result<Value, ErrorKind> {
    // An empty plain scalar inside braces or brackets: Kustomize writes it as '' before reading it
    // again.
    if flow && dialect == Dialect::Kustomize && scalar.implicit && scalar.text.is_empty() {
        return Ok(Value::String(String::new()));
    }
    Ok(match resolve_tagged(scalar, dialect)? {
        Resolved::Text => Value::String(text(scalar, dialect)?.into_owned()),
        Resolved::Null => Value::Null,
        Resolved::Bool(value) => Value::Bool(value),
        Resolved::Int(value) => Value::Number(value.into()),
        Resolved::Unsigned(value) => Value::Number(float(value as f64)?),
        Resolved::Float(value) => Value::Number(float(value)?),
        Resolved::Time => match dialect {
            Dialect::Kubectl => Value::String(scalar.text.to_owned()),
            // Inside braces, Kustomize quotes a scalar of several words before reading it again.
            Dialect::Kustomize if flow && scalar.text.contains(' ') => Value::String(scalar.text.to_owned()),
            Dialect::Kustomize => Value::String(timestamp::to_rfc3339(scalar.text).ok_or(ErrorKind::Time)?),
        },
    })
}

/// Returns the text of a scalar that is a key.
pub(super) fn scalar_key(scalar: &Scalar<'_>, dialect: Dialect) -> Result<String, ErrorKind> {
    if dialect == Dialect::Kustomize && scalar.implicit && scalar.text.is_empty() {
        return Ok(String::new());
    }
    let resolved = resolve_tagged(scalar, dialect)?;
    match (resolved, dialect) {
        (Resolved::Text, Dialect::Kustomize) if is_tag(scalar, "binary") => {
            Err(ErrorKind::Key("binary data"))
        }
        (Resolved::Text, _) => Ok(text(scalar, dialect)?.into_owned()),
        (Resolved::Null, _) => Err(ErrorKind::Key("null")),
        (Resolved::Time, Dialect::Kubectl) => Ok(scalar.text.to_owned()),
        (Resolved::Bool(value), Dialect::Kubectl) => Ok(value.to_string()),
        (Resolved::Int(value), Dialect::Kubectl) => Ok(value.to_string()),
        (Resolved::Float(value), Dialect::Kubectl) => Ok(float_key(value)),
        (Resolved::Unsigned(_), Dialect::Kubectl) => Err(ErrorKind::Key("an integer above 64 bits")),
        (Resolved::Bool(_), Dialect::Kustomize) => Err(ErrorKind::Key("a boolean without quotes")),
        (Resolved::Time, Dialect::Kustomize) => Err(ErrorKind::Key("a date without quotes")),
        (Resolved::Int(_) | Resolved::Unsigned(_) | Resolved::Float(_), Dialect::Kustomize) => {
            Err(ErrorKind::Key("a number without quotes"))
        }
    }
}

/// Returns the text of a key of the outermost map for Kustomize, which accepts numbers, booleans
/// and dates there and keeps their spelling.
pub(super) fn outermost_key(scalar: &Scalar<'_>) -> Result<String, ErrorKind> {
    let dialect = Dialect::Kustomize;
    match scalar_key(scalar, dialect) {
        Err(ErrorKind::Key(_))
            if !matches!(resolve_tagged(scalar, dialect)?, Resolved::Null | Resolved::Text) =>
        {
            Ok(scalar.text.to_owned())
        }
        key => key,
    }
}

/// True if the scalar is the key that merges other maps in.
pub(super) fn is_merge(scalar: &Scalar<'_>) -> bool {
    scalar.text == "<<" && (scalar.implicit || is_tag(scalar, "merge"))
}

/// Converts a float to a JSON number: whole numbers become integers if they fit.
pub(super) fn float(value: f64) -> Result<Number, ErrorKind> {
    if value.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&value) {
        return Ok(Number::from(value as i64));
    }
    Number::from_f64(value).ok_or(ErrorKind::NotFinite)
}

/// Prefix of the long form of the standard tags.
const STANDARD_TAGS: &str = "tag:yaml.org,2002:";

fn is_tag(scalar: &Scalar<'_>, name: &str) -> bool {
    let tag = scalar.tag.as_deref().and_then(|tag| tag.strip_prefix(STANDARD_TAGS));
    tag == Some(name)
}

/// Returns the JSON of a value if it differs from its spelling. Null has too many spellings, so it
/// is left out.
pub(super) fn json_if_respelled(scalar: &Scalar<'_>, value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (text != scalar.text).then(|| value.to_string()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()).filter(|text| text != scalar.text),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns a plain scalar with this text and tag.
pub(super) fn plain_scalar<'s>(text: &'s str, tag: Option<&str>) -> Scalar<'s> {
    let tag = tag.map(|tag| Cow::Owned(format!("{STANDARD_TAGS}{tag}")));
    let implicit = tag.is_none();
    Scalar { text, tag, style: Style::Plain, implicit, anchor: None }
}

/// Resolves a scalar by its tag, or by its text if it has none.
fn resolve_tagged(scalar: &Scalar<'_>, dialect: Dialect) -> Result<Resolved, ErrorKind> {
    let Some(tag) = scalar.tag.as_deref() else {
        // `! 12` is text for kubectl; Kustomize loses the lone `!` when it writes the value.
        let plain = scalar.implicit || (scalar.style == Style::Plain && dialect == Dialect::Kustomize);
        return Ok(match plain {
            true => resolve(scalar.text, dialect),
            false => Resolved::Text,
        });
    };
    let wrong = || ErrorKind::Tag(tag.into());
    let resolved = resolve(scalar.text, dialect);
    match (tag.strip_prefix(STANDARD_TAGS), resolved) {
        (Some("bool"), Resolved::Bool(_))
        | (Some("int"), Resolved::Int(_) | Resolved::Unsigned(_))
        | (Some("float"), Resolved::Float(_))
        | (Some("null"), Resolved::Null)
        | (Some("timestamp"), Resolved::Time) => Ok(resolved),
        (Some("float"), Resolved::Int(value)) => Ok(Resolved::Float(value as f64)),
        (Some("bool" | "int" | "float" | "null" | "timestamp"), _) => Err(wrong()),
        // Text, binary data, and unknown tags.
        (_, _) => Ok(Resolved::Text),
    }
}

/// Returns the text of a scalar that resolves to text.
fn text<'s>(scalar: &'s Scalar<'_>, dialect: Dialect) -> Result<Cow<'s, str>, ErrorKind> {
    if is_tag(scalar, "binary") {
        let encoded: String = scalar.text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
        let bytes = BASE64.decode(encoded).map_err(|_| ErrorKind::Binary)?;
        return String::from_utf8(bytes).map(Cow::Owned).map_err(|_| ErrorKind::Binary);
    }
    match (dialect, scalar.style) {
        (Dialect::Kustomize, Style::Folded) => Ok(refold(scalar.text)),
        (_, _) => Ok(Cow::Borrowed(scalar.text)),
    }
}

/// Resolves the text of a plain scalar.
pub(super) fn resolve(text: &str, dialect: Dialect) -> Resolved {
    let Some(first) = text.bytes().next() else {
        return Resolved::Null;
    };
    match first {
        b'0'..=b'9' | b'+' | b'-' | b'.' => number(text, dialect),
        b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' => word(text, dialect),
        b'y' | b'Y' | b'o' | b'O' if dialect == Dialect::Kubectl => word(text, dialect),
        _ => Resolved::Text,
    }
}

/// Resolves the words that stand for null and booleans.
fn word(text: &str, dialect: Dialect) -> Resolved {
    match (text, dialect) {
        ("~" | "null" | "Null" | "NULL", _) => Resolved::Null,
        ("true" | "True" | "TRUE", _) => Resolved::Bool(true),
        ("false" | "False" | "FALSE", _) => Resolved::Bool(false),
        (_, Dialect::Kustomize) => Resolved::Text,
        ("y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON", Dialect::Kubectl) => Resolved::Bool(true),
        ("n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF", Dialect::Kubectl) => Resolved::Bool(false),
        (_, Dialect::Kubectl) => Resolved::Text,
    }
}

/// Resolves a text that begins with a digit, a sign or a dot.
fn number(text: &str, dialect: Dialect) -> Resolved {
    match text {
        ".nan" | ".NaN" | ".NAN" => return Resolved::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Resolved::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Resolved::Float(f64::NEG_INFINITY),
        _ => {}
    }
    // Underscores may follow any digit or sign, but in a text that begins with a dot only separate
    // digits.
    let plain = match text.contains('_') {
        true if text.starts_with('.') && !separates_digits(text) => return Resolved::Text,
        true => Cow::Owned(text.replace('_', "")),
        false => Cow::Borrowed(text),
    };
    if timestamp::is_timestamp(text) {
        return Resolved::Time;
    }
    integer(&plain)
        .or_else(|| decimal(&plain))
        .or_else(|| odd_integer(&plain, dialect))
        .unwrap_or(Resolved::Text)
}

/// True if every underscore is between two digits.
fn separates_digits(text: &str) -> bool {
    let digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    text.match_indices('_').all(|(at, _)| at > 0 && digit(at - 1) && digit(at + 1))
}

/// Parses decimal, `0x`, `0b`, `0o` and old octal integers.
fn integer(text: &str) -> Option<Resolved> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => ("", &text[1..]),
        b'-' => ("-", &text[1..]),
        _ => ("", text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // Rust's parser would accept a second sign here.
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = match radix {
        10 => text.parse(),
        radix => i64::from_str_radix(&format!("{sign}{digits}"), radix),
    };
    match value {
        Ok(value) => Some(Resolved::Int(value)),
        Err(_) if text.starts_with(['+', '-']) => None,
        Err(_) => u64::from_str_radix(digits, radix).ok().map(Resolved::Unsigned),
    }
}

/// Parses numbers with a dot or an exponent, and integers too large for 64 bits.
fn decimal(text: &str) -> Option<Resolved> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let exponent = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) || !exponent {
        return None;
    }
    // A number too large for a float stays text.
    text.parse().ok().filter(|value: &f64| value.is_finite()).map(Resolved::Float)
}

/// Parses integers with a sign after the prefix (`0b-1`), which the Go readers accept.
fn odd_integer(text: &str, dialect: Dialect) -> Option<Resolved> {
    let radix = match text.get(..2)? {
        "0b" => 2,
        "0o" if dialect == Dialect::Kustomize => 8,
        _ => return None,
    };
    i64::from_str_radix(&text[2..], radix).ok().map(Resolved::Int)
}

/// Formats a float as kubectl writes it in a key: the shortest text of the nearest 32-bit float,
/// with an exponent below 1e-4 and from 1e6 upwards.
fn float_key(value: f64) -> String {
    let value = value as f32;
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let shortest = format!("{value:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    match exponent {
        -4..6 => format!("{value}"),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
    }
}

/// Returns a folded text after Kustomize has written and read it again. Its writer doubles the line
/// break after a line so that folding removes one, but it also does so before an indented line and
/// at the end of the text, where folding removes nothing; and never if the text begins with a
/// blank.
fn refold(text: &str) -> Cow<'_, str> {
    // Text with blanks before a line break, or with characters that need escapes, is quoted
    // instead.
    let quoted = text.contains(" \n")
        || text.ends_with(' ')
        || text.chars().any(|c| c != '\n' && c != '\t' && (c.is_control() || c == '\u{feff}'));
    if quoted || !text.contains('\n') {
        return Cow::Borrowed(text);
    }
    let doubles = text.trim_start_matches('\n').starts_with(|c: char| !matches!(c, ' ' | '\t'));
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(end) = rest.find('\n') {
        let (line, after) = rest.split_at(end);
        let next = after.trim_start_matches('\n');
        let breaks = after.len() - next.len();
        let indented = line.is_empty() || line.starts_with([' ', '\t']);
        let folds = !indented && !next.is_empty() && !next.starts_with([' ', '\t']);
        let clipped = next.is_empty() && breaks == 1;
        let written = breaks + usize::from(doubles && !indented && !clipped);
        out.push_str(line);
        match (folds, written) {
            (true, 1) => out.push(' '),
            (true, _) => out.extend(std::iter::repeat_n('\n', written - 1)),
            (false, _) => out.extend(std::iter::repeat_n('\n', written)),
        }
        rest = next;
    }
    out.push_str(rest);
    Cow::Owned(out)
}
