//! Objects that the real helm-controller holds are adopted, and given back.
//!
//! `the_session_is_recorded` runs the real program (`tests/helm/record_release.sh` builds it) on a chart, through an installation, an
//! upgrade, a suspension and a deletion, and writes what it holds to `tests/helm/helm_controller.json`. The other test makes the same objects
//! with the same owners of fields, and adopts them.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moorline::yaml::{Dialect, read};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::gitops_tools::install;
use moorline_test_support::programs::find;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::helm_release::{RELEASES, adopt, chart, get, post};

const RECORDED: &str = "tests/helm/helm_controller.json";
const RELEASE: &str = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/NAMESPACE/helmreleases/shop";
const SECRETS: &str = "/api/v1/namespaces/NAMESPACE/secrets";
/// The objects of the chart.
const OBJECTS: [&str; 2] = [
    "/api/v1/namespaces/NAMESPACE/configmaps/shop-map",
    "/apis/apps/v1/namespaces/NAMESPACE/deployments/shop-web",
];

fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDED)
}

async fn patch(scene: &Scene, path: &str, body: Value) -> Value {
    let path = path.replace("NAMESPACE", &scene.namespace);
    send_request(&scene.admin, "PATCH", &path, body).await.unwrap()
}

/// The values of the release.
fn values(replicas: i64) -> Value {
    json!({"word": "spoken", "replicas": replicas})
}

/// Ends the program with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Packs the chart, and serves it on the loopback; returns its URL and digest.
fn serve_chart(folder: &Path) -> (String, String) {
    for (path, text) in chart() {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let helm = std::path::absolute(find("helm").unwrap()).unwrap();
    let packed = Command::new(helm)
        .current_dir(folder)
        .env("HOME", folder)
        .args(["package", "chart"])
        .output()
        .unwrap();
    assert!(packed.status.success(), "{packed:?}");
    let archive = std::fs::read(folder.join("shop-1.0.0.tgz")).unwrap();
    let digest: String = Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/shop-1.0.0.tgz", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", archive.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&archive));
        }
    });
    (url, format!("sha256:{digest}"))
}

/// Starts helm-controller for the API server of the scene.
fn controller(program: &Path, scene: &Scene) -> Ended {
    let kubeconfig = scene.root.path().join("kubeconfig-of-helm-controller");
    std::fs::write(&kubeconfig, scene.plane.kubeconfig(ADMIN)).unwrap();
    let flags = [
        "--watch-all-namespaces=true",
        "--enable-leader-election=false",
        "--metrics-addr=0",
        "--health-addr=127.0.0.1:0",
        "--events-addr=",
    ];
    let mut command = Command::new(program);
    command.args(flags).env("KUBECONFIG", kubeconfig).env("RUNTIME_NAMESPACE", &scene.namespace);
    command.env("HOME", scene.root.path());
    Ended(command.spawn().unwrap())
}

/// Waits until the newest release is of this revision, and the HelmRelease is ready.
async fn until_released(scene: &Scene, revision: i64) -> Value {
    until("the chart is released", async || {
        let release = get(scene, RELEASE).await;
        let conditions = release["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
        let newest = release.pointer("/status/history/0/version").and_then(Value::as_i64);
        (ready && newest == Some(revision)).then_some(release)
    })
    .await
}

/// An object without what each server says in its own way.
fn without_times(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
        metadata.remove(field);
    }
    for entry in metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
        entry.as_object_mut().unwrap().remove("time");
    }
    if object["kind"] != "HelmRelease" {
        object.as_object_mut().unwrap().remove("status");
    }
    object
}

/// A stored release, unpacked, without its chart.
fn unpacked(secret: Value) -> Value {
    let mut secret = without_times(secret);
    let stored = STANDARD.decode(secret["data"]["release"].as_str().unwrap()).unwrap();
    let packed = STANDARD.decode(stored).unwrap();
    let release = miniz_oxide::inflate::decompress_to_vec(&packed[10..packed.len() - 8]).unwrap();
    let mut release: Value = serde_json::from_slice(&release).unwrap();
    release.as_object_mut().unwrap().remove("chart");
    secret["data"] = json!({});
    json!({"secret": secret, "release": release})
}

/// The same Secret, packed.
fn packed(stored: &Value) -> Value {
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    gzip.extend(miniz_oxide::deflate::compress_to_vec(stored["release"].to_string().as_bytes(), 6));
    gzip.extend([0; 8]);
    let mut secret = stored["secret"].clone();
    secret["data"] = json!({"release": STANDARD.encode(STANDARD.encode(gzip))});
    secret["metadata"].as_object_mut().unwrap().remove("managedFields");
    secret
}

async fn storage(scene: &Scene) -> Vec<Value> {
    let all = get(scene, SECRETS).await;
    let secrets = all["items"].as_array().unwrap().iter();
    secrets.filter(|it| it["type"] == "helm.sh/release.v1").cloned().collect()
}

