//! Reads numbers in headers of tar archives.
//!
//! In: the bytes of a field.
//! Out: the number; none if the field is not one.

/// Parses an octal number between spaces and zero bytes; an empty field is 0.
pub(super) fn number(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}
