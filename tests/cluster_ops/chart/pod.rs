//! The pod of the chart: where it may run, who finds it by its labels and ports, and what is mounted.

use std::path::Path;

use serde_json::{Value, json};

use super::programs::{Helm, documents};
use super::rendered::{EVERYTHING, file};

/// Nodes on which the pod may run, as values of the chart and fields of the pod at the same time.
fn places() -> Value {
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a", "b"]}]});
    let spread = json!([{
        "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"c": "d"}},
    }]);
    json!({
        "nodeSelector": {"kubernetes.io/os": "linux", "number": "1"},
        "tolerations": [
            {"key": "a", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        ],
        "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
        }},
        "topologySpreadConstraints": spread,
        "priorityClassName": "system-cluster-critical",
    })
}

fn rendered(helm: &Helm, values: &Value) -> Vec<Value> {
    let values = file(&values.to_string());
    helm.objects(&["--values", &values.path().to_string_lossy()])
}

fn one<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    let first = found.next().unwrap_or_else(|| panic!("there is no {kind}"));
    assert_eq!(found.next(), None, "there are two of {kind}");
    first
}

fn pod(objects: &[Value]) -> &Value {
    &one(objects, "Deployment")["spec"]["template"]
}

/// True if a selector says something, and these labels are all that it says.
fn selects(selector: &Value, labels: &Value) -> bool {
    let selector = selector.as_object().expect("labels");
    !selector.is_empty() && selector.iter().all(|(name, value)| labels[name] == *value)
}

/// The number of the port of this name, if there is one and only one.
fn port(ports: &Value, name: &Value, number: &str) -> Option<i64> {
    let mut found = ports.as_array().expect("ports").iter().filter(|port| port["name"] == *name);
    let number = found.next()?[number].as_i64();
    found.next().is_none().then_some(number?)
}

#[test]
fn the_pod_runs_where_the_values_say() {
    let Some(helm) = Helm::here() else { return };
    let places = places();
    let placed = |values: &Value| -> Value {
        let objects = rendered(&helm, values);
        let spec = &pod(&objects)["spec"];
        let fields = places.as_object().expect("a map").keys();
        fields.filter_map(|field| Some((field.clone(), spec.get(field)?.clone()))).collect()
    };
    assert_eq!(placed(&places), places);
    let mut two = places.clone();
    two["replicas"] = json!(2);
    assert_eq!(placed(&two), places, "what is given counts more than the spread of two");
    assert_eq!(placed(&json!({})), json!({}));
}

#[test]
fn two_replicas_are_spread_by_labels_that_they_have() {
    let Some(helm) = Helm::here() else { return };
    let objects = rendered(&helm, &json!({"replicas": 2}));
    let pod = pod(&objects);
    let spread = pod["spec"]["topologySpreadConstraints"].as_array().expect("constraints");
    assert_eq!(spread.len(), 1);
    assert!(selects(&spread[0]["labelSelector"]["matchLabels"], &pod["metadata"]["labels"]), "{spread:?}");
}

#[test]
fn whoever_looks_for_the_pod_finds_it_and_no_other() {
    let Some(helm) = Helm::here() else { return };
    let values: Value = serde_json::from_str(EVERYTHING).expect("values");
    let mut other = values.clone();
    other["nameOverride"] = json!("other");
    let (objects, others) = (rendered(&helm, &values), rendered(&helm, &other));
    for (kind, pointer) in [
        ("Deployment", "/spec/selector/matchLabels"),
        ("Service", "/spec/selector"),
        ("PodMonitor", "/spec/selector/matchLabels"),
        ("NetworkPolicy", "/spec/podSelector/matchLabels"),
        ("PodDisruptionBudget", "/spec/selector/matchLabels"),
        ("ServiceMonitor", "/spec/selector/matchLabels"),
    ] {
        for (own, foreign) in [(&objects, &others), (&others, &objects)] {
            let object = one(own, kind);
            let labels = |objects| match kind {
                "ServiceMonitor" => &one(objects, "Service")["metadata"]["labels"],
                _ => &pod(objects)["metadata"]["labels"],
            };
            let selector = object.pointer(pointer).unwrap_or_else(|| panic!("{kind} has no {pointer}"));
            assert!(selects(selector, labels(own)), "{kind}: {selector} {}", labels(own));
            assert!(!selects(selector, labels(foreign)), "{kind}: {selector}");
            // Without a word about namespaces they look in their own.
            let deployment = one(own, "Deployment");
            assert_eq!(object["metadata"]["namespace"], deployment["metadata"]["namespace"], "{kind}");
            assert_eq!(object["spec"]["namespaceSelector"], Value::Null, "{kind}");
        }
    }
}

