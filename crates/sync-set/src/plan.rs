//! Decides the step for each Sync of a set.
//!
//! In: all children of the set, the Syncs of its namespace, and the policy for removals.
//! Out: [`SetPlan`]. A Sync that is not the set's own is never changed, and none is removed beyond
//! the budget without the approval of this very removal. None is removed before all others of the
//! set have rendered: an object that moves among them is handed over only to a Sync that claims it.

use std::collections::BTreeSet;

use moorline_api::SyncRemoval;
use serde_json::Value;

use crate::children::{SetChild, SetChildren};
use crate::existing::{ExistingSync, Ownership};
use crate::hash;
use crate::rollout::PlannedRollout;

/// Removals without approval, unless the spec has a budget: at most one Sync, or this share.
const DEFAULT_BUDGET: (usize, usize) = (1, 10);
/// Number of bytes of the hash that approves a removal.
const HASH_BYTES: usize = 10;

/// Policy for removals.
#[derive(Debug, Clone, Default)]
pub struct RemovalPolicy {
    /// False if Syncs are never removed.
    pub is_disabled: bool,
    /// Maximum number of Syncs.
    pub count: Option<usize>,
    /// Maximum share of the Syncs of the set, in percent.
    pub percent: Option<usize>,
    /// The hash that a person approved.
    pub approved: Option<String>,
    /// The uids of the Syncs of a removal that has begun: the rest of these is removed, too.
    pub begun: BTreeSet<String>,
}

impl RemovalPolicy {
    /// Returns the policy of a spec.
    pub fn of(prune: Option<&SyncRemoval>, approved: Option<&str>) -> Self {
        let budget = prune.and_then(|prune| prune.budget.clone()).unwrap_or_default();
        let number = |value: Option<i32>| value.map(|value| usize::try_from(value).unwrap_or_default());
        Self {
            is_disabled: prune.is_some_and(|prune| prune.enabled == Some(false)),
            count: number(budget.count),
            percent: number(budget.percent),
            approved: approved.map(str::to_owned),
            begun: BTreeSet::new(),
        }
    }

    /// True if a removal exceeds every limit that is given.
    fn is_exceeded_by(&self, removed: usize, owned: usize) -> bool {
        let (count, percent) = match (self.count, self.percent) {
            (None, None) => (Some(DEFAULT_BUDGET.0), Some(DEFAULT_BUDGET.1)),
            given => given,
        };
        count.is_none_or(|count| removed > count)
            && percent.is_none_or(|percent| removed.saturating_mul(100) > owned.saturating_mul(percent))
    }
}

/// Step for one Sync.
#[derive(Debug, Clone, PartialEq)]
pub enum SetStep {
    /// It does not exist: it is created.
    Create(SetChild),
    /// It is the set's own and differs: it is applied, if it still has this uid.
    Update {
        /// The desired Sync.
        child: SetChild,
        /// The uid of the Sync.
        uid: String,
    },
    /// It is as desired.
    Keep(String),
    /// It is being deleted: it is created when it is gone.
    Await(String),
    /// A Sync of this name exists that is not the set's own.
    Conflict(String),
    /// It differs, or does not exist, and waits for its stage.
    Hold(String),
}

impl SetStep {
    /// Returns the name of the Sync.
    pub fn name(&self) -> &str {
        match self {
            Self::Create(child) | Self::Update { child, .. } => &child.name,
            Self::Keep(name) | Self::Await(name) | Self::Conflict(name) | Self::Hold(name) => name,
        }
    }
}

/// A removal of Syncs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedRemoval {
    /// The Syncs, with uid and resourceVersion, are deleted.
    Remove(Vec<(String, String, String)>),
    /// The Syncs stay until a person approves this hash.
    Hold {
        /// The hash.
        hash: String,
        /// The names.
        syncs: Vec<String>,
    },
    /// The Syncs stay until the daemon knows what other Syncs of the set claim.
    Wait {
        /// The names.
        syncs: Vec<String>,
        /// The Syncs that are not there yet, or have not rendered their newest spec.
        awaited: Vec<String>,
    },
    /// The Syncs stay: the spec says so.
    Keep(Vec<String>),
}

impl PlannedRemoval {
    /// Lets a removal that would begin wait for these Syncs.
    #[must_use]
    pub fn put_off(self, awaited: Vec<String>) -> Self {
        match self {
            Self::Remove(gone) if !gone.is_empty() => {
                Self::Wait { syncs: gone.into_iter().map(|(name, _, _)| name).collect(), awaited }
            }
            other => other,
        }
    }
}

