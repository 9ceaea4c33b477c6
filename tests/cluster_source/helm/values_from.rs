//! Values of charts that are in ConfigMaps and Secrets: merged as helm merges them, watched, and those of Secrets seen by nobody.

use std::path::Path;
use std::process::Command;

use kube::api::{Patch, PatchParams};
use moorline::render::helm::{Capabilities, ExternalValues, ValuesPath};
use moorline::render::{HelmOptions, Visibility};
use serde_json::{Value, json};

use super::charts::{CHART, check, options};
use super::daemon::{daemon, file, started};
use super::{helm_of, objects};
use moorline::tree::FileTree;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::programs::find;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;

/// A value that is in a Secret, and nowhere else.
const PLANTED: &str = "hunter2-planted";

/// A chart that prints all of its values.
const ALL: (&str, &str) = (
    "chart/templates/all.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: all}\ndata:\n  all: {{ toJson .Values | quote }}\n  upgrade: \"{{ .Release.IsUpgrade }} {{ .Release.IsInstall }}\"\n",
);
const VALUES: (&str, &str) = ("chart/values.yaml", "a: {b: 1, c: [1, 2]}\nd: own\ne: own\n");

fn external(texts: &[(&str, Option<&str>, bool)], seen: Visibility) -> ExternalValues {
    texts.iter().fold(ExternalValues::default(), |values, (text, path, literal)| {
        let path = path.map(|path| ValuesPath::parse(path, *literal).unwrap());
        values.with(text, path.as_ref(), seen).unwrap()
    })
}

#[tokio::test]
async fn values_of_objects_are_merged_as_helm_merges_files_and_sets() {
    const TYPED: [&str; 6] = ["default", "chart", "--namespace", "default", "--include-crds", "--skip-tests"];
    let first = ("values/first.yaml", "a: {b: 2, x: {y: z}}\nd: first\nlist: [{n: 1}, {n: 2}]\n");
    let second = ("values/second.yaml", "a: {x: {y: null, w: 1.50}, c: [3]}\nn: 0x10\n");
    let files = [CHART, VALUES, ALL, first, second];
    let values = external(&[(first.1, None, false), (second.1, None, false)], Visibility::Public);
    let helm = HelmOptions { external: values, ..HelmOptions::default() };
    let files_of_helm = ["--values", first.0, "--values", second.0];
    check("two files", &files, helm, &[TYPED.as_slice(), &files_of_helm].concat()).await;

    // Each of these is what `helm --set` makes of the same text.
    for (path, text) in [
        ("d", "x"),
        ("a.b", "12"),
        ("a.c[1]", "true"),
        ("a.x.y[2].z", "0"),
        ("d\\.e", "007"),
        ("d", "1.5"),
        ("d", "null"),
        ("d", ""),
        ("d", "{a,1,true,007}"),
        ("d", "{}"),
        ("d", "a\\,b=c\\\\"),
    ] {
        let helm = HelmOptions {
            external: external(&[(text, Some(path), false)], Visibility::Public),
            ..HelmOptions::default()
        };
        let set = format!("{path}={text}");
        check(&set, &files, helm, &[TYPED.as_slice(), &["--set", &set]].concat()).await;
    }
    for text in ["a,b\\ {12", "12", "true", "'x'"] {
        let helm = HelmOptions {
            external: external(&[(text, Some("a.d"), true)], Visibility::Public),
            ..HelmOptions::default()
        };
        let set = format!("a.d={text}");
        check(&set, &files, helm, &[TYPED.as_slice(), &["--set-literal", &set]].concat()).await;
    }

    // Files are overridden, and the values of the Sync override.
    let helm = HelmOptions {
        values_files: vec!["/values/first.yaml".into()],
        external: external(&[(second.1, None, false), ("y", Some("e"), false)], Visibility::Secret),
        values: json!({"a": {"b": 9}}).as_object().cloned().unwrap(),
        is_upgrade: true,
        ..HelmOptions::default()
    };
    let all = ["--values", first.0, "--values", second.0, "--set", "e=y,a.b=9", "--is-upgrade"];
    check("all places", &files, helm, &[TYPED.as_slice(), &all].concat()).await;
}

