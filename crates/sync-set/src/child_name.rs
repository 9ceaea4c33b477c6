//! The name of a Sync of a set: a fixed rule.
//!
//! In: the name of the set, and the text that its expression gives.
//! Out: a DNS name of at most 52 characters. Where the text had to be changed or cut, a hash of the
//! whole text follows, so that different texts have different names.

use crate::hash;

/// Maximum number of characters of the name of a Sync.
const MAX_NAME: usize = 52;
/// Number of bytes of the hash in a name.
const HASH_BYTES: usize = 4;

/// Returns the name of the Sync of a set with this text; none for a text without letters and
/// digits, or if the set's own name leaves no room.
pub(crate) fn child_name(set: &str, text: &str) -> Option<String> {
    let is_plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit();
    let lower = text.to_ascii_lowercase();
    let dashed: String = lower.chars().map(|char| if is_plain(char) { char } else { '-' }).collect();
    let plain = dashed.trim_matches('-');
    if plain.is_empty() {
        return None;
    }
    let room = MAX_NAME.checked_sub(set.len() + 1)?;
    if plain == text && plain.len() <= room {
        return Some(format!("{set}-{plain}"));
    }
    let kept = room.checked_sub(HASH_BYTES * 2 + 1).filter(|kept| *kept > 0)?;
    let start = plain[..plain.len().min(kept)].trim_end_matches('-');
    Some(format!("{set}-{start}-{}", hash(text, HASH_BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_or_long_text_gets_a_hash() {
        for (text, expect) in [
            ("shop", Some("apps-shop".to_owned())),
            ("shop-1", Some("apps-shop-1".to_owned())),
            ("Shop", Some(format!("apps-shop-{}", hash("Shop", 4)))),
            ("a/b", Some(format!("apps-a-b-{}", hash("a/b", 4)))),
            ("a_b", Some(format!("apps-a-b-{}", hash("a_b", 4)))),
            ("é", None),
            ("--", None),
            ("", None),
        ] {
            assert_eq!(child_name("apps", text), expect, "{text}");
        }
        let long = child_name("apps", &"x".repeat(60)).unwrap();
        assert_eq!(long.len(), 52);
        assert_ne!(long, child_name("apps", &"x".repeat(61)).unwrap());
        assert_eq!(child_name(&"s".repeat(52), "a"), None);
    }
}
