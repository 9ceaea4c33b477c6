//! Challenges of registries, in the header `WWW-Authenticate`.
//!
//! In: the text of the header.
//! Out: the scheme and the parameters, and parts of a query made of them. Pure.

/// Splits a challenge into its scheme, in lower case, and its parameters.
pub(super) fn split(challenge: &str) -> (&'static str, &str) {
    let (scheme, parameters) = challenge.split_once(' ').unwrap_or((challenge, ""));
    let known = ["bearer", "basic"].into_iter().find(|known| scheme.eq_ignore_ascii_case(known));
    (known.unwrap_or_default(), parameters)
}

/// Returns the value of a quoted parameter.
pub(super) fn parameter(parameters: &str, name: &str) -> Option<String> {
    let mut rest = parameters;
    while let Some((front, behind)) = rest.split_once("=\"") {
        let (value, after) = behind.split_once('"')?;
        if front.trim_matches([',', ' ']).eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = after;
    }
    None
}

/// Encodes text for a query.
pub(super) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/,".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read_by_the_names_of_its_parameters() {
        let text = "realm=\"https://host/token\",service=\"a, b\", scope=\"repository:x/y:pull,push\"";
        assert_eq!(parameter(text, "realm").as_deref(), Some("https://host/token"));
        assert_eq!(parameter(text, "Service").as_deref(), Some("a, b"));
        assert_eq!(parameter(text, "scope").as_deref(), Some("repository:x/y:pull,push"));
        assert_eq!(parameter(text, "none"), None);
        assert_eq!(parameter("realm=\"", "realm"), None);
        assert_eq!(split("BEARER realm"), ("bearer", "realm"));
        assert_eq!(split("Negotiate"), ("", ""));
        assert_eq!(encoded("a b&c"), "a%20b%26c");
    }
}
