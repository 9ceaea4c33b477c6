//! Worlds made by chance.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use moorline::object::ObjectId;
use moorline::observed::{Drift, Observed, Ownership, Verification};
use moorline::plan::{Claim, ClaimState, DriftMode, Policy, PruneBudget};
use proptest::prelude::*;

use crate::properties::world::{Approval, Desired, Live, Want, World, desired_of, id, ids, plain};

fn rarely() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.08)
}

fn wave() -> impl Strategy<Value = i32> {
    prop_oneof![4 => Just(0), 1 => Just(-1), 1 => Just(1)]
}

prop_compose! {
    fn want()(
        wave in wave(),
        content in 0..2u8,
        reconcile_disabled in rarely(),
        apply_once in rarely(),
        prune_disabled in rarely(),
    ) -> Want {
        Want { wave, content, reconcile_disabled, apply_once, prune_disabled }
    }
}

fn mark() -> impl Strategy<Value = Ownership> {
    prop_oneof![
        12 => Just(Ownership::Ours),
        1 => Just(Ownership::OtherSync("ops/other".into())),
        1 => Just(Ownership::Copy),
        1 => Just(Ownership::Unowned),
    ]
}

fn standing() -> impl Strategy<Value = Verification> {
    let drift = Drift { fields: vec!["content".to_owned()], manager: Some("kubectl".to_owned()), time: None };
    prop_oneof![
        2 => Just(Verification::Verified),
        1 => Just(Verification::Believed),
        1 => Just(Verification::Unverified),
        1 => Just(Verification::MaybeDrifted),
        1 => Just(Verification::Drifted(Box::new(drift))),
    ]
}

prop_compose! {
    fn live(id: ObjectId)(
        mark in mark(),
        applied_by_us in prop::bool::weighted(0.9),
        recorded in prop_oneof![4 => Just(Some(true)), 2 => Just(Some(false)), 1 => Just(None)],
        standing in standing(),
        flags in (rarely(), rarely(), rarely(), rarely(), rarely()),
        wave in wave(),
        known in prop::bool::weighted(0.95),
    ) -> Live {
        let (controlled, deleting, reconcile_disabled, prune_disabled, forged) = flags;
        // An object that names another Sync has no proof for this one.
        let proven = !forged && !matches!(mark, Ownership::OtherSync(_));
        // The two Ingresses are one object.
        let uid = if known { format!("{} {}", id.kind(), id.name()) + id.namespace().unwrap_or("") } else { String::new() };
        let managers = vec!["kubectl".into()];
        let observed = Observed {
            ownership: mark, managers, applied_by_us, proven, verification: standing, controlled, deleting, wave, reconcile_disabled, prune_disabled,
            ..plain(&uid)
        };
        Live { observed, recorded }
    }
}

prop_compose! {
    fn policy()(
        suspended in rarely(),
        drift in prop_oneof![
            Just(DriftMode::Repair),
            Just(DriftMode::Report),
            Just(DriftMode::Ignore),
        ],
        prune in prop::bool::weighted(0.9),
        count in prop::option::weighted(0.2, 0..4usize),
        percent in prop::option::weighted(0.2, 0..60u8),
        protected in prop_oneof![4 => Just(true), 1 => Just(false)],
    ) -> Policy {
        let mut policy = Policy {
            suspended, drift, prune, budget: PruneBudget { count, percent }, ..Policy::default()
        };
        if !protected {
            policy.protected.clear();
        }
        policy
    }
}

/// A world in which anything may be.
pub(crate) fn world() -> impl Strategy<Value = World> {
    let slots = |(id, _): (ObjectId, _)| {
        let crowd = id.name().starts_with("crowd");
        let wants = prop::option::weighted(if crowd { 0.2 } else { 0.45 }, want());
        let live = prop::option::weighted(if crowd { 0.5 } else { 0.6 }, live(id.clone()));
        let standing = prop::sample::select(vec![
            ClaimState::WillAdopt,
            ClaimState::CannotAdopt,
            ClaimState::Possible,
            ClaimState::MoveTarget,
            ClaimState::WithoutRights,
            ClaimState::Overdue,
        ]);
        let claim = prop::option::weighted(0.07, standing);
        let finalizer = prop::bool::weighted(0.15);
        (Just(id), wants, live, claim, finalizer, rarely())
    };
    let slots: Vec<_> = ids().into_iter().map(slots).collect();
    let approval = prop_oneof![Just(Approval::Absent), Just(Approval::Stale), Just(Approval::Right)];
    (slots, policy(), approval, want()).prop_map(|(slots, mut policy, approval, one)| {
        let (mut wants, mut lives) = (BTreeMap::new(), BTreeMap::new());
        let (mut unlisted, mut finalizers) = (BTreeSet::new(), BTreeSet::new());
        for (id, want, live, claim, finalizer, missing) in slots {
            wants.extend(want.map(|want| (id.clone(), want)));
            lives.extend(live.map(|live| (id.clone(), live)));
            if let Some(standing) = claim {
                let claim = Claim { sync: "ops/claims".into(), state: standing };
                policy.claims.insert(id.clone(), claim);
            }
            if finalizer {
                finalizers.insert(id.clone());
            }
            if missing && id.kind() != "ConfigMap" {
                unlisted.insert(id.group_kind());
            }
        }
        // One object under two groups looks the same, but its identity names one of them.
        if let Some(old) = lives.get(&id("extensions/Ingress|a/x")).cloned()
            && let Some(new) = lives.get_mut(&id("networking.k8s.io/Ingress|a/x"))
        {
            let mark = if old.observed.ownership == Ownership::Ours {
                Ownership::Copy
            } else {
                old.observed.ownership.clone()
            };
            *new = Live {
                observed: Observed { ownership: mark, ..old.observed },
                recorded: old.recorded.map(|_| false),
            };
        }
        if wants.contains_key(&id("networking.k8s.io/Ingress|a/x")) {
            wants.remove(&id("extensions/Ingress|a/x"));
        }
        // A complete render has an object at least.
        if wants.is_empty() {
            wants.insert(id("/ConfigMap|a/x"), one);
        }
        let desired = Desired(Rc::new(desired_of(wants.iter())));
        World { desired, wants, live: lives, unlisted, policy, approval, finalizers }
    })
}
