//! Alerts and dashboard of the chart in a real Prometheus, which asks a real daemon: every panel shows something, and an
//! alert comes and goes. Its tool finds nothing wrong with the daemon's page.

pub(crate) mod server;

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::Fate;
use moorline_test_support::git_server::Reply;
use moorline_test_support::programs::{command, find};
use moorline_test_support::scene::{Scene, config_map};
use server::Prometheus;

/// Values of the panels' variables.
const VARIABLES: [(&str, &str); 2] = [("$__rate_interval", "10m"), ("$sync", ".*")];

fn file(name: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/moorline/files").join(name);
    std::fs::read_to_string(place).unwrap()
}

/// The chart's alerts, which wait a second where they would wait minutes.
fn impatient_alerts() -> String {
    let (mut waiting, mut text) = (0, String::new());
    for line in file("alerts.yaml").lines() {
        let is_waiting = line.trim_start().starts_with("for: ");
        waiting += usize::from(is_waiting);
        let blanks = &line[..line.len() - line.trim_start().len()];
        text += &if is_waiting { format!("{blanks}for: 1s\n") } else { format!("{line}\n") };
    }
    assert!(waiting > 5, "{text}");
    text
}

/// Every query of the dashboard, with the title of its panel.
fn panels() -> Vec<(String, String)> {
    let board: Value = serde_json::from_str(&file("dashboard.json")).unwrap();
    let mut found = Vec::new();
    for panel in board["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let mut query = target["expr"].as_str().unwrap().to_owned();
            for (variable, value) in VARIABLES {
                query = query.replace(variable, value);
            }
            assert!(!query.contains('$'), "a variable that is not known here: {query}");
            found.push((panel["title"].as_str().unwrap().to_owned(), query));
        }
    }
    found
}

/// Pushes or removes, and lets the daemon see it.
async fn commit(scene: &Scene, commit: String) {
    scene.nudge("shop", &commit).await;
    scene.until_ready("shop", &commit).await;
}

/// Everything that the panels are about happens once, and Prometheus has seen it.
async fn busy(scene: &Scene, prometheus: &Prometheus, round: u32) {
    let counted = async |series: &str| {
        let series = format!("sum({series})");
        until(&format!("{series} is at least {round}"), async || {
            (prometheus.value(&series) >= f64::from(round)).then_some(())
        })
        .await;
    };
    scene.edit("a", "by hand").await;
    counted("moorline_drift_repaired_total").await;
    commit(scene, scene.push(&[("shop/b.json".to_owned(), config_map("b", "one"))])).await;
    commit(scene, scene.remove(&["shop/b.json"])).await;
    counted("moorline_pruned_total").await;

    let of_maps = |path: &str| path.contains("/configmaps");
    scene.proxy.first(1, move |one| one.is_watch() && of_maps(&one.path), Fate::Answer(410, None));
    scene.proxy.cut_watches();
    counted("moorline_watch_relists_total{group_kind=\"ConfigMap\"}").await;

    scene.git.rule(|_| Reply::Raw(500, "", Vec::new()));
    scene.nudge("shop", &format!("broken {round}")).await;
    counted("moorline_git_operation_errors_total{operation=\"resolve\"}").await;
    scene.git.rule(|_| Reply::Git);
    scene.nudge("shop", &format!("whole {round}")).await;
}

/// Every panel shows a number.
async fn until_all_show(prometheus: &Prometheus) {
    let panels = panels();
    assert!(panels.len() > 15, "{panels:?}");
    for (title, query) in panels {
        until(&format!("the panel {title:?} shows something: {query}"), async || {
            let series = prometheus.query(&query).unwrap_or_else(|error| panic!("{title}: {query}: {error}"));
            series.iter().any(|(_, value)| value.is_finite()).then_some(())
        })
        .await;
    }
}

/// Prometheus' own tool can read all of the page, and finds nothing in it that is not as figures should be.
fn assert_page_is_sound(daemon: &Daemon) {
    let Some(program) = find("promtool") else { return };
    let answer = daemon.get("/metrics").expect("an answer");
    let (head, page) = answer.split_once("\r\n\r\n").expect("a head and a page");
    assert!(!head.to_lowercase().contains("chunked"), "the page comes in one piece: {head}");
    for name in [
        "moorline_drift_repaired_total{",
        "moorline_git_operation_errors_total{",
        "process_start_time_seconds ",
    ] {
        assert!(page.contains(name), "the page should have {name}: {page}");
    }
    let mut tool = command(&program);
    tool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tool = tool.spawn().unwrap();
    tool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let told = tool.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (code, found) = (told.status.code(), text(&told.stdout) + &text(&told.stderr));
    assert_eq!((code, found.as_str()), (Some(0), ""), "{page}");
}

#[tokio::test]
async fn every_panel_shows_something_and_an_alert_comes_and_goes() {
    let Some(program) = find("prometheus") else { return };
    let Some(scene) = Scene::new("prometheus").await else { return };
    let daemon = scene.daemon_with(&[]);
    let unknown = json!({"apiVersion": "nobody.knows/v1", "kind": "Thing", "metadata": {"name": "it"}});
    let first = scene.push(&[
        ("shop/a.json".to_owned(), config_map("a", "one")),
        ("stuck/c.json".to_owned(), config_map("c", "one")),
        ("stuck/it.json".to_owned(), unknown.to_string()),
    ]);
    for name in ["shop", "stuck"] {
        scene.sync(name, json!({"path": name})).await;
    }
    scene.until_ready("shop", &first).await;
    scene.until_reason("stuck", "ObjectsHeld").await;

    let target = daemon.address().expect("the daemon listens");
    let (reaper, folder) = (&scene.plane.reaper, scene.root.path().join("prometheus"));
    let prometheus = Prometheus::start(&program, reaper, &folder, &target, &impatient_alerts()).await;
    until("the daemon is asked and answers", async || (prometheus.value("up") == 1.0).then_some(())).await;

    let stuck = format!("{}/stuck", scene.namespace);
    let told = until("an alert fires", async || {
        prometheus.firing("MoorlineNotReady").into_iter().find(|alert| alert["labels"]["sync"] == *stuck)
    });
    let summary = format!("The Sync {stuck} is not ready.");
    assert_eq!(told.await["annotations"]["summary"], *summary);

    // A rate is known by two samples.
    for round in [1, 2] {
        busy(&scene, &prometheus, round).await;
    }
    until_all_show(&prometheus).await;
    assert_page_is_sound(&daemon);

    let without = scene.remove(&["stuck/it.json"]);
    scene.nudge("stuck", "without it").await;
    scene.until_ready("stuck", &without).await;
    until("no alert of it fires", async || {
        prometheus
            .firing("MoorlineNotReady")
            .iter()
            .all(|alert| alert["labels"]["sync"] != *stuck)
            .then_some(())
    })
    .await;
    assert_eq!(prometheus.value("up"), 1.0);
    for name in ["shop", "stuck"] {
        scene.delete_sync(name).await;
    }
}
