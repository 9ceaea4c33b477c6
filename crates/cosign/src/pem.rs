//! Reader of PEM, the text form of keys and certificates.
//!
//! In: a text. Out: the label and the bytes of its first section.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "\n-----END ";
const DASHES: &str = "-----";

/// Returns the label and the bytes of the first section, and the text behind it.
pub(crate) fn section(text: &str) -> Option<(&str, Vec<u8>, &str)> {
    let (_, text) = text.split_once(BEGIN)?;
    let (label, text) = text.split_once(DASHES)?;
    // Both borders have a line of their own.
    let (body, text) = text.split_once(END)?;
    let rest = text.strip_prefix(label)?.strip_prefix(DASHES)?;
    (rest.is_empty() || rest.starts_with(['\n', '\r'])).then_some(())?;
    let digits = body.strip_prefix(['\n', '\r'])?.replace(['\n', '\r', ' '], "");
    Some((label, STANDARD.decode(digits).ok()?, rest))
}

/// Returns the bytes of the first section with this label.
pub(crate) fn bytes_of(text: &str, label: &str) -> Option<Vec<u8>> {
    section(text).filter(|(found, ..)| *found == label).map(|(_, bytes, _)| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read() {
        let text = "a\n-----BEGIN A B-----\naGVs\nbG8=\n-----END A B-----\nrest";
        assert_eq!(section(text), Some(("A B", b"hello".to_vec(), "\nrest")));
        assert_eq!(bytes_of(text, "A B"), Some(b"hello".to_vec()));
        assert_eq!(bytes_of(text, "A"), None);
        for wrong in [
            "",
            "-----BEGIN A-----\u{b}aGk=\n-----END A-----",
            "-----BEGIN A-----\naGk=-----END A-----",
            "-----BEGIN A-----\naGk=\n-----END A-----*",
            "-----BEGIN A-----",
            "-----BEGIN A-----\naGk=\n-----END B-----",
            "-----BEGIN A-----\n?\n-----END A-----",
        ] {
            assert_eq!(section(wrong), None, "{wrong}");
        }
    }
}
