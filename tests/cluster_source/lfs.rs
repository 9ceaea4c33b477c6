//! Files of Git LFS: fetched once for the files that a render reads, and never used unless they are what the commit names.

use moorline_test_support::daemon::until;
use moorline_test_support::lfs_server::{LfsFault, LfsServer};
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, text};
use serde_json::{Value, json};

/// Serves files of Git LFS beside the repository of a scene.
fn serve(scene: &Scene) -> LfsServer {
    LfsServer::serve(&scene.git, format!("http://127.0.0.1:{}", scene.git.port), None)
}

async fn until_told(scene: &Scene, parts: &[&str]) {
    until(&format!("the status says {parts:?}"), async || {
        let message = scene.status("shop", "/conditions/0/message").await;
        let message = message.as_str().unwrap_or_default();
        parts.iter().all(|part| message.contains(part)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_render_reads_is_fetched_once() {
    let Some(scene) = Scene::new("lfs").await else { return };
    let lfs = serve(&scene);
    let maps = [lfs.add(config_map("a", "one").as_bytes()), lfs.add(config_map("b", "one").as_bytes())];
    let commit = scene.push(&[
        text("a.json", &maps[0]),
        text("b.json", &maps[1]),
        text("logo.png", &lfs.add(b"an image")),
    ]);
    let daemon = scene.daemon();
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(scene.values().await.len(), 2);
    assert_eq!(lfs.counts(), (1, 2), "one batch for both manifests, and none for the image");

    // Nothing changes, and then another file: no request.
    tokio::time::sleep(QUIET_TIME).await;
    let commit = scene.push(&[text("c.json", &config_map("c", "one"))]);
    scene.nudge("shop", "beside").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(lfs.counts(), (0, 0));

    // Another daemon in the same folder finds them on disk.
    drop(daemon);
    let _daemon = scene.daemon();
    let commit = scene.push(&[text("c.json", &config_map("c", "two"))]);
    scene.nudge("shop", "restarted").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(lfs.counts(), (0, 0));

    // A new version of one file is one download.
    let commit = scene.push(&[text("a.json", &lfs.add(config_map("a", "two").as_bytes()))]);
    scene.nudge("shop", "changed").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(scene.values().await["a"], "two");
    assert_eq!(lfs.counts(), (1, 1));
    lfs.assert_fine();
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_kustomization_are_fetched_one_after_the_other() {
    let Some(scene) = Scene::new("lfs-built").await else { return };
    let lfs = serve(&scene);
    let build = "resources: [map.json]\ngeneratorOptions: {disableNameSuffixHash: true}\nconfigMapGenerator:\n- {name: made, files: [key=data.bin]}\n";
    let commit = scene.push(&[
        text("kustomization.yaml", &lfs.add(build.as_bytes())),
        text("map.json", &lfs.add(config_map("map", "one").as_bytes())),
        text("data.bin", &lfs.add(b"from LFS")),
    ]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    let values = scene.values().await;
    assert_eq!((&*values["map"], &*values["made"]), ("one", "from LFS"));
    lfs.assert_fine();
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_the_one_of_the_commit_holds_the_revision_of_before() {
    let Some(scene) = Scene::new("lfs-held").await else { return };
    let lfs = serve(&scene);
    let held = scene.push(&[text("a.json", &lfs.add(config_map("a", "one").as_bytes()))]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &held).await;
    let pointer = lfs.add(config_map("a", "two").as_bytes());
    let oid = pointer.split(['\n', ':']).find(|part| part.len() == 64).unwrap().to_owned();
    let table = [
        (LfsFault::OtherBytes, "LfsFileInvalid", "sends a file of sha256:"),
        (LfsFault::MoreBytes(1 << 20), "LfsFileInvalid", "bytes of the pointer"),
        (LfsFault::Object(404), "LfsFileMissing", "git lfs push"),
        (LfsFault::Empty, "LfsFileMissing", "git lfs push"),
        (LfsFault::Batch(404, ""), "LfsFileMissing", "has no Git LFS"),
        (LfsFault::Batch(302, "Location: http://169.254.169.254/\r\n"), "RepositoryRedirect", "redirects"),
        (
            LfsFault::Href("http://169.254.169.254/latest/meta-data".into()),
            "HostNotAllowed",
            "169.254.169.254 must not be contacted",
        ),
        (
            LfsFault::Download(302, "Location: http://169.254.169.254/latest\r\n"),
            "HostNotAllowed",
            "169.254.169.254 must not be contacted",
        ),
    ];
    lfs.set_fault(table[0].0.clone());
    let commit = scene.push(&[text("a.json", &pointer)]);
    for (at, (fault, reason, expect)) in table.into_iter().enumerate() {
        lfs.set_fault(fault);
        scene.nudge("shop", &format!("fault {at}")).await;
        scene.until_reason("shop", reason).await;
        until_told(&scene, &["a.json is in Git LFS", &oid, expect]).await;
        assert_eq!(scene.values().await["a"], "one");
    }
    // The object of the held revision is kept, and repaired.
    scene.edit("a", "by hand").await;
    until("the edit is repaired", async || (scene.values().await["a"] == "one").then_some(())).await;
    // The right file is taken without a new commit.
    lfs.set_fault(LfsFault::None);
    scene.nudge("shop", "pushed").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(scene.values().await["a"], "two");
    assert_eq!(scene.status("shop", "/problems").await, Value::Null);
    scene.delete_sync("shop").await;
}
