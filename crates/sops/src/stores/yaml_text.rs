//! Scalars of YAML as text, in the forms of SOPS' library.
//!
//! In: a plain value and its surroundings. Out: its text, which readers of YAML 1.1 and 1.2 read
//! back with the same type: text that looks like another type is quoted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use moorline_yaml::{Dialect, resolve_scalar};

use super::super::numbers;
use super::super::secret::SecretBytes;
use super::super::value::{Kind, Plain};

/// Longest line of base64.
const BASE64_CHARS: usize = 70;

/// Surroundings of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Surroundings {
    /// Column of the parent: the key or the dash.
    pub(super) parent: usize,
    /// Column of the lines of a block.
    pub(super) indent: usize,
    /// Blocks are allowed: not in braces, and nothing follows on the line.
    pub(super) block: bool,
}

/// Writes a value.
pub(super) fn write(out: &mut SecretBytes, plain: &Plain, at: Surroundings) {
    match plain.kind {
        Kind::Text | Kind::Comment => write_text(out, plain.text.as_bytes(), at),
        Kind::Int | Kind::Time => out.push(plain.text.as_bytes()),
        Kind::Bool => out.push(if plain.is_true() { b"true" } else { b"false" }),
        Kind::Float => {
            let text = match numbers::general(plain.as_float()).as_str() {
                "+Inf" => ".inf".to_owned(),
                "-Inf" => "-.inf".to_owned(),
                "NaN" => ".nan".to_owned(),
                text => text.to_owned(),
            };
            out.push(text.as_bytes());
        }
    }
}

fn write_text(out: &mut SecretBytes, bytes: &[u8], at: Surroundings) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return write_binary(out, bytes, at);
    };
    let shape = Shape::of(text);
    match () {
        () if text.contains('\n') && at.block && shape.block => write_block(out, text, at),
        () if text.contains('\n') || !at.block_free() => write_double_quoted(out, text),
        () if !stays_text(text) => write_double_quoted(out, text),
        () if shape.plain => out.push(text.as_bytes()),
        () if shape.single_quoted => write_single_quoted(out, text),
        () => write_double_quoted(out, text),
    }
}

impl Surroundings {
    /// Surroundings in braces or brackets.
    pub(super) const FLOW: Self = Self { parent: 0, indent: 0, block: false };

    /// True outside of braces.
    fn block_free(self) -> bool {
        self != Self::FLOW
    }
}

/// True if a plain scalar with this text is read as text by readers of either version.
fn stays_text(text: &str) -> bool {
    let read = |dialect| match resolve_scalar(text, None, dialect) {
        // The reader has copied the text: the copy is wiped.
        Some(serde_json::Value::String(copy)) => {
            SecretBytes::new(copy.into_bytes()).as_bytes() == text.as_bytes()
        }
        _ => false,
    };
    let time = resolve_scalar(text, Some("timestamp"), Dialect::Kustomize).is_some();
    text != "<<" && !time && !is_sexagesimal(text) && read(Dialect::Kubectl) && read(Dialect::Kustomize)
}

/// True for numbers such as `1:30`, which YAML 1.1 reads to the base of sixty.
fn is_sexagesimal(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.split(':');
    let first = groups.next().unwrap_or_default();
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let group = |text: &str| match text.as_bytes() {
        [low] => low.is_ascii_digit(),
        [high, low] => (b'0'..=b'5').contains(high) && low.is_ascii_digit(),
        _ => false,
    };
    let rest: Vec<&str> = groups.collect();
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && digits(fraction)
        && !rest.is_empty()
        && rest.into_iter().all(group)
}

/// The styles that a text may have.
struct Shape {
    plain: bool,
    single_quoted: bool,
    block: bool,
}

