//! Challenges of registries in the header `WWW-Authenticate`, answers of their servers of tokens,
//! and links to next pages.
//!
//! In: the text of a header, or a body.
//! Out: the scheme and the parameters, the URL that gives a token, the token; the next page. Pure.

use serde_json::Value;

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

/// Returns the URL that gives a token for a challenge of the scheme `bearer`; none if the challenge
/// names no server. `scope` is asked for where the challenge names none.
pub(super) fn token_url(parameters: &str, scope: Option<&str>) -> Option<String> {
    let realm = parameter(parameters, "realm")?;
    let mut query = Vec::new();
    for (name, other) in [("service", None), ("scope", scope)] {
        let value = parameter(parameters, name).or_else(|| other.map(str::to_owned));
        query.extend(value.map(|value| format!("{name}={}", encoded(&value))));
    }
    let mark = if realm.contains('?') { '&' } else { '?' };
    Some(format!("{realm}{mark}{}", query.join("&")))
}

/// Returns the token in the answer of a server of tokens, if it can be sent as a header.
pub(super) fn token_in(body: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let token = ["token", "access_token"].iter().find_map(|name| answer[name].as_str());
    let is_sound = |token: &&str| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    token.filter(is_sound).map(str::to_owned)
}

/// Returns the target of a `Link` to the next page: `<target>; rel="next"`.
pub(super) fn next_page(link: &str) -> Option<&str> {
    let (target, relation) = link.trim().strip_prefix('<')?.split_once('>')?;
    relation.contains("next").then_some(target)
}

/// Encodes text for a query.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/,".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_for_as_the_challenge_says() {
        let url = |parameters| token_url(parameters, Some("repository:a:pull"));
        let own = "realm=\"https://h/t\",service=\"s\",scope=\"repository:b:pull\"";
        assert_eq!(url(own).as_deref(), Some("https://h/t?service=s&scope=repository:b:pull"));
        assert_eq!(
            url("realm=\"https://h/t?x=y\"").as_deref(),
            Some("https://h/t?x=y&scope=repository:a:pull")
        );
        assert_eq!(token_url("realm=\"https://h/t\"", None).as_deref(), Some("https://h/t?"));
        assert_eq!(url("service=\"s\""), None);
        let table = [
            (r#"{"token": "a", "access_token": "b"}"#, Some("a")),
            (r#"{"access_token": "b"}"#, Some("b")),
            (r#"{"token": ""}"#, None),
            (r#"{"token": "a b"}"#, None),
            ("planted", None),
        ];
        for (body, expect) in table {
            assert_eq!(token_in(body.as_bytes()).as_deref(), expect, "{body}");
        }
    }

    #[test]
    fn the_next_page_is_the_one_that_is_linked_as_next() {
        assert_eq!(
            next_page("</v2/a/tags/list?n=2&last=b>; rel=\"next\""),
            Some("/v2/a/tags/list?n=2&last=b")
        );
        assert_eq!(next_page("</v2/a>; rel=\"prev\""), None);
        assert_eq!(next_page("nonsense"), None);
    }

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