#[tokio::test]
async fn a_message_of_helm_has_no_value_of_a_secret() {
    let Some(program) = find("helm") else { return };
    let (helm, _folder) = helm_of(&program);
    let fails =
        ("chart/templates/a.yaml", "\n{{ fail (printf \"no: %s, %s\" .Values.word (upper .Values.word)) }}");
    let tree = FileTree::from_texts([CHART, fails]);
    let with = HelmOptions {
        external: external(&[(PLANTED, Some("word"), false)], Visibility::Secret),
        ..HelmOptions::default()
    };
    let told = objects(&helm, &tree, options(with), Capabilities::default()).await.unwrap_err();
    // Only the place is shown.
    assert!(told.contains("chart/templates/a.yaml:2: the message is not shown"), "{told}");
    assert!(!told.to_lowercase().contains("planted"), "{told}");
    // An object that is invalid is not quoted.
    let wrong = ("chart/templates/a.yaml", "{{ .Values.word }}: [\n");
    let tree = FileTree::from_texts([CHART, wrong]);
    let with = HelmOptions {
        external: external(&[(PLANTED, Some("word"), false)], Visibility::Secret),
        ..HelmOptions::default()
    };
    let told = objects(&helm, &tree, options(with), Capabilities::default()).await.unwrap_err();
    assert!(!told.contains("planted"), "{told}");
}

async fn make(scene: &Scene, plural: &str, name: &str, field: &str, values: Value) {
    let path = format!("/api/v1/namespaces/{}/{plural}", scene.namespace);
    send_request(&scene.admin, "POST", &path, json!({"metadata": {"name": name}, field: values}))
        .await
        .unwrap();
}