impl Shape {
    fn of(text: &str) -> Self {
        let space_break =
            [" \n", " \r", " \u{85}", " \u{2028}", " \u{2029}"].iter().any(|it| text.contains(it));
        let break_space =
            ["\n ", "\r ", "\u{85} ", "\u{2028} ", "\u{2029} "].iter().any(|it| text.contains(it));
        let special = text.chars().any(|character| character != '\t' && !is_printable(character));
        let edges = |character: char| character == ' ' || is_break(character);
        let line_breaks = text.contains(is_break);
        let single_quoted = !(break_space || space_break || special || line_breaks || text.contains('\t'));
        Self {
            plain: single_quoted
                && !text.is_empty()
                && !text.starts_with(edges)
                && !text.ends_with(edges)
                && !has_indicators(text),
            single_quoted,
            // Lines are split at line feeds only, so other breaks cannot be in a block.
            block: !(space_break || special || text.ends_with(' ') || text.chars().any(is_other_break)),
        }
    }
}

/// True if the text has signs that end a plain scalar or begin something else.
fn has_indicators(text: &str) -> bool {
    let blank = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']);
    let rest = text.get(1..).unwrap_or("x");
    let first = match text.as_bytes().first() {
        Some(b'?' | b':' | b'-') => blank(rest),
        Some(first) => b"#,[]{}&*!|>'\"%@`".contains(first),
        None => false,
    };
    let colon =
        text.match_indices(':').any(|(at, _)| at > 0 && blank(text.get(at + 1..).unwrap_or_default()));
    let hash = text.contains(" #") || text.contains("\t#");
    first || colon || hash || text.starts_with("---") || text.starts_with("...")
}

fn is_break(character: char) -> bool {
    character == '\n' || is_other_break(character)
}

fn is_other_break(character: char) -> bool {
    matches!(character, '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// True for the characters that the library writes without an escape.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && character != '\u{feff}'
}

fn write_single_quoted(out: &mut SecretBytes, text: &str) {
    out.push(b"'");
    for (nth, part) in text.split('\'').enumerate() {
        out.push(if nth == 0 { b"" } else { b"''" });
        out.push(part.as_bytes());
    }
    out.push(b"'");
}

fn write_double_quoted(out: &mut SecretBytes, text: &str) {
    out.push(b"\"");
    let mut buffer = [0; 4];
    for character in text.chars() {
        let short = match character {
            '\0' => "\\0",
            '\u{7}' => "\\a",
            '\u{8}' => "\\b",
            '\t' => "\\t",
            '\n' => "\\n",
            '\u{b}' => "\\v",
            '\u{c}' => "\\f",
            '\r' => "\\r",
            '\u{1b}' => "\\e",
            '"' => "\\\"",
            '\\' => "\\\\",
            '\u{85}' => "\\N",
            '\u{2028}' => "\\L",
            '\u{2029}' => "\\P",
            _ if is_printable(character) => character.encode_utf8(&mut buffer),
            _ => {
                write_code(out, u32::from(character));
                continue;
            }
        };
        out.push(short.as_bytes());
    }
    out.push(b"\"");
}

/// Writes a character by its number.
fn write_code(out: &mut SecretBytes, code: u32) {
    let (letter, width) = match code {
        0..=0xff => (b'x', 2),
        0x100..=0xffff => (b'u', 4),
        _ => (b'U', 8),
    };
    out.push(&[b'\\', letter]);
    for nth in (0..width).rev() {
        let digit = (code >> (4 * nth)) & 15;
        out.push(&[b"0123456789ABCDEF"[digit as usize]]);
    }
}

fn write_block(out: &mut SecretBytes, text: &str, at: Surroundings) {
    out.push(b"|");
    if text.starts_with([' ', '\t', '\n']) {
        out.push((at.indent - at.parent).to_string().as_bytes());
    }
    let body = text.trim_end_matches('\n');
    out.push(match text.len() - body.len() {
        0 => b"-",
        1 if !body.is_empty() => b"",
        _ => b"+",
    });
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push(b"\n");
        if !line.is_empty() {
            out.push(" ".repeat(at.indent).as_bytes());
            out.push(line.as_bytes());
        }
    }
}

fn write_binary(out: &mut SecretBytes, bytes: &[u8], at: Surroundings) {
    let coded = SecretBytes::new(BASE64.encode(bytes).into_bytes());
    out.push(b"!!binary ");
    if coded.as_bytes().len() <= BASE64_CHARS || !at.block {
        return out.push(coded.as_bytes());
    }
    out.push(b"|");
    for line in coded.as_bytes().chunks(BASE64_CHARS) {
        out.push(b"\n");
        out.push(" ".repeat(at.indent).as_bytes());
        out.push(line);
    }
}