/// Records a session of the real helm-controller, if it is named.
#[tokio::test(flavor = "multi_thread")]
async fn the_session_is_recorded() {
    let Some(program) = std::env::var_os("MOORLINE_RECORD_HELM_CONTROLLER") else { return };
    let scene = Scene::new("record-helm-controller").await.expect("a control plane");
    install(&scene).await;
    let (url, digest) = serve_chart(scene.root.path());
    let source = json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "metadata": {"name": "shop"},
        "spec": {"url": "oci://example.com/shop", "interval": "10m", "ref": {"tag": "1.0.0"}}});
    let sources = "/apis/source.toolkit.fluxcd.io/v1/namespaces/NAMESPACE/ocirepositories";
    post(&scene, sources, source).await;
    let now = "2026-01-02T03:04:05Z";
    let artifact = json!({"url": url, "digest": digest, "path": "shop", "revision": format!("1.0.0@{digest}"), "lastUpdateTime": now});
    let ready = json!({"type": "Ready", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": now});
    let status = json!({"status": {"observedGeneration": 1, "artifact": artifact, "conditions": [ready]}});
    patch(&scene, &format!("{sources}/shop/status"), status).await;
    let _controller = controller(Path::new(&program), &scene);
    let release = json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "shop"},
        "spec": {"interval": "10m", "chartRef": {"kind": "OCIRepository", "name": "shop"}, "values": values(1),
            "driftDetection": {"mode": "enabled"}, "install": {"disableWait": true}, "upgrade": {"disableWait": true}}});
    post(&scene, RELEASES, release).await;
    until_released(&scene, 1).await;
    patch(&scene, RELEASE, json!({"spec": {"values": values(2)}})).await;
    let release = until_released(&scene, 2).await;
    let mut objects = Vec::new();
    for path in OBJECTS {
        objects.push(without_times(get(&scene, path).await));
    }
    let stored: Vec<Value> = storage(&scene).await.into_iter().map(unpacked).collect();

    // A suspended release is left alone, and its deletion uninstalls nothing.
    patch(&scene, RELEASE, json!({"spec": {"suspend": true}})).await;
    patch(&scene, OBJECTS[0], json!({"data": {"word": "edited"}})).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let edited = get(&scene, OBJECTS[0]).await["data"]["word"].clone();
    let suspended = get(&scene, RELEASE).await;
    let path = RELEASE.replace("NAMESPACE", &scene.namespace);
    send_request(&scene.admin, "DELETE", &path, Value::Null).await.unwrap();
    until("it is gone", async || send_request(&scene.admin, "GET", &path, Value::Null).await.err()).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let mut left = Vec::new();
    for path in OBJECTS {
        let path = path.replace("NAMESPACE", &scene.namespace);
        left.push(send_request(&scene.admin, "GET", &path, Value::Null).await.is_ok());
    }
    let recorded = json!({
        "release": without_times(release), "objects": objects, "storage": stored,
        "suspended": {"word": edited, "finalizers": suspended["metadata"]["finalizers"]},
        "deleted": {"objects": left, "storage": storage(&scene).await.len()},
    });
    let text = serde_json::to_string_pretty(&recorded).unwrap() + "\n";
    let text = text.replace(&scene.namespace, "NAMESPACE").replace(&url, "http://example.com/shop-1.0.0.tgz");
    std::fs::write(place(), text).unwrap();
}

/// Makes an object as helm-controller did: with its fields, and as the same owner of fields.
async fn make(scene: &Scene, path: &str, recorded: &Value, manifest: &Value) {
    let mut body = manifest.clone();
    for field in ["labels", "annotations"] {
        body["metadata"][field] = recorded["metadata"][field].clone();
    }
    if recorded["kind"] == "Deployment" {
        // The controller of Deployments sets it, too.
        body["metadata"]["annotations"].as_object_mut().unwrap().remove("deployment.kubernetes.io/revision");
    }
    let theirs = |object: &Value| -> Vec<Value> {
        let entries = object["metadata"]["managedFields"].as_array().unwrap().iter();
        let own = entries.filter(|it| it["manager"] == "helm-controller");
        own.map(|it| json!([it["operation"], it["fieldsV1"]])).collect()
    };
    let entries = theirs(recorded);
    let [entry] = entries.as_slice() else { panic!("one entry of helm-controller: {entries:?}") };
    let path = path.replace("NAMESPACE", &scene.namespace);
    let place = path.rsplit_once('/').unwrap().0;
    let (uri, method, kind) = match entry[0] == "Apply" {
        true => (
            format!("{path}?fieldManager=helm-controller&force=true"),
            "PATCH",
            "application/apply-patch+yaml",
        ),
        false => (format!("{place}?fieldManager=helm-controller"), "POST", "application/json"),
    };
    let request = http::Request::builder().method(method).uri(uri).header("Content-Type", kind);
    let made: Value =
        scene.admin.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap();
    assert_eq!(theirs(&made), entries, "the same owner of the same fields");
}

