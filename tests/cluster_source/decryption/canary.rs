//! A value in every place of encrypted files, and where it must not be seen.

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::page_requests::get;
use moorline_test_support::person::moorline;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, text};
use moorline_test_support::sops::{AGE_KEYS, encrypt_dotenv, encrypt_yaml};
use serde_json::{Value, json};

use super::{PLANTED, decrypting, make_keys, secret, until_password};

/// All that a person or a collector gets to see of a Sync.
async fn shown(scene: &Scene) -> String {
    let sync = scene.syncs().get("shop").await.unwrap();
    let events: Api<Event> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    let events = events.list(&ListParams::default()).await.unwrap();
    let verbs: [&[&str]; 5] = [
        &["status", "shop"],
        &["status", "shop", "-o", "json"],
        &["events", "shop"],
        &["plan", "--sync", "shop", "--decrypt", "--show-all"],
        &["plan", "--sync", "shop", "--decrypt", "--output", "json"],
    ];
    let said = verbs.map(|arguments| moorline(scene, arguments)).map(|said| said.data + &said.words);
    [serde_json::to_string(&sync).unwrap(), serde_json::to_string(&events.items).unwrap()]
        .into_iter()
        .chain(said)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The pages of the Sync and its objects, and the same as JSON.
fn pages(daemon: &Daemon, scene: &Scene) -> String {
    let (page, namespace) = (daemon.page().expect("has a page"), &scene.namespace);
    let objects = ["ConfigMap", "Secret", "Service"].into_iter().zip(["settings", "login", "bad"]);
    let objects =
        objects.map(|(kind, name)| format!("/syncs/{namespace}/shop/objects/-/{kind}/{namespace}/{name}"));
    let tabs = ["", "/timeline", "/diff", "/plan", "/settings"];
    let paths = objects.chain(tabs.map(|tab| format!("/syncs/{namespace}/shop{tab}")));
    let both = paths.flat_map(|path| [format!("/api/v1{path}"), path]);
    both.map(|path| get(&page, &path).body).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_an_encrypted_file_is_shown_nowhere() {
    let Some(scene) = Scene::new("canary").await else { return };
    let [one, _] = &AGE_KEYS;
    make_keys(&scene, &[one]).await;
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "annotations": {"note": PLANTED}}, "data": {"key": PLANTED}});
    // A type that the server refuses, and quotes when it does.
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "bad"},
        "spec": {"type": PLANTED, "ports": [{"port": 80, "name": "web"}]}});
    let encrypt = |document: &Value, fields: &[&str]| encrypt_yaml(document, fields, &one.metadata());
    scene.push(&[
        text(
            "kustomization.yaml",
            "resources: [login.yaml, settings.yaml, bad.yaml, plain.json]\n\
            configMapGenerator: [{name: env, envs: [app.env], options: {disableNameSuffixHash: true}}]\n",
        ),
        text("login.yaml", &encrypt(&secret("login", PLANTED), &["stringData"])),
        text("settings.yaml", &encrypt(&settings, &["data", "annotations"])),
        text("bad.yaml", &encrypt(&service, &["type"])),
        text("app.env", &encrypt_dotenv(&[("key", PLANTED)], &one.metadata())),
        text("plain.json", &config_map("plain", "open")),
    ]);
    let daemon =
        scene.daemon_with(&["--leader-election=false", "--log-level", "trace", "--page", "127.0.0.1:0"]);
    scene.sync("shop", decrypting()).await;
    scene.until_reason("shop", "ApplyFailed").await;
    until_password(&scene, "login", PLANTED).await;
    assert_eq!(scene.values().await["env"], PLANTED);
    // An edit by hand is repaired, and reported without values.
    scene.edit("settings", "by hand").await;
    until("it is repaired", async || (scene.values().await["settings"] == PLANTED).then_some(())).await;
    tokio::time::sleep(QUIET_TIME).await;
    let pages = pages(&daemon, &scene);
    let everything =
        shown(&scene).await + &daemon.log() + &daemon.get("/metrics").unwrap_or_default() + &pages;
    let encoded = "aHVudGVyMi1wbGFudGVk";
    for hidden in [PLANTED, encoded, one.identity] {
        let at = everything.find(hidden);
        let around = at.map(|at| &everything[at.saturating_sub(300)..at + 40]);
        assert_eq!(around, None, "{hidden} is shown");
    }
    assert!(pages.contains("settings") && everything.contains("moorline_"), "the outputs are there");

    // The recorded hash of an object with such a value is keyed, and that of a plain one is not.
    let recorded = async |name: &str| {
        let path = format!("/api/v1/namespaces/{}/configmaps/{name}", scene.namespace);
        let found = send_request(&scene.admin, "GET", &path, Value::Null).await.unwrap();
        found["metadata"]["annotations"]["moorline.dev/spec-hash"].as_str().unwrap_or_default().to_owned()
    };
    for (name, is_plain) in [("settings", false), ("env", false), ("plain", true)] {
        assert_eq!(recorded(name).await.starts_with("v1:"), is_plain, "{name}");
    }
    scene.delete_sync("shop").await;
}
