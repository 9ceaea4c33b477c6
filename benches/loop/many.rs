//! Many small Syncs of one repository.
//!
//! In: the number of Syncs.
//! Out: rows: the first sync of all, a commit that changes one of them, and an idle time. If a poll
//! for one Sync does not bring its commit to the other Syncs of the repository, polls are triggered
//! for all, as by a webhook.

use std::time::Duration;

use serde_json::json;

use super::ground::{BenchEnvironment, MOMENT};
use super::steady::{applied, count, idle, rest, row};
use super::tail::{is_apply, is_on_objects};
use super::verdict::{Check, Limit, Row};
use super::workload;

/// Timeout for all Syncs to become ready.
const SETTLE: Duration = Duration::from_secs(300);
/// Time in which all Syncs should reach a commit that changes one of them, without a further
/// trigger.
const FOLLOW: Duration = Duration::from_secs(3);

/// Creates all Syncs at once, then changes one of them by a commit.
pub(crate) async fn many(syncs: usize) -> Vec<Row> {
    let mut ground = BenchEnvironment::new(syncs).await;
    let commit = ground.work.git(&["rev-parse", "HEAD"]);
    let window = ground.open();
    let begun = ground.create_sync_each().await;
    let created = super::settled::now() - begun;
    let wall = ground.settled.all(syncs, &commit, SETTLE).await.map(|end| end - begun);
    if wall.is_none() {
        eprintln!("{} of {syncs} Syncs settled:\n{}", ground.settled.on(&commit).len(), ground.log());
    }
    let checks = vec![Check::new("all settled, s", wall, Limit::Under(15.0))];
    let more = json!({"syncs": syncs, "creating_them_took": super::verdict::rounded(created)});
    let first = row("many", &mut ground, &window, wall, checks, more);
    rest(&mut ground).await;
    let change = change(&mut ground, syncs).await;
    rest(&mut ground).await;
    let mut idle = idle(&mut ground, None).await;
    idle.name = "many-idle";
    vec![first, change, idle]
}

async fn change(ground: &mut BenchEnvironment, syncs: usize) -> Row {
    let at = syncs / 2;
    let name = workload::name(at);
    let (path, text) = workload::with_image(at, "registry.example.com/shop/web:2.0.0");
    let commit = ground.work.push(&[(&path, &text)]);
    let window = ground.open();
    let mut begun = ground.trigger_poll(&name).await;
    let live = ground.tail.until(window.mark, MOMENT, |seen| applied(seen, &name, begun)).await;
    let live = live.map(|live| live - begun);
    let mut all = ground.settled.all(syncs, &commit, FOLLOW).await;
    let follow = all.is_some();
    if !follow {
        begun = ground.nudge_each().await;
        all = ground.settled.all(syncs, &commit, MOMENT).await;
    }
    let all = all.map(|end| end - begun);
    let on = ground.settled.on(&commit).len();
    let others = count(ground, &window, |request| is_on_objects(request) && request.name != name);
    let checks = vec![
        Check::new("nudge to live, s", live, Limit::Under(0.5)),
        Check::new("applies", count(ground, &window, is_apply), Limit::Is(1.0)),
        Check::new("all on the new commit, s", all, Limit::Under(2.0)),
        Check::new("requests on objects of others", others, Limit::Is(0.0)),
    ];
    let more = json!({"syncs": syncs, "on_the_commit": on, "one_nudge_was_enough": follow});
    row("many-change", ground, &window, all, checks, more)
}
