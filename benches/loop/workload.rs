//! What is synced: applications of four objects, as manifests in a repository and as bodies of requests.
//!
//! In: how many applications. Out: files for Git, and for the floor the requests that applying them comes to, as
//! Moorline would send them. A Deployment has no replicas, because a cluster without nodes has nothing to run.

use moorline::yaml;
use serde_json::{Value, json};

/// The namespace of all the objects.
pub(crate) const APPS: &str = "apps";
/// The folder of all applications in the repository.
pub(crate) const FOLDER: &str = "apps";
/// Objects of one application.
pub(crate) const EACH: usize = 4;
/// The image that a commit changes.
pub(crate) const IMAGE: &str = "registry.example.com/shop/web:1.0.0";

/// One of the objects.
pub(crate) struct Manifest {
    /// In the repository.
    pub(crate) path: String,
    /// On the API server.
    pub(crate) uri: String,
    pub(crate) body: Value,
}

/// The name of an application, which all of its objects have.
pub(crate) fn name(application: usize) -> String {
    format!("app-{application:05}")
}

/// Where a Deployment is on the API server.
pub(crate) fn deployment_uri(application: usize) -> String {
    format!("/apis/apps/v1/namespaces/{APPS}/deployments/{}", name(application))
}

/// Where a ConfigMap is.
pub(crate) fn config_map_uri(application: usize) -> String {
    format!("/api/v1/namespaces/{APPS}/configmaps/{}", name(application))
}

/// The objects of an application.
pub(crate) fn application(application: usize, image: &str) -> [Manifest; EACH] {
    let name = name(application);
    let core = |plural: &str| format!("/api/v1/namespaces/{APPS}/{plural}/{name}");
    let manifest = |kind: &str, uri: String, body: Value| Manifest {
        path: format!("{FOLDER}/{name}/{kind}.yaml"),
        uri,
        body,
    };
    [
        manifest("serviceaccount", core("serviceaccounts"), object("v1", "ServiceAccount", &name, json!({}))),
        manifest("configmap", core("configmaps"), config_map(&name)),
        manifest("service", core("services"), service(&name)),
        manifest("deployment", deployment_uri(application), deployment(&name, image)),
    ]
}

/// The files of the first applications.
pub(crate) fn files(applications: usize) -> Vec<(String, String)> {
    let manifests = (0..applications).flat_map(|at| application(at, IMAGE));
    manifests.map(|manifest| (manifest.path.clone(), text(&manifest))).collect()
}

/// The file of a Deployment with another image.
pub(crate) fn with_image(at: usize, image: &str) -> (String, String) {
    let [.., deployment] = application(at, image);
    (deployment.path.clone(), text(&deployment))
}

/// Path, query and body of every request that applies the first applications.
pub(crate) fn requests(applications: usize, manager: &str) -> Vec<(String, Vec<u8>)> {
    let manifests = (0..applications).flat_map(|at| application(at, IMAGE));
    manifests
        .map(|mut manifest| {
            let metadata = &mut manifest.body["metadata"];
            let (kind, name) = (&manifest.path, metadata["name"].as_str().unwrap_or_default());
            let id = format!("{manager}|apps/{kind}|{APPS}/{name}");
            metadata["namespace"] = APPS.into();
            metadata["labels"]["moorline.dev/sync"] = "floor.floor".into();
            metadata["annotations"]["moorline.dev/id"] = id.into();
            metadata["annotations"]["moorline.dev/spec-hash"] = format!("v1:{:064x}", 1).into();
            let uri = format!("{}?fieldManager={manager}&fieldValidation=Strict", manifest.uri);
            (uri, manifest.body.to_string().into_bytes())
        })
        .collect()
}

fn text(manifest: &Manifest) -> String {
    yaml::write(&manifest.body)
}

fn object(version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "labels": labels(name)},
    });
    if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
        object.extend(rest);
    }
    object
}

fn labels(name: &str) -> Value {
    json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop"})
}

fn config_map(name: &str) -> Value {
    let data = json!({"data": {
        "log-level": "info",
        "region": "eu-west-1",
        "settings.yaml": format!("listen: :8080\nname: {name}\ntimeout: 30s\nfeatures:\n  search: true\n  basket: false\n"),
    }});
    object("v1", "ConfigMap", name, data)
}

fn service(name: &str) -> Value {
    let spec = json!({"spec": {
        "selector": {"app.kubernetes.io/name": name},
        "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
    }});
    object("v1", "Service", name, spec)
}

fn deployment(name: &str, image: &str) -> Value {
    let container = json!({
        "name": "web",
        "image": image,
        "args": ["--listen=:8080", "--config=/etc/web/settings.yaml"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": "REGION", "value": "eu-west-1"}, {"name": "NAME", "value": name}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 5},
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/web"}],
    });
    let spec = json!({"spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
        "template": {
            "metadata": {"labels": labels(name)},
            "spec": {
                "serviceAccountName": name,
                "containers": [container],
                "volumes": [{"name": "settings", "configMap": {"name": name}}],
            },
        },
    }});
    object("apps/v1", "Deployment", name, spec)
}
