//! The words for a value that is not of the type that is read.
//!
//! In: the message of serde. Out: what it expects, without the value that it found.

/// Returns what a message of serde expects, in words of people; none if it expects nothing. The
/// message itself quotes the value that was found, which may be a secret.
pub fn expectation(message: &str) -> Option<String> {
    match message.rsplit_once(", expected ") {
        // Serde names the type of Rust.
        Some((_, expected)) if expected.starts_with("struct ") => Some("a mapping is expected".to_owned()),
        Some((_, expected)) => Some(format!("{expected} is expected")),
        None if message.starts_with("missing field") => Some(format!("a {message}")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serde_expects_is_said_without_what_it_found() {
        let check = |message: &str, expected: Option<&str>| {
            assert_eq!(expectation(message).as_deref(), expected, "{message}");
        };
        check(
            "invalid type: string \"planted, expected\", expected a boolean",
            Some("a boolean is expected"),
        );
        check("invalid type: null, expected struct Context", Some("a mapping is expected"));
        check("unknown variant `planted`, expected `Never`", Some("`Never` is expected"));
        check("missing field `name`", Some("a missing field `name`"));
        check("planted", None);
    }
}
