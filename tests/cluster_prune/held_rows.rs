//! A revision is kept, or is not, also by a daemon that starts later: a chart that fails, a kept commit that is gone, a mirror
//! that is lost, a value or a path that is missing, and prunes while the repository is away.

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::git_server::Reply;
use moorline_test_support::kept::{
    QUIET, assert_not_repaired, assert_repaired, until_revision_held, until_revision_not_held, until_value,
};
use moorline_test_support::programs::find;
use moorline_test_support::scene::{Scene, file, text};

const BROKEN: &str = "a:\n - b\n c: [";

/// A chart of two ConfigMaps, of which the second is `b`.
fn chart(b: &str) -> Vec<(String, String)> {
    let map = |name: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{key: {{{{ .Values.value }}}}}}\n"
        )
    };
    vec![
        text("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        text("chart/values.yaml", "value: one\n"),
        text("chart/templates/a.yaml", &map("a")),
        text("chart/templates/b.yaml", &b.replace("MAP", &map("b"))),
    ]
}

#[tokio::test]
async fn a_chart_that_fails() {
    let Some(scene) = Scene::beside("kept-chart").await else { return };
    let Some(helm) = find("helm") else { return };
    let helm = std::path::absolute(helm).unwrap();
    let begin = || scene.daemon_with(&["--leader-election=false", "--helm", helm.to_str().unwrap()]);
    let kept = scene.push(&chart("MAP"));
    let daemon = begin();
    scene.sync("shop", json!({"path": "chart"})).await;
    scene.until_ready("shop", &kept).await;

    let refused = scene.push(&chart("{{ fail \"no\" }}"));
    scene.nudge("shop", "broken").await;
    until_revision_held(&scene, "HelmFailed", &refused, &kept).await;
    assert_repaired(&scene, "a").await;
    scene.assert_calm("a chart that fails is rendered once").await;
    drop(daemon);
    scene.edit("a", "edited while no daemon runs").await;
    let _daemon = begin();
    until_value(&scene, "a", "one").await;
    until_revision_held(&scene, "HelmFailed", &refused, &kept).await;
    assert_repaired(&scene, "a").await;
    assert_eq!(scene.values().await.len(), 2, "nothing is pruned by half of a chart");

    let mended = scene.push(&chart(""));
    scene.nudge("shop", "mended").await;
    scene.until_ready("shop", &mended).await;
    scene.until_values(&[file("a", "one")], "the object that left the chart is pruned").await;
    scene.delete_sync("shop").await;
}

/// The files of the daemon with its mirrors are lost.
fn lose_the_mirror(scene: &Scene) {
    std::fs::remove_dir_all(scene.root.path().join("daemon/data")).unwrap();
}

