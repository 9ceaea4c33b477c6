//! Bounds of the memory that the tasks of an idle Sync hold.
//!
//! A future has room for all that it may await, also while it waits for an event for days. So what
//! runs rarely is awaited in a box.

use std::sync::Arc;

use tokio::sync::watch;

use super::Context;
use super::manager::serve_sync;
use super::reconcile::request::ReconcileRequest;
use super::resource::run_worker;
use super::status::StatusRecorder;
use super::status::writer::write_statuses;
use super::worker::run_reconciler;
use crate::api::SyncName;
use crate::cluster::LatestSnapshot;

/// Size of the future that a function of these types returns.
fn size_of_returned<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn an_idle_sync_holds_small_futures() {
    type Snapshots = watch::Receiver<LatestSnapshot>;
    type Requests = watch::Receiver<Arc<ReconcileRequest>>;
    let sizes = [
        (
            "the task of the manager",
            size_of_returned(|(context, name, seen): (Arc<Context>, SyncName, Snapshots)| {
                serve_sync(None, context, name, seen)
            }),
            300,
        ),
        (
            "the worker",
            size_of_returned(|(context, name, seen): (Arc<Context>, SyncName, Snapshots)| {
                run_worker(context, name, seen)
            }),
            2000,
        ),
        (
            "the reconciler",
            size_of_returned(|(context, name, requests): (Arc<Context>, SyncName, Requests)| {
                run_reconciler(context, name, requests, None)
            }),
            4500,
        ),
        (
            "the writer of statuses",
            size_of_returned(|recorder: StatusRecorder| async move { write_statuses(&recorder).await }),
            700,
        ),
        ("the memory", size_of::<super::memory::SyncMemory>(), 3000),
        ("a request", size_of::<ReconcileRequest>(), 1500),
    ];
    sizes.iter().for_each(|(what, size, _)| println!("{what}: {size} bytes"));
    let large: Vec<_> = sizes.iter().filter(|(_, size, most)| size > most).collect();
    assert!(large.is_empty(), "box what runs rarely: {large:?}");
}
