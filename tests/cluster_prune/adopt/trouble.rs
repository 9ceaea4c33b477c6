//! Adoptions that are broken off, refused, or met by somebody else's Sync.

use serde_json::{Value, json};

use crate::adopt::{adopt, assert_nothing_deleted, push, resource, three, uids, until_held};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::fault_proxy::{Fate, FaultProxy, RecordedRequest};
use moorline_test_support::gitops_tools::{Part, Robot, application, install, kustomization, path};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;

/// More writes than `--apply` or `--undo` make, so that the last one meets no fault.
const MAX_WRITES: usize = 16;

/// Breaks a command off at each of its writes, one time after the other, has it go on each time, and then runs the other
/// one, which makes everything as it was. Gives how many writes the command makes.
async fn broken_off(
    scene: &Scene,
    proxy: &FaultProxy,
    part: Part,
    fate: Fate,
    command: &str,
    back: &str,
) -> usize {
    let before = uids(scene).await;
    for number in 0..MAX_WRITES {
        proxy.nth(number, RecordedRequest::writes, fate);
        let broken = adopt(scene, proxy, part, &[command]);
        proxy.heal();
        assert_eq!(uids(scene).await, before, "after {number}");
        if broken.code == 0 {
            return number;
        }
        for command in [command, back] {
            let said = adopt(scene, proxy, part, &[command]);
            // The last write was done, and only the answer to it was lost.
            let is_done = said.words.contains("nothing to undo");
            assert!(
                said.code == 0 || is_done,
                "{command} after {number} and {}: {}{}",
                broken.words,
                said.data,
                said.words
            );
        }
        assert_eq!(uids(scene).await, before, "after {number} and all");
    }
    panic!("it never comes to its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_broken_off_anywhere_goes_on() {
    let Some(scene) = Scene::new("adopt-broken").await else { return };
    install(&scene).await;
    push(&scene, &three());
    let _daemon = scene.daemon();
    for (part, fates) in
        [(Part::ArgoCd, &[Fate::Drop, Fate::LoseReply][..]), (Part::Flux, &[Fate::LoseReply])]
    {
        let proxy = FaultProxy::start(&scene.plane);
        let _robot = Robot::start(&scene, part, three());
        let old = match part {
            Part::ArgoCd => application(&scene, json!({"prune": true})).await,
            Part::Flux => kustomization(&scene).await,
        };
        until_held(&scene, part, 3).await;
        let mark = AuditMark::set(&scene.plane).await;
        for &fate in fates {
            let writes = broken_off(&scene, &proxy, part, fate, "--apply", "--undo").await;
            assert!(writes >= 4, "{writes}");
            assert_ne!(resource(&scene, part).await["spec"], old["spec"]);
            let writes = broken_off(&scene, &proxy, part, fate, "--undo", "--apply").await;
            assert!(writes >= 2, "{writes}");
            let restored = resource(&scene, part).await;
            assert_eq!(restored["spec"], old["spec"], "{fate:?}");
            assert_eq!(restored["metadata"]["finalizers"], old["metadata"]["finalizers"], "{fate:?}");
        }
        assert_nothing_deleted(&scene, &mark).await;
        let finalizers = json!({"metadata": {"finalizers": null}});
        send_request(&scene.admin, "PATCH", &path(part, &scene.namespace), finalizers).await.unwrap();
        send_request(&scene.admin, "DELETE", &path(part, &scene.namespace), Value::Null).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_changes_nothing_and_says_what_to_do() {
    let Some(scene) = Scene::new("adopt-refused").await else { return };
    install(&scene).await;
    push(&scene, &three());
    let (part, proxy) = (Part::ArgoCd, FaultProxy::start(&scene.plane));
    application(&scene, json!({})).await;
    let path = path(part, &scene.namespace);
    let change = async |patch: Value| send_request(&scene.admin, "PATCH", &path, patch).await.unwrap();
    let check = |arguments: &[&str], expect: &str| {
        proxy.take_requests();
        let said = adopt(&scene, &proxy, part, arguments);
        let told = format!("{}{}", said.data, said.words);
        assert!(said.code == 1 && told.contains(expect), "{expect}: {told}");
        assert!(!told.contains("planted"), "{told}");
        let written =
            proxy.take_requests().into_iter().filter(|one| one.writes() && !one.query.contains("dryRun=All"));
        assert_eq!(written.map(|one| one.path).collect::<Vec<_>>(), Vec::<String>::new());
    };
    let url = scene.git.url("repository.git");
    let with_login = url.replace("http://", "http://me:planted@");
    change(json!({"spec": {"source": {"repoURL": with_login}}})).await;
    check(&["--apply"], "the URL has credentials in it, which belong in a Secret");
    change(json!({"spec": {"source": {"repoURL": url, "helm": {"parameters": [{"name": "a[0]", "value": "planted"}]}}}})).await;
    check(&["--apply"], "spec.source.helm.parameters[0]: it sets an item of a list");
    change(json!({"spec": {"source": {"helm": null, "targetRevision": "gone"}}})).await;
    check(&["--apply"], "the repository: ");
    change(json!({"spec": {"source": {"targetRevision": "main"}}, "operation": {"sync": {}}})).await;
    check(&["--apply"], "Argo CD is syncing it now");
    change(json!({"operation": null})).await;
    check(&["--apply", "--sync-namespace", "nowhere"], "could not be created, and nothing was changed");
    scene.sync("shop", json!({"suspend": true})).await;
    check(&["--apply"], "choose another name with --sync");
    scene.delete_sync("shop").await;
    assert_eq!(resource(&scene, part).await["metadata"].get("annotations"), None);

    // A tag is found although nobody said that it is one.
    scene.work.git(&["tag", "release"]);
    scene.work.git(&["push", "-q", "origin", "release"]);
    change(json!({"spec": {"source": {"targetRevision": "release"}}})).await;
    let shown = adopt(&scene, &proxy, part, &["--output", "yaml"]);
    assert!(shown.code == 2 && shown.data.contains("tag: release"), "{}{}", shown.data, shown.words);
}