#[cfg(test)]
mod tests {
    use moorline_yaml::read;

    use super::*;

    const BLOCK: Surroundings = Surroundings { parent: 0, indent: 4, block: true };

    fn written(kind: Kind, text: &str, at: Surroundings) -> String {
        let mut out = SecretBytes::with_capacity(0);
        write(&mut out, &Plain { kind, text: SecretBytes::from(text) }, at);
        out.as_text().expect("is text").to_owned()
    }

    #[test]
    fn values_keep_their_type() {
        let cases = [
            (Kind::Int, "-5", "-5"),
            (Kind::Bool, "True", "true"),
            (Kind::Float, "1.5", "1.5"),
            (Kind::Float, "1", "1"),
            (Kind::Float, "1000000", "1e+06"),
            (Kind::Float, "-Inf", "-.inf"),
            (Kind::Time, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ];
        for (kind, text, expect) in cases {
            assert_eq!(written(kind, text, BLOCK), expect);
        }
    }

    #[test]
    fn texts_have_the_styles_of_the_library() {
        let cases = [
            ("plain text", "plain text"),
            ("", "\"\""),
            ("5", "\"5\""),
            ("0644", "\"0644\""),
            ("true", "\"true\""),
            ("yes", "\"yes\""),
            ("null", "\"null\""),
            ("1:30", "\"1:30\""),
            ("2026-01-02", "\"2026-01-02\""),
            ("<<", "\"<<\""),
            ("a: b", "'a: b'"),
            ("a #b", "'a #b'"),
            ("it's: x", "'it''s: x'"),
            (" a", "' a'"),
            ("- a", "'- a'"),
            ("-a", "-a"),
            ("{a}", "'{a}'"),
            ("--- a", "'--- a'"),
            ("a\tb", "\"a\\tb\""),
            ("a\u{1}😀", "\"a\\x01\\U0001F600\""),
            ("a\nb", "|-\n    a\n    b"),
            ("a\nb\n", "|\n    a\n    b"),
            ("a\n\nb\n\n", "|+\n    a\n\n    b\n"),
            (" a\nb", "|4-\n     a\n    b"),
            ("a \nb", "\"a \\nb\""),
            ("\n", "|4+\n"),
        ];
        for (text, expect) in cases {
            assert_eq!(written(Kind::Text, text, BLOCK), expect, "{text:?}");
        }
        let flow = Surroundings::FLOW;
        assert_eq!(written(Kind::Text, "a, b", flow), "\"a, b\"");
        assert_eq!(written(Kind::Text, "a\nb", Surroundings { block: false, ..BLOCK }), "\"a\\nb\"");
    }

    #[test]
    fn bytes_become_base64() {
        let mut out = SecretBytes::with_capacity(0);
        write(&mut out, &Plain { kind: Kind::Text, text: SecretBytes::new(vec![0xff, 0xfe]) }, BLOCK);
        assert_eq!(out.as_text(), Some("!!binary //4="));
        let mut out = SecretBytes::with_capacity(0);
        write(&mut out, &Plain { kind: Kind::Text, text: SecretBytes::new(vec![0xff; 60]) }, BLOCK);
        assert!(out.as_text().is_some_and(|text| text.starts_with("!!binary |\n    ////")));
    }

    proptest::proptest! {
        #[test]
        fn every_text_is_read_back(text in "[ -~\\n\\t\\r\u{85}\u{a0}\u{2028}é😀'\"#:-]{0,12}", block in 0..3_u8) {
            let at = match block { 0 => BLOCK, 1 => Surroundings { block: false, ..BLOCK }, _ => Surroundings::FLOW };
            let scalar = written(Kind::Text, &text, at);
            let file = match block { 2 => format!("a: [{scalar}, 1]\n"), _ => format!("a: {scalar}\nb: 1\n") };
            for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
                let found = read("f.yaml", file.as_bytes(), dialect).expect(&file);
                let value = match block { 2 => &found[0].value["a"][0], _ => &found[0].value["a"] };
                proptest::prop_assert_eq!(value, &serde_json::Value::from(text.as_str()), "{}", file);
            }
        }
    }
}
