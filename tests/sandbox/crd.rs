//! The custom resource on an API server, on a real one and on the sandbox alike: what it refuses, with which words, and what it
//! fills in.
//!
//! Everything that the server refuses, `validate` of the daemon refuses as well: a Sync may reach the
//! daemon without the server's check.

mod bad_artifacts;
mod full_status;
pub(crate) mod kustomize_options;
pub(crate) mod nonsense;
pub(crate) mod server;

use http::{Request, StatusCode, header};
use kube::api::PostParams;
use moorline::api;
use moorline::controller::spec;
use serde_json::{Value, json};

use crate::api_server::servers::{Server, on_both_servers};
use bad_artifacts::{bad_artifacts, oci};
use full_status::full_status;
use kustomize_options::bad_kustomize_options;
use moorline_test_support::credentials::ADMIN;
use nonsense::{
    Bad, SECRET, bad_charts, bad_dependencies, bad_renders_and_prunes, bad_sources, bad_switches,
    bad_variables, git, reference, url,
};
use server::{DEFINITION, create, install, installed, send, sync, wished};

on_both_servers! {
    nonsense_is_refused_with_what_to_write_instead
    a_long_name_is_refused_because_the_field_manager_has_a_bound
    what_makes_sense_is_taken
    the_server_fills_in_the_defaults_and_they_are_those_of_the_daemon
    the_sample_is_taken_strictly
    kubectl_can_apply_the_definition_again_in_both_ways
    the_columns_are_those_that_people_look_for
    a_status_comes_back_as_it_was_written
}

