//! One story, from its seed to its end.
//!
//! In: a seed, and the steps to take. Out: the events of the story, or the broken rule with the
//! step before it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::dice::Dice;
use super::observer::Observer;
use super::steps::{STEPS, Step, steps};
use super::world::World;
use super::world::chapters::draw;

/// Time that the cluster may take to be as the repository says, once nothing disturbs it. A field about which somebody has
/// fought is tried again after an hour at most.
const CONVERGES: Duration = Duration::from_secs(2 * 3600);
/// Time for which it is watched for requests that nobody needs.
const QUIET: Duration = Duration::from_secs(3600);
/// So long without a request is a rest.
const REST: Duration = Duration::from_secs(300);
/// Request classes that must be zero when nothing changes.
const ASKED: [&str; 5] = ["object", "status", "event", "list", "other"];
/// The chapters at the end of a story.
const CHAPTERS: usize = 3;
/// Between two looks at it.
const LOOK: Duration = Duration::from_secs(5);

/// The folder in which this process began: the same name for every process, because maps are ordered by what is in them.
const HERE: &str = "/proc/self/cwd";

/// Result of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// Number of times of each event.
    pub(crate) happened: BTreeMap<&'static str, u64>,
    /// A number of all requests and their times.
    pub(crate) trace: u64,
    /// The violation.
    pub(crate) wrong: Option<String>,
    /// The requests, if it was written down.
    pub(crate) log: String,
}

/// Tells the story of a seed with some of its steps, all if none are named.
pub(crate) fn tell(seed: u64, taken: Option<&[usize]>, write_down: bool) -> Told {
    let all = steps(seed);
    let taken: Vec<Step> = match taken {
        Some(taken) => taken.iter().filter_map(|nth| all.get(*nth)).cloned().collect(),
        None => all,
    };
    debug_assert!(taken.len() <= STEPS);
    moorline::chance::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let observer = Observer::default();
    if write_down {
        observer.write_down();
    }
    // The work of a process stays on one thread.
    let (mut happened, wrong) = tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut world = World::new(seed, Path::new(HERE), observer.clone());
        let wrong = go(&mut world, seed, &taken).await.err();
        for (word, times) in world.sandbox.faults().counts() {
            *world.happened.entry(word).or_default() += times;
        }
        (std::mem::take(&mut world.happened), wrong)
    });
    runtime.shutdown_timeout(Duration::from_millis(100));
    happened.retain(|_, times| *times > 0);
    Told { happened, trace: observer.trace(), wrong, log: observer.log() }
}

async fn go(world: &mut World, seed: u64, steps: &[Step]) -> Result<(), String> {
    world.keep_running();
    sleep(Duration::from_secs(5)).await;
    for (nth, step) in steps.iter().enumerate() {
        world.take(step).await;
        world.keep_running();
        let after = |what: String| format!("after step {nth} ({:?} of Sync {}): {what}", step.act, step.sync);
        check(world).map_err(after)?;
    }
    settles(world).await?;
    world.observer.counts();
    world.observer.is_quiet(true);
    sleep(QUIET).await;
    world.observer.is_quiet(false);
    check(world)?;
    if let Some(difference) = world.difference() {
        return Err(format!("it did not stay: {difference}"));
    }
    let counts = world.observer.counts();
    if ASKED.iter().any(|class| counts.contains_key(class)) {
        return Err(format!("an hour in which nothing changed cost requests: {counts:?}"));
    }
    let mut dice = Dice::new(seed);
    for chapter in draw(&mut dice, CHAPTERS) {
        world.tell_chapter(chapter, &mut dice).await?;
        settles(world).await.map_err(|wrong| format!("after {chapter:?}: {wrong}"))?;
    }
    Ok(())
}

/// All faults end, and the cluster reaches the state of the repository.
async fn settles(world: &mut World) -> Result<(), String> {
    world.settle();
    let settled = Instant::now();
    while let Some(difference) = world.difference() {
        if settled.elapsed() > CONVERGES {
            return Err(format!("it does not come to rest: {difference}\n{}", world.statuses()));
        }
        sleep(LOOK).await;
        world.keep_running();
        world.approve_all();
        check(world)?;
    }
    comes_to_rest(world, settled).await
}

/// Waits until what is left to do is done: statuses that are written, objects that are made sure of.
pub(crate) async fn comes_to_rest(world: &World, since: Instant) -> Result<(), String> {
    loop {
        world.observer.counts();
        sleep(REST).await;
        check(world)?;
        let counts = world.observer.counts();
        if !ASKED.iter().any(|class| counts.contains_key(class)) {
            return Ok(());
        }
        if since.elapsed() > CONVERGES {
            return Err(format!("there is no rest: {counts:?}"));
        }
    }
}

/// The first rule that is broken so far.
pub(crate) fn check(world: &World) -> Result<(), String> {
    if let Some(wrong) = world.observer.wrong().first() {
        return Err(wrong.clone());
    }
    world.touched().or_else(|| world.said()).or_else(|| world.held.wrong()).map_or(Ok(()), Err)
}
