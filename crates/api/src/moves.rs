//! Hand-over of all objects from one Sync to another, across repositories.
//!
//! In: the value of [`MOVES_TO_ANNOTATION`] and the Sync that carries it.
//! Out: the Sync that receives the objects, if the value names another one.

use super::SyncName;

/// Annotation on a Sync: the Sync that receives its objects, as NAMESPACE/NAME, or NAME in its own
/// namespace. Objects that this Sync no longer claims are not deleted before the receiver has
/// polled its repository.
pub const MOVES_TO_ANNOTATION: &str = "moorline.dev/moves-to";

/// Reads the annotation of `own`; none if the value is invalid or names `own` itself.
pub fn parse_moves_to(text: &str, own: &SyncName) -> Option<SyncName> {
    let (namespace, name) = text.split_once('/').unwrap_or((&own.namespace, text));
    let is_word = |text: &str| {
        !text.is_empty()
            && text.len() <= MAX_NAME
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte))
    };
    let named = (is_word(namespace) && is_word(name)).then(|| SyncName::new(namespace, name));
    named.filter(|named| named != own)
}

/// Maximum number of characters of a name in Kubernetes.
const MAX_NAME: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_sync_is_named_with_its_namespace_or_without() {
        let own = SyncName::new("ops", "shop");
        for (text, expect) in [
            ("new", Some(("ops", "new"))),
            ("ops/new", Some(("ops", "new"))),
            ("team/shop", Some(("team", "shop"))),
            ("team/v1.shop-2", Some(("team", "v1.shop-2"))),
            // A Sync cannot move to itself.
            ("shop", None),
            ("ops/shop", None),
            ("", None),
            ("/", None),
            ("/new", None),
            ("ops/", None),
            ("ops/new/more", None),
            ("Ops/new", None),
            (" new", None),
            ("new\n", None),
            ("\u{202e}new", None),
        ] {
            assert_eq!(parse_moves_to(text, &own), expect.map(|(a, b)| SyncName::new(a, b)), "{text:?}");
        }
        assert_eq!(parse_moves_to(&"a".repeat(MAX_NAME + 1), &own), None);
    }
}
