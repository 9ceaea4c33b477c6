//! A downgrade: the definition of a newer version stays, and a Sync with a field that this version
//! does not know is refused with a sentence, while its objects stay.

use serde_json::{Value, json};

use moorline_test_support::daemon::until;
use moorline_test_support::kept::assert_repaired;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, many};

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev";
/// Version of the newer definition.
const NEWER: &str = "99.0.0";

async fn definition(scene: &Scene) -> Value {
    send_request(&scene.admin, "GET", DEFINITION, Value::Null).await.expect("the definition")
}

fn field_of(part: &str) -> String {
    format!("/spec/versions/0/schema/openAPIV3Schema/properties/{part}/properties")
}

/// Brings the definition of a newer version, which has the field `future` in spec and status.
pub(crate) async fn bring_newer_definition(scene: &Scene) {
    let mut newer = definition(scene).await;
    newer["metadata"]["annotations"]["moorline.dev/version"] = NEWER.into();
    for part in ["spec", "status"] {
        newer.pointer_mut(&field_of(part)).expect("the schema")["future"] = json!({"type": "string"});
    }
    send_request(&scene.admin, "PUT", DEFINITION, newer).await.expect("the API server takes it");
}

/// Checks that the definition is still the one of the newer version.
pub(crate) async fn assert_newer_definition(scene: &Scene) {
    let live = definition(scene).await;
    assert_eq!(live["metadata"]["annotations"]["moorline.dev/version"], NEWER);
    for part in ["spec", "status"] {
        assert!(live.pointer(&field_of(part)).is_some_and(|fields| fields["future"].is_object()), "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_with_a_field_of_a_newer_version_is_refused_and_its_objects_stay() {
    let Some(scene) = Scene::new("downgrade").await else { return };
    let commit = scene.push(&many(3, "one"));
    scene.sync("shop", json!({"interval": "1h"})).await;
    bring_newer_definition(&scene).await;
    let set = async |value: Value| scene.patch_sync("shop", json!({"spec": {"future": value}})).await;
    until("the API server keeps the field", async || {
        set("on".into()).await;
        (scene.syncs().get("shop").await.unwrap().data["spec"]["future"] == "on").then_some(())
    })
    .await;
    // A watch from before the change of the definition does not deliver the field.
    set(Value::Null).await;
    let daemon = scene.daemon();
    scene.until_ready("shop", &commit).await;
    set("on".into()).await;
    scene.until_reason("shop", "SpecInvalid").await;
    let message = scene.status("shop", "/conditions/0/message").await;
    let expect = format!("spec.future: Moorline {} does not know this field", env!("CARGO_PKG_VERSION"));
    assert!(message.as_str().is_some_and(|text| text.contains(&expect)), "{message}");

    // The revision is kept and repaired, and nothing is pruned.
    let commit = scene.remove(&["a-2.json"]);
    scene.nudge("shop", "removed").await;
    assert_repaired(&scene, "a-0").await;
    scene.settle().await;
    assert_eq!(scene.values().await.len(), 3);
    let before = scene.versions().await;

    // A daemon that starts later writes nothing, and leaves the definition alone.
    drop(daemon);
    let _daemon = scene.daemon();
    scene.settle().await;
    assert_eq!(scene.versions().await, before);
    assert_eq!(scene.status("shop", "/conditions/0/reason").await, "SpecInvalid");
    assert!(scene.status("shop", "/revision/applied").await.is_string(), "the status keeps what it says");
    assert_newer_definition(&scene).await;

    set(Value::Null).await;
    scene.until_ready("shop", &commit).await;
    until("what left Git is pruned", async || (scene.values().await.len() == 2).then_some(())).await;
    scene.delete_sync("shop").await;
}
