//! Reads the tree of a Sync: metadata of the kinds that its objects can own, by namespace; whole
//! Pods, Jobs and claims, because their status is shown.
//!
//! In: a Sync. Out: [`LiveTree`]. A kind that may not be listed is named in it.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, PoisonError};

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use tokio::time::timeout_at;

use super::{LiveViews, MAX_LISTED, ReadBudget, SIDE_BY_SIDE, cut, discovered, left_out, postponed};
use crate::api::SyncName;
use crate::cluster::Cluster;
use crate::cluster::viewer::{ListBounds, ListForm, ListScope, list_for_viewer};
use crate::desired::Scope;
use crate::object::{GroupKind, ObjectId};
use crate::report::live_tree::{
    LeftOut, ListedObject, LiveTree, MAX_NODES, RootObject, WantedList, build_tree, plan_reads, read_listed,
};

/// The most listed objects that are kept until the tree is built.
const MAX_CANDIDATES: usize = 4 * MAX_NODES;

/// Collects the results of lists.
#[derive(Default)]
struct Collected {
    objects: Vec<ListedObject>,
    left_out: Vec<LeftOut>,
}

/// Reads the tree of a Sync.
pub(super) async fn read_tree(views: &LiveViews, sync: &SyncName) -> Result<LiveTree, String> {
    let (roots, cluster) = roots(views, sync)?;
    discovered(&cluster).await?;
    let kinds = cluster.kinds();
    let served: BTreeSet<GroupKind> = kinds
        .iter()
        .filter(|(_, served)| served.scope == Scope::Namespaced)
        .map(|(kind, _)| kind.clone())
        .collect();
    let ids: Vec<ObjectId> = roots.iter().map(|root| root.id.clone()).collect();
    let plan = plan_reads(&ids, &served);
    let (budget, own) = (ReadBudget::new(), ids.iter().collect::<HashSet<_>>());
    let collected = Mutex::new(Collected { left_out: plan.left_out, ..Collected::default() });
    let read = |list| {
        let read = read_list((views, &cluster, sync), list, &budget, &own, &collected);
        read.map(|reason| lock(&collected).left_out.extend(reason)).boxed()
    };
    let lists: Vec<BoxFuture<'_, ()>> = plan.lists.iter().map(read).collect();
    futures::stream::iter(lists).buffer_unordered(SIDE_BY_SIDE).collect::<()>().await;
    let Collected { objects, left_out } = collected.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(build_tree(roots, objects, left_out, Timestamp::now()))
}

/// Returns the objects of a Sync, and the cluster with its identity.
fn roots(views: &LiveViews, sync: &SyncName) -> Result<(Vec<RootObject>, Cluster), String> {
    let unknown = || "this daemon does not know the objects of the Sync now".to_owned();
    let board = views.context.reporting.board.watch().borrow().clone();
    let card = board.cards.get(sync).ok_or_else(unknown)?;
    let (set, cluster) = views.context.peers.view(sync).ok_or_else(unknown)?;
    let ids: Vec<ObjectId> = card.objects.rows().take(MAX_NODES + 1).map(|row| row.id.clone()).collect();
    let uids: Vec<Option<Box<str>>> = cluster.read_observed(sync, |observed| {
        ids.iter().map(|id| observed.get(id).map(|seen| seen.uid.clone())).collect()
    });
    let roots = ids.into_iter().zip(uids).map(|(id, uid)| {
        let is_hidden = set.get(&id).is_none_or(|wanted| wanted.is_tainted());
        RootObject { hidden: is_hidden || id.is_kind("", "Secret"), id, uid }
    });
    Ok((roots.collect(), cluster))
}

/// Reads one list. Returns the reason if something of it is missing.
async fn read_list(
    (views, cluster, sync): (&LiveViews, &Cluster, &SyncName),
    list: &WantedList,
    budget: &ReadBudget,
    own: &HashSet<&ObjectId>,
    collected: &Mutex<Collected>,
) -> Option<LeftOut> {
    let (kind, namespace) = (&list.kind, &*list.namespace);
    if !views.lists.take() {
        return Some(postponed(kind, namespace));
    }
    let scope = ListScope { kind, namespace, only: list.only_own.then_some(sync) };
    let form = if list.whole { ListForm::Whole } else { ListForm::Metadata };
    let bounds = ListBounds { objects: MAX_LISTED, bytes: budget.left() };
    let mut is_full = false;
    let take = |body: serde_json::Map<String, serde_json::Value>| {
        let Some(object) = read_listed(kind, &body, list.whole) else { return };
        if object.owners.is_empty() && !own.contains(&object.id) {
            return;
        }
        let mut collected = lock(collected);
        is_full |= collected.objects.len() >= MAX_CANDIDATES;
        if !is_full {
            collected.objects.push(object);
        }
    };
    let read = timeout_at(budget.deadline, list_for_viewer(cluster, scope, form, bounds, take)).await;
    match read {
        Ok(Ok(end)) => {
            budget.spend(end.bytes);
            (end.is_cut || is_full).then(|| cut(kind, namespace))
        }
        Ok(Err(failure)) => Some(left_out(kind, namespace, Some(&failure))),
        Err(_) => Some(left_out(kind, namespace, None)),
    }
}

fn lock(collected: &Mutex<Collected>) -> std::sync::MutexGuard<'_, Collected> {
    collected.lock().unwrap_or_else(PoisonError::into_inner)
}
