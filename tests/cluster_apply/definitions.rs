//! The daemon's reaction when others define, redefine or take away kinds, on a real API server.

mod converted;
mod redefined;

use kube::api::{Patch, PatchParams};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::Fate;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The definition of boats of a group, in these versions: name, whether it is served and stored.
fn definition(group: &str, versions: &[(&str, bool)]) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |(name, used): &(&str, bool)| json!({"name": name, "served": used, "storage": used, "schema": schema});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boats.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
            "versions": versions.iter().map(version).collect::<Vec<_>>()},
    })
}

/// The same, where versions are served that are not stored.
fn served(group: &str, stored: &str, versions: &[(&str, bool)]) -> Value {
    let mut definition = definition(group, versions);
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        version["storage"] = (version["name"] == stored).into();
    }
    definition
}

fn boat(group: &str, version: &str, sails: u8) -> String {
    let api_version = format!("{group}/{version}");
    json!({"apiVersion": api_version, "kind": "Boat", "metadata": {"name": "a"}, "spec": {"sails": sails}})
        .to_string()
}

/// Returns the number of times that the daemon has applied boats since the mark.
async fn applies(mark: &AuditMark) -> usize {
    let requests = mark.requests().await.by_user(MOORLINE);
    requests.filter(|it| it.verb == "patch" && it.resource == "boats").as_slice().len()
}

#[tokio::test]
async fn a_kind_that_somebody_defines_later_is_applied_then() {
    let Some(scene) = Scene::new("late").await else { return };
    let group = "late.example.com";
    let files = [("a.json", boat(group, "v1", 2)), ("b.json", config_map("b", "one"))];
    let commit = scene.push(&files.map(|(path, text)| (path.to_owned(), text)));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    until("the kind is told as unknown", async || {
        (scene.status("shop", "/problems/0/reason").await == "UnknownKind").then_some(())
    })
    .await;
    assert_eq!(scene.status("shop", "/conditions/0/reason").await, "Progressing");
    assert_eq!(scene.values().await.len(), 1, "the rest of the set is not held up");

    send_request(&scene.admin, "POST", DEFINITIONS, &definition(group, &[("v1", true)])).await.unwrap();
    scene.until_ready("shop", &commit).await;
    let boats = scene.dynamic(group, "v1", "Boat");
    assert_eq!(boats.get("a").await.unwrap().data["spec"]["sails"], 2);
    scene.assert_calm("with the kind").await;

    // Somebody says something else about the kind: what that makes of the resource is looked at once.
    let mark = AuditMark::set(&scene.plane).await;
    let uri = format!("{DEFINITIONS}/boats.{group}");
    let names = json!({"spec": {"names": {"shortNames": ["bt"]}}});
    send_request(&scene.admin, "PATCH", &uri, &names).await.unwrap();
    until("it is looked at", async || (applies(&mark).await > 0).then_some(())).await;
    scene.assert_calm("with another definition").await;
    assert_eq!(applies(&mark).await, 1);
    scene.delete_sync("shop").await;
    send_request(&scene.admin, "DELETE", &uri, &json!({})).await.unwrap();
}

#[tokio::test]
async fn a_kind_goes_over_to_another_version_and_is_still_watched() {
    let Some(scene) = Scene::new("version").await else { return };
    let group = "version.example.com";
    let files = |versions: &[(&str, bool)], version| {
        let files =
            [("a.json", boat(group, version, 2)), ("b.json", definition(group, versions).to_string())];
        files.map(|(path, text)| (path.to_owned(), text))
    };
    let commit = scene.push(&files(&[("v1", true)], "v1"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;

    let commit = scene.push(&files(&[("v1", false), ("v2", true)], "v2"));
    scene.nudge("shop", "over").await;
    scene.until_ready("shop", &commit).await;
    scene.settle().await;
    let mark = AuditMark::set(&scene.plane).await;
    let uri = format!("/apis/{group}/v2/namespaces/{}/boats/a", scene.namespace);
    send_request(&scene.admin, "PATCH", &uri, &json!({"spec": {"sails": 3}})).await.unwrap();
    until("it is repaired", async || {
        let boat = send_request(&scene.admin, "GET", &uri, &json!({})).await.unwrap();
        (boat["spec"]["sails"] == 2).then_some(())
    })
    .await;
    scene.assert_calm("after that").await;
    assert_eq!(applies(&mark).await, 1);
    scene.delete_sync("shop").await;
    let uri = format!("{DEFINITIONS}/boats.{group}");
    send_request(&scene.admin, "DELETE", &uri, &json!({})).await.unwrap();
}

/// In a cluster where nobody may see definitions, the watch learns that nothing is served there.
#[tokio::test]
async fn a_version_that_goes_is_missed_by_nobody_who_may_not_see_definitions() {
    let Some(scene) = Scene::new("unseen").await else { return };
    let group = "unseen.example.com";
    let both = served(group, "v1", &[("v1", true), ("v2", true)]);
    send_request(&scene.admin, "POST", DEFINITIONS, &both).await.unwrap();
    let uri = format!("{DEFINITIONS}/boats.{group}");
    until("both versions are served", async || {
        let path = format!("/apis/{group}/v2/boats");
        send_request(&scene.admin, "GET", &path, &json!({})).await.is_ok().then_some(())
    })
    .await;
    scene.proxy.rule(|asked| match asked.path.contains("customresourcedefinitions") {
        true => Fate::Answer(403, None),
        false => Fate::Pass,
    });
    let commit = scene.push(&[("a.json".to_owned(), boat(group, "v1", 2))]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    scene.settle().await;

    let only = json!({"spec": {"versions": served(group, "v1", &[("v1", true), ("v2", false)])["spec"]["versions"]}});
    send_request(&scene.admin, "PATCH", &uri, &only).await.unwrap();
    let boats = scene.dynamic(group, "v1", "Boat");
    scene.settle().await;
    boats.patch("a", &PatchParams::default(), &Patch::Merge(&json!({"spec": {"sails": 3}}))).await.unwrap();
    until("it is repaired", async || {
        (boats.get("a").await.unwrap().data["spec"]["sails"] == 2).then_some(())
    })
    .await;
    scene.assert_calm("in the other version").await;
    scene.delete_sync("shop").await;
    send_request(&scene.admin, "DELETE", &uri, &json!({})).await.unwrap();
}
