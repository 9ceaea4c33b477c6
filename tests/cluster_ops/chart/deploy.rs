//! `config/` on the real control plane, as `make deploy` and `make undeploy` use it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::programs::{command, documents, find, run, text};
use super::release::Release;
use super::rendered::EVERYTHING;
use crate::chart::{BY_HAND, definition};
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::install;
use moorline_test_support::rest::send_request;

/// Image of `config/default`, which cannot be pulled.
pub(crate) const UNSET_IMAGE: &str = concat!("image-is-not-set.invalid/moorline:", env!("CARGO_PKG_VERSION"));

/// The command in a file that applies `config/default`.
fn command_of(file: &str) -> String {
    let text = text(file).replace("$(KUBECTL)", "kubectl");
    let found: Vec<&str> = text.match_indices("kubectl apply").map(|(at, _)| &text[at..]).collect();
    let line = |text: &&str| text.split(['\n', '`']).next().unwrap_or_default().trim_end().to_owned();
    let mut commands = found.iter().map(line).filter(|command| command.ends_with("config/default"));
    let command = commands.next().unwrap_or_else(|| panic!("{file} does not apply config/default"));
    assert_eq!(commands.next(), None, "{file} says it twice");
    command
}

#[tokio::test]
async fn the_api_server_takes_all_that_the_chart_can_come_to() {
    let Some(kubectl) = find("kubectl") else { return };
    let Some(release) = Release::new("everything").await else { return };
    install(&release.plane).await;
    let mut values: Value = serde_json::from_str(EVERYTHING).expect("values");
    values["rbac"]["namespaces"] = json!([release.namespace]);
    values["tenants"][0]["namespace"] = json!(release.namespace);
    values["identity"]["serviceAccounts"][0]["namespace"] = json!(release.namespace);
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
async fn the_command_of_the_readme_installs_everything() {
    let command_of = ["docs/install.md", "Makefile", "config/default/kustomization.yaml"].map(command_of);
    let [of_page, of_makefile, own] = &command_of;
    assert_eq!((of_page, of_makefile), (own, own));

    let Some(kubectl) = find("kubectl") else { return };
    let Some(release) = Release::new("literal").await else { return };
    release.without_definition().await;
    // As typed into a shell, where kubectl and moorline are on PATH.
    let path = [kubectl.as_path(), Path::new(env!("CARGO_BIN_EXE_moorline"))]
        .map(|it| it.parent().expect("a folder").into());
    let path: Vec<PathBuf> = path.into_iter().chain(["/usr/bin".into(), "/bin".into()]).collect();
    let path = std::env::join_paths(path).expect("a PATH");
    let typed = |line: &str| {
        let mut shell = command(Path::new("/bin/sh"));
        let shell = shell.args(["-ec", line]).env("PATH", &path).current_dir(env!("CARGO_MANIFEST_DIR"));
        run(shell.env("KUBECONFIG", release.plane.kubeconfig_file(ADMIN)))
            .unwrap_or_else(|error| panic!("{line}: {error}"))
    };
    typed(of_page);
    let deployment = release.get("/apis/apps/v1/namespaces/moorline/deployments/moorline").await;
    let pod = deployment.expect("the Deployment")["spec"]["template"]["spec"].take();
    assert_eq!(pod["containers"][0]["image"], UNSET_IMAGE);
    let settings = pod["volumes"][0]["configMap"]["name"].as_str().expect("a ConfigMap is mounted");
    let settings = format!("/api/v1/namespaces/moorline/configmaps/{settings}");
    assert!(release.get(&settings).await.is_some(), "{settings}");
    let account = "--as=system:serviceaccount:moorline:moorline";
    let may = |what: &str| typed(&format!("kubectl auth can-i {what} {account} || true")).trim().to_owned();
    assert_eq!(may("patch syncs/status -n other"), "yes");
    assert_eq!(may("get secrets -n moorline"), "yes");
    assert_eq!(may("get secrets -n other"), "no");

    // Also over what an older daemon has brought meanwhile, and so does the command for the definition alone.
    let own = moorline::api::definition().expect("the definition");
    let older = format!("{}/crds/moorline.dev_syncs.yaml", release.older_chart());
    let by_daemon = "kubectl apply --server-side --force-conflicts --field-manager=moorline-crd -f";
    for newer in [of_page, BY_HAND] {
        typed(&format!("{by_daemon} {older}"));
        assert_ne!(definition(&release).await.0["versions"], own["spec"]["versions"]);
        typed(newer);
        assert_eq!(definition(&release).await.0["versions"], own["spec"]["versions"], "{newer}");
    }
    typed("make undeploy");
    release.end().await;
}

/// A copy of what `make deploy` uses, with the name of an image.
fn with_image(repository: &Path, image: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    let mut copying = command(Path::new("cp"));
    run(copying.arg("-R").arg(repository.join("config")).arg(repository.join("Makefile")).arg(copy.path()))
        .unwrap_or_else(|error| panic!("{error}"));
    let file = copy.path().join("config/manager/kustomization.yaml");
    let text = std::fs::read_to_string(&file).expect("a kustomization");
    let changed = text.replace("newName: image-is-not-set.invalid/moorline", image);
    assert_ne!(changed, text);
    std::fs::write(&file, changed).expect("a kustomization");
    copy
}

#[tokio::test]
async fn what_is_deployed_without_helm_goes_and_leaves_syncs() {
    let Some(kubectl) = find("kubectl") else { return };
    let Some(release) = Release::new("deploy").await else { return };
    release.without_definition().await;
    let make_in = |place: &Path, target: &str| {
        let mut make = command(Path::new("make"));
        let make = make.args(["--no-print-directory", target]).arg(format!("KUBECTL={}", kubectl.display()));
        run(make.env("KUBECONFIG", release.plane.kubeconfig_file(ADMIN)).current_dir(place))
    };
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let deployment = "/apis/apps/v1/namespaces/moorline/deployments/moorline";
    let account = "/api/v1/namespaces/moorline/serviceaccounts/moorline";
    let refused = make_in(repository, "deploy").expect_err("there is no image");
    assert!(refused.contains("the image is not set: make it (make dist image), push it to"), "{refused}");
    assert!(release.get(account).await.is_none(), "nothing is written");

    let own = with_image(repository, "newName: registry.example.com/moorline");
    let make =
        |target: &str| make_in(own.path(), target).unwrap_or_else(|error| panic!("make {target}: {error}"));
    make("install");
    make("deploy");
    for path in [deployment, account] {
        assert!(release.get(path).await.is_some(), "{path}");
    }
    let live = release.get(deployment).await.expect("the Deployment");
    let image = concat!("registry.example.com/moorline:", env!("CARGO_PKG_VERSION"));
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], image);
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
    send_request(&release.admin, "DELETE", &format!("{syncs}/shop"), Value::Null).await.expect("it goes");
    release.end().await;
}