#[tokio::test]
async fn a_kept_commit_that_is_gone() {
    let Some(scene) = Scene::beside("kept-gone").await else { return };
    scene.push(&[file("app/a", "older"), file("app/b", "older")]);
    let (daemon, kept) =
        scene.applied(&[file("app/a", "one"), file("app/b", "one")], json!({"path": "app"})).await;
    // History is rewritten, so that no commit leads to the kept one.
    scene.work.git(&["rm", "-q", "app/b.json"]);
    scene.work.write("app/bad.yaml", BROKEN);
    scene.work.git(&["add", "-A"]);
    scene.work.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    let refused = scene.push(&[]);
    scene.nudge("shop", "broken").await;
    until_revision_held(&scene, "YamlInvalid", &refused, &kept).await;
    scene.work.git(&["--git-dir", "../repository.git", "gc", "-q", "--prune=now"]);
    assert_repaired(&scene, "a").await;

    drop(daemon);
    lose_the_mirror(&scene);
    scene.edit("a", "edited while no daemon runs").await;
    let _daemon = scene.daemon();
    until_revision_not_held(&scene, "YamlInvalid", &kept).await;
    assert_not_repaired(&scene, "a", "edited after the restart").await;
    assert_eq!(scene.values().await["b"], "one", "nothing is pruned, and no older commit is applied");
    let held = scene.status("shop", "/revision/held/revision").await;
    assert!(held.as_str().unwrap().ends_with(&kept), "{held}");

    scene.work.git(&["rm", "-q", "app/bad.yaml"]);
    let mended = scene.push(&[]);
    scene.nudge("shop", "mended").await;
    scene.until_ready("shop", &mended).await;
    scene.until_values(&[file("app/a", "one")], "the object that left Git is pruned").await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_kept_commit_is_fetched_by_its_id_where_the_mirror_is_lost() {
    let Some(scene) = Scene::beside("kept-fetched").await else { return };
    let (daemon, kept) = scene.applied(&[file("app/a", "one")], json!({"path": "app"})).await;
    let refused = scene.push(&[text("app/bad.yaml", BROKEN)]);
    scene.nudge("shop", "broken").await;
    until_revision_held(&scene, "YamlInvalid", &refused, &kept).await;
    drop(daemon);
    lose_the_mirror(&scene);
    scene.edit("a", "edited while no daemon runs").await;
    let _daemon = scene.daemon();
    until_value(&scene, "a", "one").await;
    until_revision_held(&scene, "YamlInvalid", &refused, &kept).await;
    assert_repaired(&scene, "a").await;
    scene.delete_sync("shop").await;
}

fn unreachable(scene: &Scene) {
    scene.git.rule(|_| Reply::Raw(503, "", Vec::new()));
}

/// A look at the repository has failed.
async fn until_away(scene: &Scene) {
    until("the repository is away", async || {
        let reason = scene.status("shop", "/conditions/0/reason").await;
        reason.as_str()?.starts_with("Repository").then_some(())
    })
    .await;
}

/// Somebody asks to keep an object, or does not any more.
async fn spare(scene: &Scene, name: &str, value: Value) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"moorline.dev/prune": value}}}));
    scene.maps().patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Two objects that left Git and are there still: one because pruning is off, the other one until somebody lets it go.
async fn two_that_left(scene: &Scene) -> (Daemon, String) {
    let whole = [file("app/a", "one"), file("app/b", "one"), file("app/c", "one")];
    let (daemon, _) = scene.applied(&whole, json!({"path": "app", "prune": {"enabled": false}})).await;
    spare(scene, "c", json!("disabled")).await;
    let commit = scene.remove(&["app/b.json", "app/c.json"]);
    scene.nudge("shop", "removed").await;
    scene.until_ready("shop", &commit).await;
    (daemon, commit)
}

#[tokio::test]
async fn prunes_go_on_while_the_repository_is_away() {
    let Some(scene) = Scene::beside("kept-away-prunes").await else { return };
    let (daemon, _) = two_that_left(&scene).await;
    unreachable(&scene);
    scene.nudge("shop", "away").await;
    until_away(&scene).await;
    scene.patch_sync("shop", json!({"spec": {"prune": {"enabled": true}}})).await;
    let (a, c) = (file("app/a", "one"), file("app/c", "one"));
    scene.until_values(&[a.clone(), c], "what may be pruned now is pruned").await;
    drop(daemon);
    spare(&scene, "c", Value::Null).await;
    let _daemon = scene.daemon();
    scene.until_values(&[a], "a daemon that starts prunes as well").await;
    until_away(&scene).await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn prunes_ask_while_the_repository_is_away_if_a_newer_commit_was_seen() {
    let Some(scene) = Scene::beside("kept-away-asks").await else { return };
    let (daemon, kept) = two_that_left(&scene).await;
    let refused = scene.push(&[text("app/bad.yaml", BROKEN)]);
    scene.nudge("shop", "broken").await;
    until_revision_held(&scene, "YamlInvalid", &refused, &kept).await;
    unreachable(&scene);
    scene.nudge("shop", "away").await;
    until_away(&scene).await;
    spare(&scene, "c", Value::Null).await;
    scene.patch_sync("shop", json!({"spec": {"prune": {"enabled": true}}})).await;
    let until_asked = async || {
        until("two prunes ask because of the newer commit", async || {
            let problems = scene.status("shop", "/problems").await.to_string();
            let asks = problems.contains("NewerRefused") && problems.contains(&refused);
            let waits = scene.status("shop", "/approval/objects").await == 2;
            (asks && waits).then_some(())
        })
        .await;
        tokio::time::sleep(QUIET).await;
        assert_eq!(scene.values().await.len(), 3, "nothing is pruned");
    };
    until_asked().await;
    drop(daemon);
    scene.edit("a", "edited while no daemon runs").await;
    let _daemon = scene.daemon();
    until_value(&scene, "a", "one").await;
    until_asked().await;
    let hash = scene.status("shop", "/approval/hash").await;
    scene.patch_sync("shop", json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}})).await;
    scene.until_values(&[file("app/a", "one")], "what was approved is pruned").await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn nothing_is_kept_while_the_repository_is_away_and_the_mirror_is_lost() {
    let Some(scene) = Scene::beside("kept-away-lost").await else { return };
    let (daemon, kept) =
        scene.applied(&[file("app/a", "one"), file("app/b", "one")], json!({"path": "app"})).await;
    drop(daemon);
    lose_the_mirror(&scene);
    unreachable(&scene);
    scene.edit("a", "edited while no daemon runs").await;
    let _daemon = scene.daemon();
    until_revision_not_held(&scene, "RepositoryUnavailable", &kept).await;
    assert_not_repaired(&scene, "a", "edited after the restart").await;
    scene.git.rule(|_| Reply::Git);
    scene.nudge("shop", "back").await;
    scene.until_ready("shop", &kept).await;
    until_value(&scene, "a", "one").await;
    scene.delete_sync("shop").await;
}

