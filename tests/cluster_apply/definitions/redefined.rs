//! Kinds whose schema changes under their objects: the server reads what is ours in another way then, and tells nobody.

use serde_json::{Value, json};

use crate::definitions::{DEFINITIONS, applies, send_request};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::scene::Scene;

/// A kind of a test, and an object of it that Git sets.
struct Harbour {
    scene: Scene,
    group: String,
    _daemon: Daemon,
}

fn schema(properties: &Value) -> Value {
    let spec = json!({"type": "object", "properties": properties});
    json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})
}

fn version(name: &str, used: bool, properties: &Value) -> Value {
    json!({"name": name, "served": used, "storage": used, "schema": schema(properties)})
}

fn boat(api_version: &str, spec: &Value) -> (String, String) {
    let boat = json!({"apiVersion": api_version, "kind": "Boat", "metadata": {"name": "a"}, "spec": spec});
    ("a.json".to_owned(), boat.to_string())
}

impl Harbour {
    async fn new(purpose: &str, properties: &Value, spec: &Value) -> Option<Self> {
        let scene = Scene::new(purpose).await?;
        let group = format!("{purpose}.example.com");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("boats.{group}")},
            "spec": {"group": group, "scope": "Namespaced",
                "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
                "versions": [version("v1", true, properties)]},
        });
        send_request(&scene.admin, "POST", DEFINITIONS, &definition).await.unwrap();
        let commit = scene.push(&[boat(&format!("{group}/v1"), spec)]);
        let _daemon = scene.daemon();
        scene.sync("shop", json!({})).await;
        scene.until_ready("shop", &commit).await;
        Some(Self { scene, group, _daemon })
    }

    fn definition(&self) -> String {
        format!("{DEFINITIONS}/boats.{}", self.group)
    }

    /// Defines the kind again.
    async fn versions(&self, versions: &[Value]) {
        let change = json!({"spec": {"versions": versions}});
        send_request(&self.scene.admin, "PATCH", &self.definition(), &change).await.unwrap();
    }

    fn place(&self, version: &str) -> String {
        format!("/apis/{}/{version}/namespaces/{}/boats/a", self.group, self.scene.namespace)
    }

    /// The object; a kind that is just being redefined may not answer.
    async fn live(&self, version: &str) -> Option<Value> {
        send_request(&self.scene.admin, "GET", &self.place(version), &json!({})).await.ok()
    }

    async fn edit(&self, version: &str, spec: &Value) {
        self.edit_as("kubectl-edit", version, spec).await;
    }

    async fn edit_as(&self, manager: &str, version: &str, spec: &Value) {
        let uri = format!("{}?fieldManager={manager}", self.place(version));
        let patch = json!({"spec": spec});
        until("the edit is taken", async || {
            send_request(&self.scene.admin, "PATCH", &uri, &patch).await.ok()
        })
        .await;
    }

    async fn until_spec(&self, version: &str, spec: &Value, what: &str) {
        until(what, async || (self.live(version).await?["spec"] == *spec).then_some(())).await;
    }

    async fn end(self) {
        self.scene.delete_sync("shop").await;
        send_request(&self.scene.admin, "DELETE", &self.definition(), &json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn a_default_that_a_kind_gains_is_written_by_nobody() {
    let number = json!({"type": "integer"});
    let sails = json!({"sails": 2});
    let Some(harbour) = Harbour::new("defaults", &json!({"sails": number}), &sails).await else { return };
    harbour.scene.assert_calm("before").await;
    let mark = AuditMark::set(&harbour.scene.plane).await;
    let masts = json!({"type": "integer", "default": 1});
    harbour.versions(&[version("v1", true, &json!({"sails": number, "masts": masts}))]).await;
    harbour.until_spec("v1", &json!({"sails": 2, "masts": 1}), "the default is shown").await;
    until("the kind is looked at", async || (applies(&mark).await > 0).then_some(())).await;
    harbour.scene.assert_calm("with the default").await;
    assert_eq!(applies(&mark).await, 1);
    harbour.edit("v1", &json!({"sails": 9})).await;
    harbour.until_spec("v1", &json!({"sails": 2, "masts": 1}), "edits are repaired").await;
    harbour.scene.assert_calm("after an edit").await;
    harbour.end().await;
}

#[tokio::test]
async fn a_list_that_becomes_one_is_ours_as_a_whole() {
    let crew = |kind: &str| json!({"crew": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": kind}});
    let both = json!({"crew": ["ann", "bob"]});
    let Some(harbour) = Harbour::new("lists", &crew("set"), &both).await else { return };
    harbour.edit("v1", &json!({"crew": ["ann", "bob", "eve"]})).await;
    harbour.scene.settle().await;
    let more = json!({"crew": ["ann", "bob", "eve"]});
    harbour.until_spec("v1", &more, "an item of a set is an addition").await;
    let mark = AuditMark::set(&harbour.scene.plane).await;
    harbour.versions(&[version("v1", true, &crew("atomic"))]).await;
    harbour.until_spec("v1", &both, "the list is as in Git").await;
    harbour.scene.assert_calm("as a whole").await;
    assert_eq!(applies(&mark).await, 1);
    harbour.edit("v1", &json!({"crew": ["ann", "bob", "mallory"]})).await;
    harbour.until_spec("v1", &both, "an edit is repaired").await;
    harbour.scene.assert_calm("after an edit").await;
    harbour.end().await;
}

#[tokio::test]
async fn a_field_that_a_kind_loses_is_reported_until_git_or_the_kind_changes() {
    let number = json!({"type": "integer"});
    let both = json!({"sails": 2, "masts": 3});
    let properties = json!({"sails": number, "masts": number});
    let Some(harbour) = Harbour::new("loses", &properties, &both).await else { return };
    let scene = &harbour.scene;
    scene.assert_calm("before").await;
    harbour.versions(&[version("v1", true, &json!({"sails": number}))]).await;
    harbour.until_spec("v1", &json!({"sails": 2}), "the field is not shown").await;
    scene.until_reason("shop", "ApplyFailed").await;
    let problem = scene.status("shop", "/problems/0").await;
    assert_eq!(problem["reason"], "SchemaMismatch");
    let message = problem["message"].as_str().unwrap();
    assert!(message.contains(".spec.masts: field not declared in schema"), "{message}");
    scene.assert_calm("what the server refuses is not sent again and again").await;
    harbour.versions(&[version("v1", true, &properties)]).await;
    harbour.until_spec("v1", &both, "it is there again").await;
    scene.until_reason("shop", "Applied").await;
    scene.assert_calm("as before").await;

    harbour.versions(&[version("v1", true, &json!({"sails": number}))]).await;
    scene.until_reason("shop", "ApplyFailed").await;
    let commit = scene.push(&[boat(&format!("{}/v1", harbour.group), &json!({"sails": 4}))]);
    scene.nudge("shop", "without").await;
    scene.until_ready("shop", &commit).await;
    harbour.until_spec("v1", &json!({"sails": 4}), "Git goes without it").await;
    harbour.end().await;
}

#[tokio::test]
async fn entries_of_a_deleted_version_cannot_be_converted_and_the_next_version_is_held_all_the_same() {
    let number = json!({"type": "integer"});
    let properties = json!({"sails": number, "masts": number});
    let both = json!({"sails": 2, "masts": 3});
    let Some(harbour) = Harbour::new("deleted", &properties, &both).await else { return };
    let scene = &harbour.scene;
    scene.assert_calm("before").await;
    harbour.versions(&[version("v1", false, &properties), version("v2", true, &properties)]).await;
    until("the other version is served", async || harbour.live("v2").await).await;
    // Written again in the version that is stored from now on.
    let stored = json!({"metadata": {"labels": {"stored": "v2"}}});
    send_request(&scene.admin, "PATCH", &harbour.place("v2"), &stored).await.unwrap();
    let status = json!({"status": {"storedVersions": ["v2"]}});
    send_request(&scene.admin, "PATCH", &format!("{}/status", harbour.definition()), &status).await.unwrap();
    harbour.versions(&[version("v2", true, &properties)]).await;
    // The server cannot convert the entries any more: up to 1.36 it drops all of them, from 1.37 on
    // it keeps all as they are, does not add that of the edit, and refuses every apply.
    let mut edits = 9;
    until("the entries cannot be converted", async || {
        edits += 1;
        let manager = format!("editor-{edits}");
        harbour.edit_as(&manager, "v2", &json!({"masts": edits})).await;
        let entries = harbour.live("v2").await?["metadata"]["managedFields"].to_string();
        (!entries.contains(&manager)).then_some(())
    })
    .await;
    scene.until_reason("shop", "ApplyFailed").await;
    assert_eq!(scene.status("shop", "/problems/0/reason").await, "KindMissing", "Git says the old version");
    let commit = scene.push(&[boat(&format!("{}/v2", harbour.group), &both)]);
    scene.nudge("shop", "over").await;
    scene.until_ready("shop", &commit).await;
    harbour.until_spec("v2", &both, "the edit is repaired").await;
    harbour.edit("v2", &json!({"sails": 7})).await;
    harbour.until_spec("v2", &both, "and the next").await;
    scene.assert_calm("after all").await;
    let live = harbour.live("v2").await.unwrap();
    let entries = live["metadata"]["managedFields"].to_string();
    assert!(entries.contains(&format!("moorline/{}/shop", scene.namespace)), "{entries}");
    harbour.end().await;
}
