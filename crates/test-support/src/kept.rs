//! Checks for tests in which an older revision is held.
//!
//! In: a scene with the Sync `shop`.
//! Out: functions that wait for its status, and that check that drift is repaired or not.

use std::time::{Duration, Instant};

use kube::api::DeleteParams;

use super::daemon::until;
use super::scene::Scene;

/// Time in which nothing may happen.
pub const QUIET: Duration = Duration::from_secs(2);

/// Waits for Ready=False with this reason and a message with the refused and the held commit.
pub async fn until_revision_held(scene: &Scene, reason: &str, refused: &str, kept: &str) {
    until(&format!("{reason}: {refused} is refused and {kept} is kept"), async || {
        let ready = scene.status("shop", "/conditions/0").await;
        let message = ready["message"].as_str().unwrap_or_default().to_owned();
        let held = scene.status("shop", "/revision/held/revision").await;
        let is_said = message.contains(&format!("{refused} cannot be applied: "))
            && message.ends_with(&format!("@{kept} stays applied"));
        let is_told = ready["status"] == "False" && ready["reason"] == reason;
        (is_told && is_said && held.as_str()?.ends_with(kept)).then_some(())
    })
    .await;
}

/// Waits for Ready=False with this reason and the message that this commit is not kept.
pub async fn until_revision_not_held(scene: &Scene, reason: &str, commit: &str) {
    until(&format!("{reason}: {commit} is not kept"), async || {
        let ready = scene.status("shop", "/conditions/0").await;
        let is_told = ready["status"] == "False" && ready["reason"] == reason;
        (is_told && ready["message"].as_str()?.contains(&format!("{commit} is not held"))).then_some(())
    })
    .await;
}

/// Waits until a ConfigMap has this value.
pub async fn until_value(scene: &Scene, name: &str, expect: &str) {
    until(&format!("{name} has the value {expect}"), async || {
        (scene.values().await.get(name)? == expect).then_some(())
    })
    .await;
}

/// Checks that a manual edit and a deletion are repaired; returns the time that the first took.
pub async fn assert_repaired(scene: &Scene, name: &str) -> Duration {
    scene.edit(name, "edited").await;
    let begun = Instant::now();
    until_value(scene, name, "one").await;
    let took = begun.elapsed();
    scene.maps().delete(name, &DeleteParams::default()).await.unwrap();
    until_value(scene, name, "one").await;
    took
}

/// Checks that a manual edit is not repaired: nothing is written.
pub async fn assert_not_repaired(scene: &Scene, name: &str, edit: &str) {
    scene.edit(name, edit).await;
    let before = scene.versions().await;
    tokio::time::sleep(QUIET).await;
    assert_eq!(scene.versions().await, before, "nothing is written after {edit}");
}
