//! Decides the part of the board that Kubernetes lets a person read.
//!
//! In: the board, a viewer, and the access reviews. Out: a board with the Syncs of the namespaces
//! in which the person may `get` Syncs. Questions are about namespaces and kinds, never about
//! single objects.

mod hidden_content;
mod shared_boards;
mod stream;
mod visible_board;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::mpsc;

use super::actions::ActionRequest;
use super::viewer::{AccessQuestion, AccessReviews, Viewer};
use crate::report::board::StatusBoard;
pub(super) use hidden_content::HiddenContent;
pub(super) use shared_boards::SharedBoards;
pub(super) use stream::StreamRights;
pub use visible_board::{ReadableNamespaces, visible_board};

/// The longest time that a decision about a right is kept, and the interval at which a stream asks
/// for it again. A right that has ended counts for twice that at most.
pub const DECISION_AGE: Duration = Duration::from_secs(5);
/// Verbs of people on Syncs, besides those of all kinds.
const VERBS: [&str; 4] = ["sync", "suspend", "approve", "rollback"];
/// Reviews for one page at the same time.
const SIDE_BY_SIDE: usize = 8;

/// Access of people to the console.
#[derive(Debug, Clone)]
pub struct ConsoleAccess {
    /// Asks for rights.
    pub reviews: AccessReviews,
    /// The task that writes.
    pub actions: mpsc::Sender<ActionRequest>,
}

impl ConsoleAccess {
    /// The namespaces of the board in which a person may read Syncs. Someone who may read all needs
    /// one review.
    pub(super) async fn readable(
        &self,
        viewer: &Viewer,
        board: &StatusBoard,
    ) -> Result<ReadableNamespaces, String> {
        if board.cards.is_empty() {
            return Ok(ReadableNamespaces::Only(BTreeSet::new()));
        }
        let everywhere = AccessQuestion { namespace: None, ..AccessQuestion::sync("get", "") };
        if self.reviews.is_allowed(viewer, everywhere).await? {
            return Ok(ReadableNamespaces::All);
        }
        let namespaces: BTreeSet<String> =
            board.cards.keys().map(|name| name.namespace.to_string()).collect();
        let asked = namespaces.into_iter().map(|namespace| {
            let question = AccessQuestion::sync("get", &namespace);
            async move { (namespace, self.reviews.is_allowed(viewer, question).await) }
        });
        let decisions: Vec<_> = futures::stream::iter(asked).buffer_unordered(SIDE_BY_SIDE).collect().await;
        let mut readable = BTreeSet::new();
        for (namespace, may) in decisions {
            if may? {
                readable.insert(namespace);
            }
        }
        Ok(ReadableNamespaces::Only(readable))
    }

    /// The board that a person may see. No answer is a refusal.
    pub(super) async fn visible(
        &self,
        viewer: &Viewer,
        board: &Arc<StatusBoard>,
    ) -> Result<Arc<StatusBoard>, String> {
        let readable = self.readable(viewer, board).await?;
        Ok(visible_board(board, &readable))
    }

    /// The verbs on the Syncs of a namespace that the person has.
    pub(super) async fn verbs(&self, viewer: &Viewer, namespace: &str) -> BTreeSet<&'static str> {
        let asked = VERBS.map(|verb| async move {
            let may = self.reviews.is_allowed(viewer, AccessQuestion::sync(verb, namespace)).await;
            (may == Ok(true)).then_some(verb)
        });
        futures::future::join_all(asked).await.into_iter().flatten().collect()
    }
}
