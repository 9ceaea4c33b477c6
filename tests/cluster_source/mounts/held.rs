//! A mount that is away, untrusted or in the way: the previous revision is held, and the message names the mount.

use std::time::{Duration, Instant};

use moorline_test_support::artifact_registry::RegistryFault;
use moorline_test_support::daemon::until;
use moorline_test_support::git_server::Reply;
use moorline_test_support::scene::{Scene, text};
use moorline_test_support::signers::{key, trust};
use moorline_test_support::under_load::under_load;
use serde_json::json;

use super::{Elsewhere, Mounted, kustomization, map, message, spec, until_says, values};

#[tokio::test(flavor = "multi_thread")]
async fn a_mount_that_is_away_holds_the_revision_of_before() {
    let Some(mut it) = Mounted::new("mounts-away", "1h").await else { return };
    it.elsewhere.git.rule(|_| Reply::Raw(503, "", Vec::new()));
    let next = it.scene.push(&[map("clusters/prod/c.json", "c", "two")]);
    it.scene.nudge("shop", "away").await;
    until_says(&it.scene, "spec.source.mounts[0] (vendor/base): ").await;
    it.scene.edit("a", "by hand").await;
    it.has(["one", "one", "one"], "the previous revision is held").await;
    assert_eq!(it.scene.status("shop", "/revision/applied").await, json!(it.revision()));

    it.elsewhere.git.rule(|_| Reply::Git);
    it.own = next;
    it.scene.nudge("shop", "back").await;
    it.until_applied().await;
    it.has(["one", "one", "two"], "it is applied once the mount is back").await;

    // A mount that is refused by its registry is named, too.
    it.elsewhere.registry.fault(RegistryFault::OtherManifest);
    it.elsewhere.extra("two");
    it.scene.nudge("shop", "lie").await;
    it.scene.until_reason("shop", "ArtifactDigestDiffers").await;
    let told = message(&it.scene).await;
    assert!(told.contains("spec.source.mounts[1] (vendor/extra): "), "{told}");
    it.scene.edit("b", "by hand").await;
    it.has(["one", "one", "two"], "the previous artifact is held").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_the_repository_is_never_hidden() {
    let Some(mut it) = Mounted::new("mounts-place", "1h").await else { return };
    for (path, kind) in
        [("vendor/base/other.yaml", "folder vendor/base"), ("vendor/extra", "file vendor/extra")]
    {
        it.scene.push(&[text(path, "# here\n")]);
        it.scene.nudge("shop", path).await;
        it.scene.until_reason("shop", "MountCollision").await;
        let told = message(&it.scene).await;
        let mount =
            if kind.starts_with("folder") { "mounts[0] (vendor/base)" } else { "mounts[1] (vendor/extra)" };
        assert!(told.contains(mount) && told.contains(&format!("has the {kind} at")), "{told}");
        it.scene.edit("a", "by hand").await;
        it.has(["one", "one", "one"], "the previous revision is held").await;
        it.own = it.scene.remove(&[path]);
        it.scene.nudge("shop", &it.own).await;
        it.until_applied().await;
    }
    // Mounts that overlap are no valid spec.
    let mounts = [it.elsewhere.repository("vendor"), it.elsewhere.artifact("vendor/extra")];
    it.scene.patch_sync("shop", json!({"spec": {"source": {"mounts": mounts}}})).await;
    it.scene.until_reason("shop", "SpecInvalid").await;
    let told = message(&it.scene).await;
    assert!(told.contains("spec.source.mounts[1].path") && told.contains("overlap"), "{told}");
    let nine: Vec<_> = (0..9).map(|at| it.elsewhere.repository(&format!("m{at}"))).collect();
    let patch = json!({"spec": {"source": {"mounts": nine}}});
    let refused = it.scene.syncs().patch("shop", &Default::default(), &kube::api::Patch::Merge(patch)).await;
    assert!(refused.unwrap_err().to_string().contains("8"), "the server refuses nine mounts");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mount_that_breaks_the_sync_is_rolled_back() {
    let Some(mut it) = Mounted::new("mounts-rollback", "1h").await else { return };
    it.scene.patch_sync("shop", json!({"spec": {"rollback": {"onFailure": true}}})).await;
    it.scene.settle().await;
    let good = it.revision();
    // The API server refuses such a ConfigMap.
    let broken = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "immutable": 3}"#;
    it.base = it.elsewhere.push(&[text("app/a.json", broken)]);
    it.scene.nudge("shop", "broken").await;
    it.scene.until_reason("shop", "RolledBack").await;
    assert_eq!(it.scene.status("shop", "/revision/rejected").await, json!(it.revision()));
    assert_eq!(it.scene.status("shop", "/revision/healthy").await, json!(good));
    it.has(["one", "one", "one"], "the previous mount is applied").await;
    // A new daemon knows it, and does not try the mount again.
    let Mounted { scene, elsewhere, daemon, own, base, extra } = it;
    drop(daemon);
    let daemon = scene.daemon();
    let mut it = Mounted { scene, elsewhere, daemon, own, base, extra };
    it.scene.edit("a", "by hand").await;
    it.has(["one", "one", "one"], "the new daemon holds it as well").await;
    assert_eq!(it.scene.status("shop", "/revision/rejected").await, json!(it.revision()));
    it.move_base("two").await;
    it.has(["two", "one", "one"], "a newer one is applied").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mount_is_trusted_by_its_own_keys() {
    let Some(scene) = Scene::new("mounts-signed").await else { return };
    let Some((ann, eve)) = key(&scene, "ann").zip(key(&scene, "eve")) else { return };
    trust(&scene, &[&ann]).await;
    let elsewhere = Elsewhere::new(&scene).await;
    let program = scene.work.git(&["config", "gpg.ssh.program"]);
    let configure = |name: &str, value: &str| elsewhere.work.git(&["config", name, value]);
    configure("gpg.ssh.program", &program);
    configure("gpg.format", "ssh");
    configure("user.signingKey", &ann.display().to_string());
    configure("commit.gpgSign", "true");
    let base = elsewhere.push(&[kustomization("app", &["a.json"]), map("app/a.json", "a", "one")]);
    let own = scene.push(&[kustomization("clusters/prod", &["../../vendor/base/app"])]);
    let _daemon = scene.daemon();
    let mut mount = elsewhere.repository("vendor/base");
    mount["git"]["verify"] = json!({"mode": "HEAD", "secretRef": {"name": "signers"}});
    scene.sync("shop", spec(&scene, &[mount], "1h")).await;
    let revision = |base: &str| format!("main@{own}+vendor/base/:main@{base}");
    scene.until_ready("shop", &revision(&base)).await;

    configure("commit.gpgSign", "false");
    elsewhere.push(&[map("app/a.json", "a", "planted")]);
    scene.nudge("shop", "unsigned").await;
    until_says(&scene, "spec.source.mounts[0] (vendor/base): ").await;
    scene.edit("a", "by hand").await;
    scene.until_values(&values(&[("a", "one")]), "the signed one is held").await;
    assert_eq!(scene.status("shop", "/revision/applied").await, json!(revision(&base)));
    // A key that is not trusted any more holds nothing; the objects stay.
    trust(&scene, &[&eve]).await;
    until_says(&scene, "is not held").await;
    assert_eq!(scene.values().await.get("a").map(String::as_str), Some("one"));
    configure("user.signingKey", &eve.display().to_string());
    configure("commit.gpgSign", "true");
    let base = elsewhere.push(&[map("app/a.json", "a", "two")]);
    scene.nudge("shop", "eve").await;
    scene.until_ready("shop", &revision(&base)).await;
    scene.until_values(&values(&[("a", "two")]), "the new key signs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_mount_keeps_no_repair_waiting() {
    let Some(it) = Mounted::new("mounts-silent", "1h").await else { return };
    it.scene.patch_sync("shop", json!({"spec": {"timeout": "6s"}})).await;
    it.scene.settle().await;
    it.elsewhere.git.requests();
    it.elsewhere.git.rule(|_| Reply::Silence);
    it.scene.nudge("shop", "now").await;
    until("the mount is asked", async || (!it.elsewhere.git.requests().is_empty()).then_some(())).await;
    let begun = Instant::now();
    it.scene.edit("a", "by hand").await;
    it.has(["one", "one", "one"], "it is repaired while the mount is silent").await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(3)), "{:?}", begun.elapsed());
    until_says(&it.scene, "spec.source.mounts[0] (vendor/base): ").await;
    // A new daemon holds it, from the mirror on its disk.
    let Mounted { scene, elsewhere, daemon, own, base, extra } = it;
    drop(daemon);
    elsewhere.git.rule(|_| Reply::Raw(503, "", Vec::new()));
    let daemon = scene.daemon();
    let it = Mounted { scene, elsewhere, daemon, own, base, extra };
    it.scene.edit("a", "by hand").await;
    it.has(["one", "one", "one"], "the new daemon repairs it").await;
    assert_eq!(it.scene.status("shop", "/revision/held/revision").await, json!(it.revision()));
}
