//! The rendered chart, which is the same as `config/`.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};

use super::deploy::UNSET_IMAGE;
use super::programs::{CHART, Helm, command, documents, find, run, text};

/// The most bytes of all that the chart can come to.
const MAX_BYTES: usize = 80_000;

/// Everything that can be switched on.
pub(crate) const EVERYTHING: &str = r#"{
    "replicas": 2, "rbac": {"grant": "namespaceAdmin", "namespaces": ["shop"]},
    "tenants": [{"namespace": "team", "serviceAccounts": ["deployer"], "secrets": ["login"]}],
    "identity": {"serviceAccounts": [{"namespace": "team", "names": ["puller"]}]},
    "admission": {"enabled": true, "rules": [{"namespaces": ["team"], "paths": ["a"]}, {}]},
    "sync": {"url": "https://host/a.git", "path": "clusters/a", "spec": {"interval": "1m"}},
    "settings": {"instance": "blue"}, "webhookSecret": "webhook", "image": {"digest": ""}, "imagePullSecrets": [{"name": "registry"}],
    "env": [{"name": "MOORLINE_PROXY", "value": "http://proxy:3128"}], "priorityClassName": "high",
    "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}], "affinity": {"nodeAffinity": {}},
    "podAnnotations": {"a": "b"}, "podLabels": {"c": "d"}, "service": {"annotations": {"a": "b"}},
    "serviceAccount": {"annotations": {"a": "b"}}, "networkPolicy": {"enabled": true, "from": [{"podSelector": {}}]},
    "serviceMonitor": {"enabled": true, "labels": {"release": "prometheus"}}, "podMonitor": {"enabled": true},
    "prometheusRule": {"enabled": true}, "dashboard": {"enabled": true},
    "volumes": [{"name": "ca", "secret": {"secretName": "ca"}}],
    "volumeMounts": [{"name": "ca", "mountPath": "/ca"}]
}"#;

/// Values as a file that is there as long as the test.
pub(crate) fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".json").tempfile().expect("a file");
    std::fs::write(file.path(), text).expect("a file of values");
    file
}

fn everything(helm: &Helm) -> String {
    let values = file(EVERYTHING);
    helm.template(&["--values", &values.path().to_string_lossy()]).unwrap_or_else(|error| panic!("{error}"))
}

/// Objects by kind and name.
pub(crate) fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let name = |object: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        format!("{} {}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
    };
    objects.into_iter().map(|object| (name(&object), object)).collect()
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
    kinds.sort_unstable();
    kinds
}

/// Takes a field of a map away.
fn drop_field(value: &mut Value, pointer: &str, field: &str) {
    if let Some(map) = value.pointer_mut(pointer).and_then(Value::as_object_mut) {
        map.remove(field);
    }
}

#[test]
fn helm_finds_nothing_wrong_with_the_chart() {
    let Some(helm) = Helm::here() else { return };
    let values = file(EVERYTHING);
    let values = values.path().to_string_lossy();
    let sets: [&[&str]; 2] = [&[], &["--values", &values]];
    for more in sets {
        let answer = run(helm.command().args(["lint", "--strict", CHART]).args(more));
        assert!(answer.is_ok(), "{answer:?}");
    }
}

#[test]
fn the_chart_is_small_and_has_no_more_than_is_asked_for() {
    let Some(helm) = Helm::here() else { return };
    let whole = everything(&helm);
    assert!(whole.len() < MAX_BYTES, "{} bytes", whole.len());
    let base = [
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "Deployment",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicyBinding",
    ];
    assert_eq!(kinds(&helm.objects(&[])), base);
    let mut all = base.to_vec();
    all.extend([
        "ConfigMap",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "PodMonitor",
        "PrometheusRule",
        "Role",
        "Role",
        "Role",
        "RoleBinding",
        "RoleBinding",
        "RoleBinding",
        "RoleBinding",
        "RoleBinding",
        "ServiceMonitor",
        "Sync",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicyBinding",
    ]);
    all.sort_unstable();
    assert_eq!(kinds(&documents("rendered", &whole)), all);
}

