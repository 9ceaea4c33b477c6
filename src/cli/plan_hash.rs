//! The hash of a plan, by which a person recognises the one that was proposed.
//!
//! In: the Sync, the revision and the document of the plan. Out: 16 hex digits, which change with
//! everything that the plan would do.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::api::SyncName;

/// Bytes of the digest that are shown.
const SHOWN_BYTES: usize = 8;

/// Returns the hash of a plan.
pub(super) fn plan_hash(sync: &SyncName, revision: &str, document: &Value) -> String {
    // Keys are sorted, so equal plans are equal texts.
    let whole = json!({"sync": sync.to_string(), "revision": revision, "plan": document});
    let digest = Sha256::digest(whole.to_string().as_bytes());
    digest.iter().take(SHOWN_BYTES).fold(String::new(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_plan_says_is_in_its_hash() {
        let (shop, web) = (SyncName::new("a", "shop"), SyncName::new("a", "web"));
        let (plan, other) = (json!({"stages": []}), json!({"stages": [1]}));
        let hash = plan_hash(&shop, "main@1", &plan);
        assert_eq!(hash, plan_hash(&shop, "main@1", &plan));
        assert_eq!(hash.len(), 2 * SHOWN_BYTES);
        for changed in [
            plan_hash(&web, "main@1", &plan),
            plan_hash(&shop, "main@2", &plan),
            plan_hash(&shop, "main@1", &other),
        ] {
            assert_ne!(hash, changed);
        }
    }
}
