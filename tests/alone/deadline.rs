//! The deadline of a pass is the truth: a pass is over then, says so, and keeps nobody else from the processor.

use std::time::{Duration, Instant};

use serde_json::json;

use moorline_test_support::daemon::until_within;
use moorline_test_support::scene::{Scene, config_map};

/// Time that the Sync may take, and that a look at its status and the end of a step may take beside it.
const TIMEOUT: Duration = Duration::from_secs(5);
const BESIDE: Duration = Duration::from_secs(7);

/// The longest that a neighbour waits: what is tried again keeps the processor until its time is over at most.
const NEIGHBOUR: Duration = Duration::from_secs(6);

/// The longest until anything happens.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file that takes much longer to be read.
fn large() -> String {
    let items = "b,".repeat(7_500_000);
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: large}}\ndata: {{a: [{items}]}}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_is_over_at_its_deadline_and_its_processor_is_free_for_others() {
    let Some(scene) = Scene::new("deadline").await else { return };
    let good = |value: &str| ("good/good.json".to_owned(), config_map("good", value));
    let first = scene.push(&[good("1"), ("large/small.json".to_owned(), config_map("small", "1"))]);
    let _daemon = scene.daemon_with(&["--leader-election=false", "--memory", "8Gi"]);
    scene.sync("good", json!({"path": "good"})).await;
    scene.sync("large", json!({"path": "large", "timeout": "5s"})).await;
    for name in ["good", "large"] {
        scene.until_ready(name, &first).await;
    }

    scene.push(&[("large/large.yaml".to_owned(), large())]);
    let begun = Instant::now();
    scene.nudge("large", "large").await;
    until_within(PATIENCE, "the pass is over", async || {
        let said = scene.status("large", "/conditions/0").await;
        let message = said["message"].as_str().unwrap_or_default();
        (said["reason"] == "RenderFailed" && message.contains("longer than spec.timeout")).then_some(())
    })
    .await;
    assert!(begun.elapsed() < TIMEOUT + BESIDE, "{:?}", begun.elapsed());

    // It is tried again and again, and others go on beside it.
    for value in ["2", "3", "4"] {
        let commit = scene.push(&[good(value)]);
        let begun = Instant::now();
        scene.nudge("good", value).await;
        until_within(PATIENCE, "the commit of the neighbour is applied", async || {
            (scene.values().await.get("good").map(String::as_str) == Some(value)).then_some(())
        })
        .await;
        println!("the neighbour's commit {commit} took {:?}", begun.elapsed());
        assert!(begun.elapsed() < NEIGHBOUR, "{:?}", begun.elapsed());
    }

    // So does the Sync itself, with its next commit.
    let mended = scene.remove(&["large/large.yaml"]);
    scene.nudge("large", "mended").await;
    scene.until_ready("large", &mended).await;
}
