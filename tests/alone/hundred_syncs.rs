//! A hundred Syncs of one repository, thirty of them broken: the prunes of the others take no longer than alone.
//!
//! Compares times, and therefore runs while no other test does.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use moorline_test_support::asked::RecordedRequest;
use moorline_test_support::daemon::{until, until_within};
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, file, text};

/// The most that a prune may take longer than without broken Syncs beside it.
const SLACK: Duration = Duration::from_secs(2);

/// Number of Syncs that share the repository, and number of them are broken.
const SOUND: usize = 70;
const BROKEN: usize = 30;

/// The files of the broken Syncs before they break, and after.
fn broken_files(are_broken: bool) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for at in 0..BROKEN {
        let own = format!("broken-{at}/own-{at}");
        files.push(file(&own, "one"));
        let (build, bad) = (format!("broken-{at}/kustomization.yaml"), are_broken && at % 6 != 1);
        match at % 6 {
            0 if bad => files.push(text(&format!("broken-{at}/bad.yaml"), "kind: [\n")),
            2 => files.push(text(
                &build,
                &format!("resources: [own-{at}.json{}]\n", if bad { ", missing.json" } else { "" }),
            )),
            3 if bad => files.push(text(
                &format!("broken-{at}/own-{at}.json"),
                &config_map(&format!("own-{at}"), "${MISSING}"),
            )),
            _ => {}
        }
    }
    files
}

/// The spec of a broken Sync; two of the six kinds are broken from the start by what they name.
fn broken_spec(at: usize) -> Value {
    let path = format!("broken-{at}");
    match at % 6 {
        1 => json!({"path": format!("nowhere-{at}")}),
        3 => json!({"path": path, "render": {"substitute": {"vars": {"OTHER": "x"}}}}),
        4 => json!({"path": path, "serviceAccountName": "nobody"}),
        5 => {
            json!({"path": path, "render": {"substitute": {"from": [{"kind": "ConfigMap", "name": "missing"}]}}})
        }
        _ => json!({"path": path}),
    }
}

/// True for requests on the objects of the broken Syncs, and for those by which one without rights finds out which it lacks.
fn is_of_broken(asked: &RecordedRequest) -> bool {
    asked.path.contains("/own-")
        || asked.path.ends_with("/selfsubjectrulesreviews")
        || asked.path.ends_with("/configmaps/missing")
}

/// True for a request on the object of a broken Sync that has all rights: after one try a commit there is none.
fn is_in_vain(asked: &RecordedRequest) -> bool {
    let number = asked.path.rsplit_once("/own-").and_then(|(_, number)| number.parse::<usize>().ok());
    number.is_some_and(|number| number % 6 != 4)
}

/// The requests on objects of the sound Syncs, by method. Objects without rights are tried again from time to time.
fn asked_of_sound(scene: &Scene) -> BTreeMap<String, usize> {
    let mut requests = BTreeMap::new();
    let asked = scene.proxy.take_requests();
    for one in asked.iter().filter(|one| one.is_on_object() && !is_of_broken(one)) {
        *requests.entry(one.method.clone()).or_default() += 1;
    }
    let in_vain = asked.iter().filter(|one| is_in_vain(one)).count();
    requests.extend((in_vain > 0).then(|| ("in vain".to_owned(), in_vain)));
    requests
}

/// Waits until nothing is asked about objects of the sound Syncs.
async fn settle(scene: &Scene) {
    asked_of_sound(scene);
    until("nothing is asked for a while", async || {
        tokio::time::sleep(QUIET_TIME).await;
        asked_of_sound(scene).is_empty().then_some(())
    })
    .await;
}

/// Removes one object of every sound Sync in one commit: how long it takes until all are pruned, and the requests on objects.
async fn prune_all(scene: &Scene, word: &str) -> (Duration, BTreeMap<String, usize>) {
    settle(scene).await;
    let files: Vec<String> = (0..SOUND).map(|at| format!("sound-{at}/{word}-{at}.json")).collect();
    scene.remove(&files.iter().map(String::as_str).collect::<Vec<_>>());
    scene.proxy.take_requests();
    let begun = Instant::now();
    scene.nudge("sound-0", word).await;
    let prefix = format!("{word}-");
    until_within(Duration::from_secs(120), &format!("{word} is pruned everywhere"), async || {
        let values = scene.values().await;
        let left: Vec<&String> = values.keys().filter(|name| name.starts_with(&prefix)).collect();
        left.is_empty().then_some(())
    })
    .await;
    let took = begun.elapsed();
    tokio::time::sleep(QUIET_TIME).await;
    (took, asked_of_sound(scene))
}

#[tokio::test]
async fn seventy_of_a_hundred_prune_as_if_thirty_were_not_broken() {
    let Some(scene) = Scene::new("neighbour-hundred").await else { return };
    let _daemon = scene.daemon_with(&["--leader-election=false", "--claim-timeout", "60s"]);
    let mut files = broken_files(false);
    for at in 0..SOUND {
        for word in ["stays", "warm", "alone", "aside", "beside", "again"] {
            files.push(file(&format!("sound-{at}/{word}-{at}"), "one"));
        }
    }
    let commit = scene.push(&files);
    for at in 0..SOUND {
        // They hear of a commit from each other, and not by their own interval.
        scene.sync(&format!("sound-{at}"), json!({"path": format!("sound-{at}"), "interval": "1h"})).await;
    }
    for at in 0..SOUND {
        scene.until_ready(&format!("sound-{at}"), &commit).await;
    }
    prune_all(&scene, "warm").await;
    let (alone, asked_alone) = prune_all(&scene, "alone").await;
    let (aside, asked_aside) = prune_all(&scene, "aside").await;
    for at in 0..BROKEN {
        let mut spec = broken_spec(at);
        spec["interval"] = json!("1h");
        scene.sync(&format!("broken-{at}"), spec).await;
    }
    for at in 0..BROKEN {
        until(&format!("broken-{at} was tried"), async || {
            scene.status(&format!("broken-{at}"), "/conditions/0/reason").await.is_string().then_some(())
        })
        .await;
    }
    // The commit that breaks them, and the prunes of later ones.
    scene.push(&broken_files(true));
    scene.nudge("sound-0", "broken").await;
    for (at, reason) in [
        (0, "YamlInvalid"),
        (1, "PathNotFound"),
        (2, "KustomizeInvalid"),
        (3, "VariableUnknown"),
        (4, "RightsMissing"),
        (5, "ValuesMissing"),
    ] {
        scene.until_reason(&format!("broken-{at}"), reason).await;
    }
    let (beside, asked_beside) = prune_all(&scene, "beside").await;
    let (again, asked_again) = prune_all(&scene, "again").await;
    println!("alone {alone:?} {aside:?} {asked_alone:?}; beside {beside:?} {again:?} {asked_beside:?}");
    // The shorter of two, each: other programs take their share of the machine.
    assert!(beside.min(again) < alone.min(aside) + SLACK, "{alone:?}, {aside:?}; {beside:?}, {again:?}");
    for asked in [asked_aside, asked_beside, asked_again] {
        assert_eq!(asked, asked_alone);
    }
    settle(&scene).await;
}
