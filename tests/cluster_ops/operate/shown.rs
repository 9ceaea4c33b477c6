//! Output for a person beside a daemon: how Syncs are while that changes, by kubectl too, what a look has changed, and what
//! manifests at hand would change.

use serde_json::json;

use moorline_test_support::daemon::until;
use moorline_test_support::person::{CommandOutput, RunningCommand, by_kubectl, moorline};
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, many};

/// The second line of what `moorline sync` says: what it found changed.
fn changed(said: &CommandOutput) -> &str {
    said.data.lines().nth(1).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_ends_with_what_has_changed() {
    let Some(scene) = Scene::new("changed").await else { return };
    let (_daemon, _) = scene.applied(&many(4, "one"), json!({"interval": "1h"})).await;
    scene.remove(&["a-3.json"]);
    let one = moorline(&scene, &["sync", "shop"]);
    assert_eq!((one.code, changed(&one)), (0, "1 object fewer in Git, 1 fewer applied, 1 pruned"));

    scene.work.git(&["rm", "-q", "a-1.json", "a-2.json"]);
    let more: Vec<_> =
        (0..4).map(|at| (format!("b-{at}.json"), config_map(&format!("b-{at}"), "one"))).collect();
    scene.push(&more);
    let two = moorline(&scene, &["sync", "shop"]);
    assert_eq!((two.code, changed(&two)), (0, "2 objects more in Git, 2 more applied, 2 pruned"));

    let unknown = json!({"apiVersion": "nobody.knows/v1", "kind": "Thing", "metadata": {"name": "it"}});
    scene.push(&[("it.json".to_owned(), unknown.to_string())]);
    let held = moorline(&scene, &["sync", "shop"]);
    let first = held.data.lines().next().unwrap_or_default();
    assert_eq!((held.code, first), (1, "1 object more in Git, 1 more held"), "{}", held.data);
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_status_goes_on_until_it_is_ended() {
    let Some(scene) = Scene::new("watch").await else { return };
    let (_daemon, first) = scene.applied(&many(2, "one"), json!({"interval": "1h"})).await;
    let watch = RunningCommand::start(&scene, &["status", "--watch"]);
    let is_of = |line: &String, commit: &str| {
        let front = format!("{} shop True Applied main@{} 2/2 0 ", scene.namespace, &commit[..8]);
        line.starts_with(&front)
    };
    let begun = until("all Syncs are shown", async || {
        let lines = watch.lines();
        (lines.len() >= 2).then_some(lines)
    })
    .await;
    assert_eq!(begun[0], "NAMESPACE NAME READY REASON REVISION OBJECTS DRIFT AGE");
    assert!(begun.len() == 2 && is_of(&begun[1], &first), "{begun:?}");

    // A change that shows in no column changes no line.
    scene.patch_sync("shop", json!({"metadata": {"annotations": {"example.com/note": "one"}}})).await;
    tokio::time::sleep(QUIET_TIME * 2).await;
    assert_eq!(watch.lines(), begun, "nothing changes");
    let second = scene.push(&many(2, "two"));
    scene.nudge("shop", "two").await;
    let lines = until("the change is shown", async || {
        let lines = watch.lines();
        lines.last().is_some_and(|line| is_of(line, &second)).then_some(lines)
    })
    .await;
    assert_eq!(lines.iter().filter(|line| line.starts_with("NAMESPACE")).count(), 1, "{lines:?}");
    assert_eq!(watch.terminate(), Some(15));
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_the_same() {
    let Some(scene) = Scene::new("kubectl").await else { return };
    let (_daemon, commit) = scene.applied(&many(2, "one"), json!({"interval": "1h"})).await;
    let Some(shown) = by_kubectl(&scene, &["status", "shop"]) else { return };
    assert!(shown.data.contains(&commit) && shown.data.contains("True (Applied)"), "{}", shown.data);
    let own = moorline(&scene, &["status", "shop"]);
    assert_eq!((shown.code, &shown.data, &shown.words), (0, &own.data, &own.words));
    let missing = by_kubectl(&scene, &["status", "shopp"]).unwrap();
    let expect =
        format!("error: there is no Sync shopp in the namespace {}; did you mean shop?", scene.namespace);
    assert_eq!((missing.code, missing.words.trim()), (1, expect.as_str()));
    let wrong = by_kubectl(&scene, &["status", "--wach"]).unwrap();
    let usage = "\n\nUsage: kubectl moorline status ";
    assert!(wrong.code == 64 && wrong.words.contains(usage), "{} {}", wrong.code, wrong.words);
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_is_shown_in_every_form() {
    let Some(scene) = Scene::new("forms").await else { return };
    let (_daemon, commit) = scene.applied(&many(2, "one"), json!({"interval": "1h"})).await;
    let read = |said: &CommandOutput| serde_json::from_str::<serde_json::Value>(&said.data).unwrap();
    let whole = read(&moorline(&scene, &["status", "shop", "-o", "json"]));
    let short = format!("main@{}", &commit[..8]);
    assert_eq!(whole["items"][0]["status"]["revision"]["short"], short.as_str());
    let name = moorline(&scene, &["status", "-o", "name"]);
    assert_eq!((name.code, name.data.as_str()), (0, "sync.moorline.dev/shop\n"));
    let wide = moorline(&scene, &["status", "-o", "wide"]);
    let head: Vec<&str> = wide.data.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head[8..], ["HEALTHY", "SUSPENDED", "MESSAGE"]);
    let painted = moorline(&scene, &["status", "--color", "always"]);
    assert!(painted.data.contains("\u{1b}[32mTrue\u{1b}[0m"), "{:?}", painted.data);
    let events = read(&moorline(&scene, &["events", "shop", "-o", "json"]));
    assert_eq!(events["kind"], "List");
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_at_hand_are_compared_with_the_cluster() {
    let Some(scene) = Scene::new("at-hand").await else { return };
    let (mut daemon, _) = scene.applied(&many(4, "one"), json!({"interval": "1h"})).await;
    daemon.terminate();
    let folder = scene.root.path().join("at-hand");
    std::fs::create_dir(&folder).unwrap();
    let write = |(name, text): &(String, String)| std::fs::write(folder.join(name), text).unwrap();
    let place = folder.display().to_string();
    let plan = |name: &str| moorline(&scene, &["plan", &place, "--against", "cluster", "--name", name]);
    let before = scene.versions().await;

    many(4, "one").iter().for_each(write);
    let quiet = plan("shop");
    let expect = "Nothing to do: 4 objects are as in Git.\n";
    assert_eq!((quiet.code, quiet.data.as_str()), (0, expect), "{}", quiet.words);

    write(&("a-1.json".to_owned(), config_map("a-1", "two")));
    std::fs::remove_file(folder.join("a-2.json")).unwrap();
    write(&("b.json".to_owned(), config_map("b", "one")));
    let edit = plan("shop");
    let expect = format!(
        "Create (1)\n  + ConfigMap {0}/b\n\n\
         Update (1)\n  ~ ConfigMap {0}/a-1: changed in Git\n      data.key: \"one\" -> \"two\"\n\n\
         Prune (1)\n  - ConfigMap {0}/a-2: no longer in Git; the daemon checks the proof before it deletes\n\n\
         1 to create, 1 to update, 1 to prune, 2 as in Git.\n",
        scene.namespace
    );
    assert_eq!((edit.code, edit.data), (2, expect), "{}", edit.words);

    // Under another name nothing of it is its own: nothing would be pruned, and what is there is held.
    let stranger = plan("other");
    assert_eq!(stranger.code, 2, "{}{}", stranger.data, stranger.words);
    assert!(!stranger.data.contains("Prune") && stranger.data.contains("Held (3)"), "{}", stranger.data);
    assert_eq!(scene.versions().await, before, "a plan writes nothing");
    scene.patch_sync("shop", json!({"metadata": {"finalizers": null}})).await;
    scene.delete_sync("shop").await;
}
