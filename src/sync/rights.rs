//! Which rights a Sync lacks, all at once.
//!
//! In: what could not be seen and what could not be written. Out: one line for each right, in the words of a Role.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::memory::Memory;
use super::pass::Subject;
use super::schedule::Time;
use crate::api::SpecHash;
use crate::cluster::{Failure, Kinds, lacks_own};
use crate::desired::DesiredSet;
use crate::object::{GroupKind, ObjectId};
use crate::plan::Outcome;
use crate::rights::{Granted, Plurals, Rights};

/// In more namespaces nobody asks what is missing besides what was refused.
const MAX_PLACES: usize = 50;
/// So long an answer stands while the same is refused.
const STANDS: Duration = Duration::from_secs(10);
/// The right to write as the field manager of the Sync.
const OWN: &str = "own this Sync (the verb own on syncs.moorline.dev)";

/// Nothing is granted here alone: what may be done here may be done everywhere.
const NOWHERE: &str = "moorline-nowhere";

/// What was found out last.
#[derive(Debug)]
pub(crate) struct Lacking {
    refused: Vec<String>,
    digest: SpecHash,
    at: Time,
    all: Vec<String>,
}

impl Subject<'_> {
    /// Every right that is missing, once one was: what was refused, and what nobody has come to yet.
    pub(crate) async fn lacks(
        &self,
        memory: &mut Memory,
        desired: &DesiredSet,
        digest: SpecHash,
        refused: Vec<String>,
    ) -> Vec<String> {
        let now = self.context.now();
        if refused.is_empty() {
            memory.lacking = None;
            return refused;
        }
        let stands = |known: &&Lacking| {
            known.refused == refused && known.digest == digest && now.saturating_sub(known.at) < STANDS
        };
        if let Some(known) = memory.lacking.as_ref().filter(stands) {
            return known.all.clone();
        }
        let found = self.missing(desired).await.filter(|found| !found.is_empty());
        let own = refused.iter().filter(|line| **line == OWN).cloned();
        let all = found.map_or_else(|| refused.clone(), |found| own.chain(found).collect());
        memory.lacking = Some(Lacking { refused, digest, at: now, all: all.clone() });
        all
    }

    /// What is missing by the server's own account; none where it gives none.
    async fn missing(&self, desired: &DesiredSet) -> Option<Vec<String>> {
        let kinds = self.cluster.kinds();
        let plurals = Plurals::of(kinds.iter().map(|(kind, served)| (kind.clone(), served.plural.clone())));
        let needed = Rights::needed(desired, plurals);
        if needed.namespaces.len() > MAX_PLACES {
            return None;
        }
        let mut granted = BTreeMap::new();
        for place in needed.namespaces.keys().cloned().map(Some).chain([None]) {
            let review = self.cluster.own_rules(place.as_deref().unwrap_or(NOWHERE)).await.ok()?;
            granted.insert(place, Granted::read(&review)?);
        }
        Some(needed.missing(&granted))
    }
}

/// What is said of the rights that are missing; nothing where none are.
pub(crate) fn rights(
    blind: &[(GroupKind, Failure)],
    outcomes: &BTreeMap<ObjectId, Outcome>,
    kinds: &Kinds,
) -> Vec<String> {
    let resource = |kind: &GroupKind| {
        let plural = kinds.get(kind).map_or_else(|| kind.kind.to_lowercase(), |it| it.plural.to_string());
        match &*kind.group {
            "" => plural,
            group => format!("{plural}.{group}"),
        }
    };
    let refused = outcomes.values().filter_map(|outcome| match outcome {
        Outcome::Failed(why) => Some(why.message.clone()),
        _ => None,
    });
    let told = blind.iter().map(|(_, failure)| failure.to_string()).chain(refused);
    if let Some(told) = told.into_iter().find(|told| told.contains("cannot impersonate")) {
        // As long as the daemon may not act for the Sync, what the Sync may do is not known.
        return vec![told];
    }
    let unseen = blind.iter().filter(|(_, failure)| failure.code() == Some(403));
    let mut lines: BTreeSet<String> =
        unseen.map(|(kind, _)| format!("list and watch {}", resource(kind))).collect();
    for (id, outcome) in outcomes {
        if matches!(outcome, Outcome::Failed(why) if why.reason == "Forbidden") {
            if matches!(outcome, Outcome::Failed(why) if lacks_own(&why.message)) {
                lines.insert(OWN.to_owned());
                continue;
            }
            let place = id.namespace().map(|namespace| format!(" in {namespace}")).unwrap_or_default();
            lines.insert(format!("get, create, patch and delete {}{place}", resource(&id.group_kind())));
        }
    }
    lines.into_iter().collect()
}
