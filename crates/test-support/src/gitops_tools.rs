//! A scripted Argo CD and a scripted Flux: small definitions of their resources, and a task that
//! imitates the parts of both tools that an adoption depends on.
//!
//! In: a namespace, and the objects that Git would contain. Out: the objects, written with the
//! field manager and the marks of the tool, and a status that lists them. While the resource is
//! paused, nothing is written. When it is deleted, its finalizers are honoured.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::daemon::until;
use super::rest::send_request;
use super::scene::Scene;

/// Interval of a robot.
const AGAIN: Duration = Duration::from_millis(50);

const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
const FLUX_FINALIZER: &str = "finalizers.fluxcd.io";

/// The tool that a robot imitates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    ArgoCd,
    Flux,
}

/// A robot that imitates a tool until it is dropped.
pub struct Robot {
    wanted: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Robot {
    /// Starts a robot that applies these ConfigMaps for the resource `shop`.
    pub fn start(scene: &Scene, part: Part, objects: Vec<Value>) -> Self {
        let wanted = Arc::new(Mutex::new(objects));
        let (client, namespace, list) = (scene.admin.clone(), scene.namespace.clone(), wanted.clone());
        let task = tokio::spawn(async move {
            loop {
                let objects = list.lock().unwrap().clone();
                // Objects that somebody changed meanwhile are tried again.
                let _ = turn(part, &client, &namespace, &objects).await;
                tokio::time::sleep(AGAIN).await;
            }
        });
        Self { wanted, task }
    }

    /// Replaces the objects that Git would contain.
    pub fn hold(&self, objects: Vec<Value>) {
        *self.wanted.lock().unwrap() = objects;
    }
}

/// The path of the resource `shop`.
pub fn path(part: Part, namespace: &str) -> String {
    match part {
        Part::ArgoCd => format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications/shop"),
        Part::Flux => {
            format!("/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{namespace}/kustomizations/shop")
        }
    }
}

async fn turn(part: Part, client: &Client, namespace: &str, objects: &[Value]) -> Result<(), kube::Error> {
    let path = path(part, namespace);
    let whole = send_request(client, "GET", &path, Value::Null).await?;
    let stopped = match part {
        Part::ArgoCd => {
            whole.pointer("/metadata/annotations/argocd.argoproj.io~1skip-reconcile") == Some(&json!("true"))
        }
        Part::Flux => whole["spec"]["suspend"] == true,
    };
    if whole.pointer("/metadata/deletionTimestamp").is_some() {
        return end(part, client, namespace, &whole, stopped).await;
    }
    let acts = part == Part::Flux || whole.pointer("/spec/syncPolicy/automated").is_some();
    if stopped || !acts {
        return Ok(());
    }
    for object in objects {
        apply(part, client, namespace, object).await?;
    }
    let names: Vec<&str> =
        objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
    let status = match part {
        Part::ArgoCd => {
            let one = |name: &&str| json!({"version": "v1", "kind": "ConfigMap", "namespace": namespace, "name": name});
            json!({"resources": names.iter().map(one).collect::<Vec<_>>()})
        }
        Part::Flux => {
            let one = |name: &&str| json!({"id": format!("{namespace}_{name}__ConfigMap"), "v": "v1"});
            json!({"inventory": {"entries": names.iter().map(one).collect::<Vec<_>>()}})
        }
    };
    if whole["status"] != status {
        let place = if part == Part::Flux { format!("{path}/status") } else { path };
        send_request(client, "PATCH", &place, json!({"status": status})).await?;
    }
    Ok(())
}

/// Writes one object under the manager's name, with the marks.
async fn apply(part: Part, client: &Client, namespace: &str, object: &Value) -> Result<(), kube::Error> {
    let mut object = object.clone();
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let manager = match part {
        Part::ArgoCd => {
            let id = format!("shop:/ConfigMap:{namespace}/{name}");
            object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = id.into();
            "argocd-controller"
        }
        Part::Flux => {
            object["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] = "shop".into();
            object["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/namespace"] = namespace.into();
            "kustomize-controller"
        }
    };
    let uri = format!("/api/v1/namespaces/{namespace}/configmaps/{name}?fieldManager={manager}&force=true");
    let request = http::Request::patch(uri).header("Content-Type", "application/apply-patch+yaml");
    client.request::<Value>(request.body(object.to_string().into_bytes()).unwrap()).await.map(drop)
}

/// The resource is being deleted: its objects go with it where it says so.
async fn end(
    part: Part,
    client: &Client,
    namespace: &str,
    whole: &Value,
    stopped: bool,
) -> Result<(), kube::Error> {
    let spec = &whole["spec"];
    let deletes = match part {
        // An Application that is skipped is not looked at, finalizers or not.
        Part::ArgoCd if stopped => return Ok(()),
        Part::ArgoCd => true,
        Part::Flux => !stopped && spec["prune"] == true && spec["deletionPolicy"] != "Orphan",
    };
    let places = ["/status/resources", "/status/inventory/entries"];
    let entries = places.iter().find_map(|place| whole.pointer(place)?.as_array());
    for entry in entries.into_iter().flatten().filter(|_| deletes) {
        let of_flux = entry["id"].as_str().and_then(|id| id.split('_').nth(1));
        let name = entry["name"].as_str().or(of_flux).unwrap();
        let _ = send_request(
            client,
            "DELETE",
            &format!("/api/v1/namespaces/{namespace}/configmaps/{name}"),
            Value::Null,
        )
        .await;
    }
    send_request(client, "PATCH", &path(part, namespace), json!({"metadata": {"finalizers": null}}))
        .await
        .map(drop)
}

/// Defines the resources of both tools in the API server.
pub async fn install(scene: &Scene) {
    for (group, version, kind, plural) in [
        ("argoproj.io", "v1alpha1", "Application", "applications"),
        ("argoproj.io", "v1alpha1", "ApplicationSet", "applicationsets"),
        ("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations"),
        ("source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories"),
        ("source.toolkit.fluxcd.io", "v1", "HelmRepository", "helmrepositories"),
        ("source.toolkit.fluxcd.io", "v1", "OCIRepository", "ocirepositories"),
        ("source.toolkit.fluxcd.io", "v1", "HelmChart", "helmcharts"),
        ("source.toolkit.fluxcd.io", "v1", "ExternalArtifact", "externalartifacts"),
        ("source.extensions.fluxcd.io", "v1beta1", "ArtifactGenerator", "artifactgenerators"),
        ("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases"),
    ] {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let mut served = json!({"name": version, "served": true, "storage": true, "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open, "operation": open}},
        }});
        // Argo CD writes its status with everything else.
        if group != "argoproj.io" {
            served["subresources"] = json!({"status": {}});
        }
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "versions": [served],
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()}},
        });
        // It may be there from another test, which may have ended before it put its versions back.
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let known = format!("{definitions}/{plural}.{group}");
        let versions = json!({"spec": {"versions": definition["spec"]["versions"]}});
        if send_request(&scene.admin, "POST", definitions, definition).await.is_err() {
            send_request(&scene.admin, "PATCH", &known, versions).await.unwrap();
        }
        let served = format!("/apis/{group}/{version}/{plural}");
        until("the definition is served", async || {
            send_request(&scene.admin, "GET", &served, Value::Null).await.ok()
        })
        .await;
    }
}

