//! The history of a Sync answers "what happened?": applied revisions with author and subject, repairs, deletions by others.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::{until, until_within};
use moorline_test_support::person::moorline;
use moorline_test_support::scene::{Scene, config_map, many};
use moorline_test_support::status::{define, object, ready, report, waiting};

/// Commits files as an author, with a subject, and pushes them.
fn commit_as(scene: &Scene, author: &str, subject: &str, files: &[(String, String)]) -> String {
    files.iter().for_each(|(path, text)| scene.work.write(path, text));
    scene.work.git(&["add", "-A"]);
    let author = format!("--author={author} <a@example.com>");
    scene.work.git(&["commit", "-q", "--allow-empty", &author, "-m", subject]);
    scene.work.git(&["push", "-q", "-f", "origin", "HEAD"]);
    scene.work.git(&["rev-parse", "HEAD"])
}

/// The notes of all Events with this reason.
async fn notes(scene: &Scene, reason: &str) -> Vec<String> {
    let events = scene.dynamic("events.k8s.io", "v1", "Event");
    let events = events.list(&ListParams::default()).await.unwrap().items.into_iter();
    let events = events.filter(|event| event.data["reason"] == reason);
    events.filter_map(|event| event.data["note"].as_str().map(str::to_owned)).collect()
}

/// Waits until one Event with this reason says all of these words.
async fn until_told(scene: &Scene, reason: &str, words: &[&str]) -> String {
    until(&format!("{reason} tells of {words:?}"), async || {
        let notes = notes(scene, reason).await;
        notes.into_iter().find(|note| words.iter().all(|word| note.contains(word)))
    })
    .await
}

/// The history of the Sync `shop`, the newest entry first.
async fn history(scene: &Scene) -> Vec<Value> {
    scene.status("shop", "/history").await.as_array().cloned().unwrap_or_default()
}

