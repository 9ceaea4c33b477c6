//! Measures the text of an expression before it is parsed.
//!
//! In: the text.
//! Out: nothing, or the first position at which a limit is exceeded. The parser recurses for each
//! bracket and each operator, and a stack overflow cannot be caught: its input must be known to
//! fit.

/// Maximal nesting of brackets.
const MAX_BRACKETS: usize = 16;

/// Size limits of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes: usize,
    /// Maximal number of `? :` in one expression; each may be nested in the previous one.
    pub(super) choices: usize,
    /// Maximal depth of the parsed expression: operators and dots side by side, plus those around
    /// them.
    pub(super) depth: usize,
}

/// An exceeded limit: its position in bytes, and its description.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SizeLimitError {
    pub(super) at: usize,
    pub(super) problem: String,
}

/// One pair of brackets, or the whole text.
#[derive(Default)]
struct Level {
    /// Number of operators since the last comma.
    operators: usize,
    /// Depth of the deepest bracket since the last comma.
    inner: usize,
    /// Depth of the deepest item before the last comma.
    items: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.items.max(self.operators + self.inner + 1)
    }
}

/// Checks that a text is small and flat enough to be parsed.
pub(super) fn check_size(text: &str, limits: Limits) -> Result<(), SizeLimitError> {
    let Limits { bytes: max_bytes, choices: max_choices, depth: max_depth } = limits;
    let refuse = |at: usize, problem: String| Err(SizeLimitError { at, problem });
    if text.len() > max_bytes {
        return refuse(max_bytes, format!("the expression has more than {max_bytes} bytes"));
    }
    let bytes = text.as_bytes();
    let mut levels = vec![Level::default()];
    let (mut at, mut choices) = (0, 0);
    while let Some(byte) = bytes.get(at).copied() {
        let length = literal(&bytes[at..]);
        if length > 0 {
            at += length;
            continue;
        }
        let inside = levels.len() > 1;
        let Some(level) = levels.last_mut() else { break };
        match byte {
            b'(' | b'[' | b'{' => {
                // Counts the call, index or literal that the bracket belongs to.
                level.operators += 1;
                levels.push(Level::default());
            }
            b')' | b']' | b'}' if inside => {
                let depth = levels.pop().map_or(0, |level| level.depth());
                if let Some(level) = levels.last_mut() {
                    level.inner = level.inner.max(depth);
                }
            }
            b',' => *level = Level { items: level.depth(), ..Level::default() },
            // `&&` and `==` count once; `!!` and `--` are two operators.
            b'.' | b'!' | b'-' | b'+' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'&' | b'|' | b':' => {
                level.operators +=
                    usize::from(!bytes[..at].ends_with(&[byte]) || matches!(byte, b'!' | b'-'));
            }
            b'?' => (level.operators, choices) = (level.operators + 1, choices + 1),
            b'i' if is_word(bytes, at, b"in") => level.operators += 1,
            _ => {}
        }
        if levels.len() > MAX_BRACKETS + 1 {
            return refuse(at, format!("more than {MAX_BRACKETS} nested brackets"));
        }
        if choices > max_choices {
            return refuse(at, format!("more than {max_choices} question marks"));
        }
        if levels.iter().map(|level| level.operators + 1).sum::<usize>() > max_depth
            || levels.iter().any(|level| level.depth() > max_depth)
        {
            return refuse(at, format!("more than {max_depth} nested operators and dots"));
        }
        at += 1;
    }
    Ok(())
}

/// Length in bytes of the string literal or comment that begins here. An unterminated literal
/// extends to the end: the parser will report it.
pub(super) fn literal(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"//") {
        return bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    }
    let prefix = bytes.iter().take_while(|byte| matches!(byte, b'r' | b'R' | b'b' | b'B')).count();
    if prefix > 2 {
        return 0;
    }
    let raw = bytes[..prefix].iter().any(|byte| matches!(byte, b'r' | b'R'));
    let rest = &bytes[prefix..];
    let quotes: [&[u8]; 4] = [b"\"\"\"", b"'''", b"\"", b"'"];
    let Some(quote) = quotes.into_iter().find(|quote| rest.starts_with(quote)) else { return 0 };
    let mut at = quote.len();
    while at < rest.len() {
        match rest[at] {
            b'\\' if !raw => at += 2,
            _ if rest[at..].starts_with(quote) => return prefix + at + quote.len(),
            _ => at += 1,
        }
    }
    bytes.len()
}

/// True if a whole identifier begins here.
fn is_word(bytes: &[u8], at: usize, word: &[u8]) -> bool {
    let letter = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    bytes[at..].starts_with(word) && !letter(before) && !letter(bytes.get(at + word.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits = Limits { bytes: 2_048, choices: 16, depth: 96 };

    fn check(text: &str, expect: Option<usize>) {
        assert_eq!(check_size(text, SMALL).err().map(|too_much| too_much.at), expect, "{text}");
    }

    #[test]
    fn what_rules_need_passes() {
        check("", None);
        check("object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", None);
        check(&["object.status.phase == 'a'"; 15].join(" || "), None);
        check(&format!("object.status.phase in [{}]", ["'abc.def'"; 100].join(", ")), None);
        check("')))((((((((((((((((((((((((' == \"\\\"((((((((((((((((((((\"", None);
        check("r'\\' == '' // ((((((((((((((((((((((((((((((\n", None);
    }

    #[test]
    fn what_would_use_up_the_stack_does_not() {
        check(&" ".repeat(2_049), Some(2_048));
        check(&"(".repeat(100), Some(16));
        check(&"[".repeat(100), Some(16));
        check(&"!".repeat(200), Some(95));
        check(&"-".repeat(200), Some(95));
        check(&format!("a{}", ".a".repeat(500)), Some(191));
        check(&format!("1{}", "+1".repeat(500)), Some(191));
        check(&"a?b:".repeat(100), Some(16 * 4 + 1));
        check(&"a in ".repeat(200), Some(95 * 5 + 2));
        // Wide side by side, and deep in total.
        check(&format!("f(a{}, a{})", ".a".repeat(60), ".a".repeat(60)), None);
        check(&format!("a{}[b{}]", ".a".repeat(60), ".a".repeat(60)), Some(189));
    }
}
