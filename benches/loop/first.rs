//! The first sync of everything, compared with the floor.
//!
//! In: the number of applications, and of rounds.
//! Out: a row, and the environment of the last round with everything in sync.

use std::time::Duration;

use serde_json::{Map, json};

use super::floor::{best, floor};
use super::ground::{BenchEnvironment, Usage, Window};
use super::tail::is_apply;
use super::verdict::{Check, Limit, Row, median, rounded};
use super::workload::EACH;

/// Timeout for the first sync, for each object: far more than it takes.
const PER_OBJECT: Duration = Duration::from_millis(60);
/// Limit of the time of a first sync, as a multiple of the floor.
const TIMES_FLOOR: f64 = 1.3;

/// Parameters of the measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) applications: usize,
    pub(crate) rounds: usize,
    /// Limit of the peak memory, in millions of bytes.
    pub(crate) memory: f64,
}

/// Measures the floor and Moorline in turn; the median of each counts.
pub(crate) async fn first(plan: Plan) -> (Row, BenchEnvironment) {
    let (mut floors, mut floor_times, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = None;
    for _ in 0..plan.rounds.max(1) {
        // Two control planes at a time would compete for the CPUs.
        drop(last.take());
        let at = floor(plan.applications).await;
        floors.push(best(&at));
        let at =
            at.into_iter().map(|(concurrency, seconds)| (concurrency.to_string(), rounded(seconds).into()));
        floor_times.push(at.collect::<Map<_, _>>());
        let (seconds, used, ground) = sync(plan.applications).await;
        times.extend(seconds);
        last = Some((used, ground));
    }
    let (used, ground) = last.unwrap_or_else(|| unreachable!("there is at least one round"));
    let (floor, wall) = (median(&floors), median(&times).filter(|_| times.len() == plan.rounds.max(1)));
    let ratio = wall.zip(floor).map(|(wall, floor)| wall / floor);
    let checks = vec![
        Check::new("times the floor", ratio, Limit::AtMost(TIMES_FLOOR)),
        Check::new("peak memory, MB", used.peak, Limit::Under(plan.memory)),
    ];
    let more = json!({
        "floor_seconds": floor.map(rounded),
        "floors_by_concurrency": floor_times,
        "rounds": times.iter().copied().map(rounded).collect::<Vec<_>>(),
    });
    let row = Row {
        name: plan.name,
        objects: plan.applications * EACH,
        wall,
        used,
        checks,
        more: more.as_object().cloned().unwrap_or_default(),
    };
    (row, ground)
}

/// One round of Moorline: from the creation of the Sync to the last object.
pub(crate) async fn sync(applications: usize) -> (Option<f64>, Usage, BenchEnvironment) {
    let mut ground = BenchEnvironment::new(applications).await;
    let window = ground.open();
    let begun = ground.create_sync().await;
    let done = created(&mut ground, &window).await;
    let used = ground.close(&window);
    (done.map(|done| done - begun), used, ground)
}

/// Time of the response that created the last object; `None` after a timeout.
pub(crate) async fn created(ground: &mut BenchEnvironment, window: &Window) -> Option<f64> {
    let objects = ground.applications * EACH;
    let within = Duration::from_secs(30) + PER_OBJECT * u32::try_from(objects).unwrap_or(u32::MAX);
    let done = ground.tail.until(window.mark, within, |seen| {
        // Skips the check below: on each poll it would take CPU time from the measured processes.
        if seen.len() < objects {
            return None;
        }
        let created = seen.iter().filter(|request| is_apply(request) && request.code == 201);
        let times: Vec<f64> = created.map(|request| request.answered).collect();
        (times.len() >= objects).then(|| times.into_iter().fold(0.0, f64::max))
    });
    let done = done.await;
    if done.is_none() {
        eprintln!("not everything was created within {within:?}:\n{}", ground.log());
    }
    done
}
