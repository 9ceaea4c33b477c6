//! Numbers and articles in messages.
//!
//! In: a number or a noun.
//! Out: `1 object` and `2 objects`, `a ConfigMap` and `an Ingress`.

use std::fmt::Display;

/// Formats a count with its noun: `1 object` or `2 objects`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, one: &str) -> String {
    let word = form(&count, one);
    format!("{count} {word}")
}

/// Formats a count of further items: `1 more field` or `2 more fields`.
pub fn more<N: Display + PartialEq + From<u8>>(count: N, one: &str) -> String {
    let word = form(&count, one);
    format!("{count} more {word}")
}

/// Returns the singular or plural form for a count.
fn form<N: PartialEq + From<u8>>(count: &N, one: &str) -> String {
    if *count == N::from(1) {
        return one.to_owned();
    }
    match one.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        Some(stem) => format!("{stem}ies"),
        None => format!("{one}s"),
    }
}

/// Puts the article before a noun, by its sound: kinds may begin with letters that are spelled out,
/// such as `an HTTPRoute`.
pub fn with_article(word: &str) -> String {
    let article = if sounds_like_a_vowel(word) { "an" } else { "a" };
    format!("{article} {word}")
}

fn sounds_like_a_vowel(word: &str) -> bool {
    let mut letters = word.chars();
    let Some(first) = letters.next() else { return false };
    let is_said_by_letters = first.is_ascii_uppercase()
        && letters.next().is_some_and(|it| it.is_ascii_uppercase() || it.is_ascii_digit());
    if is_said_by_letters {
        return "AEFHILMNORSX".contains(first);
    }
    let small = word.to_lowercase();
    // Pronounced as in "you": a user, a unit.
    let is_long_u = ["uni", "us"].iter().any(|start| small.starts_with(start));
    small.starts_with(['a', 'e', 'i', 'o', 'u']) && !is_long_u
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_written_in_singular() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "object")), ["0 objects", "1 object", "2 objects"]);
        assert_eq!(counted(1_i64, "Sync"), "1 Sync");
        assert_eq!(counted(1_usize, "line"), "1 line");
        assert_eq!([1, 2].map(|count| more(count, "field")), ["1 more field", "2 more fields"]);
        assert_eq!([1, 2].map(|count| more(count, "try")), ["1 more try", "2 more tries"]);
        assert_eq!(counted(2, "key"), "2 keys");
    }

    #[test]
    fn a_word_has_the_article_that_it_sounds_like() {
        for said in [
            "a ConfigMap",
            "a Deployment",
            "a UDPRoute",
            "a User",
            "a Unit",
            "a boolean",
            "an APIService",
            "an Application",
            "an ExternalArtifact",
            "an HTTPRoute",
            "an Ingress",
            "an L2Advertisement",
            "an OCIRepository",
            "an Upgrade",
            "an empty list",
        ] {
            let (_, word) = said.split_once(' ').unwrap();
            assert_eq!(with_article(word), said);
        }
        assert_eq!(with_article(""), "a ");
    }
}
