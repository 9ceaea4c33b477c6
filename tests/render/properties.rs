//! Laws of every plan, over worlds made by chance. `PROPTEST_CASES` sets how many; the chance is seeded.

mod chance;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use chance::world;
use moorline::object::ObjectId;
use moorline::observed::{Observed, Ownership, Verification};
use moorline::plan::{Action, Change, ClaimState, DriftMode, Hold, Plan, Policy, Rank, plan};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};
use world::{Approval, World, carry_out, desired_of, observed_of, places};

/// Chance is seeded, so that a run can be had again; more cases look further.
fn config() -> Config {
    let mut config = Config::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 256;
    }
    config.rng_algorithm = RngAlgorithm::ChaCha;
    config.rng_seed = RngSeed::Fixed(0x6d6f_6f72);
    config.failure_persistence = None;
    config
}

fn plan_of(world: &World) -> Plan {
    replan(world, &world.policy())
}

/// The plan under the same policy as before: an approval is given once, and not renewed by magic.
fn replan(world: &World, policy: &Policy) -> Plan {
    plan(&world.desired, &world.observed(), policy)
}

proptest! {
    #![proptest_config(config())]

    /// 1. Carried out, a plan leaves nothing to do; what it held is still held, and for the same reason.
    #[test]
    fn a_plan_carried_out_is_followed_by_a_quiet_one(mut world in world()) {
        world.finalizers.clear();
        let policy = world.policy();
        let first = replan(&world, &policy);
        let going: BTreeSet<_> =
            world.live.iter().filter(|(_, live)| live.observed.deleting).map(|(id, _)| id.clone()).collect();
        carry_out(&mut world, &first, usize::MAX);
        // One that was being deleted and went with the definition of its kind is waited for no more: that is news.
        prop_assume!(going.iter().all(|id| world.live.contains_key(id)));
        let second = replan(&world, &policy);
        prop_assert!(second.writes_nothing(), "{:?}", second.stages);
        // An approval speaks of certain objects: some of them gone, it is stale for one that had to wait.
        let stale = |hold: &Hold| policy.approved.is_some() && matches!(hold, Hold::WaitsFor(_));
        // An object that is ours under another id as well is so no longer, once the wanted id is written on it.
        let ours = |id| {
            let live = world.live.get(id);
            world.wants.contains_key(id) || live.is_none_or(|live| live.observed.ownership == Ownership::Ours)
        };
        let mut expect = first.held.iter().filter(|(id, hold)| !stale(hold) && ours(id));
        prop_assert!(expect.all(|held| second.held.contains(held)), "{:?}", second.held);
        let before: BTreeSet<_> = first.held.iter().map(|(id, _)| id).collect();
        prop_assert!(second.held.iter().all(|(id, _)| before.contains(id)), "{:?}", second.held);
        let written = first.steps().filter(|step| world.wants.contains_key(&step.id)).map(|step| &step.id);
        let expect: BTreeSet<_> = written.chain(&first.kept).collect();
        prop_assert_eq!(second.kept.iter().collect::<BTreeSet<_>>(), expect);
    }

    /// 2. A plan speaks of an object once, of every object that is wanted, and of nothing that is not there.
    #[test]
    fn a_plan_speaks_of_an_object_once(world in world()) {
        let plan = plan_of(&world);
        let desired = world.desired.clone();
        let mut seen = BTreeSet::new();
        for id in plan.ids() {
            prop_assert!(seen.insert(id), "{id} twice");
            prop_assert!(desired.get(id).is_some() || world.live.contains_key(id), "{id} from nowhere");
        }
        for object in desired.objects() {
            prop_assert!(seen.contains(&object.id), "{} forgotten", object.id);
        }
    }

    /// 3. Only what every proof speaks for is pruned.
    #[test]
    fn nothing_is_pruned_without_every_proof(world in world()) {
        let (desired, policy) = (world.desired.clone(), world.policy());
        let plan = replan(&world, &policy);
        let asked = replan(&world, &Policy { approved: None, ..policy.clone() }).approval;
        let approved = asked.is_some() && policy.approved == asked;
        let mut unprotected = 0;
        for step in plan.steps() {
            let Action::Prune { uid, resource_version } = &step.action else { continue };
            let id = &step.id;
            let seen = &world.live[id].observed;
            prop_assert!(desired.get(id).is_none() && !desired.is_empty(), "{id} is wanted");
            prop_assert!(!uid.is_empty() && *uid == seen.uid, "{id} by its uid");
            prop_assert!(!resource_version.is_empty() && *resource_version == seen.resource_version);
            prop_assert!(seen.ownership == Ownership::Ours && seen.applied_by_us, "{id} is foreign or a copy");
            prop_assert!(!seen.controlled && !seen.deleting, "{id} is another's business");
            prop_assert!(!seen.prune_disabled && !seen.reconcile_disabled && policy.prune, "{id} is exempt");
            let asks = |standing| matches!(standing, ClaimState::WithoutRights | ClaimState::Overdue);
            let claim = policy.claims.get(id);
            prop_assert!(claim.is_none_or(|claim| asks(claim.state) && approved), "{id} is claimed");
            prop_assert!(!world.unlisted.contains(&id.group_kind()), "{id} is not listed");
            prop_assert!(!policy.protected.contains(&id.group_kind()) || approved, "{id} is protected");
            prop_assert!(seen.proven || approved, "{id} is not proven");
            let unknown = desired.objects().iter().any(|it| it.scope.is_none() && it.id.group_kind() == id.group_kind());
            prop_assert!(!unknown, "{id} may be wanted under another id");
            let same = desired.objects().iter().find(|it| world.live.get(&it.id).is_some_and(|live| live.observed.uid == *uid));
            prop_assert!(same.is_none(), "{id} is also {same:?}");
            let asks = policy.protected.contains(&id.group_kind()) || claim.is_some() || !seen.proven;
            unprotected += usize::from(!asks);
            let lives_here = |other: &ObjectId| other.namespace() == Some(id.name()) && id.is_kind("", "Namespace")
                || other.kind() == "Widget" && id.kind() == "CustomResourceDefinition";
            let going = |other: &ObjectId| plan.steps().any(|step| step.id == *other && matches!(step.action, Action::Prune { .. }))
                || world.live[other].observed.deleting
                || plan.held.iter().any(|(held, hold)| held == other && matches!(hold, Hold::WaitsFor(_)));
            for other in world.live.keys().filter(|other| lives_here(other)) {
                prop_assert!(going(other), "{id} takes {other} with it");
            }
            for other in desired.objects().iter().filter(|other| lives_here(&other.id)) {
                prop_assert!(false, "{} is wanted and lives in {id}", other.id);
            }
        }
        // The budget, as the handbook says it and not as the code does, over what is there after the applies.
        let mut after = world.clone();
        let applies = plan.steps().filter(|step| !matches!(step.action, Action::Prune { .. })).count();
        carry_out(&mut after, &plan, applies);
        let ours = |id| after.live.get(id).is_some_and(|live| is_ours(&live.observed));
        let others = |id| after.live.get(id).is_some_and(|live| live.observed.controlled);
        let waits = plan.held.iter().filter(|(id, hold)| {
            let wanted = world.wants.contains_key(id) && !others(id) && !ours(id);
            wanted && matches!(hold, Hold::WaitsFor(_))
        });
        let owned = after.live.keys().filter(|id| ours(id)).count() + waits.count();
        let over = match (policy.budget.count, policy.budget.percent) {
            (None, None) => unprotected > 10 && unprotected * 10 > owned * 3,
            (count, percent) => count.is_none_or(|count| unprotected > count)
                && percent.is_none_or(|percent| unprotected * 100 > owned * usize::from(percent)),
        };
        prop_assert!(!over || approved, "{unprotected} of {owned} are over {:?}", policy.budget);
    }

    /// 4. The order in which files are written and objects are seen makes no difference.
    #[test]
    fn the_order_of_the_input_makes_no_difference(world in world(), seed in any::<u64>()) {
        let shuffled = |count: usize| {
            let mut order: Vec<usize> = (0..count).collect();
            order.sort_by_key(|at| (*at as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            order
        };
        let wants: Vec<_> = world.wants.iter().collect();
        let live: Vec<_> = world.live.iter().collect();
        let desired = desired_of(shuffled(wants.len()).into_iter().map(|at| wants[at]));
        let observed = observed_of(shuffled(live.len()).into_iter().map(|at| live[at]), &world.unlisted, &desired);
        prop_assert_eq!(plan(&desired, &observed, &world.policy()), plan_of(&world));
    }

    /// 5. Waves outrank kinds; in a wave, what others need comes first; prunes go the other way, and last.
    #[test]
    fn what_others_need_comes_first_and_goes_last(world in world()) {
        let plan = plan_of(&world);
        let places = places(&plan);
        for (at, (prunes, wave, stage, step)) in places.iter().enumerate() {
            for (later_prunes, later_wave, later_stage, later) in &places[at + 1..] {
                prop_assert!(prunes <= later_prunes, "applies come before prunes");
                if prunes != later_prunes {
                    continue;
                }
                let (first, second) = if *prunes { (later, step) } else { (step, later) };
                let (low, high) = if *prunes { (later_wave, wave) } else { (wave, later_wave) };
                prop_assert!(low <= high, "{} before {}", first.id, second.id);
                if low == high {
                    prop_assert!(Rank::of(&first.id) <= Rank::of(&second.id), "{} before {}", first.id, second.id);
                    prop_assert!(!needs(&first.id, &second.id), "{} needs {}", first.id, second.id);
                    prop_assert!(!needs(&second.id, &first.id) || stage < later_stage, "not at the same time");
                }
            }
        }
        // A plan for a Sync that is being deleted keeps what must outlive it.
        for (prunes, wave, _, step) in places.iter().filter(|place| place.0) {
            for (id, live) in world.live.iter().filter(|(id, live)| {
                live.observed.deleting && is_ours(&live.observed) && !world.wants.contains_key(id)
            }) {
                let before = (live.observed.wave, Rank::of(id)) <= (*wave, Rank::of(&step.id));
                prop_assert!(before && *prunes, "{} goes while {id} is still there", step.id);
            }
        }
    }

    /// 6. Wherever it is cut off, and whatever is slow to go, planning again leads to the same cluster.
    #[test]
    fn a_plan_that_is_cut_off_still_converges(world in world(), cuts in prop::collection::vec(0..6usize, 1..4)) {
        let policy = world.policy();
        let settle = |mut world: World, cuts: &[usize]| {
            for cut in cuts {
                let next = replan(&world, &policy);
                carry_out(&mut world, &next, *cut);
            }
            for _ in 0..40 {
                let next = replan(&world, &policy);
                carry_out(&mut world, &next, usize::MAX);
                // Somebody releases what is being deleted, and says what else there is to say.
                let going: Vec<_> = world.live.iter().filter(|(_, live)| live.observed.deleting).map(|(id, _)| id.clone()).collect();
                going.iter().for_each(|id| drop(world.live.remove(id)));
                world.finalizers.retain(|id| world.live.contains_key(id));
                if next.writes_nothing() && going.is_empty() {
                    return Ok(world);
                }
            }
            Err(TestCaseError::fail("it goes on and on"))
        };
        let (cut_off, whole) = (settle(world.clone(), &cuts)?, settle(world, &[])?);
        // An approval speaks of certain objects; half of them gone, it is stale, and the rest is held.
        if policy.approved.is_none() {
            let marks = |world: World| -> BTreeMap<ObjectId, Ownership> {
                world.live.into_iter().map(|(id, live)| (id, live.observed.ownership)).collect()
            };
            prop_assert_eq!(marks(cut_off), marks(whole));
        }
    }

    /// 7. Drift is repaired, reported or ignored, as the Sync says.
    #[test]
    fn drift_is_treated_as_the_sync_says(world in world()) {
        let (desired, policy) = (world.desired.clone(), world.policy());
        let plan = replan(&world, &policy);
        for (id, live) in &world.live {
            let (Some(object), seen) = (desired.get(id), &live.observed) else { continue };
            let switched = object.annotations.reconcile_disabled || object.annotations.apply_once || seen.reconcile_disabled;
            if live.recorded != Some(true) || seen.ownership != Ownership::Ours || seen.deleting || switched || object.scope.is_none() {
                continue;
            }
            let update = plan.steps().find(|step| step.id == *id).map(|step| step.action.clone());
            let hold = plan.held.iter().find(|(held, _)| held == id).map(|(_, hold)| hold.clone());
            let clean = seen.verification.is_sound() && seen.applied_by_us;
            let unknown = matches!(seen.verification, Verification::Unverified | Verification::MaybeDrifted);
            let unverified = unknown && seen.applied_by_us;
            match (policy.drift, clean) {
                (_, true) | (DriftMode::Ignore, _) => prop_assert!(plan.kept.contains(id), "{id}"),
                (DriftMode::Report, false) if unverified => prop_assert_eq!(hold, Some(Hold::Unverified)),
                (DriftMode::Report, false) => prop_assert!(matches!(hold, Some(Hold::DriftReported(_))), "{id} {hold:?}"),
                (DriftMode::Repair, false) if policy.suspended => prop_assert_eq!(hold, Some(Hold::Suspended)),
                (DriftMode::Repair, false) if matches!(hold, Some(Hold::WaitsFor(_))) => {}
                (DriftMode::Repair, false) => {
                    let expect = match &seen.verification {
                        _ if !seen.applied_by_us => Change::EntryLost,
                        Verification::Drifted(drift) => Change::Drifted(drift.clone()),
                        Verification::MaybeDrifted => Change::MaybeDrifted,
                        Verification::Verified | Verification::Believed | Verification::Unverified => Change::Unverified,
                    };
                    prop_assert_eq!(update, Some(Action::Update(expect)), "{}", id);
                }
            }
        }
    }

    /// 8. A suspended Sync writes nothing, and says of everything it would write that it does not.
    #[test]
    fn a_suspended_sync_writes_nothing(mut world in world()) {
        world.policy.suspended = false;
        let policy = world.policy();
        let awake = replan(&world, &policy);
        let asleep = replan(&world, &Policy { suspended: true, ..policy });
        prop_assert!(asleep.writes_nothing());
        prop_assert_eq!(&asleep.kept, &awake.kept);
        let mut expect: BTreeMap<_, _> = awake.held.iter().cloned().collect();
        expect.extend(awake.steps().map(|step| (step.id.clone(), Hold::Suspended)));
        expect.values_mut().filter(|hold| matches!(hold, Hold::WaitsFor(_))).for_each(|hold| *hold = Hold::Suspended);
        prop_assert_eq!(asleep.held.iter().cloned().collect::<BTreeMap<_, _>>(), expect);
    }
}

fn is_ours(seen: &Observed) -> bool {
    seen.ownership == Ownership::Ours && seen.proven && !seen.controlled
}

/// True if `id` cannot be without `other`.
fn needs(id: &ObjectId, other: &ObjectId) -> bool {
    let namespace = other.is_kind("", "Namespace") && id.namespace() == Some(other.name());
    namespace || id.kind() == "Widget" && other.kind() == "CustomResourceDefinition"
}

/// The worlds are as varied as the properties need: whatever a plan can say is said in some of them.
#[test]
fn the_worlds_show_everything_that_a_plan_can_say() {
    let mut runner = proptest::test_runner::TestRunner::new(config());
    let mut said = BTreeSet::new();
    for _ in 0..600 {
        let world = world().new_tree(&mut runner).expect("a world").current();
        let plan = plan_of(&world);
        said.extend(plan.steps().map(|step| step.action.verb()));
        said.extend(plan.held.iter().map(|(_, hold)| hold.reason()));
        if world.approval == Approval::Right && plan.approval.is_none() {
            said.insert("approved");
        }
    }
    let everything = [
        "create",
        "adopt",
        "update",
        "hand over",
        "prune",
        "approved",
        "Suspended",
        "UnknownKind",
        "ReconcileDisabled",
        "BeingDeleted",
        "OwnedBy",
        "DriftReported",
        "Unverified",
        "WaitingForObject",
        "ClaimedBy",
        "PruneDisabled",
        "ListIncomplete",
        "NotAppliedByUs",
        "IdentityUnknown",
        "StillInGit",
        "NotEmpty",
        "Protected",
        "PruneBudgetExceeded",
        "Unproven",
    ];
    let missing: Vec<_> = everything.iter().filter(|word| !said.contains(**word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
