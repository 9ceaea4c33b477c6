//! The production loop through seeded faults, in virtual time.
//!
//! In: seeds. Out: nothing, if every story ends well: nothing foreign is touched, nothing is pruned without proof, no older
//! revision is written after a newer one, nobody writes whose Lease has ended, and at the end the cluster is as the
//! repository says, at no further cost. Else the seed, the steps that are needed for it, and the command that shows it.
//!
//! MOORLINE_SIMULATION_SEED replays one story, MOORLINE_SIMULATION_FIXED sets the number of stories that every run tells,
//! and MOORLINE_SIMULATION_SEEDS adds random ones, whose seeds follow from MOORLINE_SIMULATION_BASE if that is set.

mod alone;
mod charge;
mod classes;
mod dice;
mod foreign;
mod held;
mod objects;
mod observer;
mod past;
mod replica;
mod repository;
mod revisions;
mod said;
mod shrink;
mod steps;
mod story;
mod unrelated;
mod world;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use alone::{Came, LOG, tell_alone, told};
use dice::Dice;
use shrink::shrink;
use story::tell;

/// A story takes and frees memory all the time, and the system's own way took a third of its time.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Stories of every run, with the seeds from 1. Random ones run only on demand, so that the result of a run depends on
/// the code alone.
const FIXED: u64 = 6;
/// Stories that once found a bug: a hand-over and the receiving Sync that replace the same port.
const FOUND: [u64; 2] = [1_095_990_961_826_755_069, 2_003_644_715_404_713_846];
/// So many stories have every fault in them.
const ALL_FAULTS: usize = 50;
/// Every fault that there is.
const FAULTS: [&str; 26] = [
    "409",
    "429",
    "500",
    "unreached",
    "lost reply",
    "latency",
    "dropped event",
    "doubled event",
    "late event",
    "halting list",
    "cut watch",
    "changes forgotten (410)",
    "API server away",
    "Sync: spec refused, or mended",
    "clock skew",
    "crash",
    "requests held up",
    "machine stood still",
    "leader alone stood still",
    "something remembered is lost",
    "mirrors are lost",
    "Sync: suspended while it is deleted",
    "commit: bad",
    "commit: force-pushed",
    "commit: back to an older one",
    "commit: all changed, and taken back",
];

/// Not a test: the process of one story.
#[test]
fn a_story_alone() {
    let Some((seed, steps)) = told() else { return };
    let log = std::env::var_os(LOG);
    let told = tell(seed, steps.as_deref(), log.is_some());
    if let Some(log) = log {
        std::fs::write(log, told.log).unwrap();
    }
    println!();
    for (word, times) in told.happened {
        println!("{word}\t{times}");
    }
    if let Some(wrong) = told.wrong {
        println!("wrong\t{}", wrong.replace('\n', "\\n"));
    }
    println!("trace\t{:x}", told.trace);
}

#[test]
fn the_same_seed_tells_the_same_story() {
    if std::env::var_os("MOORLINE_SIMULATION_SEED").is_none() {
        assert_eq!(tell_alone(1, None), tell_alone(1, None));
    }
}

#[test]
fn every_story_ends_well() {
    let seeds = seeds();
    let steps = one_alone().and_then(|(_, steps)| steps);
    let begun = std::time::Instant::now();
    let (next, came) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = tell_alone(*seed, steps.as_deref());
                    let failed = one.wrong.is_some();
                    came.lock().unwrap().push((*seed, one));
                    if failed {
                        // One is enough to look at.
                        next.store(seeds.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let came = came.into_inner().unwrap();
    let took = begun.elapsed();
    println!(
        "{} stories in {took:.1?}: {:.0} a minute",
        came.len(),
        came.len() as f64 * 60.0 / took.as_secs_f64()
    );
    cover(&came);
    for (seed, one) in &came {
        if let Some(wrong) = &one.wrong {
            fail(*seed, wrong, came.len());
        }
    }
}

#[test]
fn what_a_failure_does_not_need_is_left_out() {
    let found = shrink(steps::STEPS, |steps| steps.contains(&17) && steps.contains(&120));
    assert_eq!(found, [17, 120]);
}

/// One story of which somebody asks to see all, or only some steps: a seed, and after a colon their numbers.
fn one_alone() -> Option<(u64, Option<Vec<usize>>)> {
    alone::parse(&std::env::var("MOORLINE_SIMULATION_SEED").ok()?)
}

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some((seed, _)) = one_alone() {
        return vec![seed];
    }
    let random = number("MOORLINE_SIMULATION_SEEDS").unwrap_or_default();
    let base = number("MOORLINE_SIMULATION_BASE").unwrap_or_else(|| RandomState::new().hash_one(0));
    if random > 0 {
        println!("the seeds of {random} random stories follow from MOORLINE_SIMULATION_BASE={base}");
    }
    let mut dice = Dice::new(base);
    let random = (0..random).map(|_| dice.next());
    let fixed = number("MOORLINE_SIMULATION_FIXED").unwrap_or(FIXED);
    (1..=fixed).chain(FOUND).chain(random).collect()
}

/// Prints how often each thing happened, and in how many stories.
fn cover(came: &[(u64, Came)]) {
    let mut all: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for (word, times) in came.iter().flat_map(|(_, one)| &one.happened) {
        let (sum, stories) = all.entry(word).or_default();
        (*sum, *stories) = (*sum + times, *stories + 1);
    }
    println!("{:28} {:>8} {:>8}", "what happened", "times", "stories");
    for (word, (times, stories)) in &all {
        println!("{word:28} {times:>8} {stories:>8}");
    }
    let is_whole = |part: &&[(u64, Came)]| part.len() == ALL_FAULTS;
    for part in came.chunks(ALL_FAULTS).filter(is_whole) {
        for fault in FAULTS {
            assert!(
                part.iter().any(|(_, one)| one.happened.contains_key(fault)),
                "no {fault} in {ALL_FAULTS} stories"
            );
        }
    }
}

fn fail(seed: u64, wrong: &str, stories: usize) -> ! {
    println!("seed {seed}, after {stories} stories: {wrong}");
    let replay = format!("MOORLINE_SIMULATION_SEED={seed} cargo test --test simulation -- --nocapture");
    println!("to see it again: {replay}");
    let shrinks = std::env::var("MOORLINE_SIMULATION_SHRINK").map_or(true, |answer| answer != "no");
    let goes_wrong = |steps: &[usize]| tell_alone(seed, Some(steps)).wrong.is_some();
    if !shrinks {
        panic!("seed {seed}: {wrong}\nto see it again: {replay}");
    }
    if one_alone().is_some_and(|(_, steps)| steps.is_some()) {
        panic!("seed {seed}: {wrong}");
    }
    let steps = shrink(steps::STEPS, goes_wrong);
    let all = steps::steps(seed);
    for step in &steps {
        println!("  step {step}: {:?}", all[*step]);
    }
    let numbers: Vec<String> = steps.iter().map(usize::to_string).collect();
    let short = replay.replace(&seed.to_string(), &format!("{seed}:{}", numbers.join(",")));
    panic!("seed {seed}: {wrong}\nto see it again: {replay}\nin {} steps: {short}", steps.len());
}
