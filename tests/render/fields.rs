//! Laws of every set of fields, over sets made by chance. `PROPTEST_CASES` sets how many.

use moorline::fields::{FieldPath, FieldSet};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};
use serde_json::{Map, Value, json};

/// Chance is seeded, so that a run can be had again; more cases look further.
fn config() -> Config {
    Config {
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(0x6669_656c),
        failure_persistence: None,
        ..Config::default()
    }
}

/// Keys that often meet, and now and then one that means nothing.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "f:[a-c]",
        1 => Just("f:moorline.dev/id".to_owned()),
        2 => (0..2u8, any::<bool>()).prop_map(|(port, turned)| match turned {
            true => format!("k:{{\"protocol\":\"TCP\",\"port\":{port}}}"),
            false => format!("k:{{\"port\":{port},\"protocol\":\"TCP\"}}"),
        }),
        1 => (0..2u8).prop_map(|at| format!("v:{at}")),
        1 => "v:\"[a-b]\"",
        1 => (0..2u8).prop_map(|at| format!("i:{at}")),
        1 => ".{0,3}",
    ]
}

fn fields() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![8 => Just(json!({})), 1 => Just(json!(null)), 1 => Just(json!([1]))];
    leaf.prop_recursive(5, 40, 4, |inner| {
        (prop::collection::btree_map(key(), inner, 0..4), any::<bool>()).prop_map(|(children, owned)| {
            let mut fields: Map<String, Value> = children.into_iter().collect();
            if owned {
                fields.insert(".".to_owned(), json!({}));
            }
            Value::Object(fields)
        })
    })
}

fn set() -> impl Strategy<Value = FieldSet> {
    fields().prop_map(|fields| FieldSet::parse(&fields))
}

/// The same JSON with the keys of every mapping in another order.
fn turned(fields: &Value) -> String {
    match fields {
        Value::Object(map) => {
            let inner = map.iter().rev();
            let inner: Vec<_> =
                inner.map(|(key, value)| format!("{}:{}", json!(key), turned(value))).collect();
            format!("{{{}}}", inner.join(","))
        }
        other => other.to_string(),
    }
}

proptest! {
    #![proptest_config(config())]

    /// The bytes give back the set, and equal sets have equal digests.
    #[test]
    fn bytes_give_back_the_set(one in set(), other in set()) {
        prop_assert_eq!(FieldSet::from_bytes(&one.to_bytes()), Some(one.clone()));
        prop_assert_eq!(one == other, one.digest() == other.digest());
    }

    /// The order of keys makes no difference.
    #[test]
    fn the_order_of_keys_makes_no_difference(fields in fields()) {
        let again: Value = serde_json::from_str(&turned(&fields)).expect("JSON");
        let (one, other) = (FieldSet::parse(&fields), FieldSet::parse(&again));
        prop_assert_eq!(one.digest(), other.digest());
        prop_assert_eq!(one.to_bytes(), other.to_bytes());
    }

    /// A set is what it has alone and what it shares.
    #[test]
    fn a_set_is_what_it_has_alone_and_what_it_shares(one in set(), other in set()) {
        let (alone, shared) = (one.minus(&other), one.intersect(&other));
        prop_assert_eq!(&alone.union(&shared), &one);
        prop_assert!(alone.intersect(&other).is_empty());
        prop_assert!(alone.intersect(&shared).is_empty());
        prop_assert_eq!(&shared, &other.intersect(&one));
        prop_assert_eq!(&one.minus(&shared), &alone);
        prop_assert!(one.minus(&one).is_empty());
        prop_assert_eq!(&one.minus(&FieldSet::default()), &one);
        prop_assert_eq!(&one.intersect(&one), &one);
        prop_assert_eq!(&one.union(&other), &other.union(&one));
        for path in one.owned_paths() {
            prop_assert_eq!(alone.contains(&path), !other.contains(&path));
            prop_assert_eq!(shared.contains(&path), other.contains(&path));
        }
    }

    /// The paths are those of the set: all of them make it, the outermost hold all, and the innermost are in all.
    #[test]
    fn the_paths_are_those_of_the_set(one in set()) {
        let (members, outermost, innermost) = (one.owned_paths(), one.outermost(), one.leaf_paths());
        prop_assert_eq!(&FieldSet::from_paths(&members), &one);
        let inside = |path: &FieldPath, paths: &[FieldPath]| paths.iter().any(|other| path.starts_with(other));
        for path in &members {
            prop_assert!(one.contains(path) && one.contains_or_below(path));
            prop_assert!(inside(path, &outermost));
            prop_assert!(innermost.iter().any(|other| other.starts_with(path)));
            // Nothing that is shown is empty.
            prop_assert!(!path.to_string().is_empty() && !path.server_form().is_empty());
        }
        prop_assert_eq!(one.is_empty(), members.is_empty());
    }

    /// Bytes that nobody wrote are refused or read, and nothing worse.
    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..60), one in set(), at in any::<prop::sample::Index>(), with in any::<u8>()) {
        let _ = FieldSet::from_bytes(&bytes);
        let mut broken = one.to_bytes();
        let at = at.index(broken.len());
        broken[at] = with;
        let _ = FieldSet::from_bytes(&broken);
    }
}
