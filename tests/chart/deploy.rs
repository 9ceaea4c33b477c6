//! `config/` on the real control plane, as `make deploy` and `make undeploy` use it.

use std::path::Path;

use serde_json::{Value, json};

use super::programs::{command, documents, find, run, text};
use super::release::Release;
use super::rendered::EVERYTHING;
use crate::support::credentials::ADMIN;
use crate::support::daemon::install;
use crate::support::rest::ask;

#[tokio::test]
async fn the_api_server_takes_all_that_the_chart_can_come_to() {
    let Some(kubectl) = find("kubectl") else { return };
    let Some(release) = Release::new("everything").await else { return };
    install(&release.plane).await;
    let mut values: Value = serde_json::from_str(EVERYTHING).expect("values");
    values["rbac"]["namespaces"] = json!([release.namespace]);
    values["tenants"][0]["namespace"] = json!(release.namespace);
    let file = release.values_file(&values.to_string());
    let rendered = release.helm(&["template", "moorline", release.chart(), "--values", &file]);
    let rendered = rendered.unwrap_or_else(|error| panic!("{error}"));
    // Of the Prometheus operator there are no definitions here.
    let of_operator = |object: &Value| object["apiVersion"] == "monitoring.coreos.com/v1";
    let objects = documents("rendered", &rendered).into_iter().filter(|object| !of_operator(object));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects.collect::<Vec<_>>()});
    let list = release.values_file(&list.to_string());
    let mut apply = command(&kubectl);
    let apply = apply.args(["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", &list]);
    let answer = run(apply.env("KUBECONFIG", release.plane.kubeconfig_file(ADMIN)));
    let taken = answer.unwrap_or_else(|error| panic!("{error}"));
    assert!(taken.lines().count() > 15, "{taken}");
    release.end().await;
}

#[tokio::test]
async fn what_is_deployed_without_helm_goes_and_leaves_syncs() {
    let Some(kubectl) = find("kubectl") else { return };
    let Some(release) = Release::new("deploy").await else { return };
    release.without_definition().await;
    let make = |target: &str| {
        let mut make = command(Path::new("make"));
        let make = make.args(["--no-print-directory", target]).arg(format!("KUBECTL={}", kubectl.display()));
        let place = env!("CARGO_MANIFEST_DIR");
        run(make.env("KUBECONFIG", release.plane.kubeconfig_file(ADMIN)).current_dir(place))
            .unwrap_or_else(|error| panic!("make {target}: {error}"))
    };
    make("install");
    make("deploy");
    let deployment = "/apis/apps/v1/namespaces/moorline/deployments/moorline";
    let account = "/api/v1/namespaces/moorline/serviceaccounts/moorline";
    for path in [deployment, account] {
        assert!(release.get(path).await.is_some(), "{path}");
    }
    let sample = documents("the sample", &text("config/samples/sync.yaml")).remove(0);
    let syncs = "/apis/moorline.dev/v1alpha1/namespaces/moorline/syncs";
    release.create(syncs, sample).await.expect("the sample is a Sync");

    make("undeploy");
    for path in [deployment, account] {
        let live = release.get(path).await;
        assert!(live.is_none_or(|it| it["metadata"]["deletionTimestamp"].is_string()), "{path}");
    }
    let sync = release.get(&format!("{syncs}/shop")).await.expect("the Sync stays");
    assert_eq!(sync["metadata"]["deletionTimestamp"], json!(null));
    ask(&release.admin, "DELETE", &format!("{syncs}/shop"), Value::Null).await.expect("it goes");
    release.end().await;
}
