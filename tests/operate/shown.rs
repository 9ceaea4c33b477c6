//! What a person is shown beside a daemon: what a look has changed.

use serde_json::json;

use crate::support::person::{Said, moorline};
use crate::support::scene::{Scene, config_map, many};

/// The second line of what `moorline sync` says: what it found changed.
fn changed(said: &Said) -> &str {
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
