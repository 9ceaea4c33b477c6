//! Lists all missing permissions of a Sync at once.
//!
//! In: kinds that could not be listed, and objects that could not be written.
//! Out: one line for each permission, in the vocabulary of a Role.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ReconcileContext;
use crate::api::SpecHash;
use crate::cluster::{ApiError, Kinds, is_missing_own_permission};
use crate::controller::memory::SyncMemory;
use crate::controller::schedule::Uptime;
use crate::desired::DesiredSet;
use crate::object::{GroupKind, ObjectId};
use crate::plan::Outcome;
use crate::rbac::{GrantedRules, Permissions, PluralNames};

/// Number of namespaces above which only the refused permissions are reported.
const MAX_PLACES: usize = 50;
/// Time for which an answer is valid while the same permissions are refused.
const STANDS: Duration = Duration::from_secs(10);
/// The permission to write as the field manager of the Sync.
const OWN: &str = "own this Sync (the verb own on syncs.moorline.dev)";

/// A namespace in which nothing is granted separately: its rules are the cluster-wide ones.
const NOWHERE: &str = "moorline-nowhere";

/// The last answer.
#[derive(Debug)]
pub(crate) struct MissingPermissions {
    refused: Vec<String>,
    digest: SpecHash,
    at: Uptime,
    all: Vec<String>,
}

/// Returns all missing permissions, if one was refused: also those that are not needed yet.
pub(crate) async fn missing_permissions(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    desired: &DesiredSet,
    digest: SpecHash,
    refused: Vec<String>,
) -> Vec<String> {
    let now = inputs.context.now();
    if refused.is_empty() {
        memory.missing_permissions = None;
        return refused;
    }
    let is_current = |known: &&MissingPermissions| {
        known.refused == refused && known.digest == digest && now.saturating_sub(known.at) < STANDS
    };
    if let Some(known) = memory.missing_permissions.as_ref().filter(is_current) {
        return known.all.clone();
    }
    let found = find_missing(inputs, desired).await.filter(|found| !found.is_empty());
    let own = refused.iter().filter(|line| **line == OWN).cloned();
    let all = found.map_or_else(|| refused.clone(), |found| own.chain(found).collect());
    memory.missing_permissions = Some(MissingPermissions { refused, digest, at: now, all: all.clone() });
    all
}

/// Returns the missing permissions as the server reports them; `None` if it does not report
/// them.
async fn find_missing(inputs: &ReconcileContext, desired: &DesiredSet) -> Option<Vec<String>> {
    let kinds = inputs.cluster().kinds();
    let plurals =
        PluralNames::from_discovery(kinds.iter().map(|(kind, served)| (kind.clone(), served.plural.clone())));
    let needed = Permissions::required(desired, plurals);
    if needed.namespaces.len() > MAX_PLACES {
        return None;
    }
    let mut granted = BTreeMap::new();
    for place in needed.namespaces.keys().cloned().map(Some).chain([None]) {
        let review =
            inputs.cluster().access_reviews().own_rules(place.as_deref().unwrap_or(NOWHERE)).await.ok()?;
        granted.insert(place, GrantedRules::read(&review)?);
    }
    Some(needed.missing(&granted))
}

/// Returns one line for each refused permission; empty if nothing was refused.
pub(crate) fn rights(
    blind: &[(GroupKind, ApiError)],
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
    let errors = blind.iter().map(|(_, failure)| failure.to_string()).chain(refused);
    if let Some(errors) = errors.into_iter().find(|errors| errors.contains("cannot impersonate")) {
        // While the daemon may not impersonate the ServiceAccount, its permissions are unknown.
        return vec![errors];
    }
    let unseen = blind.iter().filter(|(_, failure)| failure.code() == Some(403));
    let mut lines: BTreeSet<String> =
        unseen.map(|(kind, _)| format!("list and watch {}", resource(kind))).collect();
    for (id, outcome) in outcomes {
        if matches!(outcome, Outcome::Failed(why) if why.is_forbidden()) {
            if matches!(outcome, Outcome::Failed(why) if is_missing_own_permission(&why.message)) {
                lines.insert(OWN.to_owned());
                continue;
            }
            let place = id.namespace().map(|namespace| format!(" in {namespace}")).unwrap_or_default();
            lines.insert(format!("get, create, patch and delete {}{place}", resource(&id.group_kind())));
        }
    }
    lines.into_iter().collect()
}
