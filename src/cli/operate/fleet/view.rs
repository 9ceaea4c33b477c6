//! The fleet as text and as JSON.
//!
//! In: what was read of each context. Out: a table of clusters; then a matrix with a row for each
//! Sync and a column for each cluster, or a list where a matrix would not fit.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::super::ready;
use super::super::table::table;
use super::contexts::{ContextFailure, ContextView};
use crate::api::{SyncName, short_revision};
use crate::cluster::SyncResource;
use crate::report::board::{
    ClusterFacts, ClusterState, ClusterSummary, HOME_CLUSTER, SyncState, named_cluster, summarize_clusters,
};

/// The most columns of clusters; with more of them, Syncs are listed line by line.
const MAX_COLUMNS: usize = 8;
/// Text of an empty cell in a table.
const NONE: &str = "-";

/// Context and name of a cluster.
type Place<'a> = (Option<&'a str>, Box<str>);

/// All clusters and Syncs.
pub(super) struct Fleet<'a> {
    clusters: Vec<(Option<&'a str>, ClusterSummary)>,
    /// The Syncs of each name, in the order of the clusters.
    rows: BTreeMap<&'a SyncName, Vec<(Place<'a>, &'a SyncResource)>>,
}

impl<'a> Fleet<'a> {
    pub(super) fn new(views: &'a [ContextView]) -> Self {
        let (mut clusters, mut rows) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
        for view in views {
            let context = view.context.as_deref();
            clusters.extend(summaries(view).into_iter().map(|summary| (context, summary)));
            for sync in view.syncs.iter().flatten() {
                rows.entry(&sync.name).or_default().push(((context, cluster_of(sync)), sync));
            }
        }
        Self { clusters, rows }
    }

    /// The tables.
    pub(super) fn text(&self) -> String {
        let named = self.clusters.iter().any(|(context, _)| context.is_some());
        let head = ["CONTEXT", "CLUSTER", "STATE", "VERSION", "SYNCS", "STATES", "MESSAGE"];
        let skip = usize::from(!named);
        let mut lines = vec![head[skip..].iter().map(|&title| title.to_owned()).collect()];
        for (context, cluster) in &self.clusters {
            let states = cluster.syncs.iter().map(|(state, count)| format!("{count} {}", state.label()));
            let states = states.collect::<Vec<_>>().join(", ");
            let state = match &cluster.since {
                Some(since) => format!("{} since {}", cluster.state.label(), since.0),
                None => cluster.state.label().to_owned(),
            };
            let cells = [
                context.unwrap_or(NONE).to_owned(),
                cluster.name.to_string(),
                state,
                cluster.release.as_deref().unwrap_or(NONE).to_owned(),
                cluster.total().to_string(),
                if states.is_empty() { NONE.to_owned() } else { states },
                cluster.message.lines().collect::<Vec<_>>().join(" "),
            ];
            lines.push(cells[skip..].to_vec());
        }
        let syncs = self.syncs();
        if syncs.len() > 1 { format!("{}\n{}", table(&lines), table(&syncs)) } else { table(&lines) }
    }

    /// The lines about Syncs, with their head.
    fn syncs(&self) -> Vec<Vec<String>> {
        let mut places: Vec<&Place<'_>> = Vec::new();
        let with_syncs: BTreeSet<&Place<'_>> = self.rows.values().flatten().map(|(place, _)| place).collect();
        for (context, cluster) in &self.clusters {
            let here = (*context, cluster.name.clone());
            places.extend(with_syncs.get(&here).copied());
        }
        let is_matrix = places.len() <= MAX_COLUMNS && self.rows.values().any(|cells| cells.len() > 1);
        if !is_matrix {
            let mut lines = vec![["SYNC", "CLUSTER", "REVISION"].map(str::to_owned).to_vec()];
            for (name, cells) in &self.rows {
                let of_clusters = cells.iter();
                lines.extend(
                    of_clusters.map(|(place, sync)| vec![name.to_string(), label(place), cell(sync)]),
                );
            }
            return lines;
        }
        let titles = places.iter().map(|place| label(place));
        let mut lines = vec![["SYNC", "SAME"].map(str::to_owned).into_iter().chain(titles).collect()];
        for (name, cells) in &self.rows {
            let same = if has_one_revision(cells) { "yes" } else { "no" };
            let mut line = vec![name.to_string(), same.to_owned()];
            for place in &places {
                let here = cells.iter().find(|(known, _)| known == *place);
                line.push(here.map_or_else(|| NONE.to_owned(), |(_, sync)| cell(sync)));
            }
            lines.push(line);
        }
        lines
    }

