//! Removes from the board what a person may not read.
//!
//! In: the board, and the namespaces in which the person may `get` Syncs. Out: the board with their
//! Syncs alone, and a version that changes only with them: even the number of hidden changes stays
//! hidden.

use std::collections::BTreeSet;
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
    let cards: std::collections::BTreeMap<_, _> =
        cards.map(|(name, card)| (name.clone(), card.clone())).collect();
    let versions = cards.values().map(|card| card.version);
    let version = versions.fold(cards.len() as u64, |all, one| all.wrapping_mul(FACTOR).wrapping_add(one));
    Arc::new(StatusBoard { version, role: board.role.clone(), cards, viewer: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{SyncName, SyncStatus};
    use crate::report::board::{SourceSummary, SyncCard};

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
}
