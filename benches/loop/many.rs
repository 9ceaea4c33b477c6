//! Many small Syncs on one repository.
//!
//! In: how many. Out: three rows: all of them for the first time, one of them changes, and all are on its commit.

use std::time::Duration;

use serde_json::json;

use super::ground::{Ground, MOMENT};
use super::steady::{applied, count, rest, row};
use super::tail::{is_apply, is_on_objects};
use super::verdict::{Bar, Check, Row};
use super::workload;

/// For all Syncs to settle.
const SETTLE: Duration = Duration::from_secs(300);
/// For all Syncs to be on a commit that changes one of them.
const FOLLOW: Duration = Duration::from_secs(30);

/// All Syncs are created at once, then a commit changes one of them.
pub(crate) async fn many(syncs: usize) -> Vec<Row> {
    let mut ground = Ground::new(syncs).await;
    let commit = ground.work.git(&["rev-parse", "HEAD"]);
    let window = ground.open();
    let begun = ground.create_sync_each().await;
    let created = super::settled::now() - begun;
    let wall = ground.settled.all(syncs, &commit, SETTLE).await.map(|end| end - begun);
    if wall.is_none() {
        eprintln!("{} of {syncs} Syncs settled:\n{}", ground.settled.on(&commit).len(), ground.log());
    }
    let checks = vec![Check::new("all settled, s", wall, Bar::Under(15.0))];
    let more = json!({"syncs": syncs, "creating_them_took": super::verdict::rounded(created)});
    let first = row("many", &mut ground, &window, wall, checks, more);
    rest(&mut ground).await;
    vec![first, change(&mut ground, syncs).await]
}

async fn change(ground: &mut Ground, syncs: usize) -> Row {
    let at = syncs / 2;
    let name = workload::name(at);
    let (path, text) = workload::with_image(at, "registry.example.com/shop/web:2.0.0");
    let commit = ground.work.push(&[(&path, &text)]);
    let window = ground.open();
    let begun = ground.nudge(&name).await;
    let live = ground.tail.until(window.mark, MOMENT, |seen| applied(seen, &name, begun)).await;
    let live = live.map(|live| live - begun);
    let all = ground.settled.all(syncs, &commit, FOLLOW).await.map(|end| end - begun);
    let on = ground.settled.on(&commit).len();
    let others = count(ground, &window, |request| is_on_objects(request) && request.name != name);
    let checks = vec![
        Check::new("nudge to live, s", live, Bar::Under(0.5)),
        Check::new("applies", count(ground, &window, is_apply), Bar::Is(1.0)),
        Check::new("all on the new commit, s", all, Bar::Under(2.0)),
        Check::new("requests on objects of others", others, Bar::Is(0.0)),
    ];
    row("many-change", ground, &window, all, checks, json!({"syncs": syncs, "on_the_commit": on}))
}
