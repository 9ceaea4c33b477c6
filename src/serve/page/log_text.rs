//! Makes the bytes of a log harmless text.
//!
//! In: bytes as they arrive, cut anywhere. Out: text in which only line breaks and tabs are control
//! characters. Colours of terminals are removed; every other control character, and every hidden
//! one, becomes U+FFFD.

use crate::sanitize::sanitize;

/// The longest control sequence of a terminal that is removed.
const MAX_SEQUENCE: usize = 32;

/// A log on its way to a viewer.
#[derive(Debug, Default)]
pub struct LogText {
    /// The begin of a character whose other bytes have not arrived.
    pending: Vec<u8>,
    sequence: Sequence,
    /// True after a carriage return, which is dropped before a line break.
    returned: bool,
}

/// Position in a control sequence of a terminal.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Sequence {
    /// Outside.
    #[default]
    None,
    /// After the escape character.
    Escape,
    /// Inside, after this many characters.
    Inside(usize),
}

impl LogText {
    /// Returns the text of further bytes.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.pending);
        all.extend_from_slice(bytes);
        let (mut rest, mut out) = (all.as_slice(), String::with_capacity(bytes.len()));
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.write(text, &mut out);
                    return out;
                }
                Err(error) => {
                    let (sound, broken) = rest.split_at(error.valid_up_to());
                    self.write(std::str::from_utf8(sound).unwrap_or_default(), &mut out);
                    let Some(length) = error.error_len() else {
                        self.pending = broken.to_vec();
                        return out;
                    };
                    self.write("\u{fffd}", &mut out);
                    rest = broken.get(length..).unwrap_or_default();
                }
            }
        }
    }

    /// Returns the text of what is left at the end.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if !std::mem::take(&mut self.pending).is_empty() {
            self.write("\u{fffd}", &mut out);
        }
        if std::mem::take(&mut self.returned) || std::mem::take(&mut self.sequence) != Sequence::None {
            out.push('\u{fffd}');
        }
        out
    }

    fn write(&mut self, text: &str, out: &mut String) {
        let mut plain = String::new();
        for char in text.chars() {
            if std::mem::take(&mut self.returned) && char != '\n' {
                plain.push('\u{fffd}');
            }
            self.sequence = match (self.sequence, char) {
                (Sequence::Escape, '[') => Sequence::Inside(0),
                (Sequence::Inside(_), '@'..='~') => Sequence::None,
                (Sequence::Inside(length), ' '..='?') if length < MAX_SEQUENCE => {
                    Sequence::Inside(length + 1)
                }
                (before, char) => {
                    if before != Sequence::None {
                        plain.push('\u{fffd}');
                    }
                    match char {
                        '\u{1b}' => Sequence::Escape,
                        char => {
                            self.returned = char == '\r';
                            plain.extend((char != '\r').then_some(char));
                            Sequence::None
                        }
                    }
                }
            };
        }
        for piece in plain.split_inclusive(['\n', '\t']) {
            let end = piece.chars().next_back().filter(|char| matches!(char, '\n' | '\t'));
            out.push_str(&sanitize(piece.trim_end_matches(['\n', '\t'])));
            out.extend(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_text_wherever_it_is_cut() {
        for (bytes, expect) in [
            (&b"a\tb\nc"[..], "a\tb\nc"),
            (b"one\r\ntwo\rthree\r", "one\ntwo\u{fffd}three\u{fffd}"),
            (b"\x1b[1;31mERROR\x1b[0m x", "ERROR x"),
            (b"\x1b]0;title\x07", "\u{fffd}]0;title\u{fffd}"),
            (b"a\x1b\x1b[2Jb\x1b[", "a\u{fffd}b\u{fffd}"),
            ("né \u{202e}\u{200b}ö\u{0}".as_bytes(), "né \u{fffd}\u{fffd}ö\u{fffd}"),
            (b"\xff\xc3", "\u{fffd}\u{fffd}"),
            (b"\xe2\x82", "\u{fffd}"),
            (b"<script>", "<script>"),
            (b"\n\n\n", "\n\n\n"),
        ] {
            for cut in 0..=bytes.len() {
                let mut text = LogText::default();
                let all = text.push(&bytes[..cut]) + &text.push(&bytes[cut..]) + &text.finish();
                assert_eq!(all, expect, "{bytes:?} cut at {cut}");
            }
        }
        let long = format!("\u{1b}[{}m", "1".repeat(100));
        assert!(LogText::default().push(long.as_bytes()).contains("1111"), "a sequence ends");
    }
}
