//! JSON as text: a parser that keeps the order of fields, and the forms in which Go writes texts.
//!
//! In: a text. Out: its tree with lines, or the line and the fault. Numbers are integers if they
//! fit 64 bits, as SOPS reads them.

use super::super::error::MAX_VALUES;
use super::super::node::{Field, Item, Node};
use super::super::secret::SecretBytes;
use super::number;

/// Deepest nesting: values are walked by recursion.
const MAX_DEPTH: usize = 128;

/// A fault, with its line.
pub(super) type Fault = (u32, &'static str);

/// Parses a text with one object.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let mut parser = Parser { rest: text, line: 0, values: 0 };
    parser.skip_blanks();
    let root = match parser.rest.starts_with('{') {
        true => parser.value(0)?,
        false => return Err(parser.fault("the text is not a JSON object")),
    };
    parser.skip_blanks();
    match parser.rest.is_empty() {
        true => Ok(root),
        false => Err(parser.fault("there is text behind the JSON object")),
    }
}

struct Parser<'a> {
    rest: &'a str,
    line: usize,
    /// Number of values so far.
    values: usize,
}

impl Parser<'_> {
    fn fault(&self, fault: &'static str) -> Fault {
        (number(self.line), fault)
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let skipped = &self.rest[..self.rest.len() - rest.len()];
        self.line += skipped.bytes().filter(|byte| *byte == b'\n').count();
        self.rest = rest;
    }

    /// Takes a character after blanks.
    fn take(&mut self, expected: char) -> bool {
        self.skip_blanks();
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        self.skip_blanks();
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.fault("there are more than 200000 values"));
        }
        match self.rest.bytes().next() {
            Some(b'{' | b'[') if depth == MAX_DEPTH => Err(self.fault("values are nested deeper than 128")),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Node::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Node, Fault> {
        self.take('{');
        let mut fields = Vec::new();
        if self.take('}') {
            return Ok(Node::Map(fields));
        }
        loop {
            self.skip_blanks();
            let line = number(self.line);
            if !self.rest.starts_with('"') {
                return Err(self.fault("expected a key in quotes"));
            }
            let key = self.string()?;
            if !self.take(':') {
                return Err(self.fault("expected a colon after a key"));
            }
            let value = self.value(depth + 1)?;
            fields.push(Field { key, line, value });
            match (self.take(','), self.take('}')) {
                (true, false) => {}
                (false, true) => return Ok(Node::Map(fields)),
                (_, _) => return Err(self.fault("expected a comma or a closing brace after a value")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Node, Fault> {
        self.take('[');
        let mut items = Vec::new();
        if self.take(']') {
            return Ok(Node::List(items));
        }
        loop {
            self.skip_blanks();
            let line = number(self.line);
            items.push(Item { line, value: self.value(depth + 1)? });
            match (self.take(','), self.take(']')) {
                (true, false) => {}
                (false, true) => return Ok(Node::List(items)),
                (_, _) => return Err(self.fault("expected a comma or a closing bracket after a value")),
            }
        }
    }

    fn word(&mut self) -> Result<Node, Fault> {
        let words = [("null", Node::Null), ("true", Node::Bool(true)), ("false", Node::Bool(false))];
        for (word, node) in words {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(node);
            }
        }
        Err(self.fault("expected a value"))
    }

    fn number(&mut self) -> Result<Node, Fault> {
        let end = self.rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if !is_number(text) {
            return Err(self.fault("expected a number of JSON"));
        }
        self.rest = rest;
        if let Ok(integer) = text.parse() {
            return Ok(Node::Int(integer));
        }
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Node::Float(float)),
            _ => Err(self.fault("a number is too large")),
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let mut out = String::new();
        let mut rest = self.rest.strip_prefix('"').unwrap_or(self.rest);
        loop {
            let end = rest.find(|c: char| c == '"' || c == '\\' || c < ' ');
            let Some((before, after)) = end.and_then(|end| rest.split_at_checked(end)) else {
                return Err(self.fault("a text has no closing quote"));
            };
            out.push_str(before);
            if let Some(after) = after.strip_prefix('"') {
                self.rest = after;
                return Ok(out);
            }
            let Some(escape) = after.strip_prefix('\\') else {
                return Err(self.fault("a text has a line break or another control character"));
            };
            let (character, after) =
                unescape(escape).ok_or_else(|| self.fault("a text has an unknown escape"))?;
            out.push(character);
            rest = after;
        }
    }
}

/// True for a number of JSON.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

/// Returns the character of an escape, after its backslash. Half of a pair becomes the replacement
/// character, as in Go.
fn unescape(text: &str) -> Option<(char, &str)> {
    let mut characters = text.chars();
    let character = match characters.next()? {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        quoted @ ('"' | '\\' | '/') => quoted,
        'u' => return unescape_unit(characters.as_str()),
        _ => return None,
    };
    Some((character, characters.as_str()))
}

fn unescape_unit(text: &str) -> Option<(char, &str)> {
    let unit = |text: &str| {
        let digits = text.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        u32::from_str_radix(digits, 16).ok()
    };
    let first = unit(text)?;
    let rest = text.get(4..)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, rest));
    }
    let second = rest.strip_prefix("\\u").and_then(unit).filter(|unit| (0xdc00..0xe000).contains(unit));
    let pair = second.filter(|_| first < 0xdc00).and_then(|second| {
        let character = char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))?;
        Some((character, rest.get(6..)?))
    });
    Some(pair.unwrap_or((char::REPLACEMENT_CHARACTER, rest)))
}

