//! `moorline adopt helmrelease/x`: what helm-controller holds is taken over without an uninstallation, the release of helm is kept,
//! and `--undo` gives all of it back.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::gitops_tools::install;
use moorline_test_support::person::CommandOutput;
use moorline_test_support::programs::find;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, text};
use serde_json::{Value, json};

pub(super) const RELEASES: &str = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/NAMESPACE/helmreleases";

/// A chart with a Deployment and a ConfigMap, as people write them.
pub(super) fn chart() -> Vec<(String, String)> {
    let labels = "{app.kubernetes.io/managed-by: {{ .Release.Service }}, helm.sh/chart: shop-1.0.0}";
    vec![
        text("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        text("chart/values.yaml", "word: none\nreplicas: 1\n"),
        text(
            "chart/templates/map.yaml",
            &format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: \"{{{{ .Release.Name }}}}-map\", labels: {labels}}}\ndata: {{word: {{{{ .Values.word }}}}, upgrade: \"{{{{ .Release.IsUpgrade }}}}\"}}\n"
            ),
        ),
        text(
            "chart/templates/web.yaml",
            &format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: \"{{{{ .Release.Name }}}}-web\", labels: {labels}}}\nspec:\n  replicas: {{{{ .Values.replicas }}}}\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: web, image: \"example.com/web:1\"}}]}}\n"
            ),
        ),
        // An installation is over: its hook does not run.
        text(
            "chart/templates/hook.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first, annotations: {helm.sh/hook: pre-install}}\n",
        ),
    ]
}

/// The objects as helm-controller has applied them.
fn held() -> [(&'static str, Value); 2] {
    let metadata = |name: &str| {
        json!({"name": name,
            "labels": {"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "shop-1.0.0",
                "helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": "NAMESPACE"},
            "annotations": {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "NAMESPACE"}})
    };
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("shop-map"),
        "data": {"word": "planted", "upgrade": "true"}});
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("shop-web"), "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]}}}});
    [
        ("/api/v1/namespaces/NAMESPACE/configmaps/shop-map", map),
        ("/apis/apps/v1/namespaces/NAMESPACE/deployments/shop-web", web),
    ]
}

pub(super) async fn get(scene: &Scene, path: &str) -> Value {
    send_request(&scene.admin, "GET", &path.replace("NAMESPACE", &scene.namespace), Value::Null)
        .await
        .unwrap()
}

pub(super) async fn post(scene: &Scene, path: &str, body: Value) -> Value {
    send_request(&scene.admin, "POST", &path.replace("NAMESPACE", &scene.namespace), body).await.unwrap()
}

/// Writes the objects with the manager and the marks of helm-controller.
async fn apply_as_helm(scene: &Scene) {
    for (path, object) in held() {
        let uri =
            format!("{path}?fieldManager=helm-controller&force=true").replace("NAMESPACE", &scene.namespace);
        let body = object.to_string().replace("NAMESPACE", &scene.namespace);
        let request = http::Request::patch(uri).header("Content-Type", "application/apply-patch+yaml");
        scene.admin.request::<Value>(request.body(body.into_bytes()).unwrap()).await.unwrap();
    }
}

/// The Secret in which helm stores a release.
fn storage(namespace: &str) -> Value {
    let documents = held().map(|(_, object)| {
        let mut object = object;
        object["metadata"] = json!({"name": object["metadata"]["name"]});
        format!("---\n{object}\n")
    });
    let release =
        json!({"name": "shop", "namespace": namespace, "version": 3, "manifest": documents.concat()});
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    gzip.extend(miniz_oxide::deflate::compress_to_vec(release.to_string().as_bytes(), 6));
    gzip.extend([0; 8]);
    let data = STANDARD.encode(STANDARD.encode(gzip));
    json!({"metadata": {"name": "sh.helm.release.v1.shop.v3", "labels": {"owner": "helm", "name": "shop"}},
        "type": "helm.sh/release.v1", "data": {"release": data}})
}

