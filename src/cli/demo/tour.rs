//! The tour of the demo: events, step by step, and the daemon's reaction to each.
//!
//! In: the shop and its server. Out: sentences, each printed once its content can be observed.

use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::{Value, json};

use super::super::Streams;
use super::setup::DemoSetup;
use crate::sandbox::Sandbox;

/// The longest that a step may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval at which a step is checked for completion.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

const SYNC: &str = "/apis/moorline.dev/v1alpha1/namespaces/moorline/syncs/shop";
const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";

struct Tour<'a, 'b> {
    setup: &'a DemoSetup,
    sandbox: &'a Sandbox,
    pace: Duration,
    streams: &'a mut Streams<'b>,
    step: u8,
}

/// Runs the tour.
pub(super) async fn walk(
    setup: &DemoSetup,
    sandbox: &Sandbox,
    pace: Duration,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let mut tour = Tour { setup, sandbox, pace, streams, step: 0 };
    tour.first_sync().await?;
    tour.commit().await?;
    tour.hand_edit().await?;
    tour.held_prune().await?;
    tour.bad_commit().await?;
    tour.streams.say("");
    tour.streams.say("End of the tour. The demo runs until Ctrl-C: change anything you like.");
    Ok(())
}

impl Tour<'_, '_> {
    async fn first_sync(&mut self) -> anyhow::Result<()> {
        self.title("The first sync");
        let took = self.wait_until("the first sync", is_ready).await?;
        let count = self.get(SYNC)["status"]["objects"]["desired"].clone();
        self.say(&format!(
            "{count} objects of the repository are applied and healthy, {took} after the start."
        ));
        self.pause().await;
        Ok(())
    }

    async fn commit(&mut self) -> anyhow::Result<()> {
        self.title("A commit");
        let text = DemoSetup::original_file("apps/web.yaml").replace("nginx:1.29", "nginx:1.31");
        let commit = self.setup.commit("web: nginx 1.31", &[("apps/web.yaml", &text)], &[])?;
        self.say("A developer commits \"web: nginx 1.31\".");
        let took = self.wait_until("the commit", |sync| is_applied(sync, &commit)).await?;
        let image = &self.get(WEB)["spec"]["template"]["spec"]["containers"][0]["image"];
        self.say(&format!("{took} later the Deployment web runs {image}. Nothing else was changed."));
        self.pause().await;
        Ok(())
    }

    async fn hand_edit(&mut self) -> anyhow::Result<()> {
        self.title("A hand edit");
        self.say("Someone scales web to 9 with kubectl, bypassing Git.");
        let begun = Instant::now();
        self.sandbox.merge(WEB, &json!({"spec": {"replicas": 9}}), "kubectl-scale")?;
        while self.get(WEB)["spec"]["replicas"] != 3 {
            self.wait(begun, "the repair").await?;
        }
        self.say(&format!("{} later web has 3 replicas again, as in Git.", span(begun.elapsed())));
        self.say("The status page shows the tool, the field and the time of the edit; so does: kubectl -n moorline get events");
        self.pause().await;
        Ok(())
    }

    async fn held_prune(&mut self) -> anyhow::Result<()> {
        self.title("A mistake that would delete most of the shop");
        let gone = ["apps/cart.yaml", "apps/catalog.yaml", "apps/payment.yaml", "apps/search.yaml"];
        self.setup.commit("Remove what nobody needs (?)", &[], &gone)?;
        self.say("A commit removes four of five applications: 12 of 15 objects.");
        self.wait_until("the prune is held", |sync| why(sync) == "PruneHeld").await?;
        self.say("Nothing is deleted: that exceeds the prune budget of the Sync. To approve it: moorline approve shop -n moorline");
        self.pause().await;
        let files: Vec<(&str, &str)> =
            gone.iter().map(|path| (*path, DemoSetup::original_file(path))).collect();
        let back = self.setup.commit("Revert \"Remove what nobody needs (?)\"", &files, &[])?;
        self.wait_until("the revert", |sync| is_applied(sync, &back)).await?;
        self.say("The commit is reverted. Nothing had to be recreated.");
        self.pause().await;
        Ok(())
    }

    async fn bad_commit(&mut self) -> anyhow::Result<()> {
        self.title("A commit that cannot be read");
        let text = DemoSetup::original_file("apps/web.yaml").replace("replicas: 3", "replicas: three");
        let broken = text.replace("  selector:\n", "  selector\n");
        self.setup.commit("web: more of it", &[("apps/web.yaml", &broken)], &[])?;
        self.say("A commit contains a file with a syntax error.");
        self.wait_until("the bad commit is told", |sync| why(sync) == "YamlInvalid").await?;
        let message =
            self.get(SYNC)["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned();
        self.say(&format!("Nothing changes in the cluster, and the Sync reports the error: {message}"));
        self.pause().await;
        let good = DemoSetup::original_file("apps/web.yaml");
        let mended = self.setup.commit("web: mended", &[("apps/web.yaml", good)], &[])?;
        let took = self.wait_until("the mended commit", |sync| is_applied(sync, &mended)).await?;
        self.say(&format!("A commit fixes it, and {took} later it is applied."));
        Ok(())
    }

    fn title(&mut self, words: &str) {
        self.step += 1;
        self.streams.say("");
        self.streams.say(&format!("{}. {words}", self.step));
    }

    fn say(&mut self, words: &str) {
        self.streams.say(&format!("   {words}"));
    }

    async fn pause(&self) {
        tokio::time::sleep(self.pace).await;
    }

    fn get(&self, place: &str) -> Value {
        self.sandbox.get(place).unwrap_or_default()
    }

    /// Waits until a condition of the Sync is true and returns the time that took, as text.
    async fn wait_until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> anyhow::Result<String> {
        let begun = Instant::now();
        while !is_so(&self.get(SYNC)) {
            self.wait(begun, what).await?;
        }
        Ok(span(begun.elapsed()))
    }

    async fn wait(&self, begun: Instant, what: &str) -> anyhow::Result<()> {
        if begun.elapsed() > STEP_TIMEOUT {
            bail!("{what}: not seen within {} s", STEP_TIMEOUT.as_secs());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        Ok(())
    }
}

fn ready(sync: &Value) -> Value {
    let conditions = sync["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|one| one["type"] == "Ready").cloned().unwrap_or_default()
}

fn ready_status(sync: &Value) -> String {
    ready(sync)["status"].as_str().unwrap_or_default().to_owned()
}

fn why(sync: &Value) -> String {
    ready(sync)["reason"].as_str().unwrap_or_default().to_owned()
}

fn is_ready(sync: &Value) -> bool {
    ready_status(sync) == "True"
}

fn is_applied(sync: &Value, commit: &str) -> bool {
    sync["status"]["revision"]["applied"].as_str().is_some_and(|applied| applied.ends_with(commit))
}

fn span(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}