    /// The same as JSON.
    pub(super) fn data(&self) -> Value {
        let clusters = self.clusters.iter().map(|(context, cluster)| {
            let states = cluster.syncs.iter().map(|(state, count)| (state.label().into(), (*count).into()));
            let message = Some(&cluster.message).filter(|message| !message.is_empty());
            json!({
                "context": context, "name": cluster.name, "state": cluster.state.label(),
                "since": cluster.since, "message": message, "serverVersion": cluster.release,
                "syncs": cluster.total(), "states": states.collect::<Map<_, _>>(),
            })
        });
        let syncs = self.rows.iter().map(|(name, cells)| {
            let of_clusters = cells.iter().map(|((context, cluster), sync)| {
                let (ready, reason, message) = ready(&sync.status);
                json!({
                    "context": context, "cluster": cluster, "revision": revision(sync),
                    "state": SyncState::from_status(&sync.status).label(), "ready": ready, "reason": reason,
                    "message": message, "drifted": sync.status.objects.unwrap_or_default().drifted,
                })
            });
            json!({
                "namespace": name.namespace, "name": name.name, "sameRevision": has_one_revision(cells),
                "cells": of_clusters.collect::<Vec<_>>(),
            })
        });
        json!({"clusters": clusters.collect::<Vec<_>>(), "syncs": syncs.collect::<Vec<_>>()})
    }
}

/// The clusters of a context; one that could not be read is its home cluster, with the reason.
fn summaries(view: &ContextView) -> Vec<ClusterSummary> {
    let facts = || ClusterFacts { release: view.release.clone(), ..ClusterFacts::default() };
    let empty = || ClusterSummary {
        name: HOME_CLUSTER.into(),
        state: ClusterState::Reachable,
        since: None,
        message: String::new(),
        release: view.release.clone(),
        syncs: BTreeMap::new(),
    };
    let syncs = match &view.syncs {
        Ok(syncs) => syncs,
        Err(ContextFailure(state, message)) => {
            return vec![ClusterSummary { state: *state, message: message.clone(), ..empty() }];
        }
    };
    let named: Vec<(Box<str>, &SyncResource)> = syncs.iter().map(|sync| (cluster_of(sync), sync)).collect();
    let members = named.iter().map(|(cluster, sync)| (&**cluster, &sync.status));
    let mut all = summarize_clusters(members, |name| (name == HOME_CLUSTER).then(facts));
    if all.first().is_none_or(|first| &*first.name != HOME_CLUSTER) {
        all.insert(0, empty());
    }
    all
}

fn cluster_of(sync: &SyncResource) -> Box<str> {
    let spec = json!({"spec": sync.resource.data["spec"]});
    named_cluster(&sync.name.namespace, &spec).unwrap_or_else(|| HOME_CLUSTER.into())
}

/// The title of a column.
fn label((context, cluster): &Place<'_>) -> String {
    match context {
        Some(context) if &**cluster == HOME_CLUSTER => (*context).to_owned(),
        Some(context) => format!("{context}:{cluster}"),
        None => cluster.to_string(),
    }
}

/// Revision and state of a Sync.
fn cell(sync: &SyncResource) -> String {
    let revision = revision(sync).map_or_else(|| NONE.to_owned(), short_revision);
    let state = SyncState::from_status(&sync.status).label();
    match sync.status.objects.unwrap_or_default().drifted {
        0 => format!("{revision} {state}"),
        drifted => format!("{revision} {state}, {drifted} drifted"),
    }
}

fn revision(sync: &SyncResource) -> Option<&str> {
    sync.status.revision.as_ref().and_then(|revision| revision.applied.as_deref())
}

fn has_one_revision(cells: &[(Place<'_>, &SyncResource)]) -> bool {
    let revisions: BTreeSet<Option<&str>> = cells.iter().map(|(_, sync)| revision(sync)).collect();
    revisions.len() < 2
}