/// Runs `moorline adopt helmrelease/shop`.
pub(super) fn adopt(scene: &Scene, proxy: &FaultProxy, arguments: &[&str]) -> CommandOutput {
    let place = scene.root.path().join("kubeconfig-of-who-adopts");
    std::fs::write(&place, proxy.kubeconfig(&scene.plane, ADMIN)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
    command.args(["adopt", "helmrelease/shop", "-n", &scene.namespace]).args(arguments);
    if !arguments.contains(&"--undo") {
        command.args(["--sync-namespace", &scene.namespace]);
    }
    if arguments.contains(&"--apply") {
        command.args(["--timeout", "60"]);
    }
    let helm = std::path::absolute(find("helm").unwrap()).unwrap();
    let output = command.env("KUBECONFIG", place).env("MOORLINE_HELM", helm).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput {
        code: output.status.code().unwrap(),
        data: text(output.stdout),
        words: text(output.stderr),
    }
}

/// Everything that an adoption must not change: uids, the Deployment and its ReplicaSets, and the release of helm.
async fn untouched(scene: &Scene) -> Value {
    let mut seen = json!({});
    for (path, _) in held() {
        let object = get(scene, path).await;
        seen[path] = json!([object["metadata"]["uid"], object["spec"]]);
    }
    let sets = get(scene, "/apis/apps/v1/namespaces/NAMESPACE/replicasets").await;
    seen["sets"] = sets["items"].as_array().map(Vec::len).into();
    let secret = get(scene, "/api/v1/namespaces/NAMESPACE/secrets/sh.helm.release.v1.shop.v3").await;
    seen["release"] = secret["metadata"]["resourceVersion"].clone();
    seen
}

/// Makes a HelmRelease, everything that it names, and what helm-controller has made of it.
async fn installed(scene: &Scene) -> Value {
    scene.push(&chart());
    post(
        scene,
        "/api/v1/namespaces/NAMESPACE/configmaps",
        json!({"metadata": {"name": "values"}, "data": {"values.yaml": "replicas: 2\n"}}),
    )
    .await;
    post(
        scene,
        "/api/v1/namespaces/NAMESPACE/secrets",
        json!({"metadata": {"name": "keys"}, "stringData": {"word": "planted"}}),
    )
    .await;
    post(scene, "/api/v1/namespaces/NAMESPACE/secrets", storage(&scene.namespace)).await;
    apply_as_helm(scene).await;
    let repository = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "source"},
        "spec": {"url": scene.git.url("repository.git"), "ref": {"branch": "main"}, "interval": "10s"},
    });
    post(scene, "/apis/source.toolkit.fluxcd.io/v1/namespaces/NAMESPACE/gitrepositories", repository).await;
    let release = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "shop", "finalizers": ["finalizers.fluxcd.io"]},
        "spec": {
            "interval": "10m", "chart": {"spec": {"chart": "./chart", "sourceRef": {"kind": "GitRepository", "name": "source"}}},
            "valuesFrom": [{"kind": "ConfigMap", "name": "values"},
                {"kind": "Secret", "name": "keys", "valuesKey": "word", "targetPath": "word"}],
            "upgrade": {"disableWait": true}, "driftDetection": {"mode": "enabled"},
        },
    });
    let old = post(scene, RELEASES, release).await;
    let status =
        json!({"status": {"history": [{"name": "shop", "namespace": scene.namespace, "version": 3}]}});
    let place = format!("{RELEASES}/shop/status").replace("NAMESPACE", &scene.namespace);
    send_request(&scene.admin, "PATCH", &place, status).await.unwrap();
    old
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_taken_over_without_an_uninstallation_and_given_back() {
    let Some(helm) = find("helm") else { return };
    let Some(scene) = Scene::new("adopt-release").await else { return };
    install(&scene).await;
    let proxy = FaultProxy::start(&scene.plane);
    let old = installed(&scene).await;
    let program = std::path::absolute(helm).unwrap();
    let _daemon = scene.daemon_with(&["--leader-election=false", "--helm", program.to_str().unwrap()]);
    let path = format!("{RELEASES}/shop");
    let sets = "/apis/apps/v1/namespaces/NAMESPACE/replicasets";
    until("the Deployment has its ReplicaSet", async || {
        get(&scene, sets).await["items"].as_array().filter(|all| !all.is_empty()).map(Vec::len)
    })
    .await;
    let before = untouched(&scene).await;
    let mark = AuditMark::set(&scene.plane).await;

    // Showing it writes nothing, and names what the stored release has.
    proxy.take_requests();
    let shown = adopt(&scene, &proxy, &[]);
    assert_eq!(shown.code, 2, "{}{}", shown.data, shown.words);
    assert!(!proxy.take_requests().iter().any(|one| one.writes()));
    for expect in
        ["Owned by Flux (2): Git has 2 of them", "Adopt (2)", "currently managed by helm-controller"]
    {
        assert!(shown.data.contains(expect), "{expect}: {}", shown.data);
    }
    assert!(!shown.data.contains("planted"), "a value of a Secret: {}", shown.data);
    assert!(!shown.data.contains("Create ("), "an installation is over: {}", shown.data);

    let applied = adopt(&scene, &proxy, &["--apply"]);
    assert_eq!(applied.code, 0, "{}{}", applied.data, applied.words);
    for expect in
        ["2 objects were adopted; none was deleted", "do not run helm uninstall", "-l owner=helm,name=shop"]
    {
        assert!(applied.words.contains(expect), "{expect}: {}", applied.words);
    }
    let halted = get(&scene, &path).await;
    assert_eq!(halted["spec"]["suspend"], true);
    assert_eq!(
        halted["metadata"]["finalizers"], old["metadata"]["finalizers"],
        "its deletion uninstalls nothing"
    );
    assert_eq!(untouched(&scene).await, before);
    let missing = "/api/v1/namespaces/NAMESPACE/configmaps/first".replace("NAMESPACE", &scene.namespace);
    assert!(
        send_request(&scene.admin, "GET", &missing, Value::Null).await.is_err(),
        "an installation is over"
    );
    // Only the daemon has the key for hashes of objects into which a Secret may have gone.
    let again = adopt(&scene, &proxy, &[]);
    assert!(!again.data.contains("Create (") && !again.data.contains("Adopt ("), "{}", again.data);
    scene.settle().await;
    // No node runs the Deployment, so that its health is looked at.
    scene.assert_calm_but_for_looks("adopted").await;

    let undone = adopt(&scene, &proxy, &["--undo"]);
    assert_eq!(undone.code, 0, "{}", undone.words);
    let new = get(&scene, &path).await;
    assert_eq!(new["spec"], old["spec"]);
    assert_eq!(new["metadata"].get("annotations").filter(|all| **all != json!({})), None);
    assert_eq!(untouched(&scene).await, before);
    for (path, object) in held() {
        let live = get(&scene, path).await;
        let text = live.to_string();
        assert!(!text.contains("moorline.dev/"), "{text}");
        assert_eq!(live["data"], object.get("data").cloned().unwrap_or_default());
    }
    let deleted = mark.requests().await.in_namespace(&scene.namespace);
    let deleted = deleted.filter(|it| it.verb.starts_with("delete") && it.resource != "syncs");
    assert_eq!(deleted.tally(), std::collections::BTreeMap::new());
}
