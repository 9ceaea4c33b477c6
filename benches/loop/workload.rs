//! Objects to sync: applications of four objects each, as manifests in a repository and as request
//! bodies.
//!
//! In: the number of applications.
//! Out: files for Git, and for the floor the requests that apply them, as Moorline would send them.
//! A Deployment has no replicas, because a cluster without nodes cannot run any.

use moorline::yaml;
use serde_json::{Value, json};

/// Namespace of all objects.
pub(crate) const APPS: &str = "apps";
/// Folder of all applications in the repository.
pub(crate) const FOLDER: &str = "apps";
/// Number of objects of one application.
pub(crate) const EACH: usize = 4;
/// Image that a commit changes.
pub(crate) const IMAGE: &str = "registry.example.com/shop/web:1.0.0";

/// One of the objects.
pub(crate) struct Manifest {
    /// Path in the repository.
    pub(crate) path: String,
    /// Path on the API server.
    pub(crate) uri: String,
    pub(crate) body: Value,
}

/// Name of an application, and of all its objects.
pub(crate) fn name(application: usize) -> String {
    format!("app-{application:05}")
}

/// Path of a Deployment on the API server.
pub(crate) fn deployment_uri(application: usize) -> String {
    format!("/apis/apps/v1/namespaces/{APPS}/deployments/{}", name(application))
}

/// Path of a ConfigMap on the API server.
pub(crate) fn config_map_uri(application: usize) -> String {
    format!("/api/v1/namespaces/{APPS}/configmaps/{}", name(application))
}

/// All objects of an application.
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

/// Files of the first applications.
pub(crate) fn files(applications: usize) -> Vec<(String, String)> {
    let manifests = (0..applications).flat_map(|at| application(at, IMAGE));
    manifests.map(|manifest| (manifest.path.clone(), text(&manifest))).collect()
}

/// File of a Deployment with another image.
pub(crate) fn with_image(at: usize, image: &str) -> (String, String) {
    let [.., deployment] = application(at, image);
    (deployment.path.clone(), text(&deployment))
}

/// Path, query and body of each request that applies the first applications.
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