#[test]
fn whoever_asks_for_figures_asks_at_a_port_that_there_is() {
    let Some(helm) = Helm::here() else { return };
    let mut values: Value = serde_json::from_str(EVERYTHING).expect("values");
    for (listen, number) in [("0.0.0.0:8080", 8080), ("[::]:9090", 9090)] {
        values["settings"]["listen"] = json!(listen);
        let objects = rendered(&helm, &values);
        let container = &pod(&objects)["spec"]["containers"][0];
        let probes = format!("{}:8082", listen.rsplit_once(':').expect("a port").0);
        assert_eq!(container["args"].as_array().expect("arguments").last(), Some(&json!(probes)));
        let of_pod = |name: &Value| port(&container["ports"], name, "containerPort");
        let service = &one(&objects, "Service")["spec"]["ports"];

        let asked = &one(&objects, "ServiceMonitor")["spec"]["endpoints"][0];
        assert_eq!(port(service, &asked["port"], "port"), Some(number), "{asked} {service}");
        assert_eq!(of_pod(&service[0]["targetPort"]), Some(number), "{service}");
        assert_eq!(asked["path"], "/metrics");
        let asked = &one(&objects, "PodMonitor")["spec"]["podMetricsEndpoints"][0];
        assert_eq!(of_pod(&asked["port"]), Some(number), "{asked}");
        assert_eq!(asked["path"], "/metrics");
        let let_in = &one(&objects, "NetworkPolicy")["spec"]["ingress"][0]["ports"][0]["port"];
        assert_eq!(of_pod(let_in), Some(number), "{let_in}");
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            // Strangers who use the other port cannot delay a probe.
            assert_eq!(of_pod(&container[probe]["httpGet"]["port"]), Some(8082), "{probe}");
        }
    }
}

#[test]
fn the_status_page_is_for_the_pod_alone_unless_it_is_exposed() {
    let Some(helm) = Helm::here() else { return };
    let seen = |values: &Value| {
        let objects = rendered(&helm, values);
        let text = one(&objects, "ConfigMap")["data"]["daemon.yaml"].as_str().expect("a file").to_owned();
        let bound = documents("daemon.yaml", &text).remove(0)["page"].take();
        let of_pod = port(&pod(&objects)["spec"]["containers"][0]["ports"], &json!("page"), "containerPort");
        let of_service = port(&one(&objects, "Service")["spec"]["ports"], &json!("page"), "port");
        let rules = one(&objects, "NetworkPolicy")["spec"]["ingress"].as_array().expect("rules").clone();
        let rule = rules.into_iter().find(|rule| rule["ports"][0]["port"] == "page");
        (bound, of_pod, of_service, rule.map(|rule| rule["from"].clone()))
    };
    let policy = json!({"enabled": true});
    let closed = (json!("127.0.0.1:8081"), None, None, None);
    assert_eq!(seen(&json!({"networkPolicy": policy})), closed);
    let from = json!([{"podSelector": {"matchLabels": {"app": "login"}}}]);
    let open = json!({"networkPolicy": policy, "page": {"expose": true, "from": from}});
    assert_eq!(seen(&open), (json!("0.0.0.0:8081"), Some(8081), Some(8081), Some(from)));
    let six = json!({"networkPolicy": policy, "page": {"expose": true}, "settings": {"listen": "[::]:8080", "page": "[::1]:9"}});
    assert_eq!(seen(&six), (json!("[::]:9"), Some(9), Some(9), Some(Value::Null)));
}

#[test]
fn the_secret_of_webhooks_is_mounted_where_the_settings_look_for_it() {
    let Some(helm) = Helm::here() else { return };
    let seen = |values: &Value| {
        let objects = rendered(&helm, values);
        let text = one(&objects, "ConfigMap")["data"]["daemon.yaml"].as_str().expect("a file").to_owned();
        let named = documents("daemon.yaml", &text).remove(0)["webhookSecretFile"].take();
        let spec = &pod(&objects)["spec"];
        let volumes = spec["volumes"].as_array().expect("volumes");
        let volume = volumes.iter().find(|volume| volume["secret"]["secretName"] == "hooks");
        let mounts = spec["containers"][0]["volumeMounts"].as_array().expect("mounts");
        let is_it = |mount: &&Value| volume.is_some_and(|volume| mount["name"] == volume["name"]);
        let mounts: Vec<Value> =
            mounts.iter().filter(is_it).map(|mount| mount["mountPath"].clone()).collect();
        (named, mounts)
    };
    let (named, mounts) = seen(&json!({"webhookSecret": "hooks"}));
    let named = Path::new(named.as_str().expect("the settings name the file"));
    // Each key of a Secret is a file of the folder where it is mounted, and this is the key that the values name.
    assert_eq!(named.file_name(), Some("secret".as_ref()));
    assert_eq!(mounts, [json!(named.parent())]);
    assert_eq!(seen(&json!({})), (Value::Null, Vec::new()));
}
