//! Replaces characters that a terminal or a log collector would interpret.
//!
//! In: names, paths and values that other people chose.
//! Out: the same text on one line, with U+FFFD in the place of every control character, every
//! character that changes the direction of text, and every invisible one.

/// Replaces every character that is not meant to be read.
pub fn sanitize(text: &str) -> String {
    let turns = |char| matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_hidden = |char| {
        let is_filler = matches!(
            char,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}'
        );
        is_filler
            || matches!(char, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    let is_bad = |char: char| char.is_control() || turns(char) || is_hidden(char);
    text.chars().map(|char| if is_bad(char) { '\u{fffd}' } else { char }).collect()
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
}