#[test]
fn nobody_is_impersonated_but_by_name() {
    let Some(helm) = Helm::here() else { return };
    let mut seen = 0;
    for object in documents("rendered", &everything(&helm)) {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let verbs = rule["verbs"].as_array().expect("verbs");
            assert!(!verbs.contains(&json!("*")), "{rule}");
            if verbs.contains(&json!("impersonate")) {
                assert_eq!(
                    (&object["kind"], &object["metadata"]["namespace"]),
                    (&json!("Role"), &json!("team"))
                );
                assert_eq!(rule["resourceNames"], json!(["deployer"]));
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 1);
}

#[test]
fn tokens_are_requested_but_by_name() {
    let Some(helm) = Helm::here() else { return };
    let of_role = |object: Value| object["rules"].as_array().cloned().unwrap_or_default();
    let all: Vec<Value> = documents("rendered", &everything(&helm)).into_iter().flat_map(of_role).collect();
    let about = |resource: &str| {
        let rules = all.iter().filter(|rule| rule["resources"] == json!([resource]));
        rules.filter(|rule| rule["verbs"] != json!(["impersonate"])).collect::<Vec<_>>()
    };
    for (resource, verb) in [("serviceaccounts", "get"), ("serviceaccounts/token", "create")] {
        let rules = about(resource);
        assert_eq!(rules.len(), 1, "{resource}");
        assert_eq!((&rules[0]["verbs"], &rules[0]["resourceNames"]), (&json!([verb]), &json!(["puller"])));
    }
}

#[test]
fn a_grant_is_what_it_says() {
    let Some(helm) = Helm::here() else { return };
    let bound = |values: &[&str]| -> Vec<String> {
        let objects = by_name(helm.objects(values));
        let bindings = objects.iter().filter(|(name, _)| name.contains("RoleBinding"));
        let role = |(name, object): (&String, &Value)| {
            format!("{name}: {}", object["roleRef"]["name"].as_str().unwrap_or_default())
        };
        bindings.map(role).collect()
    };
    let own = [
        "ClusterRoleBinding /moorline.moorline: moorline.moorline",
        "RoleBinding moorline/moorline: moorline",
    ];
    assert_eq!(bound(&[]), own);
    let all = "ClusterRoleBinding /moorline.moorline.cluster-admin: cluster-admin";
    assert_eq!(bound(&["--set", "rbac.grant=clusterAdmin"]), [own[0], all, own[1]]);
    let here = "RoleBinding moorline/moorline.moorline.admin: admin";
    let there = "RoleBinding shop/moorline.moorline.admin: admin";
    let values = ["--set", "rbac.grant=namespaceAdmin", "--set", "rbac.namespaces={shop,moorline}"];
    assert_eq!(bound(&values), [own[0], own[1], here, there]);
}

#[test]
fn the_definition_is_changed_by_its_name_or_not_at_all() {
    let Some(helm) = Helm::here() else { return };
    let patched = |values: &[&str]| -> Vec<Value> {
        let rules = helm.objects(values).into_iter().filter_map(|mut object| match object["rules"].take() {
            Value::Array(rules) => Some(rules),
            _ => None,
        });
        let is_patched = |rule: &Value| {
            rule["resources"] == json!(["customresourcedefinitions"])
                && rule["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("patch")))
        };
        rules.flatten().filter(is_patched).map(|mut rule| rule["resourceNames"].take()).collect()
    };
    assert_eq!(
        patched(&[]),
        [json!([
            "syncs.moorline.dev",
            "notifiers.moorline.dev",
            "syncsets.moorline.dev",
            "changewindows.moorline.dev",
            "namespacechangewindows.moorline.dev"
        ])]
    );
    assert!(patched(&["--set", "rbac.updateDefinition=false"]).is_empty());
}

#[test]
fn the_first_sync_is_as_the_values_say() {
    let Some(helm) = Helm::here() else { return };
    let spec = |values: &str| {
        let values = file(values);
        let objects = helm.objects(&["--values", &values.path().to_string_lossy()]);
        let sync = objects.into_iter().find(|object| object["kind"] == "Sync");
        sync.map(|mut sync| (sync["metadata"]["name"].take(), sync["spec"].take()))
    };
    assert_eq!(spec("{}"), None);
    let git = json!({"git": {"url": "https://host/a.git"}});
    let least = json!({"deletionPolicy": "Orphan", "source": git});
    assert_eq!(spec(r#"{"sync": {"url": "https://host/a.git"}}"#), Some((json!("default"), least)));
    let given = r#"{"sync": {"name": "shop", "url": "https://host/a.git", "path": "b", "spec":
        {"path": "a", "prune": {"enabled": false}, "source": {"git": {"url": "no", "ref": {"tag": "v1"}}}}}}"#;
    let whole = json!({
        "deletionPolicy": "Orphan", "path": "b", "prune": {"enabled": false},
        "source": {"git": {"url": "https://host/a.git", "ref": {"tag": "v1"}}},
    });
    assert_eq!(spec(given), Some((json!("shop"), whole)));
}

#[test]
fn the_rights_in_config_are_the_chart_s() {
    let Some(helm) = Helm::here() else { return };
    let is_right = |object: &Value| {
        let kind = object["kind"].as_str().unwrap_or_default();
        kind.contains("Role") || kind == "ServiceAccount" || kind.starts_with("ValidatingAdmissionPolicy")
    };
    let mut rendered: Vec<Value> = helm.objects(&[]).into_iter().filter(is_right).collect();
    for object in &mut rendered {
        // Labels of the roles for people have a meaning for Kubernetes.
        let labels = object["metadata"]["labels"].as_object_mut().expect("labels");
        labels.retain(|key, _| key.starts_with("rbac.authorization.k8s.io/"));
        if labels.is_empty() {
            drop_field(object, "/metadata", "labels");
        }
    }
    let files = ["service_account", "role", "role_binding", "field_managers", "verbs", "people"]
        .map(|name| format!("config/rbac/{name}.yaml"));
    let own = files.iter().flat_map(|file| documents(file, &text(file))).collect();
    assert_eq!(by_name(own), by_name(rendered));
}

#[test]
fn the_deployment_in_config_is_the_chart_s() {
    let Some(helm) = Helm::here() else { return };
    let rendered = by_name(helm.objects(&[]));
    for (name, file) in [("Deployment", "deployment"), ("Service", "service")] {
        let file = format!("config/manager/{file}.yaml");
        let own = documents(&file, &text(&file)).remove(0);
        let mut object = rendered[&format!("{name} moorline/moorline")].clone();
        drop_field(&mut object, "/metadata", "labels");
        if name == "Deployment" {
            let labels = object["spec"]["selector"]["matchLabels"].clone();
            object["spec"]["template"]["metadata"] = json!({"labels": labels});
            // kustomize sets the name and the tag.
            object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("moorline");
        }
        assert_eq!(own, object);
    }
}

#[test]
fn the_variant_with_helm_is_another_tag() {
    let Some(helm) = Helm::here() else { return };
    let image = |values: &str| {
        let values = file(values);
        let objects = by_name(helm.objects(&["--values", &values.path().to_string_lossy()]));
        let pod = &objects["Deployment moorline/moorline"]["spec"]["template"]["spec"];
        pod["containers"][0]["image"].as_str().unwrap_or_default().to_owned()
    };
    let own = concat!("moorline:", env!("CARGO_PKG_VERSION"));
    assert_eq!(image("{}"), own);
    assert_eq!(image(r#"{"image": {"variant": "helm"}}"#), format!("{own}-helm"));
    assert_eq!(image(r#"{"image": {"variant": "helm", "tag": "main"}}"#), "moorline:main-helm");
    let digest = format!("sha256:{}", "0".repeat(64));
    let values = json!({"image": {"variant": "helm", "digest": digest}}).to_string();
    assert_eq!(image(&values), format!("moorline@{digest}"));
}

#[test]
fn kustomize_builds_what_is_in_config() {
    let Some(kubectl) = find("kubectl") else { return };
    let place = format!("{}/config/default", env!("CARGO_MANIFEST_DIR"));
    let built = run(command(&kubectl).args(["kustomize", &place])).unwrap_or_else(|error| panic!("{error}"));
    let built = documents("config/default", &built);
    // The parts that `make undeploy` deletes. Without the keys every later prune would ask.
    for part in ["manager", "rbac"] {
        let place = format!("{}/config/{part}", env!("CARGO_MANIFEST_DIR"));
        let part =
            run(command(&kubectl).args(["kustomize", &place])).unwrap_or_else(|error| panic!("{error}"));
        assert!(!part.contains("kind: Secret"), "the key Secret would be deleted: {part}");
    }
    let expect = [
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "Deployment",
        "Namespace",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicyBinding",
    ];
    assert_eq!(kinds(&built), expect);
    let find = |kind: &str| built.iter().find(|object| object["kind"] == kind).expect("it is built");
    let pod = &find("Deployment")["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], UNSET_IMAGE);
    assert_eq!(pod["volumes"][0]["configMap"]["name"], find("ConfigMap")["metadata"]["name"]);
    let settings = find("ConfigMap")["data"]["daemon.yaml"].as_str().expect("a file").to_owned();
    let settings = documents("config/manager/daemon.yaml", &settings).remove(0);
    let read = moorline::settings::Settings::from_sources(Some(&settings), [], []);
    assert_eq!(read, Ok(moorline::settings::Settings::default()));
}

#[test]
fn the_definition_in_the_chart_is_the_printed_one() {
    for kind in ["syncs", "notifiers", "syncsets", "changewindows", "namespacechangewindows"] {
        let printed = Command::new(env!("CARGO_BIN_EXE_moorline")).args(["crd", kind]).output();
        let printed = String::from_utf8(printed.expect("the binary runs").stdout).expect("YAML is text");
        let file = format!("charts/moorline/crds/moorline.dev_{kind}.yaml");
        assert!(
            printed == text(&file),
            "the chart's definition is not what the binary prints; update it with\n\n    cargo run -- crd {kind} > {file}\n"
        );
    }
}

#[test]
fn the_chart_is_of_this_version() {
    let chart = documents("Chart.yaml", &text("charts/moorline/Chart.yaml")).remove(0);
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}