/// Creates an Application `shop` of the scene's repository.
pub async fn application(scene: &Scene, automated: Value) -> Value {
    let whole = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop", "finalizers": [FINALIZER]},
        "spec": {
            "project": "default",
            "source": {"repoURL": scene.git.url("repository.git"), "path": ".", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": scene.namespace},
            "syncPolicy": {"automated": automated},
        },
    });
    create(scene, Part::ArgoCd, whole).await
}

/// Creates a Kustomization `shop` with its GitRepository.
pub async fn kustomization(scene: &Scene) -> Value {
    let repository = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "source"},
        "spec": {"url": scene.git.url("repository.git"), "ref": {"branch": "main"}, "interval": "10s"},
    });
    let uri = format!("/apis/source.toolkit.fluxcd.io/v1/namespaces/{}/gitrepositories", scene.namespace);
    send_request(&scene.admin, "POST", &uri, repository).await.unwrap();
    let whole = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "shop", "finalizers": [FLUX_FINALIZER]},
        "spec": {
            "sourceRef": {"kind": "GitRepository", "name": "source"}, "path": "./", "prune": true, "interval": "10m",
            "targetNamespace": scene.namespace,
        },
    });
    create(scene, Part::Flux, whole).await
}

async fn create(scene: &Scene, part: Part, whole: Value) -> Value {
    let path = path(part, &scene.namespace);
    let collection = path.strip_suffix("/shop").unwrap();
    send_request(&scene.admin, "POST", collection, whole).await.unwrap()
}