/// Everything that an adoption must not change.
async fn untouched(scene: &Scene) -> Value {
    let mut seen = Vec::new();
    for path in OBJECTS {
        let object = get(scene, path).await;
        seen.push(json!([object["metadata"]["uid"], object["spec"], object["data"]]));
    }
    let sets = get(scene, "/apis/apps/v1/namespaces/NAMESPACE/replicasets").await;
    seen.push(sets["items"].as_array().map(Vec::len).into());
    let secrets = storage(scene).await.into_iter().map(|it| it["metadata"]["resourceVersion"].clone());
    seen.extend(secrets);
    seen.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_real_helm_controller_holds_is_adopted_without_a_difference_and_given_back() {
    let Some(helm) = find("helm") else { return };
    let Some(scene) = Scene::new("adopt-recorded-release").await else { return };
    let text = std::fs::read_to_string(place()).unwrap().replace("NAMESPACE", &scene.namespace);
    let recorded: Value = serde_json::from_str(&text).unwrap();
    // The adoption relies on this.
    assert_eq!(recorded["suspended"], json!({"word": "edited", "finalizers": ["finalizers.fluxcd.io"]}));
    assert_eq!(recorded["deleted"], json!({"objects": [true, true], "storage": 2}));

    install(&scene).await;
    let proxy = FaultProxy::start(&scene.plane);
    scene.push(&chart());
    let newest = recorded["storage"].as_array().unwrap().last().unwrap();
    let manifests = newest["release"]["manifest"].as_str().unwrap();
    let manifests = read("manifest", manifests.as_bytes(), Dialect::Kubectl).unwrap();
    for (path, object) in OBJECTS.iter().zip(recorded["objects"].as_array().unwrap()) {
        let own = manifests.iter().find(|it| it.value["kind"] == object["kind"]).unwrap();
        make(&scene, path, object, &own.value).await;
    }
    for stored in recorded["storage"].as_array().unwrap() {
        post(&scene, SECRETS, packed(stored)).await;
    }
    let repository = json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "source"},
        "spec": {"url": scene.git.url("repository.git"), "ref": {"branch": "main"}, "interval": "10s"}});
    post(&scene, "/apis/source.toolkit.fluxcd.io/v1/namespaces/NAMESPACE/gitrepositories", repository).await;
    let mut release = recorded["release"].clone();
    let status = json!({"status": release["status"].take()});
    release.as_object_mut().unwrap().remove("status");
    release["metadata"].as_object_mut().unwrap().remove("managedFields");
    let spec = release["spec"].as_object_mut().unwrap();
    spec.remove("chartRef");
    // The chart is the same, from Git.
    let chart =
        json!({"spec": {"chart": "./chart", "sourceRef": {"kind": "GitRepository", "name": "source"}}});
    spec.insert("chart".into(), chart);
    let old = post(&scene, RELEASES, release).await;
    patch(&scene, &format!("{RELEASE}/status"), status).await;

    let program = std::path::absolute(helm).unwrap();
    let _daemon = scene.daemon_with(&["--leader-election=false", "--helm", program.to_str().unwrap()]);
    let sets = "/apis/apps/v1/namespaces/NAMESPACE/replicasets";
    until("the Deployment has its ReplicaSet", async || {
        get(&scene, sets).await["items"].as_array().filter(|all| !all.is_empty()).map(Vec::len)
    })
    .await;
    let before = untouched(&scene).await;
    let mark = AuditMark::set(&scene.plane).await;
    let shown = adopt(&scene, &proxy, &[]);
    assert!(shown.data.contains("Owned by Flux (2): Git has 2 of them"), "{}{}", shown.data, shown.words);
    assert!(shown.data.contains("Adopt (2)"), "{}", shown.data);
    assert!(!shown.data.contains(" -> ") && !shown.data.contains("Create ("), "a difference: {}", shown.data);

    let applied = adopt(&scene, &proxy, &["--apply"]);
    assert_eq!(applied.code, 0, "{}{}", applied.data, applied.words);
    assert!(applied.words.contains("2 objects were adopted; none was deleted"), "{}", applied.words);
    assert_eq!(untouched(&scene).await, before);
    let halted = get(&scene, RELEASE).await;
    assert_eq!(halted["spec"]["suspend"], true);
    assert_eq!(halted["metadata"]["finalizers"], old["metadata"]["finalizers"]);
    scene.settle().await;
    // No node runs the Deployment, so that its health is looked at.
    scene.assert_calm_but_for_looks("adopted").await;

    let undone = adopt(&scene, &proxy, &["--undo"]);
    assert_eq!(undone.code, 0, "{}", undone.words);
    let new = get(&scene, RELEASE).await;
    assert_eq!(new["spec"], old["spec"]);
    assert_eq!(untouched(&scene).await, before);
    let deleted = mark.requests().await.in_namespace(&scene.namespace);
    let deleted = deleted.filter(|it| it.verb.starts_with("delete") && it.resource != "syncs");
    assert_eq!(deleted.tally(), std::collections::BTreeMap::new());
}
