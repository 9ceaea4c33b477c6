//! `config/` on the real control plane, as `make deploy` and `make undeploy` use it.

use std::path::Path;

use serde_json::{Value, json};

use super::programs::{command, documents, find, run, text};
use super::release::Release;
use crate::support::credentials::ADMIN;
use crate::support::rest::ask;

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
