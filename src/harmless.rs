//! Text from outside, without what a terminal or a log collector would obey.
//!
//! In: names, paths and values that strangers chose. Out: the same on one line, with a mark in the place of
//! every control character and of every character that turns the direction of text.

/// The text with everything replaced that is not there to be read.
pub fn harmless(text: &str) -> String {
    let turns =
        |char| matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|char| if char.is_control() || turns(char) { '\u{fffd}' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_terminal_obeys_is_replaced() {
        assert_eq!(super::harmless("a\u{1b}[31mb\nc\u{202e}d é"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d é");
    }
}