/// True if a file below a folder has the text in it, as it is, or compressed.
fn is_in_files(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return is_in_files(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        let inflated = miniz_oxide::inflate::decompress_to_vec(&bytes).unwrap_or_default();
        [bytes, inflated].iter().any(|bytes| String::from_utf8_lossy(bytes).contains(text))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_from_objects_that_are_watched_and_those_of_secrets_are_seen_by_nobody() {
    let Some(scene) = Scene::new("chart-values-from").await else { return };
    let Some(one) = daemon(&scene) else { return };
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\ndata: {key: \"{{ .Values.color }} {{ .Values.db.password | b64enc }} {{ .Values.size }}\"}\n";
    let commit = scene.push(&[
        file("chart/Chart.yaml", CHART.1),
        file("chart/values.yaml", "color: red\nsize: 1\ndb: {password: none}\n"),
        file("chart/templates/out.yaml", map),
    ]);
    make(&scene, "configmaps", "values", "data", json!({"values.yaml": "color: green\nsize: 2\n"})).await;
    make(&scene, "secrets", "keys", "stringData", json!({"password": PLANTED})).await;
    let from = json!([
        {"kind": "ConfigMap", "name": "values"},
        {"kind": "Secret", "name": "keys", "key": "password", "targetPath": "db.password"},
        {"kind": "ConfigMap", "name": "absent", "optional": true},
    ]);
    let helm = json!({"valuesFrom": from, "values": {"size": 3}});
    scene.sync("shop", json!({"path": "./chart", "interval": "1h", "render": {"helm": helm}})).await;
    scene.until_ready("shop", &commit).await;
    let encoded = "aHVudGVyMi1wbGFudGVk";
    let value = async || scene.values().await.get("out").cloned().unwrap_or_default();
    assert_eq!(value().await, format!("green {encoded} 3"));
    assert_eq!(started(&scene), 1);
    scene.settle().await;
    scene.assert_calm("nothing has changed").await;

    // A change arrives by the watch, and is one render and one write.
    let patch = Patch::Merge(json!({"data": {"values.yaml": "color: blue\n"}}));
    scene.proxy.take_requests();
    scene.maps().patch("values", &PatchParams::default(), &patch).await.unwrap();
    until("the other color is there", async || value().await.starts_with("blue").then_some(())).await;
    let writes = scene
        .proxy
        .take_requests()
        .into_iter()
        .filter(|asked| asked.is_on_object() && asked.writes())
        .count();
    assert_eq!((writes, started(&scene)), (1, 2));

    // A text that is wrong or missing is reported by its key; the previous values stay.
    let broken = Patch::Merge(json!({"data": {"values.yaml": "color: ["}}));
    scene.maps().patch("values", &PatchParams::default(), &broken).await.unwrap();
    scene.until_reason("shop", "ValuesInvalid").await;
    let told = scene.status("shop", "/conditions/0/message").await;
    let expect = "the key values.yaml of the ConfigMap values that spec.render.helm.valuesFrom references is not YAML at line ";
    assert!(told.as_str().is_some_and(|told| told.contains(expect)), "{told}");
    let patch = Patch::Merge(json!({"data": {"values.yaml": null, "other": "a: b"}}));
    scene.maps().patch("values", &PatchParams::default(), &patch).await.unwrap();
    until("the missing key is reported", async || {
        let told = scene.status("shop", "/conditions/0/message").await;
        told.as_str()?.contains("does not exist, or is not text").then_some(())
    })
    .await;
    assert!(value().await.starts_with("blue"));
    let patch = Patch::Merge(json!({"data": {"values.yaml": "color: white\n"}}));
    scene.maps().patch("values", &PatchParams::default(), &patch).await.unwrap();
    until("the last color is there", async || value().await.starts_with("white").then_some(())).await;

    assert_hidden(&scene, one, encoded).await;
}

/// The value of the Secret is in the object that the chart made of it, and nowhere else: no plan, no status, no log, no disk.
async fn assert_hidden(scene: &Scene, daemon: Daemon, encoded: &str) {
    let value = async || scene.values().await.get("out").cloned().unwrap_or_default();
    let kubeconfig = scene.root.path().join("kubeconfig-of-a-person");
    std::fs::write(&kubeconfig, scene.plane.kubeconfig(ADMIN)).unwrap();
    scene
        .maps()
        .patch("out", &PatchParams::default(), &Patch::Merge(json!({"data": {"key": "hand"}})))
        .await
        .unwrap();
    until("the hand edit is gone", async || value().await.starts_with("white").then_some(())).await;
    let patch = json!({"spec": {"drift": {"mode": "Report"}}});
    scene.patch_sync("shop", patch).await;
    until("the new mode counts", async || {
        let generation = scene.syncs().get("shop").await.ok()?.metadata.generation;
        (scene.status("shop", "/observedGeneration").await == json!(generation)).then_some(())
    })
    .await;
    scene
        .maps()
        .patch("out", &PatchParams::default(), &Patch::Merge(json!({"data": {"key": "hand"}})))
        .await
        .unwrap();
    let program = std::path::absolute(find("helm").unwrap()).unwrap();
    let planned = Command::new(env!("CARGO_BIN_EXE_moorline"))
        .args(["plan", "--sync", "shop", "-n", &scene.namespace])
        .env("KUBECONFIG", &kubeconfig)
        .env("MOORLINE_HELM", program)
        .output()
        .unwrap();
    let planned = String::from_utf8_lossy(&[planned.stdout, planned.stderr].concat()).into_owned();
    assert!(planned.contains("out"), "{planned}");
    until("the drift is reported", async || {
        (scene.status("shop", "/objects/drifted").await == json!(1)).then_some(())
    })
    .await;
    let status = scene.status("shop", "").await.to_string();
    drop(daemon);
    let folder = scene.root.path().join("daemon");
    for hidden in [PLANTED, encoded] {
        assert!(!planned.contains(hidden), "{planned}");
        assert!(!status.contains(hidden), "{status}");
        assert!(!is_in_files(&folder, hidden), "{hidden} is on the disk or in the log");
    }
}