/// True for text that a terminal obeys or that nobody sees.
fn is_harmful(text: &str) -> bool {
    let harmful = ['\u{1b}', '\u{7}', '\u{202e}', '\u{200b}', '\u{2066}', '\u{feff}'];
    text.contains(harmful)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_applied_revision_is_in_the_history_and_in_an_event() {
    let Some(scene) = Scene::new("told").await else { return };
    let first = commit_as(&scene, "Ada Lovelace", "Open the shop", &many(3, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &first).await;

    let evil = "\u{1b}[31mRaise\u{202e} the\u{200b} limit\u{7}\u{2066}\u{feff}";
    let second = commit_as(&scene, "Grace \u{1b}[1mHopper", evil, &many(1, "two"));
    scene.nudge("shop", "second").await;
    scene.until_ready("shop", &second).await;

    scene.work.git(&["rm", "-q", "a-2.json"]);
    let new = [("b.json".to_owned(), config_map("b", "one"))];
    let third = commit_as(&scene, &"n".repeat(300), &"s".repeat(900), &new);
    scene.nudge("shop", "third").await;
    scene.until_ready("shop", &third).await;

    let told = history(&scene).await;
    let field = |name: &str| told.iter().map(|entry| entry[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("result"), ["Applied", "Applied", "Applied"]);
    let revisions = [&third, &second, &first].map(|commit| format!("main@{commit}"));
    assert_eq!(field("revision"), revisions);
    assert_eq!(field("short"), [&third, &second, &first].map(|commit| format!("main@{}", &commit[..8])));
    let changes = [json!({"created": 1, "pruned": 1}), json!({"changed": 1}), json!({"created": 3})];
    assert_eq!(field("changes"), changes);
    assert_eq!((&told[2]["subject"], &told[2]["author"]), (&json!("Open the shop"), &json!("Ada Lovelace")));
    let (subject, author) = (told[1]["subject"].as_str().unwrap(), told[1]["author"].as_str().unwrap());
    assert!(subject.contains("Raise") && subject.contains(" limit") && !is_harmful(subject), "{subject:?}");
    assert!(author.contains("Hopper") && !is_harmful(author), "{author:?}");
    for (name, length) in [("subject", 101), ("author", 101)] {
        assert_eq!(told[0][name].as_str().unwrap().chars().count(), length, "{name} is cut");
    }
    for entry in &told {
        let duration = entry["duration"].as_str().unwrap();
        assert!(
            duration.ends_with('s') && duration.starts_with(|it: char| it.is_ascii_digit()),
            "{duration}"
        );
        assert!(entry["time"].is_string());
    }

    until_told(&scene, "Applied", &[&first[..8], "Open the shop", "Ada Lovelace", "3 created"]).await;
    until_told(&scene, "Applied", &[&second[..8], "Raise", "1 changed"]).await;
    until_told(&scene, "Applied", &[&third[..8], "1 created", "1 pruned"]).await;
    let applied = notes(&scene, "Applied").await;
    assert_eq!(applied.len(), 3, "{applied:?}");
    assert!(!applied.iter().any(|note| is_harmful(note)), "{applied:?}");
    let name = format!("ConfigMap {}/a-2", scene.namespace);
    until_told(&scene, "Pruned", &[&name]).await;

    for (verb, words) in [("status", ["Open the shop", "Ada Lovelace"]), ("events", ["Raise", "Hopper"])] {
        let shown = moorline(&scene, &[verb, "shop"]);
        assert!(words.iter().all(|word| shown.data.contains(word)), "{verb}: {}", shown.data);
        assert!(!is_harmful(&shown.data), "{verb}: {:?}", shown.data);
    }

    // A commit that changes no object is in the history, and is no Event.
    let fourth = scene.push(&[("README".to_owned(), "for people".to_owned())]);
    scene.nudge("shop", "fourth").await;
    scene.until_ready("shop", &fourth).await;
    scene.assert_calm("after all commits").await;
    let told = history(&scene).await;
    assert_eq!((told.len(), &told[0]["subject"], &told[0]["changes"]), (4, &json!("x"), &Value::Null));
    assert_eq!(notes(&scene, "Applied").await.len(), 3);
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_and_edits_by_others_are_reported_without_values() {
    let Some(scene) = Scene::new("others").await else { return };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "stringData": {"password": "planted-in-git"}});
    let files = [many(3, "one"), vec![("login.json".to_owned(), secret.to_string())]].concat();
    let (mut daemon, _) = scene.applied(&files, json!({"interval": "1h"})).await;
    scene.settle().await;

    scene.maps().delete("a-1", &DeleteParams::default()).await.unwrap();
    let name = format!("ConfigMap {}/a-1: was deleted outside of Git, created again", scene.namespace);
    until_told(&scene, "DriftRepaired", &[&name]).await;
    let statuses = |scene: &Scene| {
        let asked = scene.proxy.take_requests();
        asked.iter().filter(|one| one.writes() && one.path.ends_with("/syncs/shop/status")).count()
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let written = statuses(&scene);
    assert!(written <= 2, "{written} statuses for one repair");

    let patch = Patch::Merge(json!({"stringData": {"password": "planted-by-hand"}}));
    let by = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    scene.dynamic("", "v1", "Secret").patch("login", &by, &patch).await.unwrap();
    until_told(&scene, "DriftRepaired", &["login", "data.password", "kubectl-edit"]).await;

    // The repairs count for the revision that stands.
    until("both repairs are in the history", async || {
        let told = history(&scene).await;
        (told.len() == 1 && told[0]["changes"]["repaired"] == 2).then_some(())
    })
    .await;
    scene.assert_calm("after two repairs").await;

    // An object that is deleted while no daemon runs was deleted by others, too.
    daemon.terminate();
    scene.maps().delete("a-2", &DeleteParams::default()).await.unwrap();
    let _daemon = scene.daemon();
    let name = format!("ConfigMap {}/a-2: was deleted outside of Git, created again", scene.namespace);
    until_told(&scene, "DriftRepaired", &[&name]).await;
    let events = scene.dynamic("events.k8s.io", "v1", "Event");
    let events = serde_json::to_string(&events.list(&ListParams::default()).await.unwrap()).unwrap();
    let status = scene.status("shop", "").await.to_string();
    for text in [&events, &status] {
        assert!(!text.contains("planted"), "a value of a Secret is shown: {text}");
    }
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_others_delete_is_reported() {
    let Some(scene) = Scene::new("told-place").await else { return };
    let place = format!("{}-made", scene.namespace);
    let spec = json!({"targetNamespace": place, "createNamespace": true, "interval": "1h"});
    let (_daemon, _) = scene.applied(&many(2, "one"), spec).await;
    scene.settle().await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(scene.admin.clone());
    namespaces.delete(&place, &DeleteParams::default()).await.unwrap();
    let name = format!("Namespace {place}: was deleted outside of Git, created again");
    until_told(&scene, "DriftRepaired", &[&name]).await;
    until_told(&scene, "DriftRepaired", &[&format!("ConfigMap {place}/a-0: was deleted outside of Git")])
        .await;
    until("the history counts them", async || {
        (history(&scene).await[0]["changes"]["repaired"].as_i64() >= Some(2)).then_some(())
    })
    .await;
    scene.delete_sync("shop").await;
    namespaces.delete(&place, &DeleteParams::default()).await.unwrap();
}

/// Returns the number of repairs in a note: those that it names, and those that it counts.
fn repairs_told(note: &str) -> usize {
    let counted =
        note.rsplit_once("; and ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<usize>().ok());
    note.matches(" changed by ").count() + counted.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_repairs_in_a_minute_are_ten_events_and_one_with_a_count() {
    let Some(scene) = Scene::new("thirty").await else { return };
    let (_daemon, _) = scene.applied(&many(30, "one"), json!({"interval": "1h"})).await;
    scene.settle().await;
    for at in 0..30 {
        scene.edit(&format!("a-{at}"), "by hand").await;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    scene.until_values(&many(30, "one"), "all edits are repaired").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let at_once = notes(&scene, "DriftRepaired").await;
    assert!((1..=10).contains(&at_once.len()), "{} Events: {at_once:?}", at_once.len());
    let told = until_within(Duration::from_secs(90), "all repairs are reported", async || {
        let notes = notes(&scene, "DriftRepaired").await;
        (notes.iter().map(|note| repairs_told(note)).sum::<usize>() >= 30).then_some(notes)
    })
    .await;
    assert!(told.len() <= 11, "{} Events: {told:?}", told.len());
    assert_eq!(told.iter().map(|note| repairs_told(note)).sum::<usize>(), 30, "{told:?}");
    assert_eq!(told.iter().filter(|note| note.contains("; and ")).count(), 1, "{told:?}");
    let names: BTreeMap<String, usize> = told.iter().map(|note| (note.clone(), 1)).collect();
    assert_eq!(names.len(), told.len(), "no Event says the same twice");
    scene.assert_calm("after thirty repairs").await;
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_whose_workload_never_gets_well_are_in_the_history() {
    let Some(scene) = Scene::new("never-well").await else { return };
    let cranes = define(&scene, "Crane").await;
    let push = |at: u8| {
        let (name, body) = object("Crane", "one");
        let files = [(name, body.replace("\"size\":1", &format!("\"size\":{at}")))];
        commit_as(&scene, "Ada Lovelace", &format!("Take release {at}"), &files)
    };
    let mut commits = vec![push(1)];
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    for at in 2..=4 {
        let applied = format!("main@{}", commits.last().unwrap());
        until("it is applied", async || {
            (scene.status("shop", "/revision/applied").await == applied).then_some(())
        })
        .await;
        report(&cranes, "one", ready("False", "it is not lifted yet")).await;
        if at < 4 {
            commits.push(push(at));
            scene.nudge("shop", &at.to_string()).await;
        }
    }
    let told = until("three revisions are reported", async || {
        let told = history(&scene).await;
        (told.len() == 3).then_some(told)
    })
    .await;
    for (entry, at) in told.iter().zip([3, 2, 1]) {
        assert_eq!(entry["subject"], format!("Take release {at}"));
        assert_eq!(entry["revision"], format!("main@{}", commits[at - 1]));
        assert_eq!(entry["result"], "Applied", "{entry}");
    }
    assert_ne!(scene.status("shop", "/conditions/0/status").await, "True", "it is not well");
    for (at, commit) in commits.iter().enumerate() {
        until_told(&scene, "Applied", &[&commit[..8], &format!("Take release {}", at + 1)]).await;
    }
    scene.assert_calm_but_for_looks("while it is not well").await;
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_approvals_and_prunes_are_reported() {
    let Some(scene) = Scene::new("refusals").await else { return };
    let good = commit_as(&scene, "Ada Lovelace", "Open the shop", &many(16, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &good).await;

    // A commit that cannot be rendered has an entry with its author, beside the revision that is kept.
    let broken = [("bad.yaml".to_owned(), "a: [".to_owned())];
    let bad = commit_as(&scene, "Grace Hopper", "Break the shop", &broken);
    scene.nudge("shop", "bad").await;
    scene.until_reason("shop", "YamlInvalid").await;
    let told = history(&scene).await;
    let entry = |at: usize| ["revision", "result", "subject", "author"].map(|field| told[at][field].clone());
    assert_eq!(entry(0), [format!("main@{bad}").as_str(), "YamlInvalid", "Break the shop", "Grace Hopper"]);
    assert_eq!(entry(1), [format!("main@{good}").as_str(), "Applied", "Open the shop", "Ada Lovelace"]);

    // Deletions that wait for a person are reported when they are approved.
    scene.work.git(&["rm", "-q", "bad.yaml"]);
    let files: Vec<String> = (4..16).map(|at| format!("a-{at}.json")).collect();
    let fewer = scene.remove(&files.iter().map(String::as_str).collect::<Vec<_>>());
    scene.nudge("shop", "fewer").await;
    scene.until_reason("shop", "PruneHeld").await;
    assert_eq!(moorline(&scene, &["approve", "shop"]).code, 0);
    until_told(&scene, "Approved", &["approved the deletion of 12 objects"]).await;
    until_told(&scene, "Pruned", &["/a-10, ", "and 7 more"]).await;
    scene.until_ready("shop", &fewer).await;
    let told = until("the prunes are counted", async || {
        let told = history(&scene).await;
        (told[0]["changes"]["pruned"] == 12).then_some(told)
    })
    .await;
    assert_eq!((told.len(), &told[0]["result"]), (3, &json!("Applied")), "{told:?}");
    scene.assert_calm("after the prunes").await;
    scene.delete_sync("shop").await;
}