async fn nonsense_is_refused_with_what_to_write_instead(server: &Server) {
    let namespace = server.namespace("nonsense").await;
    let syncs = installed(server, &namespace).await;
    let mut wrong = Vec::new();
    for Bad { over, server, field } in [
        bad_sources(),
        bad_artifacts(),
        bad_charts(),
        bad_renders_and_prunes(),
        bad_variables(),
        bad_switches(),
        bad_kustomize_options(),
        bad_dependencies(),
    ]
    .into_iter()
    .flatten()
    {
        let sync = sync("bad", &over);
        match create(&syncs, &sync).await {
            Ok(_) => wrong.push(format!("{over} is taken")),
            Err(told) if !told.contains(server) || told.contains(SECRET) => {
                wrong.push(format!("{over}: {told}"))
            }
            Err(_) => {}
        }
        match wished(&namespace, sync) {
            Ok(_) => wrong.push(format!("{over} is wished")),
            Err(refusal) if &*refusal.field != field || refusal.to_string().contains(SECRET) => {
                wrong.push(format!("{over}: {refusal}"));
            }
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}\n", wrong.join("\n"));
}

async fn a_long_name_is_refused_because_the_field_manager_has_a_bound(server: &Server) {
    let namespace = server.namespace("names").await;
    let syncs = installed(server, &namespace).await;
    let long = sync(&"n".repeat(53), &json!({}));
    let told = create(&syncs, &long).await.expect_err("53 characters are too many");
    assert!(told.contains("a name of at most 52 characters"), "{told}");
    assert_eq!(&*wished(&namespace, long).expect_err("as for the server").field, "metadata.name");
    let most = sync(&"n".repeat(52), &json!({}));
    create(&syncs, &most).await.expect("52 characters are allowed");
    wished(&namespace, most).expect("as for the server");
}

async fn what_makes_sense_is_taken(server: &Server) {
    let namespace = server.namespace("sense").await;
    let syncs = installed(server, &namespace).await;
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let good = [
        url("https://host/group/a.git"),
        url("https://host:8443/a"),
        url("http://host/a"),
        url("ssh://git@host:2222/a"),
        url("ssh://git@[::1]:2222/a"),
        url("git@host:group/a.git"),
        url("git@host:/srv/a.git"),
        git(json!({"secretRef": {"name": "repository.login"}})),
        reference(json!({"branch": "release/1.2"})),
        reference(json!({"tag": "v1.2.0"})),
        reference(json!({"semver": ">=1.2.0 <2.0.0 || ~3.1"})),
        reference(json!({"semver": "1.x"})),
        reference(json!({"commit": commit})),
        oci(json!({})),
        oci(json!({"url": "oci://host:5000/group/a_b/shop-1.2"})),
        oci(json!({"url": "oci://[::1]:5000/shop", "secretRef": {"name": "registry.login"}})),
        oci(json!({"ref": {"tag": "v1.2.0_x"}})),
        oci(json!({"ref": {"semver": ">=1.2.0 <2.0.0", "filter": "^v?[0-9.]+$"}})),
        oci(json!({"ref": {"digest": format!("sha256:{}", "a".repeat(64))}})),
        oci(json!({"layer": {"mediaType": "application/vnd.example.files+json", "operation": "Copy"}})),
        json!({"path": "clusters/prod"}),
        json!({"path": "./a..b/c"}),
        json!({"path": "."}),
        json!({"interval": "1h30m", "timeout": "24h"}),
        json!({"prune": {"budget": {"percent": 0, "count": 0}, "protect": ["Secret", "Cluster.postgresql.cnpg.io"]}}),
        json!({"prune": {"enabled": false}, "deletionPolicy": "Delete", "conflicts": "Yield"}),
        json!({"targetNamespace": "shop", "createNamespace": true}),
        json!({"ignoreFields": [{"target": {"group": "", "kind": "Service"}, "paths": ["/metadata/annotations/a.b~1c"]}]}),
        json!({"render": {"type": "Helm", "helm": {"releaseName": "a.b", "namespace": "shop", "valuesFiles": ["/a.yaml", "../b"],
            "chart": {"url": "oci://example.com/charts/shop", "version": "1.2.3+b", "digest": "a".repeat(64)},
            "values": {"a": {"b": [1, "two", null]}}, "skipCrds": true, "kubeVersion": "v1.33.2+x"}}}),
        json!({"render": {"plain": {"recurse": false, "include": ["**/*.yaml"], "exclude": ["a[0-9]/*"]}}}),
        json!({"render": {"kustomize": {}}}),
        json!({"render": {"type": "Kustomize", "kustomize": {"namePrefix": "a-", "nameSuffix": ".b", "namespace": "shop",
            "patches": [{"patch": "kind: A"}, {"patch": "- {op: remove, path: /a}", "target": {"kind": "A|B", "labelSelector": "a=b"}}],
            "images": [{"name": "registry.example.com:5000/web", "newTag": "v1"}, {"name": "a", "newName": "host:5000/b",
                "digest": format!("sha256:{}", "a".repeat(64))}],
            "components": ["../parts/tls", "./a..b", ".."], "labels": {"example.com/team": "", "a": "b.c"},
            "annotations": {"example.com/note": "any text: ${A}"}}}}),
    ];
    for over in good {
        let sync = sync("good", &over);
        let taken = create(&syncs, &sync).await.unwrap_or_else(|told| panic!("{over}: {told}"));
        wished(&namespace, taken).unwrap_or_else(|refusal| panic!("{over}: {refusal}"));
    }
}

async fn the_server_fills_in_the_defaults_and_they_are_those_of_the_daemon(server: &Server) {
    let namespace = server.namespace("defaults").await;
    let syncs = installed(server, &namespace).await;
    let written = sync("least", &json!({"targetNamespace": null, "interval": null, "prune": null}));
    let taken = create(&syncs, &written).await.expect("a Sync with a URL alone");
    let expect = json!({
        "source": {"git": {"url": "https://host/a.git", "submodules": false}},
        "path": "./",
        "render": {"type": "Auto", "plain": {"recurse": true}}, "rollback": {"onFailure": false},
        "createNamespace": false,
        "prune": {"enabled": true},
        "deletionPolicy": "Orphan",
        "drift": {"mode": "Repair", "extraFields": "Report"},
        "conflicts": "Force",
        "interval": "30s",
        "timeout": "5m",
        "health": {"wait": true},
        "suspend": false,
    });
    assert_eq!(taken["spec"], expect);
    let unfilled = sync("least", &json!({}));
    assert_eq!(wished(&namespace, taken), wished(&namespace, unfilled));
    let inner = sync("inner", &json!({"prune": {"budget": {}}, "drift": {}, "render": {"plain": {}}}));
    let taken = create(&syncs, &inner).await.expect("empty parts");
    assert_eq!(taken["spec"]["prune"], json!({"enabled": true, "budget": {}}));
    assert_eq!(taken["spec"]["drift"], expect["drift"]);
    assert_eq!(taken["spec"]["render"], expect["render"]);
}

async fn the_sample_is_taken_strictly(server: &Server) {
    let namespace = server.namespace("sample").await;
    let syncs = installed(server, &namespace).await;
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("config/samples/sync.yaml");
    let bytes = std::fs::read(place).expect("the sample");
    let mut documents =
        moorline::yaml::read("sync.yaml", &bytes, moorline::yaml::Dialect::Kubectl).expect("YAML");
    let mut sample = documents.remove(0).value;
    sample["metadata"]["namespace"] = json!(namespace);
    let path = format!("/apis/moorline.dev/v1alpha1/namespaces/{namespace}/syncs?fieldValidation=Strict");
    let (status, warnings, answer) =
        send(&syncs.client, "POST", &path, "application/json", sample.clone()).await;
    assert_eq!((status, warnings), (StatusCode::CREATED, Vec::new()), "{answer}");
    wished(&namespace, sample.clone()).expect("the sample makes sense");

    sample["metadata"]["name"] = json!("typo");
    sample["spec"]["prune"]["enable"] = json!(false);
    let (status, _, answer) = send(&syncs.client, "POST", &path, "application/json", sample).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    assert!(answer.to_string().contains("unknown field \\\"spec.prune.enable\\\""), "{answer}");
}

async fn kubectl_can_apply_the_definition_again_in_both_ways(server: &Server) {
    let client = server.client(ADMIN).await;
    let definition = api::definition().expect("JSON");
    install(&client).await;
    let mut patched = definition.clone();
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    patched["metadata"]["annotations"] = json!({annotation: definition.to_string()});
    let (status, warnings, answer) =
        send(&client, "PATCH", DEFINITION, "application/merge-patch+json", patched).await;
    assert_eq!((status, warnings), (StatusCode::OK, Vec::new()), "{answer}");
}

async fn the_columns_are_those_that_people_look_for(server: &Server) {
    let namespace = server.namespace("columns").await;
    let syncs = installed(server, &namespace).await;
    let path = format!("/apis/moorline.dev/v1alpha1/namespaces/{namespace}/syncs");
    let request = Request::get(path)
        .header(header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .expect("a literal request");
    let table: Value = syncs.client.request(request).await.expect("a table");
    let columns = table["columnDefinitions"].as_array().expect("columns").iter();
    let columns: Vec<_> = columns
        .map(|column| (column["name"].as_str().unwrap_or_default(), column["priority"].as_i64()))
        .collect();
    let shown = |name| (name, Some(0));
    let expect = ["Name", "Ready", "Reason", "Revision", "Objects", "Drift", "Age"].map(shown);
    let wide = ["Healthy", "Suspended", "Cluster", "Message"].map(|name| (name, Some(1)));
    assert_eq!(columns, [&expect[..], &wide].concat());

    let request = Request::get("/apis/moorline.dev/v1alpha1").body(Vec::new()).expect("a literal request");
    let kinds: Value = syncs.client.request(request).await.expect("the kinds of the group");
    let sync = &kinds["resources"][0];
    assert_eq!(
        (&sync["shortNames"], &sync["categories"], &sync["namespaced"]),
        (&json!(["sy"]), &json!(["moorline"]), &json!(true))
    );
}

async fn a_status_comes_back_as_it_was_written(server: &Server) {
    let namespace = server.namespace("status").await;
    let syncs = installed(server, &namespace).await;
    let body = serde_json::from_value(sync("told", &json!({}))).expect("a Sync");
    syncs.api.create(&PostParams::default(), &body).await.expect("a good Sync");
    let path = format!(
        "/apis/moorline.dev/v1alpha1/namespaces/{namespace}/syncs/told/status?fieldValidation=Strict"
    );
    let status = full_status();
    let patch = json!({"status": status});
    let (code, warnings, answer) =
        send(&syncs.client, "PATCH", &path, "application/merge-patch+json", patch.clone()).await;
    assert_eq!((code, warnings), (StatusCode::OK, Vec::new()), "{answer}");
    let read = spec::read(answer).expect("a Sync that can be read");
    assert_eq!(read.status, Some(status));

    let mut twice = patch;
    let conditions = twice["status"]["conditions"].as_array_mut().expect("conditions");
    conditions.push(conditions[0].clone());
    let (code, _, answer) = send(&syncs.client, "PATCH", &path, "application/merge-patch+json", twice).await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY, "one condition of each type: {answer}");
}
