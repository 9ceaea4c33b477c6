//! Events in the world, one step at a time.
//!
//! In: a seed. Out: the steps of its story. Each step has chance of its own, so that the others stay as they are when
//! one is left out.

use std::time::Duration;

use moorline::sandbox::FaultRates;

use super::dice::Dice;

/// Syncs of a story.
pub(crate) const SYNCS: usize = 3;
/// Steps of a story.
pub(crate) const STEPS: usize = 200;

/// One step.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) act: Act,
    /// The Sync that it is about, if it is about one.
    pub(crate) sync: usize,
    /// Time that the world waits after it, in milliseconds.
    pub(crate) pause: u64,
    /// For what else is drawn.
    pub(crate) seed: u64,
}

/// Action of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    Change,
    Add,
    Remove,
    Bad,
    Empty,
    Move,
    Force,
    Back,
    TakeBack,
    EditByHand,
    RemoveByHand,
    AddByHand,
    DeleteByHand,
    Relabel,
    Suspend,
    Prune,
    DriftMode,
    Path,
    Unfit,
    Approve,
    Request,
    Part,
    Define,
    Storm,
    Calm,
    CutWatches,
    Forget,
    Away,
    Crash,
    Sever,
    StandStill,
    FreezeLeader,
    Skew,
    Lose,
    LoseMirrors,
}

/// Weight of each action, beside the others.
const WEIGHTS: [(Act, u64); 35] = [
    (Act::Change, 40),
    (Act::Add, 8),
    (Act::Remove, 10),
    (Act::Bad, 5),
    (Act::Empty, 3),
    (Act::Move, 6),
    (Act::Force, 6),
    (Act::Back, 4),
    (Act::TakeBack, 2),
    (Act::EditByHand, 25),
    (Act::RemoveByHand, 8),
    (Act::AddByHand, 6),
    (Act::DeleteByHand, 10),
    (Act::Relabel, 6),
    (Act::Suspend, 4),
    (Act::Prune, 4),
    (Act::DriftMode, 4),
    (Act::Path, 2),
    (Act::Unfit, 4),
    (Act::Approve, 4),
    (Act::Request, 3),
    (Act::Part, 3),
    (Act::Define, 3),
    (Act::Storm, 8),
    (Act::Calm, 8),
    (Act::CutWatches, 6),
    (Act::Forget, 4),
    (Act::Away, 1),
    (Act::Crash, 4),
    (Act::Sever, 4),
    (Act::StandStill, 3),
    (Act::FreezeLeader, 3),
    (Act::Skew, 2),
    (Act::Lose, 10),
    (Act::LoseMirrors, 2),
];

/// The steps of a seed.
pub(crate) fn steps(seed: u64) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let all: u64 = WEIGHTS.iter().map(|(_, weight)| weight).sum();
    let draw = |_| {
        let mut at = dice.below(all);
        let (act, _) = WEIGHTS
            .iter()
            .find(|(_, weight)| {
                let here = at < *weight;
                at = at.saturating_sub(*weight);
                here
            })
            .unwrap_or(&WEIGHTS[0]);
        let longest = [50, 1000, 8000, 20_000][dice.below(4) as usize];
        Step {
            act: *act,
            sync: dice.below(SYNCS as u64) as usize,
            pause: dice.below(longest),
            seed: dice.next(),
        }
    };
    (0..STEPS).map(draw).collect()
}

impl Act {
    /// Returns its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Act::Change => "commit: change",
            Act::Add => "commit: add",
            Act::Remove => "commit: remove",
            Act::Bad => "commit: bad",
            Act::Empty => "commit: empty",
            Act::Move => "commit: move to another Sync",
            Act::Force => "commit: force-pushed",
            Act::Back => "commit: back to an older one",
            Act::TakeBack => "commit: all changed, and taken back",
            Act::EditByHand => "by hand: change",
            Act::RemoveByHand => "by hand: remove a field",
            Act::AddByHand => "by hand: add a field",
            Act::DeleteByHand => "by hand: delete",
            Act::Relabel => "by hand: relabel",
            Act::Suspend => "Sync: suspend",
            Act::Prune => "Sync: prune",
            Act::DriftMode => "Sync: drift mode",
            Act::Path => "Sync: path",
            Act::Unfit => "Sync: spec refused, or mended",
            Act::Approve => "Sync: approve what is held",
            Act::Request => "Sync: request by a person",
            Act::Part => "Sync: delete or create",
            Act::Define => "definition: add or drop a version",
            Act::Storm => "faults begin",
            Act::Calm => "faults end",
            Act::CutWatches => "watches cut",
            Act::Forget => "changes forgotten (410)",
            Act::Away => "API server away",
            Act::Crash => "crash",
            Act::Sever => "requests held up",
            Act::StandStill => "machine stood still",
            Act::FreezeLeader => "leader alone stood still",
            Act::Skew => "clock skew",
            Act::Lose => "something remembered is lost",
            Act::LoseMirrors => "mirrors are lost",
        }
    }
}

/// Faults, some of each class.
pub(crate) fn storm(dice: &mut Dice) -> FaultRates {
    let mut rate = |most| dice.below(most) as u16;
    FaultRates {
        latency: rate(500),
        longest: Duration::from_millis(u64::from(rate(6000)) + 1),
        conflict: rate(100),
        too_many: rate(80),
        internal: rate(80),
        lost: rate(150),
        unreached: rate(80),
        dropped: rate(150),
        doubled: rate(60),
        late: rate(100),
    }
}

/// The same, but every other reply is lost, and every other event.
pub(crate) fn silence(rates: FaultRates) -> FaultRates {
    FaultRates { lost: 500, dropped: 500, ..rates }
}

/// No request of a daemon arrives.
pub(crate) fn nothing_arrives() -> FaultRates {
    FaultRates { unreached: 1000, ..FaultRates::default() }
}
