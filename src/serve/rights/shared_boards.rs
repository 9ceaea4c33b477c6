//! Parts of the board that several viewers see: made once for all who may see the same namespaces.
//!
//! In: the board, and the namespaces of a viewer. Out: what may be seen. Parts are kept for the
//! newest board alone, and no more than [`MAX_PARTS`] of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::visible_board::{ReadableNamespaces, visible_board};
use crate::report::board::StatusBoard;

/// The most parts that are kept.
const MAX_PARTS: usize = 32;

/// Parts by namespaces.
type Parts = BTreeMap<BTreeSet<String>, Arc<StatusBoard>>;

/// The parts of one board.
#[derive(Debug, Default)]
pub(in crate::serve) struct SharedBoards(Mutex<(Arc<StatusBoard>, Parts)>);

impl SharedBoards {
    /// Returns what may be seen of a board.
    pub(in crate::serve) fn visible(
        &self,
        board: &Arc<StatusBoard>,
        readable: &ReadableNamespaces,
    ) -> Arc<StatusBoard> {
        let ReadableNamespaces::Only(namespaces) = readable else { return board.clone() };
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&shared.0, board) {
            *shared = (board.clone(), Parts::new());
        }
        if let Some(part) = shared.1.get(namespaces) {
            return part.clone();
        }
        let part = visible_board(board, readable);
        if shared.1.len() < MAX_PARTS {
            shared.1.insert(namespaces.clone(), part.clone());
        }
        part
    }
}
