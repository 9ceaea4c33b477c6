//! Replaces characters that a terminal or a log collector would interpret.
//!
//! In: names, paths and values that other people chose.
//! Out: the same text on one line, with U+FFFD in the place of every control character, every
//! character that changes the direction of text, and every invisible one.

/// Replaces every character that is not meant to be read.
pub fn sanitize(text: &str) -> String {
    text.chars().map(|char| if is_hidden(char) { '\u{fffd}' } else { char }).collect()
}

/// Shows every character that is not meant to be read by its number, such as `[U+202E]`. Line
/// breaks and tabs stay.
pub fn reveal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\t' => out.push(char),
            _ if is_hidden(char) || carries_data(char) => {
                out.push_str(&format!("[U+{:04X}]", u32::from(char)));
            }
            _ => out.push(char),
        }
    }
    out
}

/// True for a character that a terminal obeys, that turns text around, or that cannot be seen.
fn is_hidden(char: char) -> bool {
    let turns = |char| matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_filler = |char| {
        matches!(char, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}')
    };
    let is_invisible = |char| matches!(char, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}');
    char.is_control() || turns(char) || is_filler(char) || is_invisible(char)
}

/// True for a character without a shape of its own, in rows of which a text can hide another one.
fn carries_data(char: char) -> bool {
    matches!(
        char,
        '\u{180b}'..='\u{180f}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{2800}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e000}'..='\u{f8ff}'
            | '\u{f0000}'..
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_terminal_obeys_is_replaced() {
        assert_eq!(super::sanitize("a\u{1b}[31mb\nc\u{202e}d é"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d é");
    }

    #[test]
    fn a_character_that_cannot_be_seen_is_replaced() {
        for hidden in [
            '\u{61c}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{feff}',
            '\u{ad}',
            '\u{2060}',
            '\u{3164}',
            '\u{e0041}',
        ] {
            assert_eq!(super::sanitize(&format!("pay{hidden}pal")), "pay\u{fffd}pal", "{hidden:?}");
        }
    }

    #[test]
    fn hidden_characters_are_shown_by_number() {
        for (text, expect) in [
            ("a\tb\nc é 日本", "a\tb\nc é 日本"),
            ("a\u{202e}b\u{1b}[2J\r", "a[U+202E]b[U+001B][2J[U+000D]"),
            ("\u{e0069}\u{e0067}", "[U+E0069][U+E0067]"),
            ("x\u{fe0f}\u{fe01}\u{2800}", "x[U+FE0F][U+FE01][U+2800]"),
            ("\u{f0041}", "[U+F0041]"),
        ] {
            assert_eq!(super::reveal(text), expect);
        }
    }
}
