//! Claims of other Syncs on the objects of a Sync that is being deleted.
//!
//! In: the Sync that is being deleted, and the state of all others.
//! Out: their claims on its objects.
//!
//! An object that another Sync claims is not deleted. Neither is an object that a Sync may
//! claim which has not read the newest commit of the same repository, or to which this Sync moves
//! its objects.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

use crate::api::SyncName;
use crate::cluster::LiveSync;
use crate::controller::Context;
use crate::controller::peers::claims::{Claims, LeftObjects, UnknownRight};
use crate::controller::peers::latest_revisions::source_key;
use crate::controller::spec::ValidatedSpec;
use crate::controller::spec::identity::login_owner;
use crate::observed::ObservedSet;
use crate::source::ObjectHash;

/// Length of the commit hash at the end of a revision; peers are compared by it.
const HASH_DIGITS: usize = 40;

/// Returns the claims of others on the objects of a Sync whose deletion began at `begun`.
pub(crate) fn claims(
    context: &Context,
    name: &SyncName,
    (valid_spec, sync): (&ValidatedSpec, &Value),
    observed: &ObservedSet,
    begun: Instant,
) -> Result<Claims, Vec<UnknownRight>> {
    let peers = &context.peers;
    let at = newest(context, name, valid_spec).or_else(|| last_seen_commit(sync)).or_else(null_commit);
    // No Sync waits for one that is being deleted, so it is registered only during this query.
    if let Some(at) = at {
        peers.set_source(name, &valid_spec.address, &valid_spec.reference, false);
        peers.set_rendered_commit(name, at);
    }
    let moves_to = LiveSync::of(sync).moves_to;
    let leaves = LeftObjects {
        left: &BTreeMap::new(),
        begun: Some(begun),
        moves_to: moves_to.as_deref(),
        term: context.cluster.terms().term_started_at(),
    };
    let claims = context.peers.claims(name, observed.iter().map(|(id, _)| id), leaves);
    peers.mark_deleting(name);
    claims
}

/// Returns the newest commit that another Sync of the repository has seen: the others move on while
/// this Sync stays at its commit.
fn newest(context: &Context, name: &SyncName, valid_spec: &ValidatedSpec) -> Option<ObjectHash> {
    let owner = login_owner(valid_spec, &name.namespace);
    let key = source_key((&valid_spec.address, &valid_spec.reference), &owner);
    let head = context.sources.heads.channel(key);
    head.borrow().as_ref().map(|seen| seen.revision.commit)
}

/// Returns the newest commit that this Sync has seen, from its status.
fn last_seen_commit(sync: &Value) -> Option<ObjectHash> {
    let seen = sync.pointer("/status/revision/seen")?.as_str()?;
    ObjectHash::parse(seen.get(seen.len().checked_sub(HASH_DIGITS)?..)?)
}

/// Returns the null commit, at which no Sync is.
fn null_commit() -> Option<ObjectHash> {
    ObjectHash::parse(&"0".repeat(HASH_DIGITS))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_commit_is_read_from_a_status() {
        let hash = "0123456789abcdef0123456789abcdef01234567";
        let seen = |text: String| last_seen_commit(&json!({"status": {"revision": {"seen": text}}}));
        let expect = ObjectHash::parse(hash);
        assert!(expect.is_some());
        assert_eq!(seen(hash.to_owned()), expect);
        assert_eq!(seen(format!("main@{hash}")), expect);
        assert_eq!(seen("main@0123".to_owned()), None);
        assert_eq!(last_seen_commit(&json!({})), None);
    }
}
