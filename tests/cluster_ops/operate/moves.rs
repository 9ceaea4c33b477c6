//! A person names the Sync to which another one moves, and ends that.

use serde_json::json;

use moorline_test_support::person::moorline;
use moorline_test_support::scene::{Scene, file};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_names_the_sync_and_ends_the_move() {
    let Some(scene) = Scene::new("across-verb").await else { return };
    // No daemon is needed for that.
    for name in ["old", "new", "blue"] {
        scene.sync(name, json!({})).await;
    }
    let place = &scene.namespace;
    scene.patch_sync("blue", json!({"metadata": {"labels": {"moorline.dev/instance": "blue"}}})).await;
    let written = async || {
        let old = scene.syncs().get("old").await.unwrap();
        old.metadata.annotations.unwrap_or_default().remove("moorline.dev/moves-to")
    };
    let refused = [
        (&["old", "--to", "nobody"][..], format!("there is no Sync nobody in the namespace {place}")),
        (&["nobody", "--to", "new"], format!("there is no Sync nobody in the namespace {place}")),
        (&["old", "--to", "elsewhere/new"], "there is no Sync new in the namespace elsewhere".to_owned()),
        (&["old", "--to", "old"], format!("does not name another Sync than {place}/old")),
        (&["old", "--to", "a/b/c"], format!("does not name another Sync than {place}/old")),
        (&["old", "--to", "blue"], format!("another daemon serves {place}/blue")),
    ];
    for (arguments, expect) in refused {
        let said = moorline(&scene, &[&["move"], arguments].concat());
        assert!(said.code == 1 && said.words.contains(&expect), "{arguments:?}: {}", said.words);
    }
    for arguments in [&["old"][..], &["old", "--to", "new", "--done"]] {
        assert_eq!(moorline(&scene, &[&["move"], arguments].concat()).code, 64, "{arguments:?}");
    }
    assert_eq!(written().await, None);

    let said = moorline(&scene, &["move", "old", "--to", "new"]);
    let expect = format!("{place}/old moves to {place}/new: ");
    assert!(said.code == 0 && said.words.starts_with(&expect), "{}", said.words);
    assert_eq!(written().await, Some(format!("{place}/new")));
    let status = moorline(&scene, &["status", "old"]).data;
    let line = status.lines().find(|line| line.starts_with("Moves to")).unwrap_or_default();
    assert!(line.ends_with(&format!(" {place}/new")), "{status}");
    scene.push(&[file("a", "one")]);
    let plan = moorline(&scene, &["plan", "--sync", "old"]).words;
    assert!(plan.contains(&format!("note: {place}/old moves to {place}/new: ")), "{plan}");
    for (end, expect) in [
        (&["--done"][..], format!("{place}/old no longer moves to {place}/new: ")),
        (&["--to", ""], format!("{place}/old does not move to another Sync")),
    ] {
        let said = moorline(&scene, &[&["move", "old"], end].concat());
        assert!(said.code == 0 && said.words.starts_with(&expect), "{}", said.words);
        assert_eq!(written().await, None);
    }
    assert!(!moorline(&scene, &["status", "old"]).data.contains("Moves to"));
}
