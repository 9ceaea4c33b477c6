//! Operators in the shapes in which they are released: everything in one commit, from an empty cluster until ready.
//!
//! In: small manifests with the shape of RabbitMQ's operator, as a kustomization, and of MetalLB and cert-manager, as one folder.
//! Out: no request is answered 500, and the Sync never says `ApplyFailed`, at the first commit and at an upgrade.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::backend::{Backend, MUTATING, WEBHOOKS, files, pods_are_ready, reasons, refused, until_waits};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;

/// An operator with its resources, as one commit has it.
struct Shape {
    namespace: String,
    group: String,
    /// The version of its resources, with the kind, the plural and the name of each.
    version: &'static str,
    resources: &'static [(&'static str, &'static str, &'static str)],
    labels: Value,
}

impl Shape {
    fn new(scene: &Scene, name: &str, version: &'static str) -> Self {
        let namespace = format!("{}-{name}", scene.namespace);
        let group = format!("{namespace}.example.com");
        Self { namespace, group, version, resources: &[], labels: json!({"app": name}) }
    }

    fn object(&self, api: &str, kind: &str, name: &str, rest: Value) -> Value {
        let mut object = rest;
        object["apiVersion"] = api.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({"name": name, "namespace": self.namespace});
        object
    }

    /// An object that is in no namespace.
    fn wide(&self, api: &str, kind: &str, name: &str, rest: Value) -> Value {
        let mut object = self.object(api, kind, name, rest);
        object["metadata"] = json!({"name": name});
        object
    }

    fn definition(&self, kind: &str, plural: &str, versions: &[&str], conversion: Value) -> Value {
        let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schema =
            json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": spec}}});
        let version = |(at, name): (usize, &&str)| {
            json!({"name": name, "served": true, "storage": at == 0, "schema": schema,
                "subresources": {"status": {}}})
        };
        let versions: Vec<Value> = versions.iter().enumerate().map(version).collect();
        let mut spec = json!({
            "group": self.group, "scope": if is_wide(kind) { "Cluster" } else { "Namespaced" }, "versions": versions,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
        });
        if !conversion.is_null() {
            spec["conversion"] = conversion;
        }
        let name = format!("{plural}.{}", self.group);
        self.wide("apiextensions.k8s.io/v1", "CustomResourceDefinition", &name, json!({"spec": spec}))
    }

    /// Returns the ServiceAccount of the operator, with its rights.
    fn access(&self) -> Vec<Value> {
        let (rbac, name) = ("rbac.authorization.k8s.io/v1", self.namespace.as_str());
        let rules = json!([{"apiGroups": [self.group], "resources": ["*"], "verbs": ["get", "list", "watch", "update"]}]);
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
        let subject = json!({"kind": "ServiceAccount", "name": "operator", "namespace": name});
        vec![
            self.object("v1", "ServiceAccount", "operator", json!({})),
            self.wide(rbac, "ClusterRole", name, json!({"rules": rules})),
            self.wide(rbac, "ClusterRoleBinding", name, json!({"roleRef": role, "subjects": [subject]})),
        ]
    }

