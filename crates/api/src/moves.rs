//! Hand-over of all objects from one Sync to another, across repositories.
//!
//! In: the value of [`MOVES_TO_ANNOTATION`] and the Sync that carries it.
//! Out: the Sync that receives the objects, if the value names another one.

use super::SyncName;
use moorline_core::name_rules::{is_dns_label, is_dns_subdomain};

/// Annotation on a Sync: the Sync that receives its objects, as NAMESPACE/NAME, or NAME in its own
/// namespace. Objects that this Sync no longer claims are not deleted before the receiver has
/// polled its repository.
pub const MOVES_TO_ANNOTATION: &str = "moorline.dev/moves-to";

/// Reads the annotation of `own`; none if the value is invalid or names `own` itself.
pub fn parse_moves_to(text: &str, own: &SyncName) -> Option<SyncName> {
    let (namespace, name) = text.split_once('/').unwrap_or((&own.namespace, text));
    let is_sync = is_dns_label(namespace) && is_dns_subdomain(name);
    let named = is_sync.then(|| SyncName::new(namespace, name));
    named.filter(|named| named != own)
}

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
            ("ops/-new", None),
            ("o.p.s/new", None),
            ("Ops/new", None),
            (" new", None),
            ("new\n", None),
            ("\u{202e}new", None),
        ] {
            assert_eq!(parse_moves_to(text, &own), expect.map(|(a, b)| SyncName::new(a, b)), "{text:?}");
        }
        assert_eq!(parse_moves_to(&"a".repeat(254), &own), None);
    }
}
