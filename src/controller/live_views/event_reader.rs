//! Reads the Events about a Sync, its objects and what they own.
//!
//! In: a Sync and its tree. Out: [`EventList`]. The Events of a namespace are listed once for all
//! viewers.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::timeout_at;

use super::{LiveViews, MAX_LISTED, ReadBudget, cut, discovered, left_out, postponed};
use crate::api::SyncName;
use crate::cluster::viewer::{ListBounds, ListForm, ListScope, list_for_viewer};
use crate::object::GroupKind;
use crate::report::live_tree::{EventList, EventRow, EventSelection, LeftOut, LiveTree};

/// The most namespaces whose Events are read.
const MAX_NAMESPACES: usize = 20;
/// Namespace of the Events about objects without one.
const OF_THE_CLUSTER: &str = "default";

/// Reads the Events of a Sync.
pub(super) async fn read_events(
    views: &LiveViews,
    sync: &SyncName,
    tree: Arc<LiveTree>,
) -> Result<EventList, String> {
    let unknown = || "this daemon does not know the objects of the Sync now".to_owned();
    let (_, cluster) = views.context.peers.view(sync).ok_or_else(unknown)?;
    discovered(&cluster).await?;
    let named = tree.nodes.iter().map(|node| node.id.namespace().unwrap_or(OF_THE_CLUSTER));
    let namespaces: BTreeSet<&str> = named.chain([&*sync.namespace]).collect();
    let kind = GroupKind::new("", "Event");
    let selection = EventSelection::new(sync, &tree);
    let (budget, mut missing) = (ReadBudget::new(), Vec::new());
    let mut rows: Vec<EventRow> = Vec::new();
    if namespaces.len() > MAX_NAMESPACES {
        missing.push(LeftOut {
            kind: format!("{} namespaces", namespaces.len() - MAX_NAMESPACES),
            namespace: String::new(),
            reason: format!("are not read: Events are read in at most {MAX_NAMESPACES} namespaces"),
        });
    }
    for namespace in namespaces.into_iter().take(MAX_NAMESPACES) {
        if !views.lists.take() {
            missing.push(postponed(&kind, namespace));
            continue;
        }
        let scope = ListScope { kind: &kind, namespace, only: None };
        let bounds = ListBounds { objects: MAX_LISTED, bytes: budget.left() };
        let take = |body| rows.extend(selection.select(&body));
        let list = list_for_viewer(&cluster, scope, ListForm::Events, bounds, take);
        match timeout_at(budget.deadline, list).await {
            Ok(Ok(end)) => {
                budget.spend(end.bytes);
                missing.extend(end.is_cut.then(|| cut(&kind, namespace)));
            }
            Ok(Err(failure)) => missing.push(left_out(&kind, namespace, Some(&failure))),
            Err(_) => missing.push(left_out(&kind, namespace, None)),
        }
    }
    Ok(EventList::new(rows, missing, Timestamp::now()))
}