    /// A workload of one container with these labels.
    fn workload(&self, kind: &str, name: &str, labels: &Value) -> Value {
        let container = json!({"name": "main", "image": "example.com/operator:1", "ports": [{"name": "webhook-server", "containerPort": 9443}]});
        let pod = json!({"serviceAccountName": "operator", "containers": [container]});
        let mut spec = json!({"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}});
        if kind == "Deployment" {
            spec["replicas"] = 1.into();
        }
        self.object("apps/v1", kind, name, json!({"spec": spec}))
    }

    fn service(&self) -> Value {
        let port = json!({"port": 443, "targetPort": 9443});
        self.object(
            "v1",
            "Service",
            "webhook-service",
            json!({"spec": {"selector": self.labels, "ports": [port]}}),
        )
    }

    /// A configuration with one webhook for each of the resources. Others may change it, so that a test can say where
    /// its backend is.
    fn webhooks(&self) -> Value {
        let webhook = |(kind, plural, _): &(&str, &str, &str)| {
            let service = json!({"name": "webhook-service", "namespace": self.namespace,
                "path": format!("/validate-{}", kind.to_lowercase())});
            json!({
                "name": format!("{}.{}", kind.to_lowercase(), self.group), "failurePolicy": "Fail", "timeoutSeconds": 1,
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": {"service": service},
                "rules": [{"apiGroups": [self.group], "apiVersions": [self.version],
                    "operations": ["CREATE", "UPDATE"], "resources": [plural]}],
            })
        };
        let webhooks: Vec<Value> = self.resources.iter().map(webhook).collect();
        let mut object = self.wide(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            &self.namespace,
            json!({"webhooks": webhooks}),
        );
        object["metadata"]["annotations"] = json!({"moorline.dev/apply": "once"});
        object
    }

    fn resources(&self, value: &str) -> Vec<Value> {
        let api = format!("{}/{}", self.group, self.version);
        let one = |(kind, _, name): &(&str, &str, &str)| {
            let spec = json!({"spec": {"value": value}});
            if is_wide(kind) {
                self.wide(&api, kind, name, spec)
            } else {
                self.object(&api, kind, name, spec)
            }
        };
        self.resources.iter().map(one).collect()
    }

    fn namespace(&self) -> Value {
        self.wide("v1", "Namespace", &self.namespace, json!({}))
    }

    async fn live(&self, scene: &Scene, (kind, plural, name): (&str, &str, &str)) -> Value {
        let namespace = if is_wide(kind) { String::new() } else { format!("namespaces/{}/", self.namespace) };
        let uri = format!("/apis/{}/{}/{namespace}{plural}/{name}", self.group, self.version);
        send_request(&scene.admin, "GET", &uri, Value::Null).await.unwrap()
    }

    /// Takes away everything that is in no namespace, and the namespace.
    async fn leaves(&self, scene: &Scene, objects: &[Value]) {
        let definitions = objects.iter().filter(|it| it["kind"] == "CustomResourceDefinition");
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
        let definitions = definitions
            .map(|it| format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", name(it)));
        let roles = ["clusterrolebindings", "clusterroles"]
            .map(|plural| format!("/apis/rbac.authorization.k8s.io/v1/{plural}/{}", self.namespace));
        let rest = ["/api/v1/namespaces", WEBHOOKS, MUTATING].map(|all| format!("{all}/{}", self.namespace));
        for uri in rest.into_iter().chain(roles).chain(definitions) {
            let _ = send_request(&scene.admin, "DELETE", &uri, json!({})).await;
        }
    }
}

/// True for kinds of the shapes whose objects are in no namespace.
fn is_wide(kind: &str) -> bool {
    kind.starts_with("Cluster")
}

/// Plays a release and an upgrade: its resources change while its webhook has no backend yet.
async fn is_released(
    scene: &Scene,
    shape: &Shape,
    commit: impl Fn(&str, &Backend) -> (Vec<(String, String)>, Vec<Value>),
) {
    let (backend, mark) = (Backend::start(scene), AuditMark::set(&scene.plane).await);
    let (first, objects) = commit("a", &backend);
    let applied = scene.push(&first);
    let _daemon = scene.daemon();
    scene.sync("operator", json!({"path": "operator"})).await;
    let told = reasons(scene, "operator", &applied).await;
    assert!(!told.contains("ApplyFailed"), "{told:?}");
    assert_eq!(refused(&mark).await, Vec::<String>::new());

    let upgraded = scene.push(&commit("b", &backend).0);
    scene.nudge("operator", "upgrade").await;
    until_waits(scene, "operator", shape.resources.len()).await;
    assert_eq!(scene.status("operator", "/conditions/0/reason").await, "Progressing");
    backend.answers.store(true, Ordering::Relaxed);
    for configuration in objects.iter().filter(|it| it["webhooks"].is_array()) {
        backend.stands_for(scene, configuration).await;
    }
    let labels = shape.labels.as_object().unwrap().iter();
    let labels: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap())).collect();
    pods_are_ready(scene, &shape.namespace, &labels.join(",")).await;
    let told = reasons(scene, "operator", &upgraded).await;
    assert!(!told.contains("ApplyFailed"), "{told:?}");
    assert_eq!(refused(&mark).await, Vec::<String>::new());
    for resource in shape.resources {
        assert_eq!(shape.live(scene, *resource).await["spec"]["value"], "b", "{resource:?}");
    }
    scene.assert_calm("once all of it is applied").await;
    scene.delete_sync("operator").await;
    shape.leaves(scene, &objects).await;
}

/// A kustomization with an operator and one resource of it, which the operator's webhook guards.
#[tokio::test]
async fn an_operator_in_the_shape_of_rabbitmq() {
    let Some(scene) = Scene::new("rabbitmq").await else { return };
    let resources = &[("RabbitmqCluster", "rabbitmqclusters", "shop")];
    let shape = Shape { resources, ..Shape::new(&scene, "rabbitmq", "v1beta1") };
    is_released(&scene, &shape, |value, _| {
        let mut objects = vec![shape.namespace()];
        objects.push(shape.definition("RabbitmqCluster", "rabbitmqclusters", &["v1beta1"], Value::Null));
        objects.extend(shape.access());
        objects.extend([
            shape.workload("Deployment", "operator", &shape.labels),
            shape.service(),
            shape.webhooks(),
        ]);
        objects.extend(shape.resources(value));
        let mut all = files("operator", &objects);
        let names: Vec<String> = (0..objects.len()).map(|at| format!("{at}.json")).collect();
        let labels = json!([{"pairs": {"app.kubernetes.io/part-of": "rabbitmq"}}]);
        let images = json!([{"name": "example.com/operator", "newTag": "2"}]);
        let kustomization = json!({"resources": names, "labels": labels, "images": images});
        all.push(("operator/kustomization.yaml".to_owned(), kustomization.to_string()));
        (all, objects)
    })
    .await;
}

/// Several definitions, one of them with a webhook that converts, and resources of three kinds.
#[tokio::test]
async fn an_operator_in_the_shape_of_metallb() {
    let Some(scene) = Scene::new("metallb").await else { return };
    let resources = &[
        ("BGPPeer", "bgppeers", "rack"),
        ("IPAddressPool", "ipaddresspools", "first"),
        ("L2Advertisement", "l2advertisements", "first"),
    ];
    let shape = Shape::new(&scene, "metallb", "v1beta2");
    let labels = json!({"app": "metallb", "component": "controller"});
    let shape = Shape { resources, labels, ..shape };
    is_released(&scene, &shape, |value, backend| {
        // The API server keeps every version at hand, and has what there is converted for that.
        let converts = backend.conversion();
        let plain = ["v1beta2"];
        let mut objects = vec![
            shape.definition("BGPPeer", "bgppeers", &["v1beta2", "v1beta1"], converts),
            shape.definition("BFDProfile", "bfdprofiles", &plain, Value::Null),
            shape.definition("Community", "communities", &plain, Value::Null),
            shape.definition("IPAddressPool", "ipaddresspools", &plain, Value::Null),
            shape.definition("L2Advertisement", "l2advertisements", &plain, Value::Null),
            shape.namespace(),
            shape.object("v1", "Secret", "webhook-server-cert", json!({})),
            shape.object("v1", "ConfigMap", "excluded", json!({"data": {"value": value}})),
            shape.workload("Deployment", "controller", &shape.labels),
            shape.workload("DaemonSet", "speaker", &json!({"app": "metallb", "component": "speaker"})),
            shape.service(),
            shape.webhooks(),
        ];
        objects.extend(shape.access());
        objects.extend(shape.resources(value));
        (files("operator", &objects), objects)
    })
    .await;
}

/// Definitions of both scopes, three workloads of which one is the webhook, and one Service behind two configurations:
/// one webhook for everything of the group, and one that changes one kind.
#[tokio::test]
async fn an_operator_in_the_shape_of_cert_manager() {
    let Some(scene) = Scene::new("cert-manager").await else { return };
    let resources = &[
        ("Certificate", "certificates", "shop"),
        ("ClusterIssuer", "clusterissuers", "letters"),
        ("Issuer", "issuers", "own"),
    ];
    let labels = |component: &str| {
        json!({"app.kubernetes.io/name": component, "app.kubernetes.io/instance": "cert-manager",
            "app.kubernetes.io/component": component})
    };
    let shape = Shape { resources, labels: labels("webhook"), ..Shape::new(&scene, "cert-manager", "v1") };
    let configuration = |kind: &str, name: &str, resources: &str| {
        let service = json!({"name": "webhook-service", "namespace": shape.namespace, "path": "/review"});
        let webhooks = json!([{
            "name": format!("{name}.{}", shape.group), "failurePolicy": "Fail", "matchPolicy": "Equivalent",
            "timeoutSeconds": 5, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": service},
            "namespaceSelector": {"matchExpressions": [{"key": "cert-manager.io/disable-validation",
                "operator": "NotIn", "values": ["true"]}]},
            "rules": [{"apiGroups": [shape.group], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": [resources]}],
        }]);
        let api = "admissionregistration.k8s.io/v1";
        let mut object = shape.wide(api, kind, &shape.namespace, json!({"webhooks": webhooks}));
        object["metadata"]["annotations"] = json!({"moorline.dev/apply": "once"});
        object
    };
    is_released(&scene, &shape, |value, _| {
        let kinds = [
            ("CertificateRequest", "certificaterequests"),
            ("Certificate", "certificates"),
            ("Challenge", "challenges"),
            ("ClusterIssuer", "clusterissuers"),
            ("Issuer", "issuers"),
            ("Order", "orders"),
        ];
        let mut objects = vec![shape.namespace()];
        objects.extend(kinds.map(|(kind, plural)| shape.definition(kind, plural, &["v1"], Value::Null)));
        objects.extend(shape.access());
        objects.push(shape.service());
        objects.extend(
            ["cainjector", "controller", "webhook"].map(|it| shape.workload("Deployment", it, &labels(it))),
        );
        objects.push(configuration("MutatingWebhookConfiguration", "mutate", "certificates"));
        objects.push(configuration("ValidatingWebhookConfiguration", "validate", "*/*"));
        objects.extend(shape.resources(value));
        (files("operator", &objects), objects)
    })
    .await;
}
