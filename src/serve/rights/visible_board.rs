//! Removes from the board what a person may not read.
//!
//! In: the board, and the namespaces in which the person may `get` Syncs. Out: the board with their
//! Syncs alone, and a version that changes only with them: even the number of hidden changes stays
//! hidden.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::report::board::StatusBoard;

/// Factor of the version's hash.
const FACTOR: u64 = 1_000_003;

/// The namespaces in which a person may read Syncs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadableNamespaces {
    /// All of them.
    All,
    /// These.
    Only(BTreeSet<String>),
}

impl ReadableNamespaces {
    /// True if Syncs of this namespace may be read.
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(namespaces) => namespaces.contains(namespace),
        }
    }
}

/// Returns what may be seen of a board.
pub fn visible_board(board: &Arc<StatusBoard>, readable: &ReadableNamespaces) -> Arc<StatusBoard> {
    let ReadableNamespaces::Only(namespaces) = readable else { return board.clone() };
    let is_visible = |name: &&crate::api::SyncName| namespaces.contains(&*name.namespace);
    let cards = board.cards.iter().filter(|(name, _)| is_visible(name));
    let cards: BTreeMap<_, _> = cards.map(|(name, card)| (name.clone(), card.clone())).collect();
    // Of clusters that none of these Syncs names, nothing is known either.
    let named: BTreeSet<&str> = cards.values().map(|card| card.cluster()).collect();
    let clusters = board.clusters.iter().filter(|(name, _)| named.contains(&***name));
    let clusters: BTreeMap<_, _> = clusters.map(|(name, facts)| (name.clone(), facts.clone())).collect();
    let of_clusters = clusters.values().map(|facts| facts.version);
    let versions = cards.values().map(|card| card.version).chain(of_clusters);
    let version = versions.fold(cards.len() as u64, |all, one| all.wrapping_mul(FACTOR).wrapping_add(one));
    let (role, term_began) = (board.role.clone(), board.term_began);
    Arc::new(StatusBoard { version, role, cards, clusters, viewer: None, term_began })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{SyncName, SyncStatus};
    use crate::report::board::{ClusterFacts, SourceSummary, SyncCard};

    fn card(namespace: &str, name: &str, depends_on: &[(&str, &str)]) -> SyncCard {
        let depends_on = depends_on.iter().map(|(namespace, name)| SyncName::new(namespace, name)).collect();
        SyncCard::of_resource(
            SyncName::new(namespace, name),
            Arc::new(SourceSummary { depends_on, ..SourceSummary::default() }),
            SyncStatus::default(),
        )
    }

    #[test]
    fn only_syncs_of_readable_namespaces_are_seen_with_their_dependents_and_versions() {
        let mut board = StatusBoard::default();
        board.update_card(card("shop", "web", &[]));
        board.update_card(card("shop", "cart", &[("shop", "web")]));
        board.update_card(card("pay", "ledger", &[("shop", "web")]));
        let before = Arc::new(board.clone());
        board.update_card(card("pay", "ledger", &[]));
        let after = Arc::new(board);
        let only = |all: &[&str]| ReadableNamespaces::Only(all.iter().map(|&one| one.to_owned()).collect());
        for (readable, names, dependents, is_told) in [
            (ReadableNamespaces::All, vec!["pay/ledger", "shop/cart", "shop/web"], 2, true),
            (only(&["shop"]), vec!["shop/cart", "shop/web"], 1, false),
            (only(&["pay", "none"]), vec!["pay/ledger"], 1, true),
            (only(&[]), vec![], 0, false),
        ] {
            let seen = visible_board(&before, &readable);
            let found: Vec<String> = seen.cards.keys().map(ToString::to_string).collect();
            assert_eq!(found, names, "{readable:?}");
            assert_eq!(seen.dependents(&SyncName::new("shop", "web")).count(), dependents, "{readable:?}");
            let later = visible_board(&after, &readable);
            assert_eq!(later.version != seen.version, is_told, "{readable:?}");
            assert_eq!(readable.contains("pay"), names.contains(&"pay/ledger"));
        }
    }

    #[test]
    fn clusters_of_syncs_that_may_not_be_read_are_not_seen_and_their_outages_change_no_version() {
        let mut board = StatusBoard::default();
        for (namespace, cluster) in [("shop", "shop/east"), ("pay", "pay/west")] {
            let source = SourceSummary { cluster: Some(cluster.into()), ..SourceSummary::default() };
            let name = SyncName::new(namespace, "web");
            board.update_card(SyncCard::of_resource(name, Arc::new(source), SyncStatus::default()));
            board.set_cluster(cluster, ClusterFacts::default());
        }
        let only = |name: &str| ReadableNamespaces::Only([name.to_owned()].into());
        let before = Arc::new(board.clone());
        let seen = |board: &Arc<StatusBoard>, name| visible_board(board, &only(name));
        for (namespace, clusters) in [("shop", &["shop/east"][..]), ("pay", &["pay/west"]), ("none", &[])] {
            let seen = seen(&before, namespace);
            assert_eq!(seen.clusters.keys().map(|name| &**name).collect::<Vec<_>>(), clusters);
            let rows = seen.summarize_clusters();
            assert_eq!(rows.iter().map(|row| &*row.name).collect::<Vec<_>>(), clusters);
        }
        let facts = ClusterFacts { release: Some("v1.36.3".into()), ..ClusterFacts::default() };
        board.set_cluster("pay/west", facts.clone());
        let after = Arc::new(board.clone());
        assert_eq!(seen(&after, "shop").version, seen(&before, "shop").version);
        assert_ne!(seen(&after, "pay").version, seen(&before, "pay").version);
        board.set_cluster("pay/west", facts);
        assert_eq!(board.version, after.version, "the same facts are no change");
    }
}
