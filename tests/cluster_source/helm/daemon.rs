//! A daemon that follows a repository with a chart, on a real API server.

use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::programs::find;
use moorline_test_support::scene::Scene;

/// A daemon that says in its log how often helm is started: behind the fence nobody can write that down.
pub(crate) fn daemon(scene: &Scene) -> Option<Daemon> {
    let program = std::path::absolute(find("helm")?).unwrap();
    let program = program.to_str().unwrap();
    Some(scene.daemon_with(&["--leader-election=false", "--log-level", "debug", "--helm", program]))
}

pub(crate) fn started(scene: &Scene) -> usize {
    let log = std::fs::read_to_string(scene.root.path().join("daemon/daemon.log")).unwrap();
    log.matches("helm is started").count()
}

pub(crate) fn file(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

const MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {key: {{ .Values.value | quote }}}\n";

/// The definition of a kind.
fn definition(group: &str, kind: &str) -> Value {
    let one = kind.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{one}s.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": format!("{one}s"), "singular": one},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    })
}

fn chart() -> Vec<(String, String)> {
    let definition = definition("charts.example.com", "Anchor");
    vec![
        file("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        file("chart/values.yaml", "value: own\n"),
        file("chart/templates/a.yaml", &MAP.replace("NAME", "{{ .Release.Name }}-a")),
        file("chart/templates/b.yaml", &MAP.replace("NAME", "b")),
        file(
            "chart/templates/first.yaml",
            &MAP.replace(
                "NAME",
                "first, annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-failed}",
            ),
        ),
        file("chart/templates/test.yaml", &MAP.replace("NAME", "test, annotations: {helm.sh/hook: test}")),
        file("chart/crds/anchor.yaml", &definition.to_string()),
        file(
            "chart/templates/anchor.yaml",
            "apiVersion: charts.example.com/v1\nkind: Anchor\nmetadata: {name: a}\n",
        ),
        file("values/prod.yaml", "value: prod\n"),
        file("notes/words.txt", "words"),
    ]
}

#[tokio::test]
async fn a_chart_is_followed_like_any_folder() {
    let Some(scene) = Scene::new("chart").await else { return };
    let Some(_daemon) = daemon(&scene) else { return };
    let commit = scene.push(&chart());
    let helm = json!({"valuesFiles": ["../values/prod.yaml"]});
    scene.sync("shop", json!({"path": "./chart", "interval": "1h", "render": {"helm": helm}})).await;
    scene.until_ready("shop", &commit).await;
    let value = async |name: &str| scene.values().await.get(name).cloned();
    assert_eq!(value("shop-a").await.as_deref(), Some("prod"), "the release has the Sync's name");
    assert_eq!(value("first").await.as_deref(), Some("prod"), "a hook has run");
    assert_eq!(value("test").await, None, "tests are left out");
    assert!(scene.dynamic("charts.example.com", "v1", "Anchor").get_opt("a").await.unwrap().is_some());
    assert_eq!(started(&scene), 1);
    scene.settle().await;
    scene.assert_calm("once it is rendered").await;

    // A commit beside it is no render and no request.
    scene.proxy.take_requests();
    let commit = scene.push(&[file("notes/words.txt", "other words")]);
    scene.nudge("shop", "beside").await;
    scene.until_ready("shop", &commit).await;
    let asked = scene.proxy.take_requests();
    let on_objects: Vec<_> = asked.iter().filter(|one| one.is_on_object()).map(|one| &one.path).collect();
    assert!(on_objects.is_empty(), "{on_objects:?}");
    assert_eq!(started(&scene), 1);

    // Values beyond the path count, and those of the Sync more.
    let commit = scene.push(&[file("values/prod.yaml", "value: other\n")]);
    scene.nudge("shop", "values").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value("b").await.as_deref(), Some("other"));
    scene
        .patch_sync("shop", json!({"spec": {"render": {"helm": {"values": {"value": "of the Sync"}}}}}))
        .await;
    until("the Sync's values count", async || {
        (value("b").await.as_deref() == Some("of the Sync")).then_some(())
    })
    .await;
    assert_eq!(started(&scene), 3);

    // An object that the chart has no more is pruned.
    let commit = scene.remove(&["chart/templates/b.yaml"]);
    scene.nudge("shop", "without b").await;
    scene.until_ready("shop", &commit).await;
    until("b is pruned", async || value("b").await.is_none().then_some(())).await;

    // The problem is reported with its template, and what is there stays.
    scene.push(&[file("chart/templates/a.yaml", "{{ fail \"no anchor\" }}")]);
    scene.nudge("shop", "wrong").await;
    scene.until_reason("shop", "HelmFailed").await;
    let told = scene.status("shop", "/conditions/0/message").await;
    assert!(
        told.as_str().is_some_and(|it| it.contains("chart/templates/a.yaml:1:3") && it.contains("no anchor")),
        "{told}"
    );
    assert_eq!(value("shop-a").await.as_deref(), Some("of the Sync"));
}

#[tokio::test]
async fn the_tests_of_a_chart_run_on_request_at_each_commit() {
    let Some(scene) = Scene::new("chart-tests").await else { return };
    let Some(_daemon) = daemon(&scene) else { return };
    let commit = scene.push(&chart());
    scene.sync("shop", json!({"path": "./chart", "interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    let value = async || scene.values().await.get("test").cloned();
    assert_eq!(value().await, None, "nobody has asked for them");
    scene.patch_sync("shop", json!({"spec": {"render": {"helm": {"testHooks": true}}}})).await;
    until("the test has run", async || (value().await.as_deref() == Some("own")).then_some(())).await;
    let commit = scene.push(&[file("chart/values.yaml", "value: other\n")]);
    scene.nudge("shop", "values").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value().await.as_deref(), Some("other"), "it has run again");
    scene.settle().await;
    scene.assert_calm("after the tests").await;
}

#[tokio::test]
async fn a_folder_that_becomes_a_chart_is_one_at_once() {
    let Some(scene) = Scene::new("chart-beside").await else { return };
    let Some(_daemon) = daemon(&scene) else { return };
    let map = MAP.replace("NAME", "a").replace("{{ .Values.value | quote }}", "built");
    let commit = scene.push(&[
        file("shop/kustomization.yaml", "resources: [templates/a.yaml]\n"),
        file("shop/templates/a.yaml", &map),
    ]);
    scene.sync("shop", json!({"path": "./shop", "interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    let commit = scene.push(&[
        file("shop/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        file("shop/templates/b.yaml", &map.replace("name: a", "name: b")),
    ]);
    scene.nudge("shop", "chart").await;
    scene.until_ready("shop", &commit).await;
    assert!(scene.values().await.contains_key("b"), "not only after a restart");
    assert_eq!(started(&scene), 1);
}

#[tokio::test]
async fn a_kustomization_with_a_chart_is_followed_like_any_folder() {
    let Some(scene) = Scene::new("chart-inflated").await else { return };
    let Some(_daemon) = daemon(&scene) else { return };
    // The chart lies beside the folder of the Sync.
    let kustomization = "namePrefix: x-\nhelmGlobals: {chartHome: ../charts}\nhelmCharts:\n- {name: web, releaseName: shop, valuesFile: prod.yaml}\n";
    let commit = scene.push(&[
        file("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        file("charts/web/values.yaml", "value: own\n"),
        file("charts/web/templates/a.yaml", &MAP.replace("NAME", "{{ .Release.Name }}-a")),
        file("shop/kustomization.yaml", kustomization),
        file("shop/prod.yaml", "value: prod\n"),
        file("notes/words.txt", "words"),
    ]);
    scene.sync("shop", json!({"path": "./shop", "interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    let value = async || scene.values().await.get("x-shop-a").cloned();
    assert_eq!(value().await.as_deref(), Some("prod"));
    assert_eq!(started(&scene), 1);
    scene.settle().await;
    scene.assert_calm("once it is rendered").await;

    // A commit beside it is no render and no request; one in the chart is both.
    scene.proxy.take_requests();
    let commit = scene.push(&[file("notes/words.txt", "other words")]);
    scene.nudge("shop", "beside").await;
    scene.until_ready("shop", &commit).await;
    let asked = scene.proxy.take_requests();
    assert!(!asked.iter().any(|one| one.is_on_object()), "{asked:?}");
    assert_eq!(started(&scene), 1);
    let commit = scene.push(&[file("charts/web/templates/b.yaml", &MAP.replace("NAME", "b"))]);
    scene.nudge("shop", "more").await;
    scene.until_ready("shop", &commit).await;
    assert!(scene.values().await.contains_key("x-b"));
    assert_eq!(started(&scene), 2);

    // A chart that helm refuses changes nothing.
    scene.push(&[file("charts/web/templates/a.yaml", "{{ fail \"no anchor\" }}")]);
    scene.nudge("shop", "wrong").await;
    scene.until_reason("shop", "HelmFailed").await;
    let told = scene.status("shop", "/conditions/0/message").await;
    assert!(told.as_str().is_some_and(|it| it.contains("charts/web/templates/a.yaml:1:3")), "{told}");
    assert_eq!(value().await.as_deref(), Some("prod"));
}

#[tokio::test]
async fn a_chart_that_looks_at_kinds_follows_them() {
    let Some(scene) = Scene::new("chart-looks").await else { return };
    let Some(_daemon) = daemon(&scene) else { return };
    let late = MAP.replace("NAME", "late");
    let late = format!(
        "{{{{ if .Capabilities.APIVersions.Has \"late.example.com/v1/Late\" }}}}\n{late}{{{{ end }}}}\n"
    );
    let commit = scene.push(&[
        file("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        file("chart/values.yaml", "value: own\n"),
        file("chart/templates/a.yaml", &MAP.replace("NAME", "a")),
        file("chart/templates/late.yaml", &late),
    ]);
    scene.sync("shop", json!({"path": "./chart", "interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    assert!(!scene.values().await.contains_key("late"));
    scene.settle().await;
    let definition: DynamicObject = serde_json::from_value(definition("late.example.com", "Late")).unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    ));
    let definitions: Api<DynamicObject> = Api::all_with(scene.admin.clone(), &kind);
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    until("what needs the kind is there", async || scene.values().await.contains_key("late").then_some(()))
        .await;
    assert_eq!(started(&scene), 2);
    scene.settle().await;
    scene.assert_calm("once the kind is there").await;
}

#[tokio::test]
async fn syncs_of_one_chart_start_one_helm_and_draw_once() {
    let Some(scene) = Scene::new("chart-many").await else { return };
    let Some(one) = daemon(&scene) else { return };
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: drawn}\nstringData: {password: \"{{ randAlphaNum 20 }}\"}\n";
    let commit = scene.push(&[
        file("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        file("chart/templates/drawn.yaml", secret),
    ]);
    let helm = json!({"releaseName": "one", "namespace": "one"});
    scene.sync("one", json!({"path": "./chart", "render": {"type": "Helm", "helm": helm}})).await;
    scene.until_ready("one", &commit).await;
    let drawn = async || {
        let secret = scene.dynamic("", "v1", "Secret").get("drawn").await.unwrap();
        secret.data["data"]["password"].clone()
    };
    let first: Value = drawn().await;
    scene.delete_sync("one").await;
    scene.sync("one", json!({"path": "./chart", "render": {"type": "Helm", "helm": helm}})).await;
    scene.until_ready("one", &commit).await;
    assert_eq!(drawn().await, first);
    assert_eq!(started(&scene), 1);

    // A daemon that restarts renders nothing again either.
    drop(one);
    let _other = daemon(&scene);
    scene.nudge("one", "anew").await;
    until("it has looked", async || {
        (scene.status("one", "/lastHandledRequest").await == "anew").then_some(())
    })
    .await;
    scene.settle().await;
    assert_eq!(drawn().await, first);
    assert_eq!(started(&scene), 1);
}

#[tokio::test]
async fn without_helm_a_sync_is_stalled_and_says_what_to_do() {
    let Some(scene) = Scene::new("chart-without").await else { return };
    let _daemon = scene.daemon_with(&["--leader-election=false", "--helm", "/nowhere/helm"]);
    scene.push(&chart());
    scene.sync("shop", json!({"path": "./chart"})).await;
    scene.until_reason("shop", "HelmMissing").await;
    let conditions = scene.status("shop", "/conditions").await;
    let stalled = conditions.as_array().unwrap().iter().find(|it| it["type"] == "Stalled").cloned();
    assert_eq!(stalled.unwrap_or_default()["status"], "True", "{conditions}");
    assert!(conditions.to_string().contains("image.variant"), "{conditions}");
}