/// Writes a text with the escapes of Go.
pub(super) fn write_text(out: &mut SecretBytes, text: &str) {
    out.push(b"\"");
    let mut start = 0;
    for (at, character) in text.char_indices() {
        let mut buffer = [0; 6];
        if let Some(escape) = escape(character, &mut buffer) {
            out.push(&text.as_bytes()[start..at]);
            out.push(escape);
            start = at + character.len_utf8();
        }
    }
    out.push(&text.as_bytes()[start..]);
    out.push(b"\"");
}

/// Returns the escape of a character that Go does not write as it is.
fn escape(character: char, buffer: &mut [u8; 6]) -> Option<&[u8]> {
    let short: &[u8] = match character {
        '"' => b"\\\"",
        '\\' => b"\\\\",
        '\u{8}' => b"\\b",
        '\u{c}' => b"\\f",
        '\n' => b"\\n",
        '\r' => b"\\r",
        '\t' => b"\\t",
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..' ' => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let code = u32::from(character);
            *buffer = *b"\\u0000";
            for (nth, byte) in buffer.iter_mut().skip(2).enumerate() {
                *byte = DIGITS[(code >> (12 - 4 * nth)) as usize & 15];
            }
            return Some(buffer);
        }
        _ => return None,
    };
    Some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_as_another_parser_does() {
        let text = r#" {"a": [1, -0, 1.5e3, 9223372036854775808, "x\u00e9\ud83d\ude00\ud800\n"], "b": {}, "c": [],
            "d": {"e": null, "f": true, "g": false}} "#;
        let node = parse(text).expect("parses");
        let Node::Map(fields) = &node else { panic!("{node:?}") };
        let keys: Vec<(&str, u32)> = fields.iter().map(|field| (field.key.as_str(), field.line)).collect();
        assert_eq!(keys, [("a", 1), ("b", 1), ("c", 1), ("d", 2)]);
        let Node::List(items) = &fields[0].value else { panic!("{node:?}") };
        let values: Vec<&Node> = items.iter().map(|item| &item.value).collect();
        let expect = [
            Node::Int(1),
            Node::Int(0),
            Node::Float(1500.0),
            Node::Float(9_223_372_036_854_775_808.0),
            Node::Text("xé😀\u{fffd}\n".into()),
        ];
        assert_eq!(values, expect.iter().collect::<Vec<_>>());
    }

    #[test]
    fn faults_have_a_line() {
        let cases = [
            ("[]", 1, "the text is not a JSON object"),
            ("{} x", 1, "there is text behind the JSON object"),
            ("{\n\"a\" 1}", 2, "expected a colon after a key"),
            ("{\n\"a\": 1 \"b\": 2}", 2, "expected a comma or a closing brace after a value"),
            ("{\"a\": [1 2]}", 1, "expected a comma or a closing bracket after a value"),
            ("{\"a\": 01}", 1, "expected a number of JSON"),
            ("{\"a\": 1e999}", 1, "a number is too large"),
            ("{\"a\": nil}", 1, "expected a value"),
            ("{\"a\": \"x\n\"}", 1, "a text has a line break or another control character"),
            ("{\"a\": \"\\x\"}", 1, "a text has an unknown escape"),
            ("{\"a\": \"x", 1, "a text has no closing quote"),
            ("{a: 1}", 1, "expected a key in quotes"),
        ];
        for (text, line, fault) in cases {
            assert_eq!(parse(text), Err((line, fault)), "{text}");
        }
        let deep = format!("{{\"a\": {}", "[".repeat(200));
        assert_eq!(parse(&deep), Err((1, "values are nested deeper than 128")));
    }

    #[test]
    fn texts_are_written_as_go_does() {
        let mut out = SecretBytes::with_capacity(0);
        write_text(&mut out, "a<b>&\"\\\n\t\u{8}\u{1f}é\u{2028}/");
        assert_eq!(out.as_text(), Some(r#""a\u003cb\u003e\u0026\"\\\n\t\b\u001fé\u2028/""#));
    }
}
