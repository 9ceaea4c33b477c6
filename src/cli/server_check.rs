//! `moorline check --server`: checks rendered sets with an API server, without a write.
//!
//! In: rendered sets. Out: everything that the server would refuse, found by a dry run of each
//! apply with the rights of the user. An object whose kind or namespace the set itself creates
//! cannot be checked yet; it is listed and counted as not checked.

use std::collections::BTreeSet;
use std::path::PathBuf;

use futures::StreamExt as _;

use super::exit::Exit;
use super::operate::{on_cluster, reading};
use super::{Streams, manifests};
use crate::api::SyncName;
use crate::cluster::{ApiError, Cluster, Connection, classify_error};
use crate::desired::{DesiredObject, DesiredSet};
use crate::metrics::Metrics;
use crate::object::{GroupKind, ObjectId};
use crate::plan::FailureReason;
use crate::render::Complete;

/// Name of the Sync that owns the dry runs; nothing is ever written under it.
const NAME: &str = "check";

/// The most dry runs at one time.
const MAX_CONCURRENT: usize = 8;

/// The server's answer for one object.
enum DryRunResult {
    Accepted,
    Refused(String),
    Unchecked(String),
}

/// Checks each set with the server.
pub(super) fn run(
    sets: Vec<(PathBuf, Complete)>,
    namespace: Option<&str>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    on_cluster(async |connection| ask_all(sets, namespace, connection, streams).await)
}

async fn ask_all(
    sets: Vec<(PathBuf, Complete)>,
    namespace: Option<&str>,
    connection: Connection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let own = namespace.map_or_else(|| connection.namespace.to_string(), str::to_owned);
    let cluster = reading(connection, &Metrics::new()?);
    cluster.discovery().ensure().await?;
    let owner = SyncName::new(&own, NAME);
    let mut exit = Exit::Done;
    for (path, complete) in sets {
        let Some(desired) = manifests::desire(complete, &own, &cluster.kinds().scopes(), streams) else {
            exit = Exit::Failure;
            continue;
        };
        let made = SetCreations::collect(&desired, &cluster).await?;
        let answers = desired.objects().iter().map(|wanted| ask(&cluster, wanted, &owner, &made));
        let verdicts: Vec<DryRunResult> =
            futures::stream::iter(answers).buffered(MAX_CONCURRENT).collect().await;
        let (mut refused, mut unchecked) = (Vec::new(), 0);
        for (wanted, verdict) in desired.objects().iter().zip(&verdicts) {
            match verdict {
                DryRunResult::Accepted => {}
                DryRunResult::Refused(why) => {
                    refused.push(format!("{}: {}: {why}", wanted.origin, wanted.id))
                }
                DryRunResult::Unchecked(why) => {
                    unchecked += 1;
                    streams.say(&format!("note: not checked by the server: {}: {why}", wanted.id));
                }
            }
        }
        manifests::print_problems(&refused, streams);
        if !refused.is_empty() {
            exit = Exit::Failure;
            continue;
        }
        let accepted = desired.len() - unchecked;
        let objects = if accepted == 1 { "object" } else { "objects" };
        let rest = super::check::not_checked(unchecked);
        writeln!(streams.data, "{}: the server accepts {accepted} {objects}{rest}", path.display())?;
    }
    Ok(exit)
}

/// Namespaces and kinds that a set creates and that other objects of it need.
struct SetCreations {
    namespaces: BTreeSet<String>,
    /// Namespaces of the set that the caller may not read: they may or may not exist.
    unreadable: BTreeSet<String>,
    /// The kinds whose definitions are in the set, even if the server has them already.
    kinds: BTreeSet<GroupKind>,
}

impl SetCreations {
    async fn collect(desired: &DesiredSet, cluster: &Cluster) -> Result<Self, ApiError> {
        let (mut namespaces, mut unreadable, mut kinds) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for wanted in desired.objects() {
            if wanted.id.is_kind("", "Namespace") {
                match cluster.objects().read_whole(&wanted.id, None).await {
                    Ok(Some(_)) => {}
                    Ok(None) => {
                        namespaces.insert(wanted.id.name().to_owned());
                    }
                    Err(failure) if failure.code() == Some(403) => {
                        unreadable.insert(wanted.id.name().to_owned());
                    }
                    Err(failure) => return Err(failure),
                }
            }
            if wanted.id.is_kind("apiextensions.k8s.io", "CustomResourceDefinition") {
                let body = wanted.body();
                let text = |pointer: &str| {
                    body.get("spec").and_then(|spec| spec.pointer(pointer)?.as_str()).unwrap_or_default()
                };
                kinds.insert(GroupKind::new(text("/group"), text("/names/kind")));
            }
        }
        Ok(Self { namespaces, unreadable, kinds })
    }

    fn has_namespace_of(&self, id: &ObjectId) -> bool {
        id.namespace().is_some_and(|namespace| self.namespaces.contains(namespace))
    }

    fn may_have_namespace_of(&self, id: &ObjectId) -> bool {
        id.namespace().is_some_and(|namespace| self.unreadable.contains(namespace))
    }
}

async fn ask(
    cluster: &Cluster,
    wanted: &DesiredObject,
    owner: &SyncName,
    made: &SetCreations,
) -> DryRunResult {
    let (id, kind) = (&wanted.id, wanted.id.group_kind());
    let defines = made.kinds.contains(&kind);
    if made.has_namespace_of(id) {
        return DryRunResult::Unchecked("these files create its namespace".to_owned());
    }
    if defines && cluster.kinds().get(&kind).is_none() {
        return DryRunResult::Unchecked("these files create its kind".to_owned());
    }
    match cluster.objects().dry_run_apply(wanted, owner, &[]).await {
        Ok(_) => DryRunResult::Accepted,
        Err(failure) => {
            let class = classify_error(&failure, wanted.contains_secret);
            match class.reason {
                FailureReason::Unreachable | FailureReason::Timeout => {}
                FailureReason::NamespaceMissing if made.may_have_namespace_of(id) => {
                    return DryRunResult::Unchecked("these files create its namespace".to_owned());
                }
                _ if defines => {
                    let why = format!(
                        "these files change its CRD; with the one that is installed: {}",
                        class.message
                    );
                    return DryRunResult::Unchecked(why);
                }
                _ if class.message.contains("does not support dry run") => {
                    return DryRunResult::Unchecked(
                        "a webhook that it calls does not support dry runs".to_owned(),
                    );
                }
                _ => {}
            }
            DryRunResult::Refused(class.message)
        }
    }
}