/// The plan of a set.
#[derive(Debug, Clone, PartialEq)]
pub struct SetPlan {
    /// A step for each child, by name.
    pub steps: Vec<SetStep>,
    /// The Syncs of the set that are no children any more.
    pub removal: PlannedRemoval,
    /// The stages, if the set has any.
    pub rollout: Option<PlannedRollout>,
}

/// Plans the Syncs of a set. `is_accepted` is true for a Sync that the API server stored in this
/// form when the child with this hash was applied.
pub fn plan_children(
    children: &SetChildren,
    existing: &[ExistingSync],
    policy: &RemovalPolicy,
    is_accepted: impl Fn(&SetChild, &ExistingSync) -> bool,
) -> SetPlan {
    let steps = children.iter().map(|child| {
        let Some(live) = existing.iter().find(|live| live.name == child.name) else {
            return SetStep::Create(child.clone());
        };
        let is_as_wanted = live.is_own()
            && live.hash.as_deref() == Some(&child.hash)
            && (contains(&live.body, &wanted(child)) || is_accepted(child, live));
        match live.ownership {
            Ownership::Foreign => SetStep::Conflict(child.name.clone()),
            Ownership::Own | Ownership::Left if live.is_deleting => SetStep::Await(child.name.clone()),
            Ownership::Own if is_as_wanted => SetStep::Keep(child.name.clone()),
            Ownership::Own | Ownership::Left => {
                SetStep::Update { child: child.clone(), uid: live.uid.clone() }
            }
        }
    });
    let steps: Vec<SetStep> = steps.collect();
    let awaited = find_awaited(&steps, existing);
    SetPlan { removal: plan_removal(children, existing, policy, awaited), steps, rollout: None }
}

/// Returns the children whose claims are not known.
fn find_awaited(steps: &[SetStep], existing: &[ExistingSync]) -> Vec<String> {
    let has_rendered = |name: &str| existing.iter().any(|live| live.name == *name && live.has_rendered);
    let awaited = steps.iter().filter_map(|step| match step {
        SetStep::Keep(name) if has_rendered(name) => None,
        SetStep::Keep(name) | SetStep::Await(name) | SetStep::Conflict(name) | SetStep::Hold(name) => {
            Some(name)
        }
        SetStep::Create(child) | SetStep::Update { child, .. } => Some(&child.name),
    });
    awaited.cloned().collect()
}

fn plan_removal(
    children: &SetChildren,
    existing: &[ExistingSync],
    policy: &RemovalPolicy,
    awaited: Vec<String>,
) -> PlannedRemoval {
    let own = || existing.iter().filter(|live| live.is_own() && !live.is_deleting);
    let is_left = |live: &&ExistingSync| children.get(&live.name).is_none();
    let is_free = |live: &&ExistingSync| live.is_removable();
    let mut gone: Vec<&ExistingSync> = own().filter(is_left).filter(is_free).collect();
    gone.sort_by(|one, other| one.name.cmp(&other.name));
    let names = || gone.iter().map(|live| live.name.clone()).collect::<Vec<_>>();
    if policy.is_disabled {
        return PlannedRemoval::Keep(names());
    }
    let subject: Vec<String> = gone.iter().map(|live| format!("{}/{}", live.name, live.uid)).collect();
    let hash = hash(&subject.join("\n"), HASH_BYTES);
    let has_begun = gone.iter().all(|live| policy.begun.contains(&live.uid));
    let is_approved = has_begun || policy.approved.as_deref() == Some(&hash);
    let is_doubtful = children.is_empty() || children.has_empty_generator();
    let is_too_much = is_doubtful || policy.is_exceeded_by(gone.len(), own().count());
    let target = |live: &&ExistingSync| (live.name.clone(), live.uid.clone(), live.version.clone());
    match (gone.is_empty(), is_too_much && !is_approved, awaited.is_empty()) {
        (false, true, _) => PlannedRemoval::Hold { hash, syncs: names() },
        (false, false, false) => PlannedRemoval::Wait { syncs: names(), awaited },
        (true, _, _) | (false, false, true) => PlannedRemoval::Remove(gone.iter().map(target).collect()),
    }
}

/// Returns the parts of a manifest that are compared.
fn wanted(child: &SetChild) -> Value {
    let metadata = &child.manifest["metadata"];
    serde_json::json!({
        "metadata": {"labels": metadata["labels"], "annotations": metadata["annotations"]},
        "spec": child.manifest["spec"],
    })
}

/// True if every field of `wanted` has the same value in `live`.
fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(name, value)| {
            live.get(name).map_or_else(|| is_nothing(value), |live| contains(live, value))
        }),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| contains(live, wanted))
        }
        (Value::Null, wanted) => is_nothing(wanted),
        (live, wanted) => live == wanted,
    }
}

/// True for a value that the API server may leave out.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}