/// The object that the variables come from.
async fn values_are_there(scene: &Scene, kind: &str) {
    let body = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "values"}});
    let mut body: kube::api::DynamicObject = serde_json::from_value(body).unwrap();
    let field = if kind == "Secret" { "stringData" } else { "data" };
    body.data = json!({field: {"VALUE": "one"}});
    let by = PatchParams::apply("test").force();
    scene.dynamic("", "v1", kind).patch("values", &by, &Patch::Apply(&body)).await.unwrap();
}

/// Plays a restart while the object is missing that variables come from.
async fn values_are_missing(purpose: &str, kind: &str) {
    let Some(scene) = Scene::beside(purpose).await else { return };
    values_are_there(&scene, kind).await;
    let from = json!({"substitute": {"from": [{"kind": kind, "name": "values"}]}});
    let whole = [file("app/a", "${VALUE}"), file("app/b", "${VALUE}")];
    let (daemon, kept) = scene.applied(&whole, json!({"path": "app", "render": from})).await;
    scene.dynamic("", "v1", kind).delete("values", &DeleteParams::default()).await.unwrap();
    scene.until_reason("shop", "ValuesMissing").await;
    assert_repaired(&scene, "a").await;
    let newest = scene.remove(&["app/b.json"]);
    scene.nudge("shop", "removed").await;
    assert_repaired(&scene, "a").await;
    assert_eq!(scene.values().await.len(), 2, "nothing is pruned");

    drop(daemon);
    scene.edit("a", "edited while no daemon runs").await;
    let _daemon = scene.daemon();
    until_revision_not_held(&scene, "ValuesMissing", &kept).await;
    assert_not_repaired(&scene, "a", "edited after the restart").await;
    assert_eq!(scene.values().await.len(), 2, "nothing is pruned");
    values_are_there(&scene, kind).await;
    scene.until_ready("shop", &newest).await;
    scene.until_values(&[file("app/a", "one")], "it is repaired, and the object that left Git pruned").await;
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_config_map_of_values_that_is_missing() {
    values_are_missing("kept-config-map", "ConfigMap").await;
}

#[tokio::test]
async fn a_secret_of_values_that_is_missing() {
    values_are_missing("kept-secret", "Secret").await;
}

#[tokio::test]
async fn a_path_that_the_newer_commit_does_not_have() {
    let Some(scene) = Scene::beside("kept-path").await else { return };
    let (daemon, kept) = scene.applied(&[file("app/a", "one")], json!({"path": "app"})).await;
    scene.work.git(&["mv", "app", "elsewhere"]);
    let refused = scene.push(&[file("elsewhere/other", "one")]);
    scene.nudge("shop", "moved").await;
    until_revision_held(&scene, "PathNotFound", &refused, &kept).await;
    drop(daemon);
    scene.edit("a", "edited while no daemon runs").await;
    let _daemon = scene.daemon();
    until_value(&scene, "a", "one").await;
    until_revision_held(&scene, "PathNotFound", &refused, &kept).await;
    assert_repaired(&scene, "a").await;
    assert_eq!(scene.values().await.len(), 1, "nothing of the other folder is applied");
    scene.delete_sync("shop").await;
}
